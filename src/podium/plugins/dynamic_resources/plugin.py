"""DynamicResources: places a pod with claims where its devices are, or where free devices can be allocated to it."""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterator, Mapping, Sequence, Set
from typing import Any

import numpy as np
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.cluster import PerCluster
from podium.cluster.columns import Ints
from podium.config.plugin_args import DynamicResourcesArgs
from podium.framework import Change, EventHint, Obstacle, RejectedNodes, RejectedPod
from podium.framework.fast_paths import ForSomePods, NormalizesByMax
from podium.framework.obstacle import SpecPart
from podium.framework.plugin import (
    CycleState,
    FilterPlugin,
    PodView,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    ReservePlugin,
)
from podium.framework.pod_group_points import (
    GROUP_CYCLE,
    FailedGroup,
    PodGroupPostFilterPlugin,
    PodGroupPostFilterResult,
)
from podium.framework.status import (
    PASSED,
    SKIPPED,
    SUCCESS,
    ObjectChange,
    PostFilterResult,
    PreFilterResult,
    Status,
    Verdict,
)
from podium.model import DeviceClass, Pod, PodSpec, ResourceClaim
from podium.model.devices import ResourceClaimStatus
from podium.model.resources import PodResources
from podium.plugins.dynamic_resources._device_search import TIMED_OUT
from podium.plugins.dynamic_resources._search_results import KnownSearches
from podium.plugins.dynamic_resources._shortage import shortage_on, shortage_text
from podium.plugins.dynamic_resources.device_fixes import device_fixes
from podium.plugins.dynamic_resources.device_hints import events
from podium.plugins.dynamic_resources.devices_in_use import PendingAllocation
from podium.plugins.dynamic_resources.extended_resources import asks_for_backed
from podium.plugins.dynamic_resources.group_claims import give_back_devices
from podium.plugins.dynamic_resources.pod_claims import ClaimError, resource_claims_of
from podium.plugins.dynamic_resources.pod_devices import GroupPending, PodDevices
from podium.plugins.dynamic_resources.requests import FIRST_AVAILABLE_DEVICE_REQUEST_MAX_SIZE, shape_of
from podium.rules import Rules

STEPS_PER_SECOND = 250_000
"""How many devices are tried per second of the filter's timeout, a CEL expression's work included. They are counted so
that a decision is the same on any machine.
"""


