"""Plugins that have both forms of a formula return the same from the form for one node and the form for arrays."""

from __future__ import annotations

import pytest
from hypothesis import given, settings

from pod_kinds import POD_KINDS, pod_of
from podium.cluster import Cluster
from podium.config.plugin_args import NodeResourcesFitArgs, ResourceSpec, ScoringStrategy, UtilizationShapePoint
from podium.engine import Scheduler
from podium.framework import FilterPlugin, Plugin, ScorePlugin
from podium.plugins import IN_TREE
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.rules import NEWEST_RULES
from podium.testing._plugin_run import PluginRun
from world import History, ScheduleNext, World, histories

PODS = [pod_of(kind, f"asked-{kind}") for kind in POD_KINDS]
FORMS = {FilterPlugin: ("filter", "filter_node"), ScorePlugin: ("score", "score_node")}


def has_both_forms(plugin: type[Plugin]) -> bool:
    return any(
        issubclass(plugin, point) and all(getattr(plugin, form) is not getattr(point, form) for form in forms)
        for point, forms in FORMS.items()
    )


IN_BOTH_FORMS = [plugin for plugin in IN_TREE.values() if has_both_forms(plugin)]
RESOURCES = (ResourceSpec("cpu", 1), ResourceSpec("memory", 2), ResourceSpec("example.com/gpu", 3))
STRATEGIES = [
    ScoringStrategy(type="MostAllocated", resources=RESOURCES),
    ScoringStrategy(
        type="RequestedToCapacityRatio",
        resources=RESOURCES,
        shape=(UtilizationShapePoint(10, 3), UtilizationShapePoint(60, 10), UtilizationShapePoint(90, 0)),
    ),
]
PLUGINS = [
    *(plugin.of_release(NEWEST_RULES) for plugin in IN_BOTH_FORMS),
    *(
        NodeResourcesFit.of_release(NEWEST_RULES, NodeResourcesFitArgs(scoring_strategy=strategy))
        for strategy in STRATEGIES
    ),
]


def check(plugin: Plugin, cluster: Cluster) -> None:
    for pod in PODS:
        arrays = PluginRun(plugin, pod, cluster).results()
        one_by_one = PluginRun(plugin, pod, cluster, one_at_a_time=True).results()
        assert arrays.difference(one_by_one, cluster.nodes.names) == ""


def test_these_plugins_have_both_forms() -> None:
    assert [plugin.name for plugin in IN_BOTH_FORMS] == [
        "InterPodAffinity",
        "NodeResourcesBalancedAllocation",
        "NodeResourcesFit",
        "PodTopologySpread",
    ]


@pytest.mark.parametrize("plugin", PLUGINS, ids=lambda plugin: plugin.name)
@settings(max_examples=settings().max_examples // 10)
@given(history=histories)
def test_both_forms_agree_on_any_cluster(plugin: Plugin, history: History) -> None:
    world = World(history.shapes, history.alike)
    scheduler = Scheduler(world.cluster)
    for event in history.events:
        if not isinstance(event, ScheduleNext):
            world.apply(event, scheduler)
    check(plugin, world.rebuilt())
