"""What a user can do about a node without room: free resources there, evict pods, or lower the pod's requests."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from functools import partial

from msgspec.structs import replace

from podium.cluster import Cluster, NodeInfo
from podium.framework.suggested_change import Change, RejectedPod, Trial, edit_pod, evict, evictable
from podium.model import Container, Pod, ResourceRequirements
from podium.model.quantity import format_quantity, parse_quantity
from podium.model.resources import CPU, PODS, pod_resources
from podium.wording import joined

MOST_EVICTED = 5
"""How many pods one change evicts at most."""
MOST_ALTERNATIVES = 3


def resource_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Free resources on the node, evict pods from it, or lower the pod's requests."""
    node, cluster = rejected.node, rejected.cluster
    info = NodeInfo(cluster, cluster.rows[node])
    requests = pod_resources(rejected.pod).requests
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
        yield lower_requests(rejected.pod, left)


def _evictions(cluster: Cluster, node: str, missing: Mapping[str, int]) -> Iterator[Change]:
    """Evict single pods that are large enough; if there are none, as few as are, the least important first."""
    candidates = evictable(cluster, node)
    enough = [pod for pod in candidates if _covers([pod], missing)]
    for pod in enough[:MOST_ALTERNATIVES]:
        yield evict([pod])
    if not enough:
        chosen: list[Pod] = []
        for pod in candidates:
            if not _covers(chosen, missing):
                chosen.append(pod)
        needed = [pod for pod in chosen if not _covers([each for each in chosen if each is not pod], missing)]
        if needed and len(needed) <= MOST_EVICTED and _covers(needed, missing):
            yield evict(needed)


def _covers(pods: list[Pod], missing: Mapping[str, int]) -> bool:
    freed = [pod_resources(pod).used | {PODS: 1} for pod in pods]
    return all(sum(each.get(name, 0) for each in freed) >= amount for name, amount in missing.items())


def free(node: str, missing: Mapping[str, int]) -> Change:
    """Lower the requests of pods on the node, the least important first, until this much is free."""

    def apply(to: Trial) -> None:
        for name, amount in missing.items():
            left = amount
            for pod in evictable(to.cluster, node):
                current = to.cluster.find_pod(pod.key)
                if left > 0 and current is not None:
                    before = pod_resources(current[0]).used.get(name, 0)
                    lower = partial(_lowered, resource=name, to=max(before - left, 0))
                    left -= before - pod_resources(lower(current[0])).used.get(name, 0)
                    to.edit_running(pod.key, lower)

    amounts = joined([f"{amount_text(name, amount)} {name}" for name, amount in missing.items()])
    return Change("free", f"free {amounts} on {node}", (f"node/{node}",), 3 * len(missing), apply)


def lower_requests(pod: Pod, to: Mapping[str, int]) -> Change:
    """Lower the pod's requests to these amounts."""

    def edit(before: Pod) -> Pod:
        for name, amount in to.items():
            before = _lowered(before, name, amount)
        return before

    requests = pod_resources(pod).requests
    parts = [
        f"lower the pod's {name} request from {amount_text(name, requests[name])} to {amount_text(name, amount)}"
        if amount
        else f"drop the pod's {name} request"
        for name, amount in to.items()
    ]
    return edit_pod("lower-request", joined(parts), pod, 4 * len(to), edit)


def _lowered(pod: Pod, resource: str, to: int) -> Pod:
    """Lower a pod's request for a resource to `to`, in scheduler units: of the pod, then container by container."""

    def excess() -> int:
        return pod_resources(pod).requests.get(resource, 0) - to

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
    # A device is limited to what is requested of it; cpu and memory may be used beyond that.
    limits = {**limits, resource: text} if resource in limits and "/" in resource else limits
    return replace(resources, requests={**resources.requests, resource: text}, limits=limits)


def amount_text(resource: str, amount: int) -> str:
    """An amount in scheduler units the way it is written in a manifest, exactly."""
    return format_quantity(Fraction(amount, 1000) if resource == CPU else amount, binary=resource not in (CPU, PODS))
