"""What the API server does to new pods of a namespace: LimitRanges set defaults and bounds, ResourceQuotas refuse."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from fractions import Fraction

from msgspec.structs import replace

from podium.errors import InputError
from podium.model import Container, LimitRange, Object, Pod, PodAffinityTerm, Quantity, ResourceList, ResourceQuota
from podium.model.objects import LimitRangeItem, ScopedResourceSelectorRequirement
from podium.model.pod import ResourceRequirements
from podium.model.quantity import canonical_quantity, format_quantity, is_binary_quantity, parse_quantity
from podium.model.resources import ALWAYS, CPU, EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY, PODS, is_extended_resource

REQUESTS, LIMITS = "requests.", "limits."
COUNT_OF_PODS = "count/pods"
_MUST_BE_SPECIFIED = frozenset(
    (CPU, MEMORY, *(prefix + name for prefix in (REQUESTS, LIMITS) for name in (CPU, MEMORY)))
)
"""If a quota limits one of these, every container has to specify it."""

Amounts = dict[str, Fraction]


@dataclass(frozen=True, slots=True)
class Refusal:
    """Pods that the API server does not create."""

    workload: str
    """`Deployment/web`, or another kind and name; of the object that creates the pods."""
    namespace: str
    count: int
    reason: str
    """In the API server's words, with the name of the LimitRange or ResourceQuota."""

    def __str__(self) -> str:
        pods = "1 pod is" if self.count == 1 else f"{self.count:,} pods are"
        return f"{self.namespace} {self.workload}: {pods} refused: {self.reason}"

    def to_dict(self) -> dict[str, object]:
        return {"workload": self.workload, "namespace": self.namespace, "count": self.count, "reason": self.reason}


class Admission:
    """The LimitRanges and ResourceQuotas of a cluster, and how much of the quotas is used.

    What a quota's status reports beyond the pods of the input counts as used by others.
    """

    def __init__(self, objects: Iterable[Object]) -> None:
        objects = list(objects)
        ranges = sorted((obj for obj in objects if type(obj) is LimitRange), key=lambda each: each.key)
        quotas = sorted((obj for obj in objects if type(obj) is ResourceQuota), key=lambda each: each.key)
        self._ranges: dict[str, list[LimitRange]] = defaultdict(list)
        self._quotas: dict[str, list[_Quota]] = defaultdict(list)
        for each in ranges:
            self._ranges[each.namespace].append(each)
        for quota in quotas:
            self._quotas[quota.namespace].append(_Quota(quota))
        if quotas:
            for obj in objects:
                if type(obj) is Pod:
                    self.note(obj)
            for known in self._quotas.values():
                for one in known:
                    one.trust_status()

    def __bool__(self) -> bool:
        return bool(self._ranges or self._quotas)

    def with_defaults(self, pod: Pod) -> Pod:
        """The pod with the default requests and limits of its namespace's LimitRanges."""
        for each in self._ranges.get(pod.namespace, ()):
            pod = _with_defaults(pod, each)
        return pod

    def refusal(self, pod: Pod) -> str:
        """Why the API server does not create a pod, which has its defaults; empty if it does."""
        for each in self._ranges.get(pod.namespace, ()):
            problems = [problem for item in each.spec.limits for problem in _out_of_bounds(item, pod)]
            if problems:
                listed = problems[0] if len(problems) == 1 else f"[{', '.join(dict.fromkeys(problems))}]"
                return f"{listed} (LimitRange {each.name})"
        for quota in self._quotas.get(pod.namespace, ()):
            if quota.covers(pod) and (problem := quota.refusal(pod)):
                return problem
        return ""

    def note(self, pod: Pod) -> None:
        """Count a pod that was created."""
        for quota in self._quotas.get(pod.namespace, ()):
            if quota.covers(pod):
                quota.add(pod, 1)

    def forget(self, pod: Pod) -> None:
        """Give back what a pod that is gone used."""
        for quota in self._quotas.get(pod.namespace, ()):
            if quota.covers(pod):
                quota.add(pod, -1)


# -- LimitRanges ---------------------------------------------------------------------------------------------------


def _with_defaults(pod: Pod, limit_range: LimitRange) -> Pod:
    requests: ResourceList = {}
    limits: ResourceList = {}
    for item in limit_range.spec.limits:
        if item.type == "Container":
            default_limits = {**item.max, **item.default}
            limits |= default_limits
            requests |= {**item.min, **default_limits, **item.default_request}
    if not requests and not limits:
        return pod

    def defaulted(container: Container) -> Container:
        asked = container.resources
        merged = replace(asked, requests={**requests, **asked.requests}, limits={**limits, **asked.limits})
        return container if merged == asked else replace(container, resources=merged)

    spec = pod.spec
    containers, init_containers = list(map(defaulted, spec.containers)), list(map(defaulted, spec.init_containers))
    return replace(pod, spec=replace(spec, containers=containers, init_containers=init_containers))


