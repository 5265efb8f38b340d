"""The disruption controller: keeps the status of PodDisruptionBudgets up to date."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace as replace_data

from msgspec.structs import replace

from podium.cluster.budgets import SEVERAL, Budget, Health, Owner, ignores_budgets, owner_of
from podium.cluster.store import Store
from podium.model import Pod, PodDisruptionBudget

PodID = tuple[str, str]
"""Namespace/name and uid: a StatefulSet's new pod has the name of the old one."""


class _WatchedBudget:
    """A PodDisruptionBudget and the pods it covers."""

    def __init__(self, budget: PodDisruptionBudget, store: Store) -> None:
        self.budget, self._store = Budget.of(budget), store
        self._covered: dict[PodID, Owner | None] = {}
        """The covered pods that are not terminating, including those that a controller is about to create."""
        self._healthy: set[PodID] = set()
        self._owners: Counter[Owner | None] = Counter()

    def note(self, pod: Pod, is_healthy: bool) -> None:
        """Note the state of a pod."""
        self.forget(pod)
        if not pod.terminating:
            identity, owner = _identity(pod), owner_of(pod)
            self._covered[identity] = owner
            self._owners[owner] += 1
            if is_healthy:
                self._healthy.add(identity)

    def forget(self, pod: Pod) -> bool:
        """Forget a pod that is gone or no longer covered; returns whether it was covered."""
        identity = _identity(pod)
        if identity not in self._covered:
            return False
        owner = self._covered.pop(identity)
        self._owners[owner] -= 1
        if not self._owners[owner]:
            del self._owners[owner]
        self._healthy.discard(identity)
        return True

    def health(self) -> Health:
        return self.budget.health(len(self._healthy), self._owners, self._store)

    def eviction_counts(self, pod: Pod) -> bool:
        """Whether the eviction of a pod takes one of the disruptions that are allowed."""
        return self.budget.eviction_counts(pod, self.health(), healthy=self.has_healthy(pod))

    def has_healthy(self, pod: Pod) -> bool:
        """Whether a covered pod is healthy."""
        return _identity(pod) in self._healthy

    def refusal(self, pod: Pod) -> str:
        """Why the budget refuses the eviction of a pod; empty if it does not."""
        return self.budget.refusal(pod, self.health(), healthy=_identity(pod) in self._healthy)


def _identity(pod: Pod) -> PodID:
    return pod.key, pod.metadata.uid


class Disruptions:
    """Keeps the PodDisruptionBudgets of a cluster up to date. It must be told of every pod and budget that changes."""

    def __init__(self, store: Store) -> None:
        """`store` has the controllers that say how many pods they want."""
        self._store = store
        self._budgets: dict[str, dict[str, _WatchedBudget]] = {}
        """By namespace and name."""
        self._dirty: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def on_budget_updated(self, budget: PodDisruptionBudget, pods: Iterable[tuple[Pod, bool]]) -> None:
        """Add or change a budget. `pods` are all pods of its namespace, each with whether it is healthy."""
        found = self._budgets.setdefault(budget.namespace, {})[budget.name] = _WatchedBudget(budget, self._store)
        for pod, is_healthy in pods:
            if found.budget.covers(pod):
                found.note(pod, is_healthy)
        self._touch(found)

    def on_budget_deleted(self, budget: PodDisruptionBudget) -> None:
        self._budgets.get(budget.namespace, {}).pop(budget.name, None)
        if not self._budgets.get(budget.namespace):
            self._budgets.pop(budget.namespace, None)

    def on_pod_updated(self, pod: Pod, *, is_healthy: bool) -> None:
        """Add or change a pod; a pod that a controller is about to create is not healthy yet."""
        for budget in self._budgets.get(pod.namespace, {}).values():
            if budget.budget.covers(pod):
                budget.note(pod, is_healthy)
                self._touch(budget)
            elif budget.forget(pod):
                # Its labels changed.
                self._touch(budget)

    def on_pod_deleted(self, pod: Pod) -> None:
        for budget in self._budgets.get(pod.namespace, {}).values():
            if budget.forget(pod):
                self._touch(budget)

    def on_workload_updated(self, namespace: str) -> None:
        """Note that a controller in a namespace wants another number of pods."""
        for budget in self._budgets.get(namespace, {}).values():
            self._touch(budget)

    def may_evict(self, pod: Pod) -> bool:
        """Whether the eviction API would evict the pod."""
        return not self.refusal(pod)

    def refusal(self, pod: Pod) -> str:
        """Why the eviction API refuses to evict the pod; empty if it does not."""
        budgets = self._covering(pod)
        if not budgets or ignores_budgets(pod, healthy=budgets[0].has_healthy(pod)):
            return ""
        return budgets[0].refusal(pod) if len(budgets) == 1 else SEVERAL

    def has_budget(self, pod: Pod) -> bool:
        """Whether any budget covers the pod."""
        return bool(self._covering(pod))

    def may_evict_all(self, pods: Iterable[Pod]) -> bool:
        """Whether the budgets allow to evict all of these pods together."""
        needed = [budget for pod in pods for budget in self._covering(pod) if budget.eviction_counts(pod)]
        return all(number <= budget.health().allowed for budget, number in Counter(needed).items())

    def take_changed(self) -> Iterator[PodDisruptionBudget]:
        """The budgets whose status changed since the last call, with the new status."""
        dirty, self._dirty = self._dirty, {}
        for namespace, name in dirty:
            found = self._budgets.get(namespace, {}).get(name)
            if found is None:
                continue
            before, allowed = found.budget.object, found.health().allowed
            if allowed != before.status.disruptions_allowed:
                after = replace(before, status=replace(before.status, disruptions_allowed=allowed))
                found.budget = replace_data(found.budget, object=after)
                yield after

    def _covering(self, pod: Pod) -> list[_WatchedBudget]:
        return [each for each in self._budgets.get(pod.namespace, {}).values() if each.budget.covers(pod)]

    def _touch(self, budget: _WatchedBudget) -> None:
        item = budget.budget.object
        self._dirty[item.namespace, item.name] = None
