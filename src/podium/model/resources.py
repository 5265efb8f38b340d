"""What a pod requests and what a node can allocate, as kube-scheduler counts it.

Scheduler units are integers: cpu in thousandths of a core, everything else in whole units (bytes, devices, pods).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache, partial
from hashlib import sha1
from typing import NamedTuple

from podium.errors import QuantityError
from podium.model import Container, Node, Pod, Quantity, ResourceList, ResourceRequirements
from podium.model.meta import NATIVE_DOMAIN, extended_resource_errors
from podium.model.quantity import milli_value, parse_quantity, value
from podium.rules import NEWEST_RULES, Rules

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

ALWAYS = "Always"
"""The restart policy that makes an init container a sidecar."""

DEFAULT_REQUESTS: Mapping[str, Fraction] = {CPU: Fraction(1, 10), MEMORY: Fraction(200 * 1024 * 1024)}
"""What scoring counts for a container that does not say: 100m of cpu, 200Mi of memory."""

HUGE_PAGES = "hugepages-"
"""What the names of huge pages begin with."""
ATTACHABLE_VOLUMES = "attachable-volumes-"
"""What the names begin with under which a node says how many volumes it takes."""
_SCALAR_PREFIXES = (HUGE_PAGES, ATTACHABLE_VOLUMES)
_CSI_LIMIT, _LONGEST_KEY = f"{ATTACHABLE_VOLUMES}csi-", 63

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


@lru_cache(maxsize=1024)
def csi_limit_key(driver: str) -> str:
    """The resource by which a node says how many volumes of a CSI driver it takes; a long name is cut and hashed."""
    if len(_CSI_LIMIT) + len(driver) < _LONGEST_KEY:
        return _CSI_LIMIT + driver
    return _CSI_LIMIT + driver[:23] + sha1(driver.encode(), usedforsecurity=False).hexdigest()[:16]


def pod_resources(pod: Pod, rules: Rules = NEWEST_RULES) -> PodResources:
    """Everything scheduling wants to know of a pod's requests; cheap for pods that ask like earlier ones did."""
    try:
        return _resources_of(_asks_of(pod, rules), rules)
    except QuantityError as error:
        raise error.at(f"pod {pod.key}") from None


def pod_requests(pod: Pod, rules: Rules = NEWEST_RULES) -> dict[str, Fraction]:
    """The amounts a pod needs of each resource it names, as its spec says.

    The larger of what its containers and sidecars need together and what any step of initialisation needs; then what
    the pod itself requests in place of that; then its overhead.
    """
    try:
        return _requests(_asks_of(pod, rules), {}, rules, use_status=False, pod_level=True)
    except QuantityError as error:
        raise error.at(f"pod {pod.key}") from None


