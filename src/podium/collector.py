"""Python's garbage collector, kept away while many objects are made that stay."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def collector_paused() -> Iterator[None]:
    """No garbage collection meanwhile: it would go through all the objects again and again and find nothing."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            if not gc.get_freeze_count():
                # Puts all there is among the old objects, without the look at each of them that comes next otherwise.
                gc.freeze()
                gc.unfreeze()
            gc.enable()


@contextmanager
def collector_relaxed() -> Iterator[None]:
    """Garbage collection a hundred times rarer meanwhile: deciding makes many objects and hardly any garbage."""
    young, *older = gc.get_threshold()
    gc.set_threshold(100 * young, *older)
    try:
        yield
    finally:
        gc.set_threshold(young, *older)
