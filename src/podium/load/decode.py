"""Raw documents -> typed objects: lists unpacked, kinds recognised, fields checked."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec

from podium.errors import InputError
from podium.load.envelope import Envelope, RawEnvelope
from podium.load.kinds import full_name
from podium.load.large_lists import LargeList, ListedPod
from podium.load.nulls import without_nulls
from podium.load.read import Document
from podium.objects import Object

T = TypeVar("T")

SCHEDULER_CONFIGURATION = "KubeSchedulerConfiguration"

# Most objects start with what they are, in one order or the other, which saves a look through the whole of them.
_VERSION, _KIND = (rf'"{name}"\s*:\s*"([^"\\]+)"'.encode() for name in ("apiVersion", "kind"))
_HEAD = re.compile(rb"\s*\{\s*(?:" + _VERSION + rb"\s*,\s*" + _KIND + rb"|" + _KIND + rb"\s*,\s*" + _VERSION + rb")")
_LIST = "List"
_SOME_KEY = "[...]"
_STEP = re.compile(r"[^.\[\]]+")
_TYPE_NAMES = {bool: "bool", int: "int", float: "float", str: "str", dict: "object", list: "array"}
_FIELD_ERROR = re.compile(r"(.*?)(?: - at `\$\.?(.*)`)?", re.DOTALL)


class NoKindError(InputError):
    """A document that is a map but says no kind: not a Kubernetes object."""


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
    """The file kube-scheduler-simulator exports: a list per kind, without saying the kinds."""

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
    """Every object in a document: itself, or the items of the list, typed list or simulator export it is."""
    if document.listed is not None:
        yield from _listed(document, document.listed)
    elif isinstance(document.value, list) or _is_array(document.value):
        yield from _items(document, _decode_as(document, document.value, list[Any], list[msgspec.Raw]))
    else:
        yield from _unpacked(Entry(document, None, "", "", document.value), document.envelope)


def decode(entry: Entry, type_: type[Object]) -> Object:
    """The typed object of an entry; InputError naming file, object and field where it does not fit."""
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


def object_name(kind: str, value: object) -> str:
    """`Kind namespace/name` of an object that may be broken, as far as it says."""
    metadata = value.get("metadata") if isinstance(value, Mapping) else None
    fields = metadata if isinstance(metadata, Mapping) else {}
    name, namespace = fields.get("name"), fields.get("namespace")
    if not isinstance(name, str) or not name:
        return f"{kind} without a name"
    return full_name(kind, namespace if isinstance(namespace, str) else "", name)


def _listed(document: Document, listed: LargeList) -> Iterator[Entry]:
    """The objects of a large list; GuessError if it is not what it looks like."""
    kind, position = listed.kind.removesuffix(_LIST), 1
    for part in listed.parts():
        yield from _items(document, part, kind, listed.api_version if kind else "", position)
        position += len(part)


def _items(
    document: Document, values: Iterable[object], kind: str = "", api_version: str = "", first: int = 1
) -> Iterator[Entry]:
    """The objects of a list; those that do not say what they are have the kind and version given."""
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
    """Version and kind of a head, which has them in one order or the other."""
    if version is None or kind is None:
        version, kind = second, first
    return version.decode("utf-8", "replace"), kind.decode("utf-8", "replace")


def _unpacked(entry: Entry, envelope: Envelope[Any] | None = None) -> Iterator[Entry]:
    envelope = envelope or _envelope(entry)
    entry = entry._replace(kind=envelope.kind or entry.kind, api_version=envelope.api_version or entry.api_version)
    if not entry.kind:
        yield from _exported(entry)
    elif entry.kind.endswith(_LIST):
        # The items of a typed list, such as PodList, need not say what they are.
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
        raise InputError(problem, f"{entry.document.file}: {object_name(entry.kind, value)}") from None


def _field_problem(error: msgspec.ValidationError, value: object = None) -> str:
    """`spec.replicas: expected int, got str`: the path first, the way Kubernetes says it."""
    problem, path = _FIELD_ERROR.fullmatch(str(error)).groups()  # type: ignore[union-attr]
    problem = (problem[:1].lower() + problem[1:]).replace("`", "")
    if path and path.endswith(_SOME_KEY):
        path = _with_key(path, value, problem.rpartition(" ")[2])
    return f"{path}: {problem}" if path else problem


def _with_key(path: str, value: Any, got: str) -> str:
    """The path to a map entry by its key: the first whose value is of the type that was not expected."""
    parent = path.removesuffix(_SOME_KEY)
    for step in _STEP.findall(parent):
        value = value[int(step)] if step.isdigit() else value[step]
    key = next((key for key, item in value.items() if _TYPE_NAMES.get(type(item)) == got), None)
    return path if key is None else f"{parent}[{key!r}]"


def _shown(value: object) -> str:
    text = repr(value)
    return f"{type(value).__name__} {text if len(text) <= 60 else text[:57] + '...'}"
