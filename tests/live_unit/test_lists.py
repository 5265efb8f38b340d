"""Lists come in pages, and all at once where the server forgot the rest meanwhile."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qs, urlsplit

import pytest

from podium.errors import PodiumError
from podium.live.client import Access, ClusterEntry, UserEntry
from podium.live.reading import RESOURCES, read_cluster
from podium.model import Node, Pod

NODES = [{"metadata": {"name": f"n{number}"}} for number in range(5)]


class Server(BaseHTTPRequestHandler):
    """Lists five nodes, two in a page, and no pods."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[list[str]] = []
    forgets: ClassVar[bool] = False

    def do_GET(self) -> None:
        url = urlsplit(self.path)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        if not url.path.endswith("/nodes"):
            return self._answer(200, {"items": []})
        Server.asked.append(url.query)
        begin = int(asked.get("continue", 0))
        if begin and Server.forgets:
            return self._answer(410, {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old"})
        end = begin + 2 if asked["limit"] != "0" else len(NODES)
        rest = {"continue": str(end)} if end < len(NODES) else {}
        return self._answer(200, {"metadata": rest, "items": NODES[begin:end]})

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        text = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@pytest.fixture
def access(monkeypatch: pytest.MonkeyPatch) -> Iterator[Access]:
    monkeypatch.setattr(Server, "asked", [])
    monkeypatch.setattr(Server, "forgets", False)
    with ThreadingHTTPServer(("127.0.0.1", 0), Server) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield Access(
            "test", ClusterEntry(server=f"http://127.0.0.1:{server.server_address[1]}"), UserEntry(), "default"
        )
        server.shutdown()
        thread.join()


KINDS = [RESOURCES["Node"], RESOURCES["Pod"]]


def test_all_pages_are_read(access: Access) -> None:
    pages: list[int] = []

    objects, counts = read_cluster(access, KINDS, on_page=pages.append)

    assert [node.name for node in objects.of(Node)] == ["n0", "n1", "n2", "n3", "n4"]
    assert (counts["Node"], list(objects.of(Pod))) == (5, [])
    assert Server.asked == ["limit=500", "limit=500&continue=2", "limit=500&continue=4"]
    assert sorted(pages) == [0, 1, 2, 2]


def test_what_the_server_forgot_is_asked_for_at_once(access: Access) -> None:
    Server.forgets = True

    objects, counts = read_cluster(access, KINDS)

    assert [node.name for node in objects.of(Node)] == ["n0", "n1", "n2", "n3", "n4"]
    assert counts["Node"] == 5
    assert Server.asked == ["limit=500", "limit=500&continue=2", "limit=0"]


def test_a_pod_without_its_token_says_so(tmp_path: Path) -> None:
    gone = UserEntry(token_file=str(tmp_path / "token"))
    access = Access("in-cluster", ClusterEntry(server="http://127.0.0.1:1"), gone, "default")

    with pytest.raises(PodiumError, match=r"context in-cluster: tokenFile .*: no such file or directory"):
        read_cluster(access, KINDS)
