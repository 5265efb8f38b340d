"""Which nodes it would be worst to lose: the set of so many, or the one zone, that leaves most pods without a node."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Any

from podium.answers.disruption.budgets import Budgets
from podium.answers.disruption.disruption import Disruption, Impact, Settings, fail, lose
from podium.answers.disruption.recreation import Recreation
from podium.answers.measures import domains
from podium.answers.node_lookup import SHORT_KEYS
from podium.answers.placement import put_back
from podium.cluster import Cluster
from podium.errors import InputError
from podium.model import Node, Pod
from podium.model.pod_kinds import belongs_to_node
from podium.model.resources import CPU, MEMORY

MOST_SETS = 2_000
"""So many sets of nodes are tried at most."""
BEAM = 4
"""How many sets of one node less are built on, where not all can be tried."""

Nodes = tuple[str, ...]
Severity = tuple[int, int, int]
"""How many pods have no node, how many budgets are violated, how many pods are hit."""


@dataclass(frozen=True, slots=True)
class WorstCase:
    """The worst loss that was found."""

    disruption: Disruption
    domain: str
    """What failed, such as `topology.kubernetes.io/zone=a`; empty for a set of nodes."""
    exhaustive: bool
    """Whether everything was tried, so that nothing is worse."""
    tried: int
    possible: int

    def to_dict(self) -> dict[str, Any]:
        """The worst case as plain data."""
        search = {"domain": self.domain or None, "exhaustive": self.exhaustive}
        return {"search": {**search, "tried": self.tried, "possible": self.possible}, **self.disruption.to_dict()}


def worst_nodes(
    cluster: Cluster,
    number: int,
    settings: Settings = Settings(),
    *,
    most: int = MOST_SETS,
    on_tried: Callable[[], object] = lambda: None,
) -> WorstCase:
    """The set of so many nodes whose failure leaves most pods without a node.

    Every set is tried if that are not more than `most`. Else it is a beam search: of the sets of one node the four
    worst are kept, each is tried with every other node, of those the four worst are kept, and so on; where even that
    is too much, the busiest nodes are tried. What violates more budgets, hits more pods or is earlier by name is worse
    among equals.
    """
    names = sorted(cluster.rows)
    if len(names) < 2:
        raise InputError("there is only one node; without it nothing is left to go to")
    if not 1 <= number < len(names):
        raise InputError(f"cannot lose {number} of {len(names)} nodes; from 1 to {len(names) - 1} can fail")
    possible = comb(len(names), number)
    with closing(_Trials(cluster, settings, on_tried)) as trials:
        if possible <= most:
            (nodes,) = trials.worst(combinations(names, number), 1)
        else:
            (nodes,) = _beam_search(trials, busiest(cluster), number, most)
    return WorstCase(fail(cluster, nodes, settings), "", possible <= most, trials.tried, possible)


def worst_domain(
    cluster: Cluster, key: str, settings: Settings = Settings(), *, on_tried: Callable[[], object] = lambda: None
) -> WorstCase:
    """The value of a label, such as a zone, whose nodes' failure leaves most pods without a node; all are tried."""
    key = SHORT_KEYS.get(key, key)
    by_value: dict[str, list[str]] = {}
    for node, value in sorted(domains(cluster, key).items()):
        by_value.setdefault(value, []).append(node)
    if not by_value:
        raise InputError(f"no node has the label {key}")
    with closing(_Trials(cluster, settings, on_tried)) as trials:
        (nodes,) = trials.worst((tuple(nodes) for _, nodes in sorted(by_value.items())), 1)
    value = next(value for value, named in by_value.items() if tuple(named) == nodes)
    return WorstCase(fail(cluster, nodes, settings), f"{key}={value}", True, trials.tried, len(by_value))


def trials_needed(cluster: Cluster, number: int, most: int = MOST_SETS) -> int:
    """How many sets `worst_nodes` tries at most."""
    return min(comb(cluster.node_count, number), most)


