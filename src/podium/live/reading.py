"""A cluster as it is now: every kind that scheduling reads, listed once."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable

from podium.collector import collector_paused
from podium.live.client import ApiClient, ApiError
from podium.live.decoding import ObjectDecoder
from podium.live.kubeconfig import Access
from podium.live.resources import RESOURCES, Resource
from podium.manifests import Objects
from podium.manifests.loading import assemble
from podium.model import Node, Object, Pod

AT_ONCE = 4
"""How many kinds are listed at the same time."""
INDISPENSABLE = (Node, Pod)

OnPage = Callable[[int], None]
"""Told how many objects a page had."""


class Lists:
    """The objects of all kinds, as they come in; kinds that cannot be read become warnings."""

    def __init__(self, client: ApiClient, on_page: OnPage = lambda count: None) -> None:
        self._client, self._on_page = client, on_page
        self._slots = asyncio.Semaphore(AT_ONCE)
        self.warnings: list[str] = []
        self.counts: Counter[str] = Counter()

    async def all(self, resources: Iterable[Resource]) -> list[Object]:
        """Every object, kind by kind in the order given."""
        tasks = [asyncio.create_task(self._list(resource)) for resource in resources]
        try:
            return [item for found in await asyncio.gather(*tasks) for item in found]
        finally:
            for task in tasks:
                task.cancel()

    async def _list(self, resource: Resource) -> list[Object]:
        async with self._slots:
            try:
                return await self._decoded(resource)
            except ApiError as error:
                if error.code not in (403, 404) or resource.type in INDISPENSABLE:
                    raise
                self.warnings.append(missing_kind(resource, error))
                return []

    async def _decoded(self, resource: Resource) -> list[Object]:
        decoder, found = ObjectDecoder(resource), list[Object]()
        async for page in self._client.pages(resource.path):
            items = page.items or []
            found += map(decoder.decode, items)
            self.counts[resource.kind] += len(items)
            self._on_page(len(items))
        return found


def missing_kind(resource: Resource, error: ApiError) -> str:
    """What to say of a kind that cannot be read."""
    why = "is not served by this cluster" if error.code == 404 else "may not be listed with these credentials"
    return f"{resource.kind} {why}: assumed that there are none"


def read_cluster(
    access: Access, resources: Iterable[Resource] = RESOURCES.values(), on_page: OnPage = lambda count: None
) -> tuple[Objects, Counter[str]]:
    """The objects of a cluster, and how many there are of each kind; ApiError if it cannot be read."""

    async def read() -> tuple[Objects, Counter[str]]:
        async with ApiClient(access) as client:
            lists = Lists(client, on_page)
            objects = await lists.all(resources)
            return assemble(objects, lists.warnings, namespace=access.namespace), lists.counts

    with collector_paused():
        return asyncio.run(read())
