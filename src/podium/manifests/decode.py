"""Decodes raw documents into typed objects: unpacks lists, and checks kinds and fields against the Kubernetes API."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from types import GenericAlias
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import msgspec.inspect as inspect

from podium.errors import InputError
from podium.manifests.files import Document, Envelope, LargeList, ListedPod, RawEnvelope
from podium.model import KINDS, Object, Pod
from podium.wording import did_you_mean, near_names

DEFAULT_NAMESPACE = "default"

GROUPS: dict[str, tuple[str, ...]] = {
    "apps": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
    "autoscaling": ("HorizontalPodAutoscaler",),
    "batch": ("CronJob", "Job"),
    "extensions": ("DaemonSet", "Deployment", "ReplicaSet"),
    "policy": ("PodDisruptionBudget",),
    "resource.k8s.io": (
        "DeviceClass",
        "DeviceTaintRule",
        "ResourceClaim",
        "ResourceClaimTemplate",
        "ResourceSlice",
    ),
    "scheduling.k8s.io": ("PodGroup", "PriorityClass"),
    "storage.k8s.io": ("CSIDriver", "CSINode", "CSIStorageCapacity", "StorageClass", "VolumeAttachment"),
}
"""The kinds outside the core group. The same name in another group is another kind."""

GROUP_OF = {kind: group for group, kinds in GROUPS.items() if group != "extensions" for kind in kinds}
"""The current API group of each of these kinds."""

CLUSTER_SCOPED = frozenset(
    (
        "CSIDriver",
        "CSINode",
        "DeviceClass",
        "DeviceTaintRule",
        "Namespace",
        "Node",
        "PersistentVolume",
        "PriorityClass",
        "ResourceSlice",
        "StorageClass",
        "VolumeAttachment",
    )
)


@lru_cache(maxsize=1024)
def type_of(kind: str, api_version: str) -> type[Object] | None:
    """The type of a kind that scheduling reads, else None; without an API group the kind alone decides."""
    group = api_version.rpartition("/")[0]
    return KINDS[kind] if kind in (GROUPS.get(group, ()) if group else KINDS) else None


def effective_namespace(kind: str, namespace: str) -> str:
    """The namespace of an object of this kind: none, the one it names, or `default`."""
    return "" if kind in CLUSTER_SCOPED else namespace or DEFAULT_NAMESPACE


def full_name(kind: str, namespace: str, name: str) -> str:
    """`Pod default/web`, `Node n1`."""
    namespace = effective_namespace(kind, namespace)
    return f"{kind} {namespace}/{name}" if namespace else f"{kind} {name}"


T = TypeVar("T")


N = TypeVar("N", bound=inspect.Type)


def without_nulls(value: object, type_: type[msgspec.Struct]) -> object:
    """The value without nulls that `type_` does not expect.

    Unset fields are removed; in maps and lists, a null becomes the empty value of its type. Timestamps, which other
    YAML readers make of dates, become text again.
    """
    return _clean(value, _type_info(type_))


@lru_cache(maxsize=256)
def _type_info(type_: type) -> inspect.Type:
    return inspect.type_info(type_)


def _clean(value: Any, type_: inspect.Type) -> Any:
    if isinstance(value, datetime.date):
        return value.isoformat()
    if isinstance(value, dict):
        if (struct := _part(type_, inspect.StructType)) is not None:
            fields = {field.encode_name: field.type for field in struct.fields}
            return {
                key: _clean(item, fields[key]) if key in fields else item
                for key, item in value.items()
                if item is not None
            }
        if (mapping := _part(type_, inspect.DictType)) is not None:
            return {key: _item(item, mapping.value_type) for key, item in value.items()}
    elif isinstance(value, list) and (sequence := _part(type_, inspect.ListType)) is not None:
        return [_item(item, sequence.item_type) for item in value]
    return value


def _item(value: Any, type_: inspect.Type) -> Any:
    if value is not None or _part(type_, inspect.NoneType) is not None:
        return _clean(value, type_)
    for part, zero in ((inspect.IntType, 0), (inspect.StrType, ""), (inspect.StructType, {}), (inspect.DictType, {})):
        if _part(type_, part) is not None:
            return zero
    return value


def _part(type_: inspect.Type, part: type[N]) -> N | None:
    """`type_`, or the member of a union, that is of the wanted sort; None if there is none."""
    members = type_.types if isinstance(type_, inspect.UnionType) else (type_,)
    return next((member for member in members if isinstance(member, part)), None)


SCHEDULER_CONFIGURATION = "KubeSchedulerConfiguration"

# Most objects start with apiVersion and kind, in either order; finding them there saves scanning the object.
_VERSION, _KIND = (rf'"{name}"\s*:\s*"([^"\\]+)"'.encode() for name in ("apiVersion", "kind"))
_HEAD = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*" + _KIND + rb"|" + _KIND + rb"\s*,\s*" + _VERSION + rb")")
_LIST = "List"
_SOME_KEY = "[...]"
_STEP = re.compile(r"[^.\[\]]+")
_TYPE_NAMES = {bool: "bool", int: "int", float: "float", str: "str", dict: "object", list: "array"}
_RFC_3339 = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}([.,][0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})")
_FIELD_ERROR = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)


class NoKindError(InputError):
    """A document that is a map without a kind: not a Kubernetes object."""


class Entry(NamedTuple):
    """One object of a document, not decoded yet."""

    document: Document
    position: int | None
    kind: str
    api_version: str
    value: object

    @property
    def where(self) -> str:
        item = "" if self.position is None else f" item {self.position}"
        return f"{self.document.where}{item}"


class _Export(msgspec.Struct, Generic[T], rename="camel", gc=False):
    """An export file of kube-scheduler-simulator: one list per kind; the items do not state their kind."""

    namespaces: list[T] | None = None
    priority_classes: list[T] | None = None
    storage_classes: list[T] | None = None
    pvs: list[T] | None = None
    pvcs: list[T] | None = None
    nodes: list[T] | None = None
    pods: list[T] | None = None
    scheduler_config: object = None


_EXPORTED = {
    "namespaces": "Namespace",
    "priority_classes": "PriorityClass",
    "storage_classes": "StorageClass",
    "pvs": "PersistentVolume",
    "pvcs": "PersistentVolumeClaim",
    "nodes": "Node",
    "pods": "Pod",
}


def entries(document: Document) -> Iterator[Entry]:
    """Every object in a document: the document itself, or the items of a list, typed list or simulator export."""
    if document.listed is not None:
        yield from _listed(document, document.listed)
    elif isinstance(document.value, list) or _is_array(document.value):
        yield from _items(document, _decode_as(document, document.value, list[Any], list[msgspec.Raw]))
    else:
        yield from _unpacked(Entry(document, None, "", "", document.value), document.envelope)


def decode(entry: Entry, type_: type[Object]) -> Object:
    """Decode an entry to a typed object; InputError naming file, object and field if it is invalid."""
    value = entry.value
    if isinstance(value, type_):
        return value
    try:
        if isinstance(value, msgspec.Raw):
            decoder: msgspec.json.Decoder[Object] = _json_decoder(type_)
            return decoder.decode(value)
        return msgspec.convert(value, type_)
    except (msgspec.ValidationError, UnicodeDecodeError):
        return _decode_tolerantly(entry, type_)


def plain(entry: Entry) -> object:
    """An entry's value as dicts and lists."""
    value = entry.value
    if not isinstance(value, msgspec.Raw):
        return value
    try:
        return msgspec.json.decode(value)
    except UnicodeDecodeError as error:
        raise InputError(f"is not UTF-8 text: {error.reason}", entry.where) from None
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(f"cannot be read as JSON: {error}", entry.where) from None


