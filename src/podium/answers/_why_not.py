"""Why a pod does not go to a node, and the search for the smallest changes that send it there; and the constraints of a
spec that keep a pod off nodes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as replace_data
from heapq import heappop, heappush
from itertools import count
from typing import Any, Unpack

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration, PluginRef, Profile
from podium.config.profiles import check_profile
from podium.engine import Decision, Scheduler
from podium.engine.decision import scored, why_finished
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.errors import InputError
from podium.framework import Code, Framework, Status
from podium.framework.obstacle import Obstacle, RejectedNodes, SpecPart
from podium.framework.suggested_change import Change, ChangeTarget, RejectedPod, T, edit_pod, evict, evictable
from podium.lookup import find_node
from podium.model import Pod
from podium.model.meta import NodeSelectorTerm
from podium.model.objects import HOSTNAME, Node, PersistentVolume, PersistentVolumeClaim
from podium.model.pod import Affinity, PodAffinityTerm, PodSpec
from podium.model.selectors import cordoned, requirement_text
from podium.plugins.storage.claims import claim_name
from podium.wording import joined

# -- changes to try ----------------------------------------------------------------------------------------------------


class TrialState:
    """A pod without a node, a copy of the cluster, and a configuration. Every change of them can be undone."""

    def __init__(
        self,
        cluster: Cluster,
        pod: Pod,
        config: KubeSchedulerConfiguration,
        options: SchedulerOptions,
    ) -> None:
        """`config` is the configuration of the options, decoded; configuration changes start from it."""
        self.cluster = cluster.fork()
        self.cluster.take_off(pod.key)
        # A pending pod goes as well: a nomination of its own would keep it from all other nodes.
        self.cluster.remove(pod)
        self.pod, self.config, self.options = pod, config, options
        self._schedulers: list[tuple[KubeSchedulerConfiguration, Scheduler]] = []
        self._undo: list[Callable[[], object]] = []
        self.decisions = 0
        """The number of decisions made so far."""

    def decide(self) -> Decision:
        """Decide where the pod goes now."""
        self.decisions += 1
        return self._scheduler().decide(self.pod)

    def _scheduler(self) -> Scheduler:
        """A scheduler for the current configuration; the first one is kept, others are made for a changed
        configuration.
        """
        for config, scheduler in self._schedulers:
            if config is self.config:
                return scheduler
        made = Scheduler(self.cluster, replace_data(self.options, config=self.config, tie_break="first"))
        for _, scheduler in self._schedulers[1:]:
            scheduler.close()
        self._schedulers = [*self._schedulers[:1], (self.config, made)]
        return made

    @property
    def framework(self) -> Framework:
        """The plugins of the pod's profile."""
        return self._scheduler().framework_of(self.pod)

    def close(self) -> None:
        for _, scheduler in self._schedulers:
            scheduler.close()

    @contextmanager
    def with_changes(self, changes: Iterable[Change]) -> Iterator[None]:
        """Apply these changes for the length of the block."""
        before = len(self._undo)
        try:
            for change in changes:
                change.apply(self)
            yield
        finally:
            while len(self._undo) > before:
                self._undo.pop()()

    def edit_pod(self, edit: Callable[[Pod], Pod]) -> None:
        """Change the pod to be placed."""
        before = self.pod
        self._undo.append(lambda: setattr(self, "pod", before))
        self.pod = edit(before)

    def edit_config(self, edit: Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration]) -> None:
        before = self.config
        self._undo.append(lambda: setattr(self, "config", before))
        self.config = edit(before)

    def edit_node(self, name: str, edit: Callable[[Node], Node]) -> None:
        before = self.cluster.node(name)
        self._undo.append(lambda: self.cluster.update(before))
        self.cluster.update(edit(before))

    def edit_running(self, key: str, edit: Callable[[Pod], Pod]) -> None:
        """Change a pod that is on a node."""
        found = self.cluster.find_pod(key)
        if found is not None:
            before = found[0]
            self._undo.append(lambda: self.cluster.update(before))
            self.cluster.update(edit(before))

    def edit_object(self, item: T, edit: Callable[[T], T]) -> None:
        """Change an object that is neither a node nor a pod."""
        before = self.cluster.store.of(type(item)).get(item.name, item.namespace)
        if before is not None:
            self._undo.append(lambda: self.cluster.update(before))
            self.cluster.update(edit(before))

    def evict(self, key: str) -> None:
        taken = self.cluster.take_off(key)
        if taken is not None:
            self._undo.append(lambda: self.cluster.put_back(taken))


