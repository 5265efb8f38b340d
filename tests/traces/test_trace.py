"""Tables of traces: names, numbers, and errors that name the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.errors import InputError
from podium.traces._published import _number, _share, _type
from podium.traces._recordings import _merged, _singular, _unbound
from podium.traces.trace import MOST, TableRow, pod, rows, valid_name


def row(**fields: str) -> TableRow:
    return TableRow(fields, "t line 2")


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("j_1", "j-1"),
        ("Task A", "task-a"),
        ("__x__", "x"),
        ("a.b-c", "a.b-c"),
        ("...", "unnamed"),
        ("é", "unnamed"),
    ],
)
def test_a_text_becomes_a_name_of_kubernetes(text: str, name: str) -> None:
    assert valid_name(text) == name


@pytest.mark.parametrize(
    ("text", "number"), [("7", 7), ("7.0", 7), ("0", 0), ("1e3", 1000), ("", 5), (str(MOST), MOST)]
)
def test_a_whole_number(text: str, number: int) -> None:
    assert row(n=text).number("n", 5) == number


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "n '' is not a number from 0 on"),
        ("x", "n 'x' is not a number from 0 on"),
        ("-1", "n '-1' is not a number from 0 on"),
        ("1_000", "n '1_000' is not a number from 0 on"),
        ("inf", "n 'inf' is not a number from 0 on"),
        ("nan", "n 'nan' is not a number from 0 on"),
        ("1.5", "n '1.5' is not a whole number"),
        ("101", "n '101' is more than 100"),
        ("1e16", "n '1e16' is more than 1,000,000,000,000,000"),
    ],
)
def test_what_is_no_whole_number_is_refused(text: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        row(n=text).number("n", most=100)
    assert str(caught.value) == f"t line 2: {message}"


def test_a_name_is_new_once() -> None:
    lines = {"b": "t line 1"}
    assert row(n="a").new_name("n", lines) == "a"
    assert lines == {"a": "t line 2", "b": "t line 1"}
    for name, message in (("b", "is the name of t line 1 already"), ("A", "is not a name"), ("", "is empty")):
        with pytest.raises(InputError, match=message):
            row(n=name).new_name("n", lines)


def test_extended_resources_are_limits_as_well() -> None:
    (container,) = pod("p", {"cpu": "1", "x.com/gpu": "2"}, labels={}, spec={})["spec"]["containers"]
    assert container["resources"] == {"requests": {"cpu": "1", "x.com/gpu": "2"}, "limits": {"x.com/gpu": "2"}}


def test_the_rows_of_a_table(tmp_path: Path) -> None:
    file, read = tmp_path / "t.csv", list[int]()
    file.write_text("a,b\n1,2\n3,\n")
    found = list(rows(str(file), ["a"], read.append))

    assert [(each.text("a"), each.text("b"), "b" in each, each.where) for each in found] == [
        ("1", "2", True, f"{file} line 2"),
        ("3", "", False, f"{file} line 3"),
    ]
    assert sum(read) == file.stat().st_size
    with pytest.raises(InputError, match="c"):
        list(rows(str(file), ["c"], read.append))
    assert [each.text("x") for each in rows(str(file), (), read.append, ["x", "y"])] == ["a", "1", "3"]


@pytest.mark.parametrize(("value", "number"), [(3, 3), ("12", 12), ("-4", -4), ("0.5", 0.5), (str(2**63), 2**63)])
def test_a_number_of_google(value: Any, number: float) -> None:
    assert _number(value, "n", "x") == number


@pytest.mark.parametrize("value", [None, "x", [1], float("nan"), "1e400"])
def test_what_is_no_number_of_google_is_refused(value: Any) -> None:
    with pytest.raises(InputError, match="is not a number"):
        _number(value, "n", "x")


def test_shares_and_types_of_google() -> None:
    assert _share(1000, "s", "x") == 1000
    for wrong in (-0.1, 1000.5):
        with pytest.raises(InputError, match="is not a share"):
            _share(wrong, "s", "x")
    names = {"ADD": 1, "REMOVE": 2}
    assert [_type({"type": given}, names, "x") for given in ("REMOVE", 7, "5")] == [2, 7, 5]
    assert _type({}, names, "x") == 0


@pytest.mark.parametrize(
    ("resource", "kind"),
    [("pods", "pod"), ("priorityclasses", "priorityclass"), ("networkpolicies", "networkpolicy"), ("leases", "lease")],
)
def test_the_kind_of_a_resource(resource: str, kind: str) -> None:
    assert _singular(resource) == kind


@pytest.mark.parametrize(
    ("value", "patch", "merged"),
    [
        ({"a": 1, "b": 2}, {"b": 3, "c": 4}, {"a": 1, "b": 3, "c": 4}),
        ({"a": 1, "b": 2}, {"b": None}, {"a": 1}),
        ({"a": {"b": 1}}, {"a": {"c": 2}}, {"a": {"b": 1, "c": 2}}),
        ({}, {"$patch": "x", "a": 1}, {"a": 1}),
        (
            [{"name": "x", "v": 1}],
            [{"name": "x", "w": 2}, {"name": "y"}],
            [{"name": "x", "v": 1, "w": 2}, {"name": "y"}],
        ),
        ([{"type": "Ready", "s": 1}], [{"type": "Ready", "s": 2}], [{"type": "Ready", "s": 2}]),
        ([1, 2], [3], [3]),
        ([{"name": "x"}, 1], [{"name": "y"}], [{"name": "y"}]),
        ("a", {"b": 1}, {"b": 1}),
    ],
)
def test_a_patch_is_merged(value: Any, patch: Any, merged: Any) -> None:
    assert _merged(value, patch) == merged


def test_a_recorded_pod_loses_its_node() -> None:
    assert _unbound({"spec": {"nodeName": "n", "x": 1}}) == {"spec": {"x": 1}}
    assert _unbound({"data": 1}) == {"data": 1}
