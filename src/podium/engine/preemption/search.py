"""The search for a node where evicting pods makes room for a pod, the victims there, and carrying the eviction
out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.cluster.cluster import Placed, PodTrial
from podium.cluster.columns import Ints, is_any
from podium.engine._evaluation import Evaluation
from podium.engine._recheck import Nominations, Recheck, RowChangeLog, RowChangeReader, recheck_of
from podium.engine.decision import Decision, Eviction
from podium.engine.preemption.choice import (
    CRITERIA,
    Candidate,
    Candidates,
    Costs,
    ask_extenders,
    pick,
    potential_rows,
    why_not_eligible,
)
from podium.engine.select import TieBreak
from podium.errors import ExtenderError
from podium.extenders import Extender
from podium.framework import SUCCESS, Code, CycleState, Framework, PostFilterResult, Status
from podium.framework.plugin import ObjectChange
from podium.memory import RecentlyUsed
from podium.model import Pod, PodDisruptionBudget
from podium.model.selectors import Selector, accepted_selector
from podium.plugins.queue_and_bind import PREEMPTION, DefaultPreemption
from podium.rules import Rules


class Budgets:
    """The budgets of a cluster, with the disruptions they allow now."""

    def __init__(self, cluster: Cluster) -> None:
        self._stops = cluster.rules.budgets_stop_at_first_violation
        """Whether a pod counts for no further budget once it violates one; which one that is, is chance upstream."""
        self._by_namespace: dict[str, list[tuple[PodDisruptionBudget, Selector]]] = {}
        for budget in cluster.store.of(PodDisruptionBudget):
            selector = accepted_selector(budget.spec.selector)
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


NO_VICTIMS = Status.unresolvable("No preemption victims found for incoming pod")


DryRun = Candidate | Status
"""The pods of a node that have to go, or why that does not help."""

Evicted = tuple[int, ...] | Status
"""The same for nodes that are alike: pods go by their place in the order in which they are spared."""

UNKNOWN, WITHOUT_VICTIMS, REJECTED, VIOLATING, GOOD = range(5)
"""What is known of a row: nothing; no pod there may go; evicting pods does not help; a candidate, and which sort."""
Kinds = NDArray[np.int8]


def stop_at(kinds: Kinds, enough: int) -> int | None:
    """How many rows are looked at until there are enough candidates, one of them good; None if there are not."""
    places = (kinds >= VIOLATING).nonzero()[0]
    if len(places) < max(enough, 1):
        return None
    first_good = first_of(GOOD, kinds)
    return max(places.item(max(enough, 1) - 1), first_good) + 1 if first_good >= 0 else None


def first_of(kind: int, kinds: Kinds) -> int:
    """The first place of a kind; -1 if there is none. Bytes are looked through in less time than an array takes."""
    return kinds.tobytes().find(kind)


class KnownDryRuns:
    """The outcomes for rows that did not change since, for pods of one kind, as columns to search and choose by."""

    __slots__ = ("_changed", "by_state", "costs", "kinds", "outcomes")

    MOST_STATES = 1 << 12

    def __init__(self, changes: RowChangeLog) -> None:
        self._changed = RowChangeReader(changes)
        self.outcomes: NDArray[np.object_] = np.zeros(0, dtype=np.object_)
        """Of every row that is not UNKNOWN, its DryRun."""
        self.kinds: Kinds = np.zeros(0, dtype=np.int8)
        """Of every row: UNKNOWN, WITHOUT_VICTIMS, REJECTED, VIOLATING or GOOD."""
        self.costs: Costs = np.zeros((len(CRITERIA), 0))
        """Of every row that is a candidate, its costs."""
        self.by_state: RecentlyUsed[Evicted] = RecentlyUsed(self.MOST_STATES)
        """By resource state and by what each pod that may go requests, in the order in which they are spared."""

    def catch_up(self, size: int) -> None:
        """Forget the rows that changed, and make room for as many as there are."""
        changed, missing = self._changed.read(), size - len(self.kinds)
        if missing > 0:
            self.outcomes = np.concatenate([self.outcomes, np.zeros(missing, dtype=np.object_)])
            self.kinds = np.concatenate([self.kinds, np.zeros(missing, dtype=np.int8)])
            self.costs = np.concatenate([self.costs, np.zeros((len(CRITERIA), missing))], axis=1)
        if changed is None:
            self.kinds[:] = UNKNOWN
        elif changed:
            self.kinds[[*changed]] = UNKNOWN

    def note(self, row: int, outcome: DryRun) -> None:
        """Note the outcome for a row."""
        self.outcomes[row] = outcome
        if type(outcome) is Candidate:
            self.kinds[row] = VIOLATING if outcome.pdb_violations else GOOD
            self.costs[:, row] = outcome.costs
        else:
            self.kinds[row] = WITHOUT_VICTIMS if outcome is NO_VICTIMS else REJECTED

    @contextmanager
    def forgetting(self, rows: slice | int) -> Iterator[None]:
        """Outcomes for these rows are not known from before, nor kept afterwards; except that no pod there may go."""
        self._forget(rows)
        yield
        self._forget(rows)

    def _forget(self, rows: slice | int) -> None:
        kinds = self.kinds[rows]
        self.kinds[rows] = np.where(kinds == WITHOUT_VICTIMS, kinds, UNKNOWN)


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
    def recheck(self) -> Recheck:
        """The filters, to be run in trials."""
        return recheck_of(self._evaluation, self._nominations)

    @cached_property
    def _budgets(self) -> Budgets:
        return Budgets(self._cluster)

    def run(self, rows: Ints, kinds: Kinds, enough: int, memory: KnownDryRuns) -> tuple[int | None, Kinds]:
        """Note the outcome for the rows in order, `enough` at a time, until there are enough candidates.

        How many rows it takes, None where all of them are not enough; and what is known of the rows now.
        """
        together = max(enough, 1)
        while True:
            stop = stop_at(kinds, enough)
            looked_at = len(rows) if stop is None else -(-stop // together) * together
            first = first_of(UNKNOWN, kinds[:looked_at])
            if first < 0:
                return stop, kinds
            batch = slice(first, min((first // together + 1) * together, looked_at))
            # One by one, no more rows are tried than it takes.
            most = max(enough - int(np.count_nonzero(kinds >= VIOLATING)), 1)
            self._look_at(rows[batch][kinds[batch] == UNKNOWN].tolist(), most, memory)
            kinds = memory.kinds[rows]

    def _look_at(self, rows: list[int], most: int, memory: KnownDryRuns) -> None:
        """Note the outcome for rows of which nothing is known; for no more than `most` that have to be tried alone."""
        orders = {}
        for row in rows:
            pods = self._potential(row)
            if pods:
                orders[row] = self._order(pods)
            else:
                memory.note(row, NO_VICTIMS)
        if not orders:
            return
        if self.recheck.rows_are_independent:
            evicted = self._try_alike(orders, memory.by_state)
        else:
            evicted = {row: self._try({row: orders[row]})[row] for row in [*orders][:most]}
        for row, found in evicted.items():
            memory.note(row, self._outcome(row, orders[row], found))

    def _try_alike(self, orders: dict[int, list[_Spared]], known: RecentlyUsed[Evicted]) -> dict[int, Evicted]:
        """Who has to go on each row; rows that are alike to the filters, and the pods that may go there, share it."""
        keys = self._keys(orders)
        found: dict[Hashable, Evicted] = {key: known[key] for key in set(keys.values()) if known[key] is not None}
        untried = {key: row for row, key in keys.items() if key not in found}
        tried = self._try({row: orders[row] for row in untried.values()})
        for key, row in untried.items():
            found[key] = tried[row]
            if key != row:
                known[key] = tried[row]
        return {row: found[key] for row, key in keys.items()}

    def _keys(self, orders: Mapping[int, list[_Spared]]) -> dict[int, Hashable]:
        """Of each row, what the outcome for it depends on: the row itself where that may be anything."""
        recheck, states = self.recheck, self._cluster.resource_states
        if not recheck.reads_resources_only([*orders]):
            return {row: row for row in orders}
        of_row = states.read()
        keys: dict[int, Hashable] = {}
        for row, order in orders.items():
            resources = [one.placed.info.resources for one in order]
            keys[row] = row if recheck.has_nominated(row) else (states.epoch, of_row.item(row), *resources)
        return keys

    def _try(self, orders: Mapping[int, list[_Spared]]) -> dict[int, Evicted]:
        """Who has to go on each row, given the pods that may go there in the order in which they are spared."""
        if not orders:
            return {}
        with self._changes.trial() as trial:
            state, rows = self.recheck.state(), list(orders)
            for order in orders.values():
                for one in order:
                    self.recheck.take_off(trial, state, one.placed)
            checked = dict(zip(rows, self.recheck.check(trial, state, rows), strict=True))
            found: dict[int, Evicted] = {row: status for row, status in checked.items() if status != SUCCESS}
            return found | self._spare(trial, state, {row: orders[row] for row in rows if row not in found})

    def _potential(self, row: int) -> list[Placed]:
        placed_on = self._cluster.placed_on(row)
        return [placed for placed in placed_on if self._policy.may_evict(placed.pod, self._pod)]

    def _by_importance(self, pods: list[Placed]) -> list[Placed]:
        if len(pods) == 1:
            return pods
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

    def _spare(self, trial: PodTrial, state: CycleState, orders: dict[int, list[_Spared]]) -> dict[int, Evicted]:
        """Let pods come back one by one, in all rows at the same time; who does not fit any more is a victim."""
        evicted: dict[int, list[int]] = {row: [] for row in orders}
        for turn in range(max(map(len, orders.values()), default=0)):
            rows = [row for row, order in orders.items() if turn < len(order)]
            for row in rows:
                self.recheck.put_back(trial, state, orders[row][turn].placed)
            for row, status in zip(rows, self.recheck.check(trial, state, rows), strict=True):
                if status != SUCCESS:
                    self.recheck.take_off(trial, state, orders[row][turn].placed)
                    evicted[row].append(turn)
        return {row: tuple(places) for row, places in evicted.items()}

    def _outcome(self, row: int, order: list[_Spared], evicted: Evicted) -> DryRun:
        if isinstance(evicted, Status):
            return evicted
        name = self._cluster.names[row]
        if not evicted:
            # Something other than the filters rejected the node, so that evicting pods does not help.
            return Status.error(f'expected at least one victim pod on node "{name}"')
        victims = sorted([order[place] for place in evicted], key=lambda one: one.rank)
        return Candidate(name, tuple([one.placed.pod for one in victims]), sum([one.is_violating for one in victims]))


NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CANDIDATE = "no candidate node for preemption"

KEEP, CLEAR = None, ""
"""What a result without a node says about the pod's nomination so far."""


