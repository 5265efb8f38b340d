"""What commands print: results on stdout, remarks on stderr, colour on a terminal only."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TextIO

from podium.cli.commands import one_line

if TYPE_CHECKING:
    from podium.engine.text import Line

NARROWEST = 40


def width() -> int:
    """How wide text may be: as wide as the terminal, and 80 where there is none."""
    return max(shutil.get_terminal_size((80, 24)).columns, NARROWEST) if sys.stdout.isatty() else 80


def print_lines(lines: Iterable[Line]) -> None:
    """Lines on stdout, each in its style."""
    for line in lines:
        _print(line.text, line.style, sys.stdout)


def warn(text: str) -> None:
    """One line on stderr about something the user may not expect, and what is done about it."""
    _print(f"warning: {one_line(text)}", "yellow", sys.stderr)


def remark(text: str) -> None:
    """One line on stderr that was asked for with -v."""
    _print(one_line(text), "dim", sys.stderr)


def _print(text: str, style: str, stream: TextIO) -> None:
    # Names come from the input: none of them may steer the terminal.
    text = "".join(char if char.isprintable() else " " for char in text)
    if not style or not stream.isatty() or os.environ.get("NO_COLOR"):
        print(text, file=stream)
        return
    from rich.console import Console
    from rich.text import Text

    Console(file=stream, soft_wrap=True).print(Text(text, style))
