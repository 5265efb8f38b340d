"""Score arithmetic."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from podium.plugins.node_resources_balanced_allocation import halved_around_50


@given(st.lists(st.integers(-200, 200)))
def test_halving_drops_the_fraction(numbers: list[int]) -> None:
    doubled = np.array(numbers, dtype=np.int64) + 100
    assert halved_around_50(doubled).tolist() == [50 + int(number / 2) for number in numbers]
