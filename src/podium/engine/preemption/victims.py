"""Which pods of a node would have to go for another pod: tried out, node by node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import NamedTuple

from podium.cluster import Cluster
from podium.cluster.cluster import Placed
from podium.cluster.trial import Trial
from podium.engine.evaluation import Evaluation
from podium.engine.nominations import Nominations
from podium.engine.preemption.choice import Candidate
from podium.engine.recheck import Recheck, recheck_of
from podium.engine.row_changes import RowCache, RowChangeLog
from podium.errors import SelectorError
from podium.framework import SUCCESS, CycleState, Status
from podium.model import Pod, PodDisruptionBudget
from podium.model.selectors import NOTHING, Selector, label_selector
from podium.plugins.default_preemption import DefaultPreemption


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


NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")


DryRun = Candidate | Status
"""The pods of a node that have to go, or why that does not help."""


class _Spared(NamedTuple):
    """A pod to be spared if possible; the one with the lowest rank is the most important."""

    placed: Placed
    rank: int
    is_violating: bool


class DryRuns:
    """Finds the victims on rows for one pod.

    All pods that may go are taken off; if the pod fits then, as many as possible come back, the most important first,
    but before all others those whose eviction violates a budget.
    """

    def __init__(
        self, evaluation: Evaluation, policy: DefaultPreemption, nominations: Nominations, changes: RowChangeLog
    ) -> None:
        self._evaluation, self._policy, self._nominations, self._changes = evaluation, policy, nominations, changes
        self._pod, self._cluster = evaluation.pod, evaluation.cluster

    @cached_property
    def _recheck(self) -> Recheck:
        """Made when there is a pod that may go, which on a cluster full of equals is never."""
        return recheck_of(self._evaluation, self._nominations)

    @cached_property
    def _budgets(self) -> Budgets:
        return Budgets(self._cluster)

    def run(
        self, rows: Sequence[int], together: int, memory: RowCache[DryRun], own_row: int
    ) -> Iterator[Sequence[DryRun]]:
        """The outcome for each row, lazily and in order: one by one or, where rows are independent, `together`.

        It is remembered that a row has no pod that may go, and what is found for independent rows, except on the row
        that the pod is nominated to itself.
        """
        memory.forget_changed()
        known = memory.found
        for start in range(0, len(rows), together):
            batch = rows[start : start + together]
            potential = {row: self._potential(row) for row in batch if row not in known}
            known.update((row, NO_VICTIMS) for row, pods in potential.items() if not pods)
            if all(known.get(row) is NO_VICTIMS for row in batch):
                yield [NO_VICTIMS] * len(batch)
            elif self._recheck.rows_are_independent:
                untried = {row: potential[row] for row in batch if row not in known}
                if own_row in batch and known.get(own_row) is not NO_VICTIMS:
                    untried[own_row] = self._potential(own_row)
                found = self._try(untried)
                known.update((row, outcome) for row, outcome in found.items() if row != own_row)
                yield [found[row] if row in found else known[row] for row in batch]
            else:
                for row in batch:
                    # Whatever else is known may be from when rows were independent.
                    has_none = known.get(row) is NO_VICTIMS
                    yield [NO_VICTIMS if has_none else self._try({row: self._potential(row)})[row]]

    def _try(self, potential: Mapping[int, list[Placed]]) -> dict[int, DryRun]:
        """The outcome for rows, given the pods that may go on each; there are some."""
        if not potential:
            return {}
        with self._changes.trial() as trial:
            state = self._recheck.state()
            outcomes: dict[int, DryRun] = {}
            rows = list(potential)
            for pods in potential.values():
                for placed in pods:
                    self._recheck.take_off(trial, state, placed)
            orders: dict[int, list[_Spared]] = {}
            for row, status in zip(rows, self._recheck.check(trial, state, rows), strict=True):
                if status == SUCCESS:
                    orders[row] = self._order(potential[row])
                else:
                    outcomes[row] = status
            return outcomes | self._spare(trial, state, orders)

    def _potential(self, row: int) -> list[Placed]:
        placed_on = self._cluster.placed_on(row)
        return [placed for placed in placed_on if self._policy.may_evict(placed.pod, self._pod)]

    def _by_importance(self, pods: list[Placed]) -> list[Placed]:
        # Of pods that are alike the first comes first. But kube-scheduler takes the time twice to compare pods that
        # have not started, finds the second reading later, and so puts the last of them first.
        places = [place if placed.pod.status.start_time else -place for place, placed in enumerate(pods)]
        keys = [(self._policy.importance(placed.pod), place) for placed, place in zip(pods, places, strict=True)]
        return [pods[index] for index in sorted(range(len(pods)), key=keys.__getitem__)]

    def _order(self, pods: list[Placed]) -> list[_Spared]:
        """In which order pods are spared: those protected by a budget first, each group by importance."""
        ordered = self._by_importance(pods)
        violating = self._budgets.violating(placed.pod for placed in ordered)
        spared = [_Spared(placed, rank, violating[rank]) for rank, placed in enumerate(ordered)]
        return sorted(spared, key=lambda one: not one.is_violating)

    def _spare(self, trial: Trial, state: CycleState, orders: dict[int, list[_Spared]]) -> dict[int, DryRun]:
        """Let pods come back one by one, in all rows at the same time; who does not fit any more is a victim."""
        evicted: dict[int, list[_Spared]] = {row: [] for row in orders}
        for turn in range(max(map(len, orders.values()), default=0)):
            rows = [row for row, order in orders.items() if turn < len(order)]
            for row in rows:
                self._recheck.put_back(trial, state, orders[row][turn].placed)
            for row, status in zip(rows, self._recheck.check(trial, state, rows), strict=True):
                if status != SUCCESS:
                    self._recheck.take_off(trial, state, orders[row][turn].placed)
                    evicted[row].append(orders[row][turn])
        return {row: self._outcome(row, victims) for row, victims in evicted.items()}

    def _outcome(self, row: int, evicted: list[_Spared]) -> DryRun:
        name = self._cluster.names[row]
        if not evicted:
            # Something other than the filters rejected the node, so that evicting pods does not help.
            return Status.error(f'expected at least one victim pod on node "{name}"')
        evicted.sort(key=lambda one: one.rank)
        return Candidate(name, tuple(one.placed.pod for one in evicted), sum(one.is_violating for one in evicted))
