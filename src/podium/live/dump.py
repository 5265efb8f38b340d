"""A cluster as one file: every object with only the fields that scheduling reads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from podium.live.resources import resource_of
from podium.model import Object

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
"""What kubectl leaves on objects: a copy of all that was in a manifest, which nobody expects in a dump."""


def documents(objects: Iterable[Object]) -> list[dict[str, Any]]:
    """Each object as it goes into a file."""
    return [document(item) for item in objects]


def document(item: Object) -> dict[str, Any]:
    resource = resource_of(item)
    fields: dict[str, Any] = msgspec.to_builtins(item)
    fields.get("metadata", {}).get("annotations", {}).pop(LAST_APPLIED, None)
    return {"apiVersion": resource.api_version, "kind": resource.kind, **fields}


def dump(items: list[dict[str, Any]]) -> bytes:
    """One List of JSON, an object a line."""
    encode = msgspec.json.Encoder().encode
    lines = b",\n".join(map(encode, items))
    return b'{"apiVersion":"v1","kind":"List","items":[\n' + lines + b"\n]}\n"
