from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from podium.extenders import Extender

from .loopback import Loopback

MakeExtender = Callable[..., Extender]


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    server = Loopback()
    yield server
    server.close()


@pytest.fixture
def extender(loopback: Loopback) -> Iterator[MakeExtender]:
    """Makes extenders that call the loopback server, and closes them."""
    with ExitStack() as stack:

        def make(**settings: Any) -> Extender:
            return stack.enter_context(Extender(loopback.config(**settings)))

        yield make
