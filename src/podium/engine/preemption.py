"""The search for a node where evicting pods makes room: tries nodes, chooses one by kube-scheduler's criteria, and
carries the eviction out.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Cluster
from podium.cluster.columns import Ints, is_any
from podium.engine._evaluation import Evaluation
from podium.engine._feasible_rows import NodeStatuses
from podium.engine._nominations import Nominations
from podium.engine._row_changes import RowChangeLog
from podium.engine.decision import Decision, Eviction
from podium.engine.dry_runs import (
    CRITERIA,
    GOOD,
    NO_VICTIMS,
    UNKNOWN,
    VIOLATING,
    WITHOUT_VICTIMS,
    Budgets,
    Candidate,
    Costs,
    DryRuns,
    KnownDryRuns,
    are_enough,
)
from podium.engine.select import TieBreak
from podium.errors import ExtenderError
from podium.extenders import Extender, Victims
from podium.framework import SUCCESS, Code, CycleState, Framework, PostFilterResult, Status
from podium.framework.status import ObjectChange
from podium.memory import RecentlyUsed
from podium.model import Pod
from podium.plugins.default_preemption import PREEMPTION, DefaultPreemption
from podium.plugins.dynamic_resources import DynamicResources

POLICY_NEVER = "not eligible due to preemptionPolicy=Never."

TERMINATING = "not eligible due to a terminating pod on the nominated node."

DISRUPTION_TARGET, PREEMPTED = "DisruptionTarget", "PreemptionByScheduler"


def why_not_eligible(
    pod: Pod, nominated_node: str, policy: DefaultPreemption, statuses: Mapping[str, Status], cluster: Cluster
) -> str:
    """Why the pod must not evict other pods now; empty if it may. `statuses` may lack nodes that no filter checked."""
    if pod.spec.preemption_policy == "Never":
        return POLICY_NEVER
    row = cluster.rows.get(nominated_node)
    if row is None:
        return ""
    status = statuses.get(nominated_node)
    if status is not None and status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE:
        return ""
    # Room is being made for the pod already: it waits instead of evicting more pods elsewhere.
    is_going = is_being_preempted if cluster.rules.reads_disruption_conditions else attrgetter("terminating")
    if any(policy.may_evict(cluster.as_victim(other), pod) and is_going(other) for other in cluster.pods_on(row)):
        return TERMINATING
    return ""


def is_being_preempted(pod: Pod) -> bool:
    """Whether the pod is terminating because the scheduler preempted it."""
    if not pod.terminating:
        return False
    condition = next((c for c in pod.status.conditions if c.type == DISRUPTION_TARGET), None)
    return condition is not None and condition.status == "True" and condition.reason == PREEMPTED


def potential_rows(statuses: Mapping[str, Status], cluster: Cluster) -> Ints:
    """The rows where evicting pods might help: those rejected as Unschedulable."""
    if isinstance(statuses, NodeStatuses):
        return statuses.rows_of(Code.UNSCHEDULABLE)
    rows = cluster.rows
    helped = [rows[name] for name, status in statuses.items() if status.code is Code.UNSCHEDULABLE]
    return np.array(sorted(helped), dtype=np.int64)


ONLY_ONE = "only candidate"

TIE = "tie among equals"


class Candidates(NamedTuple):
    """The nodes to choose from, with their rows and costs as columns."""

    rows: Ints
    costs: Costs
    by_row: NDArray[np.object_] | Mapping[int, Candidate]

    @classmethod
    def of(cls, listed: list[Candidate], cluster: Cluster) -> Candidates:
        """Build the columns from a list of candidates, as extenders return them; at least one."""
        by_row = {cluster.rows[candidate.node]: candidate for candidate in listed}
        return cls(np.array([*by_row], dtype=np.int64), np.array([one.costs for one in by_row.values()]), by_row)

    def listed(self) -> list[Candidate]:
        return [self.by_row[row] for row in self.rows.tolist()]


def pick(candidates: Candidates, tie_break: TieBreak, cluster: Cluster) -> tuple[Candidate, str]:
    """The best candidate, and the criterion that made it better than the others."""
    rows, costs, by_row = candidates
    if len(rows) == 1:
        return by_row[rows.item(0)], ONLY_ONE
    places = _cheapest(costs)
    if len(places) > 1:
        tied = rows[places]
        tied.sort()
        return by_row[tie_break.choose(tied, cluster)], TIE
    best, second = costs[np.lexsort(costs.T[::-1])[:2]].tolist()
    criterion = next(name for name, one, other in zip(CRITERIA, best, second, strict=True) if one != other)
    return by_row[rows.item(places.item(0))], criterion


def _cheapest(costs: Costs) -> Ints:
    """The positions of the candidates with the lowest costs."""
    places = np.arange(len(costs))
    # Comparing bytes is faster than comparing arrays.
    if costs.tobytes() == costs[0].tobytes() * len(costs):
        return places
    for column in costs.T:
        values = column[places]
        least = values.item(values.argmin())
        if least != values.item(values.argmax()):
            places = places[values == least]
    return places


def ask_extenders(
    extenders: Sequence[Extender], pod: Pod, candidates: list[Candidate], cluster: Cluster
) -> list[Candidate]:
    """The candidates that the extenders accept, with the victims they choose; raises ExtenderError."""
    asked = [extender for extender in extenders if extender.supports_preemption and extender.is_interested(pod)]
    if not asked:
        return candidates
    pods_by_node = {name: cluster.pods_on(row) for name, row in cluster.rows.items()}
    victims = {one.node: Victims(list(one.victims), one.pdb_violations) for one in candidates}
    for extender in asked:
        try:
            answer = extender.preempt(pod, victims, pods_by_node)
        except ExtenderError:
            if extender.ignorable:
                continue
            raise
        empty = [node for node, found in answer.items() if not found.pods]
        if empty and not extender.ignorable:
            raise ExtenderError(extender.name, f'expected at least one victim pod on node "{empty[0]}"')
        victims = {node: found for node, found in answer.items() if found.pods}
        if not victims:
            break
    return [Candidate(node, tuple(found.pods), found.pdb_violations) for node, found in victims.items()]


NOT_HELPFUL = "Preemption is not helpful for scheduling"

NO_CANDIDATE = "no candidate node for preemption"

FEW_ROWS = 4
"""Up to this many changed rows are tried before the search, whether it needs them or not."""

KEEP, CLEAR = None, ""
"""What a result without a node means for the pod's nomination."""

