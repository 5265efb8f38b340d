"""The same pods on the same cluster in two ways: which of them move, what makes them, and what it is good for."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from msgspec.structs import replace

from podium.answers.causes import Cause, Standing, cause_of
from podium.answers.measures import (
    ZONE,
    Measures,
    WorkloadKey,
    domains,
    goes_with_node,
    in_domains,
    measure,
    workloads,
)
from podium.answers.placing import Placing
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Scheduler
from podium.engine.select import TieBreak
from podium.engine.simulate import in_queue_order
from podium.framework import Registry
from podium.engine.release import CURRENT, AnyRelease
from podium.load import workload_of
from podium.objects import Pod
from podium.plugins import IN_TREE


@dataclass(frozen=True, kw_only=True)
class Way:
    """A cluster and how its pods are decided: one side of a comparison."""

    cluster: Cluster
    config: KubeSchedulerConfiguration | Mapping[str, Any] | None = None
    release: AnyRelease = CURRENT
    name: str = ""
    """What to call it: a file's name, a release."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """Where the pods went one way."""

    name: str
    nodes: Mapping[str, str | None]
    """Per pod that was decided, the node it got; None for one that stays pending."""
    messages: Mapping[str, str]
    """Per pod that stays pending, why."""
    measures: Measures
    cluster: Cluster
    """The cluster with every pod placed that fits."""

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "measures": self.measures.to_dict(), "pending": dict(self.messages)}


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that goes elsewhere the other way."""

    pod: str
    workload: str
    before: str | None
    after: str | None
    cause: Cause

    def to_dict(self) -> dict[str, Any]:
        place = {"pod": self.pod, "workload": self.workload, "before": self.before, "after": self.after}
        return {**place, **self.cause.to_dict()}


class SpreadChange(NamedTuple):
    """A workload whose pods are in other zones, or on another number of nodes, the other way."""

    workload: WorkloadKey
    before: Mapping[str, int]
    """Pods per zone."""
    after: Mapping[str, int]
    nodes_before: int
    nodes_after: int

    def to_dict(self) -> dict[str, Any]:
        zones = {"zonesBefore": dict(self.before), "zonesAfter": dict(self.after)}
        nodes = {"nodesBefore": self.nodes_before, "nodesAfter": self.nodes_after}
        return {"namespace": self.workload.namespace, "workload": self.workload.name, **zones, **nodes}


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two outcomes and the pods that differ."""

    before: Outcome
    after: Outcome
    moves: tuple[Move, ...]
    spread: tuple[SpreadChange, ...]
    """The workloads whose spread differs."""
    only_before: tuple[str, ...] = field(default=())
    """Pods that only the first input has."""
    only_after: tuple[str, ...] = field(default=())

    @property
    def values(self) -> dict[str, float]:
        """What conditions may name: see `NAMES`; without a prefix, the second way is meant."""
        values = {"moved": float(len(self.moves))}
        for prefix, outcome in (("", self.after), ("before.", self.before), ("after.", self.after)):
            for name in Measures.__slots__:
                values[f"{prefix}{name}"] = float(getattr(outcome.measures, name))
        return values

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        return {
            "pods": len(self.after.nodes),
            "moved": len(self.moves),
            "before": self.before.to_dict(),
            "after": self.after.to_dict(),
            "moves": [move.to_dict() for move in self.moves],
            "spread": [change.to_dict() for change in self.spread],
            "onlyBefore": list(self.only_before),
            "onlyAfter": list(self.only_after),
        }


NAMES = (
    "moved",
    *Measures.__slots__,
    *(f"{way}.{name}" for way in ("before", "after") for name in Measures.__slots__),
)
"""What conditions on a comparison may name."""


def compare(
    before: Way,
    after: Way,
    *,
    replay: bool = False,
    registry: Registry = IN_TREE,
    tie_break: TieBreak | str = "first",
    seed: int = 0,
    on_decided: Callable[[], object] = lambda: None,
) -> Comparison:
    """Place the pending pods both ways and say which of them go elsewhere, and why; the clusters stay as they are.

    With `replay` the running pods are taken off their nodes first and placed again along with them, except for those
    that go with their nodes. Unless asked otherwise the smallest name wins a tie, so that no pod moves by chance.
    `on_decided` is called after every decision: one for each pod each way, and as many again if pods move.
    """
    options = _Options(replay, registry, tie_break, seed, on_decided)
    runs = _Run(before, options), _Run(after, options)
    first, second = (run.place() for run in runs)
    one, other = first.nodes, second.nodes
    shared = [key for key in other if key in one]
    moved = {key: (one[key], other[key]) for key in shared if one[key] != other[key]}
    return Comparison(
        first,
        second,
        moves=tuple(_moves(*runs, moved)) if moved else (),
        spread=tuple(_spread_changes(first.cluster, second.cluster)),
        only_before=tuple(key for key in one if key not in other),
        only_after=tuple(key for key in other if key not in one),
    )


