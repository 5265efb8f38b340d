"""Conditions such as `pending > 0`: what they mean, and what is refused."""

from __future__ import annotations

import pytest

from podium.answers import Condition
from podium.errors import InputError

VALUES = {"pending": 4.0, "moved": 0.0, "before.pending": 2.0, "agreement": 0.5}

HOLDS = {
    "pending > 0": True,
    "pending>4": False,
    "pending >= 4 and moved == 0": True,
    "pending < 1 or moved != 0": False,
    "not pending < 1": True,
    "pending > before.pending": True,
    "pending > 2 * before.pending": False,
    "1 < pending <= 4": True,
    "(pending - before.pending) / 2 == 1": True,
    "-pending < -3": True,
    "agreement < 0.9": True,
    "agreement < 90%": True,
    "agreement < 50.5 % and moved == 0": True,
    "agreement < 49.5%": False,
    "100% - agreement > 10%": True,
    "moved > 0 and pending / moved > 1": False,
    "pending > 0 or pending / moved > 1": True,
    "moved / (pending - before.pending) > 1": False,
    "pending > 50% * before.pending": True,
}


@pytest.mark.parametrize(("text", "expected"), HOLDS.items())
def test_holds(text: str, expected: bool) -> None:
    assert Condition.parse(text, VALUES).holds(VALUES) is expected


REFUSED = {
    "pending": "compares nothing",
    "": "cannot be read",
    "pending >": "cannot be read",
    "pnding > 0": "'pnding' is not measured; there are pending, moved, agreement",
    "pending > 1 and pnding > 0": "'pnding' is not measured",
    "pending < 1 or pnding > 0": "'pnding' is not measured",
    "__import__('os') > 0": "where a number should be",
    "pending.real > 0": "'pending.real' is not measured",
    "pending > 'x'": "where a number should be",
    "pending > True": "where a number should be",
    "pending ** 9 > 0": "where a number should be",
    "pending in (1, 2)": "where a number should be",
    "pending is 4": "compare with",
    "pending > 50%": "pending is not a share; compare it with a number",
    "20% < before.pending": "before.pending is not a share",
    "pending > 0 and moved": "where a comparison should be",
    "pending / 0 > 1": "'pending / 0 > 1' divides by 0$",
    "pending > 1 and pending / (2 - 2) > 1": r"divides by 2 - 2$",
    "(lambda: 1)() > 0": "where a number should be",
    "pending > " + "1 + " * 100 + "1": "longer than 200",
}


@pytest.mark.parametrize(("text", "problem"), REFUSED.items(), ids=[text[:30] for text in REFUSED])
def test_refused(text: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem) as raised:
        Condition.parse(text, VALUES)

    assert "\n" not in str(raised.value)


def test_a_division_by_a_measure_that_is_zero_is_an_error() -> None:
    condition = Condition.parse("pending / moved > 1", VALUES)
    problem = "'pending / moved > 1' divides by moved, which is 0; multiply instead, such as 'pending > 0.1 [*] moved'$"
    with pytest.raises(InputError, match=problem):
        condition.holds(VALUES)


def test_what_to_write_instead_names_what_is_measured() -> None:
    with pytest.raises(InputError, match="write one such as 'drifted > 0'"):
        Condition.parse("pending", ["drifted"])


def test_explains_with_the_values_it_speaks_of() -> None:
    condition = Condition.parse("pending > before.pending and pending > 1", VALUES)

    assert condition.explained(VALUES) == "pending is 4, before.pending is 2"


def test_a_share_that_is_compared_with_a_percentage_is_told_as_one() -> None:
    values = {"pending": 4.0, "agreement": 0.259124}
    condition = Condition.parse("agreement < 50% or pending > 3", values)
    assert condition.explained(values) == "agreement is 25.9%, pending is 4"
