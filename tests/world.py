"""A cluster that goes through events, next to the plain objects it should amount to.

`events` draws what may happen; `World.apply` lets it happen to the cluster and to the objects; `World.rebuilt` makes
the cluster that those objects give from scratch.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, NamedTuple

from hypothesis import strategies as st
from msgspec.structs import replace

from builders import HOSTNAME, ZONE, make_node, make_object
from pod_kinds import POD_KINDS, pod_of
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Node, Object, Pod

NODES = tuple(f"n{number}" for number in range(6))
NAMES = tuple(f"p{number}" for number in range(10))
UNBOUND_KINDS = tuple(kind for kind, fields in POD_KINDS.items() if "node" not in fields)
IMAGES = {"big:latest": 900_000_000, "tool:v1": 300_000_000, "other": 50_000_000}
TAINTS = ((), ("team=a:NoSchedule",), ("spot=:PreferNoSchedule",), ("team=b:NoExecute", "spot=:PreferNoSchedule"))
RESOURCES: tuple[dict[str, Any], ...] = ({}, {"gpu": 2}, {"hugepages": "256Mi", "ephemeral_storage": "10Gi"}, {})


class Shape(NamedTuple):
    """A node in small numbers, so that examples shrink."""

    zone: int = 0
    disk: int = 0
    rack: int = 0
    taints: int = 0
    size: int = 0
    images: int = 0
    cordoned: bool = False

    @lru_cache(maxsize=4096)  # noqa: B019  # shapes are few
    def node(self, name: str) -> Node:
        labels = {HOSTNAME: name, ZONE: "abc"[self.zone % 3], "disk": ("ssd", "hdd")[self.disk % 2], "cores": "8"}
        labels |= {"rack": f"r{self.rack}"} if self.rack else {}
        for missing in {3: (ZONE,), 4: (ZONE, HOSTNAME), 5: ("disk", "cores")}.get(self.zone, ()):
            labels.pop(missing, None)
        return make_node(
            name,
            cpu=("4", "8", "2", "1500m")[self.size % 4],
            memory=("8Gi", "4Gi", "16Gi", "2Gi")[self.size % 4],
            pods=(110, 110, 3, 4)[self.size % 4],
            labels=labels,
            taints=TAINTS[self.taints % 4],
            images=dict(list(IMAGES.items())[: self.images]),
            unschedulable=self.cordoned,
            **RESOURCES[self.size % 4],
        )


OBJECTS: tuple[Object, ...] = (
    make_object("Namespace", "default", labels={"friendly": "no"}),
    make_object("Namespace", "default", labels={"friendly": "yes"}),
    make_object("Namespace", "team", labels={"friendly": "yes"}),
    make_object("Namespace", "team", labels={}),
    make_object("Service", "web", spec={"selector": {"app": "web"}}),
    make_object("Service", "web", spec={"selector": {"app": "db"}}),
    make_object("ReplicaSet", "web", spec={"selector": {"matchLabels": {"tier": "front"}}}),
)


class SetNode(NamedTuple):
    """Add a node, or update it if it is there."""

    name: str
    shape: Shape


class RemoveNode(NamedTuple):
    name: str


class Bind(NamedTuple):
    """A pod turns up on a node, known or not; one of that name that was elsewhere is gone."""

    name: str
    kind: str
    node: str


class Assume(NamedTuple):
    name: str
    kind: str
    node: str


class Queue(NamedTuple):
    """A pod turns up without a node."""

    name: str
    kind: str


class ScheduleNext(NamedTuple):
    """The scheduler itself puts a pod somewhere, by one of its profiles."""

    name: str
    kind: str
    profile: int = 0


class Forget(NamedTuple):
    name: str


class RemovePod(NamedTuple):
    name: str


class Finish(NamedTuple):
    """A pod succeeds: the scheduler no longer sees it."""

    name: str


class Put(NamedTuple):
    position: int


class Drop(NamedTuple):
    position: int


class Fork(NamedTuple):
    """Go on with a fork, or with the original while the fork goes another way."""

    keep_original: bool


Event = SetNode | RemoveNode | Bind | Assume | Queue | ScheduleNext | Forget | RemovePod | Finish | Put | Drop | Fork

_nodes, _names, _kinds = st.sampled_from(NODES), st.sampled_from(NAMES), st.sampled_from(UNBOUND_KINDS)
_numbers = st.integers(0, 3)
shapes = st.builds(Shape, st.integers(0, 5), _numbers, _numbers, _numbers, _numbers, _numbers, st.booleans())
_placements = st.one_of(
    st.builds(Bind, _names, _kinds, _nodes),
    st.builds(Assume, _names, _kinds, _nodes),
    st.builds(ScheduleNext, _names, _kinds, st.integers(0, 5)),
)
events = st.one_of(
    st.builds(SetNode, _nodes, shapes),
    _placements,
    _placements,
    st.builds(RemoveNode, _nodes),
    st.builds(Queue, _names, _kinds),
    st.builds(Forget, _names),
    st.builds(RemovePod, _names),
    st.builds(Finish, _names),
    st.builds(Put, st.integers(0, len(OBJECTS) - 1)),
    st.builds(Drop, st.integers(0, len(OBJECTS) - 1)),
    st.builds(Fork, st.booleans()),
)
"""Whatever can happen to a cluster."""


class History(NamedTuple):
    """The nodes to begin with, how many like each other there are besides, and what happens then."""

    shapes: list[Shape]
    alike: int
    events: list[Event]


histories = st.builds(
    History,
    st.lists(shapes, min_size=1, max_size=len(NODES)),
    st.sampled_from((0, 24)),
    st.lists(events, min_size=2, max_size=16),
)


class World:
    """The cluster, and the objects that it should amount to."""

    def __init__(self, shapes: list[Shape], alike: int = 0) -> None:
        self.nodes = {name: shape.node(name) for name, shape in zip(NODES, shapes, strict=False)}
        for number in range(alike):
            name = f"alike{number:02}"
            self.nodes[name] = Shape(zone=number % 3, rack=number % 2, size=3).node(name)
        self.pods: dict[str, Pod] = {}
        """Pods on nodes, known or not, and pending ones, by name."""
        self.objects: dict[tuple[type, str], Object] = {}
        self._assumed: set[str] = set()
        self.cluster = Cluster.from_objects(self.nodes.values())

    def rebuilt(self) -> Cluster:
        """The cluster of the same objects from scratch, with its rows in another order."""
        nodes = sorted(self.nodes.values(), key=lambda node: node.name, reverse=True)
        return Cluster.from_objects([*self.objects.values(), *nodes, *self.pods.values()])

    def apply(self, event: Event, scheduler: Scheduler) -> Cluster | None:
        """Let an event happen; returns the cluster that a fork left behind."""
        match event:
            case SetNode(name, shape):
                self.nodes[name] = shape.node(name)
                self.cluster.update(self.nodes[name])
            case RemoveNode(name) if name in self.nodes:
                self.cluster.remove(self.nodes.pop(name))
            case Put(position):
                item = OBJECTS[position]
                self.objects[type(item), item.key] = item
                self.cluster.update(item)
            case Drop(position):
                item = OBJECTS[position]
                self.objects.pop((type(item), item.key), None)
                self.cluster.remove(item)
            case Fork(keep_original):
                original, twin = self.cluster, self.cluster.fork()
                self.cluster, left = (original, twin) if keep_original else (twin, original)
                return left
            case Bind() | Queue() | Assume() | ScheduleNext():
                self._bring(event, scheduler)
            case Forget(name) | RemovePod(name) | Finish(name) if name in self.pods:
                self._take(event, self.pods[name])
        return None

    def _bring(self, event: Bind | Queue | Assume | ScheduleNext, scheduler: Scheduler) -> None:
        match event:
            case Bind(name, kind, node):
                self._update(pod_of(kind, name, node=node))
            case Queue(name, kind):
                self._update(pod_of(kind, name))
            case Assume(name, kind, node) if node in self.nodes:
                pod = self._fresh(name, kind)
                self.cluster.assume(pod, node)
                self._note_assumed(pod, node)
            case ScheduleNext(name, kind, profile):
                profiles = list(scheduler.frameworks)
                pod = self._fresh(name, kind, profiles[profile % len(profiles)])
                expected = scheduler.decide(pod).node
                assert scheduler.schedule(pod) == expected
                if expected is not None:
                    self._note_assumed(pod, expected)

    def _take(self, event: Forget | RemovePod | Finish, pod: Pod) -> None:
        match event:
            case Forget(name):
                if name in self._assumed and pod.spec.node_name in self.nodes:
                    self.cluster.forget(pod)
                    self._assumed.discard(name)
                    self.pods[name] = _bound(pod, "")
            case RemovePod(name):
                self.cluster.remove(self.pods.pop(name))
            case Finish(name):
                del self.pods[name]
                self.cluster.update(replace(pod, status=replace(pod.status, phase="Succeeded")))

    def _update(self, pod: Pod) -> None:
        before = self.pods.get(pod.name)
        if before is not None and before.key != pod.key:
            self.cluster.remove(before)
        self.cluster.update(pod)
        self.pods[pod.name] = pod
        self._assumed.discard(pod.name)

    def _fresh(self, name: str, kind: str, scheduler: str = "default-scheduler") -> Pod:
        """A pod that is nowhere yet."""
        if name in self.pods:
            self.cluster.remove(self.pods.pop(name))
        return pod_of(kind, name, scheduler=scheduler)

    def _note_assumed(self, pod: Pod, node: str) -> None:
        self.pods[pod.name] = _bound(pod, node)
        self._assumed.add(pod.name)


def _bound(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))
