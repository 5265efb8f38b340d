"""How many more pods fit: pods of a template, or of several in a mix, placed one by one until one does not fit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import count, islice
from typing import Any

from msgspec.structs import replace

from podium.answers.node_lookup import find_nodes
from podium.answers.placement import with_claims
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Decision, Scheduler
from podium.engine.release import CURRENT, AnyRelease
from podium.engine.select import TieBreak
from podium.errors import InputError
from podium.framework import Registry
from podium.model import Pod, PodStatus
from podium.plugins import IN_TREE
from podium.wording import counted


@dataclass(frozen=True, slots=True)
class Fits:
    """How many pods of one template fit, and on which nodes: in the order in which those were first taken."""

    template: Pod
    nodes: Mapping[str, int]

    @property
    def count(self) -> int:
        return sum(self.nodes.values())


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more pods fit, where, and what stops the next one."""

    fits: tuple[Fits, ...]
    """One for each template."""
    mix: tuple[int, ...]
    """How many pods of each template come in turn."""
    limit: int
    """The number of pods after which nothing was tried any more; 0 for no limit."""
    stopped_by: Decision | None
    """What was decided about the first pod that does not fit; None if the limit was reached before."""
    cluster: Cluster
    """The cluster with every pod placed that fits."""

    @property
    def count(self) -> int:
        """How many fit, of all templates together."""
        return sum(fits.count for fits in self.fits)

    @property
    def message(self) -> str:
        """What stops the next one, in a sentence."""
        if self.stopped_by is None:
            return f"the limit of {counted(self.limit, 'pod')} is reached"
        return self.stopped_by.error or self.stopped_by.message

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        stopped_by = self.stopped_by
        return {
            "count": self.count,
            "mix": list(self.mix),
            "limit": self.limit or None,
            "pods": [{"pod": fits.template.key, "count": fits.count, "nodes": dict(fits.nodes)} for fits in self.fits],
            "stoppedBy": {
                "pod": None if stopped_by is None else stopped_by.pod,
                "message": self.message,
                "reasons": {} if stopped_by is None else dict(sorted(stopped_by.reasons().items())),
            },
        }


def capacity(
    cluster: Cluster,
    templates: Pod | Sequence[Pod],
    config: KubeSchedulerConfiguration | Mapping[str, Any] | None = None,
    *,
    mix: Sequence[int] = (),
    limit: int = 0,
    exclude_nodes: Iterable[str] = (),
    registry: Registry = IN_TREE,
    release: AnyRelease = CURRENT,
    tie_break: TieBreak | str = "first",
    seed: int = 0,
) -> Capacity:
    """Place pods of the templates one by one, as the scheduler would, until one fits nowhere.

    The cluster stays as it is. Several templates take turns: as many pods of each as `mix` says, one unless given.
    Nothing is evicted for them, and pods that are pending already take no room.
    """
    templates = (templates,) if isinstance(templates, Pod) else tuple(templates)
    turns = _checked_mix(mix, templates)
    cluster = without_nodes(cluster, exclude_nodes)
    wanted = limit or None
    nodes: list[Counter[str]] = [Counter() for _ in templates]
    stopped_by: Decision | None = None
    made = Scheduler(cluster, config, registry=registry, release=release, tie_break=tie_break, seed=seed)
    with closing(made) as scheduler:
        for place, pod in islice(pods_of(templates, turns, cluster), wanted):
            node = None if pod.spec.scheduling_gates else scheduler.schedule(pod)
            if node is None:
                stopped_by = scheduler.decide(pod, preempt=True)
                break
            nodes[place][node] += 1
    fits = tuple(Fits(template, dict(counts)) for template, counts in zip(templates, nodes, strict=True))
    return Capacity(fits, turns, limit, stopped_by, cluster)


def pods_of(templates: Sequence[Pod], mix: Sequence[int], cluster: Cluster) -> Iterator[tuple[int, Pod]]:
    """Pods of the templates in turn, without end, each with the place of its template; numbered, no name twice."""
    makers = [_numbered(as_template(template), cluster) for template in templates]
    while True:
        for place, number in enumerate(mix):
            for _ in range(number):
                yield place, next(makers[place])


def as_template(pod: Pod) -> Pod:
    """The pod as it was before it had a node: what makes it one of its kind, and nothing of its life."""
    metadata = replace(pod.metadata, creation_timestamp=None, deletion_timestamp=None)
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus())


def without_nodes(cluster: Cluster, excluded: Iterable[str]) -> Cluster:
    """A copy of the cluster in which some nodes are not there; InputError for one it does not have."""
    cluster = cluster.fork()
    for name in find_nodes(cluster, excluded):
        cluster.remove(cluster.node(name))
    return cluster


def _numbered(template: Pod, cluster: Cluster) -> Iterator[Pod]:
    metadata, prefix = template.metadata, f"{template.key}-"
    for number in count():
        # A pod of the cluster may have such a name already, as those of a StatefulSet do.
        if cluster.find_pod(f"{prefix}{number}") is None:
            name = f"{metadata.name}-{number}"
            numbered = replace(template, metadata=replace(metadata, name=name, uid=f"{metadata.uid}-{number}"))
            yield with_claims(numbered, cluster)


def _checked_mix(mix: Sequence[int], templates: Sequence[Pod]) -> tuple[int, ...]:
    if not templates:
        raise InputError("no pod to find the capacity for; give at least one")
    if not mix:
        return (1,) * len(templates)
    if len(mix) != len(templates):
        raise InputError(f"a mix of {len(mix)} numbers for {len(templates)} pods; give as many numbers as pods")
    if any(number < 1 for number in mix):
        raise InputError(f"a mix of {':'.join(map(str, mix))}; each number must be at least 1")
    return tuple(mix)
