"""PostFilter for a pod that fits nowhere, and carrying out the preemption it decided on."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from podium.cluster import Cluster
from podium.cluster.recently_used import RecentlyUsed
from podium.engine.decision import Decision
from podium.engine.evaluation import Evaluation
from podium.engine.nominations import Nominations
from podium.engine.preemption.choice import Candidate
from podium.engine.preemption.search import Search
from podium.engine.preemption.victims import DryRun
from podium.engine.row_changes import RowCache, RowChangeLog
from podium.engine.select import TieBreak
from podium.extenders import Extender
from podium.framework import Code, CycleState, Framework, PostFilterResult, Status
from podium.model import Pod
from podium.plugins.default_preemption import PREEMPTION
from podium.rules import Rules


def run_post_filter(
    framework: Framework, state: CycleState, pod: Pod, statuses: Mapping[str, Status]
) -> PostFilterResult:
    """Ask the plugins in order until one succeeds, fails, or says that nothing can help; otherwise join their words.

    The result's nominated node is a name, "" to take a nomination back, or None to leave it as it is.
    """
    reasons: list[str] = []
    nominated: str | None = None
    for plugin in framework.post_filter:
        result = plugin.post_filter(state, pod, statuses)
        code = result.status.code
        if code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
            return result
        if not code.rejects:
            return PostFilterResult(Status.error(*result.status.reasons))
        if result.nominated_node is not None:
            nominated = result.nominated_node
        reasons += result.status.reasons
    return PostFilterResult(Status.unschedulable(*reasons), nominated)


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
        self._memories: RecentlyUsed[RowCache[DryRun]] = RecentlyUsed(self.MOST_KINDS)

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
            candidates=search.candidates,
            chosen_by=search.chosen_by,
        )

    @staticmethod
    def _deleted(chosen: Candidate, rules: Rules) -> tuple[str, ...]:
        """The victims that are deleted; where the release spares them, not those that are terminating."""
        deleted = [pod for pod in chosen.victims if not (pod.terminating and rules.spares_terminating_victims)]
        return tuple(sorted(pod.key for pod in deleted))

    def carry_out(self, pod: Pod, decision: Decision, cluster: Cluster | None) -> None:
        """Nominate the pod and clear the nominations it overrides; given a cluster, remove the victims from it."""
        if decision.nominated is not None:
            self._nominations.clear_lower(decision.nominated, pod.priority)
            self._nominations.nominate(pod, decision.nominated)
        elif decision.clears_nomination or decision.error or not decision.node_count:
            self._nominations.nominate(pod, "")
        for key in decision.victims:
            found = None if cluster is None else cluster.find_pod(key)
            if cluster is not None and found is not None:
                cluster.end(found[0])
