"""What plugins return, looked over: it is other people's code, and may return anything."""

from __future__ import annotations

from typing import Any

import numpy as np

from podium.cluster.columns import Ints
from podium.errors import PluginError
from podium.framework.status import Status, Verdict

WHOLE = int, np.integer
INT64 = np.dtype(np.int64)


def status(plugin: str, found: Any) -> Status:
    """What `filter_node` says; PluginError if it says nothing."""
    if not isinstance(found, Status):
        raise PluginError(plugin, f"returns {found!r} from filter_node: return a Status")
    return found


def number(plugin: str, found: Any) -> int:
    """What `score_node` says; PluginError if it is no whole number."""
    if not isinstance(found, WHOLE):
        raise PluginError(plugin, f"returns {found!r} from score_node: return an int")
    return int(found)


def numbers(plugin: str, point: str, found: Any, count: int) -> Ints:
    """One number for each node; PluginError if it is anything else."""
    if not (isinstance(found, np.ndarray) and found.dtype == INT64 and found.shape == (count,)):
        shape = f"{found.dtype}{list(found.shape)}" if isinstance(found, np.ndarray) else type(found).__name__
        raise PluginError(plugin, f"returns {shape} from {point}: return an int64 array, one number for each node")
    return found


def verdict(plugin: str, found: Any, count: int) -> Verdict:
    """What a filter says of each node; PluginError if it is anything else."""
    if not isinstance(found, Verdict):
        raise PluginError(plugin, f"returns {type(found).__name__} from filter: return a Verdict")
    for array in found.arrays:
        if not isinstance(array, np.ndarray) or array.shape != (count,) or array.dtype.kind not in "bi":
            numbers(plugin, "filter", array, count)
    return found
