"""A reflector follows one kind of object: it lists and watches, and starts over if necessary."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any

import msgspec

from podium.errors import InputError
from podium.live.client import GONE, Access, ApiClient, ApiError, ApiStatus
from podium.live.reading import INDISPENSABLE, SCHEDULED_BY, ObjectDecoder, Resource, missing_kind
from podium.loop import Event, EventType
from podium.model import Object, Pod

logger = logging.getLogger("podium.live")

WATCH_SECONDS = (300, 600)
"""The requested length of a watch in seconds: random between these, so that not all end together."""
FIRST_BACKOFF, LONGEST_BACKOFF, BACKOFF_RESETS_AFTER = 0.8, 30.0, 120.0
"""Seconds, as in client-go."""
UNFINISHED = "status.phase!=Succeeded,status.phase!=Failed"
"""A scheduler ignores finished pods."""
INITIAL_EVENTS_END = "k8s.io/initial-events-end"

Sink = Callable[[Event], None]


class _Meta(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Versioned(msgspec.Struct):
    metadata: _Meta = msgspec.field(default_factory=_Meta)


class _WatchEvent(msgspec.Struct):
    type: str
    object: msgspec.Raw


_EVENT, _VERSIONED = msgspec.json.Decoder(_WatchEvent), msgspec.json.Decoder(_Versioned)


class Known(msgspec.Struct, frozen=True, gc=False):
    """An object as it was last reported."""

    object: Object
    version: str
    """Its resourceVersion."""


class Backoff:
    """The delay before the next try: doubled each time, plus up to as much again at random."""

    def __init__(self, first: float = FIRST_BACKOFF, longest: float = LONGEST_BACKOFF) -> None:
        self._first, self._longest = first, longest
        self._next, self._at = first, float("-inf")

    async def sleep(self) -> None:
        now = time.monotonic()
        if now - self._at > BACKOFF_RESETS_AFTER:
            self._next = self._first
        self._at = now
        await asyncio.sleep(self._next * (1 + random.random()))
        self._next = min(self._next * 2, self._longest)

    def reset(self) -> None:
        self._next = self._first


class Reflector:
    """Keeps `known` in sync with the API server's objects of one kind, and reports every change after the first list to
    `sink`.
    """

    def __init__(self, client: ApiClient, resource: Resource, sink: Sink) -> None:
        self.resource, self._client, self._sink = resource, client, sink
        self._decoder = ObjectDecoder(resource)
        self._backoff = Backoff()
        self._params = {"fieldSelector": UNFINISHED} if resource.type is Pod else {}
        self._streams_lists = True
        self._version = ""
        self.known: dict[str, Known] = {}
        """By namespace and name."""
        self.is_synced = asyncio.Event()
        self.lists = 0
        """How often the objects were listed: more than once means that changes may have been missed."""
        self.failure: ApiError | None = None
        """Why the kind cannot be read at all; it then counts as having no objects."""

    async def run(self) -> None:
        """Follow the objects as long as the task runs."""
        while True:
            try:
                if not self._version:
                    await self._list()
                await self._watch()
            except ApiError as error:
                await self._recover(error)

    async def _recover(self, error: ApiError) -> None:
        if error.code == GONE:
            # The events since are no longer available: start over.
            logger.info("%s: the watch is too old, listing again", self.resource.kind)
            self._version = ""
            if self.lists > 1:
                await self._backoff.sleep()
            return
        if error.code in (403, 404) and not self.is_synced.is_set() and self.resource.type not in INDISPENSABLE:
            if self.failure is None:
                logger.warning("%s", missing_kind(self.resource, error))
            self.failure = error
            self.is_synced.set()
        elif self.failure is None:
            logger.warning("%s: %s; trying again", self.resource.kind, error)
        await self._backoff.sleep()

    # -- lists -------------------------------------------------------------------------------------------------------

    async def _list(self) -> None:
        if self._streams_lists:
            try:
                await self._stream_list()
                return
            except ApiError as error:
                if error.code not in (400, 422):
                    raise
                self._streams_lists = False
        found: dict[str, Known] = {}
        version = ""
        async for page in self._client.pages(self.resource.path, params=self._params):
            for raw in page.items or ():
                self._decode_into(found, raw)
            version = page.metadata.resource_version
            await asyncio.sleep(0)
        self._replace(found, version)

    async def _stream_list(self) -> None:
        """Receive the objects as the first events of a watch, which costs the server less than a list."""
        params = {
            "sendInitialEvents": "true",
            "resourceVersionMatch": "NotOlderThan",
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(random.randint(*WATCH_SECONDS)),
            **self._params,
        }
        found: dict[str, Known] = {}
        async with aclosing(self._client.watch(self.resource.path, params, WATCH_SECONDS[1])) as lines:
            async for line in lines:
                event = self._event(line)
                if event is None:
                    continue
                if event.type == "BOOKMARK":
                    meta = _VERSIONED.decode(event.object).metadata
                    if INITIAL_EVENTS_END in (meta.annotations or {}):
                        self._replace(found, meta.resource_version)
                        return
                elif event.type == "ADDED":
                    self._decode_into(found, event.object)
        raise ApiError(f"{self.resource.kind}: the stream of the list ended early", 500)

    def _decode_into(self, found: dict[str, Known], raw: msgspec.Raw) -> None:
        item = self._decoded(raw)
        if item is not None:
            found[item.key] = Known(item, _VERSIONED.decode(raw).metadata.resource_version)

    def _decoded(self, raw: msgspec.Raw) -> Object | None:
        try:
            return self._decoder.decode(raw)
        except InputError as error:
            logger.warning("%s; left out", error)
            return None

    def _replace(self, found: dict[str, Known], version: str) -> None:
        """Take over a list; after the first one, report the differences."""
        before, self.known, self._version = self.known, found, version
        self.lists += 1
        self.failure = None
        if not self.is_synced.is_set():
            self.is_synced.set()
            return
        for key in before.keys() - found.keys():
            self._sink(Event(EventType.DELETE, before[key].object))
        for key, item in found.items():
            old = before.get(key)
            if old is None or old.version != item.version:
                self._sink(Event(EventType.ADD if old is None else EventType.UPDATE, item.object))

    # -- watches -----------------------------------------------------------------------------------------------------

    async def _watch(self) -> None:
        seconds = random.randint(*WATCH_SECONDS)
        params = {
            "resourceVersion": self._version,
            "allowWatchBookmarks": "true",
            "timeoutSeconds": str(seconds),
            **self._params,
        }
        async with aclosing(self._client.watch(self.resource.path, params, seconds + 30.0)) as lines:
            async for line in lines:
                event = self._event(line)
                if event is not None:
                    self._apply(event)
                    self._backoff.reset()

    def _event(self, line: bytes) -> _WatchEvent | None:
        if not line:
            return None
        try:
            event = _EVENT.decode(line)
            if event.type == "ERROR":
                status = msgspec.json.decode(event.object, type=ApiStatus)
                raise ApiError(status.message, status.code or 500, status.reason)
        except (msgspec.DecodeError, UnicodeDecodeError):
            # Half a line: the connection broke in the middle of it.
            raise ApiError(f"{self.resource.kind}: an event of the watch cannot be read", 500) from None
        return event

    def _apply(self, event: _WatchEvent) -> None:
        self._version = version = _VERSIONED.decode(event.object).metadata.resource_version
        if event.type == "BOOKMARK":
            return
        item = self._decoded(event.object)
        if item is None:
            return
        if event.type == "DELETED":
            self.known.pop(item.key, None)
            self._sink(Event(EventType.DELETE, item))
        else:
            is_new = item.key not in self.known
            self.known[item.key] = Known(item, version)
            self._sink(Event(EventType.ADD if is_new else EventType.UPDATE, item))


class Reflectors:
    """Reflectors of several kinds: first all objects, then their changes in the order they arrive."""

    def __init__(self, client: ApiClient, resources: Iterable[Resource]) -> None:
        self.events: deque[Event] = deque()
        """The events that were not handled yet."""
        self.has_events = asyncio.Event()
        self._client = client
        self._by_kind = {resource.kind: Reflector(client, resource, self._told) for resource in resources}
        self._tasks: list[asyncio.Task[Any]] = []

    def _told(self, event: Event) -> None:
        self.events.append(event)
        self.has_events.set()

    async def start(self) -> None:
        """Follow all kinds from now on; ApiError if nodes or pods cannot be read, instead of retrying forever."""
        for resource in (each.resource for each in self._by_kind.values() if each.resource.type in INDISPENSABLE):
            async with aclosing(self._client.pages(resource.path, limit=1)) as pages:
                await anext(pages)
        self._tasks = [asyncio.create_task(each.run(), name=kind) for kind, each in self._by_kind.items()]

    async def synced(self) -> None:
        """Wait until every kind was listed once; raises a reflector's failure."""
        for each in self._by_kind.values():
            synced = asyncio.create_task(each.is_synced.wait())
            await asyncio.wait({synced, *self._tasks}, return_when=asyncio.FIRST_COMPLETED)
            synced.cancel()
            self.check()

    def check(self) -> None:
        """Raise a reflector's failure: it ends only for errors that retrying cannot fix."""
        for task in self._tasks:
            if task.done():
                task.result()

    def objects(self) -> list[Object]:
        """All current objects."""
        return [known.object for each in self._by_kind.values() for known in each.known.values()]

    def known(self, kind: str, key: str) -> Known | None:
        return self._by_kind[kind].known.get(key)

    @property
    def lists(self) -> int:
        """The number of lists: more than one per kind means that changes may have been missed."""
        return sum(each.lists for each in self._by_kind.values())

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)


async def follow_cluster(
    access: Access,
    begin: Callable[[Sequence[Object]], Awaitable[None]],
    change: Callable[[Sequence[Event]], Awaitable[None]],
    connected: Callable[[ApiClient], object] = lambda client: None,
) -> None:
    """Pass all objects to `begin` and then the changes to `change`, until cancelled; raises a reflector's failure.

    `connected` gets the client, which works as long as this runs.
    """
    async with ApiClient(access) as client:
        connected(client)
        reflectors = Reflectors(client, SCHEDULED_BY)
        await reflectors.start()
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
