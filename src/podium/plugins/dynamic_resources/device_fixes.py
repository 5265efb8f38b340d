"""The changes that may get a rejected pod its devices."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.framework import Change, RejectedPod
from podium.framework.suggested_change import ChangeTarget, evict, evict_few, evictable, taint_text
from podium.model import DeviceClass, Pod, ResourceClaim, Taint
from podium.model.devices import EXACT_COUNT, AllocationResult, DeviceClaim, DeviceRequest, DeviceToleration
from podium.model.quantity import format_quantity
from podium.model.selectors import any_tolerates
from podium.plugins.dynamic_resources._shortage import DeviceTally, is_of_class, tallies_of
from podium.plugins.dynamic_resources.inventory import Inventory, inventory_of
from podium.plugins.dynamic_resources.kept_fields import refused_field
from podium.plugins.dynamic_resources.pod_claims import ClaimError, resource_claim_name
from podium.plugins.dynamic_resources.pools import DeviceID
from podium.plugins.dynamic_resources.requests import Option, shape_of
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
