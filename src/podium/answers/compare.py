"""Places the same pods in two ways, at once or over time: which pods move, why, and what it changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, field
from dataclasses import replace as replace_data
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Unpack

from msgspec.structs import replace

from podium.answers._replicas import place
from podium.answers.measures import Measures, WorkloadKey, domains, in_domains, measure, workloads
from podium.answers.simulation import in_queue_order
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Decision, Scheduler
from podium.engine.release import CURRENT, AnyRelease, Release, release_of
from podium.engine.scheduler import SchedulerKeywords, SchedulerOptions
from podium.errors import ExtenderError, InputError, PluginError
from podium.framework import Status
from podium.manifests import Objects
from podium.model import Pod
from podium.model.objects import ZONE
from podium.model.pod import belongs_to_node
from podium.rules import MESSAGES, QUEUE, Difference, differences, with_rule
from podium.workloads import workload_of

if TYPE_CHECKING:
    from podium.autoscaling import NodeGroups
    from podium.timeline import TimelineEvents, TimelineResult


def placement_differences(one: Release, other: Release) -> list[Difference]:
    """The differences that may change where a pod goes, without those about messages or the time of an attempt."""
    return [each for each in differences(one.rules, other.rules) if each.area not in (MESSAGES, QUEUE)]


def with_one_rule(release: Release, of: Release, difference: Difference) -> Release:
    """A release with one rule taken from another release."""
    rules = with_rule(release.rules, difference.name, getattr(of.rules, difference.name))
    return replace_data(release, rules=rules)


class RuleTrials:
    """Determines what a release would decide if one of its rules were that of another release."""

    def __init__(self, scheduler: Scheduler, release: Release, of: Release) -> None:
        """`scheduler` belongs to `release`: its cluster, configuration and tie-break are used."""
        self._scheduler, self._release, self._of = scheduler, release, of
        self._differences = placement_differences(release, of)
        self._made: dict[str, Scheduler] = {}

    def causes(self, pod: Pod, node: str | None) -> Iterator[Difference]:
        """The differences that each alone send the pod to another node than this one, on the current cluster."""
        for difference in self._differences:
            if node_of(self._with(difference), pod) != node:
                yield difference

    def _with(self, difference: Difference) -> Scheduler:
        made = self._made.get(difference.name)
        if made is None:
            options = replace_data(self._scheduler.options, release=with_one_rule(self._release, self._of, difference))
            made = self._made[difference.name] = Scheduler(self._scheduler.cluster, options)
        return made

    def close(self) -> None:
        """Close connections to extenders."""
        for made in self._made.values():
            made.close()


def node_of(scheduler: Scheduler, pod: Pod) -> str | None:
    """Where the pod goes; None if it fits nowhere, or if deciding it fails."""
    try:
        return scheduler.attempt(pod).node
    except (InputError, PluginError, ExtenderError):
        return None


def node_points(decision: Decision, node: str) -> dict[str, int]:
    """The points that each plugin and extender adds to a node's total."""
    points = {one.plugin: one.normalized[node] * one.weight for one in decision.scores}
    return points | {name: scores[node] for name, scores in decision.extender_scores.items()}


@dataclass(frozen=True, slots=True)
class NodeComparison:
    """How two nodes compare in a decision."""

    scores: Mapping[str, Mapping[str, int]]
    """Per scored node, each plugin's weighted score."""
    rejected: Mapping[str, Status]
    """Why nodes were rejected, including those that no filter checked."""
    feasible: frozenset[str]
    message: str = ""
    """Why the pod fits nowhere, if so."""

    @classmethod
    def of(cls, decision: Decision, nodes: Iterable[str | None]) -> NodeComparison:
        """The part of a decision that concerns these nodes."""
        named = [node for node in nodes if node is not None]
        absent = decision.absent or Status.unresolvable("not in the cluster")
        feasible = frozenset(node for node in named if node in decision.feasible)
        return cls(
            {node: node_points(decision, node) for node in named if node in decision.totals},
            {node: decision.rejected.get(node, absent) for node in named if node not in feasible},
            feasible,
            decision.error or decision.message,
        )


@dataclass(frozen=True, slots=True)
class Cause:
    """The cause of a pod's move."""

    plugin: str
    """The filter that rejects one of the nodes, or the plugin whose scores account for most of the change."""
    reason: str
    """The cause in words."""
    points: Mapping[str, int] = field(default_factory=dict)
    """By how many points each plugin's scores shifted from the first node to the second, largest first."""
    knock_on: bool = False
    """Whether the cause is earlier pods that went elsewhere: in the same situation both ways decide alike."""
    differences: tuple[Difference, ...] = ()
    """Between two releases, the differences that each alone move the pod."""

    def to_dict(self) -> dict[str, Any]:
        why = {"plugin": self.plugin or None, "reason": self.reason}
        names = [each.name for each in self.differences]
        return {**why, "points": dict(self.points), "knockOn": self.knock_on, "differences": names}


