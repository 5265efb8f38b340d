"""Applies an object of a later file over the earlier object of the same name, as `kubectl apply` does, and lists what
changes.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests.defaults import PREEMPT_LOWER_PRIORITY, default_spec, rolling_update
from podium.model.meta import Object, ObjectMeta
from podium.model.objects import (
    SCALED,
    TEMPLATED,
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
    RollingUpdate,
    StatefulSet,
    UpdateStrategy,
)
from podium.model.pod import Pod, PodSpec, PodTemplateSpec, Toleration
from podium.model.quantity import parse_quantity
from podium.model.selectors import NOT_READY, UNREACHABLE

T = TypeVar("T", bound=Object)
Manifest = Mapping[str, Any]

REPLICAS, TEMPLATE = "spec.replicas", "spec.template"
LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
NODE_IS_AWAY = (NOT_READY, UNREACHABLE)
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
