"""Calling the application in this process: a request in, a response out, no socket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

from podium.web.serving import App

Fields = Mapping[str, Any]


@dataclass
class Answer:
    """A response."""

    status: int = 0
    headers: dict[str, str] = field(default_factory=dict)
    body: bytes = b""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"])


class Caller:
    """A client of an application; every request has a Host header unless told otherwise."""

    def __init__(self, app: App) -> None:
        self.app = app

    def get(self, path: str, query: Fields | None = None, **headers: str) -> Answer:
        return self.call("GET", path, urlencode(query or {}, doseq=True, quote_via=quote), b"", headers)

    def post(self, path: str, document: Any, **headers: str) -> Answer:
        body = document if isinstance(document, bytes) else json.dumps(document).encode()
        path, _, query = path.partition("?")
        return self.call("POST", path, query, body, {"content_type": "application/json", **headers})

    def call(self, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        return asyncio.run(self._call(method, path, query, body, headers))

    async def _call(self, method: str, path: str, query: str, body: bytes, headers: Mapping[str, str]) -> Answer:
        given = {"host": "localhost:8080", "content-length": str(len(body))}
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode("latin-1")) for name, value in given.items() if value != "-"],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 8080),
        }
        answer = Answer()
        parts = [body[start : start + 65536] for start in range(0, len(body), 65536)] or [b""]

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": parts.pop(0) if parts else b"", "more_body": bool(parts)}

        async def send(message: Any) -> None:
            if message["type"] == "http.response.start":
                answer.status = message["status"]
                answer.headers = {name.decode().lower(): value.decode() for name, value in message["headers"]}
            else:
                answer.body += message.get("body", b"")

        await self.app(scope, receive, send)
        return answer
