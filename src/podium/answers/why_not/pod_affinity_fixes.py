"""What other pods have to do with it: affinity, anti-affinity and spreading, and what would help."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec.structs import replace

from podium.answers.why_not.resource_fixes import NEVER_EVICTED
from podium.answers.why_not.suggested_change import Change, Situation, edit_pod, edit_running, evict, label_node
from podium.cluster.pods import Term, affinity_terms
from podium.framework import Status
from podium.model import LabelSelector, Pod, TopologySpreadConstraint
from podium.model.node import HOSTNAME
from podium.model.selectors import label_selector
from podium.plugins.inter_pod_affinity import InterPodAffinity
from podium.plugins.pod_topology_spread import HARD, SOFT, PodTopologySpread

MOST_EVICTED = 3
MOST_VALUES = 3
"""How many values of a missing label are tried."""

Field = Literal["pod_affinity", "pod_anti_affinity"]
_NAMES: dict[Field, str] = {"pod_affinity": "affinity", "pod_anti_affinity": "anti-affinity"}
_COMPLAINTS = frozenset(
    (InterPodAffinity.REASON_AFFINITY, InterPodAffinity.REASON_ANTI_AFFINITY, InterPodAffinity.REASON_EXISTING)
)


# -- affinity ------------------------------------------------------------------------------------------------------


def inter_pod_affinity(situation: Situation, node: str, status: Status) -> Iterator[Change]:
    """What may help against InterPodAffinity, by what it complains about; v1.8 does not say what that is."""
    said = _COMPLAINTS.intersection(status.reasons) or _COMPLAINTS
    if InterPodAffinity.REASON_AFFINITY in said:
        terms = affinity_terms(situation.pod).required_affinity
        yield from _missing_labels(situation, node, [term.topology_key for term in terms])
        yield from _drop_terms(situation.pod, "pod_affinity")
    if InterPodAffinity.REASON_ANTI_AFFINITY in said:
        for term in affinity_terms(situation.pod).required_anti_affinity:
            yield from _evict_some(_meant_by(term, situation, _same_domain(situation, node, term.topology_key)))
        yield from _drop_terms(situation.pod, "pod_anti_affinity")
    if InterPodAffinity.REASON_EXISTING in said:
        yield from _against_the_pod(situation, node)


def _against_the_pod(situation: Situation, node: str) -> Iterator[Change]:
    """Pods that carry anti-affinity against this one: evict them, or let them drop it."""
    pod, cluster = situation.pod, situation.cluster
    labels = cluster.namespace_labels(pod.namespace)
    carriers: dict[str, Pod] = {}
    for other, where in cluster.placed():
        for term in affinity_terms(other).required_anti_affinity:
            value = cluster.node(where).metadata.labels.get(term.topology_key)
            here = cluster.node(node).metadata.labels.get(term.topology_key)
            if value is not None and value == here and term.matches(pod.namespace, pod.metadata.labels, labels):
                carriers[other.key] = other
    yield from _evict_some(list(carriers.values()))
    if len(carriers) == 1:
        (carrier,) = carriers.values()
        text = f"drop the required anti-affinity of {carrier.key}"
        yield edit_running("drop-anti-affinity", text, carrier, _without_terms("pod_anti_affinity"))


def _meant_by(term: Term, situation: Situation, pods: list[Pod]) -> list[Pod]:
    cluster = situation.cluster
    return [
        pod for pod in pods if term.matches(pod.namespace, pod.metadata.labels, cluster.namespace_labels(pod.namespace))
    ]


def _same_domain(situation: Situation, node: str, key: str) -> list[Pod]:
    """The pods on the nodes that share a label's value with this one."""
    cluster = situation.cluster
    value = cluster.node(node).metadata.labels.get(key)
    if value is None:
        return []
    return [pod for pod, where in cluster.placed() if cluster.node(where).metadata.labels.get(key) == value]


def _evict_some(pods: list[Pod]) -> Iterator[Change]:
    """All of them, if they are few and none of them is critical."""
    if 0 < len(pods) <= MOST_EVICTED and all(pod.priority < NEVER_EVICTED for pod in pods):
        yield evict(sorted(pods, key=lambda pod: (pod.priority, pod.key)))


