"""Serves an application over HTTP: address and certificate, the guard (host, origin, token, size), request metrics."""

from __future__ import annotations

import asyncio
import gc
import hmac
import ipaddress
import secrets
import ssl
from bisect import bisect_left
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, MutableMapping, Sequence
from dataclasses import dataclass
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from podium.errors import InputError
from podium.input_files import read_input

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LOOPBACK = ("localhost", "127.0.0.1", "[::1]")
SESSION = "podium-session"
MOST_SESSIONS = 1000
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
REPORT_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; frame-ancestors 'none'"
"""Reports carry their own style and have no script at all."""

HEADERS = (
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
)


class Guard:
    """Passes on allowed requests, and refuses the others in one sentence.

    `hosts` are the names this server answers to: a page that reaches it under another name (DNS rebinding) gets
    nothing. With a `token` every request needs it, as a bearer token or in the cookie that the login form sets.
    """

    OPEN = frozenset({"/livez", "/readyz", "/login", "/style.css"})
    """Paths that need no token: they reveal nothing about the cluster."""

    def __init__(
        self, app: App, *, hosts: Iterable[str] = LOOPBACK, token: str = "", most_bytes: int, secure: bool = False
    ) -> None:
        self._app, self._hosts = app, frozenset(host.lower() for host in hosts)
        self._token, self._most_bytes, self._secure = token, most_bytes, secure
        self._sessions: dict[str, None] = {}

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self._app(scope, receive, send)
            return
        headers = {key.decode("latin-1"): value.decode("latin-1") for key, value in scope["headers"]}
        send = _with_headers(send)
        problem = self._problem(scope, headers)
        if problem is not None:
            await _refuse(send, *problem)
        elif scope["path"] == "/login" and self._token:
            await self._log_in(scope, receive, send)
        elif not self._is_known(scope, headers):
            await self._ask_who(headers, send)
        else:
            await self._app(scope, _Limited(receive, self._most_bytes), send)

    def _problem(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> tuple[int, str] | None:
        """What is wrong with a request, independent of the sender: a status and a sentence."""
        host = headers.get("host", "").lower()
        if _without_port(host) not in self._hosts and "*" not in self._hosts:
            return 403, f"host {host!r} is not served here: start the server with --allow-host to answer to that name"
        origin = headers.get("origin")
        if origin is not None and urlsplit(origin).netloc.lower() != host:
            return 403, f"a page of {origin!r} may not ask this server"
        if headers.get("sec-fetch-site", "none") in ("cross-site", "same-site") and not _is_navigation(scope, headers):
            return 403, "a page of another site may not ask this server"
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit():
            return 400, f"content-length {length!r} is not a number"
        if int(length) > self._most_bytes:
            return 413, too_large(self._most_bytes)
        return None

    def _is_known(self, scope: MutableMapping[str, Any], headers: dict[str, str]) -> bool:
        if not self._token or scope["path"] in self.OPEN:
            return True
        kind, _, given = headers.get("authorization", "").partition(" ")
        if kind.lower() == "bearer" and self._is_token(given.strip()):
            return True
        return _cookie(headers.get("cookie", "")) in self._sessions

    def _is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self._token.encode())

    async def _ask_who(self, headers: dict[str, str], send: Send) -> None:
        if "text/html" in headers.get("accept", ""):
            await _respond(send, 303, b"", (b"location", b"/login"))
            return
        body = _sentence("this server needs its token: send it as `Authorization: Bearer ...`")
        await _respond(send, 401, body, (b"www-authenticate", b"Bearer"), (b"content-type", b"application/json"))

    async def _log_in(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """The login form and its submission: the right token gets a cookie that no script can read."""
        if scope["method"] != "POST":
            await _respond(send, 200, _LOGIN.replace(b"{problem}", b""), _HTML)
            return
        body = await _Limited(receive, 4096).body()
        given = parse_qs(body.decode("utf-8", "replace")).get("token", [""])[0].strip()
        if not self._is_token(given):
            await _respond(send, 403, _LOGIN.replace(b"{problem}", b"That is not the token of this server."), _HTML)
            return
        session = secrets.token_urlsafe(32)
        if len(self._sessions) >= MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[session] = None
        secure = "; Secure" if self._secure else ""
        cookie = f"{SESSION}={session}; Path=/; HttpOnly; SameSite=Strict{secure}"
        await _respond(send, 303, b"", (b"location", b"/"), (b"set-cookie", cookie.encode()))


class _Limited:
    """Receives a request's body up to a size; a larger body raises TooLargeError."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive, self._left, self._most = receive, most, most

    async def __call__(self) -> Message:
        message = await self._receive()
        self._left -= len(message.get("body", b""))
        if self._left < 0:
            raise TooLargeError(too_large(self._most))
        return message

    async def body(self) -> bytes:
        parts = []
        while True:
            message = await self()
            parts.append(message.get("body", b""))
            if message["type"] != "http.request" or not message.get("more_body"):
                return b"".join(parts)


class TooLargeError(Exception):
    """A body without a declared length exceeds the limit."""


def too_large(most: int) -> str:
    """The message for a body above the limit."""
    return f"the request is larger than {most:,} bytes, the limit of this server (--body-limit)"


def _is_navigation(scope: MutableMapping[str, Any], headers: dict[str, str]) -> bool:
    """Whether the request follows a link; the linking page cannot read the response."""
    return (
        scope["method"] == "GET"
        and headers.get("sec-fetch-mode") == "navigate"
        and headers.get("sec-fetch-dest") == "document"
    )


def _without_port(host: str) -> str:
    name, colon, port = host.rpartition(":")
    return name if colon and port.isdigit() else host


def _cookie(header: str) -> str:
    try:
        found = SimpleCookie(header).get(SESSION)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _with_headers(send: Send) -> Send:
    """Add the headers of every response; a response with its own policy keeps it."""

    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            given = list(message.get("headers", ()))
            names = {name.lower() for name, _ in given}
            if b"content-security-policy" not in names:
                given.append((b"content-security-policy", PAGE_POLICY.encode()))
            if b"cache-control" not in names:
                given.append((b"cache-control", b"no-store"))
            message["headers"] = [*given, *HEADERS]
        await send(message)

    return sending


def _sentence(problem: str) -> bytes:
    return msgspec.json.encode({"error": problem})


async def _refuse(send: Send, status: int, problem: str) -> None:
    await _respond(send, status, _sentence(problem), (b"content-type", b"application/json"))


async def _respond(send: Send, status: int, body: bytes, *headers: tuple[bytes, bytes]) -> None:
    length = (b"content-length", str(len(body)).encode())
    await send({"type": "http.response.start", "status": status, "headers": [*headers, length]})
    await send({"type": "http.response.body", "body": body})


_HTML = (b"content-type", b"text/html; charset=utf-8")
_LOGIN = b"""<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Podium</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<link rel="stylesheet" href="/style.css"></head>
<body><main class="login"><h1>Podium</h1><form method="post" action="/login">
<label for="token">Token of this server</label>
<input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
<button>Log in</button></form><p role="alert">{problem}</p></main></body></html>
"""


BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds in seconds."""


class RequestMetrics:
    """Requests by verb and status, failures of plugins, and a histogram of seconds for each verb."""

    def __init__(self, prefix: str, verbs: Sequence[str]) -> None:
        self._prefix = prefix
        self._requests: Counter[tuple[str, int]] = Counter()
        self._failures: Counter[str] = Counter(dict.fromkeys(verbs, 0))
        self._buckets = {verb: [0] * (len(BUCKETS) + 1) for verb in verbs}
        self._seconds = dict.fromkeys(verbs, 0.0)

    def observed(self, verb: str, seconds: float, status: int) -> None:
        """Count a request."""
        self._requests[verb, status] += 1
        self._buckets[verb][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[verb] += seconds

    def failed(self, verb: str) -> None:
        """Count a plugin that failed."""
        self._failures[verb] += 1

    def text(self) -> str:
        """All metrics, one sample per line."""
        name = self._prefix
        lines = [f"# HELP {name}_requests_total Requests by verb and status.", f"# TYPE {name}_requests_total counter"]
        for (verb, status), count in sorted(self._requests.items()):
            lines.append(f'{name}_requests_total{{verb="{verb}",code="{status}"}} {count}')
        lines += [
            f"# HELP {name}_plugin_failures_total Requests in which a plugin failed.",
            f"# TYPE {name}_plugin_failures_total counter",
            *(f'{name}_plugin_failures_total{{verb="{verb}"}} {count}' for verb, count in self._failures.items()),
            f"# HELP {name}_seconds How long requests took.",
            f"# TYPE {name}_seconds histogram",
        ]
        for verb, counts in self._buckets.items():
            below = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                below += count
                lines.append(f'{name}_seconds_bucket{{verb="{verb}",le="{bound}"}} {below}')
            lines.append(f'{name}_seconds_sum{{verb="{verb}"}} {self._seconds[verb]:.6f}')
            lines.append(f'{name}_seconds_count{{verb="{verb}"}} {below}')
        return "\n".join(lines) + "\n"


SHORTEST_TOKEN = 16
MIB = 1024 * 1024


@dataclass(frozen=True, kw_only=True)
class Listening:
    """The address of a server, and what it requires of clients."""

    address: str = "127.0.0.1"
    port: int = 8080
    token_file: str | None = None
    certificate: str | None = None
    key: str | None = None
    insecure: bool = False
    """Listen to other machines without a token or without TLS."""
    allowed_hosts: tuple[str, ...] = ()
    proof: str = "--token-file"
    """The option by which clients authenticate: --token-file, or --client-ca where no token can be sent."""
    client_ca: str | None = None
    """The CA that must have signed clients' certificates; replaces a token."""

    def check(self) -> None:
        """InputError unless it is safe to listen there, or the user accepts that it is not."""
        if bool(self.certificate) != bool(self.key):
            raise InputError("--tls-cert and --tls-key belong together: give both or none")
        if not self.is_loopback and not self.insecure:
            missing = [
                option
                for option, value in (
                    (self.proof, self.token_file or self.client_ca),
                    ("--tls-cert", self.certificate),
                    ("--tls-key", self.key),
                )
                if not value
            ]
            if missing:
                raise InputError(
                    f"--address {self.address} can be reached from other machines, which needs "
                    f"{' and '.join(missing)}; or say --insecure to let everybody in"
                )
        self.token()
        if self.certificate and self.key:
            try:
                ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(self.certificate, self.key)
            except (OSError, ssl.SSLError) as error:
                raise InputError(f"cannot be used as a certificate and its key: {error}", self.certificate) from None

    @property
    def is_loopback(self) -> bool:
        if self.address == "localhost":
            return True
        try:
            return ipaddress.ip_address(self.address).is_loopback
        except ValueError:
            return False

    def token(self) -> str:
        """The token in the file; empty if there is none."""
        if self.token_file is None:
            return ""
        try:
            token = read_input(self.token_file).decode().strip()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot be read: {error}", self.token_file) from None
        if len(token) < SHORTEST_TOKEN:
            raise InputError(
                f"a token has {SHORTEST_TOKEN} characters at least; make one with `openssl rand -hex 32`",
                self.token_file,
            )
        return token

    def hosts(self) -> tuple[str, ...]:
        """The host names that requests may use."""
        named = f"[{self.address}]" if ":" in self.address else self.address
        everywhere = self.address in ("0.0.0.0", "::") and self.insecure and not self.allowed_hosts
        return (*LOOPBACK, named, *self.allowed_hosts, *(["*"] if everywhere else []))

    def guarding(self, most_bytes: int) -> dict[str, Any]:
        """The settings of the guard."""
        return {
            "hosts": self.hosts(),
            "token": self.token(),
            "most_bytes": most_bytes,
            "secure": self.certificate is not None,
        }

    @property
    def url(self) -> str:
        host = f"[{self.address}]" if ":" in self.address else self.address
        return f"{'https' if self.certificate else 'http'}://{host}:{self.port}/"


Alongside = Callable[[], Coroutine[Any, Any, None]]
"""Work that runs while the server listens."""


def listen(
    app: App,
    listening: Listening,
    *,
    on_started: Callable[[], object] = lambda: None,
    alongside: Alongside | None = None,
) -> None:
    """Serve until interrupted, or until the work `alongside` fails; InputError if the port is taken."""
    # All loaded objects stay: there is no use in scanning them again and again.
    gc.collect()
    gc.freeze()
    config = uvicorn.Config(
        app,
        host=listening.address,
        port=listening.port,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
        ssl_ca_certs=listening.client_ca,
        ssl_cert_reqs=ssl.CERT_REQUIRED if listening.client_ca else ssl.CERT_NONE,
        log_level="warning",
        access_log=False,
        server_header=False,
        date_header=False,
        lifespan="off",
        http=_Protocol,
        timeout_keep_alive=75,
        limit_concurrency=500,
    )
    server = _Announcing(config, on_started, alongside)
    try:
        server.run()
        server.check()
    except SystemExit:
        raise InputError(f"cannot listen on {listening.address} port {listening.port}: is it taken?") from None


class _Protocol(HttpToolsProtocol):
    """Refuses requests that are not HTTP with JSON, like all other refusals."""

    def send_400_response(self, msg: str) -> None:
        problem = "the request cannot be read: it is not HTTP, or its address is longer than 65,535 bytes"
        body = msgspec.json.encode({"error": problem})
        lines = (
            b"HTTP/1.1 400 Bad Request",
            b"content-type: application/json",
            b"content-length: %d" % len(body),
            b"connection: close",
        )
        self.transport.write(b"\r\n".join((*lines, b"", body)))
        self.transport.close()


class _Announcing(uvicorn.Server):
    """Reports when it listens."""

    def __init__(
        self, config: uvicorn.Config, on_started: Callable[[], object], alongside: Alongside | None = None
    ) -> None:
        super().__init__(config)
        self._on_started, self._alongside = on_started, alongside
        self._task: asyncio.Task[None] | None = None

    async def startup(self, sockets: Any = None) -> None:
        await super().startup(sockets)
        if not self.started:
            return
        self._on_started()
        if self._alongside is not None:
            self._task = asyncio.create_task(self._alongside())
            self._task.add_done_callback(self._end)

    def _end(self, task: asyncio.Task[None]) -> None:
        self.should_exit = True

    async def shutdown(self, sockets: Any = None) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
        await super().shutdown(sockets)

    def check(self) -> None:
        """Raise the failure of the work alongside."""
        if self._task is not None and not self._task.cancelled():
            self._task.result()
