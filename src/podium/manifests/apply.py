"""Applies an object of a later file over the earlier object of the same name, as `kubectl apply` does: lists what
changes, and which pods of a changed workload are deleted and created.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from functools import cmp_to_key
from itertools import count
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests.defaults import PREEMPT_LOWER_PRIORITY, default_spec, rolling_update
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
from podium.model.meta import Object, ObjectMeta
from podium.model.objects import (
    CronJob,
    DaemonSet,
    Deployment,
    HorizontalPodAutoscaler,
    Job,
    Node,
    PersistentVolume,
    PersistentVolumeClaim,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    RollingUpdate,
    StatefulSet,
    UpdateStrategy,
    int_or_percent,
)
from podium.model.pod import Pod, PodSpec, PodTemplateSpec, Toleration, is_reported_ready
from podium.model.quantity import parse_quantity
from podium.wording import counted

T = TypeVar("T", bound=Object)
Scaled = Deployment | ReplicaSet | ReplicationController | StatefulSet
Manifest = Mapping[str, Any]

SCALED = (Deployment, ReplicaSet, ReplicationController, StatefulSet)
TEMPLATED = (*SCALED, DaemonSet)
REPLICAS, TEMPLATE = "spec.replicas", "spec.template"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NODE_IS_AWAY = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
_BELOW = re.compile(r"[.\[]")
_QUANTITIES = frozenset(("requests", "limits", "storage", "sizeLimit", "overhead"))


class Applied(NamedTuple):
    """An object that a later file changes."""

    before: Object
    after: Object
    paths: tuple[str, ...]
    """The fields that differ: `spec.template.spec.containers[web].image`."""

    @property
    def kind(self) -> str:
        return type(self.after).__name__

    @property
    def changes_template(self) -> bool:
        """Whether its pods get another template."""
        return any(path.startswith(TEMPLATE) for path in self.paths)


def apply(before: T, after: T, old: Manifest | None, new: Manifest) -> tuple[T, tuple[str, ...]]:
    """The stored object after `after` is applied over `before`, and the fields that it changes.

    `old` and `new` are the two as written; without `old`, only the fields that scheduling reads are compared. Fields
    that belong to the cluster stay: status, uid, the volume of a claim, the node of a pod, and the number of replicas
    if the later file does not set it. InputError for a field that cannot be changed.
    """
    last = _last_applied(before)
    stored = _merged(before, after, new, last)
    try:
        paths = _changed_paths(before, stored, old, new, last)
    except RecursionError:
        raise InputError("is nested too deeply to be compared with what it is applied over") from None
    _refuse_immutable(stored, paths)
    # For a field that is new as a whole, only the fields in it are listed.
    above = {path[: match.start()] for path in paths for match in _BELOW.finditer(path)}
    return stored, tuple(path for path in paths if path not in above)


def _changed_paths(
    before: Object, stored: Object, old: Manifest | None, new: Manifest, last: Manifest
) -> dict[str, None]:
    """The fields that differ: in the parts that scheduling reads and, for workloads, in the manifest as written."""
    earlier, later = _readable(before), _readable(stored)
    paths = dict.fromkeys(_differences(earlier, later, full=True))
    if old is not None and isinstance(stored, TEMPLATED) and _is_whole(old):
        spec, last_spec = new.get("spec") or {}, last.get("spec")
        written = _differences(old.get("spec") or {}, spec, last=last_spec, path="spec")
        # One of the two may spell out a default of the other.
        same = {*_values(earlier)} & {*_values(later)} - paths.keys()
        paths |= dict.fromkeys(path for path in written if path not in same)
        if REPLICAS in paths and not _says_replicas(new):
            del paths[REPLICAS]
    return paths


def _is_whole(manifest: Manifest) -> bool:
    """Whether a workload has all its fields: `podium dump` leaves out those that scheduling does not read.

    The API server gives each object a creation timestamp, and each template a restart policy.
    """
    metadata, spec = manifest.get("metadata") or {}, manifest.get("spec") or {}
    if not metadata.get("creationTimestamp"):
        return True
    return "restartPolicy" in ((spec.get("template") or {}).get("spec") or {})


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


def scaled_workload(workload: Scaled, replicas: int) -> Scaled:
    return replace(workload, spec=replace(workload.spec, replicas=replicas))


# -- what is stored ------------------------------------------------------------------------------------------------


def _merged(before: T, after: T, new: Manifest, last: Manifest) -> T:
    changes: dict[str, Any] = {"metadata": _merged_metadata(before.metadata, after.metadata, last)}
    status = getattr(before, "status", None)
    if status is not None and not new.get("status"):
        changes["status"] = status
    if isinstance(before, SCALED) and isinstance(after, SCALED) and not _says_replicas(new):
        changes["spec"] = replace(after.spec, replicas=before.spec.replicas)
    match before, after:
        case PersistentVolumeClaim(spec=old), PersistentVolumeClaim(spec=spec):
            given = spec.storage_class_name
            changes["spec"] = replace(
                spec,
                volume_name=spec.volume_name or old.volume_name,
                storage_class_name=old.storage_class_name if given is None else given,
            )
        case PersistentVolume(spec=old_volume), PersistentVolume(spec=volume):
            changes["spec"] = replace(volume, claim_ref=volume.claim_ref or old_volume.claim_ref)
        case Pod(spec=old_pod), Pod(spec=pod):
            same_class = pod.priority is None and pod.priority_class_name in ("", old_pod.priority_class_name)
            changes["spec"] = replace(
                pod,
                node_name=pod.node_name or old_pod.node_name,
                priority=old_pod.priority if same_class else pod.priority,
                priority_class_name=pod.priority_class_name or old_pod.priority_class_name,
                preemption_policy=pod.preemption_policy or old_pod.preemption_policy,
                tolerations=[*pod.tolerations, *_added_on_admission(old_pod, pod)],
            )
        case Job(spec=old_job), Job(spec=job) if job.completions is None:
            changes["spec"] = replace(job, completions=old_job.completions)
    return replace(after, **changes)


def _added_on_admission(before: PodSpec, after: PodSpec) -> list[Toleration]:
    """The tolerations for unreachable and not-ready nodes that the API server added to a pod, and adds again."""
    given = {toleration.key for toleration in after.tolerations}
    return [each for each in before.tolerations if each.key in NODE_IS_AWAY and each.key not in given]


def _merged_metadata(before: ObjectMeta, after: ObjectMeta, last: Manifest) -> ObjectMeta:
    """Labels and annotations set by others stay; those that the last apply set and this one does not are removed."""
    known = last.get("metadata") or {}
    return replace(
        after,
        uid=before.uid,
        creation_timestamp=after.creation_timestamp or before.creation_timestamp,
        deletion_timestamp=after.deletion_timestamp or before.deletion_timestamp,
        owner_references=after.owner_references or before.owner_references,
        labels=_together(before.labels, after.labels, known.get("labels")),
        annotations=_together(before.annotations, after.annotations, known.get("annotations")),
    )


def _together(before: dict[str, str], after: dict[str, str], last: Any) -> dict[str, str]:
    gone = set(last) - set(after) if isinstance(last, dict) else set()
    return {key: text for key, text in {**before, **after}.items() if key not in gone}


def _says_replicas(manifest: Manifest) -> bool:
    spec = manifest.get("spec")
    return isinstance(spec, Mapping) and spec.get("replicas") is not None


def _last_applied(obj: Object) -> Manifest:
    """The last applied manifest, as kubectl records it; empty for an object that was not applied."""
    with suppress(ValueError, TypeError, RecursionError):
        last = json.loads(obj.metadata.annotations.get(LAST_APPLIED, "{}"))
        if isinstance(last, dict) and isinstance(last.get("metadata") or {}, dict):
            return last
    return {}


def _refuse_immutable(obj: Object, paths: Iterable[str]) -> None:
    fields: tuple[str, ...] = ()
    if isinstance(obj, Deployment | ReplicaSet | DaemonSet | StatefulSet):
        fields = ("spec.selector",)
    if isinstance(obj, StatefulSet):
        fields = (*fields, "spec.volumeClaimTemplates", "spec.podManagementPolicy", "spec.serviceName")
    for path in paths:
        if path.startswith(fields) and fields:
            kind = type(obj).__name__
            raise InputError(f"cannot be changed, as the API server refuses it: delete the {kind} first", path)


# -- what differs --------------------------------------------------------------------------------------------------


def _readable(obj: Object) -> dict[str, Any]:
    """The parts of an object that scheduling reads, as the API stores it, without its status and identity."""
    document: dict[str, Any] = _as_dict(_filled_in(obj))
    labels = document.pop("metadata", {}).get("labels", {})
    if not isinstance(obj, Node):
        document.pop("status", None)
    # The cluster sets defaults of claim templates; the manifests as written show whether they are changed.
    if isinstance(obj, StatefulSet):
        document.get("spec", {}).pop("volumeClaimTemplates", None)
    return {**document, "metadata": {"labels": labels}}


def _filled_in(obj: Object) -> Object:
    """The object with the API server's defaults for the fields that scheduling reads."""
    match obj:
        case CronJob(spec=spec):
            job = spec.job_template
            filled = replace(job, spec=replace(job.spec, template=_filled_in_template(job.spec.template)))
            return replace(obj, spec=replace(spec, job_template=filled))
        case HorizontalPodAutoscaler(spec=bounds) if bounds.min_replicas is None:
            return replace(obj, spec=replace(bounds, min_replicas=1))
        case PriorityClass() if not obj.preemption_policy:
            return replace(obj, preemption_policy=PREEMPT_LOWER_PRIORITY)
    if not isinstance(obj, (*TEMPLATED, Job)) or obj.spec.template is None:
        return obj
    changes: dict[str, Any] = {"template": _filled_in_template(obj.spec.template)}
    match obj:
        case Deployment(spec=deployment):
            changes["strategy"] = _filled_in_strategy(obj, deployment.strategy)
        case StatefulSet(spec=controlled) | DaemonSet(spec=controlled):
            changes["update_strategy"] = _filled_in_strategy(obj, controlled.update_strategy)
    return replace(obj, spec=replace(obj.spec, **changes))


