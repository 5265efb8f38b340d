"""A recording of `kwokctl snapshot record`: YAML documents, first the objects there are, then ResourcePatch actions.

A ResourcePatch has a `method` (create, patch or delete), a `target`, the time since the recording began in
`durationNanosecond`, and for the first two a `template`.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from podium.errors import InputError
from podium.manifests import load_documents
from podium.traces.trace import Advance, Manifest, Trace, TraceEvent, is_text

PATCH = "ResourcePatch"
NANOSECONDS = 1_000_000_000
MERGE_KEYS = ("name", "type", "key", "ip", "uid")
"""What entries of a list are told apart by, where both the object and the patch have it."""

Key = tuple[str, str, str]
"""Resource, namespace and name."""


def read(files: Sequence[str], advance: Advance) -> Trace:
    """The recording of one file."""
    (file,) = files
    beginning: dict[Key, Manifest] = {}
    actions: list[tuple[str, Mapping[str, Any]]] = []
    for where, document in load_documents(file):
        if not isinstance(document, Mapping) or not is_text(document.get("kind")):
            raise InputError("is not an object with a kind", where)
        if document["kind"] == PATCH:
            actions.append((where, document))
        else:
            listed = document.get("items") if document["kind"].endswith("List") else None
            for item in listed if isinstance(listed, list) else [document]:
                beginning[_key_of(item, where)] = item
    advance(Path(file).stat().st_size)
    assumed = [
        "pods that were pending or came later are scheduled by the simulation: the node they had is left out",
        f"patches are merged; entries of lists are told apart by {', '.join(MERGE_KEYS)}, other lists are replaced",
        "left out: actions on objects that the recording does not have",
    ]
    events = list(_events(actions, dict(beginning)))
    return Trace(list(beginning.values()), events, assumed, is_record=True)


def _events(actions: Sequence[tuple[str, Mapping[str, Any]]], there: dict[Key, Manifest]) -> Iterator[TraceEvent]:
    for where, action in actions:
        target, resource, nanoseconds = (
            action.get("target"),
            action.get("resource"),
            action.get("durationNanosecond", 0),
        )
        if not isinstance(target, Mapping) or not isinstance(resource, Mapping) or not isinstance(nanoseconds, int):
            raise InputError("is no ResourcePatch: it needs resource, target and durationNanosecond", where)
        if nanoseconds < 0:
            raise InputError(f"durationNanosecond is {nanoseconds}; it needs 0 or more", where)
        key = _singular(str(resource.get("resource"))), str(target.get("namespace") or ""), str(target.get("name"))
        time, known = nanoseconds / NANOSECONDS, there.get(key)
        match action.get("method"):
            case "create":
                there[key] = _unbound(_template(action, where))
                yield TraceEvent(time, there[key], event="update" if known is not None else "add")
            case "patch" if known is not None:
                there[key] = _merged(known, _unbound(_template(action, where)))
                yield TraceEvent(time, there[key], event="update")
            case "delete" if known is not None:
                yield TraceEvent(time, there.pop(key), event="delete")
            case "patch" | "delete":
                continue
            case method:
                raise InputError(f"method {method!r} is unknown; it is create, patch or delete", where)


def _template(action: Mapping[str, Any], where: str) -> Manifest:
    template = action.get("template")
    if not isinstance(template, Mapping):
        raise InputError(f"template is missing; {action.get('method')} needs one", where)
    return template


def _key_of(item: Any, where: str) -> Key:
    metadata = item.get("metadata") if isinstance(item, Mapping) else None
    if not isinstance(metadata, Mapping) or not is_text(item.get("kind")) or not is_text(metadata.get("name")):
        raise InputError("has an object without kind or metadata.name", where)
    return str(item["kind"]).lower(), str(metadata.get("namespace") or ""), str(metadata["name"])


def _singular(resource: str) -> str:
    """The kind, in lower case, of a resource: pods, priorityclasses, networkpolicies."""
    if resource.endswith("ies"):
        return f"{resource[:-3]}y"
    return resource[:-2] if resource.endswith("sses") else resource.removesuffix("s")


def _unbound(item: Manifest) -> Manifest:
    """A pod without the node it was given; other objects as they are."""
    spec = item.get("spec")
    if isinstance(spec, Mapping) and "nodeName" in spec:
        return {**item, "spec": {name: value for name, value in spec.items() if name != "nodeName"}}
    return item


def _merged(value: Any, patch: Any) -> Any:
    """A value with a patch merged in: null removes a field."""
    if isinstance(value, Mapping) and isinstance(patch, Mapping):
        merged = dict(value)
        for name, inner in patch.items():
            if inner is None:
                merged.pop(name, None)
            elif not name.startswith("$"):
                merged[name] = _merged(merged.get(name), inner)
        return merged
    if isinstance(value, list) and isinstance(patch, list):
        return _merged_lists(value, patch)
    return copy.deepcopy(patch)


def _merged_lists(value: list[Any], patch: list[Any]) -> list[Any]:
    both = [each for each in (*value, *patch) if isinstance(each, Mapping)]
    key = next((key for key in MERGE_KEYS if both and all(is_text(each.get(key)) for each in both)), None)
    if key is None or len(both) < len(value) + len(patch):
        return copy.deepcopy(patch)
    merged = {each[key]: each for each in value}
    for each in patch:
        merged[each[key]] = _merged(merged.get(each[key], {}), each)
    return list(merged.values())