TIE = "both nodes are as good both ways"


def cause_of(
    one: str | None, other: str | None, before: NodeComparison, after: NodeComparison, *, knock_on: bool = False
) -> Cause:
    """Why a pod goes to `one` when decided `before`, and to `other` when decided `after`; None means nowhere."""
    for node, compared, when in ((one, after, "after"), (other, before, "before")):
        if node is not None and node in compared.rejected:
            status = compared.rejected[node]
            why = ", ".join(status.reasons) or status.code.value
            return Cause(status.plugin, f"{node} is rejected {when}: {why}", knock_on=knock_on)
    if one is None or other is None:
        return Cause("", (before if one is None else after).message, knock_on=knock_on)
    points = _shift(one, other, before, after)
    if not points:
        return Cause("", TIE, knock_on=knock_on)
    plugin = next(iter(points))
    if points[plugin] <= 0:
        return Cause("", TIE, points, knock_on)
    was, now = (_lead(compared, plugin, one, other) for compared in (before, after))
    return Cause(plugin, f"{one} over {other}: {was:+,} before, {now:+,} after", points, knock_on)


def _shift(one: str, other: str, before: NodeComparison, after: NodeComparison) -> dict[str, int]:
    """Each plugin's advantage of `other` over `one` after, minus that before; unchanged plugins are left out."""
    names = dict.fromkeys(
        name for compared in (before, after) for scores in compared.scores.values() for name in scores
    )
    points = {name: _lead(after, name, other, one) - _lead(before, name, other, one) for name in names}
    return {name: points[name] for name in sorted(points, key=lambda name: -points[name]) if points[name]}


def _lead(compared: NodeComparison, plugin: str, node: str, over: str) -> int:
    one, other = (compared.scores.get(name, {}).get(plugin, 0) for name in (node, over))
    return one - other


@dataclass(frozen=True, kw_only=True)
class Way:
    """A cluster and how its pods are decided: one side of a comparison."""

    cluster: Cluster
    config: KubeSchedulerConfiguration | Mapping[str, Any] | None = None
    release: AnyRelease = CURRENT
    name: str = ""
    """The name to show: a file's name or a release."""


def check_ways(before: Way, after: Way) -> None:
    """Refuse two sides with nothing to compare."""
    one, other = [(way.name, way.config, way.cluster, way.release) for way in (before, after)]
    if one == other:
        refuse_same(before.name or "the default configuration")


def refuse_same(name: str) -> NoReturn:
    raise InputError(f"both ways are the same: {name}; name two that differ")


@dataclass(frozen=True, slots=True)
class WayResult:
    """Where the pods went on one side."""

    name: str
    nodes: Mapping[str, str | None]
    """Per decided pod, its node; None if it stays pending."""
    messages: Mapping[str, str]
    """Per pending pod, why."""
    measures: Measures
    cluster: Cluster
    """The cluster with all fitting pods placed."""

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, "measures": self.measures.to_dict(), "pending": dict(self.messages)}


@dataclass(frozen=True, slots=True)
class Move:
    """A pod that gets another node on the other side."""

    pod: str
    workload: str
    before: str | None
    after: str | None
    cause: Cause

    def to_dict(self) -> dict[str, Any]:
        place = {"pod": self.pod, "workload": self.workload, "before": self.before, "after": self.after}
        return {**place, **self.cause.to_dict()}


class SpreadChange(NamedTuple):
    """A workload whose pods are in other zones, or on another number of nodes, on the other side."""

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

    before: WayResult
    after: WayResult
    moves: tuple[Move, ...]
    spread: tuple[SpreadChange, ...]
    """The workloads whose spread differs."""
    only_before: tuple[str, ...] = field(default=())
    """Pods that only the first input has."""
    only_after: tuple[str, ...] = field(default=())

    @property
    def values(self) -> dict[str, float]:
        """The values by the names in `COMPARISON_NAMES`; a name without a prefix means the second side."""
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


COMPARISON_NAMES = (
    "moved",
    *Measures.__slots__,
    *(f"{way}.{name}" for way in ("before", "after") for name in Measures.__slots__),
)
"""The names that conditions on a comparison may use."""


