"""Score arithmetic that several plugins share."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Ints, Mask, highest, lowest
from podium.framework.plugin import MAX_NODE_SCORE

LIMIT = 1 << 63


def normalize_by_max(scores: Ints, *, reverse: bool = False) -> Ints:
    """Scale so that the highest score becomes 100, or with `reverse` so that zero does."""
    most = max(highest(scores), 0)
    if most == 0:
        return np.full_like(scores, MAX_NODE_SCORE) if reverse else scores
    scaled = MAX_NODE_SCORE * scores // most
    return MAX_NODE_SCORE - scaled if reverse else scaled


def halved(numbers: Ints) -> Ints:
    """Half of each number, with the fraction dropped as Go's integer division does."""
    half = numbers >> 1
    if lowest(numbers) < 0:
        # Shifting rounds down, so a negative number that is odd comes out one too small.
        half += (numbers < 0) & (numbers & 1 != 0)
    return half


def divisors(capacity: Ints | int) -> tuple[Ints | int, Mask | bool]:
    """What to divide by, never zero, and which nodes have any of it: True for all, False for none."""
    if isinstance(capacity, int):
        return (capacity, True) if capacity else (1, False)
    present = capacity != 0
    return (capacity, True) if present.all() else (np.maximum(capacity, 1), present)


def round_half_away(numbers: NDArray[np.float64]) -> Ints:
    """Round to the nearest integer, halves away from zero, as Go's math.Round does; NumPy's rounds halves to even."""
    whole = np.trunc(numbers)
    rounded: NDArray[np.float64] = whole + np.where(np.abs(numbers - whole) >= 0.5, np.sign(numbers), 0.0)
    return rounded.astype(np.int64)


def rounded(number: float) -> int:
    """What `round_half_away` makes of one number."""
    whole = math.trunc(number)
    if abs(number - whole) < 0.5:
        return whole
    return whole + 1 if number > 0 else whole - 1


def int64(number: int) -> int:
    """The number as 64 bits hold it: what NumPy's and Go's arithmetic makes of one that is too large."""
    return number if -LIMIT <= number < LIMIT else (number + LIMIT) % (2 * LIMIT) - LIMIT
