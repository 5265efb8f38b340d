"""Keys that a JSON document sets twice, which YAML forbids and JSON readers pass over."""

from __future__ import annotations

import json
from typing import Any

from podium.errors import InputError


def refuse_duplicate_keys(text: bytes, where: str) -> None:
    """InputError for a key that one map of the document has twice; it names the object around it."""
    search = _Search()
    try:
        json.loads(text, object_pairs_hook=search.map)
    except (ValueError, RecursionError):
        return  # text that is no JSON is refused where it is decoded
    if search.key is not None:
        name = f": {search.name}" if search.name else ""
        raise InputError(f"key {search.key!r} is set twice", where + name)


class _Search:
    """Sees every map of a document, the inner ones first."""

    def __init__(self) -> None:
        self.key: str | None = None
        """The first key that is there twice."""
        self.name = ""
        """The object that key is in."""

    def map(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        value = dict(pairs)
        if self.key is None and len(value) < len(pairs):
            keys = [key for key, _ in pairs]
            self.key = next(key for key in keys if keys.count(key) > 1)
        if self.key is not None and not self.name and isinstance(value.get("metadata"), dict) and "kind" in value:
            self.name = f"{value['kind']} {value['metadata'].get('name', 'without a name')}"
        return value
