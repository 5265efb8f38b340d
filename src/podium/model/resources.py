"""What a pod asks of a node and what a node has, as kube-scheduler counts it.

Scheduler units are integers: cpu in thousandths of a core, everything else in whole units (bytes, devices, pods).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import NamedTuple

from podium.errors import QuantityError
from podium.model import Container, Node, Pod, Quantity, ResourceList, ResourceRequirements
from podium.model.quantity import milli_value, parse_quantity, value

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

DEFAULT_REQUESTS: Mapping[str, Fraction] = {CPU: Fraction(1, 10), MEMORY: Fraction(200 * 1024 * 1024)}
"""What scoring counts for a container that does not say: 100m of cpu, 200Mi of memory."""

_NATIVE_NAMESPACE = "kubernetes.io/"
_QUOTA_PREFIX = "requests."
_HUGE_PAGES_PREFIX = "hugepages-"
_SCALAR_PREFIXES = (_HUGE_PAGES_PREFIX, "attachable-volumes-")
_DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_NAME_PART = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")

_Amounts = dict[str, Fraction]
_Items = tuple[tuple[str, Quantity], ...]


@dataclass(frozen=True, slots=True, eq=False)
class PodResources:
    """A pod's requests in scheduler units, once for every reader that counts them differently.

    Pods that ask for the same share one instance, which therefore can stand for what they ask for: read the dicts,
    never change them.
    """

    requests: dict[str, int]
    """What NodeResourcesFit's filter compares for an incoming pod."""
    used: dict[str, int]
    """What the pod occupies on its node, in-place resizes included."""
    non_zero_cpu: int
    """Millis occupied for scoring, with the default for every container that does not say."""
    non_zero_memory: int
    """Bytes occupied for scoring, with the default for every container that does not say."""
    score_requests: dict[str, int]
    """What NodeResourcesFit's scorer adds for an incoming pod; holds every resource named, tracked or not."""
    balanced_requests: dict[str, int]
    """What NodeResourcesBalancedAllocation adds for an incoming pod; holds every resource named, tracked or not."""


def pod_resources(pod: Pod) -> PodResources:
    """Everything scheduling wants to know of a pod's requests; cheap for pods that ask like earlier ones did."""
    try:
        return _resources_of(_asks_of(pod))
    except QuantityError as error:
        raise error.at(f"pod {pod.key}") from None


def pod_requests(
    pod: Pod,
    *,
    non_missing: Mapping[str, Fraction] = {},
    use_status: bool = False,
    pod_level: bool = True,
) -> dict[str, Fraction]:
    """The amounts a pod needs of each resource it names.

    The larger of what its containers and sidecars need together and what any step of initialisation needs; then what
    the pod itself requests in place of that (`pod_level`); then its overhead. `non_missing` stands in for requests
    that a container leaves out. `use_status` counts the resources a running pod still holds during an in-place resize.
    """
    try:
        return _requests(_asks_of(pod), non_missing, use_status, pod_level)
    except QuantityError as error:
        raise error.at(f"pod {pod.key}") from None


def node_allocatable(node: Node) -> dict[str, int]:
    """What a node offers to pods in scheduler units, always with `pods`: a node that does not say allows none."""
    try:
        amounts = _amounts(node.allocatable.items())
    except QuantityError as error:
        raise error.at(f"node {node.name}") from None
    return scheduler_units(amounts) | {PODS: value(amounts.get(PODS, Fraction(0)))}


def scheduler_units(requests: Mapping[str, Fraction]) -> dict[str, int]:
    """The amounts as integers, rounded up, of those resources that the scheduler tracks by amount."""
    return {name: _units(name, amount) for name, amount in requests.items() if _is_tracked(name)}


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """Whether a resource is neither Kubernetes' own nor a quota name: `example.com/gpu`."""
    domain, slash, rest = name.partition("/")
    if not slash or _NATIVE_NAMESPACE in name or name.startswith(_QUOTA_PREFIX):
        return False
    # Quota prefixes the name, and the whole must still be a qualified name.
    domain = _QUOTA_PREFIX + domain
    return (
        len(domain) <= 253
        and len(rest) <= 63
        and _DNS_SUBDOMAIN.fullmatch(domain) is not None
        and _NAME_PART.fullmatch(rest) is not None
    )


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Whether the scheduler counts a resource by its name alone: extended, huge pages, attachable volumes and such."""
    return name.startswith(_SCALAR_PREFIXES) or _NATIVE_NAMESPACE in name or is_extended_resource(name)


def _is_tracked(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def _is_pod_level(name: str) -> bool:
    """Whether a pod can request the resource as a whole, over the heads of its containers."""
    return name in (CPU, MEMORY) or name.startswith(_HUGE_PAGES_PREFIX)


def _units(name: str, amount: Fraction) -> int:
    return milli_value(amount) if name == CPU else value(amount)


class _Status(NamedTuple):
    """What a running container or pod holds, whatever its spec asks for by now."""

    actuated: _Items
    allocated: _Items


class _Ask(NamedTuple):
    """One container's part in the calculation."""

    requests: _Items
    status: _Status | None = None
    sidecar: bool = False


class _PodAsks(NamedTuple):
    """Everything of a pod that decides its requests, hashable: equal asks have equal resources."""

    containers: tuple[_Ask, ...]
    init_containers: tuple[_Ask, ...] = ()
    pod: _Ask | None = None
    overhead: _Items = ()
    resize_infeasible: bool = False


