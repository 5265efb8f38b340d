"""How many nodes of which templates the pods need that fit nowhere now: the cheapest mix, and the proof that it is."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar, Unpack

from msgspec import Struct
from msgspec.structs import fields, replace

from podium.answers.simulation import in_queue_order
from podium.cluster import Cluster, NodeInfo
from podium.engine import Scheduler
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.errors import InputError
from podium.model import Node, Object, Pod
from podium.model.devices import ResourceSlice
from podium.model.objects import HOSTNAME
from podium.plugins import IN_TREE
from podium.workloads.claims import with_claims
from podium.workloads.daemon_sets import bound_to, created_for_nodes, target_node

MOST_TRIALS, MOST_DECISIONS = 400, 60_000
"""The maximum number of mixes to try, and of pods to decide for that."""
MOST_LISTED = 100_000
"""The maximum number of mixes to look at, in the order of their price."""
T = TypeVar("T")
Counts = tuple[int, ...]
"""The number of nodes of each template."""


@dataclass(frozen=True, slots=True)
class NodeTemplate:
    """A node that can be added any number of times, for a price each, with the objects that come with each."""

    node: Node
    price: float = 1.0
    objects: tuple[Object, ...] = ()
    """Its CSINode, ResourceSlices and local volumes, which name the node; and others, which are added once."""

    @property
    def name(self) -> str:
        return self.node.name


@dataclass(frozen=True, slots=True)
class NodeMix:
    """A number of nodes of each template, their cost, and the pods that do not fit even then."""

    counts: Mapping[str, int]
    """The number of nodes per template name; templates that are not needed are left out."""
    price: float
    left: tuple[str, ...] = ()
    """The pods that stay pending, as namespace/name."""

    @property
    def nodes(self) -> int:
        return sum(self.counts.values())

    @property
    def fits(self) -> bool:
        return not self.left

    def to_dict(self) -> dict[str, Any]:
        return {"nodes": dict(self.counts), "count": self.nodes, "price": self.price, "left": list(self.left)}


@dataclass(frozen=True, slots=True)
class MixSearch:
    """Which mixes were covered, and what that proves."""

    tried: int = 0
    """How many mixes were tried, by deciding all pods with them."""
    too_small: int = 0
    """How many cheaper mixes were not tried, because they do not have the resources that the pods ask for."""
    complete: bool = True
    """Whether all mixes that are cheaper than the best were covered, so that none of them is better."""
    at_least: float = 0.0
    """No mix for less than this can hold all pods."""

    def to_dict(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "tooSmall": self.too_small,
            "complete": self.complete,
            "priceAtLeast": self.at_least,
        }


@dataclass(frozen=True, slots=True)
class NodesNeeded:
    """How many nodes are needed by the pods that fit nowhere now."""

    pods: int
    """How many pods do not fit now."""
    alone: Mapping[str, NodeMix]
    """Per template name, how many nodes of it alone are needed; if no number suffices, how many help."""
    best: NodeMix
    """The cheapest mix found with which all pods fit; if there is none, the mix that leaves the fewest pods."""
    search: MixSearch = field(default_factory=MixSearch)

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "pods": self.pods,
            "best": self.best.to_dict(),
            "alone": {name: mix.to_dict() for name, mix in self.alone.items()},
            "search": self.search.to_dict(),
        }


def nodes_needed(
    cluster: Cluster,
    pods: Sequence[Pod],
    templates: Sequence[NodeTemplate],
    config: Config | SchedulerOptions = None,
    **keywords: Unpack[SchedulerKeywords],
) -> NodesNeeded:
    """How many nodes of the templates are needed so that all pods have a node; the cluster stays as it is.

    Pods that fit now are placed first; nodes are then added for the others, which are decided again in their order. New
    nodes run the pods of the cluster's DaemonSets for which they are eligible. Pods that wait for something other than
    a node, for example a scheduling gate or another scheduler, are left out.
    """
    names = [template.name for template in templates]
    if len(set(names)) < len(names):
        raise InputError(f"node templates {', '.join(names)}: each must have a name of its own")
    cluster, options = cluster.fork(), SchedulerOptions.steady(config, **keywords)
    with closing(Scheduler(cluster, options)) as scheduler:
        waiting = [pod for pod in pods if _waits_for_a_node(pod, scheduler)]
        rest = _unplaced(in_queue_order(waiting, scheduler), scheduler)
        room = _Room(scheduler, rest, templates)

    def left(counts: Counts) -> tuple[str, ...]:
        trial = cluster.fork()
        for number, template in zip(counts, templates, strict=True):
            add_template(trial, template, number)
        with closing(Scheduler(trial, options)) as scheduler:
            return tuple(pod.key for pod in _unplaced(rest, scheduler))

    if not rest:
        return NodesNeeded(0, {}, NodeMix({}, 0.0))
    return _Search(templates, room, len(rest), left).run()


def _unplaced(pods: Sequence[Pod], scheduler: Scheduler) -> list[Pod]:
    """Place pods in order, again and again as long as that helps one; returns those that fit nowhere."""
    while True:
        waiting = [pod for pod in pods if scheduler.schedule(pod) is None]
        if not waiting or len(waiting) == len(pods):
            return waiting
        pods = waiting


def _waits_for_a_node(pod: Pod, scheduler: Scheduler) -> bool:
    return not pod.spec.scheduling_gates and pod.spec.scheduler_name in scheduler.frameworks


# -- adding nodes --------------------------------------------------------------------------------------------------


def add_template(cluster: Cluster, template: NodeTemplate, number: int) -> list[str]:
    """Add a number of nodes of a template with their objects and daemon pods; returns their names."""
    nodes = list(_numbered_nodes(template.node, cluster, number))
    for node in nodes:
        cluster.add(node)
        for item in template.objects:
            cluster.update(_for_node(item, template.node, node))
    for pod in created_for_nodes(nodes, cluster.store):
        if isinstance(pod, Pod) and (node_name := target_node(pod)) is not None:
            cluster.add(bound_to(with_claims(pod, cluster), node_name))
    return [node.name for node in nodes]


def add_nodes(cluster: Cluster, template: Node, number: int) -> list[str]:
    """Add a number of nodes, each with its daemon pods; returns their names."""
    return add_template(cluster, NodeTemplate(template), number)


def _numbered_nodes(template: Node, cluster: Cluster, number: int) -> Iterator[Node]:
    names = (name for name in (f"{template.name}-{each}" for each in count(1)) if name not in cluster.rows)
    for _, name in zip(range(number), names, strict=False):
        labels = template.metadata.labels
        # The hostname label names the node; no two nodes share its value.
        own = {**labels, HOSTNAME: name} if HOSTNAME in labels else labels
        metadata = replace(template.metadata, name=name, uid=f"Node/{name}", labels=own)
        yield replace(template, metadata=metadata)


def _for_node(item: Object, template: Node, node: Node) -> Object:
    """The object of a template as it is for a new node; the same object if it does not name the template's node."""
    old = {template.name, template.metadata.labels.get(HOSTNAME, template.name)}
    made = _renamed(item, dict.fromkeys(old, node.name))
    if made == item:
        return item
    if isinstance(made, ResourceSlice) and made.spec.pool.name != node.name:
        # The devices of two nodes are not of one pool.
        pool = replace(made.spec.pool, name=f"{made.spec.pool.name}-{node.name}")
        made = replace(made, spec=replace(made.spec, pool=pool))
    name = made.name if made.name == node.name else f"{made.name}-{node.name}"
    return replace(made, metadata=replace(made.metadata, name=name, uid=f"{type(made).__name__}/{name}"))


