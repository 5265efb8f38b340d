"""The pods of a workload that a later file changes: which pods are deleted, and which are created."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import cmp_to_key
from itertools import count

from podium.errors import InputError
from podium.manifests.apply import REPLICAS, Applied, scaled_to_bounds, scaled_workload
from podium.manifests.defaults import default_spec, rolling_update
from podium.manifests.loading import Objects
from podium.manifests.workloads import (
    HASH_LABEL,
    Expansion,
    active,
    annotated_number,
    current_replica_set,
    new_replica_set,
    should_run,
    target_node,
    with_daemon_tolerations,
)
from podium.model.meta import Object
from podium.model.objects import DaemonSet, Deployment, ReplicaSet, ReplicationController, StatefulSet, int_or_percent
from podium.model.pod import Pod, PodTemplateSpec, is_reported_ready
from podium.wording import counted

ROLLED_OUT = (Deployment, StatefulSet, DaemonSet)
RolledOut = Deployment | StatefulSet | DaemonSet
RECREATE, ON_DELETE = "Recreate", "OnDelete"
_MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
"""The annotation of a ReplicaSet with the maximum number of pods of its Deployment, including the surge."""
_DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}


def with_changes_carried_out(objects: Objects) -> Objects:
    """The objects after the changes of later files are carried out: pods of an old template are gone.

    The new pods come with `expand_workloads`. Pods beyond a workload's replicas are gone as well.
    """
    if not objects.applied:
        return objects
    expansion, gone, changed = Expansion(objects), set[str](), dict[int, Object]()
    now = newest_time(objects.of(Pod))
    added: list[Object] = []
    for applied in objects.applied:
        match applied.after:
            case Deployment():
                replaced = _Deployed(applied, expansion, now)
                gone |= {pod.key for pod in replaced.gone}
                changed |= {id(before): after for before, after in replaced.replica_sets}
                added += replaced.added
            case StatefulSet():
                gone |= {pod.key for pod in _leaving_stateful_set(applied, expansion)}
            case DaemonSet():
                gone |= {pod.key for pod in _leaving_daemon_set(applied, expansion)}
            case ReplicaSet() | ReplicationController() as controller:
                pods = active(expansion.owned(controller, Pod))
                surplus = len(pods) - controller.spec.replicas
                gone |= {pod.key for pod in first_to_go(pods, pods, surplus, now)}
    kept = [changed.get(id(obj), obj) for obj in objects if not (type(obj) is Pod and obj.key in gone)]
    return objects.replaced([*kept, *added])


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


def kept_on_purpose(applied: Applied) -> str:
    """Why pods of an old template stay although the template was changed; empty if none do."""
    if not applied.changes_template:
        return ""
    match applied.after:
        case Deployment(spec=deployment) if deployment.paused:
            return "it is paused: pods of the old template stay"
        case StatefulSet(spec=spec) | DaemonSet(spec=spec) if spec.update_strategy.type == ON_DELETE:
            return "its update strategy is OnDelete: pods of the old template stay until somebody deletes them"
        case StatefulSet(spec=stateful) if below := min(
            stateful.update_strategy.rolling_update.partition, stateful.replicas
        ):
            return f"the partition keeps {counted(below, 'pod')} of the old template"
        case _:
            return ""


class _Deployed:
    """The result for a changed Deployment: the pods that are deleted, and its ReplicaSets afterwards."""

    def __init__(self, applied: Applied, expansion: Expansion, now: float) -> None:
        deployment, before = applied.after, applied.before
        assert isinstance(deployment, Deployment)
        assert isinstance(before, Deployment)
        sets = replica_sets_of(deployment, expansion)
        self.gone: list[Pod] = []
        self.added: list[Object] = []
        self.replica_sets: list[tuple[ReplicaSet, ReplicaSet]] = []
        pods = deployed_pods(deployment, sets, expansion)
        wanted = deployment.spec.replicas
        if applied.changes_template and not deployment.spec.paused:
            new = find_replica_set(deployment, sets, changed=True)
            self.gone = [pod for pod in pods if new is None or not owned_by(pod, new)]
            self._scale([each for each in sets if each is not new], 0)
            if new is None:
                self.added.append(added_replica_set(deployment, expansion))
            else:
                self._scale([new], wanted)
        elif sets and before.spec.replicas == wanted:
            return
        elif len(sizes := scaled_sizes(deployment, sets)) > 1:
            for each in sets:
                own = active(expansion.owned(each, Pod))
                size = sizes.get(each.name, 0)
                self.gone += first_to_go(own, active(pods), len(own) - size, now)
                self._scale([each], size)
        elif sets:
            current = next((each for each in sets if each.name in sizes), None) or current_replica_set(sets)
            own = active(expansion.owned(current, Pod))
            others = len(active(pods)) - len(own)
            self.gone = first_to_go(own, active(pods), len(own) + others - wanted, now)
            self._scale([current], max(wanted - others, 0))
        else:
            self.gone = first_to_go(active(pods), active(pods), len(active(pods)) - wanted, now)

    def _scale(self, sets: Iterable[ReplicaSet], replicas: int) -> None:
        for each in sets:
            scaled = scaled_workload(each, replicas)
            assert isinstance(scaled, ReplicaSet)
            self.replica_sets.append((each, scaled))


def _leaving_stateful_set(applied: Applied, expansion: Expansion) -> list[Pod]:
    """The pods of a StatefulSet beyond its replicas, and those that it updates: from the partition on."""
    stateful_set = applied.after
    assert isinstance(stateful_set, StatefulSet)
    pods = expansion.owned(stateful_set, Pod)
    strategy = stateful_set.spec.update_strategy
    replaces = applied.changes_template and strategy.type != ON_DELETE
    start = stateful_set.spec.ordinals.start
    first = start + strategy.rolling_update.partition if replaces else math.inf
    end = start + stateful_set.spec.replicas
    return [pod for pod in pods if not start <= (number := ordinal_of(pod)) < end or number >= first]


def _leaving_daemon_set(applied: Applied, expansion: Expansion) -> list[Pod]:
    """The pods that a DaemonSet updates, and those on nodes that are no longer eligible."""
    daemon_set = applied.after
    assert isinstance(daemon_set, DaemonSet)
    pods = expansion.owned(daemon_set, Pod)
    if applied.changes_template and daemon_set.spec.update_strategy.type != ON_DELETE:
        return pods
    template = with_daemon_tolerations(daemon_set.spec.template)
    meant_for = {node.name for node in expansion.nodes if should_run(template, node)}
    return [pod for pod in pods if target_node(pod) not in meant_for]


def added_replica_set(deployment: Deployment, expansion: Expansion) -> ReplicaSet:
    """Create the ReplicaSet for a Deployment's new template; it is known to the expansion from now on."""
    collisions = count()
    made = new_replica_set(deployment)
    # Templates that differ only in fields that scheduling does not read have the same hash.
    while expansion.is_taken(ReplicaSet, made.namespace, made.name):
        made = new_replica_set(deployment, collisions=next(collisions) + 1)
    return expansion.add(made)


