"""Measure all figures, print one table, compare with the baseline.

Exits with 1 when a figure dropped by more than 25 % against the baseline, and names it; with 2 for wrong arguments.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from bench.dump import write_dump
from bench.figures import FIGURES, Figure
from bench.measure import BrokenError, measure
from bench.plot import write_plot
from bench.report import PLOT, markdown, promise_lines, summary, write_docs
from bench.results import BASELINE, RESULTS, Baseline, Machine, Result, Results, read_baseline, read_results, write


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    try:
        chosen = choose(options.only, quick=options.quick)
        # A partial run replaces its own figures and leaves the others as they were measured before.
        is_partial = options.only or options.quick or options.reuse
        before = read_results() if is_partial else Results(Machine.this())
        measured = [] if options.reuse else list(measure_all(chosen, read_baseline()))
        results = before.updated(measured)
        if measured:
            write(results, RESULTS)
    except BrokenError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    except ValueError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    names = {figure.name for figure in chosen}
    shown = measured or [result for name, result in results.results.items() if name in names]
    return _conclude(options, results, shown)


def _conclude(options: argparse.Namespace, results: Results, shown: Sequence[Result]) -> int:
    """Print and write what was asked for; the exit code."""
    baseline = read_baseline()
    print(markdown(results) if options.markdown else f"{summary(shown, baseline).text()}\n\n{promise_lines(results)}")
    if options.write_docs:
        write_docs(results)
        write_plot(results, PLOT)
    if options.update_baseline:
        write(baseline.updated(shown), BASELINE)
        return 0
    dropped = [result for result in shown if baseline.has_dropped(result)]
    for result in dropped:
        part = baseline.change(result) or 0.0
        print(f"error: {result.name} dropped to {part:.0%} of the baseline", file=sys.stderr)
    return 1 if dropped else 0


def choose(only: Sequence[str] = (), *, quick: bool = False) -> list[Figure]:
    """The figures to measure; `only` has names of figures or of shapes."""
    known = {name for figure in FIGURES for name in (figure.name, figure.shape)}
    for name in only:
        if name not in known:
            raise ValueError(f"no figure or shape {name!r}; there is {', '.join(figure.name for figure in FIGURES)}")
    # A figure that is asked for by its name is measured even in a quick run.
    usual = [f for f in FIGURES if not f.is_asked_for]
    chosen = [f for f in FIGURES if f.name in only]
    chosen += [f for f in usual if f not in chosen and (not only or (f.shape in only and f.kind == "schedule"))]
    return [figure.quickly() for figure in chosen if figure.is_quick or figure.name in only] if quick else chosen


def measure_all(figures: Sequence[Figure], baseline: Baseline) -> Iterator[Result]:
    """Measure one figure after the other; progress goes to stderr."""
    with tempfile.TemporaryDirectory() as folder:
        dump = Path(folder) / "dump.json"
        for number, figure in enumerate(figures, 1):
            print(f"[{number}/{len(figures)}] {figure.name}", end=" ", file=sys.stderr, flush=True)
            if figure.needs_dump and not dump.exists():
                write_dump(dump)
            result = _result(figure, dump if figure.needs_dump else None, baseline)
            told = f"{result.rate:,.0f} pods/s" if figure.kind == "schedule" else f"{result.seconds:.2f} s"
            print(told, file=sys.stderr)
            yield result


def _result(figure: Figure, dump: Path | None, baseline: Baseline) -> Result:
    """Measure a figure; again if it seems to have dropped, because a real drop stays."""
    samples = measure(figure, dump)
    result = Result.of(figure, samples)
    if baseline.has_dropped(result):
        print("(once more)", end=" ", file=sys.stderr, flush=True)
        result = Result.of(figure, [*samples, *measure(figure, dump)])
    return result


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m bench.run", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer figures, sizes and repetitions")
    parser.add_argument("--only", action="append", default=[], metavar="SHAPE", help="a shape or figure; repeatable")
    parser.add_argument("--reuse", action="store_true", help="take what was measured last instead of measuring")
    parser.add_argument("--markdown", action="store_true", help="print the tables of docs/performance.md")
    parser.add_argument("--write-docs", action="store_true", help="put tables and plot into docs/")
    parser.add_argument("--update-baseline", action="store_true", help="make this the baseline")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
