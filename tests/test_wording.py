"""Numbers and lists inside sentences."""

from __future__ import annotations

import pytest

from podium.wording import counted, csv_cell, did_you_mean, joined, listed, near_names


@pytest.mark.parametrize(("number", "text"), [(0, "0 pods"), (1, "1 pod"), (2, "2 pods"), (5000, "5,000 pods")])
def test_singular_and_plural(number: int, text: str) -> None:
    assert counted(number, "pod") == text


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "a"),
        (["a", "b"], "a, b"),
        (["a", "b", "c"], "a, b and 1 more"),
        (["a"] * 1002, "a, a and 1,000 more"),
    ],
)
def test_a_list_names_two_at_the_most(names: list[str], text: str) -> None:
    assert listed(names, 2) == text


@pytest.mark.parametrize(
    ("parts", "text"), [([], ""), (["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_parts_are_joined(parts: list[str], text: str) -> None:
    assert joined(parts) == text


def test_near_names_are_likely_mistakes() -> None:
    known = ["NodeName", "NodePorts", "ImageLocality"]

    assert near_names("NodeNmae", known) == ["NodeName"]
    assert near_names("NODEPORTS", known) == ["NodePorts"]
    assert near_names("frobnicate", known) == []


@pytest.mark.parametrize(
    ("names", "text"),
    [
        ([], ""),
        (["a"], "; did you mean a?"),
        (["a", "b"], "; did you mean a or b?"),
        (["a", "b", "c"], "; did you mean a, b or c?"),
    ],
)
def test_did_you_mean(names: list[str], text: str) -> None:
    assert did_you_mean(names) == text


def test_cells_have_no_control_characters() -> None:
    assert csv_cell("a\tb\x1b[31m") == r"a\tb\x1b[31m"
    assert (csv_cell("größe"), csv_cell(3), csv_cell(None)) == ("größe", 3, None)