def object_name(kind: str, value: object) -> str:
    """`Kind namespace/name` of an object that may be broken, as far as it says."""
    metadata = value.get("metadata") if isinstance(value, Mapping) else None
    fields = metadata if isinstance(metadata, Mapping) else {}
    name, namespace = fields.get("name"), fields.get("namespace")
    if isinstance(name, bool | int | float):
        return f"{kind} named {str(name).lower()}"
    if not isinstance(name, str) or not name:
        return f"{kind} without a name"
    return full_name(kind, namespace if isinstance(namespace, str) else "", name)


def _listed(document: Document, listed: LargeList) -> Iterator[Entry]:
    """The objects of a large list; GuessError if the text is not a list after all."""
    kind, position = listed.kind.removesuffix(_LIST), 1
    for part in listed.parts():
        yield from _items(document, part, kind, listed.api_version if kind else "", position)
        position += len(part)


def _items(
    document: Document, values: Iterable[object], kind: str = "", api_version: str = "", first: int = 1
) -> Iterator[Entry]:
    """The objects of a list; items that do not state their kind and version get the given ones."""
    for position, value in enumerate(values, first):
        if isinstance(value, ListedPod):
            yield Entry(document, position, value.kind, value.api_version, value)
            continue
        head = _HEAD.match(memoryview(value)) if isinstance(value, msgspec.Raw) else None
        own_version, own_kind = _head_of(*head.groups()) if head is not None else ("", _LIST)
        if own_kind.endswith(_LIST):
            yield from _unpacked(Entry(document, position, kind, api_version, value))
        else:
            yield Entry(document, position, own_kind, own_version, value)


