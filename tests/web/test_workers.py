"""Processes that answer one question each: limits, crashes, waiting."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from podium.errors import PodiumError
from podium.web._answering import AnswerWorkers, BusyError, EndedError


def _answer(question: bytes) -> bytes:
    match question.partition(b" "):
        case (b"echo", _, text):
            return text
        case (b"sleep", _, seconds):
            time.sleep(float(seconds))
            return b"slept"
        case (b"die", _, _):
            os._exit(1)
        case (b"grow", _, mebibytes):
            return str(len(bytearray(int(mebibytes) * 1024 * 1024))).encode()
    raise ValueError(question)


@contextmanager
def workers(**limits: Any) -> Iterator[AnswerWorkers]:
    made = AnswerWorkers(_answer, **limits)
    made.start()
    try:
        yield made
    finally:
        made.close()


def test_answers_come_back_whole() -> None:
    large = b"x" * 3_000_000
    with workers() as made:
        assert asyncio.run(made.ask(b"echo " + large)) == large
        assert asyncio.run(made.ask(b"echo ")) == b""


def test_many_at_once() -> None:
    async def ask(made: AnswerWorkers) -> list[bytes]:
        return await asyncio.gather(*(made.ask(b"echo %d" % number) for number in range(12)))

    with workers(at_once=3) as made:
        assert asyncio.run(ask(made)) == [b"%d" % number for number in range(12)]


@pytest.mark.parametrize(
    ("question", "seconds", "said"),
    [
        (b"sleep 60", 0.3, "no answer within 0.3 s"),
        (b"die", 30.0, "not enough memory"),
        (b"other", 30.0, "not enough memory"),
    ],
)
def test_one_that_ends_without_an_answer_says_so(question: bytes, seconds: float, said: str) -> None:
    with workers(seconds=seconds) as made, pytest.raises(EndedError, match=said):
        asyncio.run(made.ask(question))


def test_one_that_ends_does_not_take_the_others_with_it() -> None:
    with workers() as made:
        with pytest.raises(EndedError):
            asyncio.run(made.ask(b"die"))
        assert asyncio.run(made.ask(b"echo still there")) == b"still there"


def test_memory_is_limited() -> None:
    with workers(mebibytes=64) as made:
        assert asyncio.run(made.ask(b"grow 16")) == b"16777216"
        with pytest.raises(EndedError):
            asyncio.run(made.ask(b"grow 512"))


def test_too_many_are_turned_away() -> None:
    async def ask(made: AnswerWorkers) -> list[object]:
        asked = (made.ask(b"sleep 0.3") for _ in range(4))
        return list(await asyncio.gather(*asked, return_exceptions=True))

    with workers(at_once=1, waiting=1) as made:
        found = asyncio.run(ask(made))
    assert [type(each) for each in found] == [bytes, bytes, BusyError, BusyError]


def test_nothing_is_answered_before_the_start() -> None:
    with pytest.raises(PodiumError, match="not started"):
        asyncio.run(AnswerWorkers(_answer).ask(b"echo"))
