"""A dictionary of limited size, and context managers that pause or slow down the garbage collector."""

from __future__ import annotations

import gc
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

MANY = 50_000
"""From this many new objects on, it pays to keep them from the next collection."""


@contextmanager
def collector_paused() -> Iterator[None]:
    """Pause garbage collection: it would scan all objects again and again and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            # Counting frozen objects takes as long as scanning them, so it is not done for a few objects.
            if gc.get_count()[0] > MANY and not gc.get_freeze_count():
                # Moves all objects to the oldest generation, so that the next collection does not scan them.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextmanager
def collector_relaxed() -> Iterator[None]:
    """Collect garbage a hundred times less often, and only among new objects.

    Deciding creates many objects and hardly any garbage.
    """
    young, *older = gc.get_threshold()
    gc.set_threshold(100 * young, *older)
    # What others froze stays frozen.
    freezes = not gc.get_freeze_count()
    if freezes:
        gc.freeze()
    try:
        yield
    finally:
        if freezes:
            gc.unfreeze()
        gc.set_threshold(young, *older)


V = TypeVar("V")
_set = dict.__setitem__


class RecentlyUsed(dict[Hashable, V]):
    """Keeps the most recently used values: at most `most` of them, and at least half of that.

    Reading a missing key gives None. A value is not dropped if it is used again before `most // 2` others are.
    """

    __slots__ = ("_half", "_old", "turns")

    def __init__(self, most: int) -> None:
        super().__init__()
        self._half = max(most // 2, 1)
        self._old: dict[Hashable, V] = {}
        self.turns = 0
        """How often half of the values were set aside; values not read before the next time are dropped then."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Created first: pickle would insert values before the object knows how many it keeps.
        state = None, {"_old": self._old, "turns": self.turns}
        return type(self), (2 * self._half,), state, None, iter(list(self.items()))

    def __missing__(self, key: Hashable) -> V | None:
        found = self._old.get(key)
        if found is not None:
            self[key] = found
        return found

    def __setitem__(self, key: Hashable, value: V) -> None:
        if len(self) >= self._half:
            self._set_aside()
        _set(self, key, value)

    def _set_aside(self) -> None:
        self._old = dict(self)
        super().clear()
        self.turns += 1

    def get_or_make(self, key: Hashable, make: Callable[[], V]) -> V:
        """The value of a key; if it is missing, it is made and kept."""
        found = self.get(key)
        if found is None:
            found = self._old.get(key)
            if found is None:
                found = make()
            if len(self) >= self._half:
                self._set_aside()
            _set(self, key, found)
        return found

    def clear(self) -> None:
        """Forget everything."""
        super().clear()
        self._old.clear()
