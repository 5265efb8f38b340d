"""What a user can do about pod affinity and anti-affinity: label the node, evict pods, or drop terms."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.cluster.pods import Term, affinity_terms
from podium.framework.suggested_change import (
    Change,
    RejectedPod,
    edit_pod,
    edit_running,
    evict_few,
    missing_labels,
    same_domain,
)
from podium.model import LabelSelector, Pod

Field = Literal["pod_affinity", "pod_anti_affinity"]
_NAMES: dict[Field, str] = {"pod_affinity": "affinity", "pod_anti_affinity": "anti-affinity"}


def affinity_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Give the node a topology label that it lacks, or drop required affinity of the pod."""
    keys = [term.topology_key for term in affinity_terms(rejected.pod).required_affinity]
    yield from missing_labels(rejected.cluster, rejected.node, keys)
    yield from _drop_terms(rejected.pod, "pod_affinity")


def anti_affinity_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Evict the pods that the pod does not want to be with, or drop required anti-affinity of the pod."""
    cluster = rejected.cluster
    for term in affinity_terms(rejected.pod).required_anti_affinity:
        yield from evict_few(_meant_by(term, cluster, same_domain(cluster, rejected.node, term.topology_key)))
    yield from _drop_terms(rejected.pod, "pod_anti_affinity")


def existing_anti_affinity_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Evict the pods that have anti-affinity against this one, or let them drop it."""
    pod, cluster = rejected.pod, rejected.cluster
    labels = cluster.namespace_labels(pod.namespace)
    carriers: dict[str, Pod] = {}
    for other, where in cluster.placed():
        for term in affinity_terms(other).required_anti_affinity:
            value = cluster.node(where).metadata.labels.get(term.topology_key)
            here = rejected.node_labels.get(term.topology_key)
            if value is not None and value == here and term.matches(pod.namespace, pod.metadata.labels, labels):
                carriers[other.key] = other
    yield from evict_few(list(carriers.values()))
    if len(carriers) == 1:
        (carrier,) = carriers.values()
        text = f"drop the required anti-affinity of {carrier.key}"
        yield edit_running("drop-anti-affinity", text, carrier, _without_terms("pod_anti_affinity"))


def _meant_by(term: Term, cluster: Cluster, pods: list[Pod]) -> list[Pod]:
    """The pods that a term selects."""
    return [
        pod for pod in pods if term.matches(pod.namespace, pod.metadata.labels, cluster.namespace_labels(pod.namespace))
    ]


def _drop_terms(pod: Pod, field: Field) -> Iterator[Change]:
    """Drop one of the pod's required terms, or all of them."""
    affinity = getattr(pod.spec.affinity, field) if pod.spec.affinity else None
    terms = affinity.required if affinity else []
    for place, term in enumerate(terms):
        to = _selected(term.label_selector)
        text = f"drop the pod's required {_NAMES[field]} to {to} by {term.topology_key}"
        if field == "pod_anti_affinity":
            text = text.replace(" to ", " against ", 1)
        yield edit_pod(f"drop-{_NAMES[field]}", text, pod, 4, _without_terms(field, place))
    if len(terms) > 1:
        text = f"drop all of the pod's required {_NAMES[field]}"
        yield edit_pod(f"drop-{_NAMES[field]}", text, pod, 7, _without_terms(field))


def _without_terms(field: Field, place: int | None = None) -> Callable[[Pod], Pod]:
    """Without one required term, or without all of them."""

    def edit(before: Pod) -> Pod:
        affinity = before.spec.affinity
        rules = getattr(affinity, field) if affinity else None
        if affinity is None or rules is None:
            return before
        kept = [] if place is None else [*rules.required[:place], *rules.required[place + 1 :]]
        changed = replace(affinity, **{field: replace(rules, required=kept)})
        return replace(before, spec=replace(before.spec, affinity=changed))

    return edit


def _selected(selector: LabelSelector | None) -> str:
    if selector is None:
        return "no pods"
    parts = [f"{key}={value}" for key, value in sorted(selector.match_labels.items())]
    parts += [f"{each.key} {each.operator} {','.join(each.values)}".strip() for each in selector.match_expressions]
    return f"pods with {', '.join(parts)}" if parts else "all pods"
