"""The plugins of v1.18, under their names: mostly predicates and priorities of before, two of them in one plugin."""

from __future__ import annotations

from podium.framework import Plugin, Registry
from podium.legacy.general_predicates import HostName, MatchNodeSelector, PodFitsHostPorts, PodFitsResources
from podium.legacy.inter_pod_affinity import LegacyInterPodAffinity
from podium.legacy.node_predicates import CheckNodeLabelPresence, CheckNodeUnschedulable, PodToleratesNodeTaints
from podium.legacy.node_priorities import (
    EqualPriority,
    ImageLocalityPriority,
    NodeAffinityPriority,
    NodeLabelPriority,
    NodePreferAvoidPodsPriority,
    TaintTolerationPriority,
)
from podium.legacy.pod_topology_spread import LegacyPodTopologySpread
from podium.legacy.resource_priorities import (
    BalancedResourceAllocation,
    LeastRequestedPriority,
    MostRequestedPriority,
    RequestedToCapacityRatioPriority,
    ResourceLimitsPriority,
)
from podium.legacy.rules import V1_18, of_release
from podium.legacy.service_affinity import ServiceAffinity
from podium.legacy.spread_priorities import DefaultPodTopologySpread
from podium.legacy.volume_binding import CheckVolumeBinding
from podium.legacy.volume_limits import (
    MaxAzureDiskVolumeCount,
    MaxCinderVolumeCount,
    MaxCSIVolumeCount,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
)
from podium.legacy.volume_predicates import NoDiskConflict, NoVolumeZoneConflict, PodPassesBasicChecks
from podium.plugins.default_binder import DefaultBinder
from podium.plugins.queue_sort import PrioritySort


class NodeAffinity(MatchNodeSelector, NodeAffinityPriority):
    """Reject nodes that the pod's selector or required affinity excludes; prefer those its preferences like."""


class NodeLabel(CheckNodeLabelPresence, NodeLabelPriority):
    """Reject, and like, nodes for labels they have or lack."""


class TaintToleration(PodToleratesNodeTaints, TaintTolerationPriority):
    """Reject nodes with a taint the pod does not tolerate; prefer those with fewer PreferNoSchedule ones."""


_NAMES: dict[str, type[Plugin]] = {
    "AzureDiskLimits": MaxAzureDiskVolumeCount,
    "CinderLimits": MaxCinderVolumeCount,
    "DefaultPodTopologySpread": DefaultPodTopologySpread,
    "EBSLimits": MaxEBSVolumeCount,
    "EqualPriority": EqualPriority,
    "GCEPDLimits": MaxGCEPDVolumeCount,
    "ImageLocality": ImageLocalityPriority,
    "InterPodAffinity": LegacyInterPodAffinity,
    "NodeAffinity": NodeAffinity,
    "NodeLabel": NodeLabel,
    "NodeName": HostName,
    "NodePorts": PodFitsHostPorts,
    "NodePreferAvoidPods": NodePreferAvoidPodsPriority,
    "NodeResourceLimits": ResourceLimitsPriority,
    "NodeResourcesBalancedAllocation": BalancedResourceAllocation,
    "NodeResourcesFit": PodFitsResources,
    "NodeResourcesLeastAllocated": LeastRequestedPriority,
    "NodeResourcesMostAllocated": MostRequestedPriority,
    "NodeUnschedulable": CheckNodeUnschedulable,
    "NodeVolumeLimits": MaxCSIVolumeCount,
    "PodTopologySpread": LegacyPodTopologySpread,
    "RequestedToCapacityRatio": RequestedToCapacityRatioPriority,
    "ServiceAffinity": ServiceAffinity,
    "TaintToleration": TaintToleration,
    "VolumeBinding": CheckVolumeBinding,
    "VolumeRestrictions": NoDiskConflict,
    "VolumeZone": NoVolumeZoneConflict,
}

_OTHERS: tuple[type[Plugin], ...] = (DefaultBinder, PodPassesBasicChecks, PrioritySort)

PLUGINS = Registry((*(of_release(plugin, V1_18, name) for name, plugin in _NAMES.items()), *_OTHERS))
"""Every plugin of v1.18 that decides anything."""

POINTS: dict[str, frozenset[str]] = {
    **{
        name: frozenset(("preFilter", "filter"))
        for name in ("NodeResourcesFit", "NodePorts", "InterPodAffinity", "PodTopologySpread", "ServiceAffinity")
    },
    **{
        name: frozenset(("filter",))
        for name in (
            *("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits", "NodeVolumeLimits", "NodeAffinity"),
            *("NodeLabel", "NodeName", "NodeUnschedulable", "TaintToleration", "VolumeBinding"),
            *("VolumeRestrictions", "VolumeZone"),
        )
    },
    "PrioritySort": frozenset(("queueSort",)),
    "DefaultBinder": frozenset(("bind",)),
}
"""The extension points the release's plugins serve, apart from scoring."""

PRE_SCORED = (
    *("DefaultPodTopologySpread", "InterPodAffinity", "NodeResourceLimits", "PodTopologySpread", "TaintToleration"),
)
SCORED = (
    *("DefaultPodTopologySpread", "ImageLocality", "InterPodAffinity", "NodeAffinity", "NodeLabel"),
    *("NodePreferAvoidPods", "NodeResourceLimits", "NodeResourcesBalancedAllocation", "NodeResourcesLeastAllocated"),
    *("NodeResourcesMostAllocated", "PodTopologySpread", "RequestedToCapacityRatio", "ServiceAffinity"),
    "TaintToleration",
)