def busiest(cluster: Cluster) -> list[str]:
    """The nodes by how much of the cluster their pods take that would have to go elsewhere, busiest first."""
    totals = {resource: max(int(cluster.nodes.allocatable(resource).sum()), 1) for resource in (CPU, MEMORY)}
    load = dict.fromkeys(cluster.rows, 0.0)
    for pod, node in cluster.placed():
        if not belongs_to_node(pod):
            used = cluster.info_of(pod).resources.used
            load[node] += max(used.get(resource, 0) / total for resource, total in totals.items())
    return sorted(load, key=lambda node: (-load[node], node))


class _Trials:
    """Tries sets of nodes, one after the other, on one copy of the cluster that is put right again after each."""

    def __init__(self, cluster: Cluster, settings: Settings, on_tried: Callable[[], object]) -> None:
        self._original, self._cluster, self._settings = cluster, cluster.fork(), settings
        self._scheduler, self._on_tried = settings.scheduler(self._cluster), on_tried
        self._budgets = Budgets(cluster)
        self.tried = 0

    def close(self) -> None:
        self._scheduler.close()

    def worst(self, sets: Iterable[Nodes], keep: int) -> list[Nodes]:
        """The worst of the sets, in this order; the earlier among equals."""
        kept: list[tuple[Severity, Nodes]] = []
        for nodes in sets:
            kept.append((self._badness(nodes), nodes))
            if len(kept) > 4 * keep + 16:
                kept = _worst_of(kept, keep)
        return [nodes for _, nodes in _worst_of(kept, keep)]

    def _badness(self, nodes: Nodes) -> Severity:
        cluster, impact = self._cluster, Impact(self._budgets, self._original)
        lost = [(cluster.node(name), cluster.pods_on(cluster.rows[name])) for name in nodes]
        version = cluster.store.version
        recreation = Recreation(
            self._scheduler,
            preempt=self._settings.preempt,
            on_gone=lambda pod: impact.gone(pod, cluster),
            explain=False,
        )
        lose(recreation, nodes)
        homeless = sum(1 for _ in recreation.pending()) + len(recreation.lost)
        hit = len(recreation.found) + len(recreation.lost)
        self._undo(recreation, lost, version)
        self.tried += 1
        self._on_tried()
        return homeless, impact.violated, hit

    def _undo(self, recreation: Recreation, lost: Sequence[tuple[Node, list[Pod]]], version: int) -> None:
        """Put everything back: nodes last in, first out, so that each gets its row again."""
        cluster = self._cluster
        for key, each in (*recreation.found.items(), *recreation.lost.items()):
            cluster.end(each.pod)
            self._scheduler.nominations.forget(each.pod)
            found = self._original.find_pod(key)
            if found is not None and found[1] in cluster.rows:
                put_back(cluster, found[0], str(found[1]))
        for node, pods in reversed(lost):
            cluster.add(node)
            for pod in pods:
                put_back(cluster, pod, node.name)
        for item in cluster.store.since(version) or ():
            before = self._original.store.of(type(item)).get(item.name, item.namespace)
            if before is not None:
                cluster.update(before)
            else:
                cluster.remove(item)


def _worst_of(found: Sequence[tuple[Severity, Nodes]], keep: int) -> list[tuple[Severity, Nodes]]:
    return sorted(found, key=lambda each: (tuple(-number for number in each[0]), each[1]))[:keep]


def _beam_search(trials: _Trials, names: Sequence[str], number: int, most: int) -> list[Nodes]:
    share = most // (1 + BEAM * (number - 1))
    considered = names[: max(share, number)]
    beam = trials.worst(((name,) for name in considered), BEAM)
    for size in range(2, number + 1):
        beam = trials.worst(_extended(beam, considered), 1 if size == number else BEAM)
    return beam


def _extended(beam: Iterable[Nodes], names: Iterable[str]) -> Iterator[Nodes]:
    """Every set with one more node, each of them once."""
    yield from dict.fromkeys(tuple(sorted((*nodes, name))) for nodes in beam for name in names if name not in nodes)
