"""The least and the greatest of an array."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.columns import highest, is_any, lowest


@given(st.lists(st.integers(-(1 << 62), 1 << 62), min_size=1))
def test_they_are_what_python_says(numbers: list[int]) -> None:
    values = np.array(numbers, dtype=np.int64)
    assert (lowest(values), highest(values)) == (min(numbers), max(numbers))


@given(st.lists(st.booleans()))
def test_any_is_what_python_says(flags: list[bool]) -> None:
    assert is_any(np.array(flags, dtype=np.bool_)) is any(flags)


def test_of_nothing_they_are_zero() -> None:
    nothing = np.zeros(0, dtype=np.int64)
    assert (lowest(nothing), highest(nothing)) == (0, 0)


def test_unsigned_numbers_are_what_they_are() -> None:
    assert highest(np.array([3, -1]).view(np.uint64)) == (1 << 64) - 1