def compare(
    before: Way,
    after: Way,
    given: SchedulerOptions | None = None,
    *,
    replay: bool = False,
    on_decided: Callable[[], object] = lambda: None,
    **keywords: Unpack[SchedulerKeywords],
) -> Comparison:
    """Place the pending pods both ways, and report which of them move, and why; the clusters stay as they are.

    With `replay`, running pods are first removed from their nodes and then placed again as well, except for those that
    belong to their node. By default the smallest name wins a tie, so that no pod moves by chance. `on_decided` is
    called after every decision: one per pod and side, and as many again if pods move. `given` and `keywords` apply to
    both sides; each side has its own configuration and release.
    """
    options = SchedulerOptions.steady(given, **keywords)
    runs = _Run(before, options, replay, on_decided), _Run(after, options, replay, on_decided)
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


class _Run:
    """One side's placement of the pods; every run gives the same result."""

    def __init__(self, way: Way, options: SchedulerOptions, replay: bool, on_decided: Callable[[], object]) -> None:
        self.way, self._replay, self._on_decided = way, replay, on_decided
        self._options = replace_data(options, config=way.config, release=way.release)

    def scheduler(self, cluster: Cluster) -> Scheduler:
        return Scheduler(cluster, self._options)

    def place(self) -> WayResult:
        """Place every pod, fast."""
        nodes: dict[str, str | None] = {}
        messages: dict[str, str] = {}
        with closing(self.scheduler(copy_to_place_on(self.way.cluster, self._replay))) as scheduler:
            for pod in self._pods(scheduler):
                nodes[pod.key] = place(scheduler, pod)
                if nodes[pod.key] is None:
                    messages[pod.key] = scheduler.message(pod)
            cluster = scheduler.cluster
        return WayResult(self.way.name, nodes, messages, measure(cluster, len(messages)), cluster)

    def explain(self, pods: Mapping[str, tuple[str | None, str | None]], other: _Run | None) -> Iterator[_Explained]:
        """Place every pod again, and report for some how the two nodes they went to compare.

        `other`, if given, also decides these pods in the same situation.
        """
        with closing(self.scheduler(copy_to_place_on(self.way.cluster, self._replay))) as scheduler:
            asked = other.scheduler(scheduler.cluster) if other else None
            trials = self._trials(scheduler, other)
            for pod in self._pods(scheduler):
                if pod.key in pods:
                    chosen, mine = _chosen(asked, pod) if asked else None, pods[pod.key][0]
                    # If both sides agree here, the cause is in earlier pods.
                    rules = tuple(trials.causes(pod, mine)) if trials and chosen != mine else ()
                    yield _Explained(pod, _compared(scheduler, pod, pods[pod.key]), chosen, rules)
                place(scheduler, pod)
            for each in (asked, trials):
                if each:
                    each.close()

    def _trials(self, scheduler: Scheduler, other: _Run | None) -> RuleTrials | None:
        """Trials of single differences, if the other side is another current release."""
        mine, theirs = release_of(self.way.release), None if other is None else release_of(other.way.release)
        if theirs is None or mine.is_old or theirs.is_old or mine.rules is theirs.rules:
            return None
        return RuleTrials(scheduler, mine, theirs)

    def _pods(self, scheduler: Scheduler) -> Iterator[Pod]:
        for pod in in_queue_order(list(scheduler.cluster.pending.values()), scheduler):
            yield pod
            self._on_decided()


def _chosen(scheduler: Scheduler, pod: Pod) -> str | None:
    """Where a scheduler would put the pod; it chooses afterwards as if it had not been asked."""
    before = scheduler.save()
    chosen = node_of(scheduler, pod)
    scheduler.restore(before)
    return chosen


def _compared(scheduler: Scheduler, pod: Pod, nodes: tuple[str | None, str | None]) -> NodeComparison:
    """How the nodes compare now. Reasons are collected only if one of them rejects the pod, or for extenders."""
    rows = [scheduler.cluster.rows.get(node) for node in nodes if node is not None]
    if not scheduler.extenders and len(rows) == len(nodes):
        with suppress(InputError, PluginError, ExtenderError):
            scored = scheduler.score(pod)
            places = [None if row is None else scored.place_of(row) for row in rows]
            points = {
                node: scored.points(place)
                for node, place in zip(nodes, places, strict=True)
                if node is not None and place is not None
            }
            if len(points) == len(rows):
                return NodeComparison(points if scored.scores else {}, {}, frozenset(points))
    return NodeComparison.of(scheduler.decide(pod), nodes)


class _Explained(NamedTuple):
    pod: Pod
    compared: NodeComparison
    chosen: str | None
    """The node that the other side would choose in the same situation."""
    differences: tuple[Difference, ...] = ()
    """Between releases, the differences that alone move the pod."""


def copy_to_place_on(cluster: Cluster, replay: bool) -> Cluster:
    """A copy to place pods on; with `replay`, running pods are pending again."""
    cluster = cluster.fork()
    if replay:
        for pod in [pod for pod, _ in cluster.placed() if not belongs_to_node(pod)]:
            cluster.end(pod)
            cluster.add(replace(pod, spec=replace(pod.spec, node_name="")))
    return cluster


