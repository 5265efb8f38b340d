"""Time that passes only while everybody waits: minutes of sleeping take no time."""

from __future__ import annotations

import asyncio
import gc
import selectors
import time
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor
from typing import Any, TypeVar, TypeVarTuple
from unittest import mock

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TICK = 1e-6
"""Seconds that go by whenever somebody looks at the clock."""
REAL_WAIT = 1.0
"""Seconds that threads get to finish or to ask for something before the clock is moved."""
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

    def __init__(self, clock: _Clock) -> None:
        super().__init__()
        self._clock = clock
        self.in_threads: set[asyncio.Future[Any]] = set()
        """Work that threads do, in real time."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(REAL_WAIT if timeout and self.in_threads else 0)
        if not ready and timeout:
            self._clock.now += timeout
        return ready


class _Loop(asyncio.SelectorEventLoop):
    def __init__(self, selector: _Selector) -> None:
        super().__init__(selector)
        self._in_threads = selector.in_threads

    def run_in_executor(self, executor: Executor | None, func: Callable[[*Ts], T], *args: *Ts) -> asyncio.Future[T]:
        work = super().run_in_executor(executor, func, *args)
        self._in_threads.add(work)
        work.add_done_callback(self._in_threads.discard)
        return work


def run(story: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine like `asyncio.run`, in virtual time."""
    clock = _Clock()
    with mock.patch.object(time, "monotonic", clock.monotonic):
        try:
            with asyncio.Runner(loop_factory=lambda: _Loop(_Selector(clock))) as runner:
                return runner.run(asyncio.wait_for(story, LONGEST))
        finally:
            gc.unfreeze()  # a scheduler that begins freezes what there is


async def until(is_so: Callable[[], object], within: float = 60.0) -> None:
    """Wait until something is so; AssertionError if it is not within this many virtual seconds."""
    end = time.monotonic() + within
    while not is_so():
        assert time.monotonic() < end, "it does not happen"
        await asyncio.sleep(0.05)
