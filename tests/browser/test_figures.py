"""How quick the page is on 5,000 nodes and 50,000 pods, measured in the browser.

The figures are printed, and written to the file that PODIUM_FIGURES names. The limits asserted are four times those of
docs/performance.md, as the machine may be busy.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from typing import Any

import pytest

from browser.serving import large_cluster, podium_serving, script, written
from browser.test_views import ready

SLACK = 4
FIGURES: dict[str, float] = {}


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, int]]:
    file = written(tmp_path_factory.mktemp("large") / "large.json", large_cluster(5000, 50_000))
    with podium_serving(file) as found:
        yield found
    name = os.environ.get("PODIUM_FIGURES")
    print(json.dumps(FIGURES, indent=1))
    if name:
        Path(name).write_text(json.dumps(FIGURES, indent=1))


def pods_of(page: Any) -> list[str]:
    return [text.split("\n")[1] for text in page.locator(".vt-row").all_inner_texts()]


def test_first_view_within_two_seconds(large: tuple[str, int], open_page: Callable[..., Any]) -> None:
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        page = ready(open_page(large[0]), "pods")
        seconds.append(time.perf_counter() - start)
        assert page.locator(".vt-row").count() < 100
    FIGURES["first view, s"] = round(median(seconds), 2)
    assert median(seconds) < 2 * SLACK


def test_a_decision_within_300_ms(large: tuple[str, int], open_page: Callable[..., Any]) -> None:
    page = ready(open_page(large[0]), "pods")
    times = []
    for number in range(50_000, 50_012):
        pod = f"team-{number % 10}/app{number % 50}-{number}"
        times.append(page.evaluate(script("decision_time"), pod))
    FIGURES["decision, ms"] = round(median(times))
    FIGURES["decision, slowest of 12, ms"] = round(max(times))
    assert median(times) < 300 * SLACK


def test_a_slider_step_within_150_ms(large: tuple[str, int], open_page: Callable[..., Any]) -> None:
    page = ready(open_page(f"{large[0]}/#/decision?pod=team-0/app0-50000"), "decision")
    found = page.evaluate(script("slider_time"))
    FIGURES["slider step, ms"] = round(median(found["steps"]))
    FIGURES["slider step with moved pods, ms"] = round(median(found["moved"]))
    assert median(found["steps"]) < 150 * SLACK
    assert median(found["moved"]) < 150 * SLACK * 2


def test_scrolling_5000_nodes_keeps_few_rows(large: tuple[str, int], open_page: Callable[..., Any]) -> None:
    page = ready(open_page(f"{large[0]}/#/decision?pod=team-0/app0-50000"), "decision")
    slow = page.evaluate(script("scroll_time"))
    FIGURES["scrolling, 95 % of frames within, ms"] = round(slow)
    assert page.locator(".vt-row").count() < 100


def test_ten_browsers_at_once(large: tuple[str, int], chromium: Any) -> None:
    contexts = [chromium.new_context() for _ in range(10)]
    pages = [context.new_page() for context in contexts]
    problems: list[str] = []
    for number, page in enumerate(pages):
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("response", lambda response: problems.extend([response.url] if response.status >= 400 else []))
        pod = f"team-{number}/app{number}-{50_000 + number}"
        page.evaluate("url => { location.href = url; }", f"{large[0]}/#/decision?pod={pod}")
    for page in pages:
        page.wait_for_selector('main[data-ready="decision"]', timeout=60_000)
    for context in contexts:
        context.close()
    assert problems == []


def test_memory_stays_below_a_gigabyte(large: tuple[str, int]) -> None:
    """Of the server and the process that answers questions, with shared pages counted once."""
    listed = subprocess.run(["pgrep", "-P", str(large[1])], capture_output=True, text=True, check=False)
    total = sum(_proportional(int(pid)) for pid in (str(large[1]), *listed.stdout.split()))
    FIGURES["memory, MB"] = round(total / 1000)
    assert total < 1_000_000


def _proportional(pid: int) -> int:
    """A process's share of memory in kB."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))
