"""DynamicResources: places a pod with claims where its devices are, or where free devices can be allocated to it."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster, Nodes, PodInfo
from podium.cluster.cluster import PerCluster
from podium.cluster.columns import Ints
from podium.config.plugin_args import DynamicResourcesArgs
from podium.framework import Action, Change, EventHint, Obstacle, RejectedNodes, RejectedPod, WaitingPod
from podium.framework.fast_paths import ForSomePods, NormalizesByMax
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
from podium.framework.pod_group_points import FailedGroup, PodGroupPostFilterPlugin, PodGroupPostFilterResult
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
from podium.framework.suggested_change import ChangeTarget, evict, evict_few, evictable, taint_text
from podium.model import DeviceClass, Pod, PodSpec, ResourceClaim, Taint
from podium.model.devices import (
    EXACT_COUNT,
    AllocationResult,
    DeviceClaim,
    DeviceRequest,
    DeviceToleration,
    ResourceClaimStatus,
)
from podium.model.quantity import format_quantity
from podium.model.resources import PodResources
from podium.model.selectors import any_tolerates
from podium.plugins.dynamic_resources._device_search import (
    TIMED_OUT,
    DeviceTally,
    KnownSearches,
    is_of_class,
    shortage_on,
    shortage_text,
    tallies_of,
)
from podium.plugins.dynamic_resources.extended_resources import asks_for_backed
from podium.plugins.dynamic_resources.inventory import Inventory, PendingAllocation, inventory_of, refused_field
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.dynamic_resources.pools import DeviceID
from podium.plugins.dynamic_resources.requests import (
    ClaimError,
    Option,
    resource_claim_name,
    resource_claims_of,
    shape_of,
)
from podium.rules import Rules
from podium.wording import counted

FEWER, TOLERATED, UNSELECTED, UNCONSTRAINED, RECLASSED = 3, 2, 4, 4, 5
"""The size of each kind of change."""
MOST_CLASSES = 3
"""The maximum number of other classes suggested for a request."""

ClaimEdit = Callable[[DeviceClaim], DeviceClaim]


class _Asked(NamedTuple):
    """A claim to allocate, and how to name it in a sentence."""

    claim: ResourceClaim
    name: str
    """`claim ns/name`, or the template that it was made from."""

    def change(self, kind: str, text: str, size: int, edit: ClaimEdit) -> Change:
        """A change that edits the claim."""
        claim = self.claim

        def edited(before: ResourceClaim) -> ResourceClaim:
            return replace(before, spec=replace(before.spec, devices=edit(before.spec.devices)))

        def apply(to: ChangeTarget) -> None:
            to.edit_object(claim, edited)

        return Change(kind, f"{text} of {self.name}", (f"resourceclaim/{claim.key}",), size, apply)


def device_fixes(rejected: RejectedPod, rules: Rules) -> Iterator[Change]:
    """Changes that may each get the pod its devices on the node; only a decision with them can tell."""
    cluster, row = rejected.cluster, rejected.cluster.rows[rejected.node]
    inventory = inventory_of(cluster, rules)
    for asked in _asked_for(rejected.pod, cluster, rules):
        if asked.claim.status.allocation is not None:
            yield from evict_few(_reserving(asked.claim, cluster))
            continue
        by_request = list(tallies_of(inventory, cluster, shape_of(asked.claim.spec, rules), row))
        are_met = all(any(tally.is_enough for tally in tallies) for tallies in by_request)
        for tally in (tally for tallies in by_request for tally in tallies):
            if are_met or not tally.is_enough:
                yield from _other_requests(asked, tally, inventory, row, cluster, are_met=are_met)
        yield from _without_constraints(asked)
    yield from (evict([pod]) for pod in _holders(cluster, inventory, rejected.node))


def _asked_for(pod: Pod, cluster: Cluster, rules: Rules) -> Iterator[_Asked]:
    """The claims of a pod that exist."""
    for reference in pod.spec.resource_claims:
        try:
            name = resource_claim_name(pod, reference)
        except ClaimError:
            continue
        claim = None if name is None else cluster.store.of(ResourceClaim).get(name, pod.namespace)
        if claim is not None and not refused_field(claim.spec, rules):
            template = reference.resource_claim_template_name
            yield _Asked(claim, f"claim template {pod.namespace}/{template}" if template else f"claim {claim.key}")


def _other_requests(
    asked: _Asked, tally: DeviceTally, inventory: Inventory, row: int, cluster: Cluster, *, are_met: bool
) -> Iterator[Change]:
    """Changes of a request that may help; `are_met` tells that every request could be met alone."""
    option = tally.option
    yield from _fewer(asked, tally, are_met=are_met)
    yield from _less_capacity(asked, option, inventory, row)
    for taint in _in_the_way(option, inventory, row, cluster):
        yield _tolerating(asked, option, taint)
    for place, expression in enumerate(option.expressions):
        yield asked.change(
            "drop-selector",
            f"drop the selector {expression!r} in request {option.name}",
            UNSELECTED,
            _without_selector(option, place),
        )
    for name in _other_classes(option, inventory, row, cluster):
        text = f"ask for class {name} in request {option.name}"
        yield asked.change("change-class", text, RECLASSED, _with(option, device_class_name=name))


def _fewer(asked: _Asked, tally: DeviceTally, *, are_met: bool) -> Iterator[Change]:
    """Request as many devices as are left, or one less if requests compete with each other."""
    option = tally.option
    wanted = tally.there - tally.unselected if option.is_all else option.count
    number = wanted - 1 if are_met else min(tally.left, wanted - 1)
    if number >= 1:
        what = "all" if option.is_all else str(wanted)
        text = f"ask for {counted(number, 'device')} instead of {what} in request {option.name}"
        edit = _with(option, allocation_mode=EXACT_COUNT, count=number)
        yield asked.change("fewer-devices", text, FEWER, edit)


def _less_capacity(asked: _Asked, option: Option, inventory: Inventory, row: int) -> Iterator[Change]:
    """Request as much capacity as the device with the most capacity left has."""
    requests = {name: amount.text for name, amount in option.capacity.items()}
    for name, amount in option.capacity.items():
        left = max(
            (
                each.device.capacity[name].value.value - inventory.in_use.consumed.get(each.device.id, {}).get(name, 0)
                for each in inventory.pools_of(row).candidates
                if name in each.device.capacity
            ),
            default=0,
        )
        if 0 < left < amount.value and left.denominator == 1:
            less = format_quantity(int(left), binary=amount.text.endswith("i"))
            text = f"ask for {less} of {name} instead of {amount.text} in request {option.name}"
            yield asked.change("less-capacity", text, FEWER, _with_capacity(option, {**requests, name: less}))


def _in_the_way(option: Option, inventory: Inventory, row: int, cluster: Cluster) -> list[Taint]:
    """The taints of the node's devices that a request does not tolerate, without repetition."""
    found = [
        taint
        for each in inventory.pools_of(row).candidates
        if is_of_class(each, option.class_name, inventory, cluster)
        for taint in each.device.taints
        if not any_tolerates(option.tolerations, taint)
    ]
    return [taint for place, taint in enumerate(found) if taint not in found[:place]]


