"""Small clusters and pods to try a plugin on, and single changes to them of which it is known what they touch."""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Iterable, Iterator
from types import FunctionType
from typing import NamedTuple

from msgspec.structs import replace

from podium.cluster import Aspect, Cluster
from podium.cluster.change_log import ROW_ASPECTS
from podium.framework.plugin import Plugin
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
from podium.model.node import HOSTNAME, ZONE

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
        """The cluster; one of its rows is of a node that is gone."""
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
        """One pod for every part of a spec, and each of them once more with other labels."""
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
        """Changes one after the other, each of one thing; every node has its turn."""
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
    """Give the pods on a node other labels; what they request and where they listen stays."""

    def apply(cluster: Cluster) -> None:
        for pod in cluster.pods_on(cluster.rows[node]):
            labels = {} if "app" in pod.metadata.labels else {"app": "web"}
            cluster.update(replace(pod, metadata=replace(pod.metadata, labels=labels)))

    return apply


def _putting(item: Object) -> Callable[[Cluster], None]:
    return lambda cluster: cluster.update(item)


def _label_keys(plugin: type[Plugin]) -> set[str]:
    """Strings in the plugin's code, and in constants it names, that could be keys of labels."""
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
