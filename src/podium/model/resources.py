"""The requests of a pod and the allocatable resources of a node, as kube-scheduler counts them.

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
from podium.rules import Rules

CPU = "cpu"
MEMORY = "memory"
EPHEMERAL_STORAGE = "ephemeral-storage"
PODS = "pods"

ALWAYS = "Always"
"""The restart policy that makes an init container a sidecar."""

DEFAULT_REQUESTS: Mapping[str, Fraction] = {CPU: Fraction(1, 10), MEMORY: Fraction(200 * 1024 * 1024)}
"""The default requests for scoring of a container without requests: 100m of cpu, 200Mi of memory."""

HUGE_PAGES = "hugepages-"
"""The prefix of huge-page resources."""
ATTACHABLE_VOLUMES = "attachable-volumes-"
"""The prefix of the resources that limit a node's volumes."""
_SCALAR_PREFIXES = (HUGE_PAGES, ATTACHABLE_VOLUMES)
_CSI_LIMIT, _LONGEST_KEY = f"{ATTACHABLE_VOLUMES}csi-", 63

_Amounts = dict[str, Fraction]
_Items = tuple[tuple[str, Quantity], ...]


@dataclass(frozen=True, slots=True, eq=False)
class PodResources:
    """A pod's requests in scheduler units, once for each way of counting them.

    Pods with the same requests share one instance, so it can serve as a key: read the dicts, never change them.
    """

    requests: dict[str, int]
    """The requests that NodeResourcesFit's filter compares for an incoming pod."""
    used: dict[str, int]
    """The resources that the pod occupies on its node, including in-place resizes."""
    non_zero_cpu: int
    """Millicores for scoring, with the default for every container without a request."""
    non_zero_memory: int
    """Bytes for scoring, with the default for every container without a request."""
    score_requests: dict[str, int]
    """The requests that NodeResourcesFit's scorer adds for an incoming pod; includes untracked resources."""
    balanced_requests: dict[str, int]
    """The requests that NodeResourcesBalancedAllocation adds for an incoming pod; includes untracked resources."""


@lru_cache(maxsize=1024)
def csi_limit_key(driver: str) -> str:
    """The resource with which a node limits the volumes of a CSI driver; a long name is cut and hashed."""
    if len(_CSI_LIMIT) + len(driver) < _LONGEST_KEY:
        return _CSI_LIMIT + driver
    return _CSI_LIMIT + driver[:23] + sha1(driver.encode(), usedforsecurity=False).hexdigest()[:16]


def pod_resources(pod: Pod, rules: Rules) -> PodResources:
    """The pod's resources in all ways of counting; cheap for pods with the same requests as earlier ones."""
    try:
        return _resources_of(_asks_of(pod, rules), rules)
    except QuantityError as error:
        raise error.at(f"pod {pod.key}") from None


def pod_requests(pod: Pod, rules: Rules) -> dict[str, Fraction]:
    """The amounts of each resource that a pod needs, from its spec.

    The larger of the sum of its containers and sidecars and of any step of initialisation; replaced by the pod-level
    requests if there are any; plus its overhead.
    """
    try:
        return _requests(_asks_of(pod, rules), {}, rules, use_status=False, pod_level=True)
    except QuantityError as error:
        raise error.at(f"pod {pod.key}") from None


def counts_by_release(pod: Pod) -> bool:
    """Whether releases may count the pod differently: it has sidecars or pod-level requests, or was resized.

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
    """A node's allocatable in scheduler units, always with `pods`: a node that does not state it allows none."""
    try:
        amounts = _amounts(node.allocatable.items())
    except QuantityError as error:
        raise error.at(f"node {node.name}") from None
    return scheduler_units(amounts) | {PODS: value(amounts.get(PODS, Fraction(0)))}


def scheduler_units(requests: Mapping[str, Fraction]) -> dict[str, int]:
    """The amounts of tracked resources as integers, rounded up."""
    return {name: _units(name, amount) for name, amount in requests.items() if _is_tracked(name)}


@lru_cache(maxsize=4096)
def is_extended_resource(name: str) -> bool:
    """Whether a resource is neither Kubernetes' own nor a quota name: `example.com/gpu`."""
    return not extended_resource_errors(name)


@lru_cache(maxsize=4096)
def is_scalar_resource(name: str) -> bool:
    """Whether the scheduler tracks a resource by its name: extended resources, huge pages, attachable volumes
    and so on.
    """
    return name.startswith(_SCALAR_PREFIXES) or NATIVE_DOMAIN in name or is_extended_resource(name)


def _is_tracked(name: str) -> bool:
    return name in (CPU, MEMORY, EPHEMERAL_STORAGE) or is_scalar_resource(name)


def _is_pod_level(name: str, rules: Rules) -> bool:
    """Whether the resource can be requested at pod level."""
    return name in (CPU, MEMORY) or (rules.pod_level_huge_pages and name.startswith(HUGE_PAGES))


def _units(name: str, amount: Fraction) -> int:
    return milli_value(amount) if name == CPU else value(amount)


class _Status(NamedTuple):
    """The resources that a running container or pod holds, independent of its current spec."""

    actuated: _Items | None
    """None if the status does not say."""
    allocated: _Items