# -- how many pods each ReplicaSet has -----------------------------------------------------------------------------


def scaled_sizes(deployment: Deployment, sets: Sequence[ReplicaSet]) -> dict[str, int]:
    """The number of pods of each ReplicaSet after its Deployment was scaled; empty ReplicaSets are left out.

    During a rolling update, the old and the new ReplicaSets grow or shrink in proportion, up to the total that maxSurge
    allows; a single ReplicaSet gets all. `sets` are ordered by age.
    """
    wanted, sizes = deployment.spec.replicas, {each.name: each.spec.replicas for each in sets if each.spec.replicas}
    if len(sizes) < 2 or deployment.spec.strategy.type == RECREATE:
        return dict.fromkeys(sizes, wanted) if len(sizes) < 2 else {}
    most, before = wanted + most_surging(deployment, wanted) if wanted else 0, sum(sizes.values())
    left = most - before
    # Among equally large sets, the newest grows first, the oldest shrinks first.
    with_pods = [each for each in (sets if left < 0 else reversed(sets)) if each.name in sizes]
    with_pods.sort(key=lambda each: -each.spec.replicas)
    for each in with_pods if left else ():
        share = int(each.spec.replicas * most / (annotated_number(each, _MAX_REPLICAS) or before) + 0.5)
        share -= each.spec.replicas
        share = min(share, left) if most > before else max(share, left)
        sizes[each.name] += share
        left -= share
        if not left:
            break
    largest = with_pods[0].name
    return sizes | {largest: max(sizes[largest] + left, 0)}


