"""How commands end: what was decided on purpose is one line and an exit code, never a traceback."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import Any

import typer
from typer.core import TyperGroup

from podium.errors import PodiumError

EXIT_BAD_INPUT = 2
EXIT_INTERRUPTED = 130

# Where typer keeps the root of its usage errors depends on its version; a bad parameter is one in all of them.
UsageError: type[Exception] = typer.BadParameter.__mro__[1]


class Commands(TyperGroup):
    """The commands of Podium: 0 went well, 1 something does not fit or agree, 2 bad input, 130 interrupted."""

    def main(self, args: Sequence[str] | None = None, *, standalone_mode: bool = True, **extra: Any) -> Any:  # type: ignore[override]
        try:
            code = super().main(args, standalone_mode=False, **extra) or 0
            sys.stdout.flush()
        except (PodiumError, UsageError) as error:
            code = fail(error)
        except BrokenPipeError:
            # Whoever read our output has seen enough; what is still buffered has nowhere to go.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            code = 0
        except MemoryError:
            code = fail("not enough memory for this input")
        except (KeyboardInterrupt, typer.Abort):
            code = EXIT_INTERRUPTED
        if standalone_mode:
            sys.exit(code)
        return code


def fail(problem: Exception | str) -> int:
    """Say what is wrong in one line on stderr; the exit code for it."""
    text = problem.format_message() if isinstance(problem, UsageError) else str(problem)  # type: ignore[attr-defined]
    print(f"podium: {one_line(text)}", file=sys.stderr)
    return EXIT_BAD_INPUT


def one_line(text: str) -> str:
    """The text without line breaks and control characters, so that no input can forge a second line."""
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split()))
