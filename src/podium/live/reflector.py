"""A reflector follows one kind of object: it lists and watches, and starts over if necessary."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import aclosing
from typing import Any, NamedTuple

import msgspec

from podium.errors import InputError
from podium.live.client import GONE, Access, ApiClient, ApiError, ApiStatus, SilentWatchError
from podium.live.reading import (
    INDISPENSABLE,
    SCHEDULED_BY,
    ObjectDecoder,
    Resource,
    is_worth_a_warning,
    missing_kind,
)
from podium.live.repeated_warnings import RepeatedWarnings
from podium.loop import Event, EventType
from podium.model import Object, Pod

logger = logging.getLogger("podium.live")

WATCH_SECONDS = (300, 600)
"""The requested length of a watch in seconds: random between these, so that not all end together."""
DEAD_AFTER = 90.0
"""Seconds without an event or a bookmark after which a watch counts as dead: a bookmark comes about once a minute."""
SHORT_WATCH = 1.0
"""A watch that ends within this many seconds is followed by a pause, which grows."""
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


class UnreadableError(ApiError):
    """An object of a watch or list lacks what every object has."""


class ReflectorHealth(NamedTuple):
    """How following one kind of object goes."""

    age: float
    """Seconds since the last list, event or bookmark."""
    lists: int
    reconnects: int
    unreadable: int


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
        self.went_back = 0
        """How often the API server was found at an older state than before."""
        self._heard = time.monotonic()
        self._reconnects = self._unreadable = self._silences = 0
        """How often the watch was begun again, objects could not be read, and watches in a row were silent."""
        self._warnings = RepeatedWarnings()

    @property
    def health(self) -> ReflectorHealth | None:
        """None if the kind cannot be read at all."""
        if self.failure is not None:
            return None
        return ReflectorHealth(time.monotonic() - self._heard, self.lists, self._reconnects, self._unreadable)

    async def run(self) -> None:
        """Follow the objects as long as the task runs."""
        while True:
            try:
                if not self._version:
                    await self._list()
                else:
                    self._reconnects += 1
                    await self._check_history()
                await self._watch()
            except ApiError as error:
                await self._recover(error)

    async def _recover(self, error: ApiError) -> None:
        if isinstance(error, SilentWatchError):
            self._silences += 1
            self._warnings.warn(f"{self.resource.kind}: silent", f"{self.resource.kind}: {error}; connecting again")
            if self._silences > 1:
                # Twice in a row: perhaps the server does not say what happens. A list does.
                self._version = ""
            return
        if isinstance(error, UnreadableError):
            self._unreadable += 1
            self._warnings.warn(f"{self.resource.kind}: unreadable", f"{error}; listing again")
            self._version = ""
            await self._backoff.sleep()
            return
        if error.code == GONE:
            # The events since are no longer available: start over.
            logger.info("%s: the watch is too old, listing again", self.resource.kind)
            self._version = ""
            if self.lists > 1:
                await self._backoff.sleep()
            return
        if error.code in (403, 404) and not self.is_synced.is_set() and self.resource.type not in INDISPENSABLE:
            if self.failure is None and is_worth_a_warning(self.resource, error):
                logger.warning("%s", missing_kind(self.resource, error))
            self.failure = error
            self.is_synced.set()
        elif self.failure is None:
            self._warnings.warn(f"{self.resource.kind}: {error}", f"{self.resource.kind}: {error}; trying again")
        await self._backoff.sleep()

    async def _check_history(self) -> None:
        """List again if the API server is at an older state than this reflector: its store was restored or emptied.

        A watch from a version that is yet to come would stay silent until then.
        """
        async with aclosing(self._client.pages(self.resource.path, limit=1)) as pages:
            version = (await anext(pages)).metadata.resource_version
        if _number(version) < _number(self._version):
            logger.warning(
                "%s: the API server went back from version %s to %s: was its store restored? listing again",
                *(self.resource.kind, self._version, version),
            )
            self.went_back += 1
            # Versions from before mean nothing any more: all objects are reported.
            self.known = {key: Known(each.object, "") for key, each in self.known.items()}
            self._version = ""
            await self._list()

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
        async with aclosing(self._client.watch(self.resource.path, params, DEAD_AFTER)) as lines:
            async for line in lines:
                event = self._event(line)
                if event is None:
                    continue
                if event.type == "BOOKMARK":
                    meta = self._meta(event.object)
                    if INITIAL_EVENTS_END in (meta.annotations or {}):
                        self._replace(found, meta.resource_version)
                        return
                elif event.type == "ADDED":
                    self._decode_into(found, event.object)
        raise ApiError(f"{self.resource.kind}: the stream of the list ended early", 500)

    def _decode_into(self, found: dict[str, Known], raw: msgspec.Raw) -> None:
        try:
            version = self._meta(raw).resource_version
        except UnreadableError as error:
            # To list again would not help.
            self._unreadable += 1
            self._warnings.warn(f"{self.resource.kind}: unreadable in list", f"{error}; left out")
            return
        item = self._decoded(raw)
        if item is not None:
            found[item.key] = Known(item, version)

    def _meta(self, raw: msgspec.Raw) -> _Meta:
        try:
            return _VERSIONED.decode(raw).metadata
        except (msgspec.DecodeError, UnicodeDecodeError) as error:
            raise UnreadableError(f"{self.resource.kind}: an object has unreadable metadata: {error}") from None

    def _decoded(self, raw: msgspec.Raw) -> Object | None:
        try:
            return self._decoder.decode(raw)
        except InputError as error:
            self._unreadable += 1
            self._warnings.warn(str(error), f"{error}; left out")
            return None

    def _replace(self, found: dict[str, Known], version: str) -> None:
        """Take over a list; after the first one, report the differences."""
        before, self.known, self._version = self.known, found, version
        self.lists += 1
        self.failure = None
        self._heard, self._silences = time.monotonic(), 0
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
        begin = time.monotonic()
        try:
            async with aclosing(self._client.watch(self.resource.path, params, DEAD_AFTER)) as lines:
                async for line in lines:
                    event = self._event(line)
                    if event is not None:
                        self._apply(event)
                        self._heard, self._silences = time.monotonic(), 0
        finally:
            lasted = time.monotonic() - begin
            if lasted >= SHORT_WATCH:
                self._backoff.reset()
        if lasted < SHORT_WATCH:
            self._warnings.warn(
                f"{self.resource.kind}: short",
                f"{self.resource.kind}: the watch ended after {lasted:.3f} s; trying again",
            )
            await self._backoff.sleep()

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
        self._version = version = self._meta(event.object).resource_version
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


def _number(version: str) -> int:
    """A resourceVersion as a number; 0 if it is none."""
    return int(version) if version.isdecimal() else 0


class Reflectors:
    """Reflectors of several kinds: first all objects, then their changes in the order they arrive."""

    def __init__(self, client: ApiClient, resources: Iterable[Resource]) -> None:
        self.events: deque[Event] = deque()
        """The events since `begin` that were not handled yet."""
        self._has_begun = False
        self.has_events = asyncio.Event()
        self.client = client
        self._by_kind = {resource.kind: Reflector(client, resource, self._told) for resource in resources}
        self._tasks: list[asyncio.Task[Any]] = []

    def _told(self, event: Event) -> None:
        # Before somebody takes the events, as in a standby, what is known is enough.
        if self._has_begun:
            self.events.append(event)
            self.has_events.set()

    async def start(self) -> None:
        """Follow all kinds from now on; ApiError if nodes or pods cannot be read, instead of retrying forever."""
        for resource in (each.resource for each in self._by_kind.values() if each.resource.type in INDISPENSABLE):
            async with aclosing(self.client.pages(resource.path, limit=1)) as pages:
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

    def begin(self) -> list[Object]:
        """All current objects; their changes are kept in `events` from now on."""
        self._has_begun = True
        self.events.clear()
        return [known.object for each in self._by_kind.values() for known in each.known.values()]

    def known(self, kind: str, key: str) -> Known | None:
        return self._by_kind[kind].known.get(key)

    @property
    def went_back(self) -> int:
        """How often a kind was found at an older state than before."""
        return sum(each.went_back for each in self._by_kind.values())

    def health(self) -> dict[str, ReflectorHealth]:
        """How following each kind goes that can be read."""
        found = {kind: each.health for kind, each in self._by_kind.items()}
        return {kind: health for kind, health in found.items() if health is not None}

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
            await begin(reflectors.begin())
            while True:
                await reflectors.has_events.wait()
                reflectors.has_events.clear()
                reflectors.check()
                events = list(reflectors.events)
                reflectors.events.clear()
                await change(events)
        finally:
            await reflectors.stop()
