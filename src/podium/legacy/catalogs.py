"""The predicates and priorities of v1.8 and v1.14, by name, and which of them run by default."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from podium.framework import Plugin
from podium.legacy.algorithms import Catalog
from podium.legacy.general_predicates import (
    GeneralPredicates,
    HostName,
    MatchNodeSelector,
    PodFitsHostPorts,
    PodFitsResources,
)
from podium.legacy.inter_pod_affinity import InterPodAffinityPriority, MatchInterPodAffinity
from podium.legacy.node_predicates import (
    CheckNodeCondition,
    CheckNodeDiskPressure,
    CheckNodeMemoryPressure,
    CheckNodePIDPressure,
    CheckNodeUnschedulable,
    PodToleratesNodeTaints,
)
from podium.legacy.node_priorities import (
    EqualPriority,
    ImageLocalityPriority,
    NodeAffinityPriority,
    NodePreferAvoidPodsPriority,
    TaintTolerationPriority,
)
from podium.legacy.resource_priorities import (
    BalancedResourceAllocation,
    LeastRequestedPriority,
    MostRequestedPriority,
    RequestedToCapacityRatioPriority,
    ResourceLimitsPriority,
)
from podium.legacy.rules import V1_8, V1_14, Rules, of_release
from podium.legacy.spread_priorities import SelectorSpreadPriority, ServiceSpreadingPriority
from podium.legacy.volume_binding import CheckVolumeBinding
from podium.legacy.volume_limits import (
    MaxAzureDiskVolumeCount,
    MaxCinderVolumeCount,
    MaxCSIVolumeCount,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
)
from podium.legacy.volume_predicates import NoDiskConflict, NoVolumeNodeConflict, NoVolumeZoneConflict

PREDICATE_ORDER = (
    *("CheckNodeCondition", "CheckNodeUnschedulable", "GeneralPredicates", "HostName", "PodFitsHostPorts"),
    *("MatchNodeSelector", "PodFitsResources", "NoDiskConflict", "PodToleratesNodeTaints"),
    *("PodToleratesNodeNoExecuteTaints", "CheckNodeLabelPresence", "CheckServiceAffinity", "MaxEBSVolumeCount"),
    *("MaxGCEPDVolumeCount", "MaxCSIVolumeCountPred", "MaxAzureDiskVolumeCount", "MaxCinderVolumeCount"),
    *("CheckVolumeBinding", "NoVolumeZoneConflict", "CheckNodeMemoryPressure", "CheckNodePIDPressure"),
    *("CheckNodeDiskPressure", "MatchInterPodAffinity"),
)

_PREDICATES: tuple[type[Plugin], ...] = (
    *(GeneralPredicates, HostName, MatchNodeSelector, PodFitsHostPorts, PodFitsResources),
    *(MatchInterPodAffinity, NoDiskConflict, NoVolumeZoneConflict, PodToleratesNodeTaints),
    *(MaxAzureDiskVolumeCount, MaxEBSVolumeCount, MaxGCEPDVolumeCount),
    *(CheckNodeCondition, CheckNodeDiskPressure, CheckNodeMemoryPressure),
)
_PRIORITIES: tuple[type[Plugin], ...] = (
    *(BalancedResourceAllocation, EqualPriority, ImageLocalityPriority, InterPodAffinityPriority),
    *(LeastRequestedPriority, MostRequestedPriority, NodeAffinityPriority, NodePreferAvoidPodsPriority),
    *(SelectorSpreadPriority, ServiceSpreadingPriority, TaintTolerationPriority),
)
_DEFAULT_PREDICATES = frozenset(
    (
        *("NoVolumeZoneConflict", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount", "MaxAzureDiskVolumeCount"),
        *("MatchInterPodAffinity", "NoDiskConflict", "GeneralPredicates", "PodToleratesNodeTaints"),
    )
)
_CONDITIONS = frozenset(("CheckNodeCondition", "CheckNodeMemoryPressure", "CheckNodeDiskPressure"))
_DEFAULT_PRIORITIES = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
}


def _named(plugins: Iterable[type[Plugin]], rules: Rules) -> dict[str, type[Plugin]]:
    found = {plugin.name: of_release(plugin, rules) for plugin in plugins}
    if PodFitsHostPorts.name in found:
        found["PodFitsPorts"] = of_release(PodFitsHostPorts, rules, "PodFitsPorts")
    return found


def v1_8_catalog(gates: Mapping[str, bool]) -> Catalog:
    """v1.8: feature gates come too late to change what is registered."""
    return Catalog(
        rules=V1_8,
        predicates=_named((*_PREDICATES, NoVolumeNodeConflict), V1_8),
        priorities=_named(_PRIORITIES, V1_8),
        mandatory=frozenset(("CheckNodeCondition",)),
        default_predicates=_DEFAULT_PREDICATES | _CONDITIONS | {"NoVolumeNodeConflict"},
        default_priorities=_DEFAULT_PRIORITIES,
        lists_default_to_provider=False,
        checks_claims_first=False,
        every_extender_has_weight=True,
    )


def v1_14_catalog(gates: Mapping[str, bool]) -> Catalog:
    """v1.14: with TaintNodesByCondition, which is on by default, taints speak for the conditions of nodes."""
    added = (MaxCSIVolumeCount, MaxCinderVolumeCount, CheckVolumeBinding, CheckNodePIDPressure, CheckNodeUnschedulable)
    predicates = _named((*_PREDICATES, *added), V1_14)
    priorities = _named((*_PRIORITIES, RequestedToCapacityRatioPriority), V1_14)
    weights = {**_DEFAULT_PRIORITIES, "ImageLocalityPriority": 1}
    defaults = _DEFAULT_PREDICATES | {"MaxCSIVolumeCountPred", "CheckVolumeBinding"}
    conditions = _CONDITIONS | {"CheckNodePIDPressure"}
    if gates.get("TaintNodesByCondition", True):
        mandatory = frozenset(("PodToleratesNodeTaints", "CheckNodeUnschedulable"))
        predicates = {name: plugin for name, plugin in predicates.items() if name not in conditions}
        defaults |= mandatory
    else:
        mandatory = frozenset(("CheckNodeCondition",))
        del predicates["CheckNodeUnschedulable"]
        defaults |= conditions
    if gates.get("ResourceLimitsPriorityFunction", False):
        priorities[ResourceLimitsPriority.name] = of_release(ResourceLimitsPriority, V1_14)
        weights[ResourceLimitsPriority.name] = 1
    return Catalog(
        rules=V1_14,
        predicates=predicates,
        priorities=priorities,
        mandatory=mandatory,
        default_predicates=defaults,
        default_priorities=weights,
        order=PREDICATE_ORDER,
    )
