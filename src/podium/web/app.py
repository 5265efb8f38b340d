"""The HTTP application: maps addresses to answers.

One thread of this process answers quick questions about the served cluster, and keeps its results; separate processes
answer all others.
"""

from __future__ import annotations

import asyncio
import secrets
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from importlib.resources import files
from time import monotonic
from typing import Any, NamedTuple
from urllib.parse import parse_qsl

import msgspec
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route

from podium.answers.scenario import BASE, Scenario, scenario_document
from podium.errors import InputError, PodiumError
from podium.present import with_release
from podium.web import _questions as questions
from podium.web._answering import Answered, AnswerWorkers, BusyError, EndedError, answer
from podium.web._questions import openapi, scenario_of
from podium.web._views import Placements, Views, placements_of, pods_page
from podium.web.kept import Kept
from podium.web.serving import REPORT_POLICY, App, Guard, TooLargeError
from podium.web.subject import Subject, in_scenario, subject_of

KINDS: dict[str, type[Any]] = {
    "explain": questions.Explain,
    "simulate": questions.Simulate,
    "why-not": questions.WhyNot,
    "capacity": questions.Capacity,
    "drain": questions.Drain,
    "fail": questions.Fail,
    "compare": questions.Compare,
    "audit": questions.Audit,
    "timeline": questions.Timeline,
    "what-if": questions.WhatIf,
    "configuration": questions.Configuration,
    "pods": questions.Pods,
    "decision": questions.Decision,
    "node": questions.NodeDetail,
    "moved": questions.Moved,
    "fixes": questions.Fixes,
    "troubles": questions.Troubles,
    "overview": questions.Overview,
}
"""The questions by their names in the address."""

VIEWS = (questions.Pods, questions.Decision, questions.NodeDetail, questions.Moved, questions.Overview)
"""The questions that are answered in this process."""
DECIDED_BY_ONE = (
    questions.Explain,
    questions.Simulate,
    questions.WhyNot,
    questions.Capacity,
    questions.Drain,
    questions.Fail,
    questions.Audit,
)
"""The questions whose answers name the release that decided, as on the command line."""
AFFORDABLE = 2.0
"""Steps that a process applied within so many seconds are applied in this process, too, and the result is kept."""
PATIENCE = 0.4
"""How many seconds a request for the pods waits for where pending pods go; a page asks again for the rest."""
MOST_SCENARIOS = 3
"""The maximum number of clusters after steps that are kept."""
PAGE = {
    "/": ("index.html", "text/html; charset=utf-8"),
    "/style.css": ("style.css", "text/css; charset=utf-8"),
    "/icon.svg": ("icon.svg", "image/svg+xml"),
    **{
        f"/{name}.js": (f"{name}.js", "text/javascript; charset=utf-8")
        for name in (
            "main",
            "api",
            "dom",
            "address",
            "virtual_table",
            "pods",
            "decision",
            "weights",
            "node_panel",
            "tiles",
            "cluster",
            "time",
            "chart",
            "compare",
            "home",
            "scenario",
        )
    },
}
"""The files of the page by address; no other file is read from the disk."""

JSON, YAML, HTML = "application/json", ("application/yaml", "text/yaml"), "text/html; charset=utf-8"


class Reply(NamedTuple):
    """A response: a status, the content type, and the content."""

    status: int
    media_type: str
    body: bytes


def reply_to(kind: str, question: Any, subject: Callable[[], Subject], views: Views | None = None) -> Reply:
    """Answer a question; a problem is one sentence, the same as on the command line."""
    try:
        answered = _view(question, views) if views is not None else answer(question, subject())
        if question.output == "html":
            if answered.html is None:
                raise InputError(f"{kind} has no HTML report; ask for JSON")
            return Reply(200, HTML, answered.html().encode("utf-8", "replace"))
        document = answered.document
        if isinstance(question, DECIDED_BY_ONE):
            document = with_release(document, subject().release.name)
        return Reply(200, JSON, msgspec.json.encode(document))
    except PodiumError as error:
        return problem(400, str(error))
    except MemoryError:
        return problem(503, "not enough memory for this input")
    except RecursionError:
        return problem(400, "the input is nested too deeply")