class DynamicResources(
    ForSomePods,
    PreEnqueuePlugin,
    PreFilterPlugin,
    FilterPlugin,
    PostFilterPlugin,
    NormalizesByMax,
    ReservePlugin,
    PreBindPlugin,
    PodGroupPostFilterPlugin,
):
    """Reject nodes without the devices that the pod's claims request; reserve the devices on the chosen node."""

    name = "DynamicResources"
    title = "Devices"
    constraint = SpecPart.DEVICES
    reads = Aspect(0)
    """For pods without claims, the result depends on nothing."""
    REASON_NOT_FOUND = "cannot allocate all claims"
    REASON_INVALID_POOLS = "invalid resource pools were encountered"
    REASON_NOT_AVAILABLE = "resourceclaim not available on the node"
    REASON_LEFT_OVER = "cannot schedule extended resource claim"
    REASON_NOT_FITTING = "cannot fit resource"
    NO_CLAIMS = PostFilterResult(Status.unschedulable("no new claims to deallocate"))
    NO_HELP = PostFilterResult(Status.unschedulable("still not schedulable"))
    REASON_DEALLOCATED = "deallocation of ResourceClaim completed"
    REASON_DELETED = "deletion of ResourceClaim completed"
    REASON_NO_STATE = "not found"
    """kube-scheduler's words when this plugin never saw the pod: PreFilter ended before it, or the profile
    leaves it out.
    """
    REASON_NOT_SEARCHED = "claim allocation not found for node"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        timeouts = args if isinstance(args, DynamicResourcesArgs) else DynamicResourcesArgs()
        self.binding_timeout = math.inf if timeouts.binding_timeout is None else timeouts.binding_timeout
        seconds = timeouts.filter_timeout
        self._most_steps = math.floor(seconds * STEPS_PER_SECOND) if seconds else math.inf
        self._searches = PerCluster(KnownSearches)

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules) | ({"podGroupPostFilter"} if rules.has_pod_group_post_filter else frozenset())
        return points if rules.dynamic_resources_scores else points - {"score"}

    @property
    def needs(self) -> Set[tuple[str, str]]:
        rules = self.release_rules
        if not rules.dynamic_resources_by_default:
            return frozenset()
        scores = ("score",) if rules.device_alternatives else ()
        return frozenset((point, "preFilter") for point in ("filter", *scores, "reserve"))

    def sign(self, pod: PodView) -> Hashable:
        return None

    def varies(self, info: PodInfo, cluster: Cluster) -> bool:
        return self._allocates_for(info.pod.spec, info.resources, cluster)

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return self._allocates_for(pod.spec, pod.resources, cluster)

    def _allocates_for(self, spec: PodSpec, resources: PodResources, cluster: Cluster) -> bool:
        """Whether the pod has claims, or requests an extended resource that devices provide."""
        rules = self.release_rules
        if not rules.dynamic_resources_by_default:
            return False
        return bool(spec.resource_claims) or (rules.device_extended_resources and asks_for_backed(resources, cluster))

    def pre_enqueue(self, pod: Pod) -> Status:
        return SUCCESS

    def pre_enqueue_in(self, pod: Pod, cluster: Cluster) -> Status:
        try:
            if pod.spec.resource_claims and self.release_rules.dynamic_resources_by_default:
                resource_claims_of(pod, cluster.store, self.release_rules)
        except ClaimError as error:
            return Status.unresolvable(str(error))
        return SUCCESS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        cluster = nodes.cluster
        state[self.name] = None
        if not self.varies(state.info, cluster):
            return SKIPPED
        try:
            claims = resource_claims_of(pod, cluster.store, self.release_rules)
        except ClaimError as error:
            return PreFilterResult(Status.unresolvable(str(error)))
        group_state: dict[str, Any] | None = state.get(GROUP_CYCLE)
        shared: GroupPending | None = None if group_state is None else group_state.setdefault(self.name, {})
        searches = self._searches.of(cluster)
        devices = PodDevices(pod, state.info, claims, cluster, self.release_rules, searches, self._most_steps, shared)
        if not devices.claims and devices.special is None and devices.left_over is None:
            return SKIPPED
        for claim in devices.to_search:
            problem = _problem(claim, cluster, self.release_rules)
            if problem:
                return PreFilterResult(Status.unresolvable(problem))
        state[self.name] = devices
        return PASSED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        devices: PodDevices | None = state.get(self.name)
        if devices is None:
            return Verdict(np.zeros(len(nodes), dtype=np.int64), lambda code: SUCCESS)
        codes = devices.look_at(nodes, self.binding_timeout)
        return Verdict(codes, lambda code: self._status(devices, code))

    def _status(self, devices: PodDevices, code: int) -> Status:
        if code < 0:
            return Status.error(devices.error_text(code))
        return Status.unresolvable(
            (
                self.REASON_NOT_FOUND,
                self.REASON_INVALID_POOLS,
                TIMED_OUT,
                self.REASON_NOT_AVAILABLE,
                self.REASON_LEFT_OVER,
                self.REASON_NOT_FITTING,
            )[code - 1]
        )

    def lacks_devices(self, status: Status) -> bool:
        """Whether a node was rejected because it has too few free devices."""
        return status.plugin == self.name and status.reasons == (self.REASON_NOT_FOUND,)

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
        never_sees_it = self.release_rules.dynamic_resources_by_default and "preFilter" not in self.runs_at
        if never_sees_it or self.name not in state:
            return PostFilterResult(Status.error(self.REASON_NO_STATE))
        devices: PodDevices | None = state[self.name]
        claim = None if devices is None else devices.to_deallocate()
        if claim is not None:
            change = ObjectChange(claim, replace(claim, status=ResourceClaimStatus()))
            return PostFilterResult(Status.unschedulable(self.REASON_DEALLOCATED), changes=(change,))
        if devices is not None and devices.left_over is not None:
            change = ObjectChange(devices.left_over, None)
            return PostFilterResult(Status.unschedulable(self.REASON_DELETED), changes=(change,))
        if self.release_rules.dynamic_resources_is_silent:
            return PostFilterResult(Status.unschedulable())
        return self.NO_HELP if devices else self.NO_CLAIMS

    def pod_group_post_filter(self, failed: FailedGroup) -> PodGroupPostFilterResult:
        rules = self.release_rules
        has_topology = rules.pod_group_placements and failed.group.spec.scheduling_constraints is not None
        if not rules.dynamic_resources_by_default or has_topology:
            return PodGroupPostFilterResult(Status.unschedulable())
        if not failed.was_seen_by(self.name):
            return PodGroupPostFilterResult(Status.error(self.REASON_NO_STATE))
        return give_back_devices(self.name, failed, rules)

    # -- scoring ---------------------------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        devices = self.searched(state)
        return np.zeros(len(nodes), dtype=np.int64) if devices is None else devices.ranks(nodes)

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        devices = self.searched(state)
        ranked = [] if devices is None else devices.ranked_on(node.name)
        if not ranked:
            return ["no request has alternatives: 0"]
        lines = [f"{claim} gets the alternative {request}: {points}" for claim, request, points in ranked]
        most = FIRST_AVAILABLE_DEVICE_REQUEST_MAX_SIZE
        total = sum(points for *_, points in ranked)
        return [*lines, f"the sum, with {most} for a first alternative and {most - 1} for a second: {total}"]

    def searched(self, state: CycleState) -> PodDevices | None:
        """The pod's devices, if Filter searches for them: a profile may leave it out."""
        return state.get(self.name) if "filter" in self.runs_at else None

    def events_to_register(self) -> Sequence[EventHint]:
        return events(self.release_rules)

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        pod, cluster, rules = rejected.pod, rejected.cluster, self.release_rules
        try:
            claims = resource_claims_of(pod, cluster.store, rules)
        except ClaimError:
            return {}
        devices = PodDevices(pod, cluster.info_of(pod), claims, cluster, rules, KnownSearches(), 0)
        found = {}
        for node, status in rejected.statuses.items():
            if self.REASON_NOT_AVAILABLE in status.reasons:
                found[node] = _elsewhere(devices, node)
            elif shapes := devices.shapes_on(node):
                found[node] = shortage_text(shortage_on(cluster, rules, shapes, cluster.rows[node]), node)
        return {node: [Obstacle("device", sentence)] for node, sentence in found.items() if sentence}

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        if self.release_rules.dynamic_resources_by_default:
            yield from device_fixes(rejected, self.release_rules)

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Make the devices count as taken for the next pod; the claims themselves record them once the pod is bound."""
        devices: PodDevices | None = state.get(self.name)
        if devices is None:
            return SUCCESS
        if self.searched(state) is not None:
            devices.reserve(node_name)
        elif devices.to_allocate:
            return Status.error(self.REASON_NOT_SEARCHED)
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
        devices: PodDevices | None = state.get(self.name)
        problem = "" if devices is None else devices.bind()
        return Status.error(problem) if problem else SUCCESS

    def details(self, state: CycleState, pod: Pod, node_name: str) -> Mapping[str, Any]:
        """The devices that the pod would get on a node, in the shape `podium decide` writes."""
        devices = self.searched(state)
        return {} if devices is None else devices.details(node_name)


def _problem(claim: ResourceClaim, cluster: Cluster, rules: Rules) -> str:
    """Why a claim cannot be allocated on any node; empty if it might be."""
    pending = cluster.store.of(PendingAllocation).get(claim.name, claim.namespace)
    if pending is not None and pending.claim.metadata.uid == claim.metadata.uid:
        return f"resource claim {claim.key} is in the process of being allocated"
    classes = cluster.store.of(DeviceClass)
    for request in shape_of(claim.spec, rules).requests:
        for option in request.options:
            if classes.get(option.class_name) is None:
                return f"request {option.name}: device class {option.class_name} does not exist"
    return ""


def _elsewhere(devices: PodDevices, node: str) -> str:
    names = [claim.key for claim in devices.unavailable_on(node)]
    return f"{', '.join(names)}: the devices it has cannot be used on {node}" if names else ""