def _renamed(value: T, names: Mapping[str, str]) -> T:
    """A copy of a value in which each text that is one of the names is replaced."""
    made: Any = value
    match value:
        case str():
            made = names.get(value, value)
        case list() | tuple():
            made = type(value)(_renamed(each, names) for each in value)
        case dict():
            made = {key: _renamed(each, names) for key, each in value.items()}
        case Struct():
            given = {each.name: getattr(value, each.name) for each in fields(value)}
            found = {name: _renamed(each, names) for name, each in given.items()}
            changed = {name: each for name, each in found.items() if each is not given[name]}
            made = replace(value, **changed) if changed else value
    return value if made == value else made


# -- the search ----------------------------------------------------------------------------------------------------


DEPEND_ON_OTHER_NODES = ("PodTopologySpread", "InterPodAffinity")
"""The plugins that may pass a node that they reject now, once there are more nodes; the other in-tree ones do not."""


class _Room:
    """The pods' total requests, and the room for them on the nodes there are and on a new node of each template."""

    def __init__(self, scheduler: Scheduler, pods: Sequence[Pod], templates: Sequence[NodeTemplate]) -> None:
        cluster = scheduler.cluster
        self._asked: Counter[str] = Counter()
        for pod in pods:
            self._asked.update(cluster.info_of(pod).resources.used)
        self._there = dict.fromkeys(self._asked, 0)
        for name in _may_take_pods(scheduler, pods):
            for resource, free in self._free(NodeInfo(cluster, cluster.rows[name])).items():
                self._there[resource] += max(free, 0)
        self._offers = [self._offer(cluster.fork(), template) for template in templates]
        self._prices = [template.price for template in templates]

    def _free(self, info: NodeInfo) -> dict[str, int]:
        return {name: info.allocatable(name) - info.requested(name) for name in self._asked}

    def _offer(self, cluster: Cluster, template: NodeTemplate) -> dict[str, int]:
        (node,) = add_template(cluster, template, 1)
        return self._free(NodeInfo(cluster, cluster.rows[node]))

    def may_suffice(self, counts: Counts) -> bool:
        """Whether all nodes together have room for the pods' total requests: if not, there is no need to try them."""
        return all(
            self._there[name] + sum(number * offer[name] for number, offer in zip(counts, self._offers, strict=True))
            >= asked
            for name, asked in self._asked.items()
        )

    def lowest_price(self) -> float:
        """No mix for less has room for the pods: each resource alone, bought where a unit of it costs least."""
        bounds = [0.0]
        for name, asked in self._asked.items():
            missing = asked - self._there[name]
            offers = zip(self._prices, self._offers, strict=True)
            units = [price / offer[name] for price, offer in offers if offer[name] > 0]
            if missing > 0 and units:
                bounds.append(missing * min(units))
        return max(bounds)


