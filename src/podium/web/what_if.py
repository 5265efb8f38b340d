"""The cluster of a question, and what-ifs on a copy of it: other nodes, workloads, weights or plugins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_data
from functools import singledispatch
from itertools import islice
from random import Random
from time import monotonic
from typing import Any, NamedTuple

import numpy as np
from msgspec.structs import replace
from numpy.typing import NDArray

from podium import answers
from podium.answers.capacity import add_nodes
from podium.answers.disruption import checked
from podium.answers.search_space import SHAPE_AT, ConfigurationSpace, has_shape
from podium.cluster import Cluster
from podium.cluster.columns import NO_ROWS, Ints
from podium.config import KubeSchedulerConfiguration
from podium.config.profiles import MULTI_POINT
from podium.engine import Scheduler, simulate
from podium.engine.release import CURRENT, AnyRelease, Release, release_of
from podium.errors import InputError, PodiumError
from podium.framework import Registry
from podium.manifests import Objects, load
from podium.manifests.yaml_documents import yaml_documents
from podium.model import Node, Pod
from podium.model.pod import DEFAULT_SCHEDULER_NAME, belongs_to_node
from podium.model.selectors import cordoned, uncordoned
from podium.present import API_VERSION
from podium.present.disruption import sentences
from podium.web import _questions as questions
from podium.web._questions import Manifest, Question, ScoreSettings
from podium.wording import counted
from podium.workloads import expand_workloads, workload_of

POSTED = "the posted cluster"
POSTED_CONFIG = "the posted configuration"
NAMES_EXTENDERS = frozenset({"extenders", "extenderconfigs"})


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A cluster, its objects, and the configuration that decides its pods.

    `document` is the configuration as written, None for the default; `config` is the configuration as the release reads
    it.
    """

    objects: Objects
    """The objects, including the pods that workloads lack."""
    cluster: Cluster
    document: Mapping[str, Any] | None
    config: KubeSchedulerConfiguration | None
    release: Release
    registry: Registry

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of every function that decides pods."""
        return {"config": self.config, "registry": self.registry, "release": self.release}


def subject_of(question: Question, served: Subject) -> Subject:
    """The cluster and configuration of a question: the served ones, or its own."""
    release = served.release if question.release is None else release_of(question.release)
    if question.cluster is None:
        objects, cluster = served.objects, served.cluster
        document = served.document if release.is_old == served.release.is_old else None
    else:
        objects = expand_workloads(load(manifests(question.cluster, POSTED)))
        if not objects.of(Node):
            raise InputError(f"no node in {POSTED}: get them with `kubectl get nodes -o json`")
        cluster = Cluster.from_objects(objects)
        document = _without_extenders(objects.scheduler_config, f"schedulerConfig of {POSTED}")
        if document is not None and not release.knows(document):
            document = None
    if question.config is not None:
        document = posted_configuration(question.config)
    config = configured(document, release, served.registry, POSTED_CONFIG)
    return Subject(
        objects=objects, cluster=cluster, document=document, config=config, release=release, registry=served.registry
    )


def served_subject(
    objects: Objects,
    document: Mapping[str, Any] | None,
    registry: Registry,
    *,
    release: AnyRelease = CURRENT,
    where: str = "",
) -> Subject:
    """The cluster and configuration that a server is started with."""
    objects = expand_workloads(objects)
    config = configured(document, release, registry, where)
    return Subject(
        objects=objects,
        cluster=Cluster.from_objects(objects),
        document=document,
        config=config,
        release=release_of(release),
        registry=registry,
    )


def configured(
    document: Mapping[str, Any] | None, release: AnyRelease, registry: Registry, where: str
) -> KubeSchedulerConfiguration | None:
    """A configuration as a release reads it; None for the default."""
    made = release_of(release)
    if document is None:
        return None
    try:
        return made.set_up(document, registry=registry).config
    except InputError as error:
        raise error.at(where) from None


def posted_configuration(manifest: Manifest) -> Mapping[str, Any]:
    """The configuration of a request: one document without extenders."""
    found = manifests(manifest, POSTED_CONFIG)
    if len(found) != 1:
        raise InputError(f"{POSTED_CONFIG} has {len(found)} documents; a configuration is one")
    document = _without_extenders(found[0], POSTED_CONFIG)
    assert document is not None
    return document


def _without_extenders(document: object, where: str) -> Mapping[str, Any] | None:
    """The configuration; refused if it names extenders: a request must not make this server call others.

    Their TLS files would be read, too.
    """
    if document is None:
        return None
    if not isinstance(document, Mapping):
        raise InputError(f"{where} is not an object")
    for key, value in document.items():
        if str(key).lower() in NAMES_EXTENDERS and value:
            raise InputError(f"{where} names extenders, which this server does not call: leave them out")
    return document


def manifests(manifest: Manifest, where: str) -> list[Mapping[str, Any]]:
    """The objects of a request; never the name of a file."""
    if isinstance(manifest, str):
        found: list[object] = [document for document in yaml_documents(manifest, where) if document is not None]
    else:
        found = list(manifest) if isinstance(manifest, list) else [manifest]
    documents: list[Mapping[str, Any]] = []
    for each in found:
        if not isinstance(each, Mapping):
            raise InputError(f"{where} has something that is not an object")
        documents.append(each)
    if not documents:
        raise InputError(f"{where} is empty")
    return documents


MOST_LISTED_PLACEMENTS = 500


def what_if(question: questions.WhatIf, subject: Subject) -> dict[str, Any]:
    """Apply the changes, place the pending pods, and show every node; of kind WhatIf."""
    cluster = subject.cluster.fork()
    told = []
    for step in question.steps:
        words, cluster = _do(step, cluster, subject)
        told.append({"do": type(step).__struct_config__.tag, "words": words})
    placements: list[dict[str, Any]] = []
    fits = True
    if question.steps:
        simulation = simulate(cluster, **subject.options, tie_break="first")
        cluster, fits = simulation.cluster, simulation.fits
        placements = [
            {"pod": each.pod.key, "node": each.node, "message": each.message or None} for each in simulation.placements
        ]
    placed = sum(each["node"] is not None for each in placements)
    return {
        "apiVersion": API_VERSION,
        "kind": "WhatIf",
        "steps": told,
        "fits": fits,
        "placed": placed,
        "pending": len(placements) - placed,
        # Pods that fit nowhere come first: users look for them.
        "placements": sorted(placements, key=lambda each: each["node"] is not None)[:MOST_LISTED_PLACEMENTS],
        "tiles": tiles(cluster, question.group, subject.cluster),
    }


@singledispatch
def _do(step: object, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    """Apply one change to the cluster; returns the results in sentences, and the cluster afterwards."""
    raise TypeError(step)


@_do.register
def _cordon(step: questions.Cordon, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    checked(cluster, step.nodes)
    for name in step.nodes:
        cluster.update(cordoned(cluster.node(name)))
    return [f"{counted(len(step.nodes), 'node')} cordoned: {', '.join(step.nodes[:6])}."], cluster


@_do.register
def _uncordon(step: questions.Uncordon, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    checked(cluster, step.nodes)
    for name in step.nodes:
        cluster.update(uncordoned(cluster.node(name)))
    return [f"{counted(len(step.nodes), 'node')} uncordoned: {', '.join(step.nodes[:6])}."], cluster


@_do.register
def _drain(step: questions.DrainStep, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    return _disrupted(
        answers.drain(cluster, step.nodes, answers.DisruptionSettings(**subject.options, tie_break="first"))
    )


@_do.register
def _fail(step: questions.FailStep, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    matching = answers.nodes_matching(cluster, step.selector) if step.selector else ()
    nodes = list(dict.fromkeys((*step.nodes, *matching)))
    if not nodes:
        raise InputError("say which nodes fail: by name, or by label, such as zone=eu-1a")
    return _disrupted(answers.fail(cluster, nodes, answers.DisruptionSettings(**subject.options, tie_break="first")))


def _disrupted(found: answers.Disruption) -> tuple[list[str], Cluster]:
    return [each.alone for each in sentences(found)], found.cluster


@_do.register
def _add_nodes(step: questions.AddNodes, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    checked(cluster, [step.like])
    like = cluster.node(step.like)
    fresh = replace(like, spec=replace(like.spec, unschedulable=False, taints=_own_taints(like)))
    added = add_nodes(cluster, fresh, step.count)
    return [f"{counted(len(added), 'node')} like {step.like} added: {', '.join(added[:6])}."], cluster


def _own_taints(node: Node) -> list[Any]:
    """The taints that a new node of this kind starts with, without those of its current state."""
    return [taint for taint in node.spec.taints if not taint.key.startswith("node.kubernetes.io/")]


@_do.register
def _scale(step: questions.Scale, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    namespace, _, name = step.workload.partition("/")
    waiting = [pod for pod in cluster.pending.values() if pod.namespace == namespace and workload_of(pod) == name]
    running = [pod for pod, _ in cluster.placed() if pod.namespace == namespace and workload_of(pod) == name]
    pods = [*running, *waiting]
    if not pods:
        raise InputError(f"workload {step.workload!r} has no pods in the cluster; it is namespace/Kind/name")
    for pod in pods[step.replicas :]:
        cluster.end(pod)
    missing = max(step.replicas - len(pods), 0)
    template = replace(pods[0], metadata=replace(pods[0].metadata, name=name.rpartition("/")[2]))
    for _, pod in islice(answers.pods_of([template], [1], cluster), missing):
        cluster.add(pod)
    return [f"{step.workload} goes from {counted(len(pods), 'pod')} to {step.replicas:,}."], cluster


@_do.register
def _apply(step: questions.Apply, cluster: Cluster, subject: Subject) -> tuple[list[str], Cluster]:
    objects = expand_workloads(load(manifests(step.objects, "the pasted objects")))
    for item in objects:
        if isinstance(item, Pod) and item.spec.node_name and item.spec.node_name not in cluster.rows:
            raise InputError(f"pod {item.key} is bound to node {item.spec.node_name!r}, which is not in the cluster")
        cluster.update(item)
    return [f"{counted(len(objects), 'object')} applied: {_kinds(objects)}."], cluster


def _kinds(objects: Iterable[object]) -> str:
    kinds: dict[str, int] = {}
    for item in objects:
        kinds[type(item).__name__] = kinds.get(type(item).__name__, 0) + 1
    return ", ".join(f"{count} {kind}" for kind, count in kinds.items())


def tiles(cluster: Cluster, group: str, before: Cluster | None = None) -> dict[str, Any]:
    """Every node by columns: its name, group, resources and pods; `before` shows which nodes are new or gone."""
    names = sorted(cluster.rows)
    rows = [cluster.rows[name] for name in names]
    columns = cluster.columns
    values = [cluster.node(name).metadata.labels.get(group, "") for name in names]
    known = set(cluster.rows if before is None else before.rows)
    resources = [
        {
            "resource": resource,
            "allocatable": columns.allocatable[place, rows].tolist(),
            "requested": columns.requested[place, rows].tolist(),
        }
        for place, resource in enumerate(columns.resources.values)
        if place < len(columns.allocatable) and columns.allocatable[place, rows].any()
    ]
    return {
        "group": group,
        "nodes": names,
        "groups": values,
        "unschedulable": _places(cluster.node(name).spec.unschedulable for name in names),
        "tainted": _places(bool(cluster.node(name).spec.taints) for name in names),
        "new": _places(name not in known for name in names),
        "gone": sorted(known.difference(names)),
        "pods": [len(cluster.pods_on(row)) for row in rows],
        "resources": resources,
    }


def _places(flags: Iterable[bool]) -> list[int]:
    return [place for place, flag in enumerate(flags) if flag]


MOST_KEPT_SCORES = 40_000_000
"""The maximum number of scores kept, one byte each: a pod has one per node and plugin."""
MOST_LISTED_MOVES = 100


class _Scores(NamedTuple):
    """One pod's scores on the rows that fit it, with today's weights."""

    rows: Ints
    plugins: Sequence[tuple[str, int]]
    """Each plugin with its weight."""
    normalised: NDArray[np.int8]
    """[plugin, row]"""
    totals: Ints
    best: Ints
    """The rows that share the highest total."""

    def best_with(self, weights: Mapping[str, int]) -> Ints:
        """The rows that share the highest total with these weights, and today's for the others."""
        totals = self.totals
        for (plugin, today), scores in zip(self.plugins, self.normalised, strict=True):
            more = weights.get(plugin, today) - today
            if more:
                totals = totals + np.multiply(scores, more, dtype=np.int64)
        return self.best if totals is self.totals else self.rows[totals == totals.max()]


