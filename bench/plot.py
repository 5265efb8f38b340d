"""What a pod costs against the number of nodes, drawn as SVG with logarithmic axes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.figures import GO, GROWTH, NODES, growth_name
from bench.results import Results

WIDTH, HEIGHT = 760, 460
LEFT, RIGHT, TOP, BOTTOM = 82, 172, 46, 62
FONT = "Helvetica, Arial, sans-serif"
INK, GRID = "#222222", "#d9d9d9"
LINES = {"basic": ("#0b6fb8", "circle"), "mixed": ("#c2410c", "square")}
Point = tuple[float, float]


class Axis(NamedTuple):
    """A logarithmic axis: values from `low` to `high` are drawn from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def at(self, value: float) -> float:
        part = (math.log10(value) - math.log10(self.low)) / (math.log10(self.high) - math.log10(self.low))
        return self.start + part * (self.end - self.start)

    def decades(self) -> list[float]:
        first, last = math.ceil(math.log10(self.low) - 1e-9), math.floor(math.log10(self.high) + 1e-9)
        return [10.0**power for power in range(first, last + 1)]


class Axes(NamedTuple):
    x: Axis
    y: Axis

    def at(self, point: Point) -> Point:
        return self.x.at(point[0]), self.y.at(point[1])


def write_plot(results: Results, path: Path) -> None:
    path.write_text(plot(results), encoding="utf-8")


def plot(results: Results) -> str:
    """The plot of `basic` and `mixed`; ValueError without any of their figures."""
    series = _series(results)
    go: list[Point] = [(NODES, 1e6 / speed) for shape in LINES for speed in GO[shape]]
    costs = [cost for points in [*series.values(), go] for _, cost in points]
    low, high = 10 ** math.floor(math.log10(min(costs))), 2 * max(costs)
    axes = Axes(Axis(GROWTH[0] * 0.8, GROWTH[-1] * 1.25, LEFT, WIDTH - RIGHT), Axis(low, high, HEIGHT - BOTTOM, TOP))
    parts = [*_frame(axes), *_proportional(axes, series), *_go(axes)]
    for shape, points in series.items():
        parts += _line(axes, shape, points)
    title = "Cost of a decision against the number of nodes"
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" '
            f'font-family="{FONT}" font-size="13" fill="{INK}" role="img" aria-label="{title}">',
            f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#ffffff"/>',
            _text((LEFT, 26), title, size=16),
            *parts,
            "</svg>\n",
        ]
    )


def _series(results: Results) -> dict[str, list[Point]]:
    """Per shape, the number of nodes and the microseconds a pod, as far as measured."""
    series: dict[str, list[Point]] = {}
    for shape in LINES:
        found = ((nodes, results.results.get(growth_name(shape, nodes))) for nodes in GROWTH)
        points = [(float(nodes), result.cost * 1e6) for nodes, result in found if result is not None]
        if points:
            series[shape] = points
    if not series:
        raise ValueError(f"nothing to plot: measure {' or '.join(LINES)} first")
    return series


# -- drawing -------------------------------------------------------------------------------------------------------


def _frame(axes: Axes) -> Iterator[str]:
    """Grid, tick labels and the names of the axes."""
    for nodes in GROWTH:
        x = axes.x.at(nodes)
        yield _stroke([(x, axes.y.start), (x, axes.y.end)], GRID)
        yield _text((x, axes.y.start + 20), f"{nodes:,}", anchor="middle")
    for cost in axes.y.decades():
        y = axes.y.at(cost)
        yield _stroke([(axes.x.start, y), (axes.x.end, y)], GRID)
        yield _text((axes.x.start - 9, y + 4.5), _duration(cost), anchor="end")
    corner = (axes.x.start, axes.y.start)
    yield _stroke([(axes.x.start, axes.y.end), corner, (axes.x.end, axes.y.start)], INK)
    yield _text(((axes.x.start + axes.x.end) / 2, HEIGHT - 16), "nodes, all of them evaluated", anchor="middle")
    middle = (axes.y.start + axes.y.end) / 2
    yield _text((20, middle), "time a pod", anchor="middle", more=f'transform="rotate(-90 20 {middle:.1f})"')


def _proportional(axes: Axes, series: dict[str, list[Point]]) -> Iterator[str]:
    """What it would be if the cost grew as the number of nodes does, from the first point of the first line on."""
    nodes, cost = next(iter(series.values()))[0]
    last = min(GROWTH[-1], nodes * axes.y.high / cost)
    end = (last, cost * last / nodes)
    yield _stroke([axes.at((nodes, cost)), axes.at(end)], "#8a8a8a", dashes="5 5")
    x, y = axes.at(end)
    yield _text((x + 10, y + 4.5), "in proportion to nodes", color="#6b6b6b")


def _go(axes: Axes) -> Iterator[str]:
    """kube-scheduler's figures for `basic`, next to ours for the same case."""
    go = GO["basic"]
    for speed, label in ((go.all_nodes, "Go, all nodes (basic)"), (go.sampling, "Go, 1 node in 10 (basic)")):
        x, y = axes.at((NODES, 1e6 / speed))
        yield f'<path d="M{x:.1f} {y - 6:.1f} l6 6 -6 6 -6 -6 z" fill="{INK}"/>'
        yield _text((x + 12, y + 4.5), label)


def _line(axes: Axes, shape: str, points: Sequence[Point]) -> Iterator[str]:
    color, marker = LINES[shape]
    places = [axes.at(point) for point in points]
    yield _stroke(places, color, width=2.5)
    for (x, y), (_, cost) in zip(places, points, strict=True):
        if marker == "circle":
            yield f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4.5" fill="{color}"/>'
        else:
            yield f'<rect x="{x - 4.2:.1f}" y="{y - 4.2:.1f}" width="8.4" height="8.4" fill="{color}"/>'
        below = 20 if marker == "circle" else -11
        # A white edge keeps the number readable where it crosses a line.
        edge = 'stroke="#ffffff" stroke-width="3" paint-order="stroke"'
        yield _text((x, y + below), _duration(cost), anchor="middle", color=color, size=12, more=edge)
    x, y = places[-1]
    yield _text((x + 30, y + 4.5), shape, color=color, size=14)


def _stroke(points: Sequence[Point], color: str, *, width: float = 1, dashes: str = "") -> str:
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    dashed = f' stroke-dasharray="{dashes}"' if dashes else ""
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"{dashed}/>'


def _text(at: Point, text: str, *, anchor: str = "start", color: str = INK, size: int = 13, more: str = "") -> str:
    attributes = f'x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}" fill="{color}" font-size="{size}" {more}'
    return f"<text {attributes.rstrip()}>{text}</text>"


def _duration(microseconds: float) -> str:
    """Two significant digits, in the largest unit that keeps it above 1."""
    for unit, size in (("s", 1e6), ("ms", 1e3)):
        if microseconds >= size:
            return f"{_rounded(microseconds / size)} {unit}"
    return f"{_rounded(microseconds)} µs"


def _rounded(value: float) -> str:
    return f"{value:.0f}" if value >= 10 else f"{value:.2g}"