def _may_take_pods(scheduler: Scheduler, pods: Sequence[Pod]) -> set[str]:
    """The nodes of the cluster that may have room for one of the pods once there are more nodes."""
    kinds = {scheduler.cluster.info_of(pod): pod for pod in pods}
    rejected = (item for pod in kinds.values() for item in scheduler.decide(pod).rejected.items())
    return {name for name, status in rejected if status.plugin in DEPEND_ON_OTHER_NODES or status.plugin not in IN_TREE}


class _Search:
    """Searches for the cheapest counts that leave no pod, or as few as possible; tries each at most once.

    It begins with mixes that are likely to be good, and makes them cheaper. Then it goes through all mixes that are
    cheaper still, in the order of their price, as long as trials are left.
    """

    def __init__(
        self, templates: Sequence[NodeTemplate], room: _Room, pods: int, left: Callable[[Counts], tuple[str, ...]]
    ) -> None:
        self._templates, self._room, self._pods, self._try = templates, room, pods, left
        self._known: dict[Counts, tuple[str, ...]] = {}
        self._nothing: Counts = (0,) * len(templates)

    def run(self) -> NodesNeeded:
        alone = [self._fewest(self._nothing, place) for place in range(len(self._templates))]
        starts = [self._nothing, *alone, tuple(map(sum, zip(*alone, strict=True))), *self._equal_mixes()]
        self._goal = min(map(self._left, starts))
        starts += self._greedy()
        best = self._improved(min((start for start in starts if self._left(start) <= self._goal), key=self._rank))
        best, search = self._through_all(best)
        each = {template.name: self._mix(counts) for template, counts in zip(self._templates, alone, strict=True)}
        return NodesNeeded(self._pods, each, self._mix(best), search)

    def _equal_mixes(self) -> Iterator[Counts]:
        """As many of each template, 1, 2, 4 ...: pods that spread need nodes of several templates at once."""
        number = 1
        while number <= self._pods and not self._is_tired:
            counts = (number,) * len(self._templates)
            yield counts
            if not self._left(counts):
                break
            number *= 2

    def _through_all(self, best: Counts) -> tuple[Counts, MixSearch]:
        """Try all cheaper mixes in the order of their price; returns the best, and what that proves."""
        too_small, reached, looked_at = 0, 0.0, 0
        for counts in self._by_price():
            reached, looked_at = self._price(counts), looked_at + 1
            if self._goal == 0 and self._rank(counts) >= self._rank(best):
                return best, MixSearch(len(self._known), too_small, True, self._price(best))
            if self._goal == 0 and not self._room.may_suffice(counts):
                too_small += 1
                continue
            if (counts not in self._known and self._is_tired) or looked_at > MOST_LISTED:
                bound = max(reached, round(self._room.lowest_price(), 6))
                return best, MixSearch(len(self._known), too_small, False, bound)
            if (self._left(counts), self._rank(counts)) < (self._goal, self._rank(best)):
                best, self._goal = counts, self._left(counts)
        # There are no more mixes with as many nodes as pods.
        return best, MixSearch(len(self._known), too_small, True, self._price(best) if self._goal == 0 else reached)

    def _by_price(self) -> Iterator[Counts]:
        """All counts with at most as many nodes as pods, the best rank first."""
        queue, seen = [(self._rank(self._nothing), self._nothing)], {self._nothing}
        while queue:
            _, counts = heapq.heappop(queue)
            yield counts
            for place in range(len(counts)):
                more = _plus(counts, place, 1)
                if more not in seen and sum(more) <= self._pods:
                    seen.add(more)
                    heapq.heappush(queue, (self._rank(more), more))

    def _fewest(self, base: Counts, place: int) -> Counts:
        """`base` plus the fewest nodes of one template that leave no pod, or as few pods as any number does."""
        high = 1
        while self._left(_plus(base, place, high)) and high < self._pods:
            high = min(2 * high, self._pods)
        goal = self._left(_plus(base, place, high))
        if self._left(base) <= goal:
            return base
        low = 0
        while high - low > 1:
            middle = (low + high) // 2
            if self._left(_plus(base, place, middle)) <= goal:
                high = middle
            else:
                low = middle
        return _plus(base, place, high)

    def _greedy(self) -> list[Counts]:
        """Add node by node the one that places the most pods for its price; empty if that never places all pods."""
        counts = self._nothing
        left = self._left(counts)
        while left > self._goal and not self._is_tired:
            gains = [
                ((left - self._left(_plus(counts, place, 1))) / template.price, -template.price, -place)
                for place, template in enumerate(self._templates)
            ]
            gain, _, place = max(gains)
            if gain <= 0:
                return []
            counts = _plus(counts, -place, 1)
            left = self._left(counts)
        return [counts] if left <= self._goal else []

    def _improved(self, counts: Counts) -> Counts:
        """Replace nodes by fewer or cheaper nodes of another template, as long as that gets cheaper."""
        improving = True
        while improving and not self._is_tired:
            improving = False
            for cheaper in self._neighbours(counts):
                if self._left(cheaper) <= self._goal:
                    counts, improving = cheaper, True
                    break
                if self._is_tired:
                    break
        return counts

    def _neighbours(self, counts: Counts) -> Iterator[Counts]:
        """Fewer nodes of one template, with as many of another as its price allows; the cheapest first."""
        found: list[Counts] = []
        for place, number in enumerate(counts):
            for fewer in range(1, number + 1):
                less = _plus(counts, place, -fewer)
                found.append(less)
                for other, template in enumerate(self._templates):
                    if other != place:
                        most = int(fewer * self._templates[place].price / template.price)
                        found += [_plus(less, other, more) for more in range(1, most + 1)]
        by_price = sorted(dict.fromkeys(found), key=self._rank)
        cheaper = (each for each in by_price if self._rank(each) < self._rank(counts))
        return (each for each in cheaper if self._goal or self._room.may_suffice(each))

    @property
    def _is_tired(self) -> bool:
        return len(self._known) >= min(MOST_TRIALS, max(MOST_DECISIONS // self._pods, 20))

    def _left(self, counts: Counts) -> int:
        if counts not in self._known:
            self._known[counts] = self._try(counts)
        return len(self._known[counts])

    def _rank(self, counts: Counts) -> tuple[float, int, Counts]:
        """The sort key: cheaper first, then fewer nodes, then more of the templates named first."""
        return self._price(counts), sum(counts), tuple(-number for number in counts)

    def _price(self, counts: Counts) -> float:
        total = sum(number * each.price for number, each in zip(counts, self._templates, strict=True))
        return round(total, 6)

    def _mix(self, counts: Counts) -> NodeMix:
        needed = {each.name: number for each, number in zip(self._templates, counts, strict=True) if number}
        return NodeMix(needed, self._price(counts), self._known[counts])


def _plus(counts: Counts, place: int, number: int) -> Counts:
    return (*counts[:place], counts[place] + number, *counts[place + 1 :])