Found = tuple[Candidates | None, list[Status]]
"""The candidates, those that violate no budget first, or the status of each row that is not a candidate."""


class SharedSearchState:
    """State shared by all searches of one scheduler."""

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
        """Chooses the row where a search begins, if it need not check all rows."""
        self.memories: RecentlyUsed[KnownDryRuns] = RecentlyUsed(self.MOST_KINDS)
        """By policy and kind of pod."""
        self._budgets: tuple[int, Budgets] | None = None
        """The budgets, with the version of the store they were read from."""

    def budgets(self, cluster: Cluster) -> Budgets:
        """The cluster's budgets, read again only when one of its objects changed."""
        if self._budgets is None or self._budgets[0] != cluster.store.version:
            self._budgets = cluster.store.version, Budgets(cluster)
        return self._budgets[1]


class Search:
    """One pod's search for victims; plugins start it with `attempt`. It changes nothing: the caller carries out the
    choice.
    """

    def __init__(self, evaluation: Evaluation, shared: SharedSearchState) -> None:
        self._evaluation, self._shared = evaluation, shared
        self._candidates: Candidates | None = None
        self.chosen: Candidate | None = None
        self.chosen_by = ""
        """The criterion that made the chosen candidate better than the others."""
        self.is_final = False
        """Whether another attempt would check the chosen node as the dry run did: pods elsewhere do not matter."""

    @property
    def candidates(self) -> tuple[Candidate, ...]:
        """The nodes where evicting pods helps, among which the plugin chose. Read it before the cluster changes."""
        return () if self._candidates is None else tuple(self._candidates.listed())

    def attempt(self, policy: DefaultPreemption, statuses: Mapping[str, Status]) -> PostFilterResult:
        """Find the best node; `statuses` has each node's reason why the pod does not fit."""
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
        """Find candidates among the rows, and remember the outcome for each row."""
        if not len(rows):
            return None, []
        evaluation, enough = self._evaluation, max(policy.enough_candidates(len(rows)), 1)
        shared, cluster = self._shared, evaluation.cluster
        runs = DryRuns(evaluation, policy, shared.nominations, shared.changes, shared.budgets(cluster))
        memory = shared.memories.get_or_make(
            (policy, evaluation.state.info.signature), lambda: KnownDryRuns(shared.changes)
        )
        self.is_final = runs.rows_are_independent and not evaluation.plan.outline.varying_pre_filter
        changed = memory.catch_up(cluster.columns.capacity)
        if len(changed) <= FEW_ROWS and runs.rows_are_independent:
            # Found during the search, they would make it look at all rows twice.
            runs.look_at(changed, FEW_ROWS, memory)
        if not runs.rows_are_independent and is_any(memory.kinds[rows] != WITHOUT_VICTIMS):
            # Outcomes known from before assumed independent rows, and outcomes found now hold for this pod only.
            with memory.forgetting(slice(None)):
                return self._look(runs, rows, enough, memory, 1)
        if own_row >= 0:
            # On its own nominated node, the pod does not yield to itself, but other pods of its kind yield to it.
            with memory.forgetting(own_row):
                return self._look(runs, rows, enough, memory, enough)
        return self._look(runs, rows, enough, memory, enough)

    def _look(self, runs: DryRuns, rows: Ints, enough: int, memory: KnownDryRuns, together: int) -> Found:
        """Check the rows, beginning at a random one, `together` rows at a time."""
        # The random draw is undone only if the search checks all rows; it does not if it knows enough candidates.
        kinds, rng = memory.kinds.take(rows).tobytes(), self._shared.rng
        before = None if are_enough(kinds, enough) else rng.getstate()
        start = rng.randrange(len(rows))
        others, kinds = np.concatenate((rows[start:], rows[:start])), kinds[start:] + kinds[:start]
        if WITHOUT_VICTIMS in kinds:
            others = others[memory.kinds[others] != WITHOUT_VICTIMS]
            kinds = memory.kinds[others].tobytes()
        (length, places), kinds = runs.run(others, kinds, enough, memory)
        if (
            length is None
            and before is not None
            and (len(others) < len(rows) or max(kinds[:together], default=UNKNOWN) < VIOLATING)
        ):
            # All rows were checked, wherever the search began: pods of the same kind need not repeat it.
            rng.setstate(before)
        if not len(places):
            return None, [NO_VICTIMS] * (len(rows) - len(others)) + memory.outcomes[others].tolist()
        found = others[places]
        if kinds.find(VIOLATING, 0, length) >= 0:
            found = found[np.argsort(memory.kinds[found] != GOOD, kind="stable")]
        return Candidates(found, memory.costs.take(found, axis=0), memory.outcomes), []

    def _none_found(self, statuses: list[Status], node_count: int) -> PostFilterResult:
        """Why evicting pods helps nowhere, worded like the message of a pod that fits nowhere."""
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
    """Run the plugins in order until one succeeds, fails, or reports that nothing can help; otherwise join their
    messages.

    The result's nominated node is a name, "" to remove a nomination, or None to leave it as it is.
    """
    reasons: list[str] = []
    nominated: str | None = None
    changes: tuple[ObjectChange, ...] = ()
    for plugin in framework.post_filter:
        result = plugin.post_filter(state, pod, statuses)
        code = result.status.code
        changes += result.changes
        if code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
            return result if changes == result.changes else result._replace(changes=changes)
        if not code.rejects:
            return PostFilterResult(Status.error(*result.status.reasons), changes=changes)
        if result.nominated_node is not None:
            nominated = result.nominated_node
        reasons += result.status.reasons
    return PostFilterResult(Status.unschedulable(*reasons), nominated, changes)


