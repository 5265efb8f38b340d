"""A reflector and a server that says what the test wants: the first list, changes, and what goes wrong on the way."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping
from typing import Any, cast

import msgspec
import pytest

from builders import make_node
from live_unit.api_server import ApiServer
from live_unit.virtual_time import run
from podium.live.client import ApiClient, ApiError, Page, SilentWatchError
from podium.live.reading import RESOURCES
from podium.live.reflector import INITIAL_EVENTS_END, Backoff, Reflector
from podium.loop import Event

Answer = list[bytes | ApiError]


def said(type_: str, name: str, version: int, **fields: Any) -> bytes:
    """A line of a watch about a node."""
    return _line(type_, {"metadata": {"name": name, "resourceVersion": str(version)}, **fields})


def bookmark(version: int, *, ends_list: bool = False) -> bytes:
    annotations = {INITIAL_EVENTS_END: "true"} if ends_list else {}
    return _line("BOOKMARK", {"metadata": {"resourceVersion": str(version), "annotations": annotations}})


def _line(type_: str, item: Mapping[str, Any]) -> bytes:
    return json.dumps({"type": type_, "object": {"apiVersion": "v1", "kind": "Node", **item}}).encode()


def listed(version: int, **nodes: int) -> Answer:
    """A list as a watch begins with it: names of nodes and their versions."""
    return [*(said("ADDED", name, each) for name, each in nodes.items()), bookmark(version, ends_list=True)]


class Server:
    """Answers each watch with the next of its answers, and is silent after the last."""

    def __init__(self, answers: list[Answer], pages: list[dict[str, Any]], version: int) -> None:
        self._answers, self._pages, self._version = answers, pages, version
        self.asked: list[str] = []
        """The version from which each watch was to begin; `list` for one that begins with all there is."""
        self.is_silent = asyncio.Event()

    async def watch(self, path: str, params: Mapping[str, str], idle: float) -> AsyncGenerator[bytes, None]:
        self.asked.append("list" if "sendInitialEvents" in params else params["resourceVersion"])
        if not self._answers:
            self.is_silent.set()
            await asyncio.Event().wait()
        for each in self._answers.pop(0):
            if isinstance(each, ApiError):
                raise each
            yield each

    async def pages(
        self, path: str, *, params: Mapping[str, str] | None = None, limit: int = 500
    ) -> AsyncGenerator[Page, None]:
        if limit == 1:
            yield msgspec.json.decode(json.dumps({"metadata": {"resourceVersion": str(self._version)}}), type=Page)
            return
        self.asked.append("pages")
        for page in self._pages:
            yield msgspec.json.decode(json.dumps(page), type=Page)


class Followed:
    """What a reflector told, asked and knows in the end."""

    def __init__(
        self, *answers: Answer, kind: str = "Node", pages: list[dict[str, Any]] | None = None, version: int = 1000
    ) -> None:
        """`version` is the server's when it is asked for one object."""
        self.events: list[Event] = []
        asyncio.run(self._follow([*answers], kind, pages or [], version))

    async def _follow(self, answers: list[Answer], kind: str, pages: list[dict[str, Any]], version: int) -> None:
        server = Server(answers, pages, version)
        reflector = Reflector(cast(ApiClient, server), RESOURCES[kind], self.events.append)
        task = asyncio.create_task(reflector.run())
        await asyncio.wait_for(server.is_silent.wait(), 10.0)
        task.cancel()
        self.asked, self.known = server.asked, " ".join(sorted(reflector.known))
        self.health, self.went_back = reflector.health, reflector.went_back
        self.is_synced, self.failure, self.lists = reflector.is_synced.is_set(), reflector.failure, reflector.lists

    @property
    def told(self) -> list[str]:
        return [f"{event.type.name.lower()} {event.object.name}" for event in self.events]


BACKOFF_SLEEP = Backoff.sleep


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    async def sleep(self: Backoff) -> None:
        await asyncio.sleep(0)

    monkeypatch.setattr(Backoff, "sleep", sleep)


GONE, UNREACHABLE, NO_STREAMS = ApiError("too old", 410), ApiError("no answer"), ApiError("unknown option", 400)
GONE_EVENT = json.dumps({"type": "ERROR", "object": {"kind": "Status", "code": 410, "message": "too old"}}).encode()
SILENT = SilentWatchError("nothing came")
NO_METADATA = json.dumps({"type": "ADDED", "object": {"kind": "Node", "metadata": None}}).encode()
BROKEN = said("ADDED", "broken", 7, status={"allocatable": {"cpu": "much"}})

