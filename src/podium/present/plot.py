"""A picture of a simulated stretch of time: how deep the queue was, how full the cluster, how much of it there was."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import NamedTuple

from podium.errors import InputError
from podium.timeline.result import Sample, TimelineResult, resources_of

WIDTH, PANEL, LEFT, RIGHT, TOP, GAP = 900, 170, 64, 150, 34, 46
COLOURS = ("#1f6fb4", "#d9782d", "#3a8f4d", "#b03a48", "#7a5fa8", "#8a6d3b")
MOST_RESOURCES = 4
TICKS = 4


class Line(NamedTuple):
    label: str
    value: Callable[[Sample], float]


class Panel(NamedTuple):
    title: str
    lines: Sequence[Line]
    is_share: bool = False
    """Whether the values are shares, shown as percentages with 100 % in sight."""


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
        raise InputError((error.strerror or str(error)).lower(), path) from None


def panels_of(samples: Sequence[Sample]) -> list[Panel]:
    resources = resources_of(samples)[:MOST_RESOURCES]
    return [
        Panel(
            "Pods that wait for a node",
            [
                Line("active", lambda sample: sample.active),
                Line("backing off", lambda sample: sample.backoff),
                Line("unschedulable", lambda sample: sample.unschedulable),
                Line("gated", lambda sample: sample.gated),
            ],
        ),
        Panel("Requested of what nodes offer", [_share(name) for name in resources], is_share=True),
        Panel(
            "Pods that run, and nodes",
            [Line("running pods", lambda sample: sample.running), Line("nodes", lambda sample: sample.nodes)],
        ),
    ]


def _share(resource: str) -> Line:
    return Line(resource, lambda sample: sample.utilisation(resource))


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
    """A round number that everything fits under."""
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
