"""Priorities: by requests and usage, as the old releases count them, and by the node itself (labels, taints, images,
and the controllers whose pods a node wants to avoid).
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

import msgspec
import numpy as np

from podium.cluster import Aspect, Cluster, Nodes, PodInfo
from podium.cluster.columns import Ints, Mask, round_half_away
from podium.config.plugin_args import CPU_AND_MEMORY, ResourceSpec, UtilizationShapePoint, value_on_shape
from podium.errors import PluginError, SelectorError
from podium.framework import CycleState, ScorePlugin
from podium.framework.fast_paths import NormalizesByMax
from podium.framework.plugin import PodView
from podium.framework.suggested_change import Change
from podium.model import Container, Node, NodeSelectorTerm, Pod, PodSpec, ResourceList
from podium.model.quantity import milli_value, parse_quantity, value
from podium.model.resources import CPU, DEFAULT_REQUESTS, EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY, is_scalar_resource
from podium.model.selectors import node_term
from podium.plugins.image_locality import LEAST, MOST_PER_CONTAINER, image_fixes, normalized_image_name
from podium.plugins.node_affinity import preference_fixes
from podium.plugins.taint_toleration import TaintToleration, preferred_taint_fixes
from podium.releases.rules import OfRelease, OldReleaseRules

# -- requests and usage ------------------------------------------------------------------------------------------------


_PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE)
_OLD_GPU = "alpha.kubernetes.io/nvidia-gpu"
_OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-"

Amounts = dict[str, int]


@lru_cache(maxsize=4096)
def is_tracked(resource: str, rules: OldReleaseRules) -> bool:
    """Whether a release counts a resource at all."""
    if resource in _PLAIN or rules.tracks_prefixed_resources:
        return resource in _PLAIN or is_scalar_resource(resource)
    if resource == _OLD_GPU or resource.startswith((_OPAQUE, HUGE_PAGES)):
        return True
    return "/" in resource and "kubernetes.io/" not in resource


class PodUsage(NamedTuple):
    """One pod in one release: milli-cpu, bytes and units."""

    request: Amounts
    """The amounts that must be free for it to fit; includes resources requested with 0."""
    used: Amounts
    """The amounts it uses once it runs."""
    non_zero: tuple[int, int]
    """Its cpu and memory in scores once it runs, with the defaults for containers without requests."""
    score: Callable[[str], int]
    """The amount of a resource that it adds to a node's score while it is being scheduled."""


def pod_usage(info: PodInfo, rules: OldReleaseRules) -> PodUsage:
    """A pod's requests and usage; computed once for pods with the same spec."""
    key = ("legacy usage", rules.release)
    found: PodUsage | None = info.memo.get(key)
    if found is None:
        found = info.memo[key] = _usage(info.pod, rules)
    return found


def _usage(pod: Pod, rules: OldReleaseRules) -> PodUsage:
    containers, init = pod.spec.containers, pod.spec.init_containers
    running: Amounts = {}
    for container in containers:
        _add(running, _amounts(container.resources.requests, rules))
    request = dict(running)
    for container in init:
        for name, amount in _amounts(container.resources.requests, rules).items():
            if amount > request.get(name, 0):
                request[name] = amount
    overhead = _amounts(pod.spec.overhead, rules) if rules.counts_init_containers else {}
    _add(request, overhead)
    counted_init = init if rules.counts_init_containers else []
    score = partial(_scored, containers, counted_init, {name: pod.spec.overhead[name] for name in overhead})
    cpu, memory = (_largest(containers, counted_init, name) + overhead.get(name, 0) for name in (CPU, MEMORY))
    return PodUsage(request, request if rules.counts_init_containers else running, (cpu, memory), score)


def _scored(containers: Iterable[Container], init: Iterable[Container], overhead: ResourceList, resource: str) -> int:
    total = _largest(containers, init, resource)
    # The release adds whole units of the overhead even for cpu, which it otherwise counts in thousandths.
    return total + value(parse_quantity(overhead.get(resource, 0)))


def _largest(containers: Iterable[Container], init: Iterable[Container], resource: str) -> int:
    """The sum of all containers, or the largest init container."""
    together = sum(_non_zero(container.resources.requests, resource) for container in containers)
    return max([together, *(_non_zero(container.resources.requests, resource) for container in init)])


