from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import ZONE, make_config, make_node, make_pod
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Node

TEMPLATES = {zone: make_node("template", labels={ZONE: zone} if zone else {}) for zone in ("", "a", "b", "c")}


def node(number: int, zone: str = "") -> Node:
    template = TEMPLATES[zone]
    return replace(template, metadata=replace(template.metadata, name=f"n{number:04}"))


def scheduler_of(nodes: int, config: dict[str, Any] | None = None, sampling: Any = "upstream") -> Scheduler:
    cluster = Cluster.from_objects(node(number) for number in range(nodes))
    return Scheduler(cluster, config, tie_break="first", sampling=sampling)


@pytest.mark.parametrize(
    ("nodes", "found"),
    [
        pytest.param(99, 99, id="a small cluster is looked at as a whole"),
        pytest.param(150, 100, id="never fewer than 100"),
        pytest.param(400, 188, id="47 percent of 400"),
        pytest.param(1000, 420, id="42 percent of 1000"),
        pytest.param(6000, 300, id="never less than 5 percent"),
    ],
)
def test_upstream_finds_as_many_as_kube_scheduler_would(nodes: int, found: int) -> None:
    assert len(scheduler_of(nodes).decide(make_pod()).feasible) == found


def test_all_nodes_are_looked_at_unless_asked_otherwise() -> None:
    assert len(scheduler_of(400, sampling="all").decide(make_pod()).feasible) == 400


@pytest.mark.parametrize(
    ("config", "found"),
    [
        (make_config(percentageOfNodesToScore=60), 240),
        (make_config(percentageOfNodesToScore=10), 100),
        (make_config(percentageOfNodesToScore=100), 400),
        (make_config({"percentageOfNodesToScore": 30}, percentageOfNodesToScore=60), 120),
    ],
)
def test_a_percentage_in_the_configuration_is_followed_always(config: dict[str, Any], found: int) -> None:
    assert len(scheduler_of(400, config, sampling="all").decide(make_pod()).feasible) == found


def test_the_next_pod_starts_where_this_one_stopped() -> None:
    scheduler = scheduler_of(250)
    looked_at = []
    for number in range(3):
        pod = make_pod(f"p{number}")
        assert scheduler.decide(pod) == scheduler.decide(pod)
        looked_at.append(scheduler.place(pod).feasible)
    # 48 percent of 250 are 120: 0 to 119, 120 to 239, and 240 on, round to 109.
    numbers = [[int(name[1:]) for name in names] for names in looked_at]
    assert numbers[0] == list(range(120))
    assert numbers[1] == list(range(120, 240))
    assert numbers[2] == [*range(110), *range(240, 250)]


def test_nodes_that_do_not_fit_are_passed_over() -> None:
    cluster = Cluster.from_objects(make_node(f"n{number:03}", cpu="1" if number % 2 else "4") for number in range(300))
    decision = Scheduler(cluster, tie_break="first", sampling="upstream").decide(make_pod(requests={"cpu": "2"}))
    # 48 percent of 300 are 144, so the search ends at the 145th even node, number 288.
    assert len(decision.feasible) == 144
    assert max(decision.feasible) == "n286"
    assert len(decision.rejected) == 144


def test_zones_take_turns() -> None:
    zones = "a" * 150 + "b" * 100 + "c" * 50
    cluster = Cluster.from_objects(node(number, zone) for number, zone in enumerate(zones))
    decision = Scheduler(cluster, tie_break="first", sampling="upstream").decide(make_pod())
    found = [zones[int(name[1:])] for name in decision.feasible]
    assert {zone: found.count(zone) for zone in "abc"} == {"a": 48, "b": 48, "c": 48}


def test_without_scoring_the_first_node_that_fits_is_taken() -> None:
    unscored = {"plugins": {point: {"disabled": [{"name": "*"}]} for point in ("preScore", "score")}}
    decision = scheduler_of(5, make_config(unscored), sampling="all").decide(make_pod())
    assert decision.feasible == ("n0000",)
    assert decision.node == "n0000"
