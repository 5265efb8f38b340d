"""Topology spread constraints as PodTopologySpread counts them, and the default selector of a pod."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from podium.cluster import Cluster, Nodes
from podium.cluster.census import DomainTally, Matching, RowMask, Scope
from podium.cluster.columns import Mask
from podium.cluster.pods import hashed_once
from podium.errors import SelectorError
from podium.model import Pod, TopologySpreadConstraint
from podium.model.objects import ReplicaSet, ReplicationController, Service, StatefulSet, Taint
from podium.model.pod import Toleration
from podium.model.selectors import (
    EVERYTHING,
    NodeMatcher,
    Selector,
    label_selector,
    match_labels,
    required_node_affinity,
    untolerated,
)

HARD, SOFT = "DoNotSchedule", "ScheduleAnyway"
ANY_NODE = NodeMatcher()
NO_PODS = Matching((Scope(frozenset(), EVERYTHING),))


@hashed_once
@dataclass(frozen=True)
class Eligible:
    """The nodes that count: they have the topology keys, and the pod's affinity and tolerations do not exclude them."""

    keys: tuple[str, ...]
    matcher: NodeMatcher
    tolerations: tuple[Toleration, ...] | None
    """None if taints are ignored."""

    def mask(self, cluster: Cluster) -> RowMask:
        return cluster.row_mask(self, lambda: self._among(Nodes(cluster)))

    def _among(self, nodes: Nodes) -> Mask:
        mask = nodes.take(nodes.cluster.columns.alive).copy()
        for key in self.keys:
            mask &= nodes.codes(key) >= 0
        if self.matcher != ANY_NODE:
            mask &= nodes.matching(self.matcher)
        if self.tolerations is not None:
            mask &= nodes.by_taints(self._repels) == 0
        return mask

    def _repels(self, taints: tuple[Taint, ...]) -> int:
        return untolerated(taints, self.tolerations or ()) is not None


class SpreadConstraint(NamedTuple):
    """A pod's spread constraint with its selector compiled and defaults applied."""

    max_skew: int
    topology_key: str
    selector: Selector
    min_domains: int
    question: Matching
    """The question for the number of pods; an empty selector counts none."""
    eligible: Eligible
    matches_itself: bool
    """Whether the pod itself counts once it is placed."""

    def by_domain(self, cluster: Cluster) -> DomainTally:
        """The pods that count, by the values of the topology key."""
        return cluster.census.tally(self.question).by_domain(self.topology_key, self.eligible.mask(cluster))


class Constraints(NamedTuple):
    """A pod's hard or soft constraints."""

    all: tuple[SpreadConstraint, ...] = ()
    keys: tuple[str, ...] = ()
    """The topology keys, without repetition."""
    requires_all: bool = False
    """Whether nodes that lack one of the keys are left out, as opposed to not counted for that key only."""


NO_CONSTRAINTS = Constraints()


def compile_constraints(
    action: str, wanted: list[tuple[TopologySpreadConstraint, Selector]], pod: Pod, *, requires_all: bool
) -> Constraints:
    """Compile the constraints with this action and their selectors; `requires_all` leaves out nodes without a key."""
    chosen = [(raw, selector) for raw, selector in wanted if raw.when_unsatisfiable == action]
    keys = tuple(dict.fromkeys([raw.topology_key for raw, _ in chosen]))
    required = keys if requires_all else ()
    return Constraints(
        tuple([_compile_one(raw, selector, required, pod) for raw, selector in chosen]), keys, requires_all
    )


def _compile_one(
    raw: TopologySpreadConstraint, selector: Selector, keys: tuple[str, ...], pod: Pod
) -> SpreadConstraint:
    scope = Scope(frozenset((pod.namespace,)), selector)
    honors_affinity = (raw.node_affinity_policy or "Honor") == "Honor"
    honors_taints = (raw.node_taints_policy or "Ignore") == "Honor"
    return SpreadConstraint(
        raw.max_skew,
        raw.topology_key,
        selector,
        1 if raw.min_domains is None else raw.min_domains,
        NO_PODS if selector.empty else Matching((scope,), terminating=False),
        Eligible(
            keys,
            required_node_affinity(pod) if honors_affinity else ANY_NODE,
            tuple(pod.spec.tolerations) if honors_taints else None,
        ),
        selector.matches(pod.metadata.labels),
    )


def pod_services(pod: Pod, cluster: Cluster) -> list[Service]:
    """The services that select the pod, ordered by name; a service without a selector selects nothing."""
    return [
        service
        for service in cluster.store.of(Service).within(pod.namespace)
        if service.spec.selector is not None and match_labels(service.spec.selector).matches(pod.metadata.labels)
    ]


def has_selecting_objects(cluster: Cluster) -> bool:
    """Whether there is any object that `default_selector` can take a selector from."""
    return any(cluster.store.has_any(kind) for kind in (Service, ReplicationController, ReplicaSet, StatefulSet))


def default_selector(pod: Pod, cluster: Cluster) -> Selector:
    """The labels of all services that select the pod plus its controller's selector; empty if there is neither."""
    labels: dict[str, str] = {}
    for service in pod_services(pod, cluster):
        labels.update(service.spec.selector or {})
    owner = pod.metadata.controller
    if owner is None:
        return match_labels(labels) if labels else EVERYTHING
    kind = (owner.api_version, owner.kind)
    if kind == ("v1", "ReplicationController"):
        controller = cluster.store.of(ReplicationController).get(owner.name, pod.namespace)
        return match_labels(labels | controller.spec.selector if controller else labels)
    workload: ReplicaSet | StatefulSet | None = None
    if kind == ("apps/v1", "ReplicaSet"):
        workload = cluster.store.of(ReplicaSet).get(owner.name, pod.namespace)
    elif kind == ("apps/v1", "StatefulSet"):
        workload = cluster.store.of(StatefulSet).get(owner.name, pod.namespace)
    if workload is None:
        return match_labels(labels)
    try:
        added = label_selector(workload.spec.selector)
    except SelectorError:
        return match_labels(labels)
    return match_labels(labels).add(added.requirements)
