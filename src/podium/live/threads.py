"""Threads that do not keep the process from ending, for calls that may take long or never return."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Executor, Future
from queue import SimpleQueue
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class DaemonThreads(Executor):
    """Runs up to `most` calls at a time, each in a daemon thread.

    The interpreter waits at its end for the threads of a ThreadPoolExecutor, so that a plugin that hangs would keep the
    process from ending.
    """

    def __init__(self, most: int, name: str) -> None:
        self._most, self._name = most, name
        self._calls: SimpleQueue[Callable[[], None] | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._threads = self._idle = 0

    def submit(self, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        future: Future[T] = Future()

        def call() -> None:
            if future.set_running_or_notify_cancel():
                try:
                    future.set_result(fn(*args, **kwargs))
                except BaseException as error:
                    future.set_exception(error)

        with self._lock:
            if self._idle:
                self._idle -= 1
            elif self._threads < self._most:
                self._threads += 1
                threading.Thread(target=self._work, name=f"{self._name}-{self._threads}", daemon=True).start()
        self._calls.put(call)
        return future

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call()
            with self._lock:
                self._idle += 1

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads after the calls that were submitted; never waits for them."""
        for _ in range(self._threads):
            self._calls.put(None)


class LoopThread:
    """An event loop in a daemon thread."""

    def __init__(self, name: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine there, and wait for it here; cancelling one cancels the other."""
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, self._loop))

    def call(self, action: Callable[[], object]) -> None:
        """Call a function there, soon."""
        self._loop.call_soon_threadsafe(action)

    async def stop(self, within: float) -> bool:
        """Cancel what runs there and end the thread; returns whether it ended within this many seconds."""
        stopping = asyncio.run_coroutine_threadsafe(self._cancel_all(), self._loop)
        done, _ = await asyncio.wait({asyncio.wrap_future(stopping)}, timeout=within)
        if done:
            self._loop.call_soon_threadsafe(self._loop.stop)
            await asyncio.to_thread(self._thread.join, within)
        return not self._thread.is_alive()

    @staticmethod
    async def _cancel_all() -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