Found = tuple[Candidates | None, list[Status]]
"""The candidates, those that violate no budget first; or why each row is none."""


class Search:
    """One pod's search; plugins start it with `attempt`. It changes nothing: its caller carries the choice out.

    `rng` draws where among the nodes the search begins, when it need not look at all of them.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        nominations: Nominations,
        extenders: Sequence[Extender],
        tie_break: TieBreak,
        rng: random.Random,
        changes: RowChangeLog,
        memories: RecentlyUsed[KnownDryRuns],
    ) -> None:
        self._evaluation, self._nominations, self._extenders = evaluation, nominations, extenders
        self._tie_break, self._rng, self._changes, self._memories = tie_break, rng, changes, memories
        self.candidates: tuple[Candidate, ...] = ()
        """The nodes where evicting pods helps, as the plugin chose among them."""
        self.chosen: Candidate | None = None
        self.chosen_by = ""
        """What made the chosen candidate better than the others."""

    def attempt(self, policy: DefaultPreemption, statuses: Mapping[str, Status]) -> PostFilterResult:
        """Find the best node; `statuses` says of every node why the pod does not fit."""
        pod, cluster = self._evaluation.pod, self._evaluation.cluster
        nominated = self._nominations.node_of(pod)
        reason = why_not_eligible(pod, nominated, policy, statuses, cluster)
        if reason:
            return PostFilterResult(Status.unschedulable(reason), KEEP)
        found, rejected = self._find(policy, potential_rows(statuses, cluster), cluster.rows.get(nominated, -1))
        if found is None:
            return self._none_found(rejected, cluster.node_count)
        try:
            agreed = ask_extenders(self._extenders, pod, found.listed, cluster)
        except ExtenderError as error:
            return PostFilterResult(Status.error(str(error)), KEEP)
        if not agreed:
            return PostFilterResult(Status.unschedulable(NO_CANDIDATE), KEEP)
        self.candidates = tuple(agreed)
        candidates = found if agreed is found.listed else Candidates.of(agreed, cluster)
        self.chosen, self.chosen_by = pick(candidates, self._tie_break, cluster)
        return PostFilterResult(self._success(self.chosen), self.chosen.node)

    def _success(self, chosen: Candidate) -> Status:
        if not self._evaluation.cluster.rules.preemption_reports_success:
            return SUCCESS
        placement = f"found a potential placement for pod on node {chosen.node}"
        return Status(Code.SUCCESS, (f"{placement}, preempting {len(chosen.victims)} victims",))

    def _find(self, policy: DefaultPreemption, rows: Ints, own_row: int) -> Found:
        """Find candidates among the rows, and remember what was found out about each row."""
        if not len(rows):
            return None, []
        evaluation, enough = self._evaluation, policy.enough_candidates(len(rows))
        runs = DryRuns(evaluation, policy, self._nominations, self._changes)
        memory = self._memories.get_or_make(
            (policy, evaluation.state.info.signature), lambda: KnownDryRuns(self._changes)
        )
        memory.catch_up(evaluation.cluster.columns.capacity)
        if not runs.recheck.rows_are_independent and is_any(memory.kinds[rows] != WITHOUT_VICTIMS):
            # Whatever else is known is from when rows were independent, and what is found now holds for now only.
            with memory.forgetting(slice(None)):
                return self._look(runs, rows, enough, memory, 1)
        if own_row >= 0:
            # Where the pod is nominated itself it does not meet itself, but others of its kind do.
            with memory.forgetting(own_row):
                return self._look(runs, rows, enough, memory, max(enough, 1))
        return self._look(runs, rows, enough, memory, max(enough, 1))

    def _look(self, runs: DryRuns, rows: Ints, enough: int, memory: KnownDryRuns, together: int) -> Found:
        """Look at the rows from a random one on. Rows are tried `together`."""
        # The draw is taken back only where the search looks at all rows, which it does not if enough are known.
        kinds = memory.kinds[rows]
        before = None if stop_at(kinds, enough) else self._rng.getstate()
        offset = self._rng.randrange(len(rows))
        others, kinds = np.concatenate((rows[offset:], rows[:offset])), np.concatenate((kinds[offset:], kinds[:offset]))
        if first_of(WITHOUT_VICTIMS, kinds) >= 0:
            has_victims = kinds != WITHOUT_VICTIMS
            others, kinds = others[has_victims], kinds[has_victims]
        stop, kinds = runs.run(others, kinds, enough, memory)
        kinds = kinds[:stop]
        if (
            stop is None
            and before is not None
            and (len(others) < len(rows) or not is_any(kinds[:together] >= VIOLATING))
        ):
            # All rows were looked at, wherever the search began: it need not be repeated for pods of the same kind.
            self._rng.setstate(before)
        places = (kinds == GOOD).nonzero()[0]
        if first_of(VIOLATING, kinds) >= 0:
            places = np.concatenate((places, (kinds == VIOLATING).nonzero()[0]))
        if not len(places):
            return None, [NO_VICTIMS] * (len(rows) - len(others)) + memory.outcomes[others].tolist()
        found = others[places]
        return Candidates(memory.outcomes[found].tolist(), found, memory.costs[:, found]), []

    def _none_found(self, statuses: list[Status], node_count: int) -> PostFilterResult:
        """Why evicting pods helps nowhere, in the words of a pod that fits nowhere."""
        errors = list(dict.fromkeys(status.message for status in statuses if status.code is Code.ERROR))
        if errors:
            return PostFilterResult(Status.error(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]"), KEEP)
        counts = Counter(reason for status in statuses for reason in status.reasons)
        counts[NOT_HELPFUL] += node_count - len(statuses)
        reasons = sorted(f"{count} {reason}" for reason, count in counts.items() if count)
        return PostFilterResult(
            Status.unschedulable(f"0/{node_count} nodes are available: {', '.join(reasons)}."), CLEAR
        )


def run_post_filter(
    framework: Framework, state: CycleState, pod: Pod, statuses: Mapping[str, Status]
) -> PostFilterResult:
    """Ask the plugins in order until one succeeds, fails, or says that nothing can help; otherwise join their words.

    The result's nominated node is a name, "" to take a nomination back, or None to leave it as it is.
    """
    reasons: list[str] = []
    nominated: str | None = None
    changes: tuple[ObjectChange, ...] = ()
    for plugin in framework.post_filter:
        result = plugin.post_filter(state, pod, statuses)
        code = result.status.code
        changes += result.changes
        if code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
            return result._replace(changes=changes)
        if not code.rejects:
            return PostFilterResult(Status.error(*result.status.reasons), changes=changes)
        if result.nominated_node is not None:
            nominated = result.nominated_node
        reasons += result.status.reasons
    return PostFilterResult(Status.unschedulable(*reasons), nominated, changes)


def outlook(decision: Decision, pod: Pod, cluster: Cluster, framework: Framework) -> Eviction | None:
    """Where evicting pods could make room, without trying; None if a plugin decides that of which nothing is known."""
    plugin = next((each for each in framework.post_filter if isinstance(each, DefaultPreemption)), None)
    if plugin is None and framework.post_filter:
        return None
    helpful = [name for name, status in decision.rejected.items() if status.code is Code.UNSCHEDULABLE]
    if plugin is None:
        return Eviction((), len(helpful), "its profile has no plugin that evicts pods")
    if pod.spec.preemption_policy == "Never":
        return Eviction((), len(helpful), "its preemptionPolicy is Never")
    nodes = tuple(
        name for name in helpful if any(plugin.may_evict(victim, pod) for victim in cluster.pods_on(cluster.rows[name]))
    )
    return Eviction(nodes, len(helpful) - len(nodes))


class Preemption:
    """Preemption for the pods of one scheduler. The same seed gives the same choices."""

    MOST_KINDS = 256

    def __init__(
        self,
        nominations: Nominations,
        changes: RowChangeLog,
        extenders: Sequence[Extender],
        tie_break: TieBreak,
        seed: int,
    ) -> None:
        self._nominations, self._changes, self._extenders = nominations, changes, extenders
        self._tie_break, self._rng = tie_break, random.Random(seed)
        self._memories: RecentlyUsed[KnownDryRuns] = RecentlyUsed(self.MOST_KINDS)

    def save(self) -> Any:
        """What the next search depends on, to be given to `restore`."""
        return self._rng.getstate()

    def restore(self, saved: Any) -> None:
        self._rng.setstate(saved)

    def attempt(
        self, rejected: Mapping[str, Status], absent: Status | None, evaluation: Evaluation, framework: Framework
    ) -> dict[str, Any]:
        """What PostFilter makes of a pod that fits nowhere, as fields of the decision.

        `rejected` says why each node does not fit, `absent` why those do not that no filter looked at.
        """
        if not framework.post_filter:
            return {"clears_nomination": True}
        cluster, pod = evaluation.cluster, evaluation.pod
        search = Search(
            evaluation, self._nominations, self._extenders, self._tie_break, self._rng, self._changes, self._memories
        )
        state = CycleState(evaluation.state.info, evaluation.state | {PREEMPTION: search})
        statuses = rejected
        if len(statuses) < cluster.node_count and cluster.rules.counts_absent_nodes:
            others = absent or Status.unresolvable()
            statuses = {name: rejected.get(name, others) for name in cluster.rows}
        result = run_post_filter(framework, state, pod, statuses)
        chosen = search.chosen if search.chosen and search.chosen.node == result.nominated_node else None
        return {
            "post_filter_message": result.status.message,
            "nominated": result.nominated_node or None,
            "clears_nomination": result.nominated_node == "",
            "victims": self._deleted(chosen, cluster.rules) if chosen else (),
            "changes": result.changes,
            "candidates": search.candidates,
            "chosen_by": search.chosen_by,
        }

    @staticmethod
    def _deleted(chosen: Candidate, rules: Rules) -> tuple[str, ...]:
        """The victims that are deleted; where the release spares them, not those that are terminating."""
        deleted = [pod for pod in chosen.victims if not (pod.terminating and rules.spares_terminating_victims)]
        return tuple(sorted(pod.key for pod in deleted))

    def carry_out(self, pod: Pod, decision: Decision, cluster: Cluster | None) -> None:
        """Nominate the pod and clear the nominations it overrides; given a cluster, remove the victims from it.

        What plugins wanted changed, such as claims that are to give back their devices, is changed there as well.
        """
        if decision.nominated is not None:
            self._nominations.clear_lower(decision.nominated, pod.priority)
            self._nominations.nominate(pod, decision.nominated)
        elif decision.clears_nomination or decision.error or not decision.node_count:
            self._nominations.nominate(pod, "")
        if cluster is None:
            return
        for change in decision.changes:
            cluster.remove(change.before) if change.after is None else cluster.update(change.after)
        for key in decision.victims:
            found = cluster.find_pod(key)
            if found is not None:
                cluster.end(found[0])
