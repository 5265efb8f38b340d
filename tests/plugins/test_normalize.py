"""Score arithmetic."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.cluster.columns import halved


@given(st.lists(st.integers(-200, 200)))
def test_halving_drops_the_fraction(numbers: list[int]) -> None:
    assert halved(np.array(numbers, dtype=np.int64)).tolist() == [int(number / 2) for number in numbers]