NO_SCORES = _Scores(NO_ROWS, (), np.zeros((0, 0), dtype=np.int8), NO_ROWS, NO_ROWS)


@dataclass(slots=True)
class ScoredPods:
    """The pods of a cluster in random order, each decided by one scheduler when it is first needed."""

    scheduler: Scheduler
    pods: Sequence[Pod]
    of: int
    """How many pods the scheduler decides in all."""
    scores: list[_Scores] = field(default_factory=list)

    def decide_more(self, until: float, most: int) -> None:
        """Decide pods until a time, or until there are `most`."""
        while len(self.scores) < min(most, len(self.pods)) and (monotonic() < until or not self.scores):
            self.scores.append(self._decide(self.pods[len(self.scores)]))

    def _decide(self, pod: Pod) -> _Scores:
        """The scores of a pod as if it were not running yet."""
        try:
            with self.scheduler.cluster.without(pod) as unbound:
                found = self.scheduler.score(unbound)
        except PodiumError:
            # A pod that cannot be decided has no node, whatever the weights.
            return NO_SCORES
        plugins = [(scores.plugin, scores.weight) for scores in found.scores]
        kept = np.array([scores.normalized for scores in found.scores], dtype=np.int8)
        return _Scores(found.rows, plugins, kept, found.totals, found.best)


