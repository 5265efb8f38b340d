"""The search for a node where evicting pods makes room for a pod, the victims there, and carrying the eviction
out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.cluster.cluster import Placed, PodTrial
from podium.cluster.columns import Ints, is_any
from podium.engine._evaluation import Evaluation
from podium.engine._recheck import Nominations, RowChangeLog, RowChangeReader, recheck_of
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
from podium.errors import ExtenderError, SelectorError
from podium.extenders import Extender
from podium.framework import SUCCESS, Code, CycleState, Framework, PostFilterResult, Status
from podium.framework.plugin import ObjectChange
from podium.memory import RecentlyUsed
from podium.model import Pod, PodDisruptionBudget
from podium.model.resources import PodResources
from podium.model.selectors import NOTHING, Selector, label_selector
from podium.plugins.queue_and_bind import PREEMPTION, DefaultPreemption


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

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool(self._by_namespace)

    def violating(self, pods: Iterable[Pod]) -> list[bool]:
        """Whether evicting each pod, after those before it, would violate a budget."""
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

Evicted = tuple[int, ...] | Status
"""The same for nodes that are alike: pods go by their place in the order in which they are spared."""

UNKNOWN, WITHOUT_VICTIMS, REJECTED, VIOLATING, GOOD = range(5)
"""What is known of a row: nothing; no pod there may go; evicting pods does not help; a candidate, and which sort."""
Kinds = NDArray[np.int8]


class Window(NamedTuple):
    """The rows that a search looks at, from the first one on."""

    length: int | None
    """How many rows it takes until there are enough candidates, one of them good; None if all are not enough."""
    candidates: Ints
    """The places of the candidates among these rows."""

    @classmethod
    def of(cls, kinds: Kinds, enough: int) -> Window:
        candidates = (kinds >= VIOLATING).nonzero()[0]
        first_good = first_of(GOOD, kinds)
        if len(candidates) < enough or first_good < 0:
            return cls(None, candidates)
        last = candidates.item(enough - 1)
        if first_good <= last:
            return cls(last + 1, candidates[:enough])
        return cls(first_good + 1, candidates[candidates <= first_good])


def are_enough(kinds: Kinds, enough: int) -> bool:
    """Whether the rows that are known to be candidates end a search."""
    known = kinds.tobytes()
    good = known.count(GOOD)
    return good > 0 and good + known.count(VIOLATING) >= enough


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
        self.costs: Costs = np.zeros((0, len(CRITERIA)))
        """Of every row that is a candidate, its costs."""
        self.by_state: RecentlyUsed[Evicted] = RecentlyUsed(self.MOST_STATES)
        """By resource state and by what each pod that may go requests, in the order in which they are spared."""

    def catch_up(self, size: int) -> set[int]:
        """Forget the rows that changed, and make room for as many as there are.

        The rows that were forgotten, unless that is all of them.
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
        """Note the outcome for a row."""
        self.outcomes[row] = outcome
        if type(outcome) is Candidate:
            self.kinds[row] = VIOLATING if outcome.pdb_violations else GOOD
            self.costs[row] = outcome.costs
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


class _Order(NamedTuple):
    """The pods of a row that may go, in the order in which they are spared if possible."""

    pods: list[Placed]
    protected: int
    """How many of them, the first ones, are spared before all others, as their eviction would violate a budget."""
    by_importance: list[Placed]
    """All of them, the most important first."""

    def resources(self) -> list[PodResources]:
        """What each of them requests."""
        return [placed.info.resources for placed in self.pods]


