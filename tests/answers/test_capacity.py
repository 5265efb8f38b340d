"""How many more pods fit: exactly as many as placing them one by one says."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import msgspec
import pytest

from builders import HOSTNAME, ZONE, affinity, make_node, make_pod, pod_term, spread
from podium.answers import Capacity, capacity
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import InputError, PodiumError
from podium.model import Node, Pod
from podium.recorded import prepare, read_records

GOLDEN = Path(__file__).parents[1] / "golden"
ALIKE = {"requests": {"cpu": "1", "memory": "1Gi"}, "labels": {"app": "web"}}


def zoned(*names: str, **fields: Any) -> list[Node]:
    """Nodes whose first letter is their zone."""
    return [make_node(name, labels={ZONE: name[0], HOSTNAME: name}, **fields) for name in names]


def asked(*templates: Pod, nodes: list[Node], running: tuple[Pod, ...] = (), **options: Any) -> Capacity:
    return capacity(Cluster.from_objects([*nodes, *running]), templates, **options)


CASES: dict[str, tuple[dict[str, Any], dict[str, int]]] = {
    "as much as cpu allows": ({"requests": {"cpu": "1500m"}}, {"a1": 2, "b1": 2}),
    "as much as memory allows": ({"requests": {"memory": "3Gi"}}, {"a1": 2, "b1": 2}),
    "as many pods as a node takes": ({"requests": {"cpu": "1m"}, "node_selector": {ZONE: "a"}}, {"a1": 110}),
    "one host port a node": ({"ports": [{"containerPort": 80, "hostPort": 80}]}, {"a1": 1, "b1": 1}),
    "never two on a node": (
        {**ALIKE, "affinity": affinity(required=[pod_term(HOSTNAME, {"app": "web"})], anti=True)},
        {"a1": 1, "b1": 1},
    ),
    "together with the first one": (
        {**ALIKE, "affinity": affinity(required=[pod_term(ZONE, {"app": "web"})])},
        {"a1": 4},
    ),
    "evenly until a zone is full": (
        {**ALIKE, "topology_spread_constraints": [spread(ZONE, {"app": "web"})]},
        {"a1": 4, "b1": 4},
    ),
}


@pytest.mark.parametrize(("fields", "expected"), CASES.values(), ids=CASES)
def test_counts_pods_by_node(fields: dict[str, Any], expected: dict[str, int]) -> None:
    answer = asked(make_pod("web", **fields), nodes=zoned("a1", "b1"))

    assert dict(answer.fits[0].nodes) == expected
    assert answer.count == sum(expected.values())
    assert answer.stopped_by is not None
    assert answer.stopped_by.pod == f"default/web-{answer.count}"


def test_what_stops_the_next_one() -> None:
    answer = asked(make_pod("web", requests={"cpu": "3"}), nodes=zoned("a1", "b1"))

    assert answer.message.startswith("0/2 nodes are available: 2 Insufficient cpu.")


def test_a_limit_stops_before_the_cluster_is_full() -> None:
    answer = asked(make_pod("web", requests={"cpu": "1"}), nodes=zoned("a1", "b1"), limit=3)

    assert (answer.count, answer.stopped_by, answer.message) == (3, None, "the limit of 3 pods is reached")


def test_pods_of_a_mix_take_turns_until_one_does_not_fit() -> None:
    small, large = make_pod("small", requests={"cpu": "500m"}), make_pod("large", requests={"cpu": "2"})

    answer = asked(small, large, nodes=zoned("a1"), mix=[3, 1])

    # 3 small and a large take 3.5 of 4 cpu; one more small one fits, the fifth does not.
    assert [fits.count for fits in answer.fits] == [4, 1]
    assert answer.stopped_by is not None
    assert answer.stopped_by.pod == "default/small-4"


def test_a_mix_may_be_of_huge_numbers() -> None:
    answer = asked(make_pod("a"), make_pod("b"), nodes=zoned("a1"), mix=[10**20, 1], limit=2)

    assert [fits.count for fits in answer.fits] == [2, 0]


def test_excluded_nodes_are_not_there() -> None:
    answer = asked(make_pod("web", requests={"cpu": "1"}), nodes=zoned("a1", "b1"), exclude_nodes=["a1"])

    assert dict(answer.fits[0].nodes) == {"b1": 4}
    assert "0/1 nodes are available" in answer.message


def test_what_runs_takes_room_and_what_is_pending_does_not() -> None:
    running = make_pod("old", node="a1", requests={"cpu": "3"})
    pending = make_pod("waiting", requests={"cpu": "1"})

    answer = asked(make_pod("web", requests={"cpu": "1"}), nodes=zoned("a1"), running=(running, pending))

    assert answer.count == 1


def test_names_that_are_taken_are_left_out() -> None:
    taken = make_pod("web-0", node="a1", requests={"cpu": "1"})

    answer = asked(make_pod("web", requests={"cpu": "1"}), nodes=zoned("a1"), running=(taken,))

    assert answer.count == 3
    assert answer.cluster.find_pod("default/web-3") is not None


def test_the_cluster_stays_as_it_is() -> None:
    cluster = Cluster.from_objects(zoned("a1"))

    assert capacity(cluster, make_pod("web", requests={"cpu": "1"})).count == 4
    assert list(cluster.placed()) == []


def test_a_pod_that_runs_can_be_the_template() -> None:
    running = make_pod("web", node="a1", requests={"cpu": "1"})

    assert asked(running, nodes=zoned("a1", "b1"), running=(running,)).fits[0].nodes == {"a1": 3, "b1": 4}


def test_a_gated_pod_does_not_fit() -> None:
    answer = asked(make_pod("web", scheduling_gates=[{"name": "wait"}]), nodes=zoned("a1"))

    assert answer.count == 0
    assert "gate" in answer.message


BAD = {
    "no pod": ((), {}, "no pod to find the capacity for; give at least one"),
    "a mix of another length": ((make_pod(),), {"mix": [1, 2]}, "a mix of 2 numbers for 1 pod;"),
    "a mix with nothing of one": ((make_pod(),), {"mix": [0]}, "each number must be at least 1"),
    "an unknown node to exclude": ((make_pod(),), {"exclude_nodes": ["x"]}, "node 'x' is not in the cluster"),
}


@pytest.mark.parametrize(("templates", "options", "problem"), BAD.values(), ids=BAD)
def test_bad_questions(templates: tuple[Pod, ...], options: dict[str, Any], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        asked(*templates, nodes=zoned("a1"), **options)


# -- against one-by-one simulation ---------------------------------------------------------------------------------


def one_by_one(cluster: Cluster, template: Pod, config: Any, tie_break: str, most: int) -> dict[str, int]:
    """Pods that share nothing with each other, each decided in full, until one does not fit."""
    scheduler = Scheduler(cluster.fork(), config, tie_break=tie_break)
    nodes: dict[str, int] = {}
    document = msgspec.to_builtins(template)
    for number in range(most):
        document["metadata"]["name"] = f"{template.name}-{number}"
        node = scheduler.place(msgspec.convert(document, Pod)).node
        if node is None:
            break
        nodes[node] = nodes.get(node, 0) + 1
    return nodes


FAMILIES = ("resources", "spread", "interpod", "mixed", "ports", "owners")
MOST = 40


@pytest.mark.parametrize("tie_break", ["first", "random"])
@pytest.mark.parametrize("family", FAMILIES)
def test_agrees_with_one_by_one(family: str, tie_break: str) -> None:
    checked = 0
    for record in list(read_records(str(GOLDEN / f"{family}.jsonl.xz")))[:8]:
        scheduler, pods = prepare(record.case)
        template = pods[0]
        if scheduler.decide(template).error:
            continue
        expected = one_by_one(scheduler.cluster, template, scheduler.config, tie_break, MOST)
        answer = capacity(scheduler.cluster, template, scheduler.config, tie_break=tie_break, limit=MOST)
        assert dict(answer.fits[0].nodes) == expected, record.case.name
        checked += 1
    assert checked >= 5


def test_a_thousand_nodes_take_40000_small_pods_in_no_time() -> None:
    cluster = Cluster.from_objects(make_node(f"node-{number:04}", cpu="4", memory="32Gi") for number in range(1000))
    template = make_pod("small", requests={"cpu": "100m", "memory": "500Mi"})
    start = time.process_time()

    answer = capacity(cluster, template)

    assert answer.count == 40_000
    assert set(answer.fits[0].nodes.values()) == {40}
    # It takes one second where nothing else runs; busy neighbours may well slow a core down to a third.
    assert time.process_time() - start < 4


def test_an_unknown_scheduler_is_bad_input() -> None:
    with pytest.raises(PodiumError, match="no profile for scheduler name 'other'"):
        asked(make_pod(scheduler_name="other"), nodes=zoned("a1"))
