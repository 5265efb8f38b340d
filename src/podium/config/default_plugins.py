"""The plugins that run unless a profile says otherwise, by version of the configuration and by release."""

from __future__ import annotations

from podium.config.types import PluginRef
from podium.rules import Rules

GROUP = "kubescheduler.config.k8s.io"
V1, V1BETA3, V1BETA2 = f"{GROUP}/v1", f"{GROUP}/v1beta3", f"{GROUP}/v1beta2"

MULTI_POINT = "multiPoint"

_ALL_LIMITS = "EBSLimits GCEPDLimits NodeVolumeLimits AzureDiskLimits"

def _refs(names: str) -> tuple[PluginRef, ...]:
    return tuple(PluginRef(name) for name in names.split())


_V1BETA2_PLUGINS = {
    "preEnqueue": _refs("SchedulingGates"),
    "queueSort": _refs("PrioritySort"),
    "preFilter": _refs(
        "NodeResourcesFit NodePorts VolumeRestrictions PodTopologySpread InterPodAffinity VolumeBinding VolumeZone "
        "NodeAffinity"
    ),
    "filter": _refs(
        "NodeUnschedulable NodeName TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions "
        "NodeVolumeLimits VolumeBinding VolumeZone PodTopologySpread InterPodAffinity"
    ),
    "postFilter": _refs("DefaultPreemption"),
    "preScore": _refs(
        "InterPodAffinity PodTopologySpread TaintToleration NodeAffinity NodeResourcesFit "
        "NodeResourcesBalancedAllocation"
    ),
    "score": (
        PluginRef("NodeResourcesBalancedAllocation", 1),
        PluginRef("ImageLocality", 1),
        PluginRef("InterPodAffinity", 1),
        PluginRef("NodeResourcesFit", 1),
        PluginRef("NodeAffinity", 1),
        PluginRef("PodTopologySpread", 2),
        PluginRef("TaintToleration", 1),
    ),
    "reserve": _refs("VolumeBinding"),
    "preBind": _refs("VolumeBinding"),
    "bind": _refs("DefaultBinder"),
}



def _multi_point_plugins(rules: Rules) -> tuple[PluginRef, ...]:
    gates = _refs("SchedulingGates")
    return (
        *(gates if rules.scheduling_gates_come_first else ()),
        PluginRef("PrioritySort"),
        *_refs("NodeName NodeUnschedulable" if rules.node_name_narrows else "NodeUnschedulable NodeName"),
        PluginRef("TaintToleration", 3),
        PluginRef("NodeAffinity", 2),
        PluginRef("NodePorts"),
        PluginRef("NodeResourcesFit", 1),
        PluginRef("VolumeRestrictions"),
        *_refs("NodeVolumeLimits" if rules.refuses_in_tree_limits else _ALL_LIMITS),
        PluginRef("VolumeBinding"),
        PluginRef("VolumeZone"),
        PluginRef("PodTopologySpread", 2),
        PluginRef("InterPodAffinity", 2),
        # Ahead of DefaultPreemption: giving back an idle claim is better than evicting a pod.
        *([PluginRef("DynamicResources", 2)] if rules.dynamic_resources_by_default else ()),
        PluginRef("DefaultPreemption"),
        PluginRef("NodeResourcesBalancedAllocation", 1),
        PluginRef("ImageLocality", 1),
        PluginRef("DefaultBinder"),
        *(_refs("NodeDeclaredFeatures") if rules.node_declared_features else ()),
        *(() if rules.scheduling_gates_come_first else gates),
    )


API_VERSIONS = (V1, V1BETA3, V1BETA2)
"""The versions of the configuration that are read."""


def default_plugins(api_version: str, rules: Rules) -> dict[str, tuple[PluginRef, ...]]:
    """Extension point (or `multiPoint`) -> the plugins a release enables there."""
    return _V1BETA2_PLUGINS if api_version == V1BETA2 else {MULTI_POINT: _multi_point_plugins(rules)}
