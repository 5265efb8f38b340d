"""The plugins that run unless a profile says otherwise, by version of the configuration."""

from __future__ import annotations

from podium.config.types import PluginRef

GROUP = "kubescheduler.config.k8s.io"
V1, V1BETA3, V1BETA2 = f"{GROUP}/v1", f"{GROUP}/v1beta3", f"{GROUP}/v1beta2"

MULTI_POINT = "multiPoint"

_MULTI_POINT_PLUGINS = (
    PluginRef("SchedulingGates"),
    PluginRef("PrioritySort"),
    PluginRef("NodeUnschedulable"),
    PluginRef("NodeName"),
    PluginRef("TaintToleration", 3),
    PluginRef("NodeAffinity", 2),
    PluginRef("NodePorts"),
    PluginRef("NodeResourcesFit", 1),
    PluginRef("VolumeRestrictions"),
    PluginRef("NodeVolumeLimits"),
    PluginRef("VolumeBinding"),
    PluginRef("VolumeZone"),
    PluginRef("PodTopologySpread", 2),
    PluginRef("InterPodAffinity", 2),
    # Ahead of DefaultPreemption: giving back an idle claim is better than evicting a pod.
    PluginRef("DynamicResources", 2),
    PluginRef("DefaultPreemption"),
    PluginRef("NodeResourcesBalancedAllocation", 1),
    PluginRef("ImageLocality", 1),
    PluginRef("DefaultBinder"),
    PluginRef("NodeDeclaredFeatures"),
)


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

DEFAULT_PLUGINS: dict[str, dict[str, tuple[PluginRef, ...]]] = {
    V1: {MULTI_POINT: _MULTI_POINT_PLUGINS},
    V1BETA3: {MULTI_POINT: _MULTI_POINT_PLUGINS},
    V1BETA2: _V1BETA2_PLUGINS,
}
"""apiVersion -> extension point (or `multiPoint`) -> the plugins enabled there."""