class _Ask(NamedTuple):
    """One container's input to the calculation."""

    requests: _Items
    status: _Status | None = None
    sidecar: bool = False


class _PodAsks(NamedTuple):
    """Everything that determines a pod's requests, hashable: equal asks have equal resources."""

    containers: tuple[_Ask, ...]
    init_containers: tuple[_Ask, ...] = ()
    pod: tuple[tuple[str, Fraction], ...] = ()
    """The pod-level requests."""
    pod_status: _Status | None = None
    overhead: _Items = ()
    resize_infeasible: bool = False


def _asks_of(pod: Pod, rules: Rules) -> _PodAsks:
    """The fields of a pod that count in a release."""
    spec, status = pod.spec, pod.status
    held = status.container_statuses or status.resources or status.conditions
    if not (spec.init_containers or spec.overhead or spec.resources or held):
        # Most pods have nothing but containers with requests.
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
    """The resources that containers hold, by container name."""
    listed = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    found = {each.name: _status(each.resources, each.allocated_resources) for each in listed}
    return {name: status for name, status in found.items() if status is not None}


def _init_ask(container: Container, statuses: Mapping[str, _Status], rules: Rules) -> _Ask:
    sidecar = container.restart_policy == ALWAYS
    # If containers are compared one by one, only those that can be resized while they run are.
    counted = sidecar or rules.resize_compares_sums
    return _Ask(_items(container.resources.requests), statuses.get(container.name) if counted else None, sidecar)


def _pod_level(pod: Pod, asked: ResourceRequirements, rules: Rules) -> _Amounts:
    """The pod-level requests, completed from its containers where the release does so."""
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
    """Whether the node reported that it cannot resize the pod as asked."""
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
        # The filter uses the larger of each request and zero.
        requests={name: max(amount, 0) for name, amount in scheduler_units(requests).items()},
        used=scheduler_units(used),
        non_zero_cpu=non_zero_cpu,
        non_zero_memory=non_zero_memory,
        score_requests={name: _units(name, amount) for name, amount in score.items()},
        balanced_requests={name: _units(name, amount) for name, amount in used.items()},
    )


def _non_zero(asks: _PodAsks, used: _Amounts, rules: Rules) -> tuple[int, int]:
    """Cpu and memory for scoring, with the default for containers without a request."""
    if not rules.sidecars_add_to_non_zero_requests:
        return _non_zero_without_sidecars(asks, CPU), _non_zero_without_sidecars(asks, MEMORY)
    defaults = DEFAULT_REQUESTS
    if any(_is_pod_level(name, rules) for name, _ in asks.pod):
        defaults = {name: amount for name, amount in DEFAULT_REQUESTS.items() if name not in used}
    amounts = _requests(asks, defaults, rules, use_status=True, pod_level=True)
    return milli_value(amounts.get(CPU, Fraction(0))), value(amounts.get(MEMORY, Fraction(0)))


def _non_zero_without_sidecars(asks: _PodAsks, name: str) -> int:
    """The containers, or the largest step of initialisation with the sidecars started before it.

    A step has the default if neither the init container nor a sidecar before it has a request; every amount is rounded.
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
    """A pod's requests; `non_missing` replaces requests that a container leaves out.

    `use_status` counts the resources that a running pod still holds during an in-place resize.
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
    """The pod-level amounts, which replace those of the containers."""
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
    """The containers' needs during a resize: the larger of before and after, until it is done or infeasible."""
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
    """The containers' needs: the sum of all with the sidecars, or the largest step of initialisation.

    `use` returns the amounts of one container.
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
    """The amounts in the step of an init container: its own and those of the sidecars started before it.

    A sidecar keeps running, so it is added to `sidecars`.
    """
    if ask.sidecar:
        _add(sidecars, amounts)
        return sidecars
    _add(amounts, sidecars)
    return amounts


def _use_spec(ask: _Ask) -> _Amounts:
    """The amounts of a container as in its spec."""
    return _amounts(ask.requests)


def _use_largest(infeasible: bool, ask: _Ask) -> _Amounts:
    """The largest of a container's amounts in spec and status; without those of the spec if they are infeasible."""
    if ask.status is None or ask.status.actuated is None:
        return _amounts(ask.requests)
    held = {} if infeasible else _amounts(ask.requests)
    _raise_to(held, _amounts(ask.status.actuated))
    _raise_to(held, _amounts(ask.status.allocated))
    return held


def _use_allocated(infeasible: bool, ask: _Ask) -> _Amounts:
    """The amounts that the node has allocated to a container."""
    if ask.status is not None and ask.status.allocated:
        return _amounts(ask.status.allocated)
    return {} if infeasible else _amounts(ask.requests)


def _use_actuated(infeasible: bool, ask: _Ask) -> _Amounts:
    """The amounts that a container runs with."""
    if ask.status is not None and ask.status.actuated:
        return _amounts(ask.status.actuated)
    return _use_allocated(infeasible, ask)


def _is_as_written(asks: _PodAsks) -> bool:
    """Whether the pod's status does not affect its requests."""
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
