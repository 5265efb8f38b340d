"""NodeResourcesFit: rejects nodes without enough free resources, and scores how full the others would be."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import partial
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.columns import Ints, divisors, is_any, round_half_away, rounded
from podium.config.plugin_args import (
    LEAST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    value_on_shape,
)
from podium.config.types import MAX_NODE_SCORE
from podium.framework import Action, Change, EventHint, Obstacle, PodView, RejectedNodes, RejectedPod, WaitingPod
from podium.framework.events import node_update
from podium.framework.plugin import CycleState, FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from podium.framework.pod_group_points import Assignment, Placement, PlacementScorePlugin
from podium.framework.status import PASSED, SUCCESS, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import LOWER_REQUEST, ChangeTarget, edit_pod, evict, evictable
from podium.model import Container, DeviceClass, Node, Pod, PodGroup, ResourceRequirements
from podium.model.amounts import amount as short_amount
from podium.model.pod import is_placed
from podium.model.quantity import MAX_INT64, format_quantity, int64, parse_quantity
from podium.model.resources import (
    CPU,
    EPHEMERAL_STORAGE,
    MEMORY,
    PODS,
    is_extended_resource,
    is_scalar_resource,
    node_allocatable,
    pod_resources,
)
from podium.plugins.dynamic_resources.extended_resources import (
    CLASS_PREFIX,
    asks_for_backed,
    backed_resources,
    device_totals,
)
from podium.rules import Rules
from podium.wording import counted, joined

MOST_EVICTED = 5
"""The maximum number of pods that one change evicts."""
MOST_ALTERNATIVES = 3
MEBIBYTE = 1 << 20


def resource_obstacles(
    rejected: RejectedNodes, counts: Callable[[str, NodeInfo], bool] = lambda name, node: True
) -> dict[str, list[Obstacle]]:
    """The missing amount of each resource on each node; ignored resources are left out."""
    cluster, found = rejected.cluster, {}
    requests = {PODS: 1, **cluster.info_of(rejected.pod).resources.requests}
    for node in rejected.statuses:
        info = NodeInfo(cluster, cluster.rows[node])
        found[node] = [
            _shortage(name, amount, info)
            for name, amount in requests.items()
            if amount > max(info.allocatable(name) - info.requested(name), 0) and counts(name, info)
        ]
    return found


def _shortage(name: str, amount: int, info: NodeInfo) -> Obstacle:
    offered, requested = info.allocatable(name), info.requested(name)
    free = offered - requested
    facts = {"resource": name, "missing": amount_text(name, amount - free), "requests": amount_text(name, amount)}
    facts |= {"free": amount_text(name, free), "allocatable": amount_text(name, offered)}
    if name == PODS:
        text = f"{counted(requested, 'pod')} {'runs' if requested == 1 else 'run'} there, and {offered:,} may"
    elif amount > offered:
        text = f"{facts['requests']} {name} asked for, and the whole node has {rounded_text(name, offered)}"
    else:
        free_of = f"{rounded_text(name, free)} of {rounded_text(name, offered)} free"
        text = f"{rounded_text(name, amount - free, up=True)} {name} missing ({facts['requests']} asked for, {free_of})"
    return Obstacle("resource", text, facts, missing=amount - free)


def resource_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Free resources on the node, evict pods from it, or lower the pod's requests."""
    node, cluster = rejected.node, rejected.cluster
    info = NodeInfo(cluster, cluster.rows[node])
    requests = cluster.info_of(rejected.pod).resources.requests
    missing = {
        name: amount - (info.allocatable(name) - info.requested(name))
        for name, amount in requests.items()
        if amount > max(info.allocatable(name) - info.requested(name), 0)
    }
    full = info.requested(PODS) >= info.allocatable(PODS)
    offers_enough = all(info.allocatable(name) >= requests[name] for name in missing)
    if missing and offers_enough and not full:
        yield free(node, missing)
    if offers_enough:
        yield from _evictions(cluster, node, missing | ({PODS: 1} if full else {}))
    if missing and not full:
        left = {name: max(info.allocatable(name) - info.requested(name), 0) for name in missing}
        yield lower_requests(rejected.pod, left, cluster.rules)


