"""Applies a scenario to the objects of a cluster: what each step does, and what differs afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

from msgspec.structs import replace as with_fields

from podium.answers.disruption import Disruption, DisruptionSettings, Fate, drain, fail
from podium.answers.node_mixes import add_nodes
from podium.answers.scenario import (
    AddNodes,
    Apply,
    Cordon,
    DrainStep,
    Evict,
    FailStep,
    Place,
    Scale,
    Scenario,
    Step,
    Uncordon,
    documents_of,
    one_document,
)
from podium.answers.score_settings import with_settings
from podium.answers.simulation import Placement, Simulation, simulate
from podium.cluster import Cluster
from podium.cluster_input import ClusterInput
from podium.config import KubeSchedulerConfiguration
from podium.engine.release import AnyRelease, release_of
from podium.engine.scheduler import SchedulerOptions
from podium.errors import InputError
from podium.framework import Registry
from podium.lookup import find_nodes, with_priority_and_profile
from podium.manifests import Objects, load
from podium.manifests.apply import REPLICAS, Applied, apply
from podium.model import Node, Object, Pod
from podium.model.objects import SCALED
from podium.model.pod import belongs_to_node, is_of_daemon_set, is_recreated
from podium.model.selectors import cordoned, uncordoned
from podium.workloads import expand_workloads, workload_of
from podium.workloads.claims import with_claims
from podium.workloads.daemon_sets import target_node
from podium.workloads.owners import recreated
from podium.workloads.replicas import pods_of
from podium.workloads.scaling import first_to_go, newest_time, scaled_workload


@dataclass(frozen=True, slots=True)
class Effect:
    """What one step did."""

    step: Step
    nodes: tuple[str, ...] = ()
    """The nodes that it cordoned, uncordoned or added."""
    disruption: Disruption | None = None
    """For a drain or a failure: what happened to every pod."""
    pods: tuple[int, int] | None = None
    """For a workload that is scaled: its pods before and after; for pending pods that are placed: how many got a
    node, and how many still wait.
    """
    objects: Mapping[str, int] | None = None
    """For objects that are applied: how many of each kind."""


@dataclass(frozen=True, kw_only=True)
class AppliedScenario:
    """The objects of a cluster in a scenario, and what decides its pods there."""

    scenario: Scenario
    objects: Objects
    """The objects after all steps, including the pods that workloads lack."""
    document: Mapping[str, Any] | None
    """The configuration as written, with the scenario's weights; None for the default."""
    options: SchedulerOptions
    effects: tuple[Effect, ...]


def apply_scenario(
    scenario: Scenario,
    objects: Objects,
    document: Mapping[str, Any] | None,
    options: SchedulerOptions,
    *,
    cluster: Cluster | None = None,
) -> AppliedScenario:
    """The objects after the steps of a scenario, and the configuration and release it decides with.

    `document` is the configuration as written, and `options` has it decoded. `cluster` is the cluster of the objects,
    if there is one already; it stays as it is. Steps decide with the scenario's own release, configuration and
    weights; ties go to the smallest name, so that no pod moves by chance.
    """
    document, options = _decided_by(scenario, document, options)
    effects: list[Effect] = []
    if scenario.steps:
        changing = _Changing(objects, cluster, options)
        for place, step in enumerate(scenario.steps, 1):
            try:
                effects.append(changing.carry_out(step))
            except InputError as error:
                raise InputError(f"step {place}, {step.words}: {error}") from None
        objects = changing.objects
    return AppliedScenario(
        scenario=scenario, objects=objects, document=document, options=options, effects=tuple(effects)
    )


def _decided_by(
    scenario: Scenario, document: Mapping[str, Any] | None, options: SchedulerOptions
) -> tuple[Mapping[str, Any] | None, SchedulerOptions]:
    """The configuration as written and the options of a scenario."""
    before = release_of(options.release)
    release = before if scenario.release is None else release_of(scenario.release)
    if scenario.config is not None:
        document = one_document(scenario.config, "config of the scenario")
    elif document is not None and release.is_old != before.is_old:
        document = None
    if scenario.settings:
        document = with_settings(document, scenario.settings, options.registry, release)
    elif release is before and scenario.config is None:
        return document, options
    config = configured(document, release, options.registry, "the configuration of the scenario")
    return document, replace(options, config=config, release=release, options=None)


def configured(
    document: Mapping[str, Any] | None, release: AnyRelease, registry: Registry, where: str
) -> KubeSchedulerConfiguration | None:
    """A configuration as a release reads it; None for the default."""
    if document is None:
        return None
    try:
        return release_of(release).set_up(document, registry=registry).config
    except InputError as error:
        raise error.at(where) from None


