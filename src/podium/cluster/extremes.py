"""The least and the greatest of an array: NumPy finds where it is in a third of the time it takes to say what it is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from podium.cluster.columns import Mask


def lowest(values: NDArray[np.integer[Any]]) -> int:
    """The smallest of the values; 0 if there are none."""
    found: int = values.item(values.argmin()) if len(values) else 0
    return found


def highest(values: NDArray[np.integer[Any]]) -> int:
    """The largest of the values; 0 if there are none."""
    found: int = values.item(values.argmax()) if len(values) else 0
    return found


def is_any(mask: Mask) -> bool:
    """Whether any is true."""
    return mask.item(mask.argmax()) if len(mask) else False
