"""An API server in memory: it checks versions and uids, patches, is watched, and fails when it is told to."""

from __future__ import annotations

import asyncio
import json
import re
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Mapping
from copy import deepcopy
from typing import Any, NamedTuple, cast

import msgspec

from podium.live.client import MERGE_PATCH, ApiClient, ApiError, Page
from podium.live.reading import document, resource_of
from podium.live.reflector import INITIAL_EVENTS_END
from podium.model import Object

Fields = dict[str, Any]

MERGE_KEYS = {"conditions": "type", "reservedFor": "uid"}
"""The lists whose elements a strategic patch merges, and by which field."""
FROM_LIST = "$deleteFromPrimitiveList/"
SUBRESOURCE = re.compile(r"/(status|binding)$")
UNREACHABLE = ApiError("no answer")


class Request(NamedTuple):
    """A request that was made."""

    method: str
    path: str
    body: Fields


class Fault:
    """What goes wrong with some requests."""

    def __init__(self, error: ApiError | None, times: int, is_done: bool, is_held: bool, answer: bytes = b"") -> None:
        self.error, self.times, self.is_done, self.answer = error, times, is_done, answer
        self.has_come = asyncio.Event()
        """Set once there is such a request."""
        self.may_go_on = asyncio.Event()
        if not is_held:
            self.may_go_on.set()


