"""The differences between the old releases: constants, booleans, and the text of each reason."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from typing import Any, NamedTuple, TypeVar

import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.cluster.columns import Mask
from podium.framework import SUCCESS, CycleState, FilterPlugin, Plugin, PodView, Status, Verdict
from podium.framework.fast_paths import ForSomePods
from podium.model import Pod
from podium.rules import rules_of
from podium.rules.gates import RELEASE_NAMES

P = TypeVar("P", bound=Plugin)

OLDEST_RULES = rules_of(RELEASE_NAMES[0])
"""The rules for in-tree code that old and current releases share."""


def _in_turn(v1_8: object, v1_14: object, v1_18: object) -> Any:
    """A rule, with its value in each of the releases."""
    return field(metadata={"values": (v1_8, v1_14, v1_18)})


@dataclass(frozen=True, kw_only=True)
class OldReleaseRules:
    """How one release counts, compares, scores and words its messages."""

    release: str = _in_turn("v1.8", "v1.14", "v1.18")

    # -- scores
    max_score: int = _in_turn(10, 10, 100)
    """The score of the best node."""
    normalizes_in_floats: bool = _in_turn(True, False, False)
    """NodeAffinity and TaintToleration scale by a fraction and truncate, instead of scaling in integers."""
    spread_matches_any: bool = _in_turn(True, False, False)
    """SelectorSpread counts a pod that matches one of the selectors, instead of all of them."""
    spread_ignores_empty_selectors: bool = _in_turn(False, False, True)
    """A service whose selector is empty, though not absent, adds nothing to the selectors of a pod."""
    spread_zone_divides_by_zero: bool = _in_turn(True, False, False)
    """A zone score without any matching pod is 0/0, which becomes the smallest int64."""
    service_spreading_is_selector_spread: bool = _in_turn(False, True, True)
    """ServiceSpreadingPriority also uses controllers."""
    zone_has_stable_label: bool = _in_turn(False, False, True)
    """A node without the beta zone or region label uses the stable label."""
    images_are_scaled: bool = _in_turn(False, True, True)
    """An image counts by how many nodes have it, under its name with a tag; otherwise by its size, as written."""
    service_pods_everywhere: bool = _in_turn(True, False, False)
    """ServiceAntiAffinity counts all pods of the service, on infeasible nodes and terminating ones too."""
    ratio_leaves_out_zeros: bool = _in_turn(False, False, True)
    """RequestedToCapacityRatio averages the resources that score above zero, and rounds to the nearest."""

    # -- what pods use
    counts_init_containers: bool = _in_turn(False, False, True)
    """Init containers and the pod's overhead count for running pods and in scores, not only for the fit."""
    ports_by_number: bool = _in_turn(True, False, False)
    """Two host ports conflict when their numbers are equal, whatever their protocol and address."""
    tracks_prefixed_resources: bool = _in_turn(False, True, True)
    """Resources of kubernetes.io/ and attachable volumes are counted."""

    # -- what fits
    knows_match_fields: bool = _in_turn(False, True, True)
    """Required node affinity reads matchFields; if not, an invalid term makes the pod's other terms fail, too."""
    affinity_term_by_term: bool = _in_turn(True, False, False)
    """Each required affinity term may be met by another pod."""
    existing_terms_share_last_key: bool = _in_turn(True, False, False)
    """The anti-affinity terms of a running pod all use the topology key of the last one."""
    out_of_disk: bool = _in_turn(True, False, False)
    """CheckNodeCondition knows the condition OutOfDisk."""
    claims_must_be_bound: bool = _in_turn(True, False, False)
    """A volume predicate that meets an unbound claim is an error."""
    limits_from_node: bool = _in_turn(False, True, True)
    """Allocatable attachable-volumes-* and the instance type limit how many disks a node takes."""
    unbound_disks_by_provisioner: bool = _in_turn(False, False, True)
    """A claim whose volume is unknown counts as a disk of the kind its storage class provisions, not of every kind."""
    missing_volume_is_error: bool = _in_turn(True, True, False)
    """CheckVolumeBinding: a bound claim with a missing volume, or an unbound immediate claim, is an error."""

    # -- what a Policy says
    refuses_unknown_fields: bool = _in_turn(False, False, True)
    """An unknown field of a Policy is an error; otherwise it is ignored."""
    lacks_fields: frozenset[str] = _in_turn(
        frozenset(
            (
                *("alwaysCheckAllPredicates", "requestedToCapacityRatioArguments"),
                *("preemptVerb", "managedResources", "ignorable"),
            )
        ),
        frozenset(("resources",)),
        frozenset(),
    )
    """The fields of a Policy that only later releases have."""

    # -- words
    bare_reasons: bool = _in_turn(True, False, False)
    """A reason is the name of the failure instead of a sentence."""
    too_many_pods: str = _in_turn("Insufficient pods", "Insufficient pods", "Too many pods")
    """The reason of a node that has no room for another pod."""
    names_the_taint: bool = _in_turn(False, False, True)
    """The reason for an untolerated taint names the taint."""


V1_8, V1_14, V1_18 = (
    OldReleaseRules(**{rule.name: rule.metadata["values"][place] for rule in fields(OldReleaseRules)})
    for place in range(3)
)

RULES = {rules.release: rules for rules in (V1_8, V1_14, V1_18)}

FIRST_DEFAULT_PRIORITIES = {
    "SelectorSpreadPriority": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "BalancedResourceAllocation": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "NodeAffinityPriority": 1,
    "TaintTolerationPriority": 1,
}
"""The default priorities of v1.8, by weight; later releases add to them."""


