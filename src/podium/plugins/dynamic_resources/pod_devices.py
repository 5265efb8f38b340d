"""The claims of one pod during one decision: which nodes can satisfy them, and which devices are allocated."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cached_property
from typing import Any

import msgspec
import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster, Nodes, PodInfo
from podium.cluster.columns import Ints, Mask
from podium.cluster.store import EXTENDED_RESOURCE_CLAIM
from podium.model import ObjectMeta, OwnerReference, Pod, PodGroup, ResourceClaim
from podium.model.devices import AllocationResult, ResourceClaimConsumerReference
from podium.model.selectors import NodeMatcher, node_terms
from podium.plugins.dynamic_resources._allocation import allocation_of
from podium.plugins.dynamic_resources._device_search import FAILED, AllocationError
from podium.plugins.dynamic_resources._search_results import KnownSearches, SearchResults
from podium.plugins.dynamic_resources.binding_conditions import is_unusable
from podium.plugins.dynamic_resources.devices_in_use import PendingAllocation
from podium.plugins.dynamic_resources.extended_resources import (
    ExtendedRequests,
    backed_resources,
    extended_claim,
    extended_requests,
)
from podium.plugins.dynamic_resources.inventory import inventory_of
from podium.plugins.dynamic_resources.pod_claims import resource_claim_name
from podium.plugins.dynamic_resources.requests import Shapes, shape_of
from podium.rules import Rules

NOT_AVAILABLE, LEFT_OVER, NOT_FITTING = 4, 5, 6
"""Codes of a verdict, in addition to those of a search: NOT_FOUND, INVALID_POOLS and TIMEOUT."""

OPTIONAL_NODE_OPERATIONS = "DRAOptionalNodeOperations"
"""The feature that a node must declare for allocations that skip some of its operations."""

GROUP_API, POD_GROUPS = "scheduling.k8s.io", "podgroups"
"""The API group and the resource of a PodGroup that a claim is reserved for."""

GroupPending = dict[str, set[str]]
"""By the uid of a claim whose allocation is pending in the cycle of a group, the uids of the pods that share it."""

Delegated = tuple[str, ...]
"""The extended resources for which a node has no device plugin, so that devices must provide them."""


class PodDevices:
    """The state of a pod's devices, from PreFilter to PreBind."""

    def __init__(
        self,
        pod: Pod,
        info: PodInfo,
        claims: list[ResourceClaim],
        cluster: Cluster,
        rules: Rules,
        searches: KnownSearches,
        most_steps: float,
        shared: GroupPending | None = None,
    ) -> None:
        """`shared` are the allocations that pods of the same group reserved in this cycle."""
        self._pod, self._cluster, self._rules = pod, cluster, rules
        self._searches, self._most_steps = searches, most_steps
        self._shared = shared
        self.claims = claims
        self.pending = self._find_pending()
        """By name, the claims that another pod of the group got devices for in this cycle."""
        self.to_allocate = [claim for claim in claims if claim.status.allocation is None]
        self.to_search = [claim for claim in self.to_allocate if claim.name not in self.pending]
        asked = extended_requests(info.resources) if rules.device_extended_resources else {}
        self._classes = backed_resources(cluster) if asked else {}
        self._asked = asked if any(name in self._classes for name in asked) else {}
        self.left_over = self._find_left_over() if self._asked else None
        """A claim for extended resources that an earlier attempt left behind."""
        self.special = _special_claim(pod) if self._asked and self.left_over is None else None
        """A placeholder for the claim of extended resources, whose requests differ from node to node."""
        self._on_node: dict[Delegated, ExtendedRequests] = {}
        self._errors: list[AllocationError] = []
        self._in_the_way: dict[str, ResourceClaim] = {}
        """Claims whose devices cannot be used on a node where other devices could be."""
        self._found: dict[str, list[PendingAllocation]] = {}
        """By node, what Reserve decided there: a later search must not change it."""
        self._reserved: list[PendingAllocation] = []
        self._bound: list[tuple[ResourceClaim | None, ResourceClaim]] = []
        """Claims before and after the pod was bound; None for a claim that was created for it."""

    def _find_pending(self) -> dict[str, PendingAllocation]:
        known = self._cluster.store.of(PendingAllocation)
        found = {}
        for claim in self.claims if self._shared else ():
            pending = known.get(claim.name, claim.namespace)
            is_shared = self._shared is not None and claim.metadata.uid in self._shared
            if claim.status.allocation is None and pending is not None and is_shared:
                found[claim.name] = pending
        return found

    def _find_left_over(self) -> ResourceClaim | None:
        """A claim created for this pod's extended resources by an earlier attempt."""
        for claim in self._cluster.store.of(ResourceClaim):
            if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) == "true" and any(
                owner.name == self._pod.name and owner.controller and owner.uid == self._pod.metadata.uid
                for owner in claim.metadata.owner_references
            ):
                return claim if claim.spec.devices.requests else None
        return None

    # -- filtering -------------------------------------------------------------------------------------------------

    def look_at(self, nodes: Nodes, binding_timeout: float) -> Ints:
        """A code per node: 0 if the pod can have its devices, negative if the search failed."""
        codes = np.zeros(len(nodes), dtype=np.int64)
        if self.left_over is not None:
            codes[:] = LEFT_OVER
            return codes
        unavailable = self._unavailable(nodes, binding_timeout)
        for delegated, places in self._by_delegated(nodes):
            if delegated is None:
                codes[places] = NOT_FITTING
                continue
            results = self._results(delegated)
            if results is None:
                continue
            rows = nodes.rows[places]
            results.look_at(rows, self._cluster, inventory_of(self._cluster, self._rules), self._most_steps)
            found = results.codes[rows]
            for place in np.flatnonzero(found == FAILED).tolist():
                self._errors.append(results.errors[int(rows[place])])
                found[place] = -len(self._errors)
            codes[places] = found
        passing = codes == 0
        for claim, mask in unavailable:
            if (mask & passing).any():
                codes[mask & passing] = NOT_AVAILABLE
                self._in_the_way[claim.name] = claim
        return codes

    def error_text(self, code: int) -> str:
        error = self._errors[-code - 1]
        if error.claim is None:
            return error.message
        claims = [*self.to_search, *([self.special] if self.special else [])]
        return f"claim {claims[error.claim].key}{':' if error.is_of_claim else ','} {error.message}"

    def _unavailable(self, nodes: Nodes, binding_timeout: float) -> list[tuple[ResourceClaim, Mask]]:
        """Per allocated claim, the nodes where its devices cannot be used."""
        found = []
        for claim in self.claims:
            pending = self.pending.get(claim.name)
            allocation = claim.status.allocation if pending is None else pending.allocation
            if allocation is None:
                continue
            unavailable = np.zeros(len(nodes), dtype=np.bool_)
            if allocation.node_selector is not None:
                unavailable = ~nodes.matching(NodeMatcher((), node_terms(allocation.node_selector)))
            if self._rules.device_alpha_fields_are_refused and _skips_node_operations(allocation):
                unavailable |= ~np.array([self._allows_skipping(name) for name in nodes.names], dtype=np.bool_)
            if self._rules.device_binding_conditions and is_unusable(claim, self._cluster.time(), binding_timeout):
                unavailable[:] = True
            found.append((claim, unavailable))
        return found

    def _allows_skipping(self, node_name: str) -> bool:
        return OPTIONAL_NODE_OPERATIONS in self._cluster.node(node_name).status.declared_features

    def _by_delegated(self, nodes: Nodes) -> list[tuple[Delegated | None, Ints]]:
        """The nodes, grouped by the extended resources that devices must provide there; None where nothing can provide
        them.
        """
        everywhere = np.arange(len(nodes))
        if not self._asked:
            return [((), everywhere)]
        backed = sorted(name for name in self._asked if name in self._classes)
        numbers = np.zeros(len(nodes), dtype=np.int64)
        for bit, name in enumerate(backed):
            numbers |= (nodes.allocatable(name) == 0).astype(np.int64) << bit
        for name in self._asked.keys() - self._classes.keys():
            unknown = [name not in self._cluster.node(node).allocatable for node in nodes.names]
            numbers[unknown] = -1
        groups: list[tuple[Delegated | None, Ints]] = []
        for number in np.unique(numbers).tolist():
            names = None if number < 0 else tuple(name for bit, name in enumerate(backed) if number >> bit & 1)
            groups.append((names, everywhere[numbers == number]))
        return groups

    def _results(self, delegated: Delegated) -> SearchResults | None:
        """The search on nodes where devices must provide these resources; None if there is nothing to search."""
        shapes = self._shapes(delegated)
        return self._searches.of(shapes, self._most_steps) if shapes else None

    def _shapes(self, delegated: Delegated) -> Shapes:
        """The claim shapes to search where devices must provide these resources."""
        shapes = [shape_of(claim.spec, self._rules) for claim in self.to_search]
        if self.special is not None and (delegated or self.claims):
            shapes.append(shape_of(self._extended(delegated).spec, self._rules))
        return tuple(shapes)

    def shapes_on(self, node_name: str) -> Shapes:
        """The claim shapes to search on a node."""
        ((delegated, _),) = self._by_delegated(self._only(node_name))
        return self._shapes(delegated) if delegated is not None else ()

    def unavailable_on(self, node_name: str) -> list[ResourceClaim]:
        """The claims whose devices cannot be used on a node, because of the node."""
        node = self._cluster.node(node_name)
        selectors = [(claim, claim.status.allocation.node_selector) for claim in self.claims if claim.status.allocation]
        return [
            claim
            for claim, selector in selectors
            if selector and not NodeMatcher((), node_terms(selector)).matches(node.metadata.labels, node_name)
        ]

    def _only(self, node_name: str) -> Nodes:
        return Nodes(self._cluster, np.array([self._cluster.rows[node_name]]))

    def _extended(self, delegated: Delegated) -> ExtendedRequests:
        found = self._on_node.get(delegated)
        if found is None:
            found = self._on_node[delegated] = extended_claim(self._pod, delegated, self._classes)
        return found

    # -- scoring ---------------------------------------------------------------------------------------------------

    def ranks(self, nodes: Nodes) -> Ints:
        """The rank of the alternatives that the requests get on each node; 0 if there is nothing to allocate."""
        ranks = np.zeros(len(nodes), dtype=np.int64)
        for delegated, places in self._by_delegated(nodes):
            results = None if delegated is None else self._results(delegated)
            if results is not None:
                ranks[places] = results.ranks[nodes.rows[places]] + self._rank_of_allocated
        return ranks

    @cached_property
    def _rank_of_allocated(self) -> int:
        """The rank of the claims that already have their devices."""
        return sum(
            shape_of(claim.spec, self._rules).rank(result.request for result in claim.status.allocation.devices.results)
            for claim in self.claims
            if claim.status.allocation is not None
        )

    def ranked_on(self, node_name: str) -> list[tuple[str, str, int]]:
        """The parts of a node's rank: claims, the alternatives they get there, and points."""
        pending = [(each.claim, each.allocation) for each in self.allocations_on(node_name)]
        known = [(claim, claim.status.allocation) for claim in self.claims if claim.status.allocation is not None]
        return [
            (claim.name, request, points)
            for claim, allocation in (*pending, *known)
            for request, points in shape_of(claim.spec, self._rules).ranked(
                each.request for each in allocation.devices.results
            )
        ]

    # -- the node that is taken ------------------------------------------------------------------------------------

    def allocations_on(self, node_name: str) -> list[PendingAllocation]:
        """The allocation of each claim without devices on a node. A claim that the pod lists twice gets devices twice,
        but only the first or the last allocation counts.
        """
        (group,) = self._by_delegated(self._only(node_name))
        results = None if group[0] is None else self._results(group[0])
        if results is None:
            return []
        claims = [*self.to_search, *([self.special] if self.special else [])]
        if self.special is not None and group[0] is not None:
            claims[-1] = replace(self.special, spec=self._extended(group[0]).spec)
        found: dict[str, PendingAllocation] = {}
        for claim, taken in zip(claims, results.solutions[self._cluster.rows[node_name]], strict=True):
            allocation = allocation_of(taken, node_name, claim.metadata.uid)
            made = PendingAllocation(metadata=claim.metadata, claim=claim, allocation=allocation)
            if claim.name not in found or not self._rules.first_allocation_of_a_claim_counts:
                found[claim.name] = made
        return list(found.values())

    def mappings_on(self, node_name: str) -> ExtendedRequests | None:
        """The requests for the pod's extended resources on a node, if there are any."""
        if self.special is None:
            return None
        ((delegated, _),) = self._by_delegated(self._only(node_name))
        return self._extended(delegated) if delegated else None

    def reserve(self, node_name: str) -> None:
        """Make the devices on a node count as taken; a claim that pods of a group share is taken once."""
        if node_name not in self._found:
            self._found[node_name] = self._to_reserve(node_name)
        store = self._cluster.store
        for pending in self._found[node_name]:
            known = store.of(PendingAllocation).get(pending.name, pending.namespace)
            claim = store.of(ResourceClaim).get(pending.name, pending.namespace)
            if known is not None:
                self._cluster.update(replace(known, sharers=known.sharers + 1))
            elif claim is None or claim.status.allocation is None:
                self._cluster.update(pending)
            self._reserved.append(pending)
            if self._shared is not None:
                self._shared.setdefault(pending.metadata.uid, set()).add(self._pod.metadata.uid)

    def _to_reserve(self, node_name: str) -> list[PendingAllocation]:
        """The allocation of each claim without devices: those found now, then those that are shared.

        kube-scheduler gives them to the claims in the order of the pod, so that a shared claim that comes before a new
        one is mixed up with it.
        """
        found = self.allocations_on(node_name)
        if not self.pending:
            return found
        claims = {claim.name: claim for claim in self.to_allocate}
        claims |= {each.claim.name: each.claim for each in found if each.claim.name not in claims}
        results = [*found, *self.pending.values()]
        return [
            PendingAllocation(metadata=claim.metadata, claim=claim, allocation=result.allocation)
            for claim, result in zip(claims.values(), results, strict=True)
        ]

    def unreserve(self) -> None:
        """Undo Reserve, and the reservations written to claims unless somebody else changed them since.

        A claim that got its devices before a later one failed keeps them.
        """
        while self._reserved:
            self._release(self._reserved.pop())
        while self._bound:
            before, after = self._bound.pop()
            known = self._cluster.store.of(ResourceClaim).get(after.name, after.namespace)
            if known is after:
                self._cluster.remove(after) if before is None else self._cluster.update(self._unreserved(after))

    def _unreserved(self, claim: ResourceClaim) -> ResourceClaim:
        """The claim without this pod."""
        others = [each for each in claim.status.reserved_for if each.uid != self._pod.metadata.uid]
        return replace(claim, status=replace(claim.status, reserved_for=others))

    def _release(self, pending: PendingAllocation, *, is_written: bool = False) -> None:
        """An allocation is not pending any more for this pod or, if it is written, for all."""
        known = self._cluster.store.of(PendingAllocation).get(pending.name, pending.namespace)
        if known is None:
            return
        if known.sharers > 1 and not is_written:
            self._cluster.update(replace(known, sharers=known.sharers - 1))
            return
        self._cluster.remove(known)
        if self._shared is not None:
            self._shared.pop(pending.metadata.uid, None)

    @property
    def reserved(self) -> dict[str, PendingAllocation]:
        """Reserve's decisions that are not written yet, by the name of the claim."""
        return {pending.name: pending for pending in self._reserved}

    def is_written(self, name: str) -> None:
        """Note that a claim contains its allocation, which is no longer pending."""
        pending = self.reserved.get(name)
        if pending is not None:
            self._reserved.remove(pending)
            self._release(pending, is_written=True)

    def bind(self) -> str:
        """Write allocations and reservations to the claims, which end their pending state.

        Returns why a claim cannot be written: another pod of the group was faster. Claims before it stay written.
        """
        decided = self.reserved
        for claim in {claim.name: claim for claim in (*self.claims, *(each.claim for each in self._reserved))}.values():
            pending = decided.get(claim.name)
            current = self._cluster.store.of(ResourceClaim).get(claim.name, claim.namespace)
            if pending is not None and current is not None and current.status.allocation is not None:
                return f"claim {claim.key} got allocated elsewhere in the meantime"
            if not self._is_reserved(claim):
                self._bind(claim, None if pending is None else pending.allocation)
        while self._reserved:
            self._release(self._reserved.pop(), is_written=True)
        return ""

    def _is_reserved(self, claim: ResourceClaim) -> bool:
        """Whether the claim is reserved for the pod, or for its group."""
        group = self._pod.spec.scheduling_group if self._rules.pod_group_claims else None
        return any(
            each.uid == self._pod.metadata.uid
            or (group is not None and each.resource == POD_GROUPS and each.name == group.pod_group_name)
            for each in claim.status.reserved_for
        )

    def _bind(self, claim: ResourceClaim, allocation: AllocationResult | None) -> None:
        before = self._cluster.store.of(ResourceClaim).get(claim.name, claim.namespace)
        current = before or claim
        status = current.status
        moment = self._cluster.moment
        if allocation is not None and moment is not None and self._rules.device_binding_conditions:
            written = datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
            allocation = replace(allocation, allocation_timestamp=written)
        if allocation is not None:
            status = replace(status, allocation=allocation)
        consumer = self._consumer(claim)
        if all(each.uid != consumer.uid for each in status.reserved_for):
            status = replace(status, reserved_for=[*status.reserved_for, consumer])
        if status is not current.status:
            after = replace(current, status=status)
            self._cluster.update(after)
            self._bound.append((before, after))

    def _consumer(self, claim: ResourceClaim) -> ResourceClaimConsumerReference:
        """Whom the claim is reserved for: the pod, or its group if the group lists the claim."""
        pod, named = self._pod, self._pod.spec.scheduling_group
        group = None
        if named is not None and self._rules.pod_group_claims:
            group = self._cluster.store.of(PodGroup).get(named.pod_group_name, pod.namespace)
        if group is not None and any(
            each in group.spec.resource_claims and resource_claim_name(pod, each) == claim.name
            for each in pod.spec.resource_claims
        ):
            uid = group.metadata.uid
            return ResourceClaimConsumerReference(api_group=GROUP_API, resource=POD_GROUPS, name=group.name, uid=uid)
        return ResourceClaimConsumerReference(resource="pods", name=pod.name, uid=pod.metadata.uid)

    def in_the_way(self) -> list[ResourceClaim]:
        """The claims whose devices, or devices to be, keep the pod from a node where other devices could be used."""
        return list(self._in_the_way.values())

    def to_deallocate(self) -> ResourceClaim | None:
        """The first claim whose devices keep the pod from nodes and that no other pod has reserved, else None."""
        uid = self._pod.metadata.uid
        unneeded = (c for c in self._in_the_way.values() if all(each.uid == uid for each in c.status.reserved_for))
        return next(unneeded, None)

    def details(self, node_name: str) -> Mapping[str, Any]:
        pending = self.allocations_on(node_name)
        selectors = {each.name: each.allocation.node_selector for each in pending}
        extended = self.mappings_on(node_name)
        shown = {
            "allocations": {each.name: [_shown(one) for one in each.allocation.devices.results] for each in pending},
            "nodeSelectors": {name: msgspec.to_builtins(each) for name, each in selectors.items() if each is not None},
            "requestMappings": [
                {"container": each.container_name, "resource": each.resource_name, "request": each.request_name}
                for each in (extended.mappings if extended else ())
            ],
        }
        return {name: value for name, value in shown.items() if value}


def _skips_node_operations(allocation: AllocationResult) -> bool:
    return any(result.skip_node_operations for result in allocation.devices.results)


def _shown(result: Any) -> dict[str, Any]:
    shown = {"request": result.request, "driver": result.driver, "pool": result.pool, "device": result.device}
    if result.admin_access:
        shown["adminAccess"] = True
    if result.consumed_capacity:
        shown["consumedCapacity"] = result.consumed_capacity
    if result.share_id is not None:
        shown["shared"] = True
    return shown


def _special_claim(pod: Pod) -> ResourceClaim:
    """A placeholder for the claim of a pod's extended resources; its requests are made for each node."""
    owner = OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.metadata.uid, controller=True)
    name = f"{pod.name}-extended-resources"
    metadata = ObjectMeta(
        name=name,
        namespace=pod.namespace,
        uid=f"ResourceClaim/{pod.namespace}/{name}",
        annotations={EXTENDED_RESOURCE_CLAIM: "true"},
        owner_references=[owner],
    )
    return ResourceClaim(metadata=metadata)
