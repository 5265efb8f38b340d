"""Time that passes only while everybody waits: minutes of sleeping take no time."""

from __future__ import annotations

import asyncio
import gc
import selectors
import threading
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar
from unittest import mock

T = TypeVar("T")

TICK = 1e-6
"""Seconds that go by whenever somebody looks at the clock."""
REAL_WAIT = 0.001
"""Seconds for other threads to do something before the clock is moved."""
LONGEST = 24 * 3600.0
"""No test takes longer than this, in virtual seconds."""


class _Clock:
    def __init__(self) -> None:
        self.now = 1_000_000.0

    def monotonic(self) -> float:
        self.now += TICK
        return self.now


class _Selector(selectors.DefaultSelector):
    """Instead of waiting, moves the clock to when the next timer is due."""

    clock: _Clock

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        # Threads work in real time.
        ready = super().select(REAL_WAIT if timeout and threading.active_count() > 1 else 0)
        if not ready and timeout:
            self.clock.now += timeout
        return ready


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like `asyncio.run`, in virtual time."""
    clock, selector = _Clock(), _Selector()
    selector.clock = clock
    with mock.patch.object(time, "monotonic", clock.monotonic):
        try:
            with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
                return runner.run(asyncio.wait_for(story, LONGEST))
        finally:
            gc.unfreeze()  # a scheduler that begins freezes what there is


async def until(is_so: Callable[[], object], within: float = 60.0) -> None:
    """Wait until something is so; AssertionError if it is not within this many virtual seconds."""
    end = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < end, "it does not happen"
        await asyncio.sleep(0.05)