MOST_EVICTED_FOR_SCORE = 4
"""The maximum number of pods evicted one by one to improve a node's score."""
MOST_EVICTED_ALONE = 5
"""The maximum number of pods evicted one by one if no plugin names a pod in the way."""
MOST_CORDONED = 2
HIGHEST_WEIGHT = 100


def wins(decision: Decision, node: str) -> bool:
    """Whether the pod goes to the node, however ties are broken."""
    return decision.ties == (node,)


def rejection(decision: Decision, node: str) -> Status | None:
    """Why the node is rejected; None if it is feasible, or if sampling did not reach it."""
    if decision.error:
        return Status.unresolvable(decision.error)
    if node in decision.feasible:
        return None
    found = decision.rejected.get(node) or decision.absent
    return found if found is not None and found.reasons else None


def candidate_changes(trial: TrialState, decision: Decision, node: str) -> list[Change]:
    """Changes that may each bring the pod closer to the node; only a decision with them can tell."""
    status = rejection(decision, node)
    if status is None:
        return list(_score_changes(trial, decision, node))
    if trial.pod.spec.scheduling_gates:
        return [_remove_gates(trial.pod)]
    return _filter_changes(trial, decision, RejectedPod(trial.pod, node, status, trial.cluster))


def _filter_changes(trial: TrialState, decision: Decision, rejected: RejectedPod) -> list[Change]:
    """The fixes of the plugins that reject the node; without any, evict a pod if the status says that this may help."""
    names = (rejected.status.plugin,) if rejected.status.plugin else decision.narrowed_by
    plugins = trial.framework.plugins
    found = [change for name in names if name in plugins for change in plugins[name].fixes(rejected)]
    if not found and rejected.status.code is Code.UNSCHEDULABLE:
        found = [evict([pod]) for pod in evictable(rejected.cluster, rejected.node)[:MOST_EVICTED_ALONE]]
    return found


def _score_changes(trial: TrialState, decision: Decision, node: str) -> Iterator[Change]:
    """Changes that may make a feasible node win."""
    pod, cluster = trial.pod, trial.cluster
    yield from _weights(decision, node, pod.spec.scheduler_name)
    for plugin, _ in trial.framework.score:
        yield from plugin.score_fixes(pod, node, cluster)
    for each in evictable(cluster, node)[:MOST_EVICTED_FOR_SCORE]:
        yield evict([each])
    own = decision.totals.get(node, 0)
    rivals = [name for name, total in decision.totals.items() if name != node and total >= own]
    if 0 < len(rivals) <= MOST_CORDONED:
        yield _cordon(rivals)
    labels = cluster.node(node).metadata.labels
    if HOSTNAME in labels:
        yield _select_node(pod, HOSTNAME, labels[HOSTNAME])


def _weights(decision: Decision, node: str, profile: str) -> Iterator[Change]:
    """For each plugin, the weight closest to its own with which the node ranks ahead of all others."""
    for scores in decision.scores:
        weight = _winning_weight(decision.totals, scores.normalized, scores.weight, node)
        if weight is not None:
            yield _set_weight(profile, scores.plugin, scores.weight, weight)