class DryRuns:
    """Finds the victims on rows for one pod.

    All pods that may go are taken off; if the pod fits then, as many as possible come back, the most important first,
    but before all others those whose eviction violates a budget.
    """

    def __init__(self, evaluation: Evaluation, policy: DefaultPreemption, shared: Surroundings) -> None:
        self._pod, self._cluster, self._policy = evaluation.pod, evaluation.cluster, policy
        self._changes, self._budgets = shared.changes, shared.budgets(evaluation.cluster)
        self.recheck = recheck_of(evaluation, shared.nominations)
        """The filters, to be run in trials."""

    def run(self, rows: Ints, kinds: Kinds, enough: int, memory: KnownDryRuns) -> tuple[Window, Kinds]:
        """Note the outcome for the rows in order, `enough` at a time, until there are enough candidates.

        The rows that it takes, and what is known of all rows now.
        """
        while True:
            window = Window.of(kinds, enough)
            looked_at = len(rows) if window.length is None else -(-window.length // enough) * enough
            first = first_of(UNKNOWN, kinds[:looked_at])
            if first < 0:
                return window, kinds
            batch = slice(first, min((first // enough + 1) * enough, looked_at))
            # One by one, no more rows are tried than it takes.
            most = max(enough - int(np.count_nonzero(kinds >= VIOLATING)), 1)
            self.look_at(rows[batch][kinds[batch] == UNKNOWN].tolist(), most, memory)
            kinds = memory.kinds[rows]

    def look_at(self, rows: Iterable[int], most: int, memory: KnownDryRuns) -> None:
        """Note the outcome for rows of which nothing is known; for no more than `most` that have to be tried alone.

        Rows that are alike to the filters, and the pods that may go there, share what is found out.
        """
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
        if not self.recheck.rows_are_independent:
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

    def _key(self, row: int, order: _Order) -> Hashable:
        """What the outcome for a row depends on: the row itself where that may be anything."""
        recheck, states = self.recheck, self._cluster.resource_states
        if not recheck.reads_resources_only(row) or recheck.has_nominated(row):
            return row
        return states.epoch, states.read().item(row), *order.resources()

    def _try(self, orders: Mapping[int, _Order]) -> dict[int, Evicted]:
        """Who has to go on each row, in the order of the rows given."""
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
        # Of pods that are alike the first comes first. But kube-scheduler takes the time twice to compare pods that
        # have not started, finds the second reading later, and so puts the last of them first.
        places = [place if placed.pod.status.start_time else -place for place, placed in enumerate(pods)]
        keys = [(self._policy.importance(placed.pod), place) for placed, place in zip(pods, places, strict=True)]
        return [pods[index] for index in sorted(range(len(pods)), key=keys.__getitem__)]

    def _order(self, row: int) -> _Order | None:
        """The pods of a row that may go: those protected by a budget first, each group by importance; None for none."""
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
        """Let pods come back one by one, in all rows at the same time; who does not fit any more is a victim."""
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
            # Something other than the filters rejected the node, so that evicting pods does not help.
            return Status.error(f'expected at least one victim pod on node "{name}"')
        victims = [order.pods[place] for place in evicted]
        violations = sum([place < order.protected for place in evicted]) if order.protected else 0
        if violations:
            victims.sort(key=order.by_importance.index)
        return Candidate(name, tuple([placed.pod for placed in victims]), violations)


NOT_HELPFUL = "Preemption is not helpful for scheduling"
NO_CANDIDATE = "no candidate node for preemption"

FEW_ROWS = 4

KEEP, CLEAR = None, ""
"""What a result without a node says about the pod's nomination so far."""


Found = tuple[Candidates | None, list[Status]]
"""The candidates, those that violate no budget first; or why each row is none."""


class Surroundings:
    """What the searches of one scheduler share."""

    MOST_KINDS = 256

    def __init__(
        self,
        nominations: Nominations,
        changes: RowChangeLog,
        extenders: Sequence[Extender],
        tie_break: TieBreak,
        seed: int,
    ) -> None:
        self.nominations, self.changes, self.extenders, self.tie_break = nominations, changes, extenders, tie_break
        self.rng = random.Random(seed)
        """Draws where among the nodes a search begins, when it need not look at all of them."""
        self.memories: RecentlyUsed[KnownDryRuns] = RecentlyUsed(self.MOST_KINDS)
        """By policy and kind of pod."""
        self._budgets: tuple[int, Budgets] | None = None
        """As of a version of the store."""

    def budgets(self, cluster: Cluster) -> Budgets:
        """The cluster's budgets, read once until one of its objects changes."""
        if self._budgets is None or self._budgets[0] != cluster.store.version:
            self._budgets = cluster.store.version, Budgets(cluster)
        return self._budgets[1]


class Search:
    """One pod's search; plugins start it with `attempt`. It changes nothing: its caller carries the choice out."""

    def __init__(self, evaluation: Evaluation, shared: Surroundings) -> None:
        self._evaluation, self._shared = evaluation, shared
        self._candidates: Candidates | None = None
        self.chosen: Candidate | None = None
        self.chosen_by = ""
        """What made the chosen candidate better than the others."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The nodes where evicting pods helps, as the plugin chose among them; until the cluster changes."""
        return () if self._candidates is None else tuple(self._candidates.listed())

    def attempt(self, policy: DefaultPreemption, statuses: Mapping[str, Status]) -> PostFilterResult:
        """Find the best node; `statuses` says of every node why the pod does not fit."""
        pod, cluster, shared = self._evaluation.pod, self._evaluation.cluster, self._shared
        nominated = shared.nominations.node_of(pod)
        reason = why_not_eligible(pod, nominated, policy, statuses, cluster)
        if reason:
            return PostFilterResult(Status.unschedulable(reason), KEEP)
        found, rejected = self._find(policy, potential_rows(statuses, cluster), cluster.rows.get(nominated, -1))
        if found is None:
            return self._none_found(rejected, cluster.node_count)
        if shared.extenders:
            try:
                agreed = ask_extenders(shared.extenders, pod, found.listed(), cluster)
            except ExtenderError as error:
                return PostFilterResult(Status.error(str(error)), KEEP)
            if not agreed:
                return PostFilterResult(Status.unschedulable(NO_CANDIDATE), KEEP)
            found = Candidates.of(agreed, cluster)
        self._candidates = found
        self.chosen, self.chosen_by = pick(found, shared.tie_break, cluster)
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
        evaluation, enough = self._evaluation, max(policy.enough_candidates(len(rows)), 1)
        runs = DryRuns(evaluation, policy, self._shared)
        memory = self._shared.memories.get_or_make(
            (policy, evaluation.state.info.signature), lambda: KnownDryRuns(self._shared.changes)
        )
        changed = memory.catch_up(evaluation.cluster.columns.capacity)
        if len(changed) <= FEW_ROWS and runs.recheck.rows_are_independent:
            # Sooner or later they have to be tried, and then it takes another look at all rows.
            runs.look_at(changed, FEW_ROWS, memory)
        if not runs.recheck.rows_are_independent and is_any(memory.kinds[rows] != WITHOUT_VICTIMS):
            # Whatever else is known is from when rows were independent, and what is found now holds for now only.
            with memory.forgetting(slice(None)):
                return self._look(runs, rows, enough, memory, 1)
        if own_row >= 0:
            # Where the pod is nominated itself it does not meet itself, but others of its kind do.
            with memory.forgetting(own_row):
                return self._look(runs, rows, enough, memory, enough)
        return self._look(runs, rows, enough, memory, enough)

    def _look(self, runs: DryRuns, rows: Ints, enough: int, memory: KnownDryRuns, together: int) -> Found:
        """Look at the rows from a random one on. Rows are tried `together`."""
        # The draw is taken back only where the search looks at all rows, which it does not if enough are known.
        kinds, rng = memory.kinds[rows], self._shared.rng
        before = None if are_enough(kinds, enough) else rng.getstate()
        offset = rng.randrange(len(rows))
        others, kinds = np.concatenate((rows[offset:], rows[:offset])), np.concatenate((kinds[offset:], kinds[:offset]))
        if first_of(WITHOUT_VICTIMS, kinds) >= 0:
            has_victims = kinds != WITHOUT_VICTIMS
            others, kinds = others[has_victims], kinds[has_victims]
        (length, places), kinds = runs.run(others, kinds, enough, memory)
        if (
            length is None
            and before is not None
            and (len(others) < len(rows) or not is_any(kinds[:together] >= VIOLATING))
        ):
            # All rows were looked at, wherever the search began: it need not be repeated for pods of the same kind.
            rng.setstate(before)
        if not len(places):
            return None, [NO_VICTIMS] * (len(rows) - len(others)) + memory.outcomes[others].tolist()
        if first_of(VIOLATING, kinds[:length]) >= 0:
            places = places[np.argsort(kinds[places] != GOOD, kind="stable")]
        found = others[places]
        return Candidates(found, memory.costs[found], memory.outcomes), []

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


class Preempted(NamedTuple):
    """What PostFilter makes of a pod that fits nowhere."""

    message: str
    """What its plugins said."""
    nominated: str | None = KEEP
    """The node where evicting the victims makes room; "" to take a nomination back, None to leave it as it is."""
    victims: tuple[Pod, ...] = ()
    """The pods to delete; where the release spares them, not those that are terminating."""
    changes: tuple[ObjectChange, ...] = ()
    search: Search | None = None

    def fields(self) -> dict[str, Any]:
        """The fields of a decision that say so."""
        return {
            "post_filter_message": self.message,
            "nominated": self.nominated or None,
            "clears_nomination": self.nominated == CLEAR,
            "victims": tuple(sorted(victim.key for victim in self.victims)),
            "changes": self.changes,
            "candidates": self.search.candidates if self.search else (),
            "chosen_by": self.search.chosen_by if self.search else "",
        }


class Preemption:
    """Preemption for the pods of one scheduler. The same seed gives the same choices."""

    def __init__(self, shared: Surroundings) -> None:
        self._shared = shared

    def save(self) -> Any:
        """What the next search depends on, to be given to `restore`."""
        return self._shared.rng.getstate()

    def restore(self, saved: Any) -> None:
        self._shared.rng.setstate(saved)

    def attempt(
        self, rejected: Mapping[str, Status], absent: Status | None, evaluation: Evaluation, framework: Framework
    ) -> Preempted:
        """What PostFilter makes of a pod that fits nowhere.

        `rejected` says why each node does not fit, `absent` why those do not that no filter looked at.
        """
        if not framework.post_filter:
            return Preempted("", CLEAR)
        cluster, pod = evaluation.cluster, evaluation.pod
        search = Search(evaluation, self._shared)
        state = CycleState(evaluation.state.info, evaluation.state)
        state[PREEMPTION] = search
        statuses = rejected
        if len(statuses) < cluster.node_count and cluster.rules.counts_absent_nodes:
            others = absent or Status.unresolvable()
            statuses = {name: rejected.get(name, others) for name in cluster.rows}
        result = run_post_filter(framework, state, pod, statuses)
        chosen = search.chosen if search.chosen and search.chosen.node == result.nominated_node else None
        victims = chosen.victims if chosen else ()
        if cluster.rules.spares_terminating_victims:
            victims = tuple([victim for victim in victims if not victim.terminating])
        return Preempted(result.status.message, result.nominated_node, victims, result.changes, search)

    def carry_out(
        self,
        pod: Pod,
        nominated: str | None,
        victims: Iterable[str],
        changes: Iterable[ObjectChange],
        cluster: Cluster | None,
    ) -> None:
        """Nominate the pod and clear the nominations it overrides; given a cluster, remove the victims from it.

        What plugins wanted changed, such as claims that are to give back their devices, is changed there as well.
        """
        nominations = self._shared.nominations
        if nominated:
            nominations.clear_lower(nominated, pod.priority)
        if nominated is not None:
            nominations.nominate(pod, nominated)
        if cluster is None:
            return
        for change in changes:
            cluster.remove(change.before) if change.after is None else cluster.update(change.after)
        cluster.end_all(victims)