def _filled_in_template(template: PodTemplateSpec) -> PodTemplateSpec:
    return replace(template, spec=default_spec(template.spec))


def _filled_in_strategy(workload: Deployment | StatefulSet | DaemonSet, strategy: UpdateStrategy) -> UpdateStrategy:
    rolls = strategy.type == UpdateStrategy().type
    return replace(strategy, rolling_update=rolling_update(workload) if rolls else RollingUpdate())


def _as_dict(value: Any) -> Any:
    """The value with structs as dicts of all their fields, including those at their defaults."""
    if isinstance(value, msgspec.Struct):
        names = zip(value.__struct_encode_fields__, value.__struct_fields__, strict=True)
        return {written: _as_dict(getattr(value, name)) for written, name in names}
    if isinstance(value, list):
        return [_as_dict(item) for item in value]
    return {key: _as_dict(item) for key, item in value.items()} if isinstance(value, dict) else value


def _differences(before: Any, after: Any, *, full: bool = False, last: Any = None, path: str = "") -> Iterator[str]:
    """The paths at which two values differ.

    Unless `full`, a field that `after` lacks counts as the same, except for fields that `last` had: the API server sets
    many fields that no manifest has.
    """
    if isinstance(before, Mapping) and isinstance(after, Mapping):
        yield from _field_differences(before, after, full, last if isinstance(last, Mapping) else {}, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _item_differences(before, after, full, last, path)
    elif not _same(before, after, path):
        yield path


def _field_differences(before: Manifest, after: Manifest, full: bool, last: Manifest, path: str) -> Iterator[str]:
    for key, value in after.items():
        below = f"{path}.{key}" if path else str(key)
        if key in before:
            yield from _differences(before[key], value, full=full, last=last.get(key), path=below)
        elif isinstance(value, Mapping):
            yield from _field_differences({}, value, full, {}, below)
        elif not _unset(value):
            yield below
    for key, value in before.items():
        if key not in after and (full or key in last) and not _unset(value):
            yield f"{path}.{key}" if path else str(key)


def _item_differences(before: list[Any], after: list[Any], full: bool, last: Any, path: str) -> Iterator[str]:
    """Compare list items by name if they have names, else by position."""
    named = [_by_name(before), _by_name(after), _by_name(last if isinstance(last, list) else [])]
    if named[0] is not None and named[1] is not None:
        old, new, known = named[0], named[1], named[2] or {}
        for name in dict.fromkeys([*new, *old]):
            below = f"{path}[{name}]"
            if name in old and name in new:
                yield from _differences(old[name], new[name], full=full, last=known.get(name), path=below)
            else:
                yield below
    elif len(before) != len(after):
        yield path
    else:
        for place, (old_item, new_item) in enumerate(zip(before, after, strict=True)):
            yield from _differences(old_item, new_item, full=full, path=f"{path}[{place}]")


def _values(document: Any, path: str = "") -> Iterator[str]:
    """The paths of all values other than maps and lists."""
    if isinstance(document, Mapping):
        for key, value in document.items():
            yield from _values(value, f"{path}.{key}" if path else str(key))
    elif isinstance(document, list):
        named = _by_name(document)
        for place, item in enumerate(document) if named is None else named.items():
            yield from _values(item, f"{path}[{place}]")
    else:
        yield path


def _by_name(items: list[Any]) -> dict[str, Any] | None:
    """Items by name; None if one has no name, or two have the same."""
    found: dict[str, Any] = {}
    for item in items:
        name = item.get("name") if isinstance(item, Mapping) else None
        if not isinstance(name, str) or name in found:
            return None
        found[name] = item
    return found


def _same(before: Any, after: Any, path: str) -> bool:
    if before == after or (_unset(before) and _unset(after)):
        return True
    if _QUANTITIES.intersection(path.split(".")):
        with suppress(InputError):
            return parse_quantity(before) == parse_quantity(after)
    # YAML's numbers and booleans are text where the API has text.
    return not isinstance(before, dict | list) and not isinstance(after, dict | list) and _text(before) == _text(after)


def _unset(value: Any) -> bool:
    """Whether a value means the same as a missing field."""
    return value is None or value is False or value in ("", {}, [])


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


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
