"""matchLabelKeys and mismatchLabelKeys: the API server writes them into the selectors when a pod is created."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from msgspec.structs import replace

from podium.objects import (
    Affinity,
    LabelSelector,
    PodAffinity,
    PodAffinityTerm,
    PodSpec,
    SelectorRequirement,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)

T = TypeVar("T")
Labels = dict[str, str]


def has_label_keys(spec: PodSpec) -> bool:
    """Whether what the API server stores depends on the pod's labels."""
    affinity = spec.affinity or Affinity()
    sides = [side for side in (affinity.pod_affinity, affinity.pod_anti_affinity) if side is not None]
    required = [term for side in sides for term in side.required]
    preferred = [weighted.pod_affinity_term for side in sides for weighted in side.preferred]
    return any(term.match_label_keys or term.mismatch_label_keys for term in (*required, *preferred)) or any(
        constraint.match_label_keys for constraint in spec.topology_spread_constraints
    )


def merge_into_affinity(affinity: Affinity | None, labels: Labels) -> Affinity | None:
    """The affinity with the pod's own labels in its pod (anti-)affinity terms; the same one when nothing changes."""
    if affinity is None:
        return None
    near = _merge_into_terms(affinity.pod_affinity, labels)
    apart = _merge_into_terms(affinity.pod_anti_affinity, labels)
    if near is affinity.pod_affinity and apart is affinity.pod_anti_affinity:
        return affinity
    return replace(affinity, pod_affinity=near, pod_anti_affinity=apart)


def merge_into_constraints(
    constraints: list[TopologySpreadConstraint], labels: Labels
) -> list[TopologySpreadConstraint]:
    """The constraints with the pod's own labels in their selectors; the same list when nothing changes."""

    def merge(constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        selector = _merged(constraint.label_selector, constraint.match_label_keys, [], labels)
        return constraint if selector is constraint.label_selector else replace(constraint, label_selector=selector)

    return each(constraints, merge)


def each(items: list[T], change: Callable[[T], T]) -> list[T]:
    """Every item changed; the same list when no item is."""
    changed = None
    for position, item in enumerate(items):
        new = change(item)
        if new is not item:
            changed = changed or list(items)
            changed[position] = new
    return changed or items


def _merge_into_terms(affinity: PodAffinity | None, labels: Labels) -> PodAffinity | None:
    if affinity is None:
        return None

    def merge(term: PodAffinityTerm) -> PodAffinityTerm:
        selector = _merged(term.label_selector, term.match_label_keys, term.mismatch_label_keys, labels)
        return term if selector is term.label_selector else replace(term, label_selector=selector)

    def merge_weighted(weighted: WeightedPodAffinityTerm) -> WeightedPodAffinityTerm:
        term = merge(weighted.pod_affinity_term)
        return weighted if term is weighted.pod_affinity_term else replace(weighted, pod_affinity_term=term)

    required = each(affinity.required, merge)
    preferred = each(affinity.preferred, merge_weighted)
    if required is affinity.required and preferred is affinity.preferred:
        return affinity
    return replace(affinity, required=required, preferred=preferred)


def _merged(
    selector: LabelSelector | None, match: list[str], mismatch: list[str], labels: Labels
) -> LabelSelector | None:
    """The selector with a requirement more for each key the pod has; absent selectors match nothing and stay."""
    if selector is None or not (match or mismatch):
        return selector
    wanted = [
        SelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for operator, keys in (("In", match), ("NotIn", mismatch))
        for key in keys
        if key in labels
    ]
    # A dump of a running cluster has them already.
    missing = [requirement for requirement in wanted if requirement not in selector.match_expressions]
    if not missing:
        return selector
    return replace(selector, match_expressions=[*selector.match_expressions, *missing])
