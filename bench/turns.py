"""Compare the speed of this version with that of another one, the two in turns.

usage: python -m bench.turns REVISION [--only SHAPE] [--rounds N] [--at-least MULTIPLE] [--json]

REVISION is a git revision or the path of another checkout. Each version schedules the same pods in a process of its
own: a twentieth of them by one, then by the other. The best time of each twentieth over all rounds counts. Each half of
the rounds has processes of its own, so that their multiples show how far two measurements differ.

Exits with 1 when a multiple is below `--at-least`, when this version fails, or when there is nothing to compare; with 2
for wrong arguments.
"""

from __future__ import annotations

import argparse
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from operator import ne
from pathlib import Path
from subprocess import PIPE
from typing import IO, NamedTuple

import msgspec

from bench.figures import SHAPES, Figure
from bench.measure import ROOT, BrokenError
from bench.reference import SLICES
from bench.report import NONE, Table
from bench.results import Machine
from bench.shapes import case

WORKER = Path(__file__).with_name("turn_worker.py")
PACKAGE = Path("src", "podium", "__init__.py")
ROUNDS = 10
FIGURES = {figure.name: figure for figure in SHAPES}
INTERRUPTED = 130


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The speeds of two versions for one shape, in pods a second of processor time."""

    shape: str
    nodes: int
    pods: int
    other: float | None = None
    """None if the other version does not decide the shape, as are `this` and `multiple`."""
    this: float | None = None
    multiple: float | None = None
    """How many times as fast this version is."""
    halves: list[float] = []
    """The multiple in each half of the rounds; only one if there was only one round."""
    pods_on_other_nodes: int = 0
    """How many pods the two versions put on different nodes."""
    not_decided: str | None = None
    """Why the other version does not decide the shape."""

    @classmethod
    def of(cls, figure: Figure, halves: Sequence[Half]) -> Comparison:
        together = Half(
            [done for half in halves for done in half.other], [done for half in halves for done in half.this]
        )
        return cls(
            shape=figure.name,
            nodes=figure.nodes,
            pods=figure.pods,
            other=figure.pods / best(together.other),
            this=figure.pods / best(together.this),
            multiple=together.multiple,
            halves=[half.multiple for half in halves],
            pods_on_other_nodes=sum(map(ne, together.other[-1].nodes, together.this[-1].nodes)),
        )


class Comparisons(msgspec.Struct, frozen=True):
    """All that was compared, as `--json` prints it."""

    other: str
    """The revision or path."""
    rounds: int
    machine: Machine
    shapes: list[Comparison]


class Round(NamedTuple):
    """What one version did in a round."""

    seconds: list[float]
    """Processor time of each turn."""
    nodes: list[str | None]
    """The node of each pod."""


class Half(NamedTuple):
    """The rounds that both versions took in turns, each in one process."""

    other: list[Round]
    this: list[Round]

    @property
    def multiple(self) -> float:
        return best(self.other) / best(self.this)


def best(rounds: Sequence[Round]) -> float:
    """Seconds for all pods, if each turn took as long as in its best round."""
    turns: Iterable[tuple[float, ...]] = zip(*(done.seconds for done in rounds), strict=True)
    return sum(map(min, turns))


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        figures = choose(options.only)
        if options.rounds < 1:
            raise ValueError(f"--rounds is {options.rounds}; there has to be at least 1")
        version = find_version(options.revision, ROOT)
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    try:
        with checked_out(version, ROOT) as other:
            compared = list(compare_all(figures, other, options.rounds))
    except BrokenError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return INTERRUPTED
    return _conclude(options, Comparisons(options.revision, options.rounds, Machine.this(), compared))


def _conclude(options: argparse.Namespace, found: Comparisons) -> int:
    """Print what was found; the exit code."""
    if options.json:
        print(msgspec.json.format(msgspec.json.encode(found), indent=2).decode())
    else:
        print("\n".join([table(found).text(), *notes(found)]))
    multiples = {compared.shape: compared.multiple for compared in found.shapes if compared.multiple is not None}
    if not multiples:
        print(f"error: {found.other} decides none of these shapes", file=sys.stderr)
        return 1
    slow = {shape: multiple for shape, multiple in multiples.items() if multiple < options.at_least}
    for shape, multiple in slow.items():
        print(f"error: {shape} is {multiple:.3f} times as fast, less than {options.at_least:g}", file=sys.stderr)
    return 1 if slow else 0


def choose(only: Sequence[str] = ()) -> list[Figure]:
    """The shapes with these names, in the usual order; all if there are none."""
    for name in only:
        if name not in FIGURES:
            raise ValueError(f"no shape {name!r}; there is {', '.join(FIGURES)}")
    return [figure for name, figure in FIGURES.items() if not only or name in only]


# -- versions ------------------------------------------------------------------------------------------------------


def find_version(text: str, repository: Path) -> Path | str:
    """The folder of another checkout, or the commit of a revision."""
    if (Path(text) / PACKAGE).is_file():
        return Path(text).resolve()
    commit = _git(repository, "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}")
    if commit is None or _git(repository, "cat-file", "-e", f"{commit}:{PACKAGE.as_posix()}") is None:
        raise ValueError(f"{text!r} is neither a git revision with {PACKAGE} nor a checkout of one")
    return commit


@contextmanager
def checked_out(version: Path | str, repository: Path) -> Iterator[Path]:
    """The folder of a version; that of a commit is a temporary work tree."""
    if isinstance(version, Path):
        yield version
        return
    with tempfile.TemporaryDirectory(prefix="podium-turns-") as folder:
        tree = Path(folder, "tree")
        try:
            if _git(repository, "worktree", "add", "--detach", str(tree), version) is None:
                raise BrokenError(f"git made no work tree of {version} in {folder}")
            yield tree
        finally:
            # Forced twice, because an interrupted `add` leaves it locked.
            _git(repository, "worktree", "remove", "--force", "--force", str(tree))


def _git(repository: Path, *arguments: str) -> str | None:
    """What git prints; None if it fails or is not installed."""
    try:
        done = subprocess.run(["git", "-C", str(repository), *arguments], capture_output=True, text=True, check=False)
    except OSError:
        return None
    return None if done.returncode else done.stdout.strip()


# -- measuring -----------------------------------------------------------------------------------------------------


def compare_all(figures: Sequence[Figure], other: Path, rounds: int) -> Iterator[Comparison]:
    """Compare one shape after the other; progress goes to stderr."""
    for number, figure in enumerate(figures, 1):
        print(f"[{number}/{len(figures)}] {figure.name} ", end="", file=sys.stderr, flush=True)
        try:
            compared = compare(figure, other, rounds)
        except BaseException:
            print(file=sys.stderr)
            raise
        told = "not decided" if compared.multiple is None else f"{compared.multiple:.2f} times as fast"
        print(f" {told}", file=sys.stderr)
        yield compared


def compare(figure: Figure, other: Path, rounds: int) -> Comparison:
    """Compare the version in another folder with this one."""
    made = case(figure.shape, figure.nodes, figure.pods, figure.running)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "case.json")
        file.write_bytes(msgspec.json.encode({**made, "preempt": figure.shape == "preemption"}))
        del made
        try:
            halves = [_half(figure, file, other, some) for some in (rounds - rounds // 2, rounds // 2) if some]
        except WorkerError as error:
            if error.version == ROOT:
                raise BrokenError(f"{figure.name}: not decided by this version: {error}") from None
            return Comparison(shape=figure.name, nodes=figure.nodes, pods=figure.pods, not_decided=str(error))
    return Comparison.of(figure, halves)


def _half(figure: Figure, file: Path, other: Path, rounds: int) -> Half:
    size = max(figure.pods // SLICES, 1)
    with working(other, file) as others, working(ROOT, file) as ours:
        workers = (others, ours)
        for number in range(rounds):
            for worker in workers:
                worker.begin_round()
            for turn, start in enumerate(range(0, figure.pods, size)):
                # Who comes first changes from turn to turn, and for each turn from round to round.
                for worker in workers if (number + turn) % 2 else reversed(workers):
                    worker.take_turn(min(size, figure.pods - start))
            for worker in workers:
                worker.check_round(figure)
            print(".", end="", file=sys.stderr, flush=True)
    return Half(others.rounds, ours.rounds)


class WorkerError(Exception):
    """A version did not schedule the pods."""

    def __init__(self, version: Path, reason: str) -> None:
        super().__init__(reason)
        self.version = version


class Worker:
    """A process in which one version schedules the pods of a case, and what it did so far."""

    def __init__(self, version: Path, process: subprocess.Popen[str], errors: IO[str]) -> None:
        self.rounds: list[Round] = []
        self._version, self._process, self._errors = version, process, errors
        # The first answer comes when the case is loaded.
        self._answer()

    def begin_round(self) -> None:
        """Make a new cluster and scheduler."""
        self._ask("round")
        self.rounds.append(Round([], []))

    def take_turn(self, count: int) -> None:
        """Schedule the next `count` pods."""
        answer = self._ask(str(count))
        seconds, nodes = msgspec.json.decode(answer, type=tuple[float, list[str | None]])
        self.rounds[-1].seconds.append(seconds)
        self.rounds[-1].nodes.extend(nodes)

    def check_round(self, figure: Figure) -> None:
        """Refuse a round in which not all pods that fit were placed: how long it took means nothing."""
        placed = figure.pods - self.rounds[-1].nodes.count(None)
        if placed != figure.fitting:
            raise WorkerError(self._version, f"{placed:,} of {figure.pods:,} pods were placed, not {figure.fitting:,}")

    def _ask(self, request: str) -> str:
        print(request, file=self._process.stdin, flush=True)
        return self._answer()

    def _answer(self) -> str:
        answer = self._process.stdout.readline() if self._process.stdout else ""
        if not answer:
            code = self._process.wait()
            self._errors.seek(0)
            *_, reason = [f"the process ended with {code}", *self._errors.read().splitlines()]
            raise WorkerError(self._version, reason)
        return answer


@contextmanager
def working(version: Path, file: Path) -> Iterator[Worker]:
    """Start a process for a version and a case; end it afterwards."""
    command = [sys.executable, "-P", str(WORKER), str(file)]
    environment = {**os.environ, "PYTHONPATH": str(version / "src")}
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(command, stdin=PIPE, stdout=PIPE, stderr=errors, text=True, env=environment) as process,
    ):
        try:
            yield Worker(version, process, errors)
        finally:
            process.kill()


# -- reporting -----------------------------------------------------------------------------------------------------


def table(found: Comparisons) -> Table:
    """A row for each shape."""
    header = ("shape", f"{found.other}, pods/s", "this, pods/s", "multiple", "first half", "second half")
    return Table(header, [_row(compared) for compared in found.shapes])


def _row(compared: Comparison) -> list[str]:
    rates = [NONE if rate is None else f"{rate:,.0f}" for rate in (compared.other, compared.this)]
    first, second, *_ = [*compared.halves, None, None]
    multiples = [NONE if multiple is None else f"{multiple:.2f}" for multiple in (compared.multiple, first, second)]
    return [compared.shape, *rates, *multiples]


def notes(found: Comparisons) -> Iterator[str]:
    """What a reader of the table has to know besides: a line for each shape that is not like the others."""
    for compared in found.shapes:
        if compared.not_decided is not None:
            yield f"{compared.shape}: not decided by {found.other}: {compared.not_decided}"
        if compared.pods_on_other_nodes:
            yield f"{compared.shape}: {compared.pods_on_other_nodes:,} of {compared.pods:,} pods are on other nodes"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench.turns", description=__doc__.partition("\n")[0])
    parser.add_argument("revision", metavar="REVISION", help="a git revision, or the path of another checkout")
    parser.add_argument("--only", action="append", default=[], metavar="SHAPE", help="a shape; repeatable")
    parser.add_argument("--rounds", type=int, default=ROUNDS, metavar="N", help="%(default)s if not given")
    parser.add_argument("--at-least", type=float, default=0.0, metavar="MULTIPLE", help="fail for a shape below it")
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    # A run that is terminated ends like an interrupted one, without leaving its work tree or processes behind.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.exit(main())