class OfRelease:
    """A plugin that several releases have; `of_release` gives it the rules of one of them."""

    rules: OldReleaseRules = V1_14

    def events_to_register(self) -> None:
        """These releases have no queueing hints: any event may help a waiting pod."""


def of_release(plugin: type[P], rules: OldReleaseRules, name: str = "") -> type[P]:
    """The plugin of one release, under the release's name for it."""
    members = {"rules": rules, "name": name or plugin.name, "__doc__": plugin.__doc__, "__module__": plugin.__module__}
    return type(plugin.__name__, (plugin,), members)


class Reason(NamedTuple):
    """A failure: its name, its sentence, and whether evicting pods from the node might help."""

    name: str
    sentence: str
    resolvable: bool = False

    def text(self, rules: OldReleaseRules) -> str:
        return self.name if rules.bare_reasons else self.sentence


DISK_CONFLICT = Reason("NoDiskConflict", "node(s) had no available disk", True)
VOLUME_ZONE = Reason("NoVolumeZoneConflict", "node(s) had no available volume zone")
NODE_SELECTOR = Reason("MatchNodeSelector", "node(s) didn't match node selector")
POD_AFFINITY = Reason("MatchInterPodAffinity", "node(s) didn't match pod affinity/anti-affinity", True)
AFFINITY_RULES = Reason("PodAffinityRulesNotMatch", "node(s) didn't match pod affinity rules")
ANTI_AFFINITY_RULES = Reason("PodAntiAffinityRulesNotMatch", "node(s) didn't match pod anti-affinity rules", True)
EXISTING_ANTI_AFFINITY = Reason(
    "ExistingPodsAntiAffinityRulesNotMatch", "node(s) didn't satisfy existing pods anti-affinity rules", True
)
TAINTS = Reason("PodToleratesNodeTaints", "node(s) had taints that the pod didn't tolerate")
HOST_NAME = Reason("HostName", "node(s) didn't match the requested hostname")
HOST_PORTS = Reason("PodFitsHostPorts", "node(s) didn't have free ports for the requested pod ports", True)
LABEL_PRESENCE = Reason("CheckNodeLabelPresence", "node(s) didn't have the requested labels")
SERVICE_AFFINITY = Reason("CheckServiceAffinity", "node(s) didn't match service affinity", True)
MAX_VOLUMES = Reason("MaxVolumeCount", "node(s) exceed max volume count", True)
MEMORY_PRESSURE = Reason("NodeUnderMemoryPressure", "node(s) had memory pressure")
DISK_PRESSURE = Reason("NodeUnderDiskPressure", "node(s) had disk pressure")
PID_PRESSURE = Reason("NodeUnderPIDPressure", "node(s) had pid pressure")
OUT_OF_DISK = Reason("NodeOutOfDisk", "node(s) were out of disk space")
NOT_READY = Reason("NodeNotReady", "node(s) were not ready")
NETWORK = Reason("NodeNetworkUnavailable", "node(s) had unavailable network")
UNSCHEDULABLE = Reason("NodeUnschedulable", "node(s) were unschedulable")
VOLUME_NODE = Reason("NoVolumeNodeConflict", "node(s) had volume node affinity conflict")
VOLUME_BINDING = Reason("VolumeBindingNoMatch", "node(s) didn't find available persistent volumes to bind")
VOLUME_MISSING = Reason("PVNotExist", "pvc(s) bound to non-existent pv(s)")
UNBOUND_CLAIMS = Reason("UnboundImmediatePVC", "pod has unbound immediate PersistentVolumeClaims")


def insufficient(resource: str) -> Reason:
    return Reason(f"Insufficient {resource}", f"Insufficient {resource}", True)


class Failure(NamedTuple):
    """The nodes that fail for a reason."""

    nodes: Mask
    reason: Reason


class Predicate(OfRelease, FilterPlugin):
    """A filter that reports all its reasons. Define `failures`: the same reasons in the same order for every call."""

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        raise NotImplementedError(f"{type(self).__name__} must define failures")

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        found = self.failures(state, pod, nodes)
        codes = np.zeros(len(nodes), dtype=np.int64)
        for place, failure in enumerate(found):
            codes |= failure.nodes.astype(np.int64) << place
        return Verdict(codes, partial(_status, [failure.reason for failure in found], self.rules))


def _status(reasons: Sequence[Reason], rules: OldReleaseRules, code: int) -> Status:
    """The status for a code with one bit per reason."""
    return rejection_status([reason for place, reason in enumerate(reasons) if code & (1 << place)], rules)


def rejection_status(reasons: Sequence[Reason], rules: OldReleaseRules) -> Status:
    """The status of a node that fails for these reasons; evicting pods helps only if it helps against all of them."""
    texts = tuple(reason.text(rules) for reason in reasons)
    resolvable = all(reason.resolvable for reason in reasons)
    return Status.unschedulable(*texts) if resolvable else Status.unresolvable(*texts)


class NodePredicate(OfRelease, ForSomePods, FilterPlugin):
    """A filter that checks one node at a time. Define `check`; None means that the pod fits."""

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        raise NotImplementedError(f"{type(self).__name__} must define check")

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return (self.check(pod, node) or SUCCESS) if self.concerns(PodView(state.info), node.cluster) else SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        if not self.concerns(PodView(state.info), nodes.cluster):
            return Verdict.choose(np.zeros(len(nodes), dtype=np.int64), ())
        return super().filter(state, pod, nodes)
