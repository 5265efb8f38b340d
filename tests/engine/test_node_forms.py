"""When plugins are asked about one node at a time, and when with arrays."""

from __future__ import annotations

import numpy as np
import pytest

from builders import make_config, make_node, make_pod
from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.engine import Scheduler
from podium.framework import SUCCESS, CycleState, FilterPlugin, Plugin, Registry, ScorePlugin, Status, Verdict
from podium.framework.fast_paths import ByNodeLabels
from podium.model import Pod
from podium.plugins import IN_TREE
from podium.plugins.node_resources_fit import NodeResourcesFit


class Largest(NodeResourcesFit):
    """Overrides the form with arrays only: the inherited other form says something else."""

    name = "Largest"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return nodes.allocatable("cpu") // 1000


class LargestOne(NodeResourcesFit):
    """Overrides the form for one node only; the arrays are what has been asked so far, and go on being asked."""

    name = "LargestOne"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return node.allocatable("cpu") // 1000


class Spare(ScorePlugin):
    """Takes it for granted that there is a node to look at."""

    name = "Spare"
    reads = Aspect.RESOURCES

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        used = nodes.requested("cpu")
        return np.clip(used // 100, 0, 100) if used.max() >= 0 else used


class ByRack(ByNodeLabels, FilterPlugin, ScorePlugin):
    """Has both forms and goes by a label."""

    name = "ByRack"

    def filter_labels(self, state: CycleState) -> tuple[str, ...]:
        return ("rack",)

    score_labels = filter_labels

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.unschedulable("node(s) were in r0") if node.labels.get("rack") == "r0" else SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.reject(nodes.by_label("rack", lambda rack: rack == "r0") != 0, "node(s) were in r0")

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 5 if "rack" in node.labels else 1

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return nodes.by_label("rack", lambda rack: 1 if rack is None else 5)


REGISTRY = Registry((*IN_TREE.values(), Largest, LargestOne, Spare, ByRack))


def scheduler_with(plugin: type[Plugin], *, cache: bool) -> Scheduler:
    nodes = [make_node(f"n{number}", cpu=str(4 + number % 3)) for number in range(20)]
    alone = {
        "multiPoint": {"enabled": [{"name": plugin.name}], "disabled": [{"name": "*"}]},
        "queueSort": {"enabled": [{"name": "PrioritySort"}]},
        "bind": {"enabled": [{"name": "DefaultBinder"}]},
        "filter": {"enabled": [{"name": "NodeAffinity"}]},
    }
    config = make_config({"plugins": alone})
    cluster = Cluster.from_objects(nodes)
    return Scheduler(cluster, config, registry=REGISTRY, tie_break="first", equivalence_cache=cache)


@pytest.mark.parametrize("plugin", [Largest, LargestOne], ids=lambda plugin: plugin.name)
def test_a_form_that_was_overridden_alone_is_not_mixed_with_the_other(plugin: type[Plugin]) -> None:
    pods = [make_pod(f"p{number}", requests={"cpu": "1"}) for number in range(30)]
    kept, asked = scheduler_with(plugin, cache=True), scheduler_with(plugin, cache=False)
    assert [kept.schedule(pod) for pod in pods] == [asked.schedule(pod) for pod in pods]


def test_no_plugin_is_asked_about_no_nodes() -> None:
    decision = scheduler_with(Spare, cache=True).decide(make_pod("p", node_selector={"disk": "ssd"}))
    assert not decision.error
    assert len(decision.rejected) == 20


def test_no_plugin_is_asked_about_a_node_that_is_gone() -> None:
    racks = [{} if number % 3 == 0 else {"rack": f"r{number % 2}"} for number in range(24)]
    nodes = [make_node(f"n{number:02}", labels=labels) for number, labels in enumerate(racks)]
    cluster = Cluster.from_objects(nodes)
    cluster.remove(nodes[0])
    config = make_config({"plugins": {"multiPoint": {"enabled": [{"name": "ByRack"}]}}})
    scheduler = Scheduler(cluster, config, registry=REGISTRY, tie_break="first")
    assert scheduler.decide(make_pod("p")).node == scheduler.schedule(make_pod("p")) == "n01"