def most_surging(workload: RolledOut, wanted: int) -> int:
    """maxSurge in pods: how many pods may exist beyond those wanted; percentages are rounded up."""
    return _bound(workload, rolling_update(workload).max_surge, wanted, "maxSurge", up=True)


def most_unavailable(workload: RolledOut, wanted: int) -> int:
    """maxUnavailable in pods: how many of those wanted may be missing; only a DaemonSet rounds up."""
    up = isinstance(workload, DaemonSet)
    return _bound(workload, rolling_update(workload).max_unavailable, wanted, "maxUnavailable", up=up)


def _bound(workload: RolledOut, value: int | str | None, of: int, field: str, *, up: bool) -> int:
    try:
        return int_or_percent(value or 0, of, up=up)
    except InputError as error:
        raise error.at(f"{type(workload).__name__} {workload.key}: rollingUpdate.{field}") from None


# -- whose pods are whose ------------------------------------------------------------------------------------------


def replica_sets_of(deployment: Deployment, expansion: Expansion) -> list[ReplicaSet]:
    """The ReplicaSets of a Deployment, the oldest first."""
    owned = expansion.owned(deployment, ReplicaSet)
    return sorted(owned, key=lambda each: (each.metadata.creation_timestamp or "", each.name))


def find_replica_set(deployment: Deployment, sets: Sequence[ReplicaSet], *, changed: bool) -> ReplicaSet | None:
    """The oldest ReplicaSet with the Deployment's template, comparing only the parts that scheduling reads.

    If the template was just `changed`, the ReplicaSet in use does not match, even if only unread parts differ.
    """
    in_use = current_replica_set(sets) if sets and changed else None
    wanted = _comparable(deployment.spec.template)
    return next((each for each in sets if each is not in_use and _comparable(each.spec.template) == wanted), None)


def _comparable(template: PodTemplateSpec) -> tuple[object, ...]:
    labels = {key: text for key, text in template.metadata.labels.items() if key != HASH_LABEL}
    return labels, template.metadata.annotations, default_spec(template.spec)


def deployed_pods(deployment: Deployment, sets: Iterable[ReplicaSet], expansion: Expansion) -> list[Pod]:
    """The pods of a Deployment's ReplicaSets; if these are not in the input, the pods whose names match."""
    pods = {pod.key: pod for each in sets for pod in expansion.owned(each, Pod)}
    pods |= {pod.key: pod for pod in expansion.deployed.get((deployment.namespace, deployment.name), ())}
    return [pod for pod in pods.values() if not pod.finished]


def owned_by(pod: Pod, owner: Object) -> bool:
    controller = pod.metadata.controller
    return controller is not None and (controller.kind, controller.name) == (type(owner).__name__, owner.name)


def ordinal_of(pod: Pod) -> int:
    """The ordinal of a StatefulSet's pod; -1 for a pod that has none."""
    number = pod.name.rpartition("-")[2]
    return int(number) if number.isascii() and number.isdigit() and len(number) < 10 else -1


# -- which pods go first -------------------------------------------------------------------------------------------


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