@lru_cache(maxsize=256)
def _head_of(version: bytes | None, kind: bytes | None, first: bytes, second: bytes) -> tuple[str, str]:
    """Version and kind from the beginning of an object, which may be in either order."""
    if version is None or kind is None:
        version, kind = second, first
    return version.decode("utf-8", "replace"), kind.decode("utf-8", "replace")


def _unpacked(entry: Entry, envelope: Envelope[Any] | None = None) -> Iterator[Entry]:
    envelope = envelope or _envelope(entry)
    entry = entry._replace(kind=envelope.kind or entry.kind, api_version=envelope.api_version or entry.api_version)
    if not entry.kind:
        yield from _exported(entry)
    elif entry.kind.endswith(_LIST):
        # The items of a typed list like PodList need not state their kind.
        kind = entry.kind.removesuffix(_LIST)
        yield from _items(entry.document, envelope.items or (), kind, entry.api_version if kind else "")
    else:
        yield entry


def _envelope(entry: Entry) -> Envelope[Any]:
    if not isinstance(entry.value, msgspec.Raw | Mapping):
        raise InputError(f"expected a Kubernetes object, got {_shown(entry.value)}", entry.where)
    envelope: Envelope[Any] = _decode_as(entry, entry.value, Envelope[Any], RawEnvelope)
    return envelope


def _exported(entry: Entry) -> Iterator[Entry]:
    export = _decode_as(entry, entry.value, _Export[Any], _Export[msgspec.Raw])
    lists = [(kind, getattr(export, field)) for field, kind in _EXPORTED.items()]
    if all(values is None for _, values in lists):
        raise NoKindError("has no kind; is it a Kubernetes object?", entry.where)
    for kind, values in lists:
        yield from _items(entry.document, values or (), kind)
    if export.scheduler_config:
        yield Entry(entry.document, None, SCHEDULER_CONFIGURATION, "", export.scheduler_config)


def _is_array(value: object) -> bool:
    return isinstance(value, msgspec.Raw) and bytes(memoryview(value)[:1]) == b"["


def _decode_as(place: Entry | Document, value: object, plain_type: Any, raw_type: Any) -> Any:
    try:
        if isinstance(value, msgspec.Raw):
            return _json_decoder(raw_type).decode(value)
        return msgspec.convert(value, plain_type)
    except msgspec.ValidationError as error:
        raise InputError(_field_problem(error), place.where) from None


@lru_cache(maxsize=256)
def _json_decoder(type_: type[T]) -> msgspec.json.Decoder[T]:
    return msgspec.json.Decoder(type_)