def _asks_of(pod: Pod) -> _PodAsks:
    spec, status = pod.spec, pod.status
    if not (spec.init_containers or spec.overhead or spec.resources or status.container_statuses):
        # Most pods: nothing but containers that ask for something.
        return _PodAsks(tuple([_Ask(_items(each.resources.requests)) for each in spec.containers]))
    statuses = {
        each.name: _status(each.resources, each.allocated_resources)
        for each in (*status.container_statuses, *status.init_container_statuses)
    }
    asked = spec.resources
    return _PodAsks(
        containers=tuple([_Ask(_items(each.resources.requests), statuses.get(each.name)) for each in spec.containers]),
        init_containers=tuple([_init_ask(each, statuses) for each in spec.init_containers]),
        pod=None
        if asked is None
        else _Ask(_items(asked.requests), _status(status.resources, status.allocated_resources)),
        overhead=_items(spec.overhead),
        resize_infeasible=resize_infeasible(pod),
    )


def _init_ask(container: Container, statuses: Mapping[str, _Status | None]) -> _Ask:
    # Only sidecars can be resized while they run; other init containers count as written.
    if container.restart_policy == "Always":
        return _Ask(_items(container.resources.requests), statuses.get(container.name), sidecar=True)
    return _Ask(_items(container.resources.requests))


def resize_infeasible(pod: Pod) -> bool:
    """Whether the node said that it cannot give a pod the resources it was changed to."""
    pending = next((each for each in pod.status.conditions if each.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _status(actuated: ResourceRequirements | None, allocated: ResourceList) -> _Status | None:
    return None if actuated is None else _Status(_items(actuated.requests), _items(allocated))


def _items(resources: ResourceList) -> _Items:
    return tuple(resources.items())


@lru_cache(maxsize=16_384)
def _resources_of(asks: _PodAsks) -> PodResources:
    used = _requests(asks, {}, use_status=True, pod_level=True)
    defaults = DEFAULT_REQUESTS
    if _has_pod_level_requests(asks):
        defaults = {name: amount for name, amount in DEFAULT_REQUESTS.items() if name not in used}
    non_zero = _requests(asks, defaults, use_status=True, pod_level=True)
    requests = scheduler_units(used if _is_as_written(asks) else _requests(asks, {}, use_status=False, pod_level=True))
    score = _requests(asks, DEFAULT_REQUESTS, use_status=False, pod_level=False)
    return PodResources(
        # The filter takes the larger of each request and zero.
        requests={name: max(amount, 0) for name, amount in requests.items()},
        used=scheduler_units(used),
        non_zero_cpu=milli_value(non_zero.get(CPU, Fraction(0))),
        non_zero_memory=value(non_zero.get(MEMORY, Fraction(0))),
        score_requests={name: _units(name, amount) for name, amount in score.items()},
        balanced_requests={name: _units(name, amount) for name, amount in used.items()},
    )


def _requests(asks: _PodAsks, non_missing: Mapping[str, Fraction], use_status: bool, pod_level: bool) -> _Amounts:
    requests = _container_requests(asks, non_missing, use_status)
    if pod_level and asks.pod is not None:
        effective = _effective(asks.pod, use_status, asks.resize_infeasible)
        for name, _ in asks.pod.requests:
            if _is_pod_level(name):
                requests[name] = effective.get(name, Fraction(0))
    _add(requests, _amounts(asks.overhead))
    return requests


def _container_requests(asks: _PodAsks, non_missing: Mapping[str, Fraction], use_status: bool) -> _Amounts:
    """What the containers need: all of them together with the sidecars, or the hungriest step of initialisation."""

    def effective(ask: _Ask) -> _Amounts:
        return {**non_missing, **_effective(ask, use_status, asks.resize_infeasible)}

    running: _Amounts = {}
    for ask in asks.containers:
        _add(running, effective(ask))
    sidecars: _Amounts = {}
    initialising: _Amounts = {}
    for ask in asks.init_containers:
        # An init container runs next to the sidecars started before it; a sidecar stays.
        step = effective(ask)
        if ask.sidecar:
            _add(running, step)
            _add(sidecars, step)
            step = sidecars
        else:
            _add(step, sidecars)
        _raise_to(initialising, step)
    _raise_to(running, initialising)
    return running


def _effective(ask: _Ask, use_status: bool, resize_infeasible: bool) -> _Amounts:
    """What is asked now, or still held: a resize counts at its larger end until it is done or cannot be done."""
    if not use_status or ask.status is None:
        return _amounts(ask.requests)
    held = {} if resize_infeasible else _amounts(ask.requests)
    _raise_to(held, _amounts(ask.status.actuated))
    _raise_to(held, _amounts(ask.status.allocated))
    return held


def _is_as_written(asks: _PodAsks) -> bool:
    """Whether the pod's status has no say in what it asks for."""
    return all(each is None or each.status is None for each in (asks.pod, *asks.containers, *asks.init_containers))


def _has_pod_level_requests(asks: _PodAsks) -> bool:
    return asks.pod is not None and any(_is_pod_level(name) for name, _ in asks.pod.requests)


def _amounts(items: Iterable[tuple[str, Quantity]]) -> _Amounts:
    amounts = {}
    for name, quantity in items:
        try:
            amounts[name] = parse_quantity(quantity)
        except QuantityError as error:
            raise error.at(name) from None
    return amounts


def _add(total: _Amounts, more: Mapping[str, Fraction]) -> None:
    for name, amount in more.items():
        total[name] = total[name] + amount if name in total else amount


def _raise_to(total: _Amounts, floor: Mapping[str, Fraction]) -> None:
    for name, amount in floor.items():
        if name not in total or amount > total[name]:
            total[name] = amount
