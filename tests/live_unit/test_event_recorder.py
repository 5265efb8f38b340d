"""Events: what is written of them, how repetitions are counted, and what happens if they cannot be written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from builders import make_pod
from live_unit.api_server import UNREACHABLE, ApiServer
from live_unit.virtual_time import run, until
from podium.live import event_recorder
from podium.live.client import ApiError
from podium.live.event_recorder import EventRecorder

POD, OTHER = make_pod("web"), make_pod("api")
MINUTE = 60.0


@asynccontextmanager
async def recording(server: ApiServer) -> AsyncIterator[EventRecorder]:
    recorder = EventRecorder(server.client)
    recorder.start()
    yield recorder
    await recorder.stop(5.0)


def fails(recorder: EventRecorder, note: str = "no room", version: str = "7") -> None:
    """Record that the pod is not scheduled."""
    recorder.record(POD, version, "podium", "Warning", "FailedScheduling", "Scheduling", note)


def counts(server: ApiServer) -> list[int]:
    """The counts of all repetitions that were written, in their order."""
    return [each["series"]["count"] for each in server.asked("PATCH")]


def test_an_event_says_what_happened_to_whom() -> None:
    async def story() -> None:
        server = ApiServer()
        async with recording(server) as recorder:
            fails(recorder)
        (event,) = server.events()
        regarding = {"kind": "Pod", "name": "web", "namespace": "default", "uid": POD.metadata.uid}
        assert event["regarding"] == {"apiVersion": "v1", "resourceVersion": "7", **regarding}
        assert (event["reason"], event["action"], event["type"]) == ("FailedScheduling", "Scheduling", "Warning")
        assert (event["note"], event["reportingController"]) == ("no room", "podium")
        assert event["reportingInstance"].startswith("podium-")

    run(story())


def test_a_repeated_event_is_written_once_and_counted() -> None:
    async def story() -> None:
        server = ApiServer()
        async with recording(server) as recorder:
            for _ in range(5):
                fails(recorder)
                await asyncio.sleep(1)
        assert len(server.asked("POST", "/events")) == 1
        assert counts(server) == [2]

    run(story())


def test_the_end_of_a_series_is_written_after_six_quiet_minutes() -> None:
    async def story() -> None:
        server = ApiServer()
        async with recording(server) as recorder:
            for _ in range(5):
                fails(recorder)
            await asyncio.sleep(5 * MINUTE)
            assert counts(server) == [2]
            await asyncio.sleep(3 * MINUTE)
            assert counts(server) == [2, 5]
            fails(recorder)
        assert len(server.events()) == 2

    run(story())


def test_a_series_that_goes_on_is_written_every_half_hour() -> None:
    async def story() -> None:
        server = ApiServer()
        async with recording(server) as recorder:
            for _ in range(60):
                fails(recorder)
                await asyncio.sleep(MINUTE)
        assert len(server.asked("POST", "/events")) == 1
        assert counts(server)[0] == 2
        (later,) = counts(server)[1:]
        assert 30 <= later <= 33

    run(story())


def test_events_of_other_pods_reasons_and_versions_are_not_repetitions() -> None:
    async def story() -> None:
        server = ApiServer()
        async with recording(server) as recorder:
            fails(recorder)
            fails(recorder, version="8")
            recorder.record(OTHER, "7", "podium", "Warning", "FailedScheduling", "Scheduling", "no room")
            recorder.record(POD, "7", "podium", "Normal", "Scheduled", "Binding", "on a")
        assert (len(server.events()), counts(server)) == (4, [])

    run(story())


def test_a_note_is_cut_where_a_letter_ends() -> None:
    async def story() -> None:
        server = ApiServer()
        async with recording(server) as recorder:
            fails(recorder, "x" + "é" * 600)
            fails(recorder, "y" * 1024, version="8")
        long, fitting = (event["note"] for event in server.events())
        assert long == "x" + "é" * 509 + " ..."
        assert len(long.encode()) <= 1024
        assert fitting == "y" * 1024

    run(story())


def test_events_wait_for_a_server_that_is_away() -> None:
    async def story() -> None:
        server = ApiServer()
        server.fails("POST", "/events", UNREACHABLE, times=2)
        server.fails("POST", "/events", ApiError("broken", 500))
        async with recording(server) as recorder:
            fails(recorder)
            await until(server.events, 2 * MINUTE)
        assert len(server.asked("POST", "/events")) == 4

    run(story())


def test_an_event_is_given_up_in_the_end() -> None:
    async def story() -> None:
        server = ApiServer()
        server.fails("POST", "/events", UNREACHABLE, times=1000)
        async with recording(server) as recorder:
            fails(recorder)
            await asyncio.sleep(10 * MINUTE)
        assert len(server.asked("POST", "/events")) == 12

    run(story())


def test_an_event_that_is_refused_is_not_sent_again() -> None:
    async def story() -> None:
        server = ApiServer()
        server.fails("POST", "/events", ApiError("the namespace is being deleted", 403))
        async with recording(server) as recorder:
            fails(recorder)
            await asyncio.sleep(MINUTE)
        assert (len(server.asked("POST", "/events")), server.events()) == (1, [])

    run(story())


def test_events_beyond_the_limit_are_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(event_recorder, "MOST_WAITING", 3)

    async def story() -> None:
        server = ApiServer()
        async with recording(server) as recorder:
            for number in range(5):
                fails(recorder, version=str(number))
            assert recorder.dropped == 2
        assert len(server.events()) == 3

    run(story())
