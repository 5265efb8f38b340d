"""Runs one plugin as the engine does and checks every returned value; has the small clusters and pods for that."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import FunctionType
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import ROW_ASPECTS, Ints
from podium.errors import PluginError
from podium.framework.fast_paths import ByNodeLabels
from podium.framework.plugin import (
    MAX_NODE_SCORE,
    MIN_NODE_SCORE,
    CycleState,
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    explains_normalizing,
    explains_score,
)
from podium.framework.status import SUCCESS, Code, PreFilterResult, Status, Verdict, checked_numbers, checked_verdict
from podium.model import (
    Affinity,
    Container,
    ContainerImage,
    ContainerPort,
    LabelSelector,
    Namespace,
    Node,
    NodeSpec,
    NodeStatus,
    Object,
    ObjectMeta,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    ResourceRequirements,
    Service,
    Taint,
    Toleration,
    TopologySpreadConstraint,
)
from podium.model.objects import HOSTNAME, ZONE

T = TypeVar("T")


def call(plugin: str, what: str, function: Callable[..., T], *args: Any) -> T:
    """Call a function; whatever it raises becomes a PluginError."""
    try:
        return function(*args)
    except Exception as error:  # a third party's code may fail in any way; its author needs to know where and how
        raise PluginError(plugin, f"fails in {what}: {type(error).__name__}: {error}") from error


class PluginResults(NamedTuple):
    """What a plugin returned for a pod; None for points that were not called. `names` are the nodes of the results."""

    names: tuple[str, ...]
    pre_filter: PreFilterResult | None = None
    statuses: tuple[Status, ...] | None = None
    pre_score: Status | None = None
    scores: tuple[int, ...] | None = None

    def of(self, places: Sequence[int], names: Sequence[str]) -> PluginResults:
        """The results for some of the nodes."""
        return self._replace(
            names=tuple(names),
            statuses=None if self.statuses is None else tuple(self.statuses[place] for place in places),
            scores=None if self.scores is None else tuple(self.scores[place] for place in places),
        )

    def merged(self, newer: PluginResults, names: Sequence[str]) -> PluginResults:
        """These results with newer ones for some nodes, in the order of `names`."""
        statuses = dict(zip(self.names, self.statuses or (), strict=False))
        scores = dict(zip(self.names, self.scores or (), strict=False))
        statuses.update(zip(newer.names, newer.statuses or (), strict=False))
        scores.update(zip(newer.names, newer.scores or (), strict=False))
        return self._replace(
            names=tuple(names),
            statuses=None if self.statuses is None else tuple(statuses[name] for name in names),
            scores=None if self.scores is None else tuple(scores[name] for name in names),
        )

    def difference(self, other: PluginResults, names: Sequence[str]) -> str:
        """Describe the first difference; empty if there is none. Points that were not called are ignored."""
        for what in ("pre_filter", "pre_score"):
            mine, theirs = getattr(self, what), getattr(other, what)
            if mine != theirs:
                return f"{what} returns {theirs} instead of {mine}"
        for what, mine, theirs in (
            ("filter", self.statuses, other.statuses),
            ("score", self.scores, other.scores),
        ):
            for name, first, second in zip(names, mine or (), theirs or (), strict=False):
                if first != second:
                    return f"{what} gives node {name} {_shown(second)} instead of {_shown(first)}"
        return ""


def _shown(answer: object) -> str:
    return f"{answer.code.value} {list(answer.reasons)}" if isinstance(answer, Status) else str(answer)


class PluginRun:
    """Runs one plugin on one pod. PreFilter and PreScore are called once, and the cycle state is kept."""

    def __init__(self, plugin: Plugin, pod: Pod, cluster: Cluster, *, one_at_a_time: bool = False) -> None:
        self.pod = pod
        self._plugin, self._cluster, self._one_at_a_time = plugin, cluster, one_at_a_time
        self._state = CycleState(cluster.infos.of(pod))
        self._first: PluginResults | None = None

    def results(self) -> PluginResults:
        """The results for all nodes."""
        return self.results_for(self._cluster.nodes.rows)

    def results_for(self, rows: Ints) -> PluginResults:
        """The results for the nodes of some rows."""
        first, nodes = self._first, Nodes(self._cluster, rows)
        guard = _ReadOnlyGuard(self._plugin.name, self.pod, self._cluster)
        pre_filter = self._pre_filter() if first is None else first.pre_filter
        guard.check("pre_filter")
        is_filtered = pre_filter is None or pre_filter.status.code in (Code.SUCCESS, Code.UNSCHEDULABLE)
        statuses = self._filter(nodes) if is_filtered else None
        guard.check("filter")
        pre_score = self._pre_score() if first is None else first.pre_score
        guard.check("pre_score")
        scores = self._score(nodes) if pre_score in (None, SUCCESS) else None
        guard.check("score")
        results = PluginResults(tuple(nodes.names), pre_filter, statuses, pre_score, scores)
        self._first = first or results
        return results

    def by_labels(self, results: PluginResults) -> Iterator[tuple[str, tuple[str, ...], Sequence[Any]]]:
        """Per extension point, the labels that the plugin declares its results depend on, and the results per node."""
        plugin = self._plugin
        if not isinstance(plugin, ByNodeLabels):
            return
        if results.statuses is not None:
            labels = call(plugin.name, "filter_labels", plugin.filter_labels, self._state)
            if labels is not None:
                yield "filter", labels, results.statuses
        if results.scores is not None:
            labels = call(plugin.name, "score_labels", plugin.score_labels, self._state)
            if labels is not None:
                yield "score", labels, results.scores

    def normalized(self, scores: Ints, rows: Ints) -> list[int]:
        """The scores after `normalize`; a PluginError unless they are in 0..100."""
        plugin = self._plugin
        assert isinstance(plugin, ScorePlugin)
        found = scores
        if plugin.normalizes:
            nodes, guard = Nodes(self._cluster, rows), _ReadOnlyGuard(plugin.name, self.pod, self._cluster)
            found = call(plugin.name, "normalize", plugin.normalize, self._state, self.pod, scores.copy(), nodes)
            guard.check("normalize")
        numbers: list[int] = checked_numbers(self._plugin.name, "normalize", found, len(scores)).tolist()
        for number in numbers:
            if not MIN_NODE_SCORE <= number <= MAX_NODE_SCORE:
                raise PluginError(
                    plugin.name,
                    f"returns an invalid score {number}: after normalizing, scores are in "
                    f"{MIN_NODE_SCORE}..{MAX_NODE_SCORE}",
                )
        return numbers

    def score_lines(self, place: int) -> Sequence[str]:
        """What `score_lines` says of a node; empty if it says nothing, or nothing about this plugin's score."""
        plugin = self._plugin
        if not isinstance(plugin, ScorePlugin) or not explains_score(plugin):
            return ()
        node = NodeInfo(self._cluster, int(self._cluster.nodes.rows[place]))
        return self._checked_lines("score_lines", plugin.score_lines, self._state, self.pod, node)

    def normalize_lines(self, scores: Ints, place: int) -> Sequence[str]:
        """What `normalize_lines` says of a node, given the scores of all nodes."""
        plugin = self._plugin
        if not isinstance(plugin, ScorePlugin) or not plugin.normalizes or not explains_normalizing(plugin):
            return ()
        about = scores.copy(), self._cluster.nodes, place
        return self._checked_lines("normalize_lines", plugin.normalize_lines, self._state, self.pod, *about)

    def _checked_lines(self, what: str, method: Callable[..., Any], *args: Any) -> Sequence[str]:
        name, guard = self._plugin.name, _ReadOnlyGuard(self._plugin.name, self.pod, self._cluster)
        lines: Any = call(name, what, method, *args)
        guard.check(what)
        if isinstance(lines, str) or not isinstance(lines, Sequence) or {type(each) for each in lines} - {str}:
            raise PluginError(name, f"returns {lines!r} from {what}: return a list of lines")
        return lines

    def _pre_filter(self) -> PreFilterResult | None:
        plugin = self._plugin
        if not isinstance(plugin, PreFilterPlugin):
            return None
        found = call(plugin.name, "pre_filter", plugin.pre_filter, self._state, self.pod, self._cluster.nodes)
        if not isinstance(found, PreFilterResult):
            raise PluginError(plugin.name, f"returns {found!r} from pre_filter: return a PreFilterResult")
        self._check_status("pre_filter", found.status, skips=True, rejects=True)
        if not (found.node_names is None or isinstance(found.node_names, frozenset)):
            raise PluginError(plugin.name, "returns node_names from pre_filter that are no frozenset of names")
        return found

    def _filter(self, nodes: Nodes) -> tuple[Status, ...] | None:
        plugin = self._plugin
        if not isinstance(plugin, FilterPlugin):
            return None
        if self._one_at_a_time or type(plugin).filter is FilterPlugin.filter:
            return tuple(self._filter_one(plugin, nodes))
        verdict = call(plugin.name, "filter", plugin.filter, self._state, self.pod, nodes)
        codes: list[int] = checked_verdict(plugin.name, verdict, len(nodes)).codes.tolist()
        described = {code: self._describe(verdict, code) for code in set(codes) - {0}}
        return tuple(described.get(code, SUCCESS) for code in codes)

    def _filter_one(self, plugin: FilterPlugin, nodes: Nodes) -> Iterator[Status]:
        for node in nodes:
            status = call(plugin.name, "filter_node", plugin.filter_node, self._state, self.pod, node)
            self._check_status("filter_node", status, rejects=True)
            yield status

    def _describe(self, verdict: Verdict, code: int) -> Status:
        status = call(self._plugin.name, f"describing its code {code}", verdict.describe, code)
        self._check_status("filter", status, rejects=True)
        if (status.code is Code.ERROR) != (code < 0) or status == SUCCESS:
            raise PluginError(
                self._plugin.name,
                f"gives code {code} to {status.code.value}: 0 is for nodes that pass, negative codes are for errors",
            )
        return status

    def _pre_score(self) -> Status | None:
        plugin = self._plugin
        if not isinstance(plugin, PreScorePlugin):
            return None
        status = call(plugin.name, "pre_score", plugin.pre_score, self._state, self.pod, self._cluster.nodes)
        self._check_status("pre_score", status, skips=True)
        return status

    def _score(self, nodes: Nodes) -> tuple[int, ...] | None:
        plugin = self._plugin
        if not isinstance(plugin, ScorePlugin):
            return None
        if self._one_at_a_time or type(plugin).score is ScorePlugin.score:
            scores = [call(plugin.name, "score_node", plugin.score_node, self._state, self.pod, node) for node in nodes]
            wrong = next((score for score in scores if isinstance(score, bool) or not isinstance(score, int)), None)
            if wrong is not None:
                raise PluginError(plugin.name, f"returns {wrong!r} from score_node: a score is an int")
            return tuple(scores)
        found = call(plugin.name, "score", plugin.score, self._state, self.pod, nodes)
        return tuple(checked_numbers(plugin.name, "score", found, len(nodes)).tolist())

    def _check_status(self, point: str, status: object, *, skips: bool = False, rejects: bool = False) -> None:
        name = self._plugin.name
        if not isinstance(status, Status) or not isinstance(status.reasons, tuple):
            raise PluginError(name, f"returns {status!r} from {point}: return a Status")
        allowed = [Code.SUCCESS, Code.ERROR]
        allowed += [Code.SKIP] * skips + [Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE] * rejects
        if status.code not in allowed:
            known = ", ".join(code.value for code in allowed)
            raise PluginError(name, f"returns {status.code.value} from {point}: allowed are {known}")
        if (status.code.rejects or status.code is Code.ERROR) and not all(status.reasons or ("",)):
            raise PluginError(name, f"returns {status.code.value} from {point} without a reason")