def _moves(before: _Run, after: _Run, moved: Mapping[str, tuple[str | None, str | None]]) -> Iterator[Move]:
    same_cluster = before.way.cluster is after.way.cluster
    found = {each.pod.key: each for each in before.explain(moved, after if same_cluster else None)}
    for pod, compared, *_ in after.explain(moved, None):
        nodes = moved[pod.key]
        # If both sides agree in the same situation, the situations differ: earlier pods went elsewhere.
        knock_on = same_cluster and nodes[0] == found[pod.key].chosen
        cause = cause_of(*nodes, found[pod.key].compared, compared, knock_on=knock_on)
        yield Move(pod.key, workload_of(pod), *nodes, replace_data(cause, differences=found[pod.key].differences))


def _spread_changes(before: Cluster, after: Cluster) -> Iterator[SpreadChange]:
    one, other = workloads(before), workloads(after)
    zones_before, zones_after = domains(before, ZONE), domains(after, ZONE)
    for workload in sorted({*one, *other}):
        nodes_before, nodes_after = one.get(workload, Counter()), other.get(workload, Counter())
        per_zone = in_domains(nodes_before, zones_before), in_domains(nodes_after, zones_after)
        if per_zone[0] != per_zone[1] or len(nodes_before) != len(nodes_after):
            zones = [dict(sorted(counts.items())) for counts in per_zone]
            yield SpreadChange(workload, zones[0], zones[1], len(nodes_before), len(nodes_after))


TIMELINE_NUMBERS = (
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
NODE_GROUP_NUMBERS = ("cost", "node_hours", "nodes_added", "nodes_removed")
"""The additional numbers of a timeline with node groups."""
ALL_NUMBERS = (*TIMELINE_NUMBERS, *NODE_GROUP_NUMBERS)


def timeline_numbers(result: TimelineResult) -> dict[str, float]:
    """The numbers of a timeline, by the names in `TIMELINE_NUMBERS` and `NODE_GROUP_NUMBERS`."""
    waits = sorted(result.pending_times.values())
    events = Counter(record["event"] for record in result.log)
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
        found[f"{resource}_utilisation"] = result.utilisation[resource].mean if resource in result.utilisation else 0.0
    return found


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineWay:
    """One side of a comparison: the initial objects, the scheduler and the node groups."""

    objects: Objects
    name: str
    config: KubeSchedulerConfiguration | Mapping[str, Any] | None = None
    release: AnyRelease = CURRENT
    node_groups: NodeGroups | None = None


@dataclass(frozen=True, slots=True)
class TimelineComparison:
    """The results of the same events on two sides."""

    names: tuple[str, str]
    before: dict[str, float]
    after: dict[str, float]

    @property
    def measures(self) -> tuple[str, ...]:
        """The names of the numbers that at least one side has."""
        return tuple(name for name in ALL_NUMBERS if name in self.before or name in self.after)

    @property
    def values(self) -> dict[str, float]:
        """The values that conditions may name: see `TIMELINE_NAMES`. Without node groups, the costs and node changes
        are 0.
        """
        return {
            f"{prefix}{name}": float(numbers.get(name, 0))
            for prefix, numbers in (("", self.after), ("before.", self.before), ("after.", self.after))
            for name in ALL_NUMBERS
        }

    def to_dict(self) -> dict[str, Any]:
        """The comparison as plain data."""
        before, after = self.names
        return {"before": {"name": before, "measures": self.before}, "after": {"name": after, "measures": self.after}}


TIMELINE_NAMES = tuple(f"{prefix}{name}" for prefix in ("", "before.", "after.") for name in ALL_NUMBERS)
"""The names that conditions on a comparison of timelines may use."""


def compare_timelines(
    before: TimelineWay,
    after: TimelineWay,
    events: TimelineEvents,
    given: SchedulerOptions | None = None,
    *,
    until: float | None = None,
    **keywords: Unpack[SchedulerKeywords],
) -> TimelineComparison:
    """Run the events on both sides, up to `until` seconds, and report the numbers of each.

    By default the smallest name wins a tie. `given` and `keywords` apply to both sides.
    """
    # Imported here because most answers need no simulated time.
    from podium.autoscaling import scaled
    from podium.timeline import Timeline

    options = SchedulerOptions.steady(given, **keywords)

    def numbers(way: TimelineWay) -> dict[str, float]:
        timeline = Timeline(way.objects, events, replace_data(options, config=way.config, release=way.release))
        with closing(scaled(timeline, way.node_groups)):
            return timeline_numbers(timeline.run(until))

    return TimelineComparison((before.name, after.name), numbers(before), numbers(after))
