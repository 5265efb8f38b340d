"""What of its spec keeps a pod that fits nowhere from the nodes there are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.model import (
    Affinity,
    NodeSelectorTerm,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodAffinityTerm,
    PodSpec,
    SelectorRequirement,
)
from podium.plugins.inter_pod_affinity import InterPodAffinity
from podium.plugins.storage.claims import claim_name

NODE_AFFINITY, AFFINITY, ANTI_AFFINITY = "node affinity", "pod affinity", "pod anti-affinity"
OTHERS, SPREAD, VOLUME, PORT = "anti-affinity of others", "spread", "volume", "host port"


@dataclass(frozen=True, slots=True)
class SpecConstraint:
    """One constraint of a pod that rules out nodes."""

    kind: str
    what: str
    """The constraint in words."""
    nodes: int
    """How many nodes it rules out that nothing before it did."""
    alone: bool
    """Whether the pod would fit without it."""

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "what": self.what, "nodes": self.nodes, "alone": self.alone}


def spec_constraints(scheduler: Scheduler, pod: Pod) -> tuple[SpecConstraint, ...]:
    """The constraints that keep a pending pod from nodes, what rules out most of them first.

    Room and taints are no constraints of the pod: the scheduler's message names them.
    """
    decision = scheduler.decide(pod)
    counts = Counter(kind for kind in map(_kind, _rejecting(decision)) if kind)
    found = []
    for kind, count in counts.most_common():
        lift = _LIFTS.get(kind)
        alone = lift is not None and scheduler.decide(replace(pod, spec=lift(pod.spec))).node is not None
        found.append(SpecConstraint(kind, _WORDS[kind](pod, scheduler.cluster), count, alone))
    return tuple(found)


def _rejecting(decision: Decision) -> Iterator[tuple[str, str]]:
    """Plugin and reason for each node."""
    for status in decision.rejected.values():
        for reason in status.reasons:
            yield status.plugin, reason
    missing = decision.node_count - len(decision.rejected) - len(decision.feasible)
    if decision.absent is not None:
        yield from [(decision.absent.plugin or "NodeAffinity", decision.absent.message)] * missing


_KINDS = {
    "NodeAffinity": NODE_AFFINITY,
    "PodTopologySpread": SPREAD,
    "NodePorts": PORT,
    "VolumeBinding": VOLUME,
    "VolumeZone": VOLUME,
    "VolumeRestrictions": VOLUME,
    "NodeVolumeLimits": VOLUME,
}
_INTER_POD = {
    InterPodAffinity.REASON_AFFINITY: AFFINITY,
    InterPodAffinity.REASON_ANTI_AFFINITY: ANTI_AFFINITY,
    InterPodAffinity.REASON_EXISTING: OTHERS,
}


def _kind(rejection: tuple[str, str]) -> str:
    plugin, reason = rejection
    return _INTER_POD.get(reason) or _KINDS.get(plugin, "")


# -- without it ----------------------------------------------------------------------------------------------------


def _without(spec: PodSpec, *parts: str) -> PodSpec:
    return replace(spec, affinity=replace(spec.affinity or Affinity(), **dict.fromkeys(parts)))


def _without_ports(spec: PodSpec) -> PodSpec:
    containers = [replace(container, ports=[]) for container in spec.containers]
    return replace(spec, containers=containers)


_LIFTS: dict[str, Callable[[PodSpec], PodSpec]] = {
    NODE_AFFINITY: lambda spec: replace(_without(spec, "node_affinity"), node_selector=None),
    AFFINITY: lambda spec: _without(spec, "pod_affinity"),
    ANTI_AFFINITY: lambda spec: _without(spec, "pod_anti_affinity"),
    SPREAD: lambda spec: replace(spec, topology_spread_constraints=[]),
    VOLUME: lambda spec: replace(spec, volumes=[]),
    PORT: _without_ports,
}


# -- in words ------------------------------------------------------------------------------------------------------


def _node_affinity(pod: Pod, cluster: Cluster) -> str:
    parts = [f"{key}={value}" for key, value in (pod.spec.node_selector or {}).items()]
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if affinity and affinity.required:
        parts.append(" or ".join(map(_term, affinity.required.node_selector_terms)))
    return ", ".join(parts)


def _term(term: NodeSelectorTerm) -> str:
    return " and ".join(map(_expression, (*term.match_expressions, *term.match_fields)))


def _expression(raw: SelectorRequirement) -> str:
    return f"{raw.key} {raw.operator} {'|'.join(raw.values)}".rstrip()


def _pod_affinity(name: str) -> Callable[[Pod, Cluster], str]:
    def words(pod: Pod, cluster: Cluster) -> str:
        found = pod.spec.affinity and getattr(pod.spec.affinity, name)
        return ", ".join(map(_affinity_term, found.required)) if found else ""

    return words


def _affinity_term(term: PodAffinityTerm) -> str:
    selector = term.label_selector
    labels = [f"{key}={value}" for key, value in selector.match_labels.items()] if selector else []
    labels += map(_expression, selector.match_expressions) if selector else []
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
    """Where the volume of a claim can be used, or the claim if that is not what keeps the pod."""
    claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace)
    volume = cluster.store.of(PersistentVolume).get(claim.spec.volume_name) if claim else None
    affinity = volume.spec.node_affinity if volume else None
    if affinity is None or affinity.required is None:
        return f"claim {name}"
    return " or ".join(map(_term, affinity.required.node_selector_terms))


def _ports(pod: Pod, cluster: Cluster) -> str:
    ports = [port for container in pod.spec.containers for port in container.ports if port.host_port]
    return ", ".join(f"{port.host_port}/{port.protocol}" for port in ports)


_WORDS: dict[str, Callable[[Pod, Cluster], str]] = {
    NODE_AFFINITY: _node_affinity,
    AFFINITY: _pod_affinity("pod_affinity"),
    ANTI_AFFINITY: _pod_affinity("pod_anti_affinity"),
    OTHERS: _others,
    SPREAD: _spread,
    VOLUME: _volumes,
    PORT: _ports,
}
