"""The in-tree plugins of kube-scheduler, under their names."""

from podium.framework import Registry
from podium.plugins.default_binder import DefaultBinder
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.deferred_pod_scheduling import DeferredPodScheduling
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.gang_scheduling import GangScheduling
from podium.plugins.image_locality import ImageLocality
from podium.plugins.inter_pod_affinity import InterPodAffinity
from podium.plugins.node_affinity import NodeAffinity
from podium.plugins.node_declared_features import NodeDeclaredFeatures
from podium.plugins.node_name import NodeName
from podium.plugins.node_ports import NodePorts
from podium.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.plugins.node_unschedulable import NodeUnschedulable
from podium.plugins.pod_group_pods_count import PodGroupPodsCount
from podium.plugins.pod_topology_spread import PodTopologySpread
from podium.plugins.priority_sort import PrioritySort
from podium.plugins.scheduling_gates import SchedulingGates
from podium.plugins.storage.in_tree_volume_limits import AzureDiskLimits, CinderLimits, EBSLimits, GCEPDLimits
from podium.plugins.storage.node_volume_limits import NodeVolumeLimits
from podium.plugins.storage.volume_binding import VolumeBinding
from podium.plugins.storage.volume_restrictions import VolumeRestrictions
from podium.plugins.storage.volume_zone import VolumeZone
from podium.plugins.taint_toleration import TaintToleration
from podium.plugins.topology_placement_generator import TopologyPlacementGenerator

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
