"""Writes output: results on stdout in one of the formats, remarks on stderr, whole files; and handles `--fail-if`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Protocol, TextIO, TypeVar

import typer

from podium.wording import one_line

if TYPE_CHECKING:
    from collections.abc import Collection

    from podium.answers import Condition
    from podium.engine.release import AnyRelease
    from podium.present.text import Line


def write_text(path: str, text: str) -> None:
    """Write a text file atomically."""
    write_bytes(path, text.encode("utf-8"))


def write_bytes(path: str, data: bytes) -> None:
    """Write a file atomically: a reader finds the old or the new file, never a part, even after an interrupt."""
    import tempfile

    from podium.errors import InputError, os_problem

    target = Path(path)
    temporary = ""
    try:
        # A device or a pipe, for example /dev/stdout, cannot be replaced.
        if target.exists() and not target.is_file():
            target.write_bytes(data)
            return
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
        with os.fdopen(handle, "wb") as file:
            file.write(data)
        os.chmod(temporary, _permissions(target))
        os.replace(temporary, target)
    except OSError as error:
        _remove(temporary)
        raise InputError(os_problem(error), path) from None
    except BaseException:
        _remove(temporary)
        raise


def _remove(temporary: str) -> None:
    with suppress(OSError):
        os.unlink(temporary)


def _permissions(target: Path) -> int:
    """The permissions of the replaced file, or those that a new file gets."""
    if target.exists():
        return target.stat().st_mode & 0o777
    mask = os.umask(0)
    os.umask(mask)
    return 0o666 & ~mask


INPUTS = (
    "files",
    "config",
    "configs",
    "clusters",
    "pods",
    "podspec",
    "nodes",
    "events",
    "resume",
    "node_groups",
    "kubeconfig",
)
OUTPUTS = {
    "html": "--html",
    "out": "--out",
    "log": "--log",
    "samples": "--samples",
    "plot": "--plot",
    "snapshot": "--snapshot",
}


def check_files(arguments: Mapping[str, Any]) -> None:
    """InputError if a command would overwrite a file that it reads, or write two results to one file."""
    from podium.errors import InputError

    if not any(_texts(arguments.get(name)) for name in OUTPUTS):
        return
    given = [value for name in INPUTS for value in _texts(arguments.get(name)) if value != STDOUT]
    taken = {os.path.realpath(path): "which is read" for value in given for path in _read_of(value)}
    for name, option in OUTPUTS.items():
        for path in _texts(arguments.get(name)):
            # A device like /dev/stdout can take several results.
            if os.path.exists(path) and not os.path.isfile(path):
                continue
            where = STDOUT if path == STDOUT else os.path.realpath(path)
            if where in taken:
                raise InputError(f"{option} would write over {path}, {taken[where]}; name another file")
            taken[where] = f"which {option} writes"


def _read_of(path: str) -> list[str]:
    """The files read for a path of the input: the file itself, or those in the directory."""
    if not os.path.isdir(path):
        return [path]
    from podium.errors import InputError
    from podium.manifests.files import files_under

    with suppress(InputError):
        return files_under(path)
    return []


def _texts(value: object) -> list[str]:
    if isinstance(value, str):
        return [value]
    return [text for text in value if isinstance(text, str)] if isinstance(value, list) else []


def write_report(path: str | None, page: Callable[[], str]) -> bool:
    """Write the HTML report for `--html`; True if it goes to stdout (`-`), so that nothing else may be written
    there.
    """
    if path is None:
        return False
    from podium.present.text import leaving_out

    with leaving_out(NODE_DOMAIN.get()):
        text = page()
    if path == STDOUT:
        sys.stdout.write(text)
        return True
    write_text(path, text)
    return False


@contextmanager
def progress(what: str, total: int | None) -> Iterator[Callable[..., None]]:
    """Show progress of `total` steps, or just activity, and the remaining time.

    Yields a function to call after each step, or with a number of steps.
    """
    if not sys.stderr.isatty():
        yield lambda steps=1: None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps=1: bar.advance(task, steps)


def fail_if(example: str, measures: str) -> Any:
    """The option --fail-if of a command, with an example condition and the names that conditions may use."""
    help_text = f"Exit code 1 if this holds, such as '{example}'; may be given several times. It may name {measures}."
    return typer.Option("--fail-if", metavar="CONDITION", help=help_text)


def read_conditions(texts: Sequence[str], names: Collection[str]) -> list[Condition]:
    """Parse the conditions, which may use these names."""
    from podium.answers import Condition

    return [Condition.parse(text, names) for text in texts]


def exit_code(conditions: Sequence[Condition], values: Mapping[str, float], otherwise: bool = False) -> int:
    """1 if a condition holds, with a line on stderr for each; without conditions, 1 if `otherwise` is true."""
    if not conditions:
        return int(otherwise)
    met = [condition for condition in conditions if condition.holds(values)]
    for condition in met:
        warn(f"--fail-if {condition.text!r} holds: {condition.explained(values)}")
    return int(bool(met))


class Measured(Protocol):
    """An answer with measures that conditions may name."""

    @property
    def values(self) -> Mapping[str, float]: ...


A = TypeVar("A", bound=Measured)


def emit_measured(
    found: A,
    conditions: Sequence[Condition],
    output: Format,
    *,
    lines: Callable[..., Iterable[Line]],
    document: Callable[[A], dict[str, Any]],
    rows: Callable[[A], str],
    release: AnyRelease | None = None,
    **shown: bool,
) -> None:
    """`emit` an answer; its document lists the conditions that hold. `shown` is passed on to `lines`."""
    emit(
        output,
        lines=lambda: lines(found, width=text_width(output), **shown),
        document=lambda: with_conditions(document(found), conditions, found.values),
        rows=lambda: rows(found),
        release=release,
    )


def with_conditions(
    document: dict[str, Any], conditions: Sequence[Condition], values: Mapping[str, float]
) -> dict[str, Any]:
    """The document, with the conditions that hold."""
    found = [{"condition": condition.text, "holds": condition.holds(values)} for condition in conditions]
    return {**document, "failIf": found} if found else document


EXIT_BAD_INPUT = 2
STDOUT = "-"


class Format(StrEnum):
    """The output formats of every answer."""

    TABLE = "table"
    WIDE = "wide"
    JSON = "json"
    YAML = "yaml"
    CSV = "csv"


Output = Annotated[
    Format,
    typer.Option(
        "-o", "--output", help="What to write to stdout; `wide` is a table that is as wide as it needs to be."
    ),
]


NODE_DOMAIN: ContextVar[str] = ContextVar("node domain", default="")
"""The suffix that all node names of the input share, which tables leave out; empty if there is none."""


def _emit_text(lines: Callable[[], Iterable[Line]], domain: str) -> None:
    from podium.present.text import Line, about_domain, leaving_out, without_domain

    with leaving_out(domain):
        found = [line._replace(text=without_domain(line.text)) for line in lines()]
        note = about_domain()
    print_lines([*found, *([Line(""), Line(note, "dim")] if note else [])])


def emit(
    output: Format,
    *,
    lines: Callable[[], Iterable[Line]],
    document: Callable[[], Mapping[str, Any]],
    rows: Callable[[], str],
    release: AnyRelease | None = None,
) -> None:
    """Write an answer to stdout: as lines of text, as a document (JSON or YAML), or as rows of CSV.

    A document says which `release` decided, if there was one for all of it.
    """
    from podium.present import to_json, to_yaml

    match output:
        case Format.JSON:
            print(to_json(_with_release(document(), release)))
        case Format.YAML:
            print(to_yaml(_with_release(document(), release)))
        case Format.CSV:
            print(rows())
        case _:
            _emit_text(lines, NODE_DOMAIN.get() if output is Format.TABLE else "")


def _with_release(document: Mapping[str, Any], release: AnyRelease | None) -> Mapping[str, Any]:
    if release is None:
        return document
    from podium.engine.release import release_of
    from podium.present import with_release

    return with_release(document, release_of(release).name)


NARROWEST, DEFAULT_WIDTH, UNLIMITED = 40, 80, 100_000


def text_width(output: Format = Format.TABLE) -> int:
    """The width of text in columns: the terminal's or $COLUMNS, else 80; `wide` has no limit."""
    if output is Format.WIDE:
        return UNLIMITED
    if sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit():
        return max(shutil.get_terminal_size((DEFAULT_WIDTH, 24)).columns, NARROWEST)
    return DEFAULT_WIDTH


def print_lines(lines: Iterable[Line]) -> None:
    """Lines on stdout, each in its style."""
    for line in lines:
        _print(line.text, line.style, sys.stdout)


def warn(text: str) -> None:
    """Print one line on stderr about something unexpected, and what is done about it."""
    _print(f"warning: {one_line(text)}", "yellow", sys.stderr)


def remark(text: str) -> None:
    """Print one line on stderr that -v asked for."""
    _print(one_line(text), "dim", sys.stderr)


def _print(text: str, style: str, stream: TextIO) -> None:
    # Names come from the input: none may contain control sequences for the terminal.
    text = "".join(char if char.isprintable() else " " for char in text)
    if not style or not stream.isatty() or os.environ.get("NO_COLOR"):
        print(text, file=stream)
        return
    from rich.console import Console
    from rich.text import Text

    Console(file=stream, soft_wrap=True).print(Text(text, style))