def _view(question: Any, views: Views) -> Answered:
    match question:
        case questions.Pods():
            found = views.pods(question)
            return Answered(found, lambda: pods_page(found))
        case questions.Decision():
            return Answered(views.decision(question))
        case questions.NodeDetail():
            return Answered(views.node(question))
        case questions.Moved():
            return Answered(views.moved(question))
        case questions.Overview():
            return Answered(views.overview(question))
    return answer(question, views.subject)


def answer_in_worker(served: Subject, question: bytes) -> bytes:
    """Runs in a worker: takes a question as bytes, returns its reply as bytes."""
    kind, body = msgspec.msgpack.decode(question, type=tuple[str, bytes])
    asked = msgspec.json.decode(body, type=KINDS[kind])
    try:
        subject = subject_of(asked, served)
        views = None
        if isinstance(asked, VIEWS):
            views = Views(subject, placements_of(subject) if isinstance(asked, questions.Pods) else None)
        reply = reply_to(kind, asked, lambda: subject, views)
    except PodiumError as error:
        reply = problem(400, str(error))
    except (MemoryError, RecursionError):
        reply = problem(503, "not enough memory for this input")
    except Exception as error:  # a fault of ours, or of a user's plugin: the server goes on, and says so
        reply = problem(500, f"unexpected {type(error).__name__}: {error}")
    return msgspec.msgpack.encode(reply)


def problem(status: int, sentence: str) -> Reply:
    """A problem in one printable line."""
    line = "".join(char if char.isprintable() else " " for char in " ".join(sentence.split()))
    return Reply(status, JSON, msgspec.json.encode({"error": line.encode("utf-8", "replace").decode()}))