def _evictions(cluster: Cluster, node: str, missing: Mapping[str, int]) -> Iterator[Change]:
    """Evict a single pod that is large enough, one change each; if there is none, as few pods as needed, the least
    important first.
    """
    candidates = evictable(cluster, node)
    enough = [pod for pod in candidates if _covers([pod], missing, cluster)]
    for pod in enough[:MOST_ALTERNATIVES]:
        yield evict([pod])
    if not enough:
        chosen: list[Pod] = []
        for pod in candidates:
            if not _covers(chosen, missing, cluster):
                chosen.append(pod)
        needed = [pod for pod in chosen if not _covers([each for each in chosen if each is not pod], missing, cluster)]
        if needed and len(needed) <= MOST_EVICTED and _covers(needed, missing, cluster):
            yield evict(needed)


def _covers(pods: list[Pod], missing: Mapping[str, int], cluster: Cluster) -> bool:
    freed = [cluster.info_of(pod).resources.used | {PODS: 1} for pod in pods]
    return all(sum(each.get(name, 0) for each in freed) >= amount for name, amount in missing.items())


def free(node: str, missing: Mapping[str, int]) -> Change:
    """Lower the requests of pods on the node, the least important first, until this much is free."""

    def apply(to: ChangeTarget) -> None:
        rules = to.cluster.rules
        for name, amount in missing.items():
            left = amount
            for pod in evictable(to.cluster, node):
                current = to.cluster.find_pod(pod.key)
                if left > 0 and current is not None:
                    before = pod_resources(current[0], rules).used.get(name, 0)
                    lower = partial(_lowered, resource=name, to=max(before - left, 0), rules=rules)
                    left -= before - pod_resources(lower(current[0]), rules).used.get(name, 0)
                    to.edit_running(pod.key, lower)

    amounts = joined([f"{amount_text(name, amount)} {name}" for name, amount in missing.items()])
    return Change("free", f"free {amounts} on {node}", (f"node/{node}",), 3 * len(missing), apply)


def lower_requests(pod: Pod, to: Mapping[str, int], rules: Rules) -> Change:
    """Lower the pod's requests to these amounts."""

    def edit(before: Pod) -> Pod:
        for name, amount in to.items():
            before = _lowered(before, name, amount, rules)
        return before

    requests = pod_resources(pod, rules).requests
    parts = [
        f"lower the pod's {name} request from {amount_text(name, requests[name])} to {amount_text(name, amount)}"
        if amount
        else f"drop the pod's {name} request"
        for name, amount in to.items()
    ]
    return edit_pod(LOWER_REQUEST, joined(parts), pod, 4 * len(to), edit)


def _lowered(pod: Pod, resource: str, to: int, rules: Rules) -> Pod:
    """Lower a pod's request for a resource to `to`, in scheduler units: the pod-level request, then container by
    container.
    """

    def excess() -> int:
        return pod_resources(pod, rules).requests.get(resource, 0) - to

    if excess() > 0 and pod.spec.resources is not None:
        pod = replace(pod, spec=replace(pod.spec, resources=_less_by(pod.spec.resources, resource, excess())))
    for field in ("containers", "init_containers"):
        for place in range(len(getattr(pod.spec, field))):
            if excess() > 0:
                containers: list[Container] = [*getattr(pod.spec, field)]
                less = _less_by(containers[place].resources, resource, excess())
                containers[place] = replace(containers[place], resources=less)
                pod = replace(pod, spec=replace(pod.spec, **{field: containers}))
    return pod


def _less_by(resources: ResourceRequirements, resource: str, by: int) -> ResourceRequirements:
    asked = resources.requests.get(resource)
    if asked is None:
        return resources
    unit = Fraction(1, 1000) if resource == CPU else Fraction(1)
    text = format_quantity(max(parse_quantity(asked) - by * unit, Fraction(0)), binary=resource != CPU)
    limits = resources.limits
    # The limit of a device must equal its request; the limits of cpu and memory may be higher.
    limits = {**limits, resource: text} if resource in limits and "/" in resource else limits
    return replace(resources, requests={**resources.requests, resource: text}, limits=limits)