def _winning_weight(totals: Mapping[str, int], scores: Mapping[str, int], weight: int, node: str) -> int | None:
    """The weight that makes one node's total the highest; None if there is none up to the highest sensible weight.

    Another weight adds `(new - old) * score` to every total, so each other node allows an interval of weights.
    """
    lowest, highest = 0, HIGHEST_WEIGHT
    for other, total in totals.items():
        if other == node:
            continue
        ahead, better = total - totals[node], scores[node] - scores[other]
        if better > 0:
            lowest = max(lowest, weight + ahead // better + 1)
        elif better < 0:
            highest = min(highest, weight + _ceil(ahead, better) - 1)
        elif ahead >= 0:
            return None
    if lowest > highest:
        return None
    return min(max(weight, lowest), highest)


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _cordon(nodes: Sequence[str]) -> Change:
    """Cordon nodes that win against the node."""

    def apply(to: ChangeTarget) -> None:
        for node in nodes:
            to.edit_node(node, cordoned)

    return Change("cordon", f"cordon {joined(nodes)}", tuple(f"node/{node}" for node in nodes), 5 * len(nodes), apply)


def _select_node(pod: Pod, key: str, value: str) -> Change:
    """Pin the pod to nodes with a label value."""

    def edit(before: Pod) -> Pod:
        selector = {**(before.spec.node_selector or {}), key: value}
        return replace(before, spec=replace(before.spec, node_selector=selector))

    return edit_pod("pin", f"pin the pod: nodeSelector {key}={value}", pod, 8, edit)


def _remove_gates(pod: Pod) -> Change:
    """Remove the pod's scheduling gates."""
    names = joined([gate.name for gate in pod.spec.scheduling_gates])

    def edit(before: Pod) -> Pod:
        return replace(before, spec=replace(before.spec, scheduling_gates=[]))

    return edit_pod("remove-gate", f"remove the scheduling gate {names} from the pod", pod, 1, edit)


def _set_weight(profile: str, plugin: str, before: int, after: int) -> Change:
    """Change a plugin's weight at Score; 0 disables it there."""

    def edit(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        def weigh(refs: Sequence[PluginRef]) -> tuple[PluginRef, ...]:
            weighed = [PluginRef(ref.name, after) if ref.name == plugin else ref for ref in refs]
            return tuple(ref for ref in weighed if ref.name != plugin or after)

        profiles = [
            replace_data(each, points={**each.points, "score": weigh(each.points["score"])})
            if each.scheduler_name == profile
            else each
            for each in config.profiles
        ]
        return replace_data(config, profiles=tuple(profiles))

    verb = "raise" if after > before else "lower"
    text = f"{verb} {plugin}'s weight from {before} to {after}" if after else f"disable {plugin} at score"
    size = 3 + min(abs(after - before).bit_length(), 5) + (0 if after else 3)
    return Change("set-weight", text, (f"profile/{profile}",), size, lambda to: to.edit_config(edit))


@dataclass(frozen=True, slots=True)
class SpecConstraint:
    """One constraint of a pod that rules out nodes."""

    kind: str
    what: str
    """The constraint in words."""
    nodes: int
    """How many nodes it rules out that no earlier constraint did."""
    alone: bool
    """Whether the pod would fit without it."""

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "what": self.what, "nodes": self.nodes, "alone": self.alone}


def spec_constraints(scheduler: Scheduler, pod: Pod) -> tuple[SpecConstraint, ...]:
    """The constraints that keep a pending pod from nodes, the one that rules out most nodes first.

    Free resources and taints are not constraints of the pod: the scheduler's message names them.
    """
    decision = scheduler.decide(pod)
    counts = Counter(part for parts in _rejecting(decision, scheduler.framework_of(pod)) for part in parts)
    found = []
    for part, nodes in counts.most_common():
        lift = _LIFTS.get(part)
        alone = lift is not None and scheduler.decide(replace(pod, spec=lift(pod.spec))).node is not None
        found.append(SpecConstraint(part.value, _WORDS[part](pod, scheduler.cluster), nodes, alone))
    return tuple(found)


def _rejecting(decision: Decision, framework: Framework) -> Iterator[Iterable[SpecPart]]:
    """The parts of the spec that rule out each node."""

    def parts(plugins: Iterable[str], reasons: Sequence[str]) -> Iterable[SpecPart]:
        asked = [framework.plugins[name] for name in plugins if name in framework.plugins]
        return dict.fromkeys(part for each in asked for reason in reasons if (part := each.constraint_of(reason)))

    for status in decision.rejected.values():
        yield parts(status.plugins, status.reasons)
    if decision.absent is not None:
        absent = parts(decision.absent.plugins or decision.narrowed_by, decision.absent.reasons or ("",))
        yield from [absent] * (decision.node_count - len(decision.rejected) - len(decision.feasible))


# -- without it ----------------------------------------------------------------------------------------------------


def _without(spec: PodSpec, *parts: str) -> PodSpec:
    return replace(spec, affinity=replace(spec.affinity or Affinity(), **dict.fromkeys(parts)))


def _without_ports(spec: PodSpec) -> PodSpec:
    containers = [replace(container, ports=[]) for container in spec.containers]
    return replace(spec, containers=containers)


_LIFTS: dict[SpecPart, Callable[[PodSpec], PodSpec]] = {
    SpecPart.NODE_AFFINITY: lambda spec: replace(_without(spec, "node_affinity"), node_selector=None),
    SpecPart.AFFINITY: lambda spec: _without(spec, "pod_affinity"),
    SpecPart.ANTI_AFFINITY: lambda spec: _without(spec, "pod_anti_affinity"),
    SpecPart.SPREAD: lambda spec: replace(spec, topology_spread_constraints=[]),
    SpecPart.VOLUME: lambda spec: replace(spec, volumes=[]),
    SpecPart.PORT: _without_ports,
}


# -- in words ------------------------------------------------------------------------------------------------------


def _node_affinity(pod: Pod, cluster: Cluster) -> str:
    parts = [f"{key}={value}" for key, value in (pod.spec.node_selector or {}).items()]
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if affinity and affinity.required:
        parts.append(" or ".join(map(_term, affinity.required.node_selector_terms)))
    return ", ".join(parts)


def _term(term: NodeSelectorTerm) -> str:
    return " and ".join(map(requirement_text, (*term.match_expressions, *term.match_fields)))


def _pod_affinity(name: str) -> Callable[[Pod, Cluster], str]:
    def words(pod: Pod, cluster: Cluster) -> str:
        found = pod.spec.affinity and getattr(pod.spec.affinity, name)
        return ", ".join(map(_affinity_term, found.required)) if found else ""

    return words


def _affinity_term(term: PodAffinityTerm) -> str:
    selector = term.label_selector
    labels = [f"{key}={value}" for key, value in selector.match_labels.items()] if selector else []
    labels += map(requirement_text, selector.match_expressions) if selector else []
    return f"pods with {' and '.join(labels) or 'any labels'} by {term.topology_key}"


def _others(pod: Pod, cluster: Cluster) -> str:
    return "pods there that do not want it near them"


def _spread(pod: Pod, cluster: Cluster) -> str:
    hard = [each for each in pod.spec.topology_spread_constraints if each.when_unsatisfiable == "DoNotSchedule"]
    return ", ".join(f"at most {each.max_skew} apart by {each.topology_key}" for each in hard)


def _volumes(pod: Pod, cluster: Cluster) -> str:
    return ", ".join(dict.fromkeys(_placed_claim(name, pod, cluster) for name in _claims(pod)))


def _claims(pod: Pod) -> list[str]:
    return [name for name in (claim_name(pod, volume) for volume in pod.spec.volumes) if name]


def _placed_claim(name: str, pod: Pod, cluster: Cluster) -> str:
    """Where the volume of a claim can be used; the claim's name if its volume is not the constraint."""
    claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace)
    volume = cluster.store.of(PersistentVolume).get(claim.spec.volume_name) if claim else None
    affinity = volume.spec.node_affinity if volume else None
    if affinity is None or affinity.required is None:
        return f"claim {name}"
    return " or ".join(map(_term, affinity.required.node_selector_terms))


