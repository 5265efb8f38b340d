"""A simulated stretch of time in a few lines."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from podium.present.plot import time_label
from podium.present.text import Line
from podium.timeline.result import Life, TimelineResult, mean_utilisation, resources_of
from podium.wording import counted

MOST_UNPLACED = 10


def to_lines(result: TimelineResult) -> list[Line]:
    """What came of the pods, how long they waited, and how full the cluster was."""
    bound = [life for life in result.lives if life.bound is not None]
    lines = [
        Line(
            f"{time_label(result.end)} simulated, {counted(len(result.lives), 'pod')} came, {len(bound):,} got a node",
            "bold",
        ),
        Line(f"waited for it: {_quantiles([life.waited or 0.0 for life in bound])}"),
    ]
    lines += _happened(result)
    lines += _scaling(result)
    lines += _fullness(result)
    return lines + _unplaced(result.unplaced)


def _quantiles(waits: Sequence[float]) -> str:
    if not waits:
        return "nobody got one"
    ordered = sorted(waits)
    shares = ((0.5, "half"), (0.9, "90 %"), (0.99, "99 %"), (1.0, "all"))
    return ", ".join(f"{name} at most {_short(_quantile(ordered, share))}" for share, name in shares)


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _short(seconds: float) -> str:
    return f"{seconds:.3g}s" if seconds < 120 else time_label(seconds)


def _happened(result: TimelineResult) -> list[Line]:
    counts = Counter(str(record["event"]) for record in result.log)
    reasons = Counter(str(record["reason"]) for record in result.log if record["event"] == "evict")
    evicted = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))
    parts = [f"finished: {counts['finish']}", f"lost with their node: {counts['lost']}"]
    parts += [f"evicted: {counts['evict']}" + (f" ({evicted})" if evicted else ""), f"made anew: {counts['create']}"]
    return [Line("; ".join(parts))]


def _scaling(result: TimelineResult) -> list[Line]:
    """What an autoscaler came to, if there was one."""
    if result.scaling is None:
        return []
    total = result.scaling
    lines = [
        Line(
            f"node groups: cost {total['cost']:.2f} for {total['nodeHours']:.1f} node hours, "
            f"{total['added']} added, {total['removed']} removed"
        )
    ]
    for name, group in total["groups"].items():
        lines.append(Line(f"  {name}: cost {group['cost']:.2f}, at most {counted(group['most'], 'node')} at a time"))
    return lines


def _fullness(result: TimelineResult) -> list[Line]:
    if not result.samples:
        return []
    deepest = max(result.samples, key=lambda sample: sample.queued)
    lines = [Line(f"queue: at most {counted(deepest.queued, 'pod')}, at {time_label(deepest.time)}")]
    for name in resources_of(result.samples):
        mean, most = mean_utilisation(result.samples, name), max(one.utilisation(name) for one in result.samples)
        lines.append(Line(f"{name} requested: {mean:.1%} on average, at most {most:.1%}"))
    return lines


def _unplaced(lives: Sequence[Life]) -> list[Line]:
    if not lives:
        return []
    names = ", ".join(life.pod for life in lives[:MOST_UNPLACED])
    more = f" and {len(lives) - MOST_UNPLACED} more" if len(lives) > MOST_UNPLACED else ""
    return [Line(f"still waiting: {counted(len(lives), 'pod')}: {names}{more}", "yellow")]