class ApiServer:
    """The objects of a cluster by their paths."""

    def __init__(self, *objects: Object) -> None:
        self.objects: dict[str, Fields] = {}
        self.requests: list[Request] = []
        self.in_flight: set[asyncio.Task[Any] | None] = set()
        """The tasks that wait for an answer."""
        self.errors: Counter[int] = Counter()
        """How many requests failed, by HTTP status."""
        self._faults: list[tuple[str, str, Fault]] = []
        self._log: list[tuple[int, str, str, bytes]] = []
        """Version, collection, type and object of every change."""
        self._is_changed = asyncio.Event()
        self._version = 0
        self._life = 0
        """How often the store was restored."""
        self._oldest = 0
        """The version before which watches are too old."""
        self.told_until: dict[str, int] = {}
        """By collection, the version of the last change that watches are told of for now."""
        for item in objects:
            self.create(item)

    @property
    def client(self) -> ApiClient:
        return cast(ApiClient, self)

    # -- what tests ask and do ---------------------------------------------------------------------------------------

    def create(self, item: Object) -> Fields:
        """Store a new object, under a uid of its own."""
        made = deepcopy(document(item))
        del made["metadata"]["uid"]
        return self._store("ADDED", path_of(item), made)

    def change(self, path: str, change: Callable[[Fields], object]) -> None:
        """Change an object as somebody else would."""
        found = deepcopy(self.objects[path])
        change(found)
        self._store("MODIFIED", path, found)

    @property
    def version(self) -> int:
        """The version of the last change."""
        return self._version

    def forget(self) -> None:
        """Forget the history: all watches are too old, and changes that they were not told are missed."""
        self._version += 1
        self._oldest = self._version
        self._wake_up()

    def go_back(self, version: int, objects: dict[str, Fields]) -> None:
        """Be as a server whose store was restored: an older version, these objects, and all watches cut."""
        self.objects, self._version = deepcopy(objects), version
        self._log = [each for each in self._log if each[0] <= version]
        self._life += 1
        self._wake_up()

    def remove(self, path: str) -> None:
        """Delete an object at once."""
        self._forget(path)

    def fails(
        self, method: str, part: str, error: ApiError, *, times: int = 1, is_done: bool = False, is_held: bool = False
    ) -> Fault:
        """Answer the next requests whose path ends with `part` with an error.

        `is_done` says whether they are obeyed all the same, `is_held` whether the answer waits until it may go on.
        """
        return self._fault(method, part, Fault(error, times, is_done, is_held))

    def holds(self, method: str, part: str, *, times: int = 1) -> Fault:
        """Hold up the next requests whose path ends with `part` until they may go on."""
        return self._fault(method, part, Fault(None, times, is_done=True, is_held=True))

    def answers(self, method: str, part: str, answer: bytes) -> None:
        """Answer the next request whose path ends with `part` with these bytes."""
        self._fault(method, part, Fault(None, 1, is_done=False, is_held=False, answer=answer))

    def _fault(self, method: str, part: str, fault: Fault) -> Fault:
        self._faults.append((method, part, fault))
        return fault

    def asked(self, method: str, part: str = "") -> list[Fields]:
        """The bodies of the requests whose path ends with `part`."""
        return [each.body for each in self.requests if each.method == method and each.path.endswith(part)]

    @property
    def writes(self) -> list[str]:
        """All requests that change something."""
        return [f"{each.method} {each.path}" for each in self.requests if each.method != "GET"]

    def events(self, reason: str = "") -> list[Fields]:
        """The recorded events, or those with one reason."""
        found = [each for path, each in self.objects.items() if "/events/" in path]
        return [each for each in found if reason in ("", each["reason"])]

    def node_of(self, pod: str) -> str:
        node: str = self.objects[f"{PODS}/{pod}"]["spec"].get("nodeName", "")
        return node

    # -- what clients ask --------------------------------------------------------------------------------------------

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        params: Mapping[str, str] | None = None,
        content_type: str = "",
        timeout: float = 0.0,
    ) -> bytes:
        asked: Fields = json.loads(body) if body else {}
        self.requests.append(Request(method, path, asked))
        task = asyncio.current_task()
        self.in_flight.add(task)
        try:
            return await self._answered(method, path, asked, content_type)
        finally:
            self.in_flight.discard(task)

    async def _answered(self, method: str, path: str, asked: Fields, content_type: str) -> bytes:
        await asyncio.sleep(0)
        fault = self._next_fault(method, path)
        if fault is not None:
            fault.times -= 1
            fault.has_come.set()
            await fault.may_go_on.wait()
            if fault.error is not None:
                if fault.is_done:
                    self._answer(method, path, asked, content_type)
                self.errors[fault.error.code] += 1
                raise fault.error
            if fault.answer:
                return fault.answer
        return json.dumps(self._answer(method, path, asked, content_type)).encode()

    def _next_fault(self, method: str, path: str) -> Fault | None:
        faults = (each for wanted, part, each in self._faults if wanted == method and path.endswith(part))
        return next((each for each in faults if each.times > 0), None)

    def _answer(self, method: str, path: str, body: Fields, content_type: str) -> Fields:
        if method == "POST" and not path.endswith("/binding"):
            metadata = body["metadata"]
            name = metadata.setdefault("name", f"{metadata.get('generateName', '')}x{self._version}")
            if match := re.search(r"/namespaces/([^/]+)/", path):
                metadata["namespace"] = match[1]
            if f"{path}/{name}" in self.objects:
                raise ApiError("it is there already", 409)
            return self._store("ADDED", f"{path}/{name}", body)
        part = SUBRESOURCE.search(path)
        path = SUBRESOURCE.sub("", path)
        if path not in self.objects:
            raise ApiError(f"{path} not found", 404)
        found = deepcopy(self.objects[path])
        match method:
            case "GET":
                return found
            case "POST":
                self._check(found, {"metadata": {"uid": body["metadata"]["uid"]}})
                if found["spec"].get("nodeName"):
                    raise ApiError(f"pod {found['metadata']['name']} is already assigned to node", 409)
                found["spec"]["nodeName"] = body["target"]["name"]
            case "PUT":
                self._check(found, body)
                fields = ("status",) if part else ("metadata", "spec")
                found |= {name: body[name] for name in fields if name in body}
            case "PATCH":
                self._check(found, body)
                found = merged(found, body, is_strategic=content_type != MERGE_PATCH)
            case "DELETE":
                self._check(found, {"metadata": body.get("preconditions", {})})
                if not found["metadata"].get("finalizers"):
                    self._forget(path)
                    return found
                found["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
        return self._store("MODIFIED", path, found)

    @staticmethod
    def _check(found: Fields, body: Fields) -> None:
        for field in ("uid", "resourceVersion"):
            expected = body.get("metadata", {}).get(field)
            if expected not in (None, found["metadata"][field]):
                raise ApiError(f"Precondition failed: {field}", 409)

    async def pages(
        self, path: str, *, params: Mapping[str, str] | None = None, limit: int = 0
    ) -> AsyncGenerator[Page, None]:
        items = [found for key, found in self.objects.items() if collection_of(key) == path]
        answer = {"metadata": {"resourceVersion": str(self._version)}, "items": items}
        yield msgspec.json.decode(json.dumps(answer), type=Page)

    async def watch(self, path: str, params: Mapping[str, str], idle: float) -> AsyncGenerator[bytes, None]:
        if "sendInitialEvents" in params:
            for found in [each for key, each in self.objects.items() if collection_of(key) == path]:
                yield _line("ADDED", found)
            metadata = {"resourceVersion": str(self._version), "annotations": {INITIAL_EVENTS_END: "true"}}
            yield _line("BOOKMARK", {"metadata": metadata})
            return
        version, life = int(params["resourceVersion"]), self._life
        while True:
            if life != self._life:
                raise UNREACHABLE
            if version < self._oldest:
                raise ApiError("too old", 410)
            until = self.told_until.get(path, self._version)
            changes = [each for each in self._log if version < each[0] <= until]
            for number, collection, type_, text in changes:
                version = number
                if collection == path:
                    yield b'{"type": "%s", "object": %s}' % (type_.encode(), text)
            await self._is_changed.wait()

    # -- storing -----------------------------------------------------------------------------------------------------

    def _store(self, type_: str, path: str, found: Fields) -> Fields:
        self._version += 1
        metadata = found.setdefault("metadata", {})
        if not metadata.get("uid"):
            metadata["uid"] = f"uid-{self._version}"
        metadata["resourceVersion"] = str(self._version)
        if "deletionTimestamp" in metadata and metadata.get("finalizers") == []:
            self.objects[path] = found
            self._forget(path)
            return found
        self.objects[path] = found
        self._tell(type_, path, found)
        return found

    def _forget(self, path: str) -> None:
        self._version += 1
        found = self.objects.pop(path)
        found["metadata"]["resourceVersion"] = str(self._version)
        self._tell("DELETED", path, found)

    def _tell(self, type_: str, path: str, found: Fields) -> None:
        self._log.append((self._version, collection_of(path), type_, json.dumps(found).encode()))
        self._wake_up()

    def _wake_up(self) -> None:
        self._is_changed.set()
        self._is_changed = asyncio.Event()


PODS = "/api/v1/namespaces/default/pods"
CLAIMS = "/apis/resource.k8s.io/v1/namespaces/default/resourceclaims"


def path_of(item: Object) -> str:
    return resource_of(item).path_of(item.namespace, item.name)


def collection_of(path: str) -> str:
    """Where objects of all namespaces are listed."""
    return re.sub(r"/namespaces/[^/]+/(?=[^/]+/)", "/", path).rpartition("/")[0]


def merged(found: Fields, patch: Fields, *, is_strategic: bool) -> Fields:
    """An object after a patch."""
    made = dict(found)
    for name, value in patch.items():
        if is_strategic and name.startswith(FROM_LIST):
            name = name.removeprefix(FROM_LIST)
            made[name] = [each for each in made.get(name, ()) if each not in value]
        elif value is None:
            made.pop(name, None)
        elif isinstance(value, dict):
            made[name] = merged(made.get(name) or {}, value, is_strategic=is_strategic)
        elif is_strategic and name in MERGE_KEYS:
            made[name] = _merged_list(made.get(name) or [], value, MERGE_KEYS[name])
        else:
            made[name] = value
    return made


def _merged_list(found: list[Fields], patch: list[Fields], key: str) -> list[Fields]:
    by_key = {each[key]: each for each in found}
    for each in patch:
        if each.get("$patch") == "delete":
            by_key.pop(each[key], None)
        else:
            by_key[each[key]] = {**by_key.get(each[key], {}), **each}
    return list(by_key.values())


def _line(type_: str, found: Fields) -> bytes:
    return json.dumps({"type": type_, "object": found}).encode()