def _decode_tolerantly(entry: Entry, type_: type[Object]) -> Object:
    value = plain(entry)
    try:
        return msgspec.convert(without_nulls(value, type_), type_)
    except msgspec.ValidationError as error:
        problem = _field_problem(error, value)
        # An object without a usable name is found by its place in the file.
        where = entry.where if problem.startswith("metadata.name:") else entry.document.file
        raise InputError(problem, f"{where}: {object_name(entry.kind, value)}") from None


QUOTED = {
    "bool": "; write it in quotes, as YAML reads n, no, off, on, y and yes as true or false",
    "int": "; write it in quotes",
    "float": "; write it in quotes",
}
"""What to do about a value, by its type, where a text is needed."""


def _field_problem(error: msgspec.ValidationError, value: object = None) -> str:
    """The problem with its path first, as Kubernetes words it: `spec.replicas: expected int, got str`."""
    problem, path = _FIELD_ERROR.fullmatch(str(error)).groups()  # type: ignore[union-attr]
    problem = (problem[:1].lower() + problem[1:]).replace("`", "")
    quoted = QUOTED.get(problem.removeprefix("expected str, got "), "")
    if path and path.endswith(_SOME_KEY):
        path = _with_key(path, value, problem.rpartition(" ")[2])
    return f"{path}: {problem}{quoted}" if path else problem


def _with_key(path: str, value: Any, got: str) -> str:
    """The path to a map entry by its key: the first entry with a value of the unexpected type."""
    parent = path.removesuffix(_SOME_KEY)
    for step in _STEP.findall(parent):
        value = value[int(step)] if step.isdigit() else value[step]
    key = next((key for key, item in value.items() if _TYPE_NAMES.get(type(item)) == got), None)
    return path if key is None else f"{parent}[{key!r}]"


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"


def refuse_unknown_version(kind: str, api_version: str) -> None:
    """InputError for a version in which no release has this kind; an object without a version is accepted."""
    group, _, version = api_version.rpartition("/")
    groups = _groups()
    if api_version and version not in groups.get(group, {}).get(kind, "").split():
        known = [
            f"{name}/{each}".lstrip("/")
            for name, kinds in groups.items()
            for each in kinds.get(kind, "").split()
            if len(each) == 2  # the stable ones: v1, v2
        ]
        raise InputError(f"there is no {kind} in {api_version!r}; use {' or '.join(known) or group}", "apiVersion")


def refuse_null_containers(value: Any, path: str = "") -> None:
    """InputError for a pod or pod template whose containers, or one of them, are null or missing."""
    if not isinstance(value, dict):
        return
    for field in ("spec", "template", "jobTemplate"):
        refuse_null_containers(value.get(field), f"{path}{field}.")
    containers, where = value.get("containers", True), f"{path}containers"
    if path.endswith("spec.") and not containers:
        raise InputError("is required, with at least one container", where)
    if path.endswith("spec.") and isinstance(containers, list) and None in containers:
        raise InputError("is null, not a container", f"{where}[{containers.index(None)}]")


def refuse_wrong_times(obj: Object) -> None:
    """InputError for a time that is not in RFC 3339 format."""
    metadata = obj.metadata
    for field, time in (
        ("metadata.creationTimestamp", metadata.creation_timestamp),
        ("metadata.deletionTimestamp", metadata.deletion_timestamp),
        ("status.startTime", obj.status.start_time if isinstance(obj, Pod) else None),
    ):
        if time is not None and not _is_time(time):
            raise InputError(f"{time!r} is not a time such as 2026-01-31T12:00:00Z", field)


def _is_time(text: str) -> bool:
    try:
        return _RFC_3339.fullmatch(text) is not None and datetime.datetime.fromisoformat(text) is not None
    except ValueError:
        return False


