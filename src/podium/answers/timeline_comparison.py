"""The same events in two ways: what a timeline comes to with another configuration, release, cluster or node groups."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any

from podium.autoscaling import Autoscaler, NodeGroups
from podium.config import KubeSchedulerConfiguration
from podium.engine.release import CURRENT
from podium.engine.select import TieBreak
from podium.framework import Registry
from podium.manifests import Objects
from podium.plugins import IN_TREE
from podium.timeline import Timeline, TimelineEvents, TimelineResult

ALWAYS = (
    "placed",
    "pending",
    "evictions",
    "mean_wait",
    "longest_wait",
    "p95_wait",
    "end",
    "cpu_utilisation",
    "memory_utilisation",
)
"""The numbers of every timeline. Times are in seconds, utilisation is a share from 0 to 1."""
WITH_GROUPS = ("cost", "node_hours", "nodes_added", "nodes_removed")
"""The numbers that a timeline has besides if it has node groups."""


def timeline_numbers(result: TimelineResult) -> dict[str, float]:
    """What a timeline comes to, by the names of `ALWAYS` and `WITH_GROUPS`."""
    waits = sorted(result.pending_times.values())
    events = Counter(record["event"] for record in result.log)
    spans = [
        (sample, after.time - sample.time) for sample, after in zip(result.samples, result.samples[1:], strict=False)
    ]
    total = sum(span for _, span in spans)
    found = {
        "placed": sum(1 for life in result.lives if life.bound is not None),
        "pending": len(result.unplaced),
        "evictions": events["evict"],
        "mean_wait": sum(waits) / len(waits) if waits else 0.0,
        "longest_wait": waits[-1] if waits else 0.0,
        "p95_wait": waits[int(0.95 * (len(waits) - 1))] if waits else 0.0,
        "end": result.end,
    }
    if result.scaling is not None:
        scaling = result.scaling
        found |= {"cost": scaling["cost"], "node_hours": scaling["nodeHours"]}
        found |= {"nodes_added": scaling["added"], "nodes_removed": scaling["removed"]}
    for resource in ("cpu", "memory"):
        used = sum(sample.utilisation(resource) * span for sample, span in spans)
        found[f"{resource}_utilisation"] = used / total if total else 0.0
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineWay:
    """One of the two ways: what is there at the beginning, and how pods are scheduled and nodes come and go."""

    objects: Objects
    name: str
    config: KubeSchedulerConfiguration | Mapping[str, Any] | None = None
    release: str = CURRENT
    node_groups: NodeGroups | None = None


@dataclass(frozen=True, slots=True)
class TimelineComparison:
    """What the same events come to in two ways."""

    names: tuple[str, str]
    before: dict[str, float]
    after: dict[str, float]

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the numbers that one of the ways has."""
        return tuple(name for name in (*ALWAYS, *WITH_GROUPS) if name in self.before or name in self.after)

    @property
    def values(self) -> dict[str, float]:
        """What conditions may name: see `NAMES`. A way without node groups has cost 0, and no nodes come or go."""
        return {
            f"{prefix}{name}": float(numbers.get(name, 0))
            for prefix, numbers in (("", self.after), ("before.", self.before), ("after.", self.after))
            for name in (*ALWAYS, *WITH_GROUPS)
        }

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        before, after = self.names
        return {"before": {"name": before, "measures": self.before}, "after": {"name": after, "measures": self.after}}


NAMES = tuple(f"{prefix}{name}" for prefix in ("", "before.", "after.") for name in (*ALWAYS, *WITH_GROUPS))
"""What conditions on a comparison of timelines may name."""


def compare_timelines(
    before: TimelineWay,
    after: TimelineWay,
    events: TimelineEvents,
    *,
    until: float | None = None,
    registry: Registry = IN_TREE,
    tie_break: TieBreak | str = "first",
    seed: int = 0,
) -> TimelineComparison:
    """Let the events happen both ways, up to `until` seconds, and say what each comes to."""
    options: dict[str, Any] = {"registry": registry, "tie_break": tie_break, "seed": seed}

    def numbers(way: TimelineWay) -> dict[str, float]:
        timeline = Timeline(way.objects, events, way.config, release=way.release, **options)
        with closing(timeline):
            if way.node_groups is not None:
                Autoscaler(timeline, way.node_groups)
            return timeline_numbers(timeline.run(until))

    return TimelineComparison((before.name, after.name), numbers(before), numbers(after))