def outlook(decision: Decision, pod: Pod, cluster: Cluster, framework: Framework) -> Eviction | None:
    """Where evicting pods could make room, without a dry run; None if only a user's PostFilter plugins decide it."""
    plugin = next((each for each in framework.post_filter if isinstance(each, DefaultPreemption)), None)
    if plugin is None and framework.post_filter:
        return None
    helpful = [name for name, status in decision.rejected.items() if status.code is Code.UNSCHEDULABLE]
    devices = next((each for each in framework.filter if isinstance(each, DynamicResources)), None)
    lacks_devices = devices is not None and any(map(devices.lacks_devices, decision.rejected.values()))
    if plugin is None:
        return Eviction((), len(helpful), "its profile has no plugin that evicts pods", lacks_devices)
    if pod.spec.preemption_policy == "Never":
        return Eviction((), len(helpful), "its preemptionPolicy is Never", lacks_devices)
    nodes = tuple(
        name
        for name in helpful
        if any(plugin.may_evict(cluster.as_victim(victim), pod) for victim in cluster.pods_on(cluster.rows[name]))
    )
    return Eviction(nodes, len(helpful) - len(nodes), lacks_devices=lacks_devices)


class Preempted(NamedTuple):
    """The result of PostFilter for a pod that fits nowhere."""

    message: str
    """The plugins' message."""
    nominated: str | None = KEEP
    """The node where evicting the victims makes room; "" to remove a nomination, None to leave it as it is."""
    victims: tuple[Pod, ...] = ()
    """The pods to delete, without terminating pods where the release spares them."""
    changes: tuple[ObjectChange, ...] = ()
    search: Search | None = None
    makes_room: bool = False
    """Whether the pod is sure to fit the nominated node as soon as the victims are gone."""

    def fields(self) -> dict[str, Any]:
        """The fields of a Decision for this result."""
        return {
            "post_filter_message": self.message,
            "nominated": self.nominated or None,
            "clears_nomination": self.nominated == CLEAR,
            "victims": tuple(victim.key for victim in self.victims),
            "changes": self.changes,
            "candidates": self.search.candidates if self.search else (),
            "chosen_by": self.search.chosen_by if self.search else "",
        }