def _tolerating(asked: _Asked, option: Option, taint: Taint) -> Change:
    operator = "Equal" if taint.value else "Exists"
    added = DeviceToleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect)
    text = f"tolerate the device taint {taint_text(taint)} in request {option.name}"
    return asked.change("tolerate-device", text, TOLERATED, _with(option, tolerations=[*option.tolerations, added]))


def _other_classes(option: Option, inventory: Inventory, row: int, cluster: Cluster) -> list[str]:
    """A few other classes with free devices on the node that a request might use."""
    free = [each for each in inventory.pools_of(row).candidates if each.device.id not in inventory.in_use.exclusively]
    found = [
        each.name
        for each in sorted(cluster.store.of(DeviceClass), key=lambda each: each.name)
        if each.name != option.class_name and any(is_of_class(one, each.name, inventory, cluster) for one in free)
    ]
    return found[:MOST_CLASSES]


def _without_constraints(asked: _Asked) -> Iterator[Change]:
    for place, constraint in enumerate(asked.claim.spec.devices.constraints):
        kind = "matchAttribute" if constraint.match_attribute else "distinctAttribute"
        name = constraint.match_attribute or constraint.distinct_attribute

        def edit(before: DeviceClaim, place: int = place) -> DeviceClaim:
            kept = [each for number, each in enumerate(before.constraints) if number != place]
            return replace(before, constraints=kept)

        yield asked.change("drop-constraint", f"drop the constraint {kind} {name}", UNCONSTRAINED, edit)


# -- edits of a claim ----------------------------------------------------------------------------------------------


def _edit_request(option: Option, edit: Callable[[Any], Any]) -> ClaimEdit:
    """Edit the request, or the alternative of a request, of an option."""

    def edit_one(request: DeviceRequest) -> DeviceRequest:
        if request.name != option.request_name:
            return request
        if request.exactly is not None:
            return replace(request, exactly=edit(request.exactly))
        alternatives = [edit(each) if each.name == option.subrequest_name else each for each in request.first_available]
        return replace(request, first_available=alternatives)

    return lambda before: replace(before, requests=[edit_one(request) for request in before.requests])


def _with(option: Option, **fields: Any) -> ClaimEdit:
    return _edit_request(option, lambda before: replace(before, **fields))


