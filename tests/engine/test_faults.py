"""A plugin that breaks is named, in the decision and in the exception."""

from __future__ import annotations

import pytest

from builders import make_node, make_pod
from podium.cluster import Cluster, NodeInfo
from podium.engine import Scheduler
from podium.errors import PluginError
from podium.framework import CycleState, FilterPlugin, Registry, ScorePlugin, Status
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


@pytest.mark.parametrize(
    ("plugin", "point", "message"),
    [
        (BrokenFilter, "filter", "plugin 'BrokenFilter' failed: ZeroDivisionError: no share left"),
        (BrokenScore, "score", "plugin 'BrokenScore' failed: KeyError: 'n1'"),
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
    assert scheduler.decide(make_pod("p")).error == message
    with pytest.raises(PluginError, match="failed") as raised:
        scheduler.schedule(make_pod("p"))
    assert str(raised.value) == message
