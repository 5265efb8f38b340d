"""The pods that belong together with a pod: those of its services, controllers and sets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, cast

from podium.cluster import Cluster
from podium.cluster.counts import Matching, Scope, Tally
from podium.errors import SelectorError
from podium.legacy.rules import Rules
from podium.objects import LabelSelector, Pod, ReplicaSet, ReplicationController, Service, StatefulSet
from podium.plugins.default_selector import pod_services
from podium.selectors import Labels, Requirement, Selector, label_selector, match_labels

NO_PODS = Matching((Scope(frozenset(), Selector()),))


class AnySelector(NamedTuple):
    """Matches what at least one of some selectors matches; counts stand in for a selector's by having its methods."""

    selectors: tuple[Selector, ...]
    requirements: tuple[Requirement, ...] = ()
    """None that every match must meet."""

    def matches(self, labels: Labels) -> bool:
        return any(selector.matches(labels) for selector in self.selectors)


def pod_selectors(pod: Pod, cluster: Cluster, rules: Rules, *, services_only: bool = False) -> list[Selector]:
    """The selectors of everything that selects the pod by its labels, each once."""
    selectors = [match_labels(service.spec.selector or {}) for service in pod_services(pod, cluster)]
    if not services_only and pod.metadata.labels:
        selectors += _controller_selectors(pod, cluster)
    if rules.spread_ignores_empty_selectors:
        selectors = [selector for selector in selectors if not selector.empty]
    return list(dict.fromkeys(selectors))


def _controller_selectors(pod: Pod, cluster: Cluster) -> Iterator[Selector]:
    """Selectors of controllers and sets that match the pod; an empty one matches nothing."""
    store, labels = cluster.store, pod.metadata.labels
    compiled = [match_labels(item.spec.selector) for item in store.of(ReplicationController).within(pod.namespace)]
    compiled += _compiled([item.spec.selector for item in store.of(ReplicaSet).within(pod.namespace)])
    compiled += _compiled([item.spec.selector for item in store.of(StatefulSet).within(pod.namespace)])
    return (selector for selector in compiled if not selector.empty and selector.matches(labels))


def _compiled(selectors: list[LabelSelector | None]) -> list[Selector]:
    """The selectors; none at all if one of them is broken, as the listing fails then."""
    try:
        return [label_selector(selector) for selector in selectors]
    except SelectorError:
        return []


def sibling_tally(pod: Pod, selectors: list[Selector], cluster: Cluster, *, match_any: bool) -> Tally:
    """How many living pods of the namespace match all, or any, of the selectors, per node."""
    if not selectors:
        return cluster.census.tally(NO_PODS)
    namespace = frozenset((pod.namespace,))
    if match_any and len(selectors) > 1:
        # The order of alternatives does not matter, so that it must not make a question of its own.
        either = cast(Selector, AnySelector(tuple(sorted(selectors, key=repr))))
        return cluster.census.tally(Matching((Scope(namespace, either),), terminating=False))
    scopes = tuple(Scope(namespace, selector) for selector in selectors)
    return cluster.census.tally(Matching(scopes, terminating=False))


def first_service_selector(pod: Pod, cluster: Cluster) -> Selector | None:
    """The selector of the first service, by name, that selects the pod."""
    services: list[Service] = pod_services(pod, cluster)
    return match_labels(services[0].spec.selector or {}) if services else None