class _ReadOnlyGuard:
    """Detects that a plugin changes the pod or the cluster, which it may only read."""

    def __init__(self, plugin: str, pod: Pod, cluster: Cluster) -> None:
        self._plugin, self._pod, self._cluster = plugin, pod, cluster
        self._before = self._snapshot()

    def _snapshot(self) -> dict[str, Any]:
        cluster, columns = self._cluster, self._cluster.columns
        tables = ("alive", "allocatable", "requested", "non_zero", "taints", "unschedulable")
        return {
            "the pod": msgspec.json.encode(self._pod),
            "a node": msgspec.json.encode([cluster.node(name) for name in cluster.rows]),
            "the pods on nodes": sorted((pod.key, node) for pod, node in cluster.placed()),
            "an object": cluster.store.version,
            **{f"an array of nodes ({name})": getattr(columns, name)[..., : columns.size].tobytes() for name in tables},
            "an array of nodes (labels)": {
                key: column.codes[: columns.size].tobytes() for key, column in columns.labels.items()
            },
        }

    def check(self, point: str) -> None:
        """Raise a PluginError if anything changed since the last check."""
        now = self._snapshot()
        for what, before in self._before.items():
            after = now[what]
            if isinstance(before, dict):
                after = {key: after[key] for key in before}
            # Reading a resource for the first time adds a column; only the other columns are compared.
            grown = isinstance(before, bytes) and what.startswith("an array") and after[: len(before)] == before
            if after != before and not grown:
                raise PluginError(self._plugin, f"changes {what} in {point}: what it is given is to be read only")
        self._before = now