def _drop_terms(pod: Pod, field: Field) -> Iterator[Change]:
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


# -- spreading -----------------------------------------------------------------------------------------------------


def topology_spread(situation: Situation, node: str, status: Status) -> Iterator[Change]:
    """What may help against PodTopologySpread: a label, fewer pods, a larger skew, or a constraint that only asks."""
    constraints = situation.pod.spec.topology_spread_constraints
    hard = [place for place, each in enumerate(constraints) if each.when_unsatisfiable == HARD]
    if PodTopologySpread.REASON_LABEL in status.reasons:
        yield from _missing_labels(situation, node, [constraints[place].topology_key for place in hard])
    for place in hard:
        constraint = constraints[place]
        skew = _sufficient_skew(situation, node, place)
        if skew is not None:
            yield from _evict_some(_crowding(situation, node, constraint, skew))
            text = f"relax maxSkew by {constraint.topology_key} from {constraint.max_skew} to {skew}"
            size = 2 + min(skew - constraint.max_skew, 5)
            yield edit_pod("relax-spread", text, situation.pod, size, _with_constraint(place, max_skew=skew))
        text = f"make the spread constraint by {constraint.topology_key} {SOFT}"
        yield edit_pod("soften-spread", text, situation.pod, 5, _with_constraint(place, when_unsatisfiable=SOFT))


def _crowding(situation: Situation, node: str, constraint: TopologySpreadConstraint, skew: int) -> list[Pod]:
    """As many of the pods that crowd the node's domain as it has too many, the least important ones."""
    selector = label_selector(constraint.label_selector)
    crowd = [
        pod
        for pod in _same_domain(situation, node, constraint.topology_key)
        if pod.namespace == situation.pod.namespace and selector.matches(pod.metadata.labels) and not pod.terminating
    ]
    return sorted(crowd, key=lambda pod: (pod.priority, pod.key))[: skew - constraint.max_skew]


def _sufficient_skew(situation: Situation, node: str, place: int) -> int | None:
    """The smallest maxSkew of one constraint with which PodTopologySpread passes the node, others left aside."""
    constraint = situation.pod.spec.topology_spread_constraints[place]

    def passes(skew: int) -> bool:
        with situation.trial_workers([edit_pod("", "", situation.pod, 0, _only_constraint(place, skew))]):
            decision = situation.decide()
        found = decision.rejected.get(node)
        return found is None or found.plugin != PodTopologySpread.name

    low = high = constraint.max_skew
    if passes(low):
        return None
    while not passes(high):
        if high > situation.cluster.node_count * 1000:
            return None
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if passes(middle) else (middle, high)
    return high


def _only_constraint(place: int, skew: int) -> Callable[[Pod], Pod]:
    def edit(before: Pod) -> Pod:
        constraints = [
            replace(each, max_skew=skew) if number == place else replace(each, when_unsatisfiable=SOFT)
            for number, each in enumerate(before.spec.topology_spread_constraints)
        ]
        return replace(before, spec=replace(before.spec, topology_spread_constraints=constraints))

    return edit


def _with_constraint(place: int, **fields: int | str) -> Callable[[Pod], Pod]:
    def edit(before: Pod) -> Pod:
        constraints = [
            replace(each, **fields) if number == place else each
            for number, each in enumerate(before.spec.topology_spread_constraints)
        ]
        return replace(before, spec=replace(before.spec, topology_spread_constraints=constraints))

    return edit


def _missing_labels(situation: Situation, node: str, keys: list[str]) -> Iterator[Change]:
    """Give the node a label that it lacks, with values that other nodes have."""
    cluster = situation.cluster
    labels = cluster.node(node).metadata.labels
    for key in dict.fromkeys(keys):
        if key not in labels:
            known = {cluster.node(name).metadata.labels.get(key) for name in cluster.rows} - {None}
            values = [node] if key == HOSTNAME else sorted(str(value) for value in known)[:MOST_VALUES]
            for value in values:
                yield label_node(node, {key: value})
