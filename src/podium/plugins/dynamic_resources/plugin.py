"""DynamicResources: a pod with claims goes where its devices are, or can be had."""

from __future__ import annotations

import math
import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from podium.cluster import Aspect, Cluster, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.config.plugin_args import DynamicResourcesArgs
from podium.framework.plugin import (
    CycleState,
    FilterPlugin,
    ForSomePods,
    NormalizesByMax,
    PodView,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    ReservePlugin,
)
from podium.framework.status import SKIP, SUCCESS, Status, Verdict
from podium.framework.suggested_change import Action, Change, EventHint, RejectedPod, WaitingPod, evict, evictable
from podium.model import DeviceClass, Pod, ResourceClaim
from podium.model.devices import AllocationResult
from podium.plugins.dynamic_resources.extended_resources import asks_for_backed
from podium.plugins.dynamic_resources.inventory import PendingAllocation, inventory_of
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.dynamic_resources.pools import DeviceID
from podium.plugins.dynamic_resources.requests import ClaimError, claims_of, shape_of
from podium.plugins.dynamic_resources.search_results import KnownSearches
from podium.plugins.score_columns import PerCluster
from podium.rules import Rules


def device_fixes(rejected: RejectedPod, rules: Rules) -> Iterator[Change]:
    """Evict a pod that holds devices of the node."""
    return (evict([pod]) for pod in _holders(rejected.cluster, rules, rejected.node))


def _holders(cluster: Cluster, rules: Rules, node: str) -> list[Pod]:
    """The pods that may be evicted and whose claims have devices that the node can use."""
    candidates = inventory_of(cluster, rules).pools_of(cluster.rows[node]).candidates
    usable = {candidate.device.id for candidate in candidates}
    consumers = {
        consumer.uid
        for claim in cluster.store.of(ResourceClaim)
        if claim.status.allocation is not None and not usable.isdisjoint(_devices(claim.status.allocation))
        for consumer in claim.status.reserved_for
    }
    return [pod for pod in evictable(cluster, node) if pod.metadata.uid in consumers]


def _devices(allocation: AllocationResult) -> Iterator[DeviceID]:
    return (DeviceID(each.driver, each.pool, each.device) for each in allocation.devices.results)


ADD, UPDATE, DELETE = Action.ADD, Action.UPDATE, Action.DELETE


