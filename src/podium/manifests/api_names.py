"""The names that the Kubernetes API knows: kinds and their versions by group, and the fields of what scheduling reads.

`api_fields.json` holds them for all releases from v1.8 on: `groups` has the versions of each kind, `types` the fields
of each type. Fields without fields of their own stand together under the empty name; the others say their type, after
`[` for a list and `{` for a map.
"""

from __future__ import annotations

import json
from difflib import get_close_matches
from functools import cache
from importlib.resources import files
from typing import Any

from podium.errors import InputError

Fields = dict[str, str]
"""Name of a field -> its type, empty for one that is not looked into."""


def refuse_unknown_version(kind: str, api_version: str) -> None:
    """InputError for a version that no release has this kind in; one without a version is taken for any."""
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


def unknown_kind(kind: str, api_version: str) -> str | None:
    """What is wrong with a kind that its group does not have; None for kinds of groups that are not Kubernetes' own."""
    group = api_version.rpartition("/")[0]
    groups = _groups()
    every = {name for kinds in groups.values() for name in kinds}
    if not api_version:
        near = nearest(kind, every)
        return f"kind {kind!r} is unknown{near}" if kind not in every and near else None
    if group not in groups:
        # Groups of others have a dot in their names.
        near = nearest(group, groups) if "." not in group else ""
        return f"API group {group!r} is unknown{near}" if near else None
    if kind in groups[group]:
        return None
    return f"kind {kind!r} is unknown in {api_version}{nearest(kind, groups[group]) or nearest(kind, every)}"


def unknown_fields(kind: str, value: object) -> list[str]:
    """A line for each field of an object that no release knows: its path, and the name that was likely meant."""
    found: list[str] = []
    if isinstance(value, dict):
        _look_through(value, kind, "", found)
    return found


def nearest(name: str, known: Any) -> str:
    """`; did you mean Deployment?`, or nothing if no known name is near."""
    close = get_close_matches(name, known, n=1, cutoff=0.75)
    if not close:
        same = {each.lower(): each for each in known}
        close = [same[name.lower()]] if name.lower() in same else []
    return f"; did you mean {close[0]}?" if close else ""


def _look_through(value: dict[str, Any], type_: str, path: str, found: list[str]) -> None:
    fields = _fields(type_)
    for key, item in value.items():
        inner = fields.get(key)
        if inner is None:
            found.append(f"{path}{key}: unknown field{nearest(key, fields)}")
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


@cache
def _table() -> Any:
    return json.loads(files(__package__).joinpath("api_fields.json").read_text("utf-8"))


def _groups() -> dict[str, dict[str, str]]:
    groups: dict[str, dict[str, str]] = _table()["groups"]
    return groups


@cache
def _fields(type_: str) -> Fields:
    fields: Fields = dict(_table()["types"][type_])
    return dict.fromkeys(fields.pop("").split(), "") | fields
