"""Many nodes and pods at once, and how many of the pods are bound."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable
from contextlib import aclosing
from typing import Any

import msgspec

from live.control_plane import ControlPlane
from podium.live.client import ApiClient, ApiError, find_access

AT_ONCE = 16


def create_all(plane: ControlPlane, path: str, items: Iterable[dict[str, Any]]) -> None:
    """Create objects, several at a time."""

    async def create() -> None:
        waiting = list(items)
        async with ApiClient(find_access(str(plane.kubeconfig("many")))) as client:

            async def work() -> None:
                while waiting:
                    await client.request("POST", path, msgspec.json.encode(waiting.pop()))

            await asyncio.gather(*(work() for _ in range(AT_ONCE)))

    asyncio.run(create())


def wait_for_bound(plane: ControlPlane, count: int, seconds: float, of: bytes = b"") -> list[float]:
    """When each pod was seen bound, on the monotonic clock, until `count` are; only pods with a text in their JSON."""

    seen: dict[str, float] = {}

    async def watch(client: ApiClient) -> None:
        async with aclosing(client.watch("/api/v1/pods", {"resourceVersion": "0"}, seconds)) as lines:
            async for line in lines:
                if b'"nodeName":"' in line and of in line:
                    name = msgspec.json.decode(line)["object"]["metadata"]["uid"]
                    seen.setdefault(name, time.monotonic())
                    if len(seen) >= count:
                        return

    async def follow() -> list[float]:
        async with ApiClient(find_access(str(plane.kubeconfig("follow")))) as client:
            while len(seen) < count:
                try:
                    await watch(client)
                except ApiError:
                    await asyncio.sleep(0.2)
        return list(seen.values())

    return asyncio.run(asyncio.wait_for(follow(), seconds))


def overfull_nodes(plane: ControlPlane) -> list[str]:
    """The nodes whose pods ask for more cpu than there is, in the whole milli-cpus that the tests use."""
    room = {
        item["metadata"]["name"]: _milli(item["status"]["allocatable"]["cpu"])
        for item in plane.get("/api/v1/nodes")["items"]
    }
    used: Counter[str] = Counter()
    for pod in plane.get("/api/v1/pods")["items"]:
        if pod["spec"].get("nodeName"):
            used[pod["spec"]["nodeName"]] += sum(
                _milli(each["resources"]["requests"]["cpu"]) for each in pod["spec"]["containers"]
            )
    return [name for name, amount in used.items() if name in room and amount > room[name]]


def _milli(cpu: str) -> int:
    return int(cpu[:-1]) if cpu.endswith("m") else int(cpu) * 1000