def amount_text(resource: str, amount: int) -> str:
    """An amount in scheduler units as written in a manifest, exactly."""
    return format_quantity(Fraction(amount, 1000) if resource == CPU else amount, binary=_is_in_bytes(resource))


def rounded_text(resource: str, amount: int, *, up: bool = False) -> str:
    """An amount for people to read: bytes that are not whole mebibytes, as nodes report them, are rounded."""
    if _is_in_bytes(resource) and abs(amount) >= 10 * MEBIBYTE:
        amount = (-(-amount // MEBIBYTE) if up else amount // MEBIBYTE) * MEBIBYTE
    return amount_text(resource, amount)


def _is_in_bytes(resource: str) -> bool:
    return resource in (MEMORY, EPHEMERAL_STORAGE) or resource.startswith("hugepages-")


UNRESOLVABLE = 1 << 62

ALWAYS_FIRST = ("cpu", "memory", "ephemeral-storage")
BACKED = "NodeResourcesFit/backed"
"""The cycle state's key for the device classes of extended resources, set if the pod requests one of those
resources.
"""
NONE_BACKED: Mapping[str, DeviceClass] = {}


class ScoredRequest(NamedTuple):
    """A pod's request for a resource that counts in a score."""

    name: str
    """Empty for a resource that no node has."""
    amount: int
    weight: int


class Counted(NamedTuple):
    """A resource that counts in a score; for some, every pod has a default request."""

    name: str
    column: str
    """Empty for a resource that the scheduler does not track: no node has any of it."""
    weight: int
    always: bool


def counted_resources(resources: Iterable[ResourceSpec]) -> list[Counted]:
    """The configured resources, prepared for `asked_resources`."""
    return [
        Counted(
            name, name if name in ALWAYS_FIRST or is_scalar_resource(name) else "", weight, not is_scalar_resource(name)
        )
        for name, weight in resources
    ]


def asked_resources(resources: Iterable[Counted], requests: Mapping[str, int]) -> list[ScoredRequest]:
    """The resources that count for a pod; a scalar resource that it does not request is left out."""
    return [
        ScoredRequest(column, requests.get(name, 0), weight)
        for name, column, weight, always in resources
        if always or requests.get(name, 0)
    ]


class NodeResourcesFit(PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin, PlacementScorePlugin):
    """Reject nodes without room for the pod's requests; score by how much of a node is, or would be, in use.

    An extended resource that a node lacks and that has a device class is left to DynamicResources.
    """

    name = "NodeResourcesFit"
    needs = frozenset((("filter", "preFilter"),))
    title = "Fit"
    reads = Aspect.RESOURCES

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) | ({"placementScore"} if rules.has_placement_points else frozenset())

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        fit = args if isinstance(args, NodeResourcesFitArgs) else NodeResourcesFitArgs()
        self._score_key = f"{self.name}/score"
        self._ignored = frozenset(fit.ignored_resources)
        self._ignored_groups = frozenset(fit.ignored_resource_groups)
        self._counted = counted_resources(fit.scoring_strategy.resources)
        self._strategy = fit.scoring_strategy.type
        self._wants_least = self._strategy == LEAST_ALLOCATED
        uses_shape = fit.scoring_strategy.type == REQUESTED_TO_CAPACITY_RATIO and fit.scoring_strategy.shape
        self._curve = _broken_linear(fit.scoring_strategy) if uses_shape else None

    def sign(self, pod: PodView) -> Hashable:
        return pod.resources

    def varies(self, info: PodInfo, cluster: Cluster) -> bool:
        return self.release_rules.device_extended_resources and asks_for_backed(info.resources, cluster)

    def _is_ignored(self, resource: str) -> bool:
        if not is_extended_resource(resource):
            return False
        return resource in self._ignored or resource.split("/")[0] in self._ignored_groups

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        requests = state.info.resources.requests
        first = [(name, requests[name]) for name in ALWAYS_FIRST if requests.get(name, 0) > 0]
        others = [
            (name, amount)
            for name, amount in requests.items()
            if name not in ALWAYS_FIRST and amount > 0 and not self._is_ignored(name)
        ]
        state[self.name] = [("pods", 1), *first, *others]
        state[BACKED] = self._backed(state.info, nodes.cluster)
        return PASSED

    def _backed(self, info: PodInfo, cluster: Cluster) -> Mapping[str, DeviceClass]:
        """The device classes by extended resource, if the pod requests one of these resources."""
        return backed_resources(cluster) if self.varies(info, cluster) else NONE_BACKED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        needs: list[tuple[str, int]] = state[self.name]
        backed: Mapping[str, DeviceClass] = state[BACKED]
        if nodes.have_room(needs):
            return Verdict.accept(nodes)
        codes = np.zeros(len(nodes), dtype=np.int64)
        for place, (name, amount) in enumerate(needs):
            allocatable = nodes.allocatable(name)
            short = nodes.requested(name) > allocatable - amount
            if name in backed:
                short &= allocatable > 0
            if is_any(short):
                codes |= short.astype(np.int64) << place
                if name != "pods" and self.release_rules.too_small_nodes_are_unresolvable:
                    codes[short & (amount > allocatable)] |= UNRESOLVABLE
        return Verdict(codes, partial(_describe, needs))

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        needs: list[tuple[str, int]] = state[self.name]
        free = node.amounts.free
        for name, amount in needs:
            if amount > free.get(name, 0):
                return self._rejected([need for need in needs if not _is_delegated(need[0], state, node)], node)
        return SUCCESS

    def _rejected(self, needs: list[tuple[str, int]], node: NodeInfo) -> Status:
        free, offered = node.amounts.free, node.amounts.allocatable
        short = [(name, amount) for name, amount in needs if amount > free.get(name, 0)]
        if not short:
            return SUCCESS
        is_hopeless = any(name != "pods" and amount > offered.get(name, 0) for name, amount in short)
        return _insufficient(short, is_hopeless and self.release_rules.too_small_nodes_are_unresolvable)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        requests = state.info.resources.score_requests
        state[self._score_key] = asked_resources(self._counted, requests)
        # Set by PreFilter, unless the profile leaves it out.
        if BACKED not in state:
            state[BACKED] = self._backed(state.info, nodes.cluster)
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """The weighted mean of the resources' scores, over the resources that a node has."""
        asked = self._asked(state, pod, nodes.cluster)
        backed: Mapping[str, DeviceClass] = state[BACKED]
        total: Ints | None = None
        weights: Ints | int = 0
        for name, amount, weight in asked:
            usage = nodes.usage(name)
            offered, used = usage.capacity, usage.non_zero
            fits = isinstance(offered, int) and usage.most_non_zero <= offered - amount
            if name in backed:
                offered, used = with_devices(backed[name], offered, used, nodes, self.release_rules)
                fits = False
            capacity, counted = divisors(offered)
            scores = self._resource_scores(used, amount, capacity, fits)
            if self._curve is not None:
                # RequestedToCapacityRatio leaves resources with score 0 out of the mean.
                counted = counted & (scores > 0)
            if weight != 1 or counted is not True:
                scores *= weight * counted
            weights = weights + weight * counted
            total = scores if total is None else np.add(total, scores, out=total)
        if total is None:
            return np.zeros(len(nodes), dtype=np.int64)
        weights = max(weights, 1) if isinstance(weights, int) else np.maximum(weights, 1)
        if self._curve is not None:
            return round_half_away(total / weights)
        if isinstance(weights, int) and weights == 2:
            total >>= 1
        else:
            total //= weights
        return total

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        asked = self._asked(state, pod, node.cluster)
        if state[BACKED]:
            return int(self.score(state, pod, Nodes(node.cluster, np.array([node.row])))[0])
        amounts = node.amounts
        used, offered = amounts.non_zero, amounts.allocatable
        total = weights = 0
        for name, amount, weight in asked:
            capacity = offered.get(name, 0)
            if capacity:
                score = self._share(used.get(name, 0) + amount, capacity)
                if self._curve is not None:
                    score = int(np.take(self._curve, score))
                if score or self._curve is None:
                    total += weight * score
                    weights += weight
        if not weights:
            return 0
        return total // weights if self._curve is None else int(round_half_away(np.array(total / weights)))

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        lines, parts, weights, total = [], [], 0, 0
        for name, more, weight in self._asked(state, pod, node.cluster):
            offered, used = self._amounts(state, name, node)
            if not offered:
                continue
            share = self._share(used + more, offered)
            taken = f"{short_amount(name, used)} in use + {short_amount(name, more)} asked for"
            kept = "stay free" if self._wants_least else "are in use"
            lines.append(f"{name}: {taken} of {short_amount(name, offered)}: {share} % {kept}")
            score = share if self._curve is None else int(self._curve[share])
            if self._curve is not None:
                lines[-1] += f", for which the shape gives {score}"
            if score or self._curve is None:
                parts.append(f"{score}" if weight == 1 else f"{score} * {weight}")
                weights, total = weights + weight, total + score * weight
        if weights <= 1:
            return [*lines, f"{self._strategy}: {total}"]
        mean = total // weights if self._curve is None else rounded(total / weights)
        return [*lines, f"{self._strategy}: ({' + '.join(parts)}) / {weights} = {mean}"]

    def _amounts(self, state: CycleState, name: str, node: NodeInfo) -> tuple[int, int]:
        """What one node has of a resource, and what is in use; in devices, if a device class backs the resource."""
        offered, used = node.allocatable(name), node.non_zero_requested(name)
        backed: Mapping[str, DeviceClass] = state[BACKED]
        if name not in backed:
            return offered, used
        one, amounts = Nodes(node.cluster, np.array([node.row])), (np.array([offered]), np.array([used]))
        devices, in_use = with_devices(backed[name], *amounts, one, self.release_rules)
        return int(np.max(devices)), int(in_use[0])

    def score_placement(
        self, group: PodGroup, placement: Placement, assigned: Sequence[Assignment], cluster: Cluster
    ) -> int:
        """How much of the placement's nodes would be in use, whatever the profile's strategy.

        Pod-level requests of the group's pods are not read.
        """
        requests: Counter[str] = Counter()
        for pod in (each.pod for each in assigned):
            plain = pod if pod.spec.resources is None else replace(pod, spec=replace(pod.spec, resources=None))
            requests.update(pod_resources(plain, self.release_rules).score_requests)
        nodes = [NodeInfo(cluster, row).amounts for row in placement.rows.tolist()]
        total = weights = 0
        for name, amount, weight in asked_resources(self._counted, requests):
            offering = [amounts for amounts in nodes if amounts.allocatable.get(name, 0)]
            capacity = sum(amounts.allocatable[name] for amounts in offering)
            if capacity:
                used = amount + sum(amounts.non_zero.get(name, 0) for amounts in offering)
                total += weight * (min(used, capacity) * MAX_NODE_SCORE // capacity)
                weights += weight
        return total // weights if weights else 0

    def _asked(self, state: CycleState, pod: Pod, cluster: Cluster) -> list[ScoredRequest]:
        """The result of PreScore; computed now if the profile leaves out PreScore."""
        if self._score_key not in state:
            self.pre_score(state, pod, cluster.nodes)
        asked: list[ScoredRequest] = state[self._score_key]
        return asked

    def _resource_scores(self, requested: Ints, amount: int, capacity: Ints | int, fits: bool) -> Ints:
        """The scores of one resource; `fits` says that every node is known to have enough of it for the pod."""
        if self._wants_least:
            part = (capacity - amount) - requested
            if not fits:
                np.maximum(part, 0, out=part)
        else:
            part = requested + amount
            if not fits:
                np.minimum(part, capacity, out=part)
        part *= MAX_NODE_SCORE
        score: Ints = np.floor_divide(part, capacity, out=part)
        return score if self._curve is None else np.take(self._curve, score)

    def _share(self, requested: int, capacity: int) -> int:
        """The percentage that stays free or, by other strategies, is in use."""
        part = requested if requested < capacity else capacity
        scaled = (capacity - part if self._wants_least else part) * MAX_NODE_SCORE
        return (scaled if scaled <= MAX_INT64 else int64(scaled)) // capacity

    def events_to_register(self) -> Sequence[EventHint]:
        rules = self.release_rules
        of_pods = Action.DELETE | (Action.UPDATE_POD_SCALE_DOWN if rules.in_place_resize else Action(0))
        of_nodes = Action.ADD | node_update(Action.UPDATE_NODE_ALLOCATABLE, rules)
        events = [EventHint("Pod", of_pods, self.frees_resources), EventHint("Node", of_nodes, self.offers_resources)]
        if rules.device_extended_resources:
            events.append(EventHint("DeviceClass", Action.ADD | Action.UPDATE, self.stands_for_resource))
        return events

    def stands_for_resource(self, waiting: WaitingPod, old: DeviceClass | None, new: DeviceClass) -> bool:
        """Whether a device class now backs an extended resource that the waiting pod requests."""
        wanted, name = waiting.info.resources.requests, new.spec.extended_resource_name
        if old is not None and (old.spec.extended_resource_name or "") == (name or ""):
            return False
        return (old is None and f"{CLASS_PREFIX}{new.name}" in wanted) or (name is not None and name in wanted)

    def frees_resources(self, waiting: WaitingPod, old: Pod, new: Pod | None) -> bool:
        """Whether a pod on a node is gone, or now requests less of a resource that the waiting pod requests."""
        if new is None:
            return is_placed(old)
        if waiting.is_same(new):
            return True
        if not new.spec.node_name:
            return False
        rules = self.release_rules
        before, after = pod_resources(old, rules).used, pod_resources(new, rules).used
        wanted = waiting.info.resources.requests
        return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in wanted.items())

    def offers_resources(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the waiting pod would fit the node if it were empty, and the node is new or has grown."""
        wanted = {name: amount for name, amount in waiting.info.resources.requests.items() if amount}
        offered = node_allocatable(new)
        if offered[PODS] < 1 or any(amount > offered.get(name, 0) for name, amount in wanted.items()):
            return False
        if old is None or not self.release_rules.hints_compare_nodes:
            return True
        before = node_allocatable(old)
        return any(offered.get(name, 0) > before.get(name, 0) for name in (PODS, *wanted))

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        varies = self.varies(rejected.cluster.info_of(rejected.pod), rejected.cluster)
        backed = backed_resources(rejected.cluster) if varies else NONE_BACKED

        def counts(name: str, node: NodeInfo) -> bool:
            is_delegated = name in backed and not node.allocatable(name)
            return not self._is_ignored(name) and not is_delegated

        return resource_obstacles(rejected, counts)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return resource_fixes(rejected)


def _is_delegated(name: str, state: CycleState, node: NodeInfo) -> bool:
    """Whether devices, not a device plugin, provide a resource on a node."""
    return name in state[BACKED] and not node.allocatable(name)


def with_devices(
    device_class: DeviceClass, offered: Ints | int, used: Ints, nodes: Nodes, rules: Rules
) -> tuple[Ints, Ints]:
    """The nodes' allocatable and used amounts of a resource, counted in devices on nodes without a device
    plugin for it.
    """
    offered, used = np.full(len(nodes), offered), used.copy()
    (places,) = np.nonzero(offered == 0)
    there, taken = device_totals(nodes.cluster, rules, device_class, nodes.rows[places])
    offered[places[there > 0]], used[places[there > 0]] = there[there > 0], taken[there > 0]
    return offered, used


def _describe(needs: list[tuple[str, int]], code: int) -> Status:
    """The status for a filter code: one bit per unmet need, and one bit for unresolvable."""
    return _insufficient([need for place, need in enumerate(needs) if code & (1 << place)], bool(code & UNRESOLVABLE))


def _insufficient(short: list[tuple[str, int]], is_hopeless: bool) -> Status:
    """The status for the unmet needs; unresolvable if an empty node would not meet them either."""
    reasons = ["Too many pods" if name == "pods" else f"Insufficient {name}" for name, _ in short]
    return Status.unresolvable(*reasons) if is_hopeless else Status.unschedulable(*reasons)


def _broken_linear(strategy: ScoringStrategy) -> Ints:
    """The score at each utilization of 0..100 percent, interpolated between the points of the shape."""
    shape = strategy.shape or ()
    return np.array([value_on_shape(shape, utilization) for utilization in range(101)], dtype=np.int64)