class Preemption:
    """Preemption for the pods of one scheduler. The same seed gives the same choices."""

    def __init__(self, shared: SharedSearchState) -> None:
        self._shared = shared

    def save(self) -> Any:
        """The state that the next search depends on; pass it to `restore`."""
        return self._shared.rng.getstate()

    def restore(self, saved: Any) -> None:
        self._shared.rng.setstate(saved)

    def attempt(
        self, rejected: Mapping[str, Status], absent: Status | None, evaluation: Evaluation, framework: Framework
    ) -> Preempted:
        """Run PostFilter for a pod that fits nowhere.

        `rejected` has the status of each rejected node, `absent` that of nodes that no filter checked.
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
        makes_room = chosen is not None and search.is_final and not result.changes
        if cluster.rules.spares_terminating_victims:
            victims = tuple([victim for victim in victims if not victim.terminating])
            makes_room = makes_room and chosen is not None and len(victims) == len(chosen.victims)
        return Preempted(result.status.message, result.nominated_node, victims, result.changes, search, makes_room)

    def carry_out(
        self,
        pod: Pod,
        nominated: str | None,
        victims: Iterable[str],
        changes: Iterable[ObjectChange],
        cluster: Cluster | None,
    ) -> None:
        """Nominate the pod and clear the nominations it overrides; given a cluster, remove the victims from it.

        Changes that plugins ask for, like claims that give back their devices, are applied to the cluster as well.
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
