"""Control characters in CSV are escaped, so that no name can steer a terminal or break a row."""

from __future__ import annotations

import pytest

from podium.present import to_csv

CELLS = {"plain": "plain", "a\nb": "a\\nb", "\x1b[31mred": "\\x1b[31mred", "nul\0": "nul\\x00", "ü": "ü"}


@pytest.mark.parametrize(("cell", "shown"), CELLS.items(), ids=map(repr, CELLS))
def test_control_characters_are_escaped(cell: str, shown: str) -> None:
    assert to_csv(("name",), [(cell,)]).splitlines()[1:] == [shown]
