"""What an upgrade of kube-scheduler changes: which pods go elsewhere or no longer fit, and which settings change their
meaning.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass, field, fields, is_dataclass
from dataclasses import replace as replace_data
from enum import StrEnum
from typing import Any, NamedTuple, Unpack

from podium.answers.compare import Comparison, Way, compare, placement_differences, with_one_rule
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration, Profile, UtilizationShapePoint
from podium.engine import Scheduler
from podium.engine.release import CURRENT, AnyRelease, Release, release_of
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.errors import ConfigError, ExtenderError, InputError, PluginError
from podium.framework import Registry
from podium.model import Node, Pod
from podium.model.objects import INSTANCE_TYPE
from podium.model.pod import is_static
from podium.rules import Difference, differences
from podium.workloads import workload_of


@dataclass(frozen=True, slots=True)
class ConfigurationChanges:
    """What changes in a configuration from one release to another."""

    refused: tuple[str, ...] = ()
    """Problems that only the new release has: field path, what is wrong, what to write instead."""
    refused_before: tuple[str, ...] = ()
    """Problems that only the old release has."""
    changed: tuple[str, ...] = ()
    """Settings that both accept, with a different meaning."""
    unread_by: tuple[str, ...] = ()
    """The release that uses its defaults, because it refuses the configuration and the other release does not."""

    def to_dict(self) -> dict[str, Any]:
        names = ("refused", "refused_before", "changed")
        keys = ("refused", "refusedBefore", "changed")
        return {key: list(getattr(self, name)) for key, name in zip(keys, names, strict=True)}


class _Reading(NamedTuple):
    """How a release reads a configuration."""

    config: KubeSchedulerConfiguration | None
    """None if it is refused, or if there is none."""
    problems: tuple[str, ...] = ()
    """Why it is refused."""
    outdated: tuple[str, ...] = ()
    """Why the release refuses it although Podium reads it."""

    def without(self, other: _Reading) -> tuple[str, ...]:
        """The problems that another release does not have."""
        return tuple(problem for problem in self.problems if problem not in other.problems)


def _read(config: Config, release: Release, registry: Registry) -> _Reading:
    if config is None:
        return _Reading(None)
    try:
        setup = release.set_up(config, registry=registry)
    except ConfigError as error:
        return _Reading(None, tuple(error.errors))
    return _Reading(setup.config, outdated=setup.warnings)


def _configuration_changes(config: Config, old: Release, new: Release, registry: Registry) -> ConfigurationChanges:
    """Compare how two releases read a configuration; empty if there is none."""
    before, after = _read(config, old, registry), _read(config, new, registry)
    changed = [] if before.config is None or after.config is None else _changes(before.config, after.config, old, new)
    refused, refused_before = after.without(before), before.without(after)
    unread_by = [release.name for release, problems in ((old, refused_before), (new, refused)) if problems]
    return ConfigurationChanges((*after.outdated, *refused), refused_before, tuple(changed), tuple(unread_by))


def _changes(
    before: KubeSchedulerConfiguration, after: KubeSchedulerConfiguration, older: Release, newer: Release
) -> list[str]:
    found, old, new = [], older.name, newer.name
    for place, (one, other) in enumerate(zip(before.profiles, after.profiles, strict=False)):
        path = f"profiles[{place}]"
        found += _changed_points(one, other, path, old, new)
        for name in sorted(one.args.keys() & other.args.keys()):
            found += [
                f"{path}.pluginConfig: {field} of {name} is {after} in {new}, {before} in {old}"
                for field, before, after in _changed_args(one.args[name], other.args[name])
            ]
    return found


def _changed_args(one: object, other: object) -> Iterator[tuple[str, str, str]]:
    """The fields of a plugin's arguments that differ, under their names in a document."""
    if not is_dataclass(one) or type(one) is not type(other):
        return
    for each in fields(one):
        before, after = getattr(one, each.name), getattr(other, each.name)
        if before != after:
            first, *rest = each.name.split("_")
            yield first + "".join(map(str.capitalize, rest)), _shown(before), _shown(after)


def _changed_points(one: Profile, other: Profile, path: str, old: str, new: str) -> list[str]:
    """Plugins that run at an extension point in one release only, or with another weight."""
    gone: dict[str, list[str]] = {}
    come: dict[str, list[str]] = {}
    found = []
    for point, refs in one.points.items():
        before, after = dict(refs), dict(other.points.get(point, ()))
        for name in before.keys() - after.keys():
            gone.setdefault(name, []).append(point)
        for name in after.keys() - before.keys():
            come.setdefault(name, []).append(point)
        found += [
            f"{path}.plugins.{point}: {name} has the weight {after[name]} in {new}, {before[name]} in {old}"
            for name in sorted(before.keys() & after.keys())
            if before[name] != after[name]
        ]
    for names, runs, does_not in ((gone, old, new), (come, new, old)):
        found += [
            f"{path}.plugins: {name} runs at {', '.join(points)} in {runs}, not in {does_not}"
            for name, points in sorted(names.items())
        ]
    return found


