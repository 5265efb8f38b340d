"""The fence of a leader: no write leaves once another replica may have taken over."""

from __future__ import annotations

import time
from typing import Any

import aiohttp


class FencedError(aiohttp.ClientError):
    """A write did not leave, because this replica may no longer be the leader."""


class Fence:
    """Lets writes pass until a time on the monotonic clock, in seconds; closed until it is opened.

    Several threads use one fence: the one that renews the lease moves the time, the others ask.
    """

    def __init__(self) -> None:
        self._until = float("-inf")

    @property
    def is_open(self) -> bool:
        return time.monotonic() < self._until

    def open_until(self, until: float) -> None:
        self._until = until

    def close(self) -> None:
        self._until = float("-inf")


def fenced_request(fence: Fence) -> type[aiohttp.ClientRequest]:
    """A request of aiohttp that asks the fence right before its bytes go to the connection.

    Between the call and this moment a request may wait for a free connection, for TCP and for TLS, and the process may
    have been stopped meanwhile.
    """

    class FencedRequest(aiohttp.ClientRequest):
        async def send(self, conn: Any) -> aiohttp.ClientResponse:
            if not self._may_leave():
                conn.close()
                raise FencedError
            return await super().send(conn)

        async def write_bytes(self, writer: Any, conn: Any, *rest: Any) -> None:
            # aiohttp keeps the headers until there is a body, and writes both in a task of its own.
            if not self._may_leave():
                conn.protocol.set_exception(FencedError())
                conn.close()
                return
            await super().write_bytes(writer, conn, *rest)

        def _may_leave(self) -> bool:
            return self.method in ("GET", "CONNECT") or fence.is_open

    return FencedRequest
