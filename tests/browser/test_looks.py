"""Every view, light and dark, from 400 pixels to 4k: no text that cannot be read, nothing that sticks out."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from PIL import Image

from browser.serving import script, until
from browser.test_views import POD, ready
from podium.present.html import Heading, section, table
from podium.present.html import page as report

SCREENS = Path(__file__).parents[2] / "docs" / "screens"
STEPS = [{"do": "drain", "nodes": ["spot-c2"]}, {"do": "scale", "workload": "shop/Deployment/web", "replicas": 60}]
EVENTS = [
    {"time": 60, "event": "drain", "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "spot-c2"}}},
    {"time": 120, "event": "fail", "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "general-a1"}}},
]
LINES = "\n".join(json.dumps(event) for event in EVENTS)
WEIGHTS = {"settings": {"weights": {"NodeResourcesBalancedAllocation": 20}}}
WAITING = "ml/train-xl-6np85"
VIEWS = {
    "home": "#/home",
    "pods": "#/pods",
    "decision": f"#/decision?pod={POD}",
    "pending": f"#/decision?pod={WAITING}",
    "weights": f"#/decision?pod={POD}&s={quote(json.dumps(WEIGHTS))}",
    "node": f"#/decision?pod={POD}&open=spot-c2",
    "cluster": f"#/cluster?s={quote(json.dumps({'steps': STEPS}))}",
    "time": f"#/time?events={quote(LINES)}&until=900&t=300",
    "compare": "#/compare?what=releases&a=v1.37&b=v1.14&run=1",
}


def shown(page: Any, name: str) -> Any:
    ready(page, "decision" if name in ("weights", "node", "pending") else name)
    if name == "weights":
        until(page, "/would go elsewhere/.test(document.querySelector('.moved').textContent)")
        page.evaluate("document.querySelector('.weights').scrollIntoView()")
    if name == "pending":
        page.wait_for_selector(".fixes li")
    if name == "node":
        page.wait_for_selector("aside[data-node]")
    if name in ("time", "compare"):
        page.wait_for_selector("[data-ready='1']")
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", VIEWS)
def test_every_text_can_be_read(name: str, scheme: str, fleet_url: str, open_page: Callable[..., Any]) -> None:
    page = shown(open_page(f"{fleet_url}/{VIEWS[name]}", 1100, 720, scheme), name)
    assert page.evaluate(script("contrast")) == []
    SCREENS.mkdir(exist_ok=True)
    screen = Image.open(io.BytesIO(page.screenshot())).quantize(96)
    screen.save(SCREENS / f"{name}-{scheme}.png", optimize=True)


@pytest.mark.parametrize("width", [400, 3840])
@pytest.mark.parametrize("name", VIEWS)
def test_nothing_sticks_out(name: str, width: int, fleet_url: str, open_page: Callable[..., Any]) -> None:
    page = shown(open_page(f"{fleet_url}/{VIEWS[name]}", width, 900), name)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_every_control_has_a_name(fleet_url: str, open_page: Callable[..., Any]) -> None:
    nameless = """() => [...document.querySelectorAll("button, input, select, textarea, a[href]")]
      .filter((node) => node.checkVisibility() && !node.textContent.trim() && !node.getAttribute("aria-label")
        && !node.closest("label") && !node.labels?.length).map((node) => node.outerHTML.slice(0, 80))"""
    for name, address in VIEWS.items():
        assert shown(open_page(f"{fleet_url}/{address}"), name).evaluate(nameless) == []


def test_on_a_phone_numbers_and_names_of_a_report_stay_whole_and_nothing_sticks_out(
    tmp_path: Path, open_page: Callable[..., Any]
) -> None:
    numbers = [Heading(f"Plugin {number}", right=True) for number in range(9)]
    rows = [(f"ip-10-0-0-{row}-general", *(f"{row:,}" for _ in numbers)) for row in (7, 420, 98_765)]
    (tmp_path / "report.html").write_text(
        report("Report", ["Of nodes"], section("Scores", table(["Node", *numbers], rows, class_="heat")))
    )

    page = open_page((tmp_path / "report.html").as_uri(), 400, 800)

    lines = page.evaluate(
        """[...document.querySelectorAll('td')].map(cell => {
            const text = document.createRange();
            text.selectNodeContents(cell);
            return text.getClientRects().length;
        })"""
    )
    assert set(lines) == {1}
    assert page.evaluate("document.documentElement.scrollWidth") <= 400