def _shown(value: object) -> str:
    if isinstance(value, tuple) and value and all(isinstance(each, UtilizationShapePoint) for each in value):
        return ", ".join(f"{point.utilization}% -> {point.score}" for point in value)
    if isinstance(value, float):
        return f"{value:g}s"
    return "not set" if value is None else str(value)


POOL_LABELS = (
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
    "karpenter.sh/nodepool",
    "node.kubernetes.io/pool",
    "nodepool",
    "pool",
    INSTANCE_TYPE,
)
"""The labels that name a node's pool; the first label that a node has counts."""
NO_POOL = "no pool"

Best = frozenset[str]
"""The nodes that share the highest score, any of which may be chosen; empty for a pod that fits nowhere."""


class ChangeKind(StrEnum):
    """What changes for a pod."""

    MOVES = "moves"
    """It would go to another node."""
    UNFIT = "unfit"
    """It no longer fits anywhere."""
    FITS = "fits"
    """It fits now, but did not before."""


@dataclass(frozen=True, slots=True)
class Changed:
    """A pod that the two releases decide differently."""

    pod: str
    workload: str
    kind: ChangeKind
    runs_on: str | None
    """Its node; None for a pending pod."""
    before: tuple[str, ...]
    """The nodes that the old release could choose; empty if the pod fits nowhere."""
    after: tuple[str, ...]
    pool: str
    """The pool of its node or, if it is pending, of the node it would have got or gets now."""
    causes: tuple[Difference, ...]
    """The differences that each alone change the decision; if there is none, those without which it would not
    change.
    """
    alone: bool
    """Whether one difference alone is the cause."""
    message: str = ""
    """Why it fits nowhere, in the release that finds no node."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "workload": self.workload,
            "change": self.kind.value,
            "runsOn": self.runs_on,
            "before": list(self.before),
            "after": list(self.after),
            "pool": self.pool,
            "causes": [cause.name for cause in self.causes],
            "message": self.message or None,
        }


class ChangeGroup(NamedTuple):
    """The number of changed pods of one cause, workload or pool, by kind of change."""

    name: str
    counts: Mapping[ChangeKind, int]

    @property
    def total(self) -> int:
        return sum(self.counts.values())

    def to_dict(self) -> dict[str, Any]:
        return {"name": self.name, **{kind.value: self.counts.get(kind, 0) for kind in ChangeKind}}


@dataclass(frozen=True, slots=True)
class Upgrade:
    """What changes from one release to another."""

    before: Release
    after: Release
    decided: int
    """How many pods both releases decided, including `undecided`."""
    changed: tuple[Changed, ...]
    ties: int
    """How many pods may go to other nodes only because several nodes share the highest score."""
    configuration: ConfigurationChanges
    replay: Comparison | None = field(default=None)
    undecided: tuple[str, ...] = ()
    """The running pods for which neither release finds a node, for example because a claim is not in the input."""

    @property
    def differences(self) -> list[Difference]:
        """Everything that differs between the two releases, whether or not it matters here."""
        return differences(self.before.rules, self.after.rules)

    @property
    def is_harmless(self) -> bool:
        """Whether every pod still fits and the configuration is accepted."""
        return not self.configuration.refused and not any(pod.kind is ChangeKind.UNFIT for pod in self.changed)

    def by_cause(self) -> list[tuple[Difference | None, ChangeGroup]]:
        """The causes, that of most pods first; None for differences that only act together."""
        causes = {cause.name: cause for pod in self.changed for cause in pod.causes}
        groups = _grouped(self.changed, lambda pod: [cause.name for cause in pod.causes] or [""])
        return [(causes.get(group.name), group) for group in groups]

    def said(self, cause: Difference) -> str:
        """The sentence for a difference, or its reverse after a downgrade or with a gate switched off."""
        return cause.sentence if getattr(self.after.rules, cause.name) else f"No longer: {cause.sentence}"

    def by_workload(self) -> list[ChangeGroup]:
        return _grouped(self.changed, lambda pod: [f"{pod.pod.partition('/')[0]} {pod.workload}"])

    def by_pool(self) -> list[ChangeGroup]:
        return _grouped(self.changed, lambda pod: [pod.pool])

    @property
    def values(self) -> dict[str, float]:
        """The values that conditions may name: see `UPGRADE_NAMES`."""
        counts = Counter(pod.kind for pod in self.changed)
        kinds = {kind.value: float(counts[kind]) for kind in ChangeKind}
        others = {"undecided": float(len(self.undecided)), "refused": float(len(self.configuration.refused))}
        return {**kinds, "pods": float(self.decided), **others}

    def to_dict(self) -> dict[str, Any]:
        """The upgrade as plain data."""
        causes = [
            {
                **group.to_dict(),
                "release": cause.release if cause else None,
                "sentence": self.said(cause) if cause else TOGETHER,
            }
            for cause, group in self.by_cause()
        ]
        return {
            "from": self.before.name,
            "to": self.after.name,
            "pods": self.decided,
            "ties": self.ties,
            "undecided": list(self.undecided),
            "configuration": self.configuration.to_dict(),
            "causes": causes,
            "workloads": [group.to_dict() for group in self.by_workload()],
            "pools": [group.to_dict() for group in self.by_pool()],
            "changes": [pod.to_dict() for pod in self.changed],
            "differences": [
                {"name": each.name, "release": each.release, "area": each.area, "sentence": each.sentence}
                for each in self.differences
            ],
            "replay": None if self.replay is None else self.replay.to_dict(),
        }


UPGRADE_NAMES = ("pods", *(kind.value for kind in ChangeKind), "undecided", "refused")
"""The names that conditions on an upgrade may use."""
TOGETHER = "Several differences together; none of them alone."


def _grouped(pods: Iterable[Changed], names: Callable[[Changed], list[str]]) -> list[ChangeGroup]:
    counts: dict[str, Counter[ChangeKind]] = {}
    for pod in pods:
        for name in names(pod):
            counts.setdefault(name, Counter())[pod.kind] += 1
    found = [ChangeGroup(name, dict(of_name)) for name, of_name in counts.items()]
    return sorted(found, key=lambda group: (-group.total, group.name))


def upgrade(
    cluster: Cluster,
    config: Config | SchedulerOptions = None,
    *,
    before: AnyRelease,
    after: AnyRelease = CURRENT,
    replay: bool = False,
    on_decided: Callable[[], object] = lambda: None,
    **keywords: Unpack[SchedulerKeywords],
) -> Upgrade:
    """Decide every pod by both releases, and report what changes and which difference between them is the cause.

    `config` is a document, which each release reads in its own way. If only one of them refuses it, that release
    decides with its defaults; ConfigError if both do. Static pods are left out. The cluster stays as it is. With
    `replay`, all pods are also placed from scratch by both releases. `on_decided` is called after every pod, once for
    each release. The option `release` is ignored, as there are two; `tie_break` is used for `replay` only, as otherwise
    all best nodes are compared.
    """
    options = SchedulerOptions.of(config, **keywords)
    old, new = release_of(before), release_of(after)
    if old.is_old or new.is_old:
        raise InputError("an upgrade is from v1.29 or a later release to another of these")
    changes = _configuration_changes(options.config, old, new, options.registry)
    trial = _Trial(cluster.fork(), options)
    sides = (
        _Side(old, None if old.name in changes.unread_by else options.config),
        _Side(new, None if new.name in changes.unread_by else options.config),
    )
    decided_before, decided_after = (trial.decide(side, trial.pods, on_decided) for side in sides)
    changed = [key for key in trial.pods if _kind(decided_before[key], decided_after[key]) is not None]
    causes = _find_causes(trial, sides, changed, decided_before)
    messages = trial.messages(sides, {key: (decided_before[key], decided_after[key]) for key in changed})
    return Upgrade(
        old,
        new,
        len(trial.pods),
        tuple(_changed(trial, key, decided_before, decided_after, causes[key], messages) for key in changed),
        sum(decided_before[key] != decided_after[key] for key in trial.pods) - len(changed),
        changes,
        _replayed(cluster, sides, options) if replay else None,
        tuple(key for key in trial.running if not decided_before[key] and not decided_after[key]),
    )


class _Side(NamedTuple):
    """One release and its configuration."""

    release: Release
    config: Config


class _Trial:
    """A copy of the cluster, on which pods are removed from their nodes one by one and decided."""

    def __init__(self, cluster: Cluster, options: SchedulerOptions) -> None:
        self.cluster, self._options = cluster, options
        self.running = {pod.key: (pod, node) for pod, node in cluster.placed() if not is_static(pod)}
        self.pods: dict[str, tuple[Pod, str | None]] = {
            **self.running,
            **{key: (pod, None) for key, pod in cluster.pending.items()},
        }
        """Every pod to decide, with its node."""
        kinds = [*(pod.key for pod, _ in cluster.placed_by_kind()), *cluster.pending]
        self._turns = {key: turn for turn, key in enumerate(kinds)}

    def decide(
        self, side: _Side, keys: Iterable[str], on_decided: Callable[[], object] = lambda: None
    ) -> dict[str, Best]:
        """The best nodes of each pod in one release."""
        found: dict[str, Best] = {}
        with closing(self._scheduler(side)) as scheduler:
            for key in sorted(keys, key=self._turns.__getitem__):
                with self.cluster.without(self.pods[key][0]) as pod:
                    found[key] = _best_nodes(scheduler, pod)
                on_decided()
        return found

    def messages(self, sides: tuple[_Side, _Side], pods: Mapping[str, tuple[Best, Best]]) -> dict[str, str]:
        """Why pods fit nowhere, in the release that finds no node for them."""
        found: dict[str, str] = {}
        for place, side in enumerate(sides):
            keys = [key for key, best in pods.items() if not best[place]]
            if keys:
                with closing(self._scheduler(side)) as scheduler:
                    for key in keys:
                        with self.cluster.without(self.pods[key][0]) as pod:
                            found[key] = scheduler.message(pod)
        return found

    def _scheduler(self, side: _Side) -> Scheduler:
        options = replace_data(self._options, config=side.config, release=side.release, tie_break="first")
        return Scheduler(self.cluster, options)

    def pool_of(self, node: str) -> str:
        return pool_of(self.cluster.node(node))


def _best_nodes(scheduler: Scheduler, pod: Pod) -> Best:
    """The nodes that share the highest score; empty if the pod fits nowhere, or if deciding it fails."""
    try:
        rows = scheduler.best(pod).rows.tolist()
    except (InputError, PluginError, ExtenderError):
        return frozenset()
    return frozenset(scheduler.cluster.names[row] for row in rows)


def pool_of(node: Node) -> str:
    """The pool of a node, from the labels that providers set."""
    labels = node.metadata.labels
    return next((labels[label] for label in POOL_LABELS if label in labels), NO_POOL)


def _kind(before: Best, after: Best) -> ChangeKind | None:
    """What changes for a pod; None if a node is best both times, or it fits nowhere both times."""
    if before and after:
        return None if before & after else ChangeKind.MOVES
    if before:
        return ChangeKind.UNFIT
    return ChangeKind.FITS if after else None


def _find_causes(
    trial: _Trial, sides: tuple[_Side, _Side], changed: list[str], before: Mapping[str, Best]
) -> dict[str, tuple[list[Difference], bool]]:
    """Per pod, the differences that each alone change its decision; if there is none, those without which it would not
    change.
    """
    old, new = sides
    found: dict[str, tuple[list[Difference], bool]] = {key: ([], False) for key in changed}
    telling = placement_differences(old.release, new.release)
    for alone in (True, False):
        base, other = (old, new) if alone else (new, old)
        for difference in telling:
            keys = [key for key in changed if alone or not found[key][1]]
            side = base._replace(release=with_one_rule(base.release, other.release, difference))
            decided = _decided(trial, side, keys)
            for key, best in decided.items():
                if (_kind(before[key], best) is not None) is alone:
                    found[key][0].append(difference)
        found = {key: (causes, single or (alone and bool(causes))) for key, (causes, single) in found.items()}
    return found


def _decided(trial: _Trial, side: _Side, keys: list[str]) -> dict[str, Best]:
    """The best nodes of pods under rules that no release has; empty if these rules refuse the configuration."""
    try:
        return trial.decide(side, keys) if keys else {}
    except ConfigError:
        return {}


def _changed(
    trial: _Trial,
    key: str,
    before: Mapping[str, Best],
    after: Mapping[str, Best],
    causes: tuple[list[Difference], bool],
    messages: Mapping[str, str],
) -> Changed:
    pod, node = trial.pods[key]
    one, other = tuple(sorted(before[key])), tuple(sorted(after[key]))
    kind = _kind(before[key], after[key])
    assert kind is not None
    return Changed(
        key,
        workload_of(pod),
        kind,
        node,
        one,
        other,
        trial.pool_of(node or next(iter((*one, *other)))),
        tuple(causes[0]),
        causes[1],
        messages.get(key, ""),
    )


def _replayed(cluster: Cluster, sides: tuple[_Side, _Side], options: SchedulerOptions) -> Comparison:
    """All pods placed from scratch by both releases."""
    ways = [Way(cluster=cluster, config=side.config, release=side.release, name=side.release.name) for side in sides]
    return compare(ways[0], ways[1], options, replay=True)
