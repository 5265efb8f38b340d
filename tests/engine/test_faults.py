"""A plugin that breaks is named, in the decision and in the exception."""

from __future__ import annotations

import numpy as np
import pytest

from builders import make_node, make_pod
from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.engine import Scheduler
from podium.errors import PluginError
from podium.framework import CycleState, FilterPlugin, Registry, ScorePlugin, Status, Verdict
from podium.objects import Pod
from podium.plugins import IN_TREE


class BrokenFilter(FilterPlugin):
    name = "BrokenFilter"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        raise ZeroDivisionError("no share left")


class BrokenScore(ScorePlugin):
    name = "BrokenScore"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return {"known": 1}[node.name]


class SaysNothing(FilterPlugin):
    name = "SaysNothing"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:  # type: ignore[empty-body]
        pass


class KeptNothing(SaysNothing):
    name = "KeptNothing"
    reads = Aspect.RESOURCES


class Fraction(ScorePlugin):
    name = "Fraction"

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 3.7  # type: ignore[return-value]


class SmallNumbers(ScorePlugin):
    name = "SmallNumbers"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.arange(len(nodes), dtype=np.int32)


class KeptSmallNumbers(SmallNumbers):
    name = "KeptSmallNumbers"
    reads = Aspect.LABELS


class StateSmallNumbers(SmallNumbers):
    name = "StateSmallNumbers"
    reads = Aspect.RESOURCES


class ShortVerdict(FilterPlugin):
    name = "ShortVerdict"

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.reject(nodes.unschedulable[1:], "node(s) were cordoned")


class KeptShortVerdict(ShortVerdict):
    name = "KeptShortVerdict"
    reads = Aspect.TAINTS


NUMBERS = "int64 array, one number for each node"


@pytest.mark.parametrize(
    ("plugin", "point", "message"),
    [
        (BrokenFilter, "filter", "plugin 'BrokenFilter' failed: ZeroDivisionError: no share left"),
        (BrokenScore, "score", "plugin 'BrokenScore' failed: KeyError: 'n1'"),
        (SaysNothing, "filter", "plugin 'SaysNothing' returns None from filter_node: return a Status"),
        (KeptNothing, "filter", "plugin 'KeptNothing' returns None from filter_node: return a Status"),
        (Fraction, "score", "plugin 'Fraction' returns 3.7 from score_node: return an int"),
        (SmallNumbers, "score", f"plugin 'SmallNumbers' returns int32[2] from score: return an {NUMBERS}"),
        (KeptSmallNumbers, "score", f"plugin 'KeptSmallNumbers' returns int32[2] from score: return an {NUMBERS}"),
        (StateSmallNumbers, "score", f"plugin 'StateSmallNumbers' returns int32[2] from score: return an {NUMBERS}"),
        (ShortVerdict, "filter", f"plugin 'ShortVerdict' returns bool[1] from filter: return an {NUMBERS}"),
        (KeptShortVerdict, "filter", f"plugin 'KeptShortVerdict' returns bool[1] from filter: return an {NUMBERS}"),
    ],
)
def test_a_broken_plugin_is_named(plugin: type[FilterPlugin | ScorePlugin], point: str, message: str) -> None:
    profile = {"schedulerName": "default-scheduler", "plugins": {point: {"enabled": [{"name": plugin.name}]}}}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
    }
    cluster = Cluster.from_objects([make_node("n1"), make_node("n2")])
    scheduler = Scheduler(cluster, config, registry=Registry([*IN_TREE.values(), plugin]))
    for _ in range(2):
        assert scheduler.decide(make_pod("p")).error == message
    with pytest.raises(PluginError) as raised:
        scheduler.schedule(make_pod("p"))
    assert str(raised.value) == message