def claim_changed(waiting: WaitingPod, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
    """A claim of the pod came or changed its status, or some claim gave back its devices."""
    if new is None:
        return old is not None and old.status.allocation is not None
    try:
        claims = claims_of(waiting.pod, waiting.cluster.store)
    except ClaimError:
        return False
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return True
    if all(claim.metadata.uid != new.metadata.uid for claim in claims):
        return False
    return old is None or old.status != new.status


def claims_are_there(waiting: WaitingPod, old: Pod | None, new: Pod | None) -> bool:
    """The waiting pod itself says which claims were made for it, and they are there."""
    if new is None or not waiting.is_same(new):
        return False
    try:
        claims_of(new, waiting.cluster.store)
    except ClaimError:
        return False
    return True


EVENTS = (
    EventHint("Node", ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
    EventHint("ResourceClaim", ADD | UPDATE | DELETE, claim_changed),
    EventHint("Pod", Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, claims_are_there),
    EventHint("DeviceClass", ADD | UPDATE),
    EventHint("ResourceSlice", ADD | UPDATE),
    EventHint("DeviceTaintRule", ADD | UPDATE | DELETE),
)
"""A taint rule counts as a change of the slices whose devices it taints. Claims give back their devices before they are
deleted, so that the releases that do not hear of deletions miss nothing."""


STEPS_PER_SECOND = 100_000
"""How far a search goes in a second of the filter's timeout; counted, so that a decision is the same on any machine."""


class DynamicResources(
    ForSomePods,
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    NormalizesByMax,
    ReservePlugin,
    PreBindPlugin,
):
    """Reject nodes without the devices that the pod's claims ask for; reserve those of the node that is taken."""

    name = "DynamicResources"
    title = "Devices"
    reads = Aspect(0)
    """Of pods without claims, about which there is nothing to say."""
    REASON_NOT_FOUND = "cannot allocate all claims"
    REASON_INVALID_POOLS = "invalid resource pools were encountered"
    REASON_NOT_AVAILABLE = "resourceclaim not available on the node"
    REASON_LEFT_OVER = "cannot schedule extended resource claim"
    REASON_NOT_FITTING = "cannot fit resource"
    REASON_NO_CLAIMS = "no new claims to deallocate"
    REASON_NO_HELP = "still not schedulable"
    REASON_DEALLOCATED = "deallocation of ResourceClaim completed"
    REASON_DELETED = "deletion of ResourceClaim completed"
    REASON_NO_STATE = "not found"
    """kube-scheduler's words when an earlier PreFilter plugin rejected the pod, so that this one never saw it."""

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        timeouts = args if isinstance(args, DynamicResourcesArgs) else DynamicResourcesArgs()
        self._binding_timeout = math.inf if timeouts.binding_timeout is None else timeouts.binding_timeout
        seconds = timeouts.filter_timeout
        self._most_steps = math.floor(seconds * STEPS_PER_SECOND) if seconds else math.inf
        self._searches = PerCluster(KnownSearches)

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules) | ({"podGroupPostFilter"} if rules.has_pod_group_post_filter else frozenset())
        return points if rules.dynamic_resources_scores else points - {"score"}

    def sign(self, pod: PodView) -> Hashable:
        return None

    def varies(self, info: PodInfo, cluster: Cluster) -> bool:
        rules = self.release_rules
        if not rules.dynamic_resources_by_default:
            return False
        return bool(info.pod.spec.resource_claims) or (
            rules.device_extended_resources and asks_for_backed(info, cluster)
        )

    def concerns(self, info: PodInfo, cluster: Cluster) -> bool:
        return self.varies(info, cluster)

    # -- before filtering ------------------------------------------------------------------------------------------

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS

    def pre_enqueue_in(self, pod: Pod, cluster: Cluster) -> Status:
        try:
            if pod.spec.resource_claims and self.release_rules.dynamic_resources_by_default:
                claims_of(pod, cluster.store)
        except ClaimError as error:
            return Status.unresolvable(str(error))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        cluster = nodes.cluster
        state[self.name] = None
        if not self.varies(state.info, cluster):
            return PreFilterResult(SKIP)
        try:
            claims = claims_of(pod, cluster.store)
        except ClaimError as error:
            return PreFilterResult(Status.unresolvable(str(error)))
        devices = PodDevices(
            pod, state.info, claims, cluster, self.release_rules, self._searches.of(cluster), self._most_steps
        )
        if not devices.claims and devices.special is None and devices.left_over is None:
            return PreFilterResult(SKIP)
        for claim in devices.to_allocate:
            problem = _problem(claim, cluster)
            if problem:
                return PreFilterResult(Status.unresolvable(problem))
        state[self.name] = devices
        return PreFilterResult()

    # -- filtering -------------------------------------------------------------------------------------------------

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        if self.name not in state:
            return Verdict.choose(np.ones(len(nodes), dtype=np.int64), (Status.error(self.REASON_NO_STATE),))
        devices: PodDevices | None = state[self.name]
        if devices is None:
            return Verdict(np.zeros(len(nodes), dtype=np.int64), lambda code: SUCCESS)
        codes = devices.look_at(nodes, time.time(), self._binding_timeout)
        return Verdict(codes, lambda code: self._status(devices, code))

    def _status(self, devices: PodDevices, code: int) -> Status:
        if code < 0:
            return Status.error(devices.error_text(code))
        return Status.unresolvable(
            (
                self.REASON_NOT_FOUND,
                self.REASON_INVALID_POOLS,
                self.REASON_NOT_AVAILABLE,
                self.REASON_LEFT_OVER,
                self.REASON_NOT_FITTING,
            )[code - 1]
        )

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
        if self.name not in state:
            return PostFilterResult(Status.error(self.REASON_NO_STATE))
        devices: PodDevices | None = state[self.name]
        if devices is not None and devices.to_deallocate() is not None:
            return PostFilterResult(Status.unschedulable(self.REASON_DEALLOCATED))
        if devices is not None and devices.left_over is not None:
            return PostFilterResult(Status.unschedulable(self.REASON_DELETED))
        if self.release_rules.dynamic_resources_is_silent:
            return PostFilterResult(Status.unschedulable())
        return PostFilterResult(Status.unschedulable(self.REASON_NO_HELP if devices else self.REASON_NO_CLAIMS))

    # -- scoring ---------------------------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        devices: PodDevices | None = state.get(self.name)
        return np.zeros(len(nodes), dtype=np.int64) if devices is None else devices.ranks(nodes)

    # -- what may help ---------------------------------------------------------------------------------------------

    def events_to_register(self) -> Sequence[EventHint]:
        return EVENTS

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        if self.REASON_NOT_FOUND in rejected.status.reasons:
            yield from device_fixes(rejected, self.release_rules)

    # -- reserving -------------------------------------------------------------------------------------------------

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Let the next pod see the devices as taken; the claims themselves say so once the pod is bound."""
        devices: PodDevices | None = state.get(self.name)
        if devices is not None:
            devices.reserve(node_name)
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        devices: PodDevices | None = state.get(self.name)
        if devices is not None:
            devices.unreserve()

    def settle(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Write the devices into the claims, and the pod into their reservations."""
        devices: PodDevices | None = state.get(self.name)
        if devices is not None:
            devices.bind()

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        self.settle(state, pod, node_name)
        return SUCCESS

    def details(self, state: CycleState, pod: Pod, node_name: str) -> Mapping[str, Any]:
        """The devices that the pod would get on a node, in the shape `podium decide` writes."""
        devices: PodDevices | None = state.get(self.name)
        return {} if devices is None else devices.details(node_name)


def _problem(claim: ResourceClaim, cluster: Cluster) -> str:
    """Why a claim cannot be allocated on any node; empty if it might be."""
    pending = cluster.store.of(PendingAllocation).get(claim.name, claim.namespace)
    if pending is not None and pending.claim.metadata.uid == claim.metadata.uid:
        return f"resource claim {claim.key} is in the process of being allocated"
    classes = cluster.store.of(DeviceClass)
    for request, class_name in shape_of(claim.spec).classes():
        if classes.get(class_name) is None:
            return f"request {request}: device class {class_name} does not exist"
    return ""