def _out_of_bounds(item: LimitRangeItem, pod: Pod) -> Iterator[str]:
    """What one item of a LimitRange finds wrong with a pod, in the API server's words."""
    if item.type == "Container":
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            asked = container.resources
            yield from _problems(item, _amounts(asked.requests), _amounts(asked.limits))
    elif item.type == "Pod":
        yield from _problems(item, _of_pod(pod, "requests"), _of_pod(pod, "limits"))


def _problems(item: LimitRangeItem, requests: Amounts, limits: Amounts) -> Iterator[str]:
    for name, bound in sorted(item.min.items()):
        least, said = parse_quantity(bound), f"minimum {name} usage per {item.type} is {canonical_quantity(bound)}"
        if name not in requests:
            yield f"{said}.  No request is specified"
        elif requests[name] < least:
            yield f"{said}, but request is {_written(requests[name], bound)}"
        elif name in limits and limits[name] < least:
            yield f"{said}, but limit is {_written(limits[name], bound)}"
    for name, bound in sorted(item.max.items()):
        most, said = parse_quantity(bound), f"maximum {name} usage per {item.type} is {canonical_quantity(bound)}"
        if name not in limits:
            yield f"{said}.  No limit is specified"
        elif limits[name] > most:
            yield f"{said}, but limit is {_written(limits[name], bound)}"
        elif name in requests and requests[name] > most:
            yield f"{said}, but request is {_written(requests[name], bound)}"
    for name, bound in sorted(item.max_limit_request_ratio.items()):
        said = f"{name} max limit to request ratio per {item.type} is {canonical_quantity(bound)}"
        if not requests.get(name):
            yield f"{said}, but no request is specified or request is 0"
        elif not limits.get(name):
            yield f"{said}, but no limit is specified or limit is 0"
        elif (ratio := limits[name] / requests[name]) > parse_quantity(bound):
            yield f"{said}, but provided ratio is {float(ratio):f}"


# -- ResourceQuotas ------------------------------------------------------------------------------------------------


class _Quota:
    """A ResourceQuota, and how much of it is used."""

    def __init__(self, quota: ResourceQuota) -> None:
        self._quota = quota
        self._hard = {name: amount for name, amount in quota.spec.hard.items() if _is_of_pods(name)}
        self._used: Amounts = dict.fromkeys(self._hard, Fraction(0))
        spec = quota.spec
        self._scopes = [ScopedResourceSelectorRequirement(scope_name=name, operator="Exists") for name in spec.scopes]
        if spec.scope_selector is not None:
            self._scopes += spec.scope_selector.match_expressions

    def covers(self, pod: Pod) -> bool:
        return bool(self._hard) and all(_is_in_scope(pod, scope) for scope in self._scopes)

    def add(self, pod: Pod, number: int) -> None:
        for name, amount in _usage(pod).items():
            if name in self._used:
                self._used[name] += number * amount

    def trust_status(self) -> None:
        """Count what the status reports beyond the pods that were noted so far."""
        for name, amount in self._quota.status.used.items():
            if name in self._used:
                self._used[name] = max(self._used[name], parse_quantity(amount))

    def refusal(self, pod: Pod) -> str:
        """Why the quota does not allow a pod; empty if it does."""
        if pod.spec.resources is None and (missing := self._missing(pod)):
            return f"failed quota: {self._quota.name}: must specify {missing}"
        usage = {name: amount for name, amount in _usage(pod).items() if name in self._hard and amount}
        exceeded = sorted(
            name for name, amount in usage.items() if self._used[name] + amount > parse_quantity(self._hard[name])
        )
        if not exceeded:
            return ""
        return (
            f"exceeded quota: {self._quota.name}, requested: {self._listed(usage, exceeded)}, "
            f"used: {self._listed(self._used, exceeded)}, "
            f"limited: {','.join(f'{name}={canonical_quantity(self._hard[name])}' for name in exceeded)}"
        )

    def _listed(self, amounts: Mapping[str, Fraction], names: Iterable[str]) -> str:
        return ",".join(f"{name}={_written(amounts[name], self._hard[name])}" for name in names)

    def _missing(self, pod: Pod) -> str:
        """The amounts that a quota on cpu or memory needs and containers do not specify, each with the containers."""
        missing: dict[str, set[str]] = defaultdict(set)
        for container in (*pod.spec.containers, *pod.spec.init_containers):
            asked = container.resources
            specified = _counted(_amounts(asked.requests), _amounts(asked.limits))
            for name in _MUST_BE_SPECIFIED & self._hard.keys() - specified.keys():
                missing[name].add(container.name)
        return "; ".join(f"{name} for: {','.join(sorted(missing[name]))}" for name in sorted(missing))