def unknown_kind(kind: str, api_version: str) -> str | None:
    """What is wrong with a kind that its group does not have; None for groups that do not belong to Kubernetes."""
    group = api_version.rpartition("/")[0]
    groups = _groups()
    every = {name for kinds in groups.values() for name in kinds}
    if not api_version:
        near = did_you_mean(near_names(kind, every))
        return f"kind {kind!r} is unknown{near}" if kind not in every and near else None
    if group not in groups:
        # Names of foreign groups contain a dot.
        near = did_you_mean(near_names(group, groups)) if "." not in group else ""
        return f"API group {group!r} is unknown{near}" if near else None
    if kind in groups[group]:
        return None
    versions = [f"{name}/{kinds[kind].split()[0]}".lstrip("/") for name, kinds in groups.items() if kind in kinds]
    if versions:
        return f"kind {kind!r} is not in {api_version}; use {versions[0]}"
    names = near_names(kind, groups[group]) or near_names(kind, every)
    return f"kind {kind!r} is unknown in {api_version}{did_you_mean(names)}"


def unknown_fields(kind: str, value: object) -> list[str]:
    """A line for each field of an object that no release knows: its path, and the name that was likely meant."""
    found: list[str] = []
    if isinstance(value, dict):
        _look_through(value, kind, "", found)
    return found


def _look_through(value: dict[str, Any], type_: str, path: str, found: list[str]) -> None:
    fields = _fields(type_)
    for key, item in value.items():
        inner = fields.get(key)
        if inner is None:
            found.append(f"{path}{key}: unknown field{did_you_mean(near_names(key, fields))}")
        elif inner and item:
            _look_into(item, inner, f"{path}{key}", found)


def _look_into(item: Any, inner: str, path: str, found: list[str]) -> None:
    match inner[0], item:
        case "[", list():
            for position, each in enumerate(item):
                _look_into(each, inner[1:], f"{path}[{position}]", found)
        case "{", dict():
            for key, each in item.items():
                _look_into(each, inner[1:], f"{path}[{key!r}]", found)
        case "[" | "{", _:
            pass  # of another type than it should be, which decoding says
        case _, dict():
            _look_through(item, inner, f"{path}.", found)


def is_sure_to_be_known(kind: str, api_version: str, text: msgspec.Raw) -> bool:
    """Whether the JSON of an object has a version, only known fields, no duplicate keys, and containers.

    This is fast, but also returns False for some valid objects, which then need a closer check.
    """
    # Without blanks the check takes half the time.
    written = msgspec.json.format(text, indent=-1)
    try:
        refuse_unknown_version(kind, api_version)
        value = _json_decoder(_strict(kind)).decode(written)
    except (InputError, msgspec.ValidationError, UnicodeDecodeError):
        return False
    # Every key, and otherwise only a quote inside a text, ends like this; of a duplicate key, one is dropped.
    if _QUOTE in written or _NO_CONTAINERS in written:
        return False
    return written.count(_KEY_END) == msgspec.json.encode(value).count(_KEY_END)


_KEY_END, _QUOTE, _NO_CONTAINERS = b'":', b"\\u0022", b'"containers":[]'


@cache
def _strict(type_: str) -> type[msgspec.Struct]:
    """An API type with all fields that any release knows; it refuses other fields."""

    def annotation(inner: str) -> Any:
        match inner[:1]:
            case "":
                return Any
            case "[":
                return GenericAlias(list, (annotation(inner[1:]),))
            case "{":
                return GenericAlias(dict, (str, annotation(inner[1:])))
            case _:
                return _strict(inner)

    fields = [(f"f{place}", annotation(inner), msgspec.UNSET) for place, inner in enumerate(_fields(type_).values())]
    names = {f"f{place}": name for place, name in enumerate(_fields(type_))}
    return msgspec.defstruct(type_, fields, rename=names, forbid_unknown_fields=True, omit_defaults=True, gc=False)


@cache
def _table() -> Any:
    return json.loads(files(__package__).joinpath("api_fields.json").read_text("utf-8"))


def _groups() -> dict[str, dict[str, str]]:
    groups: dict[str, dict[str, str]] = _table()["groups"]
    return groups


@cache
def _fields(type_: str) -> dict[str, str]:
    fields: dict[str, str] = dict(_table()["types"][type_])
    return dict.fromkeys(fields.pop("").split(), "") | fields