class Server:
    """Everything that answers: the served cluster in this process, and the workers.

    A scenario is applied by a worker first, within its limits; if that took little time, this process applies it, too,
    and then answers quickly about it.
    """

    def __init__(self, subject: Subject, workers: AnswerWorkers, start: Scenario = BASE) -> None:
        """`start` is the scenario that the page shows first."""
        self.subject, self.workers, self.start = subject, workers, start
        self.kept = Kept()
        self._views: OrderedDict[bytes, Views] = OrderedDict()
        self._affordable: OrderedDict[bytes, None] = OrderedDict()
        self._placements: OrderedDict[bytes, Placements] = OrderedDict()
        self._placing: dict[bytes, asyncio.Task[None]] = {}
        self._overview = b""
        self._thread = ThreadPoolExecutor(1, "engine")
        self._openapi = msgspec.json.encode(openapi(KINDS))
        self.identity = secrets.token_hex(8)
        """Differs after every start, so that a page notices that it shows another server's cluster."""

    async def ask(self, request: Request) -> Response:
        """Answer a question that came by HTTP."""
        kind = request.path_params["kind"]
        try:
            if kind not in KINDS:
                raise InputError(f"there is no question {kind!r}; ask one of {', '.join(KINDS)}")
            question = self._resolved(await _read(request, KINDS[kind]))
            return self._response(await self._reply(kind, question))
        except TooLargeError as error:
            return _response(problem(413, str(error)))
        except _UnreadableError as error:
            return _response(problem(415, str(error)))
        except (BusyError, EndedError) as error:
            return _response(problem(503, str(error)), {"retry-after": "5"})
        except ClientDisconnect:
            return Response(status_code=400)
        except PodiumError as error:
            return _response(problem(404 if kind not in KINDS else 400, str(error)))

    def _response(self, reply: Reply) -> Response:
        return _response(reply, {"podium-server": self.identity})

    def _resolved(self, question: Any) -> Any:
        """The question, with everything that it names by an id in its place."""

        def found(given: Any) -> Any:
            text = self.kept.find(given) if isinstance(given, str) else None
            return given if text is None else text.decode()

        changes: dict[str, Any] = {}
        if isinstance(question.scenario, str):
            changes["scenario"] = scenario_of(found(question.scenario))
        if isinstance(question, questions.Compare):
            changes["scenarios"] = [scenario_of(found(each)) for each in question.scenarios]
        if isinstance(question, questions.Timeline):
            changes["events"] = found(question.events)
        return msgspec.structs.replace(question, **changes)

    async def _reply(self, kind: str, question: Any) -> Reply:
        scenario = question.scenario_value
        is_served = question.cluster is None and question.release is None and scenario.release is None
        if not isinstance(question, VIEWS) or not is_served:
            return await self._by_worker(kind, question)
        key = msgspec.json.encode(scenario) if scenario.steps else b""
        if key and key not in self._affordable:
            start = monotonic()
            reply = await self._by_worker(kind, question)
            if reply.status == 200 and monotonic() - start < AFFORDABLE:
                self._affordable[key] = None
                _forget(self._affordable, 100)
            return reply
        if isinstance(question, questions.Pods):
            await self._find_placements(scenario)
        return await self._quickly(kind, question, scenario, key)

    async def _by_worker(self, kind: str, question: Any) -> Reply:
        packed = msgspec.msgpack.encode((kind, msgspec.json.encode(question)))
        return msgspec.msgpack.decode(await self.workers.ask(packed), type=Reply)

    async def _quickly(self, kind: str, question: Any, scenario: Scenario, key: bytes) -> Reply:
        def run() -> Reply:
            try:
                views = self._shown(scenario, key)
            except PodiumError as error:
                return problem(400, str(error))
            views.placements = self._placements.get(msgspec.json.encode(scenario))
            return reply_to(kind, question, lambda: views.subject, views)

        return await asyncio.get_running_loop().run_in_executor(self._thread, run)

    def _shown(self, scenario: Scenario = BASE, key: bytes = b"") -> Views:
        """The views of the served cluster after the steps of a scenario; the last few are kept, the base always."""
        found = self._views.get(key)
        if found is None:
            found = self._views[key] = Views(in_scenario(self.subject, scenario) if key else self.subject)
            while len(self._views) > MOST_SCENARIOS + 1:
                del self._views[next(each for each in self._views if each)]
        self._views.move_to_end(key)
        return found

    async def _find_placements(self, scenario: Scenario) -> None:
        """Let a worker find out where pending pods go, unless that is known; waits for it, but not for long."""
        key = msgspec.json.encode(scenario)
        if key in self._placements:
            return
        if key not in self._placing:
            self._placing[key] = asyncio.create_task(self._place(key, scenario))
            self._placing[key].add_done_callback(lambda _: self._placing.pop(key, None))
        await asyncio.wait([self._placing[key]], timeout=PATIENCE)

    async def _place(self, key: bytes, scenario: Scenario) -> None:
        with suppress(PodiumError):
            reply = await self._by_worker("simulate", questions.Simulate(scenario=scenario, tie_break="first"))
            if reply.status == 200:
                found = msgspec.json.decode(reply.body)["placements"]
                self._placements[key] = {each["pod"]: (each["node"], each["message"] or "") for each in found}
                _forget(self._placements, 20)

    async def overview(self, request: Request) -> Response:
        """The page's first request; the answer about the base is kept, as the served cluster does not change."""
        if request.url.query or request.method != "GET":
            request.path_params["kind"] = "overview"
            return await self.ask(request)
        if not self._overview:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._look)
        return self._response(Reply(200, JSON, self._overview))

    async def keep(self, request: Request) -> Response:
        """Keep a text, such as a scenario as JSON or the events of a timeline; answers with its id."""
        try:
            body = await request.body()
            return self._response(Reply(200, JSON, msgspec.json.encode({"id": self.kept.keep(body)})))
        except TooLargeError as error:
            return _response(problem(413, str(error)))
        except PodiumError as error:
            return _response(problem(400, str(error)))

    async def find_kept(self, request: Request) -> Response:
        """A text that is kept."""
        text = self.kept.find(request.path_params["name"])
        if text is None:
            return _response(problem(404, "this is not kept here any more"))
        return self._response(Reply(200, "text/plain; charset=utf-8", text))

    async def document(self, request: Request) -> Response:
        """The OpenAPI document."""
        return Response(self._openapi, media_type=JSON)

    def warm_up(self, seconds: float = 3.0) -> None:
        """Work out what the first page needs, and for some time what the first slider does."""

        def run() -> None:
            self._shown().prepare(seconds)
            self._look()

        self._thread.submit(run).result()

    def _look(self) -> None:
        """Work out the overview of the base, which also names the scenario to start with."""
        start = scenario_document(self.start) if self.start else None
        self._overview = msgspec.json.encode({**self._shown().overview(), "start": start})

    def close(self) -> None:
        """End the thread and the workers."""
        self._thread.shutdown()
        self.workers.close()


