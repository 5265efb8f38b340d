"""A picture of a sweep: the goal's measure as bars, with whiskers for the spread over seeds."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

from podium.sweep import Group, Spread, SweepResult

HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 260, 70, 150, 40, 110
BAR, GAP, NARROWEST = 14, 18, 480
TICKS = 5
COLOURS = ("#9aa5b1", "#d9782d", "#3a8f4d", "#7a5fa8", "#1f6fb4", "#b03a48", "#8a6d3b", "#4bacb8")


def sweep_plot(result: SweepResult) -> str:
    """The picture as SVG: a cluster of bars per value of all axes but the last two, a colour per value of one axis.

    The axis that has colours is the one with the fewest values, more than one and no more than there are colours;
    the others share the horizontal axis. Seeds are the whiskers: one standard deviation up and down.
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
    """The axis whose values get a colour each; "" if there is none that suits."""
    numbers = {name: len({group.point[name] for group in groups}) for name in result.searched}
    suiting = [name for name, number in numbers.items() if 1 < number <= len(COLOURS)]
    return min(suiting, key=numbers.__getitem__, default="")


def _drawn(measure: str, places: dict[str, dict[str, Spread]], kinds: Sequence[str]) -> str:
    spreads = [spread for place in places.values() for spread in place.values()]
    low, high = _range(spreads)
    step = len(kinds) * BAR + GAP
    width = LEFT + max(len(places) * step + GAP, NARROWEST) + RIGHT
    right, bottom = width - RIGHT, TOP + HEIGHT

    def y(value: float) -> float:
        return bottom - HEIGHT * (min(max(value, low), high) - low) / (high - low)

    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{bottom + BOTTOM}" '
        f'viewBox="0 0 {width} {bottom + BOTTOM}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{bottom + BOTTOM}" fill="white"/>',
        f'<text x="{LEFT}" y="{TOP - 16}" font-size="14">{escape(measure)}</text>',
    ]
    for tick in range(TICKS + 1):
        value = low + (high - low) * tick / TICKS
        parts.append(f'<line x1="{LEFT}" y1="{y(value):.1f}" x2="{right}" y2="{y(value):.1f}" stroke="#ddd"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y(value) + 4:.1f}" text-anchor="end" fill="#444">{value:.6g}</text>')
    for number, (label, place) in enumerate(places.items()):
        begin = LEFT + GAP + number * step
        parts += [part for kind, spread in place.items() for part in _bar(begin, kinds.index(kind), spread, y, low)]
        at = begin + len(kinds) * BAR / 2
        parts.append(
            f'<text x="{at:.1f}" y="{bottom + 16}" text-anchor="end" fill="#222" '
            f'transform="rotate(-35 {at:.1f} {bottom + 16})">{escape(label)}</text>'
        )
    for number, kind in enumerate(kinds if kinds != [""] else ()):
        at = TOP + 12 + 18 * number
        parts.append(f'<rect x="{right + 14}" y="{at - 9}" width="10" height="10" fill="{COLOURS[number]}"/>')
        parts.append(f'<text x="{right + 30}" y="{at}" fill="#222">{escape(kind)}</text>')
    return "\n".join([*parts, "</svg>", ""])


def _bar(begin: float, number: int, spread: Spread, y: Callable[[float], float], low: float) -> list[str]:
    x, top = begin + number * BAR, y(spread.mean)
    middle = x + BAR / 2 - 1
    ends = f'y1="{y(spread.mean - spread.deviation):.1f}" y2="{y(spread.mean + spread.deviation):.1f}"'
    return [
        f'<rect x="{x:.1f}" y="{top:.1f}" width="{BAR - 2}" height="{y(low) - top:.1f}" fill="{COLOURS[number]}"/>',
        f'<line x1="{middle:.1f}" x2="{middle:.1f}" {ends} stroke="#222"/>',
    ]


def _range(spreads: Sequence[Spread]) -> tuple[float, float]:
    """Round numbers that all bars fit between; from 0 unless all values are close together."""
    lowest = min(spread.mean - spread.deviation for spread in spreads)
    highest = max(spread.mean + spread.deviation for spread in spreads)
    if lowest > 0 and highest < 2 * lowest:
        room = max(highest - lowest, abs(highest) / 100)
    else:
        lowest, highest = min(lowest, 0.0), max(highest, 0.0)
        room = max(highest - lowest, 1e-9)
    unit = 10 ** math.floor(math.log10(room / TICKS))
    unit *= next(times for times in (1, 2, 5, 10) if times * unit * TICKS >= room)
    low = math.floor(lowest / unit) * unit
    return low, max(math.ceil(highest / unit) * unit, low + unit)
