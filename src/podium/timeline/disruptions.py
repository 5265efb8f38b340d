"""PodDisruptionBudgets in a simulated cluster: how many more pods each lets go, kept up to date."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from podium.errors import InputError
from podium.model import Node, Pod, PodDisruptionBudget, Taint, Toleration
from podium.model.selectors import NO_EXECUTE, NO_SCHEDULE, Selector, label_selector, tolerates

UNREACHABLE, NOT_READY = "node.kubernetes.io/unreachable", "node.kubernetes.io/not-ready"
UNREACHABLE_TAINTS = (Taint(key=UNREACHABLE, effect=NO_SCHEDULE), Taint(key=UNREACHABLE, effect=NO_EXECUTE))
"""What a node gets that fails."""


def is_unreachable(node: Node) -> bool:
    return any(taint.key == UNREACHABLE and taint.effect == NO_EXECUTE for taint in node.spec.taints)


def without_unreachable(taints: Iterable[Taint]) -> list[Taint]:
    return [taint for taint in taints if taint.key != UNREACHABLE]


def patience(tolerations: Sequence[Toleration], taints: Iterable[Taint], when_failed: float) -> float | None:
    """How many seconds a pod may stay on a node with these taints; None for as long as it likes.

    `when_failed` is what a pod gets that does not say how long it tolerates its node being out of reach or not ready:
    the API server gives every pod such a toleration.
    """
    shortest: float | None = None
    for taint in taints:
        if taint.effect != NO_EXECUTE:
            continue
        matching = [toleration for toleration in tolerations if tolerates(toleration, taint)]
        if matching:
            limits = [max(t.toleration_seconds, 0) for t in matching if t.toleration_seconds is not None]
            seconds: float | None = min(limits, default=None)
        else:
            seconds = when_failed if taint.key in (UNREACHABLE, NOT_READY) else 0.0
        if seconds is not None:
            shortest = seconds if shortest is None else min(shortest, seconds)
    return shortest


class _Budget:
    """One budget, and the pods it protects."""

    def __init__(self, budget: PodDisruptionBudget) -> None:
        self.budget = budget
        self.selector: Selector = label_selector(budget.spec.selector)
        self.expected: set[str] = set()
        self.healthy: set[str] = set()
        self.left = budget.status.disruptions_allowed
        """How many more pods may go, for a budget that does not say what it wants."""

    @property
    def is_counted(self) -> bool:
        """Whether the budget says what it wants, rather than only what is allowed now."""
        return self.budget.spec.min_available is not None or self.budget.spec.max_unavailable is not None

    def allowed(self) -> int:
        spec, expected = self.budget.spec, len(self.expected)
        if not self.is_counted:
            return self.left
        if spec.max_unavailable is not None:
            wanted = max(expected - _share(spec.max_unavailable, expected, self.budget), 0)
        else:
            wanted = _share(spec.min_available or 0, expected, self.budget)
        return max(len(self.healthy) - wanted, 0) if expected else 0


class Disruptions:
    """The budgets of a cluster. Tell it of every pod and budget that changes; `take_changed` has the new budgets."""

    def __init__(self) -> None:
        self._budgets: dict[str, dict[str, _Budget]] = {}
        """By namespace and name."""
        self._dirty: dict[tuple[str, str], None] = {}

    def __bool__(self) -> bool:
        return bool(self._budgets)

    def budget_is(self, budget: PodDisruptionBudget, pods: Mapping[str, tuple[Pod, bool]]) -> None:
        """A budget came or changed; `pods` are all there are, each with whether it is healthy."""
        found = self._budgets.setdefault(budget.namespace, {})[budget.name] = _Budget(budget)
        for pod, is_healthy in pods.values():
            if pod.namespace == budget.namespace:
                self._note(found, pod, is_healthy)

    def budget_gone(self, budget: PodDisruptionBudget) -> None:
        self._budgets.get(budget.namespace, {}).pop(budget.name, None)
        if not self._budgets.get(budget.namespace):
            self._budgets.pop(budget.namespace, None)

    def pod_is(self, pod: Pod, *, is_healthy: bool) -> None:
        """A pod came or changed; it is healthy if it runs and is not on its way out."""
        for budget in self._budgets.get(pod.namespace, {}).values():
            self._note(budget, pod, is_healthy)

    def pod_gone(self, pod: Pod) -> None:
        for budget in self._budgets.get(pod.namespace, {}).values():
            if pod.key in budget.expected:
                budget.expected.discard(pod.key)
                budget.healthy.discard(pod.key)
                self._touch(budget)

    def may_evict(self, pod: Pod) -> bool:
        """Whether all budgets that protect the pod let it go; a pod that does not run harms none."""
        return all(budget.allowed() > 0 for budget in self._protecting(pod))

    def may_evict_all(self, pods: Iterable[Pod]) -> bool:
        """Whether all budgets let all of these pods go at once."""
        counts = Counter(id(budget) for pod in pods for budget in self._protecting(pod))
        budgets = (budget for found in self._budgets.values() for budget in found.values())
        return all(counts[id(budget)] <= budget.allowed() for budget in budgets if id(budget) in counts)

    def evicted(self, pod: Pod) -> None:
        """A pod was evicted: budgets that cannot tell from the pods there are allow one less."""
        for budget in self._protecting(pod):
            budget.left = max(budget.left - 1, 0)
            self._touch(budget)

    def take_changed(self) -> Iterator[PodDisruptionBudget]:
        """The budgets whose status is another one now, as they are."""
        dirty, self._dirty = self._dirty, {}
        for namespace, name in dirty:
            budget = self._budgets.get(namespace, {}).get(name)
            if budget is None:
                continue
            allowed = budget.allowed()
            if allowed != budget.budget.status.disruptions_allowed:
                status = replace(budget.budget.status, disruptions_allowed=allowed)
                budget.budget = replace(budget.budget, status=status)
                yield budget.budget

    def _protecting(self, pod: Pod) -> list[_Budget]:
        return [budget for budget in self._budgets.get(pod.namespace, {}).values() if pod.key in budget.healthy]

    def _note(self, budget: _Budget, pod: Pod, is_healthy: bool) -> None:
        is_meant = budget.selector.matches(pod.metadata.labels) and not pod.terminating
        (budget.expected.add if is_meant else budget.expected.discard)(pod.key)
        (budget.healthy.add if is_meant and is_healthy else budget.healthy.discard)(pod.key)
        self._touch(budget)

    def _touch(self, budget: _Budget) -> None:
        self._dirty[budget.budget.namespace, budget.budget.name] = None


def _share(wanted: int | str, total: int, budget: PodDisruptionBudget) -> int:
    """A number, or a percentage of all pods, rounded up."""
    if isinstance(wanted, int):
        return wanted
    try:
        return math.ceil(int(wanted.removesuffix("%")) * total / 100) if wanted.endswith("%") else int(wanted)
    except ValueError:
        raise InputError(
            f"PodDisruptionBudget {budget.key}: {wanted!r} is neither a number nor a percentage such as 50%"
        ) from None
