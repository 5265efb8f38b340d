"""The arguments of v1.18's plugins. That release decodes them only for plugins that run, and ignores unknown fields."""

from __future__ import annotations

from collections.abc import Callable

from podium.config.fields import Fields, Problems
from podium.config.plugin_args import CPU_AND_MEMORY, InterPodAffinityArgs, PodTopologySpreadArgs
from podium.framework import Plugin, Registry
from podium.framework.plugin import QueuedPod, QueueSortPlugin
from podium.model import TopologySpreadConstraint
from podium.model.names import qualified_name_errors
from podium.plugins.default_binder import DefaultBinder
from podium.plugins.queue_sort import PrioritySort
from podium.releases.inter_pod_affinity import LegacyInterPodAffinity
from podium.releases.node_priorities import (
    EqualPriority,
    ImageLocalityPriority,
    NodeAffinityPriority,
    NodeLabelPriority,
    NodePreferAvoidPodsPriority,
    TaintTolerationPriority,
)
from podium.releases.pod_topology_spread import LegacyPodTopologySpread
from podium.releases.policy import PolicyProblems, read_ratio, shape_problem
from podium.releases.predicates import (
    CheckNodeLabelPresence,
    CheckNodeUnschedulable,
    FitArgs,
    HostName,
    MatchNodeSelector,
    NodeLabelArgs,
    PodFitsHostPorts,
    PodFitsResources,
    PodToleratesNodeTaints,
)
from podium.releases.resource_priorities import (
    BalancedResourceAllocation,
    LeastRequestedPriority,
    MostRequestedPriority,
    RatioArgs,
    RequestedToCapacityRatioPriority,
    ResourceLimitsPriority,
)
from podium.releases.rules import V1_18, of_release
from podium.releases.service_affinity import ServiceAffinity, ServiceAffinityArgs
from podium.releases.spread_priorities import DefaultPodTopologySpread
from podium.releases.volume_binding import CheckVolumeBinding
from podium.releases.volume_limits import (
    MaxAzureDiskVolumeCount,
    MaxCinderVolumeCount,
    MaxCSIVolumeCount,
    MaxEBSVolumeCount,
    MaxGCEPDVolumeCount,
)
from podium.releases.volume_predicates import NoDiskConflict, NoVolumeZoneConflict, PodPassesBasicChecks


class FirstInFirstOut(QueueSortPlugin):
    """The pod that has waited longest first."""

    name = "FirstInFirstOut"

    def sort_key(self, queued: QueuedPod) -> float:
        return queued.timestamp


def read_args(plugin: str, document: object, problems: PolicyProblems) -> object:
    """The arguments of a plugin, or None where it takes none; reports what keeps the plugin from being made."""
    reader = _READERS.get(plugin)
    if reader is None:
        if document:
            problems.unread.append(f"the pluginConfig of {plugin}, which takes none")
        return None
    found = PolicyProblems(problems.rules, strict=False)
    with Fields(document, "", found) as fields:
        args = reader(fields, found)
    for error in found.errors:
        problems.add("", f'error initializing plugin "{plugin}": {error}')
    problems.unknown_fields += [f"{plugin}.{path}" for path in found.unknown_fields]
    return args


def _fit(fields: Fields, problems: PolicyProblems) -> FitArgs:
    return FitArgs(ignored_resources=frozenset(fields.strings("ignoredResources")))


def _inter_pod_affinity(fields: Fields, problems: PolicyProblems) -> InterPodAffinityArgs:
    weight = fields.integer("hardPodAffinityWeight", 1)
    if not 0 <= weight <= 100:
        problems.invalid("hardPodAffinityWeight", weight, "not in valid range [0-100]")
    return InterPodAffinityArgs(hard_pod_affinity_weight=weight)


def _node_label(fields: Fields, problems: PolicyProblems) -> NodeLabelArgs:
    args = NodeLabelArgs(
        present_labels=tuple(fields.strings("presentLabels")),
        absent_labels=tuple(fields.strings("absentLabels")),
        present_labels_preference=tuple(fields.strings("presentLabelsPreference")),
        absent_labels_preference=tuple(fields.strings("absentLabelsPreference")),
    )
    check_labels(args, problems)
    return args


def check_labels(args: NodeLabelArgs, problems: Problems) -> None:
    """No label can be wanted and unwanted."""
    pairs = (args.present_labels, args.absent_labels), (args.present_labels_preference, args.absent_labels_preference)
    for present, absent in pairs:
        for label in sorted(set(present) & set(absent)):
            problems.add("", f'detecting at least one label (e.g., "{label}") that exist in both label lists')


def _pod_topology_spread(fields: Fields, problems: PolicyProblems) -> PodTopologySpreadArgs:
    found: list[TopologySpreadConstraint] = []
    for index, item in enumerate(fields.children("defaultConstraints")):
        path = f"defaultConstraints[{index}]"
        with item:
            if item.take("labelSelector") is not None:
                problems.forbidden(f"{path}.labelSelector", "constraint must not define a selector")
            constraint = TopologySpreadConstraint(
                max_skew=item.integer("maxSkew"),
                topology_key=item.string("topologyKey"),
                when_unsatisfiable=item.string("whenUnsatisfiable"),
            )
        if constraint.max_skew <= 0:
            problems.invalid(f"{path}.maxSkew", constraint.max_skew, "must be greater than zero")
        for error in qualified_name_errors(constraint.topology_key):
            problems.invalid(f"{path}.topologyKey", constraint.topology_key, error)
        if constraint.when_unsatisfiable not in ("DoNotSchedule", "ScheduleAnyway"):
            supported = ("DoNotSchedule", "ScheduleAnyway")
            problems.unsupported(f"{path}.whenUnsatisfiable", constraint.when_unsatisfiable, supported)
        kind = (constraint.topology_key, constraint.when_unsatisfiable)
        if kind in [(other.topology_key, other.when_unsatisfiable) for other in found]:
            problems.duplicate(path, f"{{{kind[0]}, {kind[1]}}}")
        found.append(constraint)
    return PodTopologySpreadArgs(default_constraints=tuple(found), defaulting_type="List")


def _ratio(fields: Fields, problems: PolicyProblems) -> RatioArgs:
    given = read_ratio(fields, problems)
    problem = shape_problem(given.shape)
    if problem:
        problems.add("", problem)
    resources = {spec.name: spec for spec in given.resources}
    return RatioArgs(shape=given.shape, resources=tuple(resources.values()) or CPU_AND_MEMORY)


def _service_affinity(fields: Fields, problems: PolicyProblems) -> ServiceAffinityArgs:
    return ServiceAffinityArgs(
        affinity_labels=tuple(fields.strings("affinityLabels")),
        anti_affinity_labels_preference=tuple(fields.strings("antiAffinityLabelsPreference")),
    )


_READERS: dict[str, Callable[[Fields, PolicyProblems], object]] = {
    "InterPodAffinity": _inter_pod_affinity,
    "NodeLabel": _node_label,
    "NodeResourcesFit": _fit,
    "PodTopologySpread": _pod_topology_spread,
    "RequestedToCapacityRatio": _ratio,
    "ServiceAffinity": _service_affinity,
}


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