def _non_zero(requests: ResourceList, resource: str) -> int:
    if resource not in requests:
        return DEFAULT_AMOUNTS.get(resource, 0)
    return amount_of(resource, requests)


def amount_of(resource: str, resources: ResourceList) -> int:
    """The amount of one resource: milli-cpu, or whole units, rounded up."""
    if resource not in resources:
        return 0
    amount = parse_quantity(resources[resource])
    return milli_value(amount) if resource == CPU else value(amount)


DEFAULT_AMOUNTS = {CPU: milli_value(DEFAULT_REQUESTS[CPU]), MEMORY: value(DEFAULT_REQUESTS[MEMORY])}
"""`DEFAULT_REQUESTS` in milli-cpu and bytes."""


def _amounts(resources: ResourceList, rules: OldReleaseRules) -> Amounts:
    return {name: amount_of(name, resources) for name in resources if is_tracked(name, rules)}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


class RowUsage:
    """The usage of the pods on every row in one release; it catches up with the cluster when it is read."""

    def __init__(self, cluster: Cluster, rules: OldReleaseRules) -> None:
        self._rules = rules
        self._columns = cluster.columns
        self._log = cluster.logs[Aspect.PODS]
        self._cursor = -1
        self._amounts: dict[str, Ints] = {}
        self._non_zero: Ints = np.zeros((2, 0), dtype=np.int64)

    def requested(self, nodes: Nodes, resource: str) -> Ints:
        """The requested amount of a resource on these nodes."""
        self._catch_up(nodes.cluster)
        column = self._amounts.get(resource)
        return np.zeros(len(nodes), dtype=np.int64) if column is None else nodes.take(column)

    def non_zero(self, nodes: Nodes, resource: str) -> Ints:
        """Requested cpu or memory on these nodes, with the defaults for containers without requests."""
        self._catch_up(nodes.cluster)
        return nodes.take(self._non_zero[0 if resource == CPU else 1])

    def _catch_up(self, cluster: Cluster) -> None:
        if self._cursor == self._log.head:
            return
        changed = self._log.since(self._cursor) if self._cursor >= 0 else None
        self._cursor = self._log.head
        self._grow()
        for row in range(self._columns.size) if changed is None else set(changed.tolist()):
            self._count(cluster, row)

    def _grow(self) -> None:
        missing = self._columns.capacity - self._non_zero.shape[1]
        if missing:
            self._non_zero = np.concatenate([self._non_zero, np.zeros((2, missing), dtype=np.int64)], axis=1)
            for name, column in self._amounts.items():
                self._amounts[name] = np.concatenate([column, np.zeros(missing, dtype=np.int64)])

    def _count(self, cluster: Cluster, row: int) -> None:
        total: Amounts = {}
        cpu = memory = 0
        for placed in cluster.placed_on(row):
            usage = pod_usage(placed.info, self._rules)
            _add(total, usage.used)
            cpu, memory = cpu + usage.non_zero[0], memory + usage.non_zero[1]
        self._non_zero[:, row] = cpu, memory
        for name in total.keys() - self._amounts.keys():
            self._amounts[name] = np.zeros(self._columns.capacity, dtype=np.int64)
        for name, column in self._amounts.items():
            column[row] = total.get(name, 0)


_OF_CLUSTER: WeakKeyDictionary[Cluster, dict[str, RowUsage]] = WeakKeyDictionary()


def usage_of(cluster: Cluster, rules: OldReleaseRules) -> RowUsage:
    """The usage of a cluster's pods in a release."""
    known = _OF_CLUSTER.setdefault(cluster, {})
    found = known.get(rules.release)
    if found is None:
        found = known[rules.release] = RowUsage(cluster, rules)
    return found