class _Options(NamedTuple):
    replay: bool
    registry: Registry
    tie_break: TieBreak | str
    seed: int
    on_decided: Callable[[], object]


class _Run:
    """One way of placing the pods; the same as often as it is done."""

    def __init__(self, way: Way, options: _Options) -> None:
        self.way, self._options = way, options

    def scheduler(self, cluster: Cluster) -> Scheduler:
        way, options = self.way, self._options
        return Scheduler(
            cluster,
            way.config,
            registry=options.registry,
            release=way.release,
            tie_break=options.tie_break,
            seed=options.seed,
        )

    def place(self) -> Outcome:
        """Place every pod, fast."""
        nodes: dict[str, str | None] = {}
        messages: dict[str, str] = {}
        with closing(self.scheduler(ready(self.way.cluster, self._options.replay))) as scheduler:
            placing = Placing(scheduler)
            for pod in self._pods(scheduler):
                nodes[pod.key] = placing.place(pod)
                if nodes[pod.key] is None:
                    messages[pod.key] = placing.why(pod)
            cluster = scheduler.cluster
        return Outcome(self.way.name, nodes, messages, measure(cluster, len(messages)), cluster)

    def explain(self, pods: Mapping[str, tuple[str | None, str | None]], other: _Run | None) -> Iterator[_Explained]:
        """Place every pod again, and say of some how the two nodes they went to stood.

        `other`, if given, is asked what it would decide in the same situation.
        """
        with closing(self.scheduler(ready(self.way.cluster, self._options.replay))) as scheduler:
            placing, asked = Placing(scheduler), other.scheduler(scheduler.cluster) if other else None
            for pod in self._pods(scheduler):
                if pod.key in pods:
                    chosen = asked.decide(pod).node if asked else None
                    yield _Explained(pod, Standing.of(scheduler.place(pod), pods[pod.key]), chosen)
                else:
                    placing.place(pod)
            if asked:
                asked.close()

    def _pods(self, scheduler: Scheduler) -> Iterator[Pod]:
        for pod in in_queue_order(list(scheduler.cluster.pending.values()), scheduler):
            yield pod
            self._options.on_decided()


class _Explained(NamedTuple):
    pod: Pod
    standing: Standing
    chosen: str | None
    """What the other way would take in the same situation."""


def ready(cluster: Cluster, replay: bool) -> Cluster:
    """A copy to place pods on: with `replay`, the running ones are pending again."""
    cluster = cluster.fork()
    if replay:
        for pod in [pod for pod, _ in cluster.placed() if not goes_with_node(pod)]:
            cluster.remove(pod)
            cluster.add(replace(pod, spec=replace(pod.spec, node_name="")))
    return cluster


def _moves(before: _Run, after: _Run, moved: Mapping[str, tuple[str | None, str | None]]) -> Iterator[Move]:
    same_cluster = before.way.cluster is after.way.cluster
    found = {each.pod.key: each for each in before.explain(moved, after if same_cluster else None)}
    for pod, standing, _ in after.explain(moved, None):
        nodes = moved[pod.key]
        # Where both agree in the same situation, it is the situation that differs: earlier pods went elsewhere.
        knock_on = same_cluster and nodes[0] == found[pod.key].chosen
        cause = cause_of(*nodes, found[pod.key].standing, standing, knock_on=knock_on)
        yield Move(pod.key, workload_of(pod), *nodes, cause)


def _spread_changes(before: Cluster, after: Cluster) -> Iterator[SpreadChange]:
    one, other = workloads(before), workloads(after)
    zones_before, zones_after = domains(before, ZONE), domains(after, ZONE)
    for workload in sorted({*one, *other}):
        nodes_before, nodes_after = one.get(workload, Counter()), other.get(workload, Counter())
        per_zone = in_domains(nodes_before, zones_before), in_domains(nodes_after, zones_after)
        if per_zone[0] != per_zone[1] or len(nodes_before) != len(nodes_after):
            zones = [dict(sorted(counts.items())) for counts in per_zone]
            yield SpreadChange(workload, zones[0], zones[1], len(nodes_before), len(nodes_after))