def _ports(pod: Pod, cluster: Cluster) -> str:
    ports = [port for container in pod.spec.containers for port in container.ports if port.host_port]
    return ", ".join(f"{port.host_port}/{port.protocol}" for port in ports)


_WORDS: dict[SpecPart, Callable[[Pod, Cluster], str]] = {
    SpecPart.NODE_AFFINITY: _node_affinity,
    SpecPart.AFFINITY: _pod_affinity("pod_affinity"),
    SpecPart.ANTI_AFFINITY: _pod_affinity("pod_anti_affinity"),
    SpecPart.OTHERS: _others,
    SpecPart.SPREAD: _spread,
    SpecPart.VOLUME: _volumes,
    SpecPart.PORT: _ports,
}


# -- the answer --------------------------------------------------------------------------------------------------------


MOST_SUGGESTIONS = 5
"""The default number of suggestions."""
MOST_CHANGES_TOGETHER = 4
"""The maximum number of changes in a suggestion."""
MOST_MORE = 1
"""How many changes more than the smallest suggestion another suggestion may have."""
MOST_SEARCH_DECISIONS = 150
"""The maximum number of decisions of one search."""


@dataclass(frozen=True, slots=True)
class Suggestion:
    """Changes that together send the pod to the node, confirmed by a decision with them."""

    changes: tuple[Change, ...]
    decision: Decision

    @property
    def cost(self) -> int:
        return sum(change.cost for change in self.changes)

    @property
    def text(self) -> str:
        return ", and ".join(change.text for change in self.changes)

    def apply(
        self,
        cluster: Cluster,
        pod: Pod,
        config: Config | SchedulerOptions = None,
        **keywords: Unpack[SchedulerKeywords],
    ) -> tuple[Cluster, Pod, KubeSchedulerConfiguration]:
        """The cluster, the pod and the configuration with the changes applied; the given ones stay as they are.

        The pod is not on a node of that cluster, whether or not it was before.
        """
        options = SchedulerOptions.of(config, **keywords)
        trial = TrialState(cluster, pod, options.set_up().config, options)
        for change in self.changes:
            change.apply(trial)
        return trial.cluster, trial.pod, trial.config

    def to_dict(self) -> dict[str, Any]:
        decision = self.decision
        return {
            "text": self.text,
            "changes": [change.to_dict() for change in self.changes],
            "total": decision.totals.get(decision.node or ""),
        }


