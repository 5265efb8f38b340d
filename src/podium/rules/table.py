"""The differences between the current releases, each under a name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, NamedTuple

from podium.errors import InputError
from podium.rules._gates import GATES, NEWEST, RELEASE_NAMES, enabled_gates, is_at_least

SCORES, FILTERS, RESOURCES, VOLUMES = "scores", "filters", "what a pod counts for", "volumes"
MESSAGES, PREEMPTION, CONFIGURATION, DEVICES, CYCLE, QUEUE = (
    "messages",
    "preemption",
    "configuration",
    "devices",
    "cycle",
    "queue",
)


def _since(release: str, area: str, sentence: str) -> Any:
    """A rule that holds in a release and all later ones; the sentence says what holds from then on."""
    return field(metadata={"since": release, "gate": "", "area": area, "sentence": sentence})


def _gated(gate: str, area: str, sentence: str, *, from_release: str = "v1.29") -> Any:
    """A rule that holds if a feature gate is on, from a release on at the earliest."""
    return field(metadata={"since": from_release, "gate": gate, "area": area, "sentence": sentence})


@dataclass(frozen=True, eq=False, kw_only=True)
class Rules:
    """How one release decides; one object per release and set of feature gates, so that identity is equality."""

    release: str

    # -- scores
    balanced_allocation_compares_before_and_after: bool = _since(
        "v1.36",
        SCORES,
        "NodeResourcesBalancedAllocation scores how the pod changes a node's balance, not the balance it leads to.",
    )
    balanced_allocation_skips_best_effort: bool = _since(
        "v1.33", SCORES, "NodeResourcesBalancedAllocation does not score pods that request none of its resources."
    )
    scores_returned_nodes: bool = _since(
        "v1.33", SCORES, "Node objects that a filter extender sends back are scored as sent, as nodes without pods."
    )
    image_locality_counts_init_containers: bool = _since(
        "v1.30", SCORES, "ImageLocality counts the images of init containers."
    )
    image_locality_counts_volumes: bool = _since("v1.36", SCORES, "ImageLocality counts the images of image volumes.")
    image_locality_expects_volumes: bool = _since(
        "v1.37", SCORES, "ImageLocality raises the size that scores 100 by 1000 MiB for each image volume."
    )
    dynamic_resources_scores: bool = _since("v1.35", SCORES, "DynamicResources scores nodes, with weight 2.")
    node_affinity_skips_score: bool = _since(
        "v1.30", SCORES, "NodeAffinity does not score pods without preferred terms, instead of giving every node 0."
    )
    volume_binding_skips_score: bool = _since(
        "v1.30", SCORES, "VolumeBinding does not score where storage scoring is off, instead of giving every node 0."
    )
    scores_storage_capacity: bool = _gated(
        "StorageCapacityScoring", SCORES, "VolumeBinding prefers nodes where a volume takes less of the storage there."
    )
    scores_volume_capacity: bool = _gated(
        "VolumeCapacityPriority", SCORES, "VolumeBinding prefers nodes whose volumes are hardly larger than asked for."
    )
    min_domains: bool = _gated("MinDomainsInPodTopologySpread", FILTERS, "PodTopologySpread reads minDomains.")
    node_inclusion_policies: bool = _gated(
        "NodeInclusionPolicyInPodTopologySpread",
        FILTERS,
        "PodTopologySpread reads nodeAffinityPolicy and nodeTaintsPolicy.",
    )

    # -- what a pod counts for
    sidecars_add_to_non_zero_requests: bool = _since(
        "v1.32", RESOURCES, "Sidecars of running pods add to what NodeResourcesFit scores by."
    )
    in_place_resize: bool = _gated(
        "InPlacePodVerticalScaling", RESOURCES, "A container that is being resized counts with the larger amount."
    )
    resize_compares_sums: bool = _since(
        "v1.37", RESOURCES, "A pod that is being resized counts with the largest of three sums over its containers."
    )
    pod_level_resources: bool = _gated(
        "PodLevelResources", RESOURCES, "Requests of the pod as a whole (spec.resources) replace those of containers."
    )
    pod_level_huge_pages: bool = _since("v1.33", RESOURCES, "A pod as a whole may request huge pages.")
    pod_level_resize: bool = _gated(
        "InPlacePodLevelResourcesVerticalScaling", RESOURCES, "Requests of the pod as a whole can be resized in place."
    )
    pod_level_defaults_from_containers: bool = _gated(
        "PodLevelResourcesFixDefaulting",
        RESOURCES,
        "What a pod as a whole does not request is filled in from its containers, also where it has no limits.",
    )
    match_label_keys_in_pod_affinity: bool = _gated(
        "MatchLabelKeysInPodAffinity", FILTERS, "matchLabelKeys and mismatchLabelKeys of pod affinity terms count."
    )
    sidecar_host_ports: bool = _since("v1.33", FILTERS, "Host ports of sidecars count.")

    # -- filters
    too_small_nodes_are_unresolvable: bool = _since(
        "v1.34",
        FILTERS,
        "A node whose whole allocatable is less than the request is unresolvable: preemption does not try it.",
    )
    namespace_selector_reaches_everywhere: bool = _since(
        "v1.34",
        FILTERS,
        "A namespaceSelector of the incoming pod that no labels satisfy (NotIn, DoesNotExist) means every namespace.",
    )
    namespace_selector_matches_listed_namespaces: bool = _since(
        "v1.37",
        FILTERS,
        "A namespaceSelector of the incoming pod means the namespaces it matches, not all where it matches no labels.",
    )
    node_name_narrows: bool = _since(
        "v1.37", FILTERS, "NodeName leaves out all other nodes at PreFilter, ahead of NodeUnschedulable."
    )
    node_declared_features: bool = _gated(
        "NodeDeclaredFeatures", FILTERS, "Pods that need a feature of the node go only where the node declares it."
    )
    has_node_declared_features: bool = _since("v1.35", CONFIGURATION, "There is a plugin NodeDeclaredFeatures.")

    # -- volumes
    counts_volume_attachments: bool = _since(
        "v1.32", VOLUMES, "NodeVolumeLimits counts attached volumes that no pod uses."
    )
    limits_from_csi_node_alone: bool = _since(
        "v1.32", VOLUMES, "NodeVolumeLimits does not read allocatable attachable-volumes-csi-*, only the CSINode."
    )
    limits_need_csi_driver: bool = _gated(
        "VolumeLimitScaling",
        VOLUMES,
        "NodeVolumeLimits rejects nodes that lack a CSI driver with preventPodSchedulingIfMissing.",
    )
    missing_claim_is_unresolvable: bool = _since(
        "v1.30", VOLUMES, "NodeVolumeLimits rejects pods whose claim is missing, instead of failing."
    )
    migrates_portworx: bool = _gated(
        "CSIMigrationPortworx", VOLUMES, "Portworx volumes count as volumes of the CSI driver."
    )
    migrates_portworx_without_annotation: bool = _since(
        "v1.36", VOLUMES, "Portworx volumes count as volumes of the CSI driver on every node."
    )
    knows_volume_attributes_class: bool = _since(
        "v1.31", VOLUMES, "A volume with a VolumeAttributesClass is not for claims without one."
    )
    volume_attributes_class: bool = _gated(
        "VolumeAttributesClass", VOLUMES, "A claim takes only volumes of its VolumeAttributesClass."
    )

    # -- messages
    taints_are_not_named: bool = _since("v1.34", MESSAGES, 'The reason says "untolerated taint(s)", not which taint.')
    volume_conflict_names_affinity: bool = _since(
        "v1.33", MESSAGES, "\"node(s) didn't match PersistentVolume's node affinity\" replaces another wording."
    )
    read_write_once_pod_names_mode: bool = _since(
        "v1.34", MESSAGES, "The reason for a ReadWriteOncePod claim in use has another wording."
    )

    # -- the scheduling cycle
    counts_absent_nodes: bool = _since(
        "v1.32", CYCLE, "Nodes that PreFilter left out are counted in the message of a pod that fits nowhere."
    )
    pre_filter_runs_on: bool = _since(
        "v1.30", CYCLE, "After a PreFilter plugin rejects a pod for now, the others still run and may say otherwise."
    )
    conflicting_pre_filters_are_unresolvable: bool = _since(
        "v1.30", CYCLE, "Where plugins leave no node together at PreFilter, preemption is not tried."
    )
    stops_without_scoring: bool = _since(
        "v1.30", CYCLE, "Where nothing scores, the search ends at the first node that fits."
    )
    narrowing_plugins_are_sorted: bool = _since(
        "v1.31", MESSAGES, "Plugins that leave no node together are named in alphabetical order."
    )
    extender_reason_replaces: bool = _since(
        "v1.32", MESSAGES, "The reason of an extender replaces an earlier one of the same node."
    )

    # -- preemption
    spares_terminating_victims: bool = _since(
        "v1.35", PREEMPTION, "Victims that are terminating are not deleted again."
    )
    budgets_stop_at_first_violation: bool = _since(
        "v1.37", PREEMPTION, "A victim that violates one PodDisruptionBudget is not charged to further ones."
    )
    preemption_reports_success: bool = _since(
        "v1.37", MESSAGES, "The message says on which node preemption found a place, and how many victims it takes."
    )
    reads_disruption_conditions: bool = _gated(
        "PodDisruptionConditions", PREEMPTION, "A pod waits only for victims that the scheduler preempted."
    )

    # -- the queue
    queueing_hints: bool = _gated(
        "SchedulerQueueingHints", QUEUE, "Plugins look at an event before a waiting pod is tried again because of it."
    )
    own_updates_ask_hints: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "A waiting pod that changed is tried again where a plugin says that this helps, not in any case.",
        from_release="v1.31",
    )
    added_pods_may_help_anyone: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "A pod that was added may help any pod that waits for pods, not just by affinity or spreading.",
        from_release="v1.31",
    )
    own_changes_help_spreading: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "Labels and tolerations that a pod gets may help where PodTopologySpread rejected it, tolerations also where "
        "NodeUnschedulable did.",
        from_release="v1.32",
    )
    hints_compare_nodes: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "A changed node helps where it fits now and did not before, not where it fits in any case.",
        from_release="v1.32",
    )
    any_storage_class_is_told: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "Waiting pods hear of every new StorageClass, not just of those with WaitForFirstConsumer.",
        from_release="v1.32",
    )
    node_updates_tell_all_changes: bool = _since(
        "v1.30", QUEUE, "An update of a node tells of all that it changes, annotations too, not just of the first."
    )
    cordons_wait_for_any_update: bool = _since(
        "v1.30", QUEUE, "NodeUnschedulable waits for any update of a node, not just for changed taints."
    )
    taints_stand_for_added_nodes: bool = _since(
        "v1.30", QUEUE, "A plugin that waits for new nodes waits for changed taints, too."
    )
    node_events_are_as_registered: bool = _since(
        "v1.37", QUEUE, "A plugin that waits for new nodes does not wait for changed taints, too, unless it says so."
    )
    node_updates_name_their_part: bool = _since(
        "v1.32", QUEUE, "Plugins wait for the part of a node that they read to change, not for any update of the node."
    )
    pod_updates_name_their_part: bool = _since(
        "v1.31", QUEUE, "Affinity and spreading wait for changed labels of pods, VolumeZone for changed claims."
    )
    added_pods_help_spreading: bool = _since(
        "v1.31", QUEUE, "A pod that was added may help those that PodTopologySpread rejected."
    )
    removed_nodes_are_told: bool = _since("v1.32", QUEUE, "Waiting pods hear of nodes that are removed.")
    given_up_nominations_are_told: bool = _since(
        "v1.33", QUEUE, "Waiting pods hear of a pod that gave up the node it was nominated to."
    )
    deleted_assumed_pods_are_told: bool = _since(
        "v1.35", QUEUE, "A pod that is deleted while it waits to be bound gives back its node at once."
    )
    nominates_expected_node: bool = _since(
        "v1.35", QUEUE, "A pod's status names the node it is about to be bound to, where Permit or PreBind comes first."
    )
    affinity_compares_topology: bool = _since(
        "v1.33", QUEUE, "InterPodAffinity waits for a node to join or leave a domain, not for any node that is in one."
    )
    hints_count_nominated_pods: bool = _since(
        "v1.36",
        QUEUE,
        "Hints of affinity and spreading count nominated pods, changes of the waiting pod and the anti-affinity of "
        "deleted pods.",
    )
    any_anti_affinity_term_counts: bool = _since(
        "v1.37",
        QUEUE,
        "A pod that goes away may help one that one of its anti-affinity terms kept off, not only if all did.",
    )
    volume_limits_may_grow: bool = _since(
        "v1.33",
        QUEUE,
        "NodeVolumeLimits waits for the limits of a CSINode to change, and looks closer at detached volumes.",
    )
    deleted_claims_free_devices: bool = _since("v1.37", QUEUE, "DynamicResources waits for claims to be deleted.")
    pops_from_backoff: bool = _gated(
        "SchedulerPopFromBackoffQ", QUEUE, "Where no other pod waits, one whose backoff is not over is tried already."
    )
    untried_pods_do_not_back_off: bool = _since(
        "v1.32", QUEUE, "A pod whose scheduling gates go within a second is tried at once, not after that second."
    )
    backoff_counts_failures_apart: bool = _since(
        "v1.34", QUEUE, "Backoff grows with rejections, or with errors in a row, not with all attempts."
    )

    # -- devices
    dynamic_resources_by_default: bool = _gated(
        "DynamicResourceAllocation", DEVICES, "DynamicResources is among the default plugins."
    )
    dynamic_resources_is_silent: bool = _since(
        "v1.37", MESSAGES, 'DynamicResources no longer says "no new claims to deallocate" of pods without claims.'
    )

    device_admin_access: bool = _gated(
        "DRAAdminAccess", DEVICES, "A request for administration may have devices that are in use."
    )
    device_alternatives: bool = _gated("DRAPrioritizedList", DEVICES, "A request may list alternatives.")
    device_capacity: bool = _gated(
        "DRAConsumableCapacity", DEVICES, "Claims may share a device, each with a part of its capacity."
    )
    device_counters: bool = _gated(
        "DRAPartitionableDevices",
        DEVICES,
        "Devices may share counters, and be for nodes of their own.",
    )
    device_taints: bool = _gated("DRADeviceTaints", DEVICES, "Taints of devices keep requests off.")
    device_taint_rules: bool = _gated("DRADeviceTaintRules", DEVICES, "A DeviceTaintRule taints devices.")
    device_binding_conditions: bool = _gated(
        "DRADeviceBindingConditions", DEVICES, "Devices may have to get ready before a pod is bound."
    )
    device_extended_resources: bool = _gated(
        "DRAExtendedResource", DEVICES, "A DeviceClass may stand for an extended resource."
    )
    device_expressions_have_includes: bool = _since("v1.36", DEVICES, "Expressions of selectors may use includes().")
    device_expressions_read_lists: bool = _since(
        "v1.37", DEVICES, "Expressions of selectors may go through lists, and have names in backquotes."
    )
    device_pools_look_beyond_the_node: bool = _since(
        "v1.35",
        DEVICES,
        "A pool is complete by all its slices, not by those for the node; incomplete and invalid ones are passed over.",
    )
    distinct_attribute_is_dropped: bool = _since(
        "v1.35",
        DEVICES,
        "Where claims may not share devices, one with distinctAttribute is refused; before, any values would do.",
    )
    device_alternatives_may_take_all: bool = _since(
        "v1.36",
        DEVICES,
        "An alternative for all devices gets them all, not one and then those of the first alternative.",
    )
    first_allocation_of_a_claim_counts: bool = _since(
        "v1.36", DEVICES, "Of a claim that a pod lists twice, the devices that it got first count, not the last ones."
    )
    device_timeout_is_an_error: bool = _since(
        "v1.36", DEVICES, "A search for devices that takes too long is an error, not a node that does not do."
    )
    device_alpha_fields_are_refused: bool = _since(
        "v1.37",
        DEVICES,
        "Compatibility groups, derived attributes and skipNodeOperations are not passed over where they are off.",
    )
    device_errors_say_more: bool = _since(
        "v1.37", MESSAGES, "Errors of the search name the device whose expression fails and the request for too many."
    )
    distinct_attribute_compares_all: bool = _since(
        "v1.37",
        DEVICES,
        "distinctAttribute compares a device with all others, not with the last one of each request.",
    )
    counter_slices_are_for_their_nodes: bool = _since(
        "v1.37", DEVICES, "A slice with shared counters is looked at for the nodes that it names only."
    )
    all_devices_includes_full_ones: bool = _since(
        "v1.37",
        DEVICES,
        "A request for all devices fails for one that is full, and does not leave it out.",
    )
    capacity_steps_keep_their_format: bool = _since(
        "v1.37", DEVICES, "Capacity rounded up to a step is written as the step is; one that is too large is an error."
    )
    shares_pay_counters_once: bool = _since(
        "v1.37", DEVICES, "A further share of a device costs no counters, also where the device has no capacity."
    )

    # -- configuration
    scheduling_gates_come_first: bool = _since("v1.30", CONFIGURATION, "SchedulingGates is the first default plugin.")
    refuses_in_tree_limits: bool = _since(
        "v1.31",
        VOLUMES,
        "EBSLimits, GCEPDLimits, AzureDiskLimits, CinderLimits are gone: disks have no limit without a CSINode.",
    )
    checks_fit_strategy: bool = _since(
        "v1.36",
        CONFIGURATION,
        "NodeResourcesFit needs requestedToCapacityRatio for that strategy, and refuses it for another one.",
    )
    reads_dynamic_resources_args: bool = _since("v1.34", CONFIGURATION, "DynamicResources takes arguments.")
    reads_binding_timeout: bool = _gated(
        "DRADeviceBindingConditions", CONFIGURATION, "DynamicResources takes a bindingTimeout."
    )
    has_gang_scheduling: bool = _since("v1.35", CONFIGURATION, "There is a plugin GangScheduling, which does nothing.")
    more_plugins_pre_filter: bool = _since(
        "v1.37", CONFIGURATION, "NodeUnschedulable and TaintToleration may be named at preFilter."
    )
    preemption_holds_pods_back: bool = _since(
        "v1.32", CONFIGURATION, "DefaultPreemption may be named at preEnqueue: pods wait for their own preemption."
    )
    has_pod_group_post_filter: bool = _since(
        "v1.37", CONFIGURATION, "A profile may have the extension point podGroupPostFilter."
    )
    has_placement_points: bool = _since(
        "v1.36", CONFIGURATION, "A profile may have the extension points placementGenerate and placementScore."
    )


HINTS_SINCE: dict[str, str] = {
    "NodePorts": "v1.29",
    "NodeAffinity": "v1.30",
    "NodeResourcesFit": "v1.30",
    "NodeUnschedulable": "v1.30",
    "PodTopologySpread": "v1.30",
    "NodeVolumeLimits of PersistentVolumeClaim": "v1.32",
    "VolumeBinding of CSIDriver": "v1.32",
}
"""The first release with queueing hints of a plugin, for all events or for those of one kind; v1.31 for all others."""


def has_hint(plugin: str, resource: str, rules: Rules) -> bool:
    """Whether an in-tree plugin has a hint for events of a kind of object; without one, all events may help."""
    since = HINTS_SINCE.get(f"{plugin} of {resource}") or HINTS_SINCE.get(plugin, "v1.31")
    return rules.queueing_hints and is_at_least(rules.release, since)


class Difference(NamedTuple):
    """A rule that not all current releases have."""

    name: str
    release: str
    """The first release that has it by default; empty if no release has."""
    area: str
    sentence: str
    gate: str
    """The feature gate that switches it, if there is one."""


def _holds(metadata: Mapping[str, Any], release: str, enabled: Mapping[str, bool]) -> bool:
    return is_at_least(release, metadata["since"]) and enabled.get(metadata["gate"], True)


@lru_cache(maxsize=256)
def _rules(release: str, asked: tuple[tuple[str, bool], ...]) -> Rules:
    enabled = enabled_gates(release, dict(asked))
    holding = {each.name: _holds(each.metadata, release, enabled) for each in fields(Rules) if each.metadata}
    return Rules(release=release, **holding)


def rules_of(release: str, feature_gates: Mapping[str, bool] | None = None) -> Rules:
    """The rules of a current release with some feature gates switched; InputError for a gate that it does not have."""
    if release not in RELEASE_NAMES:
        raise InputError(f"release {release!r} is unknown; use one of {', '.join(RELEASE_NAMES)}")
    return _rules(release, tuple(sorted((feature_gates or {}).items())))


def _first_release(metadata: Mapping[str, Any]) -> str:
    gate = GATES.get(metadata["gate"])
    held = [r for r in RELEASE_NAMES if is_at_least(r, metadata["since"]) and (gate is None or gate.default(r))]
    return held[0] if held else ""


DIFFERENCES: tuple[Difference, ...] = tuple(
    Difference(
        each.name,
        _first_release(each.metadata),
        each.metadata["area"],
        each.metadata["sentence"],
        each.metadata["gate"],
    )
    for each in fields(Rules)
    if each.metadata
)
"""Every rule, in the order of the table."""


def differences(before: Rules, after: Rules) -> list[Difference]:
    """The rules that differ between two releases or sets of feature gates."""
    return [each for each in DIFFERENCES if getattr(before, each.name) != getattr(after, each.name)]


def with_rule(rules: Rules, name: str, value: bool) -> Rules:
    """The same rules with one changed."""
    held = {each.name: getattr(rules, each.name) for each in DIFFERENCES}
    return Rules(release=rules.release, **{**held, name: value})


NEWEST_RULES = rules_of(NEWEST)
