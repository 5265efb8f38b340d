"""The differences between the current releases of kube-scheduler: rules, each under a name, and the feature gates
behind some of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from functools import lru_cache
from typing import Any, NamedTuple

from podium.errors import InputError
from podium.rules.gates import GATES, NEWEST, RELEASE_NAMES, enabled_gates, is_at_least

SCORES, FILTERS, RESOURCES, VOLUMES = "scores", "filters", "requests of pods", "volumes"
MESSAGES, PREEMPTION, CONFIGURATION, DEVICES, CYCLE, QUEUE, GROUPS = (
    "messages",
    "preemption",
    "configuration",
    "devices",
    "cycle",
    "queue",
    "groups of pods",
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
        "NodeResourcesBalancedAllocation scores how the pod changes a node's balance, not the balance with the pod.",
    )
    balanced_allocation_skips_best_effort: bool = _since(
        "v1.33", SCORES, "NodeResourcesBalancedAllocation does not score pods that request none of its resources."
    )
    scores_returned_nodes: bool = _since(
        "v1.33", SCORES, "Node objects that a filter extender sends back are scored as sent, without the pods on them."
    )
    image_locality_counts_init_containers: bool = _since(
        "v1.30", SCORES, "ImageLocality counts the images of init containers."
    )
    image_locality_counts_volumes: bool = _since("v1.36", SCORES, "ImageLocality counts the images of image volumes.")
    image_locality_expects_volumes: bool = _since(
        "v1.37", SCORES, "ImageLocality raises the image size that scores 100 by 1000 MiB for each image volume."
    )
    dynamic_resources_scores: bool = _since("v1.35", SCORES, "DynamicResources scores nodes, with weight 2.")
    node_affinity_skips_score: bool = _since(
        "v1.30", SCORES, "NodeAffinity does not score pods without preferred terms; before v1.30, every node got 0."
    )
    volume_binding_skips_score: bool = _since(
        "v1.30", SCORES, "VolumeBinding does not score while storage scoring is off; before v1.30, every node got 0."
    )
    scores_storage_capacity: bool = _gated(
        "StorageCapacityScoring",
        SCORES,
        "VolumeBinding prefers nodes where the volume takes a smaller share of the available storage.",
    )
    scores_volume_capacity: bool = _gated(
        "VolumeCapacityPriority",
        SCORES,
        "VolumeBinding prefers nodes whose volumes are only a little larger than requested.",
    )
    min_domains: bool = _gated("MinDomainsInPodTopologySpread", FILTERS, "PodTopologySpread reads minDomains.")
    node_inclusion_policies: bool = _gated(
        "NodeInclusionPolicyInPodTopologySpread",
        FILTERS,
        "PodTopologySpread reads nodeAffinityPolicy and nodeTaintsPolicy.",
    )

    # -- requests of pods
    sidecars_add_to_non_zero_requests: bool = _since(
        "v1.32", RESOURCES, "Sidecars of running pods count in the requests that NodeResourcesFit scores by."
    )
    in_place_resize: bool = _gated(
        "InPlacePodVerticalScaling",
        RESOURCES,
        "While a container is resized, the larger of its old and new requests counts.",
    )
    resize_compares_sums: bool = _since(
        "v1.37", RESOURCES, "While a pod is resized, its requests are summed in three ways, and the largest sum counts."
    )
    pod_level_resources: bool = _gated(
        "PodLevelResources", RESOURCES, "Pod-level requests (spec.resources) replace those of the containers."
    )
    pod_level_huge_pages: bool = _since("v1.33", RESOURCES, "Pod-level requests may include huge pages.")
    pod_level_resize: bool = _gated(
        "InPlacePodLevelResourcesVerticalScaling", RESOURCES, "Pod-level requests can be resized in place."
    )
    pod_level_defaults_from_containers: bool = _gated(
        "PodLevelResourcesFixDefaulting",
        RESOURCES,
        "Missing pod-level requests are filled in from the containers, also without pod-level limits.",
    )
    match_label_keys_in_pod_affinity: bool = _gated(
        "MatchLabelKeysInPodAffinity", FILTERS, "Pod affinity terms use their matchLabelKeys and mismatchLabelKeys."
    )
    sidecar_host_ports: bool = _since("v1.33", FILTERS, "NodePorts counts the host ports of sidecars.")

    # -- filters
    too_small_nodes_are_unresolvable: bool = _since(
        "v1.34",
        FILTERS,
        "Preemption does not try nodes whose allocatable is less than the pod's request.",
    )
    namespace_selector_reaches_everywhere: bool = _since(
        "v1.34",
        FILTERS,
        "A namespaceSelector of the incoming pod that matches an empty label set (NotIn, DoesNotExist) "
        "selects all namespaces.",
    )
    namespace_selector_matches_listed_namespaces: bool = _since(
        "v1.37",
        FILTERS,
        "A namespaceSelector of the incoming pod selects only the namespaces it matches, also with NotIn and "
        "DoesNotExist.",
    )
    node_name_narrows: bool = _since(
        "v1.37", FILTERS, "NodeName excludes all other nodes at PreFilter, before NodeUnschedulable runs."
    )
    node_declared_features: bool = _gated(
        "NodeDeclaredFeatures", FILTERS, "Pods that need a feature of the node fit only on nodes that declare it."
    )
    has_node_declared_features: bool = _since("v1.35", CONFIGURATION, "The plugin NodeDeclaredFeatures exists.")

    # -- volumes
    counts_volume_attachments: bool = _since(
        "v1.32", VOLUMES, "NodeVolumeLimits also counts attached volumes that no pod uses."
    )
    limits_from_csi_node_alone: bool = _since(
        "v1.32",
        VOLUMES,
        "NodeVolumeLimits reads limits from the CSINode only, not from allocatable attachable-volumes-csi-*.",
    )
    limits_need_csi_driver: bool = _gated(
        "VolumeLimitScaling",
        VOLUMES,
        "NodeVolumeLimits rejects nodes without a volume's CSI driver if that has preventPodSchedulingIfMissing.",
    )
    missing_claim_is_unresolvable: bool = _since(
        "v1.30", VOLUMES, "NodeVolumeLimits rejects pods whose claim is missing; before v1.30, it failed."
    )
    migrates_portworx: bool = _gated(
        "CSIMigrationPortworx",
        VOLUMES,
        "Portworx volumes count as volumes of the CSI driver on nodes whose CSINode says so.",
    )
    migrates_portworx_without_annotation: bool = _since(
        "v1.36", VOLUMES, "Portworx volumes count as volumes of the CSI driver on every node."
    )
    knows_volume_attributes_class: bool = _since(
        "v1.31", VOLUMES, "A claim without a VolumeAttributesClass gets no volume that has one."
    )
    volume_attributes_class: bool = _gated(
        "VolumeAttributesClass", VOLUMES, "A claim gets only volumes of its VolumeAttributesClass."
    )

    # -- messages
    taints_are_not_named: bool = _since(
        "v1.34", MESSAGES, 'The reason says "untolerated taint(s)" and does not name the taint.'
    )
    volume_conflict_names_affinity: bool = _since(
        "v1.33",
        MESSAGES,
        "The reason of a volume's node affinity is \"node(s) didn't match PersistentVolume's node affinity\".",
    )
    read_write_once_pod_names_mode: bool = _since(
        "v1.34", MESSAGES, 'The reason for a ReadWriteOncePod claim in use ends with "already in-use by another pod".'
    )

    # -- the scheduling cycle
    counts_absent_nodes: bool = _since(
        "v1.32", CYCLE, "The message of a pod that fits nowhere also counts the nodes that PreFilter excluded."
    )
    pre_filter_runs_on: bool = _since(
        "v1.30",
        CYCLE,
        "After a PreFilter plugin rejects a pod as unschedulable, the other PreFilter plugins still run.",
    )
    conflicting_pre_filters_are_unresolvable: bool = _since(
        "v1.30", CYCLE, "If PreFilter plugins together leave no node, preemption is not tried."
    )
    stops_without_scoring: bool = _since(
        "v1.30", CYCLE, "If nothing scores and no extender filters, the search ends at the first node that fits."
    )
    narrowing_plugins_are_sorted: bool = _since(
        "v1.31", MESSAGES, "PreFilter plugins that together leave no node are named in alphabetical order."
    )
    extender_reason_replaces: bool = _since(
        "v1.32",
        MESSAGES,
        "An extender's reason replaces earlier reasons of the node; before v1.32, it was added to them.",
    )

    # -- preemption
    spares_terminating_victims: bool = _since(
        "v1.35", PREEMPTION, "Preemption does not delete victims that are terminating already."
    )
    budgets_stop_at_first_violation: bool = _since(
        "v1.37", PREEMPTION, "A victim that violates one PodDisruptionBudget is not counted against others."
    )
    preemption_reports_success: bool = _since(
        "v1.37", MESSAGES, "The message names the node that preemption chose, and the number of victims."
    )
    reads_disruption_conditions: bool = _gated(
        "PodDisruptionConditions",
        PREEMPTION,
        "A pod waits only for victims that the scheduler preempted, not for other terminating pods.",
    )

    # -- the queue
    queueing_hints: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "Plugins check whether an event may help a waiting pod before the pod is tried again.",
    )
    own_updates_ask_hints: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "A waiting pod that is changed is tried again only if a plugin says that the change may help.",
        from_release="v1.31",
    )
    added_pods_may_help_anyone: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "A new pod is an event for all waiting pods, not only for those with affinity or spreading.",
        from_release="v1.31",
    )
    own_changes_help_spreading: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "A pod rejected by PodTopologySpread is tried again when its labels or tolerations change, one "
        "rejected by NodeUnschedulable when its tolerations do.",
        from_release="v1.32",
    )
    hints_compare_nodes: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "A changed node wakes a pod only if the pod fits it now and did not before.",
        from_release="v1.32",
    )
    any_storage_class_is_told: bool = _gated(
        "SchedulerQueueingHints",
        QUEUE,
        "Every new StorageClass is an event for waiting pods, not only one with WaitForFirstConsumer.",
        from_release="v1.32",
    )
    node_updates_tell_all_changes: bool = _since(
        "v1.30",
        QUEUE,
        "An update of a node is an event for all that it changes, annotations included, not only for the first change.",
    )
    cordons_wait_for_any_update: bool = _since(
        "v1.30", QUEUE, "NodeUnschedulable waits for any update of a node, not only for changed taints."
    )
    taints_stand_for_added_nodes: bool = _since(
        "v1.30", QUEUE, "Plugins that wait for new nodes also wait for changed taints."
    )
    node_events_are_as_registered: bool = _since(
        "v1.37", QUEUE, "Plugins that wait for new nodes wait for changed taints only if they register for them."
    )
    node_updates_name_their_part: bool = _since(
        "v1.32", QUEUE, "Plugins wait for changes of the part of a node that they read, not for any update of the node."
    )
    pod_updates_name_their_part: bool = _since(
        "v1.31",
        QUEUE,
        "InterPodAffinity and PodTopologySpread wait for changed labels of pods, VolumeZone for changed claims.",
    )
    added_pods_help_spreading: bool = _since("v1.31", QUEUE, "A new pod wakes pods that PodTopologySpread rejected.")
    removed_nodes_are_told: bool = _since("v1.32", QUEUE, "The removal of a node is an event for waiting pods.")
    given_up_nominations_are_told: bool = _since(
        "v1.33", QUEUE, "A pod that gives up its nominated node is an event for waiting pods."
    )
    deleted_assumed_pods_are_told: bool = _since(
        "v1.35", QUEUE, "A pod that is deleted while it waits to be bound releases its node at once."
    )
    nominates_expected_node: bool = _since(
        "v1.35", QUEUE, "While a pod waits at Permit or PreBind, its status names the node it will be bound to."
    )
    affinity_compares_topology: bool = _since(
        "v1.33", QUEUE, "InterPodAffinity waits for nodes that join or leave a domain, not for every node in one."
    )
    hints_count_nominated_pods: bool = _since(
        "v1.36",
        QUEUE,
        "Hints of InterPodAffinity and PodTopologySpread also look at nominated pods, changes of the waiting "
        "pod and the anti-affinity of deleted pods.",
    )
    any_anti_affinity_term_counts: bool = _since(
        "v1.37",
        QUEUE,
        "A deleted pod wakes a pod that any of its anti-affinity terms matched; before v1.37, all had to.",
    )
    volume_limits_may_grow: bool = _since(
        "v1.33",
        QUEUE,
        "NodeVolumeLimits waits for higher limits in a CSINode, and ignores detached volumes that cannot help the pod.",
    )
    deleted_claims_free_devices: bool = _since(
        "v1.37", QUEUE, "DynamicResources waits for deleted ResourceClaims, too."
    )
    pops_from_backoff: bool = _gated(
        "SchedulerPopFromBackoffQ", QUEUE, "If no other pod waits, a pod is tried before its backoff ends."
    )
    backoff_ends_late: bool = _since(
        "v1.33", QUEUE, "A pod still backs off at the very moment at which its backoff ends."
    )
    untried_pods_do_not_back_off: bool = _since(
        "v1.32",
        QUEUE,
        "A pod that loses its scheduling gates within a second is tried at once; before v1.32, after that second.",
    )
    backoff_counts_failures_apart: bool = _since(
        "v1.34", QUEUE, "Backoff grows with rejections or with consecutive errors, not with all attempts."
    )

    # -- groups of pods
    pod_groups: bool = _gated(
        "GenericWorkload", GROUPS, "The pods of a PodGroup are queued, placed and preempted as one."
    )
    pod_group_placements: bool = _gated(
        "TopologyAwareWorkloadScheduling",
        GROUPS,
        "The pods of a PodGroup with a topology constraint go to nodes with one value of its label.",
    )
    pod_group_preemption_policy: bool = _gated(
        "PodGroupPreemptionPolicy", GROUPS, "A PodGroup has a preemptionPolicy, and its pods must have the same."
    )
    pod_group_claims: bool = _gated(
        "DRAWorkloadResourceClaims",
        GROUPS,
        "A ResourceClaim of a PodGroup is reserved for the group, not for each pod.",
    )

    gang_plugin_reads_groups: bool = _since(
        "v1.37", GROUPS, "GangScheduling holds back pods of groups, for ever if GenericWorkload is off."
    )

    # -- devices
    dynamic_resources_by_default: bool = _gated(
        "DynamicResourceAllocation", DEVICES, "DynamicResources is a default plugin."
    )
    dynamic_resources_is_silent: bool = _since(
        "v1.37", MESSAGES, 'DynamicResources no longer says "no new claims to deallocate" about pods without claims.'
    )

    device_admin_access: bool = _gated(
        "DRAAdminAccess", DEVICES, "A request with adminAccess may get devices that are in use."
    )
    device_alternatives: bool = _gated("DRAPrioritizedList", DEVICES, "A request may list alternatives.")
    device_capacity: bool = _gated(
        "DRAConsumableCapacity", DEVICES, "Claims may share a device, each with a part of its capacity."
    )
    device_counters: bool = _gated(
        "DRAPartitionableDevices",
        DEVICES,
        "Devices may share counters, and each device may name its own nodes.",
    )
    device_taints: bool = _gated(
        "DRADeviceTaints", DEVICES, "A request gets no device with a taint that it does not tolerate."
    )
    device_taint_rules: bool = _gated("DRADeviceTaintRules", DEVICES, "DeviceTaintRules taint devices.")
    device_binding_conditions: bool = _gated(
        "DRADeviceBindingConditions", DEVICES, "A pod is bound only after its devices meet their binding conditions."
    )
    device_extended_resources: bool = _gated(
        "DRAExtendedResource", DEVICES, "A DeviceClass may stand for an extended resource."
    )
    device_expressions_have_includes: bool = _since("v1.36", DEVICES, "Selector expressions may use includes().")
    device_expressions_read_lists: bool = _since(
        "v1.37", DEVICES, "Selector expressions may read lists and use names in backquotes."
    )
    device_pools_look_beyond_the_node: bool = _since(
        "v1.35",
        DEVICES,
        "A pool is complete if all its slices exist, not only those for the node; incomplete and invalid "
        "pools are ignored.",
    )
    distinct_attribute_is_dropped: bool = _since(
        "v1.35",
        DEVICES,
        "A claim with distinctAttribute is refused if claims cannot share devices; before v1.35, its values "
        "were not compared.",
    )
    device_alternatives_may_take_all: bool = _since(
        "v1.36",
        DEVICES,
        "An alternative that asks for all devices gets all of them; before v1.36, it got one and then those of "
        "the first alternative.",
    )
    first_allocation_of_a_claim_counts: bool = _since(
        "v1.36", DEVICES, "If a pod lists a claim twice, its first allocation counts; before v1.36, its last."
    )
    device_timeout_is_an_error: bool = _since(
        "v1.36", DEVICES, "A device search that exceeds its timeout is an error; before v1.36, the node was rejected."
    )
    device_alpha_fields_are_refused: bool = _since(
        "v1.37",
        DEVICES,
        "Compatibility groups, derived attributes and skipNodeOperations are refused while off; before "
        "v1.37, they were ignored.",
    )
    device_errors_say_more: bool = _since(
        "v1.37",
        MESSAGES,
        "Errors name the device whose expression fails, and the request that exceeds the claim's limit of devices.",
    )
    distinct_attribute_compares_all: bool = _since(
        "v1.37",
        DEVICES,
        "distinctAttribute compares a device with all others; before v1.37, only with the last one of each request.",
    )
    counter_slices_are_for_their_nodes: bool = _since(
        "v1.37", DEVICES, "A slice with shared counters counts only for the nodes it names."
    )
    all_devices_includes_full_ones: bool = _since(
        "v1.37",
        DEVICES,
        "A request for all devices fails if one of them is full; before v1.37, that device was left out.",
    )
    capacity_steps_keep_their_format: bool = _since(
        "v1.37", DEVICES, "Capacity rounded up to a step is written in the step's format; an overflow is an error."
    )
    shares_pay_counters_once: bool = _since(
        "v1.37", DEVICES, "Another share of a device takes no counters, also if the device has no capacity."
    )

    # -- configuration
    scheduling_gates_come_first: bool = _since("v1.30", CONFIGURATION, "SchedulingGates is the first default plugin.")
    refuses_in_tree_limits: bool = _since(
        "v1.31",
        VOLUMES,
        "EBSLimits, GCEPDLimits, AzureDiskLimits and CinderLimits are removed: only a CSINode limits disks.",
    )
    checks_fit_strategy: bool = _since(
        "v1.36",
        CONFIGURATION,
        "NodeResourcesFit requires requestedToCapacityRatio for the strategy RequestedToCapacityRatio, and "
        "refuses it for others.",
    )
    reads_dynamic_resources_args: bool = _since("v1.34", CONFIGURATION, "DynamicResources takes arguments.")
    reads_binding_timeout: bool = _gated(
        "DRADeviceBindingConditions", CONFIGURATION, "DynamicResources takes the argument bindingTimeout."
    )
    has_gang_scheduling: bool = _since(
        "v1.35", CONFIGURATION, "The plugin GangScheduling exists; it does nothing by default."
    )
    more_plugins_pre_filter: bool = _since(
        "v1.37", CONFIGURATION, "NodeUnschedulable and TaintToleration may be enabled at preFilter."
    )
    preemption_holds_pods_back: bool = _since(
        "v1.32",
        CONFIGURATION,
        "DefaultPreemption may be enabled at preEnqueue: a pod waits until its own preemption is done.",
    )
    has_pod_group_post_filter: bool = _since(
        "v1.37", CONFIGURATION, "Profiles may use the extension point podGroupPostFilter."
    )
    has_placement_points: bool = _since(
        "v1.36", CONFIGURATION, "Profiles may use the extension points placementGenerate and placementScore."
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
