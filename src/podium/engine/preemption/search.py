"""The search for a node where evicting pods makes room for a pod, the victims there, and carrying the eviction
out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from podium.cluster import Cluster
from podium.cluster.cluster import Placed, Trial
from podium.cluster.columns import Ints, Mask
from podium.engine.decision import Decision, Eviction
from podium.engine.evaluation import Evaluation
from podium.engine.preemption.choice import Candidate, ask_extenders, pick, potential_rows, why_not_eligible
from podium.engine.recheck import Nominations, Recheck, RowCache, RowChangeLog, recheck_of
from podium.engine.select import TieBreak
from podium.errors import ExtenderError, SelectorError
from podium.extenders import Extender
from podium.framework import SUCCESS, Code, CycleState, Framework, PostFilterResult, Status
from podium.framework.plugin import ObjectChange
from podium.memory import RecentlyUsed
from podium.model import Pod, PodDisruptionBudget
from podium.model.selectors import NOTHING, Selector, label_selector
from podium.plugins.queue_and_bind import PREEMPTION, DefaultPreemption
from podium.rules import Rules


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


class KnownDryRuns(RowCache[DryRun]):
    """The outcome for rows that did not change since, for pods of one kind."""

    __slots__ = ("_without_victims",)

    def __init__(self, changes: RowChangeLog) -> None:
        super().__init__(changes)
        self._without_victims: Mask = np.zeros(0, dtype=np.bool_)

    def others(self, rows: Ints) -> Ints:
        """The rows that are not known to have no pod that may go; what changed is forgotten first."""
        changed = self.forget_changed()
        size = int(rows.max()) + 1
        if changed is None or size > len(self._without_victims):
            self._without_victims = np.zeros(2 * size, dtype=np.bool_)
            self._without_victims[[row for row, outcome in self.found.items() if outcome is NO_VICTIMS]] = True
        elif changed:
            self._without_victims[[row for row in changed if row < len(self._without_victims)]] = False
        return rows[~self._without_victims[rows]]

    def note_without_victims(self, row: int) -> None:
        """Note that a row has no pod that may go."""
        self.found[row] = NO_VICTIMS
        self._without_victims[row] = True


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

    def run(self, rows: Ints, together: int, memory: KnownDryRuns, own_row: int) -> Iterator[Sequence[DryRun]]:
        """The outcome for each row, lazily: one by one or, where rows are independent, `together`.

        First come the rows that are known to have no pod that may go, then the others in order. That is remembered,
        and what is found for independent rows, except on the row that the pod is nominated to itself.
        """
        others = memory.others(rows)
        if len(others) < len(rows):
            yield [NO_VICTIMS] * (len(rows) - len(others))
        known = memory.found
        for start in range(0, len(others), together):
            batch = others[start : start + together].tolist()
            potential = {row: self._potential(row) for row in batch if row not in known}
            for row in [row for row, pods in potential.items() if not pods]:
                memory.note_without_victims(row)
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


NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CANDIDATE = "no candidate node for preemption"

KEEP, CLEAR = None, ""
"""What a result without a node says about the pod's nomination so far."""


class Search:
    """One pod's search; plugins start it with `attempt`. It changes nothing: whoever started it carries the choice out.

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
        if not found:
            return self._none_found(rejected, cluster.node_count)
        try:
            found = ask_extenders(self._extenders, pod, found, cluster)
        except ExtenderError as error:
            return PostFilterResult(Status.error(str(error)), KEEP)
        if not found:
            return PostFilterResult(Status.unschedulable(NO_CANDIDATE), KEEP)
        self.candidates = tuple(found)
        self.chosen, self.chosen_by = pick(found, self._tie_break, cluster)
        return PostFilterResult(self._success(self.chosen), self.chosen.node)

    def _success(self, chosen: Candidate) -> Status:
        if not self._evaluation.cluster.rules.preemption_reports_success:
            return SUCCESS
        placement = f"found a potential placement for pod on node {chosen.node}"
        return Status(Code.SUCCESS, (f"{placement}, preempting {len(chosen.victims)} victims",))

    def _find(self, policy: DefaultPreemption, rows: Ints, own_row: int) -> tuple[list[Candidate], list[Status]]:
        """Candidates, those that violate no budget first; without any, what was said of all the rows."""
        if not len(rows):
            return [], []
        evaluation, before = self._evaluation, self._rng.getstate()
        offset, enough = self._rng.randrange(len(rows)), policy.enough_candidates(len(rows))
        rows = np.concatenate([rows[offset:], rows[:offset]])
        runs = DryRuns(evaluation, policy, self._nominations, self._changes)
        memory = self._memories.get_or_make(
            (policy, evaluation.state.info.signature), lambda: KnownDryRuns(self._changes)
        )
        good: list[Candidate] = []
        violating: list[Candidate] = []
        rejected: list[Status] = []
        for outcomes in runs.run(rows, max(enough, 1), memory, own_row):
            for candidate in [outcome for outcome in outcomes if type(outcome) is Candidate]:
                (violating if candidate.pdb_violations else good).append(candidate)
                if good and len(good) + len(violating) >= enough:
                    return good + violating, []
            if not (good or violating):
                rejected += [outcome for outcome in outcomes if type(outcome) is Status]
        if rejected:
            # All rows were looked at, wherever the search began: it need not be repeated for pods of the same kind.
            self._rng.setstate(before)
        return good + violating, rejected

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

    def attempt(self, decision: Decision, evaluation: Evaluation, framework: Framework) -> Decision:
        """The decision about a pod that fits nowhere, with what PostFilter made of it."""
        if not framework.post_filter:
            return replace(decision, clears_nomination=True)
        cluster, pod = evaluation.cluster, evaluation.pod
        search = Search(
            evaluation, self._nominations, self._extenders, self._tie_break, self._rng, self._changes, self._memories
        )
        state = CycleState(evaluation.state.info, evaluation.state | {PREEMPTION: search})
        absent = decision.absent or Status.unresolvable()
        statuses = decision.rejected
        if len(statuses) < cluster.node_count and cluster.rules.counts_absent_nodes:
            statuses = {name: decision.rejected.get(name, absent) for name in cluster.rows}
        result = run_post_filter(framework, state, pod, statuses)
        chosen = search.chosen if search.chosen and search.chosen.node == result.nominated_node else None
        return replace(
            decision,
            post_filter_message=result.status.message,
            nominated=result.nominated_node or None,
            clears_nomination=result.nominated_node == "",
            victims=self._deleted(chosen, cluster.rules) if chosen else (),
            changes=result.changes,
            candidates=search.candidates,
            chosen_by=search.chosen_by,
        )

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