def suggestions(
    trial: TrialState, node: str, *, most: int = MOST_SUGGESTIONS, most_decisions: int = MOST_SEARCH_DECISIONS
) -> Iterator[Suggestion]:
    """The smallest sets of changes that send the pod to the node, smallest first; no set contains another."""
    waiting: list[tuple[int, int, tuple[Change, ...]]] = [(0, 0, ())]
    order = count(1)
    seen: set[frozenset[Change]] = {frozenset()}
    found: list[frozenset[Change]] = []
    last = trial.decisions + most_decisions
    while waiting and len(found) < most and trial.decisions < last:
        _, _, changes = heappop(waiting)
        if any(smaller <= set(changes) or len(changes) > len(smaller) + MOST_MORE for smaller in found):
            continue
        decision, more = _look(trial, node, changes)
        if wins(decision, node):
            suggestion = _checked(trial, node, changes)
            if suggestion is not None and frozenset(suggestion.changes) not in found:
                found.append(frozenset(suggestion.changes))
                yield suggestion
            continue
        for change in more:
            together = frozenset((*changes, change))
            if change not in changes and together not in seen and len(together) <= MOST_CHANGES_TOGETHER:
                seen.add(together)
                heappush(waiting, (sum(each.cost for each in together), next(order), (*changes, change)))


def _look(trial: TrialState, node: str, changes: tuple[Change, ...]) -> tuple[Decision, list[Change]]:
    """The decision with some changes, and the further changes that might help."""
    with trial.with_changes(changes):
        decision = trial.decide()
        if wins(decision, node) or len(changes) >= MOST_CHANGES_TOGETHER:
            return decision, []
        return decision, candidate_changes(trial, decision, node)


def _checked(trial: TrialState, node: str, changes: tuple[Change, ...]) -> Suggestion | None:
    """The changes without those that are not needed, tried once more from scratch."""
    for change in changes if len(changes) > 1 else ():
        rest = tuple(each for each in changes if each is not change)
        with trial.with_changes(rest):
            suffices = wins(trial.decide(), node)
        if suffices:
            return _checked(trial, node, rest)
    fresh = TrialState(trial.cluster, trial.pod, trial.config, trial.options)
    with fresh.with_changes(changes):
        decision = fresh.decide()
    fresh.close()
    return Suggestion(changes, decision) if wins(decision, node) else None


@dataclass(frozen=True, slots=True)
class WhyNot:
    """Why a pod does not go to a node, and what would send it there."""

    pod: str
    node: str
    decision: Decision
    """Where the pod goes instead, or that it already goes to the node."""
    blockers: tuple[Status, ...]
    """Every filter that rejects the node, in the order of the profile; empty if the pod fits there."""
    suggestions: tuple[Suggestion, ...]
    """The smallest changes that send the pod to the node, smallest first; each was tried."""
    obstacles: Mapping[str, tuple[Obstacle, ...]] = field(default_factory=dict)
    """Per filter that rejects the node, the things in the way that can be named."""

    @property
    def goes_there(self) -> bool:
        return self.decision.node == self.node

    @property
    def behind(self) -> int | None:
        """By how many points the node loses to the chosen one; None unless both were scored."""
        totals, chosen = self.decision.totals, self.decision.node or ""
        return totals[chosen] - totals[self.node] if {self.node, chosen} <= totals.keys() else None

    @property
    def behind_by_plugin(self) -> dict[str, int]:
        """The same per plugin, the largest difference first; negative where the node is ahead."""
        if self.behind is None:
            return {}
        chosen = self.decision.node or ""
        points = {one.plugin: one.weighted[chosen] - one.weighted[self.node] for one in scored(self.decision)}
        order = sorted(points, key=lambda plugin: (-abs(points[plugin]), plugin))
        return {plugin: points[plugin] for plugin in order if points[plugin]}

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "pod": self.pod,
            "node": self.node,
            "goesThere": self.goes_there,
            "goesTo": self.decision.node,
            "blockers": [
                {
                    "plugin": status.plugin,
                    "code": status.code.value,
                    "reasons": list(status.reasons),
                    "inTheWay": [obstacle.to_dict() for obstacle in self.obstacles.get(status.plugin, ())],
                }
                for status in self.blockers
            ],
            "behind": self.behind,
            "behindByPlugin": self.behind_by_plugin,
            "suggestions": [suggestion.to_dict() for suggestion in self.suggestions],
        }


