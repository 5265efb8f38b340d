"""Writes stop at the fence, wherever they wait for their turn."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from podium.live.client import FENCED_CODE, Access, ApiClient, ApiError, ClusterEntry, UserEntry
from podium.live.fence import Fence

WRITES = ("POST", "PUT", "PATCH", "DELETE")


class Server:
    """Counts what reaches it."""

    def __init__(self) -> None:
        self.reached: list[str] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        self.reached.append(request.method)
        return web.Response(body=b"{}")


@asynccontextmanager
async def serving() -> AsyncIterator[Server]:
    server, app = Server(), web.Application()
    app.router.add_route("*", "/{path:.*}", server.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()


def access_to(url: str) -> Access:
    return Access("test", ClusterEntry(server=url), UserEntry(), "default")


@pytest.mark.parametrize("method", WRITES)
@pytest.mark.parametrize("body", [b"{}", None], ids=["with a body", "without a body"])
def test_no_write_passes_a_closed_fence(method: str, body: bytes | None) -> None:
    async def story() -> None:
        fence = Fence()
        async with serving() as server, ApiClient(access_to(server.url), fence=fence) as client:
            with pytest.raises(ApiError, match="may no longer be the leader") as refused:
                await client.request(method, "/x", body)
            assert (refused.value.code, server.reached) == (FENCED_CODE, [])
            await client.request("GET", "/x")
            fence.open_until(time.monotonic() + 60)
            await client.request(method, "/x", body)
            assert server.reached == ["GET", method]

    asyncio.run(story())


def test_a_write_that_waits_for_the_rate_limit_asks_when_it_leaves() -> None:
    async def story() -> None:
        fence = Fence()
        fence.open_until(time.monotonic() + 0.25)
        async with serving() as server, ApiClient(access_to(server.url), qps=10, burst=1, fence=fence) as client:
            results = await asyncio.gather(
                *(client.request("POST", "/x", b"{}") for _ in range(8)), return_exceptions=True
            )
            sent = [each for each in results if isinstance(each, bytes)]
            assert 1 <= len(sent) <= 3
            assert len(server.reached) == len(sent)

    asyncio.run(story())


@pytest.mark.parametrize("body", [b"{}", None], ids=["with a body", "without a body"])
def test_a_write_that_waits_for_its_connection_asks_when_it_leaves(body: bytes | None) -> None:
    """The fence closes after the request began and before there is a connection."""

    async def story() -> None:
        fence = Fence()
        fence.open_until(time.monotonic() + 60)
        async with serving() as server, ApiClient(access_to(server.url), fence=fence) as client:
            writing = asyncio.create_task(client.request("POST", "/x", body))
            await asyncio.sleep(0)  # it waits for TCP now
            fence.close()
            with pytest.raises(ApiError, match="was not sent"):
                await writing
            assert server.reached == []

    asyncio.run(story())


def test_a_write_with_a_body_asks_in_the_task_that_writes_it() -> None:
    """aiohttp writes the body one turn of the event loop after it has the connection."""

    async def story() -> None:
        class ClosesAfterOneLook(Fence):
            looks = 0

            @property
            def is_open(self) -> bool:
                self.looks += 1
                return self.looks <= 1

        async with serving() as server, ApiClient(access_to(server.url), fence=ClosesAfterOneLook()) as client:
            with pytest.raises(ApiError, match="was not sent"):
                await client.request("POST", "/x", b"{}")
            assert server.reached == []

    asyncio.run(story())
