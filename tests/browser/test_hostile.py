"""Names, labels and messages are text, whatever is in them; pages of other origins get nothing."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import quote

import pytest

from browser.serving import CHROMIUM, podium_running, script, until, written
from browser.test_views import ready

PATTERNS = [
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    '"><svg onload=document.title=1>',
    "javascript:document.title='owned'",
    "' OR 1=1; --",
    "\u202egnp.exe\u202c",
    "\u001b[31mred\u001b[0m\u0007",
    "{{constructor.constructor('document.title=1')()}}",
    "</textarea></style></script><b>bold</b>",
    "x" * 10_000,
]
NAMES = [f"{pattern}{number}" for number in range(10) for pattern in PATTERNS]


@pytest.fixture(scope="module")
def hostile_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    items: list[dict[str, Any]] = []
    for place, text in enumerate(NAMES):
        labels = {"kubernetes.io/hostname": f"n{place}", "topology.kubernetes.io/zone": text, "note": text}
        taints = [{"key": "key", "value": text[:63], "effect": "PreferNoSchedule"}]
        allocatable = {"cpu": "4", "memory": "8Gi", "pods": "10"}
        items.append(
            {
                "apiVersion": "v1",
                "kind": "Node",
                "metadata": {"name": f"n{place}", "labels": labels},
                "spec": {"taints": taints},
                "status": {"allocatable": allocatable},
            }
        )
        spec = {"containers": [{"name": "c", "image": text}], "nodeSelector": {"note": text}, "schedulerName": text}
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": text, "uid": f"u{place}", "controller": True}
        metadata = {"name": f"p{place}", "namespace": "hostile", "labels": {"app": text}, "ownerReferences": [owner]}
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
        fine = {**spec, "schedulerName": "default-scheduler"}
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": {**metadata, "name": f"q{place}"}, "spec": fine})
        items.append({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": text, "namespace": text}, "spec": fine})
        items.append({"apiVersion": "v1", "kind": "Node", "metadata": {"name": text, "labels": {"note": text}}})
    file = written(tmp_path_factory.mktemp("hostile") / "hostile.json", items)
    with podium_running("serve", "-f", file) as (url, _):
        yield url


def unharmed(page: Any) -> None:
    assert page.locator("main img, main script, main svg[onload], main b:text('bold')").count() == 0
    assert "owned" not in page.title()


def test_hostile_text_is_shown_as_text_in_every_view(hostile_url: str, open_page: Callable[..., Any]) -> None:
    page = ready(open_page(f"{hostile_url}/#/pods"), "pods")
    until(page, "document.body.textContent.includes('<script>document.title')")
    unharmed(page)
    for place in range(len(PATTERNS)):
        for pod in (f"hostile/p{place}", f"hostile/q{place}"):
            decision = ready(open_page(f"{hostile_url}/#/decision?pod={quote(pod)}"), "decision")
            unharmed(decision)
    for text in PATTERNS[:-1]:
        named = f"{hostile_url}/#/decision?pod={quote(f'{text}0/{text}0', safe='')}"
        unharmed(ready(open_page(named), "decision"))
    tiles = ready(open_page(f"{hostile_url}/#/cluster"), "cluster")
    until(tiles, "document.querySelectorAll('.group').length >= 90")
    tiles.click('.tile[data-node="n1"]')
    tiles.wait_for_selector("aside[data-node]")
    assert "onerror" in tiles.inner_text("aside")
    unharmed(tiles)
    compared = open_page(f"{hostile_url}/#/compare?what=releases&a=v1.37&b=v1.14&run=1")
    compared.wait_for_selector("[data-ready='1']")
    unharmed(compared)
    report = open_page(f"{hostile_url}/api/v1/explain?pod=hostile/q0&output=html")
    assert report.locator("main img, script").count() == 0


def test_a_hostile_address_is_text_too(hostile_url: str, open_page: Callable[..., Any]) -> None:
    for text in PATTERNS:
        said = quote(text)
        scenario = quote(json.dumps({"name": text[:200], "settings": {"weights": {text: 5}}}))
        page = open_page(f"{hostile_url}/#/decision?pod={said}&node={said}&s={scenario}")
        page.wait_for_selector("#problem:not([hidden])")
        unharmed(page)


class _Elsewhere(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("content-type", "text/html")
        self.end_headers()
        self.wfile.write(b"<!doctype html><title>elsewhere</title>")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


def test_a_page_of_another_origin_can_neither_read_nor_ask(fleet_url: str, chromium: Any) -> None:
    other = ThreadingHTTPServer(("127.0.0.1", 0), _Elsewhere)
    threading.Thread(target=other.serve_forever, daemon=True).start()
    try:
        page = chromium.new_page()
        page.goto(f"http://127.0.0.1:{other.server_address[1]}/")
        found = page.evaluate(script("foreign_page"), fleet_url)
        assert {name: text for name, text in found.items() if text} == {}
        page.close()
    finally:
        other.shutdown()
        other.server_close()


def test_another_name_for_this_server_gets_nothing(fleet_url: str, chromium: Any) -> None:
    """DNS rebinding: the browser believes it talks to another host."""
    port = fleet_url.rpartition(":")[2]
    rebound = chromium.browser_type.launch(
        executable_path=CHROMIUM,
        args=["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP evil.example 127.0.0.1"],
    )
    try:
        page = rebound.new_page()
        response = page.goto(f"http://evil.example:{port}/api/v1/overview")
        assert response.status == 403
        assert "is not served here" in response.text()
    finally:
        rebound.close()
