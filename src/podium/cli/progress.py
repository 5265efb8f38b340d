"""A progress bar for what may take long: on a terminal only, on stderr, gone when done."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[[], None]]:
    """Show how far along `total` steps we are, or that we are at it; call what it gives after each step."""
    if not sys.stderr.isatty():
        yield lambda: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda: bar.advance(task)