def counts_by_release(pod: Pod) -> bool:
    """Whether releases may differ in what the pod counts for: it has sidecars, or requests of its own, or was resized.

    False means that they do not.
    """
    spec, status = pod.spec, pod.status
    return bool(
        spec.resources
        or status.resources
        or status.allocated_resources
        or any(each.restart_policy == ALWAYS for each in spec.init_containers)
        or any(each.resources or each.allocated_resources for each in status.container_statuses)
        or any(each.resources or each.allocated_resources for each in status.init_container_statuses)
        or (status.conditions and resize_infeasible(pod))
    )


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
    return not extended_resource_errors(name)


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Whether the scheduler counts a resource by its name alone: extended, huge pages, attachable volumes and such."""
    return name.startswith(_SCALAR_PREFIXES) or NATIVE_DOMAIN in name or is_extended_resource(name)


def _is_tracked(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def _is_pod_level(name: str, rules: Rules) -> bool:
    """Whether a pod can request the resource as a whole, over the heads of its containers."""
    return name in (CPU, MEMORY) or (rules.pod_level_huge_pages and name.startswith(HUGE_PAGES))


def _units(name: str, amount: Fraction) -> int:
    return milli_value(amount) if name == CPU else value(amount)


class _Status(NamedTuple):
    """What a running container or pod holds, whatever its spec asks for by now."""

    actuated: _Items | None
    """None where the status does not say."""
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
    pod: tuple[tuple[str, Fraction], ...] = ()
    """What the pod as a whole requests."""
    pod_status: _Status | None = None
    overhead: _Items = ()
    resize_infeasible: bool = False


def _asks_of(pod: Pod, rules: Rules) -> _PodAsks:
    """The fields of a pod that count in a release."""
    spec, status = pod.spec, pod.status
    held = status.container_statuses or status.resources or status.conditions
    if not (spec.init_containers or spec.overhead or spec.resources or held):
        # Most pods: nothing but containers that ask for something.
        return _PodAsks(tuple([_Ask(_items(each.resources.requests)) for each in spec.containers]))
    statuses = _statuses(pod) if rules.in_place_resize else {}
    asked = spec.resources if rules.pod_level_resources else None
    return _PodAsks(
        containers=tuple([_Ask(_items(each.resources.requests), statuses.get(each.name)) for each in spec.containers]),
        init_containers=tuple([_init_ask(each, statuses, rules) for each in spec.init_containers]),
        pod=() if asked is None else tuple(_pod_level(pod, asked, rules).items()),
        pod_status=_status(status.resources, status.allocated_resources) if rules.pod_level_resize else None,
        overhead=_items(spec.overhead),
        resize_infeasible=rules.in_place_resize and resize_infeasible(pod),
    )


def _statuses(pod: Pod) -> dict[str, _Status]:
    """What containers hold, by their names."""
    listed = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    found = {each.name: _status(each.resources, each.allocated_resources) for each in listed}
    return {name: status for name, status in found.items() if status is not None}


def _init_ask(container: Container, statuses: Mapping[str, _Status], rules: Rules) -> _Ask:
    sidecar = container.restart_policy == ALWAYS
    # Where containers are compared one by one, only those that can be resized while they run are.
    counted = sidecar or rules.resize_compares_sums
    return _Ask(_items(container.resources.requests), statuses.get(container.name) if counted else None, sidecar)


def _pod_level(pod: Pod, asked: ResourceRequirements, rules: Rules) -> _Amounts:
    """What the pod as a whole requests, filled in from its containers where the release does so."""
    written = _amounts(asked.requests.items())
    if not written or not rules.pod_level_defaults_from_containers:
        return written
    containers = _PodAsks(
        tuple([_Ask(_items(each.resources.requests)) for each in pod.spec.containers]),
        tuple([_init_ask(each, {}, rules) for each in pod.spec.init_containers]),
    )
    summed = _container_requests(containers, {}, _use_spec)
    return {name: amount for name, amount in summed.items() if name in (CPU, MEMORY)} | written


def resize_infeasible(pod: Pod) -> bool:
    """Whether the node said that it cannot give a pod the resources it was changed to."""
    pending = next((each for each in pod.status.conditions if each.type == "PodResizePending"), None)
    return pending is not None and pending.reason == "Infeasible"


def _status(actuated: ResourceRequirements | None, allocated: ResourceList) -> _Status | None:
    if actuated is None and not allocated:
        return None
    return _Status(None if actuated is None else _items(actuated.requests), _items(allocated))


def _items(resources: ResourceList) -> _Items:
    return tuple(resources.items())


@lru_cache(maxsize=16_384)
def _resources_of(asks: _PodAsks, rules: Rules) -> PodResources:
    used = _requests(asks, {}, rules, use_status=True, pod_level=True)
    requests = used
    if not _is_as_written(asks):
        requests = _requests(asks, {}, rules, use_status=False, pod_level=True)
    score = _requests(asks, DEFAULT_REQUESTS, rules, use_status=False, pod_level=False)
    non_zero_cpu, non_zero_memory = _non_zero(asks, used, rules)
    return PodResources(
        # The filter takes the larger of each request and zero.
        requests={name: max(amount, 0) for name, amount in scheduler_units(requests).items()},
        used=scheduler_units(used),
        non_zero_cpu=non_zero_cpu,
        non_zero_memory=non_zero_memory,
        score_requests={name: _units(name, amount) for name, amount in score.items()},
        balanced_requests={name: _units(name, amount) for name, amount in used.items()},
    )


def _non_zero(asks: _PodAsks, used: _Amounts, rules: Rules) -> tuple[int, int]:
    """Cpu and memory for scoring, where a container that does not say has the default."""
    if not rules.sidecars_add_to_non_zero_requests:
        return _non_zero_without_sidecars(asks, CPU), _non_zero_without_sidecars(asks, MEMORY)
    defaults = DEFAULT_REQUESTS
    if any(_is_pod_level(name, rules) for name, _ in asks.pod):
        defaults = {name: amount for name, amount in DEFAULT_REQUESTS.items() if name not in used}
    amounts = _requests(asks, defaults, rules, use_status=True, pod_level=True)
    return milli_value(amounts.get(CPU, Fraction(0))), value(amounts.get(MEMORY, Fraction(0)))


def _non_zero_without_sidecars(asks: _PodAsks, name: str) -> int:
    """The containers, or the hungriest step of initialisation next to the sidecars started before it.

    A step has the default where neither the init container nor a sidecar before it says; every amount is rounded.
    """
    default = DEFAULT_REQUESTS[name]
    running = sum(_units(name, _amounts(ask.requests).get(name, default)) for ask in asks.containers)
    sidecars: _Amounts = {}
    initialising = 0
    for ask in asks.init_containers:
        step = _beside_sidecars(ask, _amounts(ask.requests), sidecars)
        initialising = max(initialising, _units(name, step.get(name, default)))
    return max(running, initialising) + _units(name, _amounts(asks.overhead).get(name, Fraction(0)))


def _requests(
    asks: _PodAsks, non_missing: Mapping[str, Fraction], rules: Rules, *, use_status: bool, pod_level: bool
) -> _Amounts:
    """What a pod needs; `non_missing` stands in for requests that a container leaves out.

    `use_status` counts the resources a running pod still holds during an in-place resize.
    """
    requests = (
        _largest_sums(asks, non_missing, rules) if use_status else _container_requests(asks, non_missing, _use_spec)
    )
    if pod_level and any(_is_pod_level(name, rules) for name, _ in asks.pod):
        for name, amount in _whole(asks, rules, use_status).items():
            if _is_pod_level(name, rules):
                requests[name] = amount
    _add(requests, _amounts(asks.overhead))
    return requests


def _whole(asks: _PodAsks, rules: Rules, use_status: bool) -> _Amounts:
    """What counts for the pod as a whole, in place of its containers."""
    written, status = dict(asks.pod), asks.pod_status
    if not use_status or status is None or status.actuated is None:
        return written
    held = {} if asks.resize_infeasible else dict(written)
    _raise_to(held, _amounts(status.actuated))
    _raise_to(held, _amounts(status.allocated))
    if rules.resize_compares_sums:
        return held
    return {name: held.get(name, Fraction(0)) for name in written}


def _largest_sums(asks: _PodAsks, non_missing: Mapping[str, Fraction], rules: Rules) -> _Amounts:
    """What the containers need during a resize: its larger end until it is done or cannot be done."""
    if _is_as_written(asks):
        return _container_requests(asks, non_missing, _use_spec)
    if not rules.resize_compares_sums:
        return _container_requests(asks, non_missing, partial(_use_largest, asks.resize_infeasible))
    sums: list[_Amounts] = []
    if not asks.resize_infeasible:
        sums.append(_container_requests(asks, non_missing, _use_spec))
    status = asks.pod_status
    if status is not None and status.actuated and status.allocated:
        sums += [_amounts(status.actuated), _amounts(status.allocated)]
    else:
        for use in (_use_actuated, _use_allocated):
            sums.append(_container_requests(asks, non_missing, partial(use, asks.resize_infeasible)))
    largest: _Amounts = {}
    for each in sums:
        _raise_to(largest, each)
    return largest


def _container_requests(
    asks: _PodAsks, non_missing: Mapping[str, Fraction], use: Callable[[_Ask], _Amounts]
) -> _Amounts:
    """What the containers need: all of them together with the sidecars, or the hungriest step of initialisation.

    `use` says what one container counts with.
    """
    running: _Amounts = {}
    for ask in asks.containers:
        _add(running, {**non_missing, **use(ask)})
    sidecars: _Amounts = {}
    initialising: _Amounts = {}
    for ask in asks.init_containers:
        amounts = {**non_missing, **use(ask)}
        if ask.sidecar:
            _add(running, amounts)
        _raise_to(initialising, _beside_sidecars(ask, amounts, sidecars))
    _raise_to(running, initialising)
    return running


def _beside_sidecars(ask: _Ask, amounts: _Amounts, sidecars: _Amounts) -> _Amounts:
    """What runs in the step that starts an init container: it and the sidecars started before it.

    A sidecar stays, so it is added to `sidecars`.
    """
    if ask.sidecar:
        _add(sidecars, amounts)
        return sidecars
    _add(amounts, sidecars)
    return amounts


def _use_spec(ask: _Ask) -> _Amounts:
    """A container counts as written."""
    return _amounts(ask.requests)


def _use_largest(infeasible: bool, ask: _Ask) -> _Amounts:
    """A container counts with the largest of what is written and held; without the former if that cannot be had."""
    if ask.status is None or ask.status.actuated is None:
        return _amounts(ask.requests)
    held = {} if infeasible else _amounts(ask.requests)
    _raise_to(held, _amounts(ask.status.actuated))
    _raise_to(held, _amounts(ask.status.allocated))
    return held


def _use_allocated(infeasible: bool, ask: _Ask) -> _Amounts:
    """A container counts with what its node promised it."""
    if ask.status is not None and ask.status.allocated:
        return _amounts(ask.status.allocated)
    return {} if infeasible else _amounts(ask.requests)


def _use_actuated(infeasible: bool, ask: _Ask) -> _Amounts:
    """A container counts with what it runs with."""
    if ask.status is not None and ask.status.actuated:
        return _amounts(ask.status.actuated)
    return _use_allocated(infeasible, ask)


def _is_as_written(asks: _PodAsks) -> bool:
    """Whether the pod's status has no say in what it asks for."""
    asking = (*asks.containers, *asks.init_containers)
    return not asks.resize_infeasible and asks.pod_status is None and all(each.status is None for each in asking)


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