def _forget(entries: OrderedDict[bytes, Any], most: int) -> None:
    """Keep the newest entries."""
    while len(entries) > most:
        entries.popitem(last=False)


class _UnreadableError(PodiumError):
    """A request in a format that is not read here."""


async def _read(request: Request, kind: type[Any]) -> Any:
    """The question of a request: its query, its JSON, or a query with a cluster as YAML."""
    pairs = parse_qsl(request.url.query, keep_blank_values=True)
    if request.method != "POST":
        return questions.from_query(kind, pairs)
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    body = await request.body()
    if media_type == JSON:
        if pairs:
            raise InputError("the question is in the body; leave out the query")
        return questions.from_json(body, kind)
    if media_type in YAML:
        try:
            return questions.from_query(kind, [*pairs, ("cluster", body.decode("utf-8"))])
        except UnicodeDecodeError as error:
            raise InputError(f"the posted cluster is not UTF-8 text: {error.reason}") from None
    raise _UnreadableError(f"content-type {media_type!r} is not read here: send {JSON}, or a cluster as {YAML[0]}")


def _response(reply: Reply, headers: dict[str, str] | None = None) -> Response:
    more = {"content-security-policy": REPORT_POLICY} if reply.media_type == HTML else {}
    return Response(reply.body, reply.status, {**more, **(headers or {})}, media_type=reply.media_type)


def _file(name: str, media_type: str) -> Callable[[Request], Awaitable[Response]]:
    body = (files("podium.web") / "page" / name).read_bytes()

    async def respond(request: Request) -> Response:
        return Response(body, media_type=media_type, headers={"cache-control": "no-cache"})

    return respond


async def _alive(request: Request) -> Response:
    return Response(b"ok", media_type="text/plain")


async def _nothing(request: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    known = {404: "there is nothing under this address", 405: "this address is not asked in that way"}
    return _response(problem(status, known.get(status, "the request cannot be answered")))


def application(server: Server, **guarding: Any) -> App:
    """The application: the page, the API and the health checks, behind the guard."""
    routes = [
        *(Route(address, _file(*file), methods=["GET"]) for address, file in PAGE.items()),
        Route("/api/v1/openapi.json", server.document, methods=["GET"]),
        Route("/api/v1/overview", server.overview, methods=["GET", "POST"]),
        Route("/api/v1/kept", server.keep, methods=["POST"]),
        Route("/api/v1/kept/{name}", server.find_kept, methods=["GET"]),
        Route("/api/v1/{kind}", server.ask, methods=["GET", "POST"]),
        Route("/livez", _alive, methods=["GET"]),
        Route("/readyz", _alive, methods=["GET"]),
    ]
    app = Starlette(routes=routes, exception_handlers={404: _nothing, 405: _nothing})
    return Guard(app, **guarding)


def workers_for(subject: Subject, **limits: Any) -> AnswerWorkers:
    """The processes that answer questions, with the served cluster in memory."""
    return AnswerWorkers(partial(answer_in_worker, subject), **limits)
