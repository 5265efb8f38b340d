"""Builders of configuration documents, and the in-tree plugins of v1.37 with the points they implement."""

from __future__ import annotations

import pytest

from podium.config import KubeSchedulerConfiguration, Profile, parse_config
from podium.errors import ConfigError
from podium.rules import NEWEST_RULES

_POINTS_OF = {
    "DefaultBinder": "bind",
    "DefaultPreemption": "preEnqueue postFilter podGroupPostFilter",
    "DeferredPodScheduling": "preFilter filter permit",
    "DynamicResources": "preEnqueue preFilter filter postFilter podGroupPostFilter score reserve preBind",
    "GangScheduling": "preEnqueue permit",
    "ImageLocality": "score",
    "InterPodAffinity": "preFilter filter preScore score",
    "NodeAffinity": "preFilter filter preScore score",
    "NodeDeclaredFeatures": "preFilter filter",
    "NodeName": "preFilter filter",
    "NodePorts": "preFilter filter",
    "NodeResourcesBalancedAllocation": "preScore score",
    "NodeResourcesFit": "preFilter filter preScore score placementScore",
    "NodeUnschedulable": "preFilter filter",
    "NodeVolumeLimits": "preFilter filter",
    "PodGroupPodsCount": "placementScore",
    "PodTopologySpread": "preFilter filter preScore score",
    "PrioritySort": "queueSort",
    "SchedulingGates": "preEnqueue",
    "TaintToleration": "preFilter filter preScore score",
    "TopologyPlacementGenerator": "placementGenerate",
    "VolumeBinding": "preFilter filter preScore score reserve preBind",
    "VolumeRestrictions": "preFilter filter",
    "VolumeZone": "preFilter filter",
}

IN_TREE = {name: frozenset(points.split()) for name, points in _POINTS_OF.items()}


def document(version: str = "v1", /, **fields: object) -> dict[str, object]:
    """A configuration with these top-level fields."""
    return {
        "apiVersion": f"kubescheduler.config.k8s.io/{version}",
        "kind": "KubeSchedulerConfiguration",
        **fields,
    }


def with_plugins(**points: object) -> dict[str, object]:
    """A configuration of one profile with these plugin sets."""
    return document(profiles=[{"plugins": points}])


def with_args(plugin: str, args: object) -> dict[str, object]:
    """A configuration of one profile with these arguments for a plugin."""
    return document(profiles=[{"pluginConfig": [{"name": plugin, "args": args}]}])


def on(*names: str, **weights: int) -> dict[str, object]:
    """A plugin set that enables these plugins, some with a weight."""
    plugins = [{"name": name} for name in names]
    return {"enabled": [*plugins, *({"name": name, "weight": weight} for name, weight in weights.items())]}


def off(*names: str) -> dict[str, object]:
    """A plugin set that disables these plugins."""
    return {"disabled": [{"name": name} for name in names]}


def parsed(config: object) -> KubeSchedulerConfiguration:
    return parse_config(config, IN_TREE, rules=NEWEST_RULES)


def the_profile(config: object) -> Profile:
    (profile,) = parsed(config).profiles
    return profile


def args_of(plugin: str, args: object) -> object:
    """The typed arguments a document's `args` become."""
    return the_profile(with_args(plugin, args)).args[plugin]


def names_at(profile: Profile, point: str) -> list[str]:
    return [plugin.name for plugin in profile.points[point]]


def errors_of(config: object) -> list[str]:
    """The problems of a document that is refused."""
    with pytest.raises(ConfigError) as refused:
        parsed(config)
    return refused.value.errors


def paths_of(config: object) -> list[str]:
    """The field paths of the problems of a document that is refused."""
    return [error.split(": ")[0] for error in errors_of(config)]