class _Changing:
    """The objects of a cluster while steps change them."""

    def __init__(self, objects: Objects, cluster: Cluster | None, options: SchedulerOptions) -> None:
        self.objects = _settled(objects)
        # A cluster of the very same objects needs not be built again.
        self._cluster = cluster if cluster is not None and self.objects is objects else None
        self._settings = DisruptionSettings(**{**vars(options), "tie_break": "first"})

    @property
    def cluster(self) -> Cluster:
        """The cluster of the objects; nobody changes it."""
        if self._cluster is None:
            self._cluster = Cluster.from_objects(self.objects)
        return self._cluster

    def _become(self, objects: Iterable[Object], cluster: Cluster | None = None) -> None:
        self.objects, self._cluster = self.objects.replaced(objects), cluster

    def carry_out(self, step: Step) -> Effect:
        """Change the objects as a step says; InputError if that cannot be done."""
        match step:
            case Cordon():
                return self._edit_nodes(step, step.nodes, cordoned)
            case Uncordon():
                return self._edit_nodes(step, step.nodes, uncordoned)
            case DrainStep():
                return self._disrupt(step, drain(self.cluster, find_nodes(self.cluster, step.nodes), self._settings))
            case FailStep():
                return self._disrupt(step, fail(self.cluster, self._failing(step), self._settings))
            case AddNodes():
                return self._add_nodes(step)
            case Scale():
                return self._scale(step)
            case Apply():
                return self._apply(step)
            case Evict():
                return self._evict(step)
            case Place():
                found = simulate(self.cluster, config=self._settings)
                self._become(objects_of(found.cluster, self.objects), found.cluster)
                return Effect(step, pods=(len(found.placed), len(found.pending)))

    def _edit_nodes(self, step: Step, wanted: Iterable[str], edit: Callable[[Node], Node]) -> Effect:
        names = find_nodes(self.cluster, wanted)
        cluster, chosen = self.cluster.fork(), frozenset(names)
        for name in names:
            cluster.update(edit(cluster.node(name)))
        changed = (edit(obj) if isinstance(obj, Node) and obj.name in chosen else obj for obj in self.objects)
        self._become(changed, cluster)
        return Effect(step, nodes=tuple(names))

    def _failing(self, step: FailStep) -> list[str]:
        selectors = [step.selector] if step.selector else []
        if not step.nodes and not selectors:
            raise InputError("say which nodes fail: by name, or by label, such as zone=eu-1a")
        return find_nodes(self.cluster, step.nodes, selectors)

    def _disrupt(self, step: Step, found: Disruption) -> Effect:
        # The answer leaves pods without a node out of its cluster; here they wait.
        for each in found.of(Fate.PENDING):
            before = self.cluster.find_pod(each.pod)
            has_node = each.node in found.cluster.rows
            if before is not None and (has_node or not belongs_to_node(before[0])):
                found.cluster.add(with_claims(recreated(before[0]), found.cluster))
        self._become(objects_of(found.cluster, self.objects), found.cluster)
        return Effect(step, nodes=found.nodes, disruption=found)

    def _add_nodes(self, step: AddNodes) -> Effect:
        (name,) = find_nodes(self.cluster, [step.like])
        like, cluster = self.cluster.node(name), self.cluster.fork()
        # A new node has the taints of its kind, not those of another node's condition.
        taints = [taint for taint in like.spec.taints if not taint.key.startswith("node.kubernetes.io/")]
        fresh = with_fields(like, spec=with_fields(like.spec, unschedulable=False, taints=taints))
        names = add_nodes(cluster, fresh, step.count)
        grown = self.objects.replaced([*self.objects, *map(cluster.node, names)])
        self._become(_with_daemons_bound(expand_workloads(grown), frozenset(names)))
        return Effect(step, nodes=tuple(names))

    def _scale(self, step: Scale) -> Effect:
        namespace, _, workload = step.workload.partition("/")
        kind, _, name = workload.rpartition("/")
        pods = [
            pod
            for pod in self.objects.of(Pod)
            if pod.namespace == namespace and workload_of(pod) == workload and not pod.finished
        ]
        before = next((obj for obj in self.objects if obj.identity == (kind, namespace, name)), None)
        if isinstance(before, SCALED):
            after = scaled_workload(before, step.replicas)
            changed = self.objects.replaced(
                (after if obj is before else obj for obj in self.objects),
                applied=[Applied(before, after, (REPLICAS,))],
            )
            self._become(_settled(changed))
        elif pods:
            self._become(_with_pods(self.objects, pods, step.replicas, name))
        else:
            raise InputError(f"workload {step.workload!r} has no pods in the cluster; it is namespace/Kind/name")
        return Effect(step, pods=(len(pods), step.replicas))

    def _apply(self, step: Apply) -> Effect:
        known = {obj.identity: obj for obj in self.objects}
        applied, kinds = list[Applied](), Counter[str]()
        for document in documents_of(step.objects, "the objects"):
            for item in _items(document):
                for after in load([item]):
                    kinds[type(after).__name__] += 1
                    before = known.get(after.identity)
                    if isinstance(after, Pod):
                        self._check_node(after)
                        after = with_priority_and_profile(after, self.objects, None)
                    if before is not None:
                        after, paths = apply(before, after, None, item)
                        applied.append(Applied(before, after, paths))
                    known[after.identity] = after
        changed = self.objects.replaced(known.values(), applied=applied)
        self._become(_settled(changed))
        return Effect(step, objects=kinds)

    def _check_node(self, pod: Pod) -> None:
        if pod.spec.node_name and pod.spec.node_name not in self.cluster.rows:
            raise InputError(f"pod {pod.key} is bound to node {pod.spec.node_name!r}, which is not in the cluster")

    def _evict(self, step: Evict) -> Effect:
        cluster = self.cluster.fork()
        for key in step.pods:
            taken = cluster.take_off(key)
            if taken is None:
                raise InputError(f"pod {key!r} runs on no node of the cluster; it is namespace/name")
            if is_recreated(taken.pod):
                cluster.add(recreated(taken.pod))
        self._become(objects_of(cluster, self.objects), cluster)
        return Effect(step)


