"""One line for each cause, with a count and a growing pause."""

from __future__ import annotations

import asyncio

import pytest

from live_unit.virtual_time import run
from podium.live.repeated_warnings import RepeatedWarnings


async def warned_for(warnings: RepeatedWarnings, seconds: int) -> None:
    """The same warning ten times a second."""
    for _ in range(seconds * 10):
        warnings.warn("cause", "it is refused")
        await asyncio.sleep(0.1)


def test_a_warning_that_repeats_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    run(warned_for(RepeatedWarnings(), 35))
    first, second, third = caplog.messages
    assert first == "it is refused"
    assert second.startswith("it is refused (10")
    assert third.startswith("it is refused (20")


def test_causes_are_told_apart_and_the_pause_ends_when_all_is_well(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> None:
        warnings = RepeatedWarnings()
        warnings.warn("one", "first")
        warnings.warn("two", "second")
        await warned_for(warnings, 200)
        caplog.clear()
        await asyncio.sleep(3600)
        await warned_for(warnings, 11)

    run(story())
    assert len(caplog.messages) == 2
