"""Results as tables: one of everything for the terminal, and those of the documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.figures import CAPACITY, FULL, FULL_KINDS, GO, GROWTH, HOUR, LARGE, LOADING, NODES, SHAPES, growth_name
from bench.results import Baseline, Result, Results

DOCS = Path(__file__).parent.parent / "docs" / "performance.md"
PLOT = DOCS.with_name("performance-growth.svg")
BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"
NONE = "-"

RUNNING_AT_MOST = 1.5
"""Times the cost on an empty cluster."""

WHAT = {
    "load": "`load()` of the dump",
    "hour": "an hour of cluster life: 1,000 nodes, 20,000 pods that come and go, 1 % of nodes failing",
    "full": "a full cluster: 50 nodes of 8 cpu, 1,000 pods within ten minutes that run for 30",
    "full-3000": "the same with 3,000 pods",
    "full-10000": "10,000 such pods on 200 nodes",
    "full-kinds": "the full cluster with 1,000 pods of 180 kinds: 20 apps of 9 sizes",
    "full-kinds-3000": "the same with 3,000 pods",
    "full-kinds-10000": "10,000 such pods of 1,000 kinds on 200 nodes",
    "build": "`Cluster.from_objects()` of its objects",
    "explain": "`podium explain` on the dump, from a cold start",
    "help": "`podium --help`",
    "capacity": "`capacity()` of 1,000 nodes: 40,000 pods, placed one by one",
}


class Table(NamedTuple):
    """A header and rows of text; the first column is flush left, the others flush right."""

    header: Sequence[str]
    rows: Sequence[Sequence[str]]

    def text(self) -> str:
        lines = [self.header, *self.rows]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        return "\n".join(
            "  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]).rstrip() for line in lines
        )

    def markdown(self) -> str:
        rule = ["---", *("---:" for _ in self.header[1:])]
        return "\n".join(f"| {' | '.join(line)} |" for line in (self.header, rule, *self.rows))


class Promise(NamedTuple):
    """A limit, and what was measured."""

    text: str
    measured: str
    is_kept: bool


# -- promises ------------------------------------------------------------------------------------------------------


def promises(results: Results) -> Iterator[Promise]:
    """Every promise about what was measured."""
    for result in results.results.values():
        figure, name = result.figure, result.name
        if figure.pods_per_second is not None:
            text = f"{name}: at least {figure.pods_per_second:,} pods/s"
            yield Promise(text, f"{result.rate:,.0f}", result.rate >= figure.pods_per_second)
        if figure.seconds is not None:
            text = f"{name}: at most {figure.seconds:g} s"
            yield Promise(text, _seconds(result.seconds), result.seconds <= figure.seconds)
        if figure.peak is not None:
            text = f"{name}: at most {_size(figure.peak)} of memory"
            yield Promise(text, _size(result.peak), result.peak <= figure.peak)
    yield from _relative_promises(results.results)


def _relative_promises(results: dict[str, Result]) -> Iterator[Promise]:
    """Promises of one figure against another, by their ratios: the two were not measured at the same moment."""
    fewest, most = GROWTH[0], GROWTH[-1]
    for shape in ("basic", "mixed"):
        small, large = results.get(growth_name(shape, fewest)), results.get(growth_name(shape, most))
        if small and large:
            times, limit = small.ratio / large.ratio, most // fewest
            text = f"{shape}: {limit} times the nodes cost at most {limit} times as much a pod"
            yield Promise(text, f"{times:.1f} times", times <= limit)
    if "running" in results and "basic" in results:
        times = results["basic"].ratio / results["running"].ratio
        text = f"running: at most {RUNNING_AT_MOST} times the cost on an empty cluster"
        yield Promise(text, f"{times:.2f} times", times <= RUNNING_AT_MOST)


# -- for the terminal ----------------------------------------------------------------------------------------------


def summary(results: Sequence[Result], baseline: Baseline) -> Table:
    """All figures in one table, with how they compare to the baseline."""
    header = ("figure", "nodes", "pods", "pods/s", "µs/pod", "wall s", "peak", "ratio", "baseline", "change")
    return Table(header, [_summary_row(result, baseline) for result in results])


def _summary_row(result: Result, baseline: Baseline) -> list[str]:
    figure, change = result.figure, baseline.change(result)
    is_scheduling = figure.kind == "schedule"
    known = baseline.ratios.get(result.name)
    return [
        result.name,
        f"{figure.nodes:,}" if is_scheduling else NONE,
        f"{figure.pods:,}" if is_scheduling else NONE,
        f"{result.rate:,.0f}" if is_scheduling else NONE,
        f"{result.cost * 1e6:,.0f}" if is_scheduling else NONE,
        _seconds(result.seconds),
        _size(result.peak),
        f"{result.ratio:.4g}",
        NONE if known is None else f"{known:.4g}",
        NONE if change is None else f"{change - 1:+.0%}",
    ]


def promise_lines(results: Results) -> str:
    return "\n".join(
        f"{'kept  ' if promise.is_kept else 'BROKEN'}  {promise.text}: {promise.measured}"
        for promise in promises(results)
    )


# -- for the documentation -----------------------------------------------------------------------------------------


def markdown(results: Results) -> str:
    """The tables of docs/performance.md."""
    parts = [f"Measured on {results.machine}."]
    for title, table in (
        (f"One pod after the other on {NODES:,} nodes, unless the shape says otherwise:", _shapes(results.results)),
        ("Growth with the number of nodes:", _growth(results.results)),
        ("Loading 5,000 nodes and 100,000 pods, and starting:", _loading(results.results)),
        ("Promises that compare figures:", _promised(results.results)),
    ):
        if table.rows:
            parts += [title, table.markdown()]
    return "\n\n".join(parts)


def _shapes(results: dict[str, Result]) -> Table:
    header = (
        "shape",
        "pods/s",
        "promised",
        "Go, sampling",
        "Go, all nodes",
        "times Go, sampling",
        "times Go, all nodes",
    )
    rows = []
    for figure in SHAPES:
        result, go = results.get(figure.name), GO.get(figure.name)
        if result is not None:
            promised = NONE if figure.pods_per_second is None else f"{figure.pods_per_second:,}"
            compared = [NONE] * 4
            if go is not None:
                times = (result.rate / go.sampling, result.rate / go.all_nodes)
                compared = [f"{go.sampling:,}", f"{go.all_nodes:,}", *(f"{factor:,.0f}" for factor in times)]
            rows.append([f"`{figure.name}`", f"{result.rate:,.0f}", promised, *compared])
    return Table(header, rows)


def _growth(results: dict[str, Result]) -> Table:
    names = [growth_name(shape, nodes) for shape in ("basic", "mixed") for nodes in GROWTH]
    found = [results[name] for name in (*names, LARGE.name) if name in results]
    rows = [
        [
            f"`{result.figure.shape}`",
            f"{result.figure.nodes:,}",
            f"{result.figure.pods:,}",
            f"{result.cost * 1e6:,.0f}",
            _seconds(result.seconds),
            _size(result.peak),
        ]
        for result in found
    ]
    return Table(("shape", "nodes", "pods", "µs a pod", "seconds", "peak memory"), rows)


def _loading(results: dict[str, Result]) -> Table:
    rows = []
    for figure in (*LOADING, HOUR, *FULL, *FULL_KINDS, CAPACITY):
        result = results.get(figure.name)
        if result is not None:
            limits = (_seconds(figure.seconds), NONE if figure.peak is None else _size(figure.peak))
            rows.append([WHAT[figure.name], _seconds(result.seconds), limits[0], _size(result.peak), limits[1]])
    return Table(("what", "seconds", "promised", "peak memory", "promised"), rows)


def _promised(results: dict[str, Result]) -> Table:
    found = list(_relative_promises(results))
    return Table(("promise", "measured"), [[promise.text, promise.measured] for promise in found])


def write_docs(results: Results, path: Path = DOCS) -> None:
    """Put the tables between the two markers of the page."""
    page = path.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(BEGIN)}.*{re.escape(END)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"{path}: no {BEGIN} before an {END}")
    path.write_text(pattern.sub(lambda _: f"{BEGIN}\n\n{markdown(results)}\n\n{END}", page), encoding="utf-8")


def _seconds(seconds: float | None) -> str:
    return NONE if seconds is None else f"{seconds:.3g}" if seconds < 10 else f"{seconds:.1f}"


def _size(size: float) -> str:
    return f"{size / 1e9:.2g} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
