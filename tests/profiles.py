"""Profiles that between them use every argument and every way of arranging plugins."""

from __future__ import annotations

from builders import ZONE, Fields, expression, make_config, node_affinity
from podium.framework import Registry
from podium.plugins import IN_TREE
from user_plugins import USER_PLUGINS

DEFAULT_FILTERS = [
    "NodeName",
    "NodeUnschedulable",
    "TaintToleration",
    "NodeAffinity",
    "NodePorts",
    "NodeResourcesFit",
    "VolumeRestrictions",
    "NodeVolumeLimits",
    "VolumeBinding",
    "VolumeZone",
    "PodTopologySpread",
    "InterPodAffinity",
    "DynamicResources",
    "NodeDeclaredFeatures",
]
"""The default filters, in the order of the profile."""

_SHAPE = [{"utilization": 0, "score": 10}, {"utilization": 40, "score": 3}, {"utilization": 100, "score": 8}]


def _args(**plugins: Fields) -> list[Fields]:
    return [{"name": name, "args": args} for name, args in plugins.items()]


def _strategy(kind: str, resources: Fields, **fields: object) -> Fields:
    listed = [{"name": name, "weight": weight} for name, weight in resources.items()]
    return {"type": kind, "resources": listed, **fields}


PROFILES: tuple[Fields, ...] = (
    {"schedulerName": "default-scheduler"},
    {
        "schedulerName": "packing",
        "plugins": {
            "score": {
                "disabled": [{"name": "NodeResourcesBalancedAllocation"}],
                "enabled": [{"name": "NodeResourcesFit", "weight": 5}, {"name": "ImageLocality", "weight": 7}],
            },
            "preScore": {"disabled": [{"name": "NodeResourcesBalancedAllocation"}]},
        },
        "pluginConfig": _args(
            NodeResourcesFit={
                "scoringStrategy": _strategy("MostAllocated", {"cpu": 3, "memory": 1, "example.com/gpu": 2}),
                "ignoredResources": ["vendor.io/licence"],
            },
            InterPodAffinity={"hardPodAffinityWeight": 40, "ignorePreferredTermsOfExistingPods": True},
            NodeAffinity={
                "addedAffinity": node_affinity(
                    required=[{"matchExpressions": [expression("cores", "Exists")]}],
                    preferred=[(5, {"matchExpressions": [expression("disk", "In", "ssd")]})],
                )["nodeAffinity"]
            },
        ),
    },
    {
        "schedulerName": "shaped",
        "plugins": {
            "multiPoint": {
                "disabled": [{"name": "TaintToleration"}, {"name": "NodePorts"}],
                "enabled": [{"name": "TaintToleration", "weight": 2}],
            },
            "filter": {
                "disabled": [{"name": "*"}],
                "enabled": [
                    {"name": name}
                    for name in ("InterPodAffinity", "PodTopologySpread", "NodeResourcesFit", "NodeAffinity")
                ],
            },
        },
        "pluginConfig": _args(
            NodeResourcesFit={
                "scoringStrategy": _strategy(
                    "RequestedToCapacityRatio",
                    {"memory": 2, "ephemeral-storage": 1, "example.com/gpu": 3},
                    requestedToCapacityRatio={"shape": _SHAPE},
                ),
                "ignoredResourceGroups": ["vendor.io"],
            },
            NodeResourcesBalancedAllocation={
                "resources": [{"name": name, "weight": 1} for name in ("cpu", "memory", "example.com/gpu")]
            },
            PodTopologySpread={
                "defaultingType": "List",
                "defaultConstraints": [
                    {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"},
                    {"topologyKey": "rack", "maxSkew": 2, "whenUnsatisfiable": "ScheduleAnyway"},
                ],
            },
        ),
    },
    {
        "schedulerName": "extended",
        "plugins": {
            "multiPoint": {"enabled": [{"name": plugin.name, "weight": 2} for plugin in USER_PLUGINS]},
        },
    },
    {
        "schedulerName": "minimal",
        "plugins": {
            "multiPoint": {
                "disabled": [{"name": "*"}],
                "enabled": [{"name": name} for name in ("PrioritySort", "NodeResourcesFit", "DefaultBinder")],
            }
        },
    },
    {
        "schedulerName": "sparse",
        "plugins": {
            "preScore": {"disabled": [{"name": "*"}], "enabled": [{"name": "InterPodAffinity"}]},
            "score": {"disabled": [{"name": "*"}], "enabled": [{"name": "InterPodAffinity", "weight": 1}]},
        },
    },
)
SCHEDULERS = tuple(str(profile["schedulerName"]) for profile in PROFILES)
REGISTRY = Registry((*IN_TREE.values(), *USER_PLUGINS))
CONFIG = make_config(*PROFILES)
