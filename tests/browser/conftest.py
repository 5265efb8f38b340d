"""One browser for all tests; a page that fails on errors of scripts and of the content policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import sync_playwright

from browser.serving import CHROMIUM, FLAGS, podium_running, written
from podium.example import fleet


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield made
        made.close()


@pytest.fixture(scope="session")
def fleet_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    file = written(tmp_path_factory.mktemp("fleet") / "fleet.json", fleet())
    with podium_running("serve", "-f", file) as (url, _):
        yield url


@pytest.fixture
def open_page(chromium: Any) -> Iterator[Callable[..., Any]]:
    """Opens pages, and fails in the end if a script failed or the content policy was broken."""
    contexts: list[Any] = []
    problems: list[str] = []

    def opened(url: str, width: int = 1280, height: int = 860, scheme: str = "light") -> Any:
        context = chromium.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, accept_downloads=True
        )
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(30_000)
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("dialog", lambda dialog: problems.append(dialog.message))
        page.on("console", lambda said: problems.extend([said.text] if "Content Security" in said.text else []))
        page.goto(url)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert problems == []
