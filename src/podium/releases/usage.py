"""What pods ask for and use, as the old releases count it.

Today's scheduler counts init containers, sidecars, overhead and resizes of running pods; the old releases each have
their own rule, so what the pods on a node use is counted again here, per release, and kept up to date row by row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from podium.cluster import Aspect, Cluster, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.model import Container, Pod, ResourceList
from podium.model.quantity import milli_value, parse_quantity, value
from podium.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, is_scalar_resource
from podium.releases.rules import Rules

NON_ZERO = {CPU: 100, MEMORY: 200 * 1024 * 1024}
"""What scores count for a container that does not say: 100m of cpu, 200Mi of memory."""

_PLAIN = (CPU, MEMORY, EPHEMERAL_STORAGE)
_OLD_GPU = "alpha.kubernetes.io/nvidia-gpu"
_OPAQUE = "pod.alpha.kubernetes.io/opaque-int-resource-"

Amounts = dict[str, int]


@lru_cache(maxsize=4096)
def is_tracked(resource: str, rules: Rules) -> bool:
    """Whether a release counts a resource at all."""
    if resource in _PLAIN or rules.tracks_prefixed_resources:
        return resource in _PLAIN or is_scalar_resource(resource)
    if resource == _OLD_GPU or resource.startswith((_OPAQUE, "hugepages-")):
        return True
    return "/" in resource and "kubernetes.io/" not in resource


class PodUsage(NamedTuple):
    """One pod in one release: milli-cpu, bytes and units."""

    request: Amounts
    """What must be free for it to fit; a resource asked for with 0 is there too."""
    used: Amounts
    """What it uses once it runs."""
    non_zero: tuple[int, int]
    """Cpu and memory it counts for in scores once it runs, with the defaults for containers that do not say."""
    score: Callable[[str], int]
    """What it adds of a resource to a node's score while it is being scheduled."""


def pod_usage(info: PodInfo, rules: Rules) -> PodUsage:
    """What a pod asks for and uses; worked out once for pods with the same spec."""
    key = ("legacy usage", rules.release)
    found: PodUsage | None = info.memo.get(key)
    if found is None:
        found = info.memo[key] = _usage(info.pod, rules)
    return found


def _usage(pod: Pod, rules: Rules) -> PodUsage:
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

    def score(resource: str) -> int:
        total = _largest(containers, counted_init, resource)
        if resource in overhead:
            # The release adds whole units of the overhead even for cpu, which it otherwise counts in millis.
            total += value(parse_quantity(pod.spec.overhead[resource]))
        return total

    cpu, memory = (_largest(containers, counted_init, name) + overhead.get(name, 0) for name in (CPU, MEMORY))
    return PodUsage(request, request if rules.counts_init_containers else running, (cpu, memory), score)


def _largest(containers: Iterable[Container], init: Iterable[Container], resource: str) -> int:
    """All containers together, or the largest init container."""
    together = sum(_non_zero(container.resources.requests, resource) for container in containers)
    return max([together, *(_non_zero(container.resources.requests, resource) for container in init)])


def _non_zero(requests: ResourceList, resource: str) -> int:
    if resource not in requests:
        return NON_ZERO.get(resource, 0)
    return amount_of(resource, requests)


def amount_of(resource: str, resources: ResourceList) -> int:
    """The amount of one resource: milli-cpu, or whole units, rounded up."""
    if resource not in resources:
        return 0
    amount = parse_quantity(resources[resource])
    return milli_value(amount) if resource == CPU else value(amount)


def _amounts(resources: ResourceList, rules: Rules) -> Amounts:
    return {name: amount_of(name, resources) for name in resources if is_tracked(name, rules)}


def _add(total: Amounts, more: Mapping[str, int]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, 0) + amount


class Usage:
    """What the pods on every row use in one release; it catches up with the cluster when it is read."""

    def __init__(self, cluster: Cluster, rules: Rules) -> None:
        self._rules = rules
        self._columns = cluster.columns
        self._log = cluster.logs[Aspect.PODS]
        self._cursor = -1
        self._amounts: dict[str, Ints] = {}
        self._non_zero: Ints = np.zeros((2, 0), dtype=np.int64)

    def requested(self, nodes: Nodes, resource: str) -> Ints:
        """What is requested of a resource on these nodes."""
        self._catch_up(nodes.cluster)
        column = self._amounts.get(resource)
        return np.zeros(len(nodes), dtype=np.int64) if column is None else nodes.take(column)

    def non_zero(self, nodes: Nodes, resource: str) -> Ints:
        """Requested cpu or memory on these nodes, with the defaults for containers that do not say."""
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


_OF_CLUSTER: WeakKeyDictionary[Cluster, dict[str, Usage]] = WeakKeyDictionary()


def usage_of(cluster: Cluster, rules: Rules) -> Usage:
    """What the pods of a cluster use in a release."""
    known = _OF_CLUSTER.setdefault(cluster, {})
    found = known.get(rules.release)
    if found is None:
        found = known[rules.release] = Usage(cluster, rules)
    return found
