"""Every field that scheduling reads, given a value of another type: refused in one line that names the object."""

from __future__ import annotations

import resource
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec.inspect as inspect
import pytest

from podium.model import KINDS

from .running import node, run, written

WRONG: dict[type[inspect.Type], object] = {
    inspect.StrType: ["a list"],
    inspect.IntType: "a text",
    inspect.BoolType: "a text",
    inspect.ListType: "a text",
    inspect.DictType: "a text",
    inspect.StructType: "a text",
}
Steps = tuple[str | int, ...]
"""The fields, and 0 for the item of a list, that lead to a value."""
MOST_SECONDS, MOST_MEMORY = 10, 500 << 20
DEEPEST = 5


def wrong_fields(type_: inspect.Type, path: Steps = ()) -> Iterator[tuple[Steps, object]]:
    """The path of each field below a type, with a value that cannot be there."""
    members = type_.types if isinstance(type_, inspect.UnionType) else (type_,)
    if path and path != ("metadata",) and len({type(m) for m in members} - {inspect.NoneType}) == 1:
        sort = next(type(member) for member in members if not isinstance(member, inspect.NoneType))
        if sort in WRONG:
            yield path, WRONG[sort]
    if len(path) >= DEEPEST:
        return
    for member in members:
        if isinstance(member, inspect.StructType):
            for field in member.fields:
                yield from wrong_fields(field.type, (*path, field.encode_name))
        elif isinstance(member, inspect.ListType):
            yield from wrong_fields(member.item_type, (*path, 0))


def wrong_object(kind: str, path: Steps, value: object) -> dict[str, Any]:
    """An object of a kind in which only this field is wrong."""
    for step in reversed(path):
        value = [value] if step == 0 else {step: value}
    assert isinstance(value, dict)
    metadata = value.get("metadata", {})
    return {"kind": kind, **value, "metadata": {"name": "wrong", **metadata}}


CASES = {
    f"{kind} {'.'.join(map(str, path))}": (kind, path, value)
    for kind in (
        "Pod",
        "Node",
        "PersistentVolume",
        "PersistentVolumeClaim",
        "PodDisruptionBudget",
        "StorageClass",
        "Job",
    )
    for path, value in wrong_fields(inspect.type_info(KINDS[kind]))
}


@pytest.mark.parametrize(("kind", "path", "value"), CASES.values(), ids=CASES)
def test_a_wrong_type_is_refused_in_one_line(kind: str, path: Steps, value: object, tmp_path: Path) -> None:
    file = written(tmp_path / "input.json", node(), wrong_object(kind, path, value))
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()

    result = run("explain", "wrong", "-f", file)

    assert result.exit_code == 2
    # An object that its name does not identify is named by its place.
    where = f"{file} document 1 item 2" if path == ("metadata", "name") else file
    assert result.stderr.startswith(f"podium: {where}: {kind} ")
    assert result.stderr.count("\n") == 1
    assert "expected" in result.stderr
    assert time.monotonic() - started < MOST_SECONDS
    assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 < MOST_MEMORY


def test_there_are_enough_of_them() -> None:
    assert len(CASES) >= 300