NUMBERS = ("0", "1", "2", "5", "40")
TAINTS: tuple[list[Taint], ...] = (
    [],
    [Taint(key="team", value="a", effect="NoSchedule")],
    [Taint(key="spot", effect="PreferNoSchedule")],
)
IMAGES: tuple[list[ContainerImage], ...] = ([], [ContainerImage(names=["app:latest"], size_bytes=700_000_000)])
SIZES: tuple[dict[str, str | int | float], ...] = (
    {"cpu": "4", "memory": "8Gi", "pods": "110"},
    {"cpu": "8", "memory": "8Gi", "pods": "110", "example.com/gpu": "2"},
    {"cpu": "2", "memory": "32Gi", "pods": "5", "ephemeral-storage": "20Gi"},
)
_LABEL_KEY = re.compile(r"([a-z0-9.-]+/)?[A-Za-z0-9]([-\w.]*[A-Za-z0-9])?", re.ASCII)


class ClusterChange(NamedTuple):
    """A change of a node or of the cluster, and the aspects it touches."""

    what: str
    aspects: Aspect
    node: str | None
    apply: Callable[[Cluster], None]


class Samples:
    """Nodes, pods and other objects to run a plugin on; the same every time for one plugin.

    Label keys that occur in the plugin's code are on some of the nodes and pods, with numbers as values. `objects` are
    added: nodes and placed pods to the cluster, pods without a node to the pods that the plugin is called for.
    """

    def __init__(self, plugin: type[Plugin], objects: Iterable[Object] = ()) -> None:
        self._random = random.Random(0)
        self._keys = sorted(_label_keys(plugin))
        given = list(objects)
        waiting = [item for item in given if isinstance(item, Pod) and not item.spec.node_name]
        self.objects = [*self._objects(), *(item for item in given if item not in waiting)]
        self.nodes = [item for item in self.objects if isinstance(item, Node)]
        self.pods = [*(_renamed(pod, f"asked-{number}") for number, pod in enumerate(self._pods())), *waiting]

    def cluster(self) -> Cluster:
        """The cluster; one of its rows is dead, its node was removed."""
        gone = Node(metadata=ObjectMeta(name="gone"))
        cluster = Cluster.from_objects([gone, *self.objects])
        cluster.remove(gone)
        return cluster

    def _objects(self) -> Iterator[Object]:
        yield Namespace(metadata=ObjectMeta(name="default", labels={"friendly": "yes"}))
        yield Service(metadata=ObjectMeta(name="web", namespace="default"))
        for number in range(7):
            yield self._node(f"node-{number}")
        for number, pod in enumerate(self._pods()):
            yield _renamed(pod, f"placed-{number}", node=f"node-{number % 7}")

    def _node(self, name: str) -> Node:
        choose = self._random.choice
        labels = {HOSTNAME: name, ZONE: choose("abc"), "disk": choose(("ssd", "hdd"))} | self._some_labels()
        return Node(
            metadata=ObjectMeta(name=name, labels=labels),
            spec=NodeSpec(taints=choose(TAINTS), unschedulable=self._random.random() < 0.2),
            status=NodeStatus(allocatable=choose(SIZES), images=choose(IMAGES)),
        )

    def _some_labels(self) -> dict[str, str]:
        return {key: self._random.choice(NUMBERS) for key in self._keys if self._random.random() < 0.7}

    def _pods(self) -> Iterator[Pod]:
        """One pod for every part of a spec, each also with other labels."""
        selector = LabelSelector(match_labels={"app": "web"})
        term = PodAffinityTerm(label_selector=selector, topology_key=ZONE)
        constraint = TopologySpreadConstraint(
            max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule", label_selector=selector
        )
        port = ContainerPort(container_port=80, host_port=8080)
        for spec in (
            PodSpec(),
            _spec(cpu="500m", memory="1Gi"),
            _spec(**{"cpu": "3", "example.com/gpu": "1"}),
            PodSpec(containers=[Container(image="app", ports=[port])]),
            PodSpec(node_selector={"disk": "ssd"}),
            PodSpec(tolerations=[Toleration(operator="Exists")]),
            PodSpec(priority=1000),
            PodSpec(affinity=Affinity(pod_anti_affinity=PodAffinity(required=[term]))),
            PodSpec(topology_spread_constraints=[constraint]),
        ):
            for labels in ({}, {"app": "web"} | self._some_labels()):
                yield Pod(metadata=ObjectMeta(namespace="default", labels=labels), spec=spec)

    def changes(self) -> Iterator[ClusterChange]:
        """Changes to apply one after the other, each of one thing, on every node."""
        for number, node in enumerate(self.nodes):
            other = self.nodes[number - 1]
            yield _update("labels", Aspect.LABELS, node.name, _with_labels(other.metadata.labels | self._some_labels()))
            yield _update("taints", Aspect.TAINTS, node.name, _with_spec(taints=list(reversed(TAINTS))[number % 3]))
            yield _update("spec.unschedulable", Aspect.TAINTS, node.name, _toggle_unschedulable)
            yield _update("allocatable", Aspect.RESOURCES, node.name, _with_status(allocatable=SIZES[number % 3]))
            yield _update("images", Aspect.IMAGES, node.name, _with_status(images=IMAGES[(number + 1) % 2]))
            yield ClusterChange(f"a pod came to node {node.name}", ON_NODE, node.name, self._arrival(node.name))
            what = f"the labels of the pods on node {node.name} changed"
            yield ClusterChange(what, Aspect.PODS, node.name, _relabelled_pods(node.name))
        for labels in ({"friendly": "no"}, {}):
            namespace = Namespace(metadata=ObjectMeta(name="default", labels=labels))
            yield ClusterChange("a namespace changed", Aspect.OBJECTS, None, _putting(namespace))
        service = Service(metadata=ObjectMeta(name="web", namespace="default"))
        yield ClusterChange("a service went", Aspect.OBJECTS, None, lambda cluster: cluster.remove(service))
        node = self._node("newcomer")
        yield ClusterChange(f"node {node.name} came", ROW_ASPECTS | Aspect.IMAGES, node.name, _putting(node))

    def _arrival(self, node: str) -> Callable[[Cluster], None]:
        pod = _renamed(self._random.choice(self.pods), f"new-on-{node}", node=node)
        return lambda cluster: cluster.update(pod)


