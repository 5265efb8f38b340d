"""Plots: the samples of a timeline, and a sweep's bars with whiskers for the spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from podium.errors import InputError, os_problem
from podium.sweep import Group, Spread, SweepResult
from podium.timeline.result import Sample, TimelineResult, resources_of

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 900, 170, 64, 150, 34, 46
COLOURS = ("#1f6fb4", "#d9782d", "#3a8f4d", "#b03a48", "#7a5fa8", "#8a6d3b")
MOST_RESOURCES = 4
TICKS = 4


class Curve(NamedTuple):
    label: str
    value: Callable[[Sample], float]


class Panel(NamedTuple):
    title: str
    lines: Sequence[Curve]
    is_share: bool = False
    """Whether the values are shares, shown as percentages on an axis up to 100 %."""


def write_plot(result: TimelineResult, path: str) -> None:
    """Draw the samples into a file: .svg, or .png if matplotlib is installed."""
    if not result.samples:
        raise InputError("there is nothing to draw: no samples were taken", path)
    suffix = Path(path).suffix.lower()
    try:
        if suffix == ".svg":
            Path(path).write_text(to_svg(result.samples), encoding="utf-8")
        elif suffix == ".png":
            _write_png(result.samples, path)
        else:
            raise InputError(f"a plot is a .svg or a .png, not {suffix or 'a file without a suffix'}", path)
    except OSError as error:
        raise InputError(os_problem(error), path) from None


def panels_of(samples: Sequence[Sample]) -> list[Panel]:
    resources = resources_of(samples)[:MOST_RESOURCES]
    return [
        Panel(
            "Pods that wait for a node",
            [
                Curve("active", lambda sample: sample.active),
                Curve("backing off", lambda sample: sample.backoff),
                Curve("unschedulable", lambda sample: sample.unschedulable),
                Curve("gated", lambda sample: sample.gated),
            ],
        ),
        Panel("Requested of what nodes offer", [_share(name) for name in resources], is_share=True),
        Panel(
            "Pods that run, and nodes",
            [Curve("running pods", lambda sample: sample.running), Curve("nodes", lambda sample: sample.nodes)],
        ),
    ]


def _share(resource: str) -> Curve:
    return Curve(resource, lambda sample: sample.utilisation(resource))


def to_svg(samples: Sequence[Sample]) -> str:
    """The picture as SVG, without any library."""
    panels = panels_of(samples)
    height = TOP + len(panels) * (PANEL + GAP)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
    ]
    for number, panel in enumerate(panels):
        parts += _panel(panel, samples, TOP + number * (PANEL + GAP))
    return "\n".join([*parts, "</svg>", ""])


def _panel(panel: Panel, samples: Sequence[Sample], top: int) -> list[str]:
    width, bottom = WIDTH - LEFT - RIGHT, top + PANEL
    end = max(samples[-1].time, 1)
    values = [[line.value(sample) for sample in samples] for line in panel.lines]
    highest = _ceiling(max((max(one) for one in values), default=0), panel.is_share)
    parts = [f'<text x="{LEFT}" y="{top - 10}" font-size="14">{escape(panel.title)}</text>']
    for tick in range(TICKS + 1):
        y = bottom - PANEL * tick / TICKS
        x = LEFT + width * tick / TICKS
        parts.append(f'<line x1="{LEFT}" y1="{y:.1f}" x2="{LEFT + width}" y2="{y:.1f}" stroke="#ddd"/>')
        amount = highest * tick / TICKS
        label = f"{amount:.0%}" if panel.is_share else f"{amount:g}"
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end" fill="#444">{label}</text>')
        time = escape(time_label(end * tick / TICKS))
        parts.append(f'<text x="{x:.1f}" y="{bottom + 18}" text-anchor="middle" fill="#444">{time}</text>')
    for number, (line, one) in enumerate(zip(panel.lines, values, strict=True)):
        colour = COLOURS[number % len(COLOURS)]
        pairs = zip(samples, one, strict=True)
        points = " ".join(
            f"{LEFT + width * sample.time / end:.1f},{bottom - PANEL * value / highest:.1f}" for sample, value in pairs
        )
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colour}" stroke-width="1.6"/>')
        y = top + 12 + 18 * number
        parts.append(f'<rect x="{LEFT + width + 14}" y="{y - 9}" width="10" height="10" fill="{colour}"/>')
        parts.append(f'<text x="{LEFT + width + 30}" y="{y}" fill="#222">{escape(line.label)}</text>')
    return parts


def _ceiling(highest: float, is_share: bool) -> float:
    """A round number above all values."""
    if is_share:
        return max(1.0, math.ceil(highest * 4) / 4)
    magnitude: int = 10 ** math.floor(math.log10(max(highest, 1)))
    return next(float(step * magnitude) for step in (1, 2, 4, 8, 10) if step * magnitude >= max(highest, TICKS))


def time_label(seconds: float) -> str:
    """Seconds as `1h30m`, `90s` or `2d`."""
    whole = round(seconds)
    if whole < 120:
        return f"{whole}s"
    days, rest = divmod(whole, 86400)
    hours, minutes = divmod(rest // 60, 60)
    parts = ((days, "d"), (hours, "h"), (minutes, "m"))
    return "".join(f"{amount}{unit}" for amount, unit in parts if amount)


def _write_png(samples: Sequence[Sample], path: str) -> None:
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError:
        raise InputError("a .png needs matplotlib: pip install 'podium[plot]', or write a .svg", path) from None
    panels = panels_of(samples)
    figure = Figure(figsize=(9, 7), layout="constrained")
    FigureCanvasAgg(figure)
    times = [sample.time / 60 for sample in samples]
    for axes, panel in zip(figure.subplots(len(panels), 1, sharex=True), panels, strict=True):
        axes.set_title(panel.title, loc="left", fontsize=11)
        for line, colour in zip(panel.lines, COLOURS, strict=False):
            scale = 100 if panel.is_share else 1
            axes.plot(times, [line.value(sample) * scale for sample in samples], label=line.label, color=colour)
        axes.set_ylim(bottom=0, top=100 if panel.is_share else None)
        axes.set_ylabel("%" if panel.is_share else "")
        axes.grid(alpha=0.3)
        axes.legend(loc="upper left", bbox_to_anchor=(1.0, 1.0), frameon=False, fontsize=9)
    axes.set_xlabel("minutes")
    figure.savefig(path)


HEIGHT, BAR_LEFT, BAR_RIGHT, BAR_TOP, BOTTOM = 260, 70, 150, 40, 110
BAR, BAR_GAP, NARROWEST = 14, 18, 480
BAR_TICKS = 5
BAR_COLOURS = (*COLOURS, "#4bacb8", "#9aa5b1")


def sweep_plot(result: SweepResult) -> str:
    """The plot as SVG: a cluster of bars per value of all axes but the last two, a colour per value of one axis.

    The axis with colours is the one with the fewest values, more than one and no more than there are colours; the
    others share the horizontal axis. Seeds are the whiskers: one standard deviation up and down.
    """
    groups = [group for group in result.groups if not math.isnan(group.spread(result.goal.measure).mean)]
    coloured = _coloured(result, groups)
    others = [name for name in result.searched if name != coloured]
    kinds = list(dict.fromkeys(group.point[coloured] for group in groups)) if coloured else [""]
    places: dict[str, dict[str, Spread]] = {}
    for group in groups:
        label = " ".join(group.point[name] for name in others)
        kind = group.point[coloured] if coloured else ""
        places.setdefault(label, {})[kind] = group.spread(result.goal.measure)
    return _drawn(result.goal.measure, places, kinds)


def _coloured(result: SweepResult, groups: Sequence[Group]) -> str:
    """The axis whose values get a colour each; "" if no axis is suitable."""
    numbers = {name: len({group.point[name] for group in groups}) for name in result.searched}
    suiting = [name for name, number in numbers.items() if 1 < number <= len(BAR_COLOURS)]
    return min(suiting, key=numbers.__getitem__, default="")


def _drawn(measure: str, places: dict[str, dict[str, Spread]], kinds: Sequence[str]) -> str:
    spreads = [spread for place in places.values() for spread in place.values()]
    low, high = _range(spreads)
    step = len(kinds) * BAR + BAR_GAP
    width = BAR_LEFT + max(len(places) * step + BAR_GAP, NARROWEST) + BAR_RIGHT
    right, bottom = width - BAR_RIGHT, BAR_TOP + HEIGHT

    def y(value: float) -> float:
        return bottom - HEIGHT * (min(max(value, low), high) - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + BOTTOM}" '
        f'viewBox="0 0 {width} {bottom + BOTTOM}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{bottom + BOTTOM}" fill="white"/>',
        f'<text x="{BAR_LEFT}" y="{BAR_TOP - 16}" font-size="14">{escape(measure)}</text>',
    ]
    for tick in range(BAR_TICKS + 1):
        value = low + (high - low) * tick / BAR_TICKS
        parts.append(f'<line x1="{BAR_LEFT}" y1="{y(value):.1f}" x2="{right}" y2="{y(value):.1f}" stroke="#ddd"/>')
        at = f'x="{BAR_LEFT - 8}" y="{y(value) + 4:.1f}"'
        parts.append(f'<text {at} text-anchor="end" fill="#444">{value:.6g}</text>')
    for number, (label, place) in enumerate(places.items()):
        begin = BAR_LEFT + BAR_GAP + number * step
        parts += [part for kind, spread in place.items() for part in _bar(begin, kinds.index(kind), spread, y, low)]
        middle = begin + len(kinds) * BAR / 2
        parts.append(
            f'<text x="{middle:.1f}" y="{bottom + 16}" text-anchor="end" fill="#222" '
            f'transform="rotate(-35 {middle:.1f} {bottom + 16})">{escape(label)}</text>'
        )
    for number, kind in enumerate(kinds if kinds != [""] else ()):
        height = BAR_TOP + 12 + 18 * number
        parts.append(f'<rect x="{right + 14}" y="{height - 9}" width="10" height="10" fill="{BAR_COLOURS[number]}"/>')
        parts.append(f'<text x="{right + 30}" y="{height}" fill="#222">{escape(kind)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _bar(begin: float, number: int, spread: Spread, y: Callable[[float], float], low: float) -> list[str]:
    x, top = begin + number * BAR, y(spread.mean)
    middle = x + BAR / 2 - 1
    ends = f'y1="{y(spread.mean - spread.deviation):.1f}" y2="{y(spread.mean + spread.deviation):.1f}"'
    return [
        f'<rect x="{x:.1f}" y="{top:.1f}" width="{BAR - 2}" height="{y(low) - top:.1f}" fill="{BAR_COLOURS[number]}"/>',
        f'<line x1="{middle:.1f}" x2="{middle:.1f}" {ends} stroke="#222"/>',
    ]


def _range(spreads: Sequence[Spread]) -> tuple[float, float]:
    """Round numbers that contain all bars; from 0 unless all values are close together."""
    lowest = min(spread.mean - spread.deviation for spread in spreads)
    highest = max(spread.mean + spread.deviation for spread in spreads)
    if lowest > 0 and highest < 2 * lowest:
        room = max(highest - lowest, abs(highest) / 100)
    else:
        lowest, highest = min(lowest, 0.0), max(highest, 0.0)
        room = max(highest - lowest, 1e-9)
    unit = 10 ** math.floor(math.log10(room / BAR_TICKS))
    unit *= next(times for times in (1, 2, 5, 10) if times * unit * BAR_TICKS >= room)
    low = math.floor(lowest / unit) * unit
    return low, max(math.ceil(highest / unit) * unit, low + unit)