def _settled(objects: Objects) -> Objects:
    """The objects once controllers have done their part: changes carried out, and missing pods created."""
    settled = ClusterInput(objects).expanded
    return settled.replaced(settled, applied=()) if settled.applied else settled


def _items(document: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The objects of a List, or the object itself."""
    items = document.get("items")
    if isinstance(items, list) and str(document.get("kind", "")).endswith("List"):
        yield from (item for item in items if isinstance(item, Mapping))
    else:
        yield document


def _with_daemons_bound(objects: Objects, nodes: frozenset[str]) -> Iterator[Object]:
    """The objects, where the daemon pods that are meant for new nodes run there: nothing else is on these nodes."""
    for obj in objects:
        is_daemon = isinstance(obj, Pod) and not obj.spec.node_name and is_of_daemon_set(obj)
        if isinstance(obj, Pod) and is_daemon and (node := target_node(obj)) in nodes:
            yield with_fields(obj, spec=with_fields(obj.spec, node_name=node))
        else:
            yield obj


def _with_pods(objects: Objects, pods: list[Pod], replicas: int, name: str) -> Iterator[Object]:
    """The objects, where a workload that is not among them itself has a number of pods."""
    gone = {pod.key for pod in first_to_go(pods, pods, len(pods) - replicas, newest_time(pods))}
    yield from (obj for obj in objects if not (isinstance(obj, Pod) and obj.key in gone))
    if replicas > len(pods):
        template = with_fields(pods[0], metadata=with_fields(pods[0].metadata, name=name))
        made = pods_of([template], [1], Cluster.from_objects(objects))
        yield from (pod for _, pod in islice(made, replicas - len(pods)))


def objects_of(cluster: Cluster, objects: Objects) -> list[Object]:
    """The objects as they are in a cluster that was built from them and changed since; new ones come last."""
    placed = {pod.key: (pod, node) for pod, node in cluster.placed()}
    lost = {pod.key for pod in cluster.stranded}

    def now(obj: Object) -> Object | None:
        if isinstance(obj, Node):
            return cluster.node(obj.name) if obj.name in cluster.rows else None
        if not isinstance(obj, Pod):
            return cluster.store.of(type(obj)).get(obj.name, obj.namespace)
        if obj.finished or obj.key in lost:
            return obj
        if obj.key in placed:
            return _bound(*placed[obj.key])
        return cluster.pending.get(obj.key)

    known = {obj.identity for obj in objects}
    nodes = (cluster.node(name) for name in cluster.rows)
    running = (_bound(pod, node) for pod, node in placed.values())
    everything = (*nodes, *running, *cluster.pending.values(), *cluster.store)
    new = [obj for obj in everything if obj.identity not in known]
    return [*(after for obj in objects if (after := now(obj)) is not None), *new]


def _bound(pod: Pod, node: str) -> Pod:
    return pod if pod.spec.node_name == node else with_fields(pod, spec=with_fields(pod.spec, node_name=node))


@dataclass(frozen=True, slots=True)
class Moved:
    """A pod that is elsewhere than before."""

    pod: str
    before: str | None
    """Its node before; None if it waited, or was not there."""
    after: str | None
    """Its node afterwards; None if it waits, or is gone."""
    is_new: bool = False
    is_gone: bool = False

    def to_dict(self) -> dict[str, Any]:
        return {
            "pod": self.pod,
            "before": self.before,
            "after": self.after,
            "new": self.is_new,
            "gone": self.is_gone,
        }


@dataclass(frozen=True, slots=True)
class Differences:
    """What differs between two clusters: nodes that came, went or changed, and pods that are elsewhere."""

    new_nodes: tuple[str, ...]
    gone_nodes: tuple[str, ...]
    changed_nodes: tuple[str, ...]
    """Nodes that are in both, and differ in their pods, taints, labels or whether they are cordoned."""
    moved: tuple[Moved, ...]
    """Ordered by name."""


def differences(before: Cluster, after: Cluster) -> Differences:
    """What differs in the second cluster from the first."""
    was, now = ({**dict.fromkeys(each.pending), **_nodes_of_pods(each)} for each in (before, after))
    keys = sorted(was.keys() | now.keys())
    moved = [
        Moved(key, was.get(key), now.get(key), is_new=key not in was, is_gone=key not in now)
        for key in keys
        if key not in was or key not in now or was[key] != now[key]
    ]
    touched = {node for each in moved for node in (each.before, each.after) if node is not None}
    both = before.rows.keys() & after.rows.keys()
    edited = {name for name in both if before.node(name) != after.node(name)}
    return Differences(
        tuple(sorted(after.rows.keys() - both)),
        tuple(sorted(before.rows.keys() - both)),
        tuple(sorted((touched | edited) & both)),
        tuple(moved),
    )


def _nodes_of_pods(cluster: Cluster) -> dict[str, str]:
    return {pod.key: node for pod, node in cluster.placed()}


@dataclass(frozen=True, slots=True)
class PendingChanges:
    """How a scenario changes where pending pods go; each pod with its node afterwards, or why it has none."""

    fits_now: tuple[Placement, ...]
    """Pods that fitted nowhere before."""
    fits_no_longer: tuple[Placement, ...]
    """Pods that had a node to go to before."""
    new_placed: tuple[Placement, ...]
    """Pods that did not wait before, and get a node."""
    new_waiting: tuple[Placement, ...]
    """Pods that did not wait before, and fit nowhere."""
    placed_as_before: int
    """How many pods get a node before and after, which may be another one."""
    waiting_as_before: int

    @property
    def harmless(self) -> bool:
        """Whether no pod waits because of the scenario."""
        return not self.fits_no_longer and not self.new_waiting


def pending_changes(before: Simulation, after: Simulation) -> PendingChanges:
    """How the pending pods fare in a scenario, compared with before."""
    was = {each.pod.key: each.node for each in before.placements}
    groups: dict[tuple[bool, bool, bool], list[Placement]] = {}
    for each in after.placements:
        key = each.pod.key
        if each.preempted_by and each.node is not None:
            # It made room, and finds another node.
            continue
        groups.setdefault((key in was, was.get(key) is not None, each.node is not None), []).append(each)

    def group(*flags: bool) -> tuple[Placement, ...]:
        return tuple(groups.get((flags[0], flags[1], flags[2]), ()))

    return PendingChanges(
        fits_now=group(True, False, True),
        fits_no_longer=group(True, True, False),
        new_placed=group(False, False, True),
        new_waiting=group(False, False, False),
        placed_as_before=len(group(True, True, True)),
        waiting_as_before=len(group(True, False, False)),
    )


@dataclass(frozen=True, slots=True)
class WhatIf:
    """What a scenario does to a cluster."""

    scenario: Scenario
    effects: tuple[Effect, ...]
    differences: Differences
    """Of the clusters before and after the steps; pending pods wait in both."""
    simulation: Simulation
    """Where the pending pods go afterwards."""
    pending: PendingChanges

    @property
    def harmless(self) -> bool:
        """Whether no pod loses its node for good, and none waits because of the scenario."""
        kept = all(each.disruption is None or each.disruption.harmless for each in self.effects)
        return kept and self.pending.harmless


def what_if(before: Cluster, today: SchedulerOptions, after: Cluster, applied: AppliedScenario) -> WhatIf:
    """Compare a cluster with itself in a scenario; `after` is the cluster of the applied scenario's objects."""
    first = simulate(before, config=SchedulerOptions.steady(today), messages=False)
    second = simulate(after, config=SchedulerOptions.steady(applied.options))
    return WhatIf(applied.scenario, applied.effects, differences(before, after), second, pending_changes(first, second))
