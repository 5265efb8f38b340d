"""A pod that fits nowhere: every filter of the closest nodes is named, and every suggestion, made real, lets it run."""

from __future__ import annotations

from importlib.resources import files
from typing import Any

import pytest

from builders import make_node, make_pod
from podium import expand_workloads, load
from podium.answers import WhyNowhere, why_nowhere
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Object, Pod

TAINTED: dict[str, Any] = {"taints": ["team=a:NoSchedule"]}


def asked(objects: list[Object], pod: Pod) -> WhyNowhere:
    return why_nowhere(Cluster.from_objects([*objects, pod]), pod)


def test_a_pod_that_fits_needs_nothing() -> None:
    answer = asked([make_node("n1")], make_pod("web"))

    assert (answer.runs, answer.decision.node) == (True, "n1")
    assert (answer.closest, answer.suggestions) == ((), ())


def test_the_closest_node_is_rejected_by_the_fewest_filters() -> None:
    objects: list[Object] = [
        make_node("small", cpu="1", **TAINTED),
        make_node("tainted", cpu="4", **TAINTED),
        make_node("tiny", cpu="1", labels={"disk": "ssd"}, **TAINTED),
    ]
    answer = asked(objects, make_pod("web", requests={"cpu": "2"}, node_selector={"disk": "ssd"}))

    found = {each.node: [status.plugin for status in each.blockers] for each in answer.closest}
    assert found == {
        "tainted": ["TaintToleration", "NodeAffinity"],
        "tiny": ["TaintToleration", "NodeResourcesFit"],
        "small": ["TaintToleration", "NodeAffinity", "NodeResourcesFit"],
    }
    assert list(found)[-1] == "small"


def test_requests_are_lowered_by_the_least() -> None:
    answer = asked([make_node(f"n{cpu}", cpu=str(cpu)) for cpu in (1, 2, 3)], make_pod(requests={"cpu": "4"}))

    assert [each.text for each in answer.suggestions] == ["lower the pod's cpu request from 4 to 3"]
    assert answer.suggestions[0].decision.node == "n3"


def test_a_gated_pod_needs_its_gate_removed() -> None:
    answer = asked([make_node("n1")], make_pod("web", scheduling_gates=[{"name": "quota"}]))

    assert [each.text for each in answer.suggestions] == ["remove the scheduling gate quota from the pod"]


def example_cluster(name: str) -> Cluster:
    return Cluster.from_objects(expand_workloads(load(str(files("podium.example") / name))))


def pending_of(example: str) -> list[tuple[str, str]]:
    return [(example, key) for key in example_cluster(example).pending]


@pytest.mark.parametrize(("example", "key"), [*pending_of("cluster.yaml"), *pending_of("gpus.yaml")])
def test_every_suggestion_lets_the_pod_run(example: str, key: str) -> None:
    cluster = example_cluster(example)
    pod = cluster.pending[key]
    answer = why_nowhere(cluster, pod)

    assert answer.runs or answer.suggestions
    for each in answer.suggestions:
        changed, its, config = each.apply(cluster, pod)
        assert Scheduler(changed, config, tie_break="first").decide(its).node == each.decision.node