def _is_of_pods(name: str) -> bool:
    """Whether a quota of this resource is about pods."""
    plain = name.removeprefix(REQUESTS).removeprefix(LIMITS)
    if name in (PODS, COUNT_OF_PODS) or plain in (CPU, MEMORY, EPHEMERAL_STORAGE):
        return True
    if plain.startswith(HUGE_PAGES):
        return not name.startswith(LIMITS)
    return name.startswith(REQUESTS) and is_extended_resource(plain)


def _usage(pod: Pod) -> Amounts:
    """How much of each resource of quotas a pod uses; a finished pod counts as an object alone."""
    usage = {COUNT_OF_PODS: Fraction(1)}
    if pod.finished:
        return usage
    overhead = _amounts(pod.spec.overhead)
    requests, limits = _of_pod(pod, "requests"), _of_pod(pod, "limits")
    for name, amount in overhead.items():
        requests[name] = requests.get(name, Fraction(0)) + amount
        if limits.get(name):
            limits[name] += amount
    return usage | _counted(requests, limits)


def _counted(requests: Amounts, limits: Amounts) -> Amounts:
    counted = {PODS: Fraction(1)}
    for name, amount in requests.items():
        if name in (CPU, MEMORY, EPHEMERAL_STORAGE) or name.startswith(HUGE_PAGES):
            counted |= {name: amount, REQUESTS + name: amount}
        elif is_extended_resource(name):
            counted[REQUESTS + name] = amount
    return counted | {LIMITS + name: limits[name] for name in (CPU, MEMORY, EPHEMERAL_STORAGE) if name in limits}


def _is_in_scope(pod: Pod, scope: ScopedResourceSelectorRequirement) -> bool:
    deadline = pod.spec.active_deadline_seconds
    match scope.scope_name:
        case "Terminating":
            return deadline is not None and deadline >= 0
        case "NotTerminating":
            return deadline is None or deadline < 0
        case "BestEffort":
            return _is_best_effort(pod)
        case "NotBestEffort":
            return not _is_best_effort(pod)
        case "PriorityClass":
            return _has_priority_class(pod.spec.priority_class_name, scope)
        case "CrossNamespacePodAffinity":
            return any(term.namespaces or term.namespace_selector is not None for term in _affinity_terms(pod))
        case _:
            return False


def _has_priority_class(name: str, scope: ScopedResourceSelectorRequirement) -> bool:
    match scope.operator:
        case "In":
            return bool(name) and name in scope.values
        case "NotIn":
            return not name or name not in scope.values
        case "DoesNotExist":
            return not name
        case _:
            return bool(name)


def _affinity_terms(pod: Pod) -> Iterator[PodAffinityTerm]:
    affinity = pod.spec.affinity
    for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if affinity else ():
        if side is not None:
            yield from side.required
            yield from (weighted.pod_affinity_term for weighted in side.preferred)


def _is_best_effort(pod: Pod) -> bool:
    """Whether no container, nor the pod, asks for cpu or memory."""
    asked = [container.resources for container in (*pod.spec.containers, *pod.spec.init_containers)]
    if pod.spec.resources is not None:
        asked = [pod.spec.resources]
    amounts = (_amounts({**each.requests}) for each in asked), (_amounts({**each.limits}) for each in asked)
    return not any(found.get(name) for side in amounts for found in side for name in (CPU, MEMORY))


# -- amounts -------------------------------------------------------------------------------------------------------


def _of_pod(pod: Pod, field: str) -> Amounts:
    """A pod's requests or limits: of its containers and sidecars together, or of a larger step of initialisation.

    Amounts for the pod as a whole replace those of cpu and memory.
    """
    total: Amounts = {}
    for container in pod.spec.containers:
        _add(total, _field(container.resources, field))
    sidecars: Amounts = {}
    largest: Amounts = {}
    for container in pod.spec.init_containers:
        step = _field(container.resources, field)
        if container.restart_policy == ALWAYS:
            _add(total, step)
            _add(sidecars, step)
            step = dict(sidecars)
        else:
            _add(step, sidecars)
        for name, amount in step.items():
            largest[name] = max(largest.get(name, amount), amount)
    for name, amount in largest.items():
        total[name] = max(total.get(name, amount), amount)
    whole = {} if pod.spec.resources is None else _field(pod.spec.resources, field)
    return total | {name: amount for name, amount in whole.items() if name in (CPU, MEMORY)}


def _field(resources: ResourceRequirements, field: str) -> Amounts:
    return _amounts(resources.requests if field == "requests" else resources.limits)


def _amounts(resources: ResourceList) -> Amounts:
    try:
        return {name: parse_quantity(amount) for name, amount in resources.items()}
    except InputError as error:
        raise error.at("resources") from None


def _add(total: Amounts, more: Mapping[str, Fraction]) -> None:
    for name, amount in more.items():
        total[name] = total.get(name, Fraction(0)) + amount


def _written(amount: Fraction, like: Quantity) -> str:
    """An amount in the units of another one."""
    return format_quantity(amount, binary=is_binary_quantity(like))
