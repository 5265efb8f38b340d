"""The constraints of a pod's spec that keep it off nodes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from dataclasses import replace as replace_data
from typing import Any

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.config import ignoring
from podium.engine import Decision, Scheduler
from podium.framework import Framework, Plugin, PodView
from podium.framework.fast_paths import ForSomePods
from podium.framework.obstacle import SpecPart
from podium.model import Pod
from podium.model.meta import NodeSelectorTerm
from podium.model.objects import PersistentVolume, PersistentVolumeClaim
from podium.model.pod import Affinity, PodAffinityTerm, PodSpec, claim_name
from podium.model.selectors import requirement_text


@dataclass(frozen=True, slots=True)
class SpecConstraint:
    """One constraint of a pod that rules out nodes."""

    kind: str
    what: str
    """The constraint in words."""
    nodes: int
    """How many nodes it rules out, whatever else rules them out."""
    alone: bool
    """Whether the pod would fit without it."""

    def to_dict(self) -> dict[str, Any]:
        return {"kind": self.kind, "what": self.what, "nodes": self.nodes, "alone": self.alone}


def spec_constraints(scheduler: Scheduler, pod: Pod) -> tuple[SpecConstraint, ...]:
    """The constraints that keep a pending pod from nodes, the one that rules out most nodes first.

    Each is found whatever else rules out the same nodes. Free resources and taints are not constraints of the pod: the
    scheduler's message names them.
    """
    counts = Counter(part for parts in _ruled_out(scheduler, pod) for part in parts)
    found = []
    for part, nodes in counts.most_common():
        lift = _LIFTS.get(part)
        alone = lift is not None and scheduler.decide(replace(pod, spec=lift(pod.spec))).node is not None
        found.append(SpecConstraint(part.value, _WORDS[part](pod, scheduler.cluster), nodes, alone))
    return tuple(found)


def _ruled_out(scheduler: Scheduler, pod: Pod) -> Iterator[Iterable[SpecPart]]:
    """The parts of the spec that rule out nodes, once for each node; each filter is asked without the others."""
    framework, info = scheduler.framework_of(pod), scheduler.cluster.info_of(pod)
    filters = {plugin.name: plugin for plugin in (*framework.pre_filter, *framework.filter)}
    for name, plugin in filters.items():
        names_parts = plugin.constraint is not None or type(plugin).constraint_of is not Plugin.constraint_of
        is_concerned = not isinstance(plugin, ForSomePods) or plugin.concerns(PodView(info), scheduler.cluster)
        if not names_parts or not is_concerned:
            continue
        config = ignoring(scheduler.config, filters.keys() - {name})
        with closing(Scheduler(scheduler.cluster, replace_data(scheduler.options, config=config))) as alone:
            yield from _rejecting(alone.decide(pod), framework)


def _rejecting(decision: Decision, framework: Framework) -> Iterator[Iterable[SpecPart]]:
    """The parts of the spec that rule out each node."""

    def parts(plugins: Iterable[str], reasons: Sequence[str]) -> Iterable[SpecPart]:
        asked = [framework.plugins[name] for name in plugins if name in framework.plugins]
        return dict.fromkeys(part for each in asked for reason in reasons if (part := each.constraint_of(reason)))

    for status in decision.rejected.values():
        yield parts(status.plugins, status.reasons)
    if decision.absent is not None:
        absent = parts(decision.absent.plugins or decision.narrowed_by, decision.absent.reasons or ("",))
        yield from [absent] * (decision.node_count - len(decision.rejected) - len(decision.feasible))


# -- without it ----------------------------------------------------------------------------------------------------


def _without(spec: PodSpec, *parts: str) -> PodSpec:
    return replace(spec, affinity=replace(spec.affinity or Affinity(), **dict.fromkeys(parts)))


def _without_ports(spec: PodSpec) -> PodSpec:
    containers = [replace(container, ports=[]) for container in spec.containers]
    return replace(spec, containers=containers)


def _without_claims(spec: PodSpec) -> PodSpec:
    containers = [replace(each, resources=replace(each.resources, claims=[])) for each in spec.containers]
    return replace(spec, resource_claims=[], containers=containers)


_LIFTS: dict[SpecPart, Callable[[PodSpec], PodSpec]] = {
    SpecPart.NODE_AFFINITY: lambda spec: replace(_without(spec, "node_affinity"), node_selector=None),
    SpecPart.AFFINITY: lambda spec: _without(spec, "pod_affinity"),
    SpecPart.ANTI_AFFINITY: lambda spec: _without(spec, "pod_anti_affinity"),
    SpecPart.SPREAD: lambda spec: replace(spec, topology_spread_constraints=[]),
    SpecPart.VOLUME: lambda spec: replace(spec, volumes=[]),
    SpecPart.PORT: _without_ports,
    SpecPart.DEVICES: _without_claims,
}


# -- in words ------------------------------------------------------------------------------------------------------


def _node_affinity(pod: Pod, cluster: Cluster) -> str:
    parts = [f"{key}={value}" for key, value in (pod.spec.node_selector or {}).items()]
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if affinity and affinity.required:
        parts.append(" or ".join(map(_term, affinity.required.node_selector_terms)))
    return ", ".join(parts)


def _term(term: NodeSelectorTerm) -> str:
    return " and ".join(map(requirement_text, (*term.match_expressions, *term.match_fields)))


def _pod_affinity(name: str) -> Callable[[Pod, Cluster], str]:
    def words(pod: Pod, cluster: Cluster) -> str:
        found = pod.spec.affinity and getattr(pod.spec.affinity, name)
        return ", ".join(map(_affinity_term, found.required)) if found else ""

    return words


def _affinity_term(term: PodAffinityTerm) -> str:
    selector = term.label_selector
    labels = [f"{key}={value}" for key, value in selector.match_labels.items()] if selector else []
    labels += map(requirement_text, selector.match_expressions) if selector else []
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
    """Where the volume of a claim can be used; the claim's name if its volume is not the constraint."""
    claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace)
    volume = cluster.store.of(PersistentVolume).get(claim.spec.volume_name) if claim else None
    affinity = volume.spec.node_affinity if volume else None
    if affinity is None or affinity.required is None:
        return f"claim {name}"
    return " or ".join(map(_term, affinity.required.node_selector_terms))


def _ports(pod: Pod, cluster: Cluster) -> str:
    ports = [port for container in pod.spec.containers for port in container.ports if port.host_port]
    return ", ".join(f"{port.host_port}/{port.protocol}" for port in ports)


def _devices(pod: Pod, cluster: Cluster) -> str:
    return ", ".join(f"claim {claim.name}" for claim in pod.spec.resource_claims) or "extended resources"


_WORDS: dict[SpecPart, Callable[[Pod, Cluster], str]] = {
    SpecPart.NODE_AFFINITY: _node_affinity,
    SpecPart.AFFINITY: _pod_affinity("pod_affinity"),
    SpecPart.ANTI_AFFINITY: _pod_affinity("pod_anti_affinity"),
    SpecPart.OTHERS: _others,
    SpecPart.SPREAD: _spread,
    SpecPart.VOLUME: _volumes,
    SpecPart.PORT: _ports,
    SpecPart.DEVICES: _devices,
}
