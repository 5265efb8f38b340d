"""The search for a node where evicting pods makes room for a pod."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence

from podium.cluster.recently_used import RecentlyUsed
from podium.engine.evaluation import Evaluation
from podium.engine.nominations import Nominations
from podium.engine.preemption.choice import Candidate, ask_extenders, pick, potential_rows, why_not_eligible
from podium.engine.preemption.victims import DryRun, DryRuns
from podium.engine.row_changes import RowCache, RowChangeLog
from podium.engine.select import TieBreak
from podium.errors import ExtenderError
from podium.extenders import Extender
from podium.framework import SUCCESS, Code, PostFilterResult, Status
from podium.plugins.default_preemption import DefaultPreemption

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
        memories: RecentlyUsed[RowCache[DryRun]],
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

    def _find(self, policy: DefaultPreemption, rows: list[int], own_row: int) -> tuple[list[Candidate], list[Status]]:
        """Candidates, those that violate no budget first; without any, what was said of all the rows."""
        if not rows:
            return [], []
        evaluation, before = self._evaluation, self._rng.getstate()
        offset, enough = self._rng.randrange(len(rows)), policy.enough_candidates(len(rows))
        rows = rows[offset:] + rows[:offset]
        runs = DryRuns(evaluation, policy, self._nominations, self._changes)
        memory = self._memories.get_or_make((policy, evaluation.state.info.signature), lambda: RowCache(self._changes))
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