def sample_of_pods(scheduler: Scheduler) -> tuple[list[Pod], int]:
    """A random sample of the pods that the scheduler decides, as large as scores can be kept, and their total
    number.
    """
    cluster = scheduler.cluster
    running = (pod for pod, _ in cluster.placed() if not belongs_to_node(pod) and not pod.finished)
    pods = [pod for pod in (*cluster.pending.values(), *running) if pod.spec.scheduler_name in scheduler.frameworks]
    Random(0).shuffle(pods)
    plugins = max((len(framework.score) for framework in scheduler.frameworks.values()), default=1)
    return pods[: max(MOST_KEPT_SCORES // max(cluster.node_count * plugins, 1), 20)], len(pods)


def moved_pods(
    today: ScoredPods, other: ScoredPods, weights: Mapping[str, int], *, seconds: float = 0.04
) -> dict[str, Any]:
    """How many of the examined pods would lose today's node, of kind MovedPods.

    A pod moves if none of the nodes that are best today is among the best with the other weights. More pods are decided
    for `seconds`, so each request examines more.
    """
    start, cluster = monotonic(), today.scheduler.cluster
    today.decide_more(start + (seconds if other is today else seconds / 2), len(today.pods))
    other.decide_more(start + seconds, len(today.scores))
    count, moves = 0, []
    is_best = np.zeros(len(cluster.names), dtype=np.bool_)
    for pod, before, scores in zip(today.pods, today.scores, other.scores, strict=False):
        after = scores.best_with(weights)
        is_best[before.best] = True
        if (len(before.best) or len(after)) and not is_best[after].any():
            moves.append((pod.key, before.best, after))
        is_best[before.best] = False
        count += 1
    return {
        "apiVersion": API_VERSION,
        "kind": "MovedPods",
        "pods": today.of,
        "sample": len(today.pods),
        "lookedAt": count,
        "moved": len(moves),
        "moves": [
            {"pod": pod, "before": _first_name(cluster, before), "after": _first_name(cluster, after)}
            for pod, before, after in sorted(moves, key=lambda move: move[0])[:MOST_LISTED_MOVES]
        ],
    }


def _first_name(cluster: Cluster, rows: Ints) -> str | None:
    return min((cluster.names[row] for row in rows.tolist()), default=None)


PACKING = tuple(zip(SHAPE_AT, (0, 5, 10), strict=True))
"""The default shape for RequestedToCapacityRatio: the fuller the better."""


def with_settings(subject: Subject, settings: ScoreSettings, profile: str | None = None) -> dict[str, Any]:
    """The configuration document with changed settings, ready for --config.

    kube-scheduler treats a weight of 0 as the default, so a plugin with weight 0 is disabled at Score instead.
    """
    if subject.release.is_old:
        raise InputError(f"weights can be changed for v1.29 and later, not for {subject.release.name}")
    space = ConfigurationSpace(subject.document, subject.registry, profile, rules=subject.release.rules)
    today = space.today
    for plugin in settings.weights:
        if plugin not in today.weights:
            raise InputError(f"plugin {plugin!r} does not score in profile {space.profile!r}: it has no weight")
    silent = {plugin for plugin, weight in settings.weights.items() if not weight and plugin not in settings.disabled}
    weights = {plugin: settings.weights.get(plugin) or weight for plugin, weight in today.weights.items()}
    wanted = replace_data(today, weights=weights)
    if settings.strategy is not None:
        shape = (today.shape or PACKING) if has_shape(settings.strategy) else None
        wanted = replace_data(wanted, strategy=settings.strategy, shape=shape)
    document = space.document(wanted)
    if silent or settings.disabled:
        profiles = document["profiles"] = list(document.get("profiles") or [{}])
        names = [str((each or {}).get("schedulerName") or DEFAULT_SCHEDULER_NAME) for each in profiles]
        place = names.index(space.profile)
        profiles[place] = _without(_without(profiles[place] or {}, "score", silent), MULTI_POINT, settings.disabled)
    return document


def _without(profile: dict[str, Any], point: str, plugins: Iterable[str]) -> dict[str, Any]:
    """The profile with plugins disabled at a point, or at all points for multiPoint; they are removed from
    `enabled`, too.
    """
    gone = sorted(set(plugins))
    if not gone:
        return profile
    sets = dict(profile.get("plugins") or {})
    for name in [*sets] if point == MULTI_POINT else [point]:
        if name in sets:
            kept = [each for each in (sets[name] or {}).get("enabled") or () if each.get("name") not in gone]
            sets[name] = {**(sets[name] or {}), "enabled": kept}
    chosen = dict(sets.get(point) or {})
    chosen["disabled"] = [*(chosen.get("disabled") or ()), *({"name": name} for name in gone)]
    sets[point] = chosen
    return {**profile, "plugins": sets}
