"""Renders answers for people and for programs: text, tables, JSON, YAML, CSV, HTML, data frames, plots."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from podium.wording import csv_text

API_VERSION = "podium/v1"
"""The version of the documents that `-o json` and `-o yaml` write; docs/output.md says what is in them."""


def with_release(document: Mapping[str, Any], release: str) -> dict[str, Any]:
    """The document with the name of the release that decided, after its version and kind."""
    head = {name: document[name] for name in ("apiVersion", "kind") if name in document}
    return {**head, "release": release, **document}


def to_json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2)


def to_yaml(document: Mapping[str, Any]) -> str:
    """The document as YAML, without the last line break. Marks that change the direction of text, and other characters
    that cannot be seen, are escaped.
    """
    text = yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=True).rstrip("\n")
    if text.replace("\n", "").isprintable():
        return text
    return yaml.safe_dump(dict(document), sort_keys=False, allow_unicode=False).rstrip("\n")


def to_csv(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Rows separated by line breaks, the header first; None is an empty cell."""
    return csv_text(header, rows).rstrip("\n")
