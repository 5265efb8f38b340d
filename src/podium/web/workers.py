"""Processes that answer one question each, within a time and an amount of memory.

A question about a large cluster can take long, and a posted cluster can be anything. Each is answered in a process of
its own: a copy of a small server process that was forked before any thread started and has the served cluster in
memory. The kernel ends a process that takes too long; nothing it does can disturb the server.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
from collections.abc import Callable
from time import monotonic

from podium.errors import PodiumError

Answer = Callable[[bytes], bytes]
"""Answers a question: bytes in, bytes out."""

MIB = 1024 * 1024


class BusyError(PodiumError):
    """All processes have a question, and enough others wait already."""


class EndedError(PodiumError):
    """The process ended before it had an answer: it took too long, or needed too much memory."""


class Workers:
    """Answers questions in processes of their own: so many at once, for so long, with so much memory.

    `start` forks the process that all others are copies of; call it before the first thread starts.
    """

    def __init__(
        self, answer: Answer, *, at_once: int = 2, waiting: int = 16, seconds: float = 60.0, mebibytes: int = 2048
    ) -> None:
        """`waiting` is how many questions may wait; `mebibytes` is what one may need beyond what the server has."""
        self._answer, self._seconds, self._mebibytes = answer, seconds, mebibytes
        self._at_once, self._most = at_once, at_once + waiting
        self._count = 0
        self._free: asyncio.Semaphore | None = None
        self._control: socket.socket | None = None
        self._pid = 0

    def start(self) -> None:
        """Fork the process that makes the others."""
        if not hasattr(os, "fork"):
            raise PodiumError("podium serve needs a system that can fork processes, such as Linux or macOS")
        ours, theirs = socket.socketpair()
        self._pid = os.fork()
        if not self._pid:
            ours.close()
            _serve(theirs, self._answer, self._seconds, self._mebibytes)
        theirs.close()
        self._control = ours

    def close(self) -> None:
        """End the process that makes the others; those that have a question still answer it."""
        if self._control is not None:
            self._control.close()
            self._control = None
            os.waitpid(self._pid, 0)

    async def ask(self, question: bytes) -> bytes:
        """The answer to a question; BusyError if too many wait already, EndedError if there is none in time."""
        if self._count >= self._most:
            raise BusyError(f"busy: {self._count} questions are being answered or wait; ask again in a few seconds")
        if self._free is None:
            self._free = asyncio.Semaphore(self._at_once)
        self._count += 1
        try:
            async with self._free:
                return await self._ask(question)
        finally:
            self._count -= 1

    async def _ask(self, question: bytes) -> bytes:
        if self._control is None:
            raise PodiumError("the workers are not started")
        ours, theirs = socket.socketpair()
        with theirs:
            socket.send_fds(self._control, [b"q"], [theirs.fileno()])
        start = monotonic()
        reader, writer = await asyncio.open_connection(sock=ours)
        try:
            writer.write(question)
            writer.write_eof()
            answer = await reader.read()
        except ConnectionError:
            answer = b""
        finally:
            writer.close()
        if not answer:
            raise EndedError(self._why_ended(monotonic() - start))
        return answer[1:]

    def _why_ended(self, seconds: float) -> str:
        if seconds >= self._seconds:
            return (
                f"no answer within {self._seconds:g} s: ask about less, or start the server with a longer --time-limit"
            )
        return "not enough memory for this question"


def _serve(control: socket.socket, answer: Answer, seconds: float, mebibytes: int) -> None:
    """Fork a process for every connection handed over, until the server is gone; never returns."""
    # Terminals send an interrupt to every process; it is meant for the server, whose end ends this one.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        try:
            message, handles, _, _ = socket.recv_fds(control, 1, 1)
        except OSError:
            os._exit(0)
        if not message:
            os._exit(0)
        pid = os.fork()
        if not pid:
            control.close()
            _answer_one(socket.socket(fileno=handles[0]), answer, seconds, mebibytes)
        for handle in handles:
            os.close(handle)


def _answer_one(connection: socket.socket, answer: Answer, seconds: float, mebibytes: int) -> None:
    """Read a question, write its answer and exit; the kernel's alarm ends what takes too long."""
    try:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_REAL, seconds)
        _limit_memory(mebibytes)
        question = b"".join(iter(lambda: connection.recv(MIB), b""))
        # A first byte that is always there tells an empty answer from none.
        connection.sendall(b"a" + answer(question))
    finally:
        os._exit(0)


def _limit_memory(mebibytes: int) -> None:
    """Let the process need so much more than it has; a system that cannot say how much that is sets no limit."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:
            now = int(file.read().split()[0]) * resource.getpagesize()
    except OSError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (now + mebibytes * MIB,) * 2)