ON_NODE = Aspect.RESOURCES | Aspect.PORTS | Aspect.PODS


def _spec(**requests: str) -> PodSpec:
    return PodSpec(containers=[Container(image="app", resources=ResourceRequirements(requests=dict(requests)))])


def _renamed(pod: Pod, name: str, *, node: str = "") -> Pod:
    return replace(pod, metadata=replace(pod.metadata, name=name), spec=replace(pod.spec, node_name=node))


def _update(what: str, aspects: Aspect, name: str, change: Callable[[Node], Node]) -> ClusterChange:
    return ClusterChange(
        f"the {what} of node {name} changed", aspects, name, lambda cluster: cluster.update(change(cluster.node(name)))
    )


def _with_labels(labels: dict[str, str]) -> Callable[[Node], Node]:
    def change(node: Node) -> Node:
        return replace(node, metadata=replace(node.metadata, labels={**labels, HOSTNAME: node.name}))

    return change


def _with_spec(taints: list[Taint]) -> Callable[[Node], Node]:
    return lambda node: replace(node, spec=replace(node.spec, taints=taints))


def _toggle_unschedulable(node: Node) -> Node:
    return replace(node, spec=replace(node.spec, unschedulable=not node.spec.unschedulable))


def _with_status(**fields: object) -> Callable[[Node], Node]:
    return lambda node: replace(node, status=replace(node.status, **fields))


def _relabelled_pods(node: str) -> Callable[[Cluster], None]:
    """Give the pods on a node other labels, with the same requests and ports."""

    def apply(cluster: Cluster) -> None:
        for pod in cluster.pods_on(cluster.rows[node]):
            labels = {} if "app" in pod.metadata.labels else {"app": "web"}
            cluster.update(replace(pod, metadata=replace(pod.metadata, labels=labels)))

    return apply


def _putting(item: Object) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.update(item)


def _label_keys(plugin: type[Plugin]) -> set[str]:
    """The strings in the plugin's code, and in constants it uses, that could be label keys."""
    found: set[str] = set()
    for kind in plugin.__mro__[: plugin.__mro__.index(Plugin)]:
        if kind.__module__ == Plugin.__module__:
            continue
        for value in vars(kind).values():
            if isinstance(value, FunctionType):
                named = (value.__globals__.get(name) for name in value.__code__.co_names)
                found.update(text for text in (*value.__code__.co_consts, *named) if isinstance(text, str))
            elif isinstance(value, str):
                found.add(value)
    return {text for text in found if len(text) <= 63 and _LABEL_KEY.fullmatch(text)} - {ZONE, HOSTNAME}