def why_not(
    cluster: Cluster,
    pod: Pod,
    node: str,
    config: Config | SchedulerOptions = None,
    *,
    profile: str | None = None,
    most: int = MOST_SUGGESTIONS,
    **keywords: Unpack[SchedulerKeywords],
) -> WhyNot:
    """Why the pod does not go to the node, and up to `most` suggestions; the cluster stays as it is.

    A running pod is decided again as if it were not running yet. A suggestion makes the node win outright, so it holds
    whatever breaks ties. The default for `tie_break` is `first`; None breaks ties as the release does.
    """
    node = find_node(cluster, node)
    pod = undecided(pod, profile)
    made = SchedulerOptions.of if "tie_break" in keywords else SchedulerOptions.steady
    options = made(config, **keywords)
    with closing(Scheduler(cluster, options)) as scheduler:
        if profile is not None:
            check_profile(profile, scheduler.frameworks)
        scheduler.framework_of(pod)
        settings = scheduler.config
    with closing(TrialState(cluster, pod, _until_one_rejects(settings), options)) as trial:
        with closing(Scheduler(trial.cluster, replace_data(options, config=settings))) as scheduler:
            decision = scheduler.decide(pod)
        if decision.node == node:
            return WhyNot(pod.key, node, decision, (), ())
        blockers = _blockers(trial, node)
        rejected = {status.plugin: RejectedNodes(pod, {node: status}, trial.cluster) for status in blockers}
        obstacles = {plugin: trial.framework.obstacles(each).get(node, ()) for plugin, each in rejected.items()}
        found = tuple(suggestions(trial, node, most=most))
        return WhyNot(pod.key, node, decision, tuple(blockers), found, obstacles)


def undecided(pod: Pod, profile: str | None = None) -> Pod:
    """The pod as if it had no node yet, to be decided by its own profile or another."""
    if pod.finished:
        raise InputError(f"pod {pod.key} {why_finished(pod)}")
    return replace(pod, spec=replace(pod.spec, node_name="", scheduler_name=profile or pod.spec.scheduler_name))


def _until_one_rejects(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The same decisions, but a release in which every filter checks every node stops at the first filter that
    rejects.
    """
    if not config.old_release:
        return config
    from podium.releases import LegacyConfiguration  # loaded where an old release decides

    assert isinstance(config, LegacyConfiguration)
    return replace_data(config, behaviour=replace_data(config.behaviour, collects_all_reasons=False))


def _blockers(trial: TrialState, node: str) -> list[Status]:
    """The statuses that reject the node: of the first filter, then of the first filter without that one, and so on."""
    found: list[Status] = []
    changes: list[Change] = []
    while True:
        with trial.with_changes(changes):
            status = rejection(trial.decide(), node)
        if status is None or any(status.plugin == known.plugin for known in found):
            return found
        found.append(status)
        if not status.plugin:
            return found
        changes.append(_disabled(trial.pod.spec.scheduler_name, status.plugin))


def _disabled(profile: str, plugin: str) -> Change:
    """Disable a plugin's Filter; it keeps PreFilter, whose state its Score may need."""

    def edit(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        def without(each: Profile) -> Profile:
            points = {
                point: tuple(ref for ref in each.points.get(point, ()) if ref.name != plugin)
                for point in ("preFilter", "filter", "preScore", "score")
            }
            return replace_data(each, points={**each.points, **points})

        profiles = [without(each) if each.scheduler_name == profile else each for each in config.profiles]
        return replace_data(config, profiles=tuple(profiles))

    return Change("without-filter", plugin, (f"profile/{profile}",), 0, lambda to: to.edit_config(edit))
