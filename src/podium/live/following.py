"""A copy of the cluster that others keep: everything there is, then what happens to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from podium.live.client import ApiClient
from podium.live.kubeconfig import Access
from podium.live.reflector import Reflectors
from podium.live.resources import SCHEDULED_BY
from podium.loop import Event
from podium.model import Object


async def follow_cluster(
    access: Access,
    begin: Callable[[Sequence[Object]], Awaitable[None]],
    change: Callable[[Sequence[Event]], Awaitable[None]],
) -> None:
    """Tell `begin` what there is, and `change` what happens then, until cancelled; raises what ends a reflector."""
    async with ApiClient(access) as client:
        reflectors = Reflectors(client, SCHEDULED_BY)
        reflectors.start()
        try:
            await reflectors.synced()
            reflectors.events.clear()
            await begin(reflectors.objects())
            while True:
                await reflectors.has_events.wait()
                reflectors.has_events.clear()
                reflectors.check()
                events = list(reflectors.events)
                reflectors.events.clear()
                await change(events)
        finally:
            await reflectors.stop()
