"""The in-tree plugins of kube-scheduler, under their names."""

from podium.framework import Registry
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.inter_pod_affinity import InterPodAffinity
from podium.plugins.node_affinity import NodeAffinity
from podium.plugins.node_properties import (
    ImageLocality,
    NodeDeclaredFeatures,
    NodeName,
    NodePorts,
    NodeUnschedulable,
    TaintToleration,
)
from podium.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.plugins.pod_topology_spread import PodTopologySpread
from podium.plugins.queue_and_bind import (
    DefaultBinder,
    DefaultPreemption,
    DeferredPodScheduling,
    GangScheduling,
    PodGroupPodsCount,
    PrioritySort,
    SchedulingGates,
    TopologyPlacementGenerator,
)
from podium.plugins.storage.node_volume_limits import (
    AzureDiskLimits,
    CinderLimits,
    EBSLimits,
    GCEPDLimits,
    NodeVolumeLimits,
)
from podium.plugins.storage.volume_binding import VolumeBinding
from podium.plugins.storage.volume_filters import VolumeRestrictions, VolumeZone

IN_TREE = Registry(
    (
        AzureDiskLimits,
        CinderLimits,
        DefaultBinder,
        DefaultPreemption,
        DeferredPodScheduling,
        DynamicResources,
        EBSLimits,
        GCEPDLimits,
        GangScheduling,
        ImageLocality,
        InterPodAffinity,
        NodeAffinity,
        NodeDeclaredFeatures,
        NodeName,
        NodePorts,
        NodeResourcesBalancedAllocation,
        NodeResourcesFit,
        NodeUnschedulable,
        NodeVolumeLimits,
        PodGroupPodsCount,
        PodTopologySpread,
        PrioritySort,
        SchedulingGates,
        TaintToleration,
        TopologyPlacementGenerator,
        VolumeBinding,
        VolumeRestrictions,
        VolumeZone,
    )
)
"""Every plugin that Podium ships; a profile can name those that its release has."""

__all__ = ["IN_TREE"]
