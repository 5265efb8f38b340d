"""Dry runs: which pods to evict from each node so that a pod fits there, with the outcomes kept for pods of its
kind.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.cluster.cluster import Placed, PodTrial
from podium.cluster.columns import Ints
from podium.engine._evaluation import Evaluation
from podium.engine._nominations import Nominations
from podium.engine._recheck import recheck_of
from podium.engine._row_changes import RowChangeLog, RowChangeReader
from podium.engine.victim_units import ReprieveOrder, VictimUnit, VictimUnits
from podium.framework import SUCCESS, CycleState, Status
from podium.memory import RecentlyUsed
from podium.model import Pod, PodDisruptionBudget, PodGroup
from podium.model.resources import PodResources
from podium.model.selectors import Selector, accepted_selector
from podium.plugins.default_preemption import DefaultPreemption, start_time


class Budgets:
    """The PodDisruptionBudgets of a cluster, with the disruptions they allow now."""

    def __init__(self, cluster: Cluster) -> None:
        self._stops = cluster.rules.budgets_stop_at_first_violation
        """Whether a pod counts against no further budget once it violates one; upstream, which one comes first is
        random.
        """
        self._by_namespace: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
        for budget in cluster.store.of(PodDisruptionBudget):
            selector = accepted_selector(budget.spec.selector)
            if not selector.empty and not selector.nothing:
                self._by_namespace.setdefault(budget.namespace, []).append((budget, selector))

    def __bool__(self) -> bool:
        """Whether there are any budgets."""
        return bool(self._by_namespace)

    def violating(self, pods: Iterable[Pod]) -> list[bool]:
        """For each pod, whether evicting it after the previous ones would violate a budget."""
        left: dict[str, int] = {}
        found = []
        for pod in pods:
            is_violating = False
            for budget, selector in self._by_namespace.get(pod.namespace, ()) if pod.metadata.labels else ():
                # A pod in disruptedPods is accounted for: the API server already lowered the allowance for it.
                if pod.name in budget.status.disrupted_pods or not selector.matches(pod.metadata.labels):
                    continue
                left[budget.key] = left.get(budget.key, budget.status.disruptions_allowed) - 1
                is_violating = is_violating or left[budget.key] < 0
                if is_violating and self._stops:
                    break
            found.append(is_violating)
        return found


BELOW_ALL_PRIORITIES = 2**31
"""Added to every priority in a sum, so that fewer victims of negative priority count as better than more."""

CRITERIA = (
    "fewest violations of PodDisruptionBudgets",
    "lowest priority of the most important victim",
    "lowest sum of the victims' priorities",
    "fewest victims",
    "latest start of the most important victims",
)
"""What makes a candidate better than others, in order."""


class Candidate(NamedTuple):
    """A node, and the pods to evict there, the most important first."""

    node: str
    victims: tuple[Pod, ...]
    pdb_violations: int = 0

    @property
    def costs(self) -> tuple[float, ...]:
        """One number per criterion; the candidate with the smallest costs is the best."""
        priorities = [victim.priority for victim in self.victims]
        highest = max(priorities)
        started = [start_time(victim) for victim, own in zip(self.victims, priorities, strict=True) if own == highest]
        return (
            self.pdb_violations,
            priorities[0],
            sum(priorities) + len(priorities) * BELOW_ALL_PRIORITIES,
            len(priorities),
            -min(started),
        )


Costs = NDArray[np.float64]
"""[candidate, criterion]"""

NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")

DryRun = Candidate | Status
"""The candidate with its victims, or why evicting pods does not help."""

Evicted = tuple[int, ...] | Status
"""The same for a group of equal nodes: victims are positions in the order in which pods are reprieved."""

UNKNOWN, WITHOUT_VICTIMS, REJECTED, VIOLATING, GOOD = range(5)
"""The state of a row: not known; no pod may be evicted; evicting does not help; a candidate that violates a budget or
not.
"""


class Window(NamedTuple):
    """The rows that a search checks, from its first row on."""

    length: int | None
    """The number of rows until there are enough candidates, one of them good; None if all rows are not enough."""
    candidates: Ints
    """The positions of the candidates among these rows."""

    @classmethod
    def of(cls, kinds: bytes, enough: int) -> Window:
        candidates = (np.frombuffer(kinds, np.int8) >= VIOLATING).nonzero()[0]
        first_good = kinds.find(GOOD)
        if len(candidates) < enough or first_good < 0:
            return cls(None, candidates)
        last = candidates.item(enough - 1)
        if first_good <= last:
            return cls(last + 1, candidates[:enough])
        return cls(first_good + 1, candidates[candidates <= first_good])


def are_enough(kinds: bytes, enough: int) -> bool:
    """Whether the known candidates are enough to end a search."""
    good = kinds.count(GOOD)
    return good > 0 and good + kinds.count(VIOLATING) >= enough


class KnownDryRuns:
    """The outcomes for unchanged rows, for pods of one kind, as columns to search and choose by."""

    __slots__ = ("_changed", "by_state", "costs", "kinds", "outcomes")

    MOST_STATES = 1 << 12

    def __init__(self, changes: RowChangeLog) -> None:
        self._changed = RowChangeReader(changes)
        self.outcomes: NDArray[np.object_] = np.zeros(0, dtype=np.object_)
        """The DryRun of every row that is not UNKNOWN."""
        self.kinds: NDArray[np.int8] = np.zeros(0, dtype=np.int8)
        """The state of every row: UNKNOWN, WITHOUT_VICTIMS, REJECTED, VIOLATING or GOOD. A search reads them as bytes,
        which are faster to search than arrays.
        """
        self.costs: Costs = np.zeros((0, len(CRITERIA)))
        """The costs of every row that is a candidate."""
        self.by_state: RecentlyUsed[Evicted] = RecentlyUsed(self.MOST_STATES)
        """By resource state and the requests of the pods that may be evicted, in the order in which they are
        reprieved.
        """

    def catch_up(self, size: int) -> set[int]:
        """Forget the rows that changed, and make room for `size` rows.

        Returns the forgotten rows; none if all rows were forgotten.
        """
        changed, missing = self._changed.read(), size - len(self.kinds)
        if missing > 0:
            self.outcomes = np.concatenate([self.outcomes, np.zeros(missing, dtype=np.object_)])
            self.kinds = np.concatenate([self.kinds, np.zeros(missing, dtype=np.int8)])
            self.costs = np.concatenate([self.costs, np.zeros((missing, len(CRITERIA)))])
        if changed is None:
            self.kinds[:] = UNKNOWN
            return set()
        for row in changed:
            self.kinds[row] = UNKNOWN
        return changed

    def note(self, row: int, outcome: DryRun) -> None:
        """Record the outcome for a row."""
        self.outcomes[row] = outcome
        if type(outcome) is Candidate:
            self.kinds[row] = VIOLATING if outcome.pdb_violations else GOOD
            self.costs[row] = outcome.costs
        else:
            self.kinds[row] = WITHOUT_VICTIMS if outcome is NO_VICTIMS else REJECTED

    @contextmanager
    def forgetting(self, rows: slice | int) -> Iterator[None]:
        """Within this context, outcomes for these rows are neither reused nor kept, except that no pod there may be
        evicted.
        """
        self._forget(rows)
        yield
        self._forget(rows)

    def _forget(self, rows: slice | int) -> None:
        kinds = self.kinds[rows]
        self.kinds[rows] = np.where(kinds == WITHOUT_VICTIMS, kinds, UNKNOWN)


class _Order(NamedTuple):
    """The pods of a row that may be evicted, in the order in which they are reprieved."""

    pods: list[Placed]
    protected: int
    """How many pods at the front are reprieved first, because evicting them would violate a budget."""
    by_importance: list[Placed]
    """All of these pods, the most important first."""

    def resources(self) -> list[PodResources]:
        """The requests of each pod."""
        return [placed.info.resources for placed in self.pods]


class DryRuns:
    """Finds the victims on rows for one pod.

    All pods that may be evicted are removed; if the pod fits then, as many as possible are put back, the most important
    first. Pods whose eviction violates a budget are put back before all others.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        policy: DefaultPreemption,
        nominations: Nominations,
        changes: RowChangeLog,
        budgets: Budgets,
    ) -> None:
        self._pod, self._cluster, self._policy = evaluation.pod, evaluation.cluster, policy
        self._changes, self._budgets = changes, budgets
        self.recheck = recheck_of(evaluation, nominations)
        """The filters to run in trials."""
        has_groups = self._cluster.rules.pod_groups and self._cluster.store.has_any(PodGroup)
        self._units = VictimUnits(self._cluster) if has_groups else None
        """Finds the pods that are evicted together, if there may be any."""

    @property
    def rows_are_independent(self) -> bool:
        """Whether pods on one row cannot affect another row; victims of one group may be on several."""
        return self._units is None and self.recheck.rows_are_independent

    def run(self, rows: Ints, kinds: bytes, enough: int, memory: KnownDryRuns) -> tuple[Window, bytes]:
        """Record the outcome for the rows in order, `enough` at a time, until there are enough candidates.

        Returns the rows that were needed, and the state of all rows now.
        """
        while True:
            window = Window.of(kinds, enough)
            looked_at = len(rows) if window.length is None else -(-window.length // enough) * enough
            first = kinds.find(UNKNOWN, 0, looked_at)
            if first < 0:
                return window, kinds
            end = min((first // enough + 1) * enough, looked_at)
            unknown = [rows.item(place) for place in range(first, end) if kinds[place] == UNKNOWN]
            # Small steps, so that no more rows are tried than needed.
            most = max(enough - kinds.count(VIOLATING) - kinds.count(GOOD), 1)
            self.look_at(unknown, most, memory)
            kinds = memory.kinds.take(rows).tobytes()

    def look_at(self, rows: Iterable[int], most: int, memory: KnownDryRuns) -> None:
        """Record the outcome for unknown rows, trying at most `most` of them one by one.

        Rows that are equal for the filters, with equal pods to evict, share the result.
        """
        if self._units is not None:
            for row in [*rows][:most]:
                memory.note(row, self._try_units(row, self._units))
            return
        untried: dict[Hashable, dict[int, _Order]] = {}
        for row in rows:
            order = self._order(row)
            if order is None:
                memory.note(row, NO_VICTIMS)
                continue
            key = self._key(row, order)
            evicted = memory.by_state[key]
            if evicted is None:
                untried.setdefault(key, {})[row] = order
            else:
                memory.note(row, self._outcome(row, order, evicted))
        if not self.rows_are_independent:
            for alone in [*untried.values()][:most]:
                ((row, order),) = alone.items()
                memory.note(row, self._outcome(row, order, self._try(alone)[row]))
        elif untried:
            tried = self._try(dict(next(iter(alike.items())) for alike in untried.values()))
            for (key, alike), evicted in zip(untried.items(), tried.values(), strict=True):
                if isinstance(key, tuple):
                    memory.by_state[key] = evicted
                for row, order in alike.items():
                    memory.note(row, self._outcome(row, order, evicted))

    def _try_units(self, row: int, found: VictimUnits) -> DryRun:
        """The outcome for a row where pods of groups may run, some of them with members on other rows.

        Only this row is checked, but the members on other rows are gone as well while it is.
        """
        may_evict, recheck, name = self._policy.may_evict, self.recheck, self._cluster.names[row]
        units = [unit for unit in found.on([row]) if may_evict(self._cluster.as_victim(unit.pods[0].pod), self._pod)]
        if not units:
            return NO_VICTIMS
        order, evicted, violations = ReprieveOrder.of(units, self._budgets.violating), list[VictimUnit](), 0
        with self._changes.trial() as trial:
            state = recheck.state()
            for placed in (placed for unit in units for placed in unit.pods):
                recheck.take_off(trial, state, placed)
            (status,) = recheck.check(trial, state, [row])
            if status != SUCCESS:
                return status
            for unit, violating in zip(order.units, order.violations, strict=True):
                for placed in unit.pods:
                    recheck.put_back(trial, state, placed)
                (status,) = recheck.check(trial, state, [row])
                if status != SUCCESS:
                    for placed in unit.pods:
                        recheck.take_off(trial, state, placed)
                    evicted.append(unit)
                    violations += violating
        if not evicted:
            return Status.error(f'expected at least one victim pod on node "{name}"')
        if any(order.violations) and not all(order.violations):
            evicted.sort(key=lambda unit: unit.importance)
        return Candidate(name, tuple(placed.pod for unit in evicted for placed in unit.pods), violations)

    def _key(self, row: int, order: _Order) -> Hashable:
        """The inputs that determine the outcome for a row; the row itself if it cannot be shared."""
        recheck, states = self.recheck, self._cluster.resource_states
        if not recheck.reads_resources_only(row) or recheck.has_nominated(row):
            return row
        return states.epoch, states.read().item(row), *order.resources()

    def _try(self, orders: Mapping[int, _Order]) -> dict[int, Evicted]:
        """The victims on each row, in the order of the given rows."""
        with self._changes.trial() as trial:
            state, rows = self.recheck.state(), list(orders)
            for order in orders.values():
                for placed in order.pods:
                    self.recheck.take_off(trial, state, placed)
            checked = dict(zip(rows, self.recheck.check(trial, state, rows), strict=True))
            passing = {row: orders[row].pods for row, status in checked.items() if status == SUCCESS}
            return checked | self._spare(trial, state, passing)

    def _by_importance(self, pods: list[Placed]) -> list[Placed]:
        if len(pods) == 1:
            return pods
        # Pods that compare equal stay in order. But kube-scheduler reads the clock twice to compare pods that have not
        # started, finds the second reading later, and so puts the last of them first.
        places = [place if placed.pod.status.start_time else -place for place, placed in enumerate(pods)]
        keys = [(self._policy.importance(placed.pod), place) for placed, place in zip(pods, places, strict=True)]
        return [pods[index] for index in sorted(range(len(pods)), key=keys.__getitem__)]

    def _order(self, row: int) -> _Order | None:
        """The pods of a row that may be evicted: pods protected by a budget first, each group by importance; None if
        none may.
        """
        may_evict, preemptor = self._policy.may_evict, self._pod
        pods = [placed for placed in self._cluster.placed_on(row) if may_evict(placed.pod, preemptor)]
        if not pods:
            return None
        ordered = self._by_importance(pods)
        if not self._budgets:
            return _Order(ordered, 0, ordered)
        violating = self._budgets.violating(placed.pod for placed in ordered)
        protected = [placed for placed, is_violating in zip(ordered, violating, strict=True) if is_violating]
        others = [placed for placed, is_violating in zip(ordered, violating, strict=True) if not is_violating]
        return _Order(protected + others, len(protected), ordered)

    def _spare(self, trial: PodTrial, state: CycleState, orders: dict[int, list[Placed]]) -> dict[int, Evicted]:
        """Put pods back one by one, in all rows at the same time; a pod that no longer fits is a victim."""
        evicted: dict[int, list[int]] = {row: [] for row in orders}
        for turn in range(max(map(len, orders.values()), default=0)):
            rows = [row for row, order in orders.items() if turn < len(order)]
            for row in rows:
                self.recheck.put_back(trial, state, orders[row][turn])
            for row, status in zip(rows, self.recheck.check(trial, state, rows), strict=True):
                if status != SUCCESS:
                    self.recheck.take_off(trial, state, orders[row][turn])
                    evicted[row].append(turn)
        return {row: tuple(places) for row, places in evicted.items()}

    def _outcome(self, row: int, order: _Order, evicted: Evicted) -> DryRun:
        if isinstance(evicted, Status):
            return evicted
        name = self._cluster.names[row]
        if not evicted:
            # Something other than the filters rejected the node, so evicting pods does not help.
            return Status.error(f'expected at least one victim pod on node "{name}"')
        victims = [order.pods[place] for place in evicted]
        violations = sum([place < order.protected for place in evicted]) if order.protected else 0
        if violations:
            victims.sort(key=order.by_importance.index)
        return Candidate(name, tuple([placed.pod for placed in victims]), violations)