STORIES: dict[str, tuple[list[Answer], list[str], list[str]]] = {
    "what was there from the beginning is not told": ([listed(3, a=1, b=2)], [], ["list", "3"]),
    "what happens then is": (
        [listed(3, a=1, b=2), [said("MODIFIED", "a", 4), said("DELETED", "b", 5), said("ADDED", "c", 6)]],
        ["update a", "delete b", "add c"],
        ["list", "3", "6"],
    ),
    "a bookmark says from where to go on": ([listed(3, a=1), [bookmark(9)]], [], ["list", "3", "9"]),
    "a connection that breaks goes on where it was": (
        [listed(3, a=1), [said("ADDED", "b", 4), UNREACHABLE], [said("ADDED", "c", 5)]],
        ["add b", "add c"],
        ["list", "3", "4", "5"],
    ),
    "so does one with a line that cannot be read": (
        [listed(3, a=1), [said("ADDED", "b", 4)[:20], said("ADDED", "c", 5)], [said("ADDED", "b", 4)]],
        ["add b"],
        ["list", "3", "3", "4"],
    ),
    "a watch that is too old begins anew and tells what it missed": (
        [listed(3, a=1, b=2, d=3), [GONE], listed(9, a=1, b=7, c=8)],
        ["delete d", "update b", "add c"],
        ["list", "3", "list", "9"],
    ),
    "also if the server says so in an event": (
        [listed(3, a=1), [GONE_EVENT], listed(9, a=1)],
        [],
        ["list", "3", "list", "9"],
    ),
    "a list that ends early is asked for again": (
        [listed(3, a=1)[:-1], listed(4, a=1, b=2)],
        [],
        ["list", "list", "4"],
    ),
    "a watch that is silent begins again where it was": (
        [listed(3, a=1), [SILENT], [said("ADDED", "b", 4)]],
        ["add b"],
        ["list", "3", "3", "4"],
    ),
    "two that are silent in a row are followed by a list": (
        [listed(3, a=1), [SILENT], [SILENT], listed(9, a=1, b=7)],
        ["add b"],
        ["list", "3", "3", "list", "9"],
    ),
    "an event without metadata is followed by a list": (
        [listed(3, a=1), [NO_METADATA], listed(9, a=1, b=7)],
        ["add b"],
        ["list", "3", "list", "9"],
    ),
    "an object without metadata in a list is left out": (
        [[NO_METADATA, *listed(3, a=1)], [said("ADDED", "b", 4)]],
        ["add b"],
        ["list", "3", "4"],
    ),
    "an object that cannot be read is left out": (
        [listed(3, a=1), [BROKEN, said("ADDED", "b", 8)]],
        ["add b"],
        ["list", "3", "8"],
    ),
}


@pytest.mark.parametrize("story", STORIES)
def test_what_is_told_and_asked(story: str) -> None:
    answers, told, asked = STORIES[story]
    followed = Followed(*answers)
    assert (followed.told, followed.asked) == (told, asked)


def test_what_is_known_is_what_is_there() -> None:
    changes: Answer = [
        said("MODIFIED", "a", 4),
        said("DELETED", "b", 5),
        said("ADDED", "c", 6),
        said("DELETED", "x", 7),
    ]
    assert Followed(listed(3, a=1, b=2), changes).known == "a c"


def test_a_server_that_does_not_stream_lists_is_asked_for_pages() -> None:
    items = [{"kind": "Node", "metadata": {"name": name, "resourceVersion": "1"}} for name in "ab"]
    pages = [{"metadata": {"resourceVersion": "3"}, "items": [item]} for item in items]
    followed = Followed([NO_STREAMS], [GONE], pages=pages)
    assert (followed.known, followed.told) == ("a b", [])
    assert followed.asked == ["list", "pages", "3", "pages", "3"]
    assert followed.lists == 2


@pytest.mark.parametrize(("kind", "goes_on"), [("ResourceSlice", True), ("Node", False), ("Pod", False)])
def test_only_nodes_and_pods_have_to_be_there(kind: str, goes_on: bool) -> None:
    followed = Followed([ApiError("not allowed", 403)], kind=kind)
    assert (followed.is_synced, followed.failure is not None) == (goes_on, goes_on)


def test_a_server_that_went_back_in_time_is_listed_again(caplog: pytest.LogCaptureFixture) -> None:
    restored = listed(4, a=1, c=4)
    followed = Followed(listed(9, a=1, b=7), [UNREACHABLE], restored, version=4)
    assert followed.asked == ["list", "9", "list", "4"]
    assert followed.told == ["delete b", "update a", "add c"]
    assert followed.went_back == 1
    assert "Node: the API server went back from version 9 to 4" in caplog.text


def test_short_watches_are_followed_by_a_growing_pause(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> int:
        begun = 0

        class Ends(ApiServer):
            async def watch(self, path: str, params: Mapping[str, str], idle: float) -> AsyncGenerator[bytes, None]:
                nonlocal begun
                begun += 1
                if "sendInitialEvents" in params:
                    async for line in super().watch(path, params, idle):
                        yield line

        reflector = Reflector(Ends(make_node("a")).client, RESOURCES["Node"], lambda event: None)
        task = asyncio.create_task(reflector.run())
        await asyncio.sleep(300)
        task.cancel()
        return begun

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Backoff, "sleep", BACKOFF_SLEEP)
        begun = run(story())
    assert 5 < begun < 30
    assert "the watch ended after" in caplog.text
    assert 1 < len(caplog.records) < 10


def test_the_health_of_a_kind_says_when_it_was_heard_of() -> None:
    followed = Followed(listed(3, a=1), [NO_METADATA], listed(9, a=1), [UNREACHABLE])
    assert followed.health is not None
    assert 0.0 <= followed.health.age < 5.0
    assert (followed.health.lists, followed.health.reconnects, followed.health.unreadable) == (2, 1, 1)
