"""A replica that waits for the lease keeps what is there, and not what happened."""

from __future__ import annotations

import asyncio
from functools import partial

from builders import make_node, make_pod
from live_unit.api_server import PODS, ApiServer, Fields
from live_unit.running import following, made_scheduler
from live_unit.virtual_time import run


def label(pod: Fields, number: int) -> None:
    pod["metadata"]["labels"] = {"n": str(number)}


def test_a_standby_keeps_no_events() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a"), make_pod("web", node="a"))
        async with following(server) as reflectors:
            for number in range(200):
                server.change(f"{PODS}/web", partial(label, number=number))
            await asyncio.sleep(1)
            assert len(reflectors.events) == 0
            known = reflectors.known("Pod", "default/web")
            assert known is not None
            assert known.object.metadata.labels == {"n": "199"}

    run(story())


def test_a_standby_has_metrics_about_what_it_follows() -> None:
    async def story() -> None:
        server = ApiServer(make_node("a"))
        async with following(server) as reflectors:
            scheduler = made_scheduler(server, reflectors)
            await asyncio.sleep(7)
            await scheduler.measure()
            text = scheduler.metrics.text().decode()
            assert 'podium_watch_lists_total{kind="Node"} 1.0' in text
            assert 'podium_watch_age_seconds{kind="Node"} 7.' in text

    run(story())