def _with_capacity(option: Option, requests: dict[str, str]) -> ClaimEdit:
    return _edit_request(option, lambda before: replace(before, capacity=replace(before.capacity, requests=requests)))


def _without_selector(option: Option, place: int) -> ClaimEdit:
    def edit(before: Any) -> Any:
        return replace(before, selectors=[each for number, each in enumerate(before.selectors) if number != place])

    return _edit_request(option, edit)


# -- who has the devices -------------------------------------------------------------------------------------------


def _holders(cluster: Cluster, inventory: Inventory, node: str) -> list[Pod]:
    """The evictable pods whose claims have devices that the node can use."""
    candidates = inventory.pools_of(cluster.rows[node]).candidates
    usable = {candidate.device.id for candidate in candidates}
    consumers = {
        consumer.uid
        for claim in cluster.store.of(ResourceClaim)
        if claim.status.allocation is not None and not usable.isdisjoint(_devices(claim.status.allocation))
        for consumer in claim.status.reserved_for
    }
    return [pod for pod in evictable(cluster, node) if pod.metadata.uid in consumers]


def _reserving(claim: ResourceClaim, cluster: Cluster) -> list[Pod]:
    """The pods that a claim is reserved for."""
    uids = {each.uid for each in claim.status.reserved_for}
    return [pod for pod, _ in cluster.placed() if pod.metadata.uid in uids]


def _devices(allocation: AllocationResult) -> Iterator[DeviceID]:
    return (DeviceID(each.driver, each.pool, each.device) for each in allocation.devices.results)


ADD, UPDATE, DELETE = Action.ADD, Action.UPDATE, Action.DELETE


def claim_changed(rules: Rules, waiting: WaitingPod, old: ResourceClaim | None, new: ResourceClaim | None) -> bool:
    """Whether a claim of the pod was added or changed its status, or some claim released its devices."""
    if new is None:
        return old is not None and old.status.allocation is not None
    try:
        claims = resource_claims_of(waiting.pod, waiting.cluster.store, rules)
    except ClaimError:
        return False
    if old is not None and old.status.allocation is not None and new.status.allocation is None:
        return True
    if all(claim.metadata.uid != new.metadata.uid for claim in claims):
        return False
    return old is None or old.status != new.status


def claims_are_there(rules: Rules, waiting: WaitingPod, old: Pod | None, new: Pod | None) -> bool:
    """Whether the waiting pod's status names the claims made for it, and they exist."""
    if new is None or not waiting.is_same(new):
        return False
    try:
        resource_claims_of(new, waiting.cluster.store, rules)
    except ClaimError:
        return False
    return True


def events(rules: Rules) -> Sequence[EventHint]:
    """The events of a release; a taint rule counts as a change of the slices whose devices it taints."""
    of_claims = ADD | UPDATE | (DELETE if rules.deleted_claims_free_devices else Action(0))
    return (
        EventHint("Node", ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        EventHint("ResourceClaim", of_claims, partial(claim_changed, rules)),
        EventHint("Pod", Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, partial(claims_are_there, rules)),
        EventHint("DeviceClass", ADD | UPDATE),
        EventHint("ResourceSlice", ADD | UPDATE),
        EventHint("DeviceTaintRule", ADD | UPDATE | DELETE),
    )


STEPS_PER_SECOND = 100_000
"""Search steps per second of the filter's timeout. Steps are counted so that a decision is the same on any machine."""


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
    REASON_GROUP_DEALLOCATED = "deallocation and deletion of ResourceClaims completed"
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

    # -- before filtering ------------------------------------------------------------------------------------------

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
        devices = PodDevices(
            pod, state.info, claims, cluster, self.release_rules, self._searches.of(cluster), self._most_steps
        )
        if not devices.claims and devices.special is None and devices.left_over is None:
            return SKIPPED
        for claim in devices.to_allocate:
            problem = _problem(claim, cluster, self.release_rules)
            if problem:
                return PreFilterResult(Status.unresolvable(problem))
        state[self.name] = devices
        return PASSED

    # -- filtering -------------------------------------------------------------------------------------------------

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
        return PodGroupPostFilterResult(Status.unschedulable(self.REASON_GROUP_DEALLOCATED))

    # -- scoring ---------------------------------------------------------------------------------------------------

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        devices = self.searched(state)
        return np.zeros(len(nodes), dtype=np.int64) if devices is None else devices.ranks(nodes)

    def searched(self, state: CycleState) -> PodDevices | None:
        """The pod's devices, if Filter searches for them: a profile may leave it out."""
        return state.get(self.name) if "filter" in self.runs_at else None

    # -- what may help ---------------------------------------------------------------------------------------------

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

    # -- reserving -------------------------------------------------------------------------------------------------

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
        self.settle(state, pod, node_name)
        return SUCCESS

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
