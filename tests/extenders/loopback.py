"""A real extender to call: an HTTP server on the loopback interface that answers what a test tells it to."""

from __future__ import annotations

import json
import ssl
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from podium.config.types import ExtenderConfig


@dataclass(frozen=True)
class Answer:
    """What one verb answers: the pieces of the body are sent `pause` seconds apart."""

    pieces: Sequence[bytes] = (b"",)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    pause: float = 0.0
    hold: bool = False


@dataclass(frozen=True)
class Request:
    path: str
    document: Any
    headers: dict[str, str]
    client_port: int


class Loopback:
    """Serves until closed; closing waits for every thread it started."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.requests: list[Request] = []
        self.answers: dict[str, Answer] = {}
        self.released = threading.Event()
        self._server = _Server(("127.0.0.1", 0), _Handler)
        self._server.loopback = self
        if tls is not None:
            self._server.socket = tls.wrap_socket(self._server.socket, server_side=True)
        self.port: int = self._server.server_address[1]
        self.url = f"{'http' if tls is None else 'https'}://127.0.0.1:{self.port}/scheduler"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.005,))
        self._thread.start()

    def answer(self, verb: str, document: object) -> None:
        self.answers[verb] = Answer((json.dumps(document).encode(),))

    def config(self, **settings: Any) -> ExtenderConfig:
        """A configuration that calls this server with every verb."""
        verbs = {f"{verb}_verb": verb for verb in ("filter", "prioritize", "preempt", "bind")}
        return ExtenderConfig(**{"url_prefix": self.url, "weight": 1, **verbs, **settings})

    def close(self) -> None:
        self.released.set()
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()


class _Server(ThreadingHTTPServer):
    daemon_threads = False
    loopback: Loopback

    def handle_error(self, request: object, client_address: object) -> None:
        """Clients that hang up early are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 5
    disable_nagle_algorithm = True
    server: _Server

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["Content-Length"]))
        request = Request(self.path, json.loads(body), dict(self.headers), self.client_address[1])
        self.server.loopback.requests.append(request)
        missing = Answer((b"no such verb\n",), status=404)
        answer = self.server.loopback.answers.get(self.path.rpartition("/")[2], missing)
        if answer.hold:
            self.server.loopback.released.wait()
        self.send_response(answer.status)
        self.send_header("Content-Length", str(sum(map(len, answer.pieces))))
        for name, value in answer.headers.items():
            self.send_header(name, value)
        self.end_headers()
        for piece in answer.pieces:
            self.wfile.write(piece)
            time.sleep(answer.pause)

    def log_message(self, format: str, *args: object) -> None:
        """Keep the test output clean."""