LEAST_UTILIZED = (UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
"""The default shape of RequestedToCapacityRatioPriority."""


class ResourcePriority(OfRelease, ScorePlugin):
    """A score computed from the requested and the allocatable amounts of some resources."""

    reads = Aspect.RESOURCES | Aspect.PODS
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY

    def sign(self, pod: PodView) -> Hashable:
        usage = pod_usage(pod.info, self.rules)
        return tuple(usage.score(spec.name) for spec in self.resources)

    def _amounts(self, state: CycleState, nodes: Nodes, resource: str) -> tuple[Ints, Ints]:
        """The requested amount including the pod, and the allocatable amount; both 0 for a resource that the release
        does not count.
        """
        if not is_tracked(resource, self.rules):
            nothing = np.zeros(len(nodes), dtype=np.int64)
            return nothing, nothing
        usage = usage_of(nodes.cluster, self.rules)
        used = usage.non_zero(nodes, resource) if resource in (CPU, MEMORY) else usage.requested(nodes, resource)
        return used + pod_usage(state.info, self.rules).score(resource), nodes.allocatable(resource)


class LeastRequestedPriority(ResourcePriority):
    """Prefer nodes with less requested."""

    name = "LeastRequestedPriority"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        total = np.zeros(len(nodes), dtype=np.int64)
        for spec in self.resources:
            requested, capacity = self._amounts(state, nodes, spec.name)
            part = self._part(requested, capacity) * self.rules.max_score // np.maximum(capacity, 1)
            total += np.where((capacity == 0) | (requested > capacity), 0, part)
        return total // len(self.resources)

    def _part(self, requested: Ints, capacity: Ints) -> Ints:
        return capacity - requested


class MostRequestedPriority(LeastRequestedPriority):
    """Prefer nodes with more requested, up to their capacity."""

    name = "MostRequestedPriority"

    def _part(self, requested: Ints, capacity: Ints) -> Ints:
        return requested


class BalancedResourceAllocation(ResourcePriority):
    """Prefer nodes where similar fractions of cpu and memory would be requested."""

    name = "BalancedResourceAllocation"
    title = "Balance"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        fractions = []
        for spec in self.resources:
            requested, capacity = self._amounts(state, nodes, spec.name)
            fractions.append(np.where(capacity == 0, 1.0, requested / np.maximum(capacity, 1).astype(np.float64)))
        cpu, memory = fractions
        even = ((1 - np.abs(cpu - memory)) * float(self.rules.max_score)).astype(np.int64)
        return np.where((cpu >= 1) | (memory >= 1), 0, even)


@dataclass(frozen=True, kw_only=True)
class RatioArgs:
    """The score, 0 to 10, at some utilizations in percent, and the resources that count."""

    shape: tuple[UtilizationShapePoint, ...] = LEAST_UTILIZED
    resources: tuple[ResourceSpec, ...] = CPU_AND_MEMORY


class RequestedToCapacityRatioPriority(ResourcePriority):
    """Score the requested share of a node by a piecewise linear function."""

    name = "RequestedToCapacityRatioPriority"

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        ratio = args if isinstance(args, RatioArgs) else RatioArgs()
        scores = [value_on_shape(ratio.shape, percent, self.rules.max_score) for percent in range(101)]
        self._curve = np.array(scores, dtype=np.int64)
        self.resources = ratio.resources

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        total, weights = np.zeros(len(nodes), dtype=np.int64), np.zeros(len(nodes), dtype=np.int64)
        for spec in self.resources:
            requested, capacity = self._amounts(state, nodes, spec.name)
            free = (capacity - requested) * 100 // np.maximum(capacity, 1)
            full = (capacity == 0) | (requested > capacity)
            score = self._curve[np.where(full, 100, 100 - np.where(full, 0, free))]
            counted = score > 0 if self.rules.ratio_leaves_out_zeros else np.ones(len(nodes), dtype=np.bool_)
            total += np.where(counted, score * spec.weight, 0)
            weights += np.where(counted, spec.weight, 0)
        if not self.rules.ratio_leaves_out_zeros:
            return total // np.maximum(weights, 1)
        return np.where(weights == 0, 0, round_half_away(total / np.maximum(weights, 1)))


class ResourceLimitsPriority(OfRelease, ScorePlugin):
    """One point for nodes that have the cpu, or the memory, of the pod's limits."""

    name = "ResourceLimitsPriority"
    reads = Aspect.RESOURCES

    def sign(self, pod: PodView) -> Hashable:
        return tuple(_limit(pod.spec, name) for name in (CPU, MEMORY))

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        satisfied = np.zeros(len(nodes), dtype=np.bool_)
        for name in (CPU, MEMORY):
            limit, allocatable = _limit(pod.spec, name), nodes.allocatable(name)
            satisfied |= (limit != 0) & (allocatable != 0) & (limit <= allocatable)
        return satisfied.astype(np.int64)


def _limit(spec: PodSpec, resource: str) -> int:
    """The sum of the containers' limits, or the largest init container's."""
    together = sum(amount_of(resource, container.resources.limits) for container in spec.containers)
    return max([together, *(amount_of(resource, each.resources.limits) for each in spec.init_containers)])


# -- the node itself ---------------------------------------------------------------------------------------------------


PREFER_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def normalize_scores(scores: Ints, rules: OldReleaseRules, *, reverse: bool = False) -> Ints:
    """Scale so that the highest score becomes the best or, with `reverse`, so that zero does."""
    highest, best = int(scores.max(initial=0)), rules.max_score
    if highest == 0:
        return np.full_like(scores, best if reverse else 0)
    if not rules.normalizes_in_floats:
        scaled = best * scores // highest
        return best - scaled if reverse else scaled
    share = scores / float(highest)
    return (((1.0 - share) if reverse else share) * float(best)).astype(np.int64)


class EqualPriority(OfRelease, ScorePlugin):
    """One point for every node."""

    name = "EqualPriority"
    reads = Aspect.LABELS

    def sign(self, pod: PodView) -> Hashable:
        return None

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.ones(len(nodes), dtype=np.int64)


class NodeAffinityPriority(OfRelease, NormalizesByMax):
    """Prefer nodes that meet the pod's preferences; matchFields and empty preferences do not count."""

    name = "NodeAffinityPriority"
    title = "NodeAff"
    reads = Aspect.LABELS

    def sign(self, pod: PodView) -> Hashable:
        affinity = pod.spec.affinity
        return msgspec.json.encode(affinity.node_affinity if affinity else None)

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        total = np.zeros(len(nodes), dtype=np.int64)
        for preferred in affinity.preferred if affinity else ():
            try:
                term = node_term(NodeSelectorTerm(match_expressions=preferred.preference.match_expressions))
            except SelectorError as error:
                raise PluginError(self.name, f"failed: {error}") from error
            if term is not None and preferred.weight:
                total += preferred.weight * nodes.matching_term(term)
        return total

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return normalize_scores(scores, self.rules)

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return preference_fixes(pod, node, cluster)


class TaintTolerationPriority(OfRelease, NormalizesByMax):
    """Prefer nodes with fewer PreferNoSchedule taints that the pod does not tolerate."""

    name = "TaintTolerationPriority"
    title = "Taint"
    reads = Aspect.TAINTS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._counting = TaintToleration()

    def sign(self, pod: PodView) -> Hashable:
        return self._counting.sign(pod)

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return self._counting.score(state, pod, nodes)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return normalize_scores(scores, self.rules, reverse=True)

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return preferred_taint_fixes(pod, node, cluster)


class ImageLocalityPriority(OfRelease, ScorePlugin):
    """Prefer nodes that have the images of the pod's containers, by the size of those images."""

    name = "ImageLocalityPriority"
    title = "Image"
    reads = Aspect.IMAGES

    def sign(self, pod: PodView) -> Hashable:
        return tuple(sorted(container.image for container in pod.spec.containers))

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        total, size_of = np.zeros(len(nodes), dtype=np.int64), _scaled if self.rules.images_are_scaled else _sizes
        for container in pod.spec.containers:
            total += size_of(container.image, nodes)
        best, most = self.rules.max_score, MOST_PER_CONTAINER
        if self.rules.images_are_scaled:
            return best * (np.clip(total, LEAST, most) - LEAST) // (most - LEAST)
        bucket = best * (total - LEAST) // (most - LEAST) + 1
        return np.where(total < LEAST, 0, np.where(total >= most, best, bucket))

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return image_fixes(pod, node, cluster)


def _scaled(image: str, nodes: Nodes) -> Ints:
    """The image's size on nodes that have it, times the share of nodes that have it, so as not to overload a
    few nodes.
    """
    found = nodes.cluster.images.states.get(normalized_image_name(image))
    if found is None:
        return np.zeros(len(nodes), dtype=np.int64)
    share = len(found.rows) / nodes.cluster.node_count
    return nodes.among(found.rows) * int(found.size * share)


def _sizes(image: str, nodes: Nodes) -> Ints:
    """The size of the image with exactly this name, as each node reports it."""
    cluster = nodes.cluster
    sizes = np.zeros(cluster.columns.size, dtype=np.int64)
    found = cluster.images.states.get(image)
    for row in found.rows if found else ():
        node: Node = cluster.node(cluster.names[row])
        sizes[row] = next(each.size_bytes for each in node.status.images if image in each.names)
    return nodes.take(sizes)


class _Controller(msgspec.Struct, frozen=True):
    kind: str = ""
    uid: str = ""


class _PodSignature(msgspec.Struct, frozen=True, rename="camel"):
    pod_controller: _Controller | None = None


class _PreferAvoidPods(msgspec.Struct, frozen=True, rename="camel"):
    pod_signature: _PodSignature | None = None


class _AvoidPods(msgspec.Struct, frozen=True, rename="camel"):
    prefer_avoid_pods: list[_PreferAvoidPods] | None = None


def avoided_controllers(node: Node) -> frozenset[tuple[str, str]]:
    """Kind and uid of the controllers whose pods the node wants to avoid; empty if the annotation is invalid."""
    text = node.metadata.annotations.get(PREFER_AVOID_PODS, "")
    try:
        avoided = msgspec.json.decode(text, type=_AvoidPods) if text else _AvoidPods()
    except msgspec.DecodeError:
        return frozenset()
    signatures = (entry.pod_signature or _PodSignature() for entry in avoided.prefer_avoid_pods or ())
    controllers = (signature.pod_controller or _Controller() for signature in signatures)
    return frozenset((controller.kind, controller.uid) for controller in controllers)


class NodePreferAvoidPodsPriority(OfRelease, ScorePlugin):
    """No points for nodes that want to avoid pods of the pod's controller; full points for all others."""

    name = "NodePreferAvoidPodsPriority"
    reads = Aspect.LABELS
    KINDS = ("ReplicationController", "ReplicaSet")

    def sign(self, pod: PodView) -> Hashable:
        return self._controller(pod.info.pod)

    def _controller(self, pod: Pod) -> tuple[str, str] | None:
        """The kind and uid of the pod's controller; None if nodes cannot avoid its kind."""
        owner = pod.metadata.controller
        return (owner.kind, owner.uid) if owner is not None and owner.kind in self.KINDS else None

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        controller = self._controller(pod)
        avoided = np.zeros(len(nodes), dtype=np.bool_)
        if controller is not None:
            listed = (controller in avoided_controllers(node.node) for node in nodes)
            avoided = np.fromiter(listed, np.bool_, len(nodes))
        return np.where(avoided, 0, self.rules.max_score)


@dataclass(frozen=True, kw_only=True)
class NodeLabelArgs:
    """Labels that a node must have or lack, and labels that it should have or lack."""

    present_labels: tuple[str, ...] = ()
    absent_labels: tuple[str, ...] = ()
    present_labels_preference: tuple[str, ...] = ()
    absent_labels_preference: tuple[str, ...] = ()


class NodeLabelPriority(OfRelease, ScorePlugin):
    """Prefer nodes that have, or lack, some labels, whatever their values."""

    name = "NodeLabelPriority"
    reads = Aspect.LABELS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._labels = args if isinstance(args, NodeLabelArgs) else NodeLabelArgs()

    def sign(self, pod: PodView) -> Hashable:
        return None

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        liked = has_labels(nodes, self._labels.present_labels_preference)
        liked += [~has for has in has_labels(nodes, self._labels.absent_labels_preference)]
        count: Ints = np.sum(liked, axis=0)
        return self.rules.max_score * count // len(liked)


def has_labels(nodes: Nodes, labels: Sequence[str]) -> list[Mask]:
    """Per label, whether each node has it."""
    return [nodes.codes(label) >= 0 for label in labels]
