"""How many pods a workload has after it is scaled, and which pods go first."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cmp_to_key

from msgspec.structs import replace

from podium.manifests.apply import REPLICAS, Applied
from podium.manifests.loading import Objects
from podium.model.meta import Object
from podium.model.objects import SCALED, HorizontalPodAutoscaler, Scaled
from podium.model.pod import Pod, is_reported_ready
from podium.workloads.owners import active

_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def scaled_workload(workload: Scaled, replicas: int) -> Scaled:
    return replace(workload, spec=replace(workload.spec, replicas=replicas))


def scaled_by_autoscalers(objects: Objects, bound: str) -> Objects:
    """The objects with every workload that has a HorizontalPodAutoscaler at its `max` or `min` number of replicas."""
    scaled = scaled_to_bounds(objects, bound)
    if not scaled:
        return objects
    known = {applied.after.identity: applied for applied in objects.applied}
    changed = []
    for obj in objects:
        after = scaled.get(obj.identity)
        if after is None:
            changed.append(obj)
            continue
        before = known.get(obj.identity)
        paths = dict.fromkeys((*(before.paths if before else ()), REPLICAS))
        known[obj.identity] = Applied(before.before if before else obj, after, tuple(paths))
        changed.append(after)
    return objects.replaced(changed, applied=known.values())


def scaled_to_bounds(objects: Iterable[Object], bound: str) -> dict[tuple[str, str, str], Object]:
    """The workloads with HorizontalPodAutoscalers, scaled to the `max` or `min` that these allow.

    By kind, namespace and name. A workload with 0 replicas stays: its autoscaler is switched off.
    """
    objects = list(objects)
    workloads = {obj.identity: obj for obj in objects if isinstance(obj, SCALED)}
    scaled: dict[tuple[str, str, str], Object] = {}
    for autoscaler in objects:
        if not isinstance(autoscaler, HorizontalPodAutoscaler):
            continue
        target = autoscaler.spec.scale_target_ref
        workload = workloads.get((target.kind, autoscaler.namespace, target.name))
        if workload is None or not workload.spec.replicas:
            continue
        least = 1 if autoscaler.spec.min_replicas is None else autoscaler.spec.min_replicas
        wanted = autoscaler.spec.max_replicas if bound == "max" else least
        if wanted != workload.spec.replicas:
            scaled[workload.identity] = scaled_workload(workload, wanted)
    return scaled


def first_to_go(pods: Sequence[Pod], related: Iterable[Pod], number: int, now: float) -> list[Pod]:
    """The pods that a ReplicaSet deletes when it has `number` pods too many.

    In this order: pods without a node, pods that are not running or not ready, pods with a low deletion cost, pods on a
    node with many of the `related` pods, and the youngest; ages are compared by powers of two. `now` is in seconds.
    """
    if number <= 0:
        return []
    if number >= len(pods):
        return list(pods)
    on_node = Counter(pod.spec.node_name for pod in active(list(related)))

    def compare(one: Pod, other: Pod) -> int:
        for first, second in zip(_rank(one, on_node), _rank(other, on_node), strict=True):
            if first != second:
                return -1 if first < second else 1
        return _by_age(one, other, now)

    return sorted(pods, key=cmp_to_key(compare))[:number]


def _rank(pod: Pod, on_node: Counter[str]) -> tuple[int, ...]:
    node = pod.spec.node_name
    return bool(node), _PHASES.get(pod.status.phase, 0), is_ready(pod), _deletion_cost(pod), -on_node[node]


def _by_age(one: Pod, other: Pod, now: float) -> int:
    """Below 0 if the first is younger; for similar ages the uid decides."""
    for first, second in ((_started(one), _started(other)), (_created(one), _created(other))):
        if first != second:
            if first is None or second is None:
                return -1 if first is None else 1
            difference = _age_rank(now - first) - _age_rank(now - second)
            return difference or (-1 if one.metadata.uid < other.metadata.uid else 1)
    return 0


def _age_rank(seconds: float) -> int:
    return int(math.log2(seconds * 1e9)) if seconds > 0 else -1


def is_ready(pod: Pod) -> bool:
    """Whether a pod with a node is ready; a pod without a Ready condition counts as ready."""
    return bool(pod.spec.node_name) and is_reported_ready(pod)


def _deletion_cost(pod: Pod) -> int:
    text = pod.metadata.annotations.get(_DELETION_COST, "0")
    return int(text) if text.removeprefix("-").isascii() and text.removeprefix("-").isdigit() and len(text) < 12 else 0


def newest_time(pods: Iterable[Pod]) -> float:
    """When the input was taken, estimated from its pods: the latest creation or start time."""
    times = [time for pod in pods for time in (_created(pod), _started(pod)) if time is not None]
    return max(times, default=0.0)


def _started(pod: Pod) -> float | None:
    return _seconds(pod.status.start_time)


def _created(pod: Pod) -> float | None:
    return _seconds(pod.metadata.creation_timestamp)


def _seconds(text: str | None) -> float | None:
    try:
        return datetime.fromisoformat(text or "").timestamp()
    except (ValueError, OverflowError):
        return None
