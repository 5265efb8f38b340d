"""PodDisruptionBudgets: which evictions they forbid."""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster import Cluster
from podium.errors import SelectorError
from podium.objects import Pod, PodDisruptionBudget
from podium.selectors import NOTHING, Selector, label_selector


class Budgets:
    """The budgets of a cluster, with the disruptions they allow now."""

    def __init__(self, cluster: Cluster) -> None:
        self._stops = cluster.rules.budgets_stop_at_first_violation
        """Whether a pod counts for no further budget once it violates one; which one that is, is chance upstream."""
        self._by_namespace: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
        for budget in cluster.store.of(PodDisruptionBudget):
            selector = _selector(budget)
            if not selector.empty and not selector.nothing:
                self._by_namespace.setdefault(budget.namespace, []).append((budget, selector))

    def violating(self, pods: Iterable[Pod]) -> list[bool]:
        """Whether evicting each pod, after those before it, would violate a budget."""
        if not self._by_namespace:
            return [False for _ in pods]
        left: dict[str, int] = {}
        found = []
        for pod in pods:
            is_violating = False
            for budget, selector in self._by_namespace.get(pod.namespace, ()) if pod.metadata.labels else ():
                # A pod among the disrupted ones is accounted for: the API server lowered the allowance for it.
                if pod.name in budget.status.disrupted_pods or not selector.matches(pod.metadata.labels):
                    continue
                left[budget.key] = left.get(budget.key, budget.status.disruptions_allowed) - 1
                is_violating = is_violating or left[budget.key] < 0
                if is_violating and self._stops:
                    break
            found.append(is_violating)
        return found


def _selector(budget: PodDisruptionBudget) -> Selector:
    """What the budget is about; a selector that Kubernetes would refuse is about nothing."""
    try:
        return label_selector(budget.spec.selector)
    except SelectorError:
        return NOTHING
