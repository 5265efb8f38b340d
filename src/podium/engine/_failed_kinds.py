"""Remembers the kinds of pods that fit nowhere: pods of one kind fail alike until the cluster changes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from podium.cluster import Cluster, NodeInfo, PodInfo
from podium.cluster.columns import LogReader
from podium.engine._evaluation import Evaluation
from podium.engine._nominations import Nominations
from podium.engine._recheck import is_fixed
from podium.engine._row_changes import LowestPriorities, RowChangeLog
from podium.engine.decision import Decision, Diagnosis
from podium.engine.plan import Plans
from podium.engine.plan_results import filters_by_node
from podium.extenders import Extender
from podium.framework import SUCCESS, Code, Framework, Plugin, Status
from podium.framework.status import checked_status
from podium.memory import RecentlyUsed
from podium.model import Pod
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.dynamic_resources.pod_claims import claims_key


@dataclass(slots=True)
class FailedKind:
    """A kind of pod that fits nowhere, with the explanations that were asked for so far."""

    as_of: tuple[int, int, int, int]
    """The versions of the cluster and of the nominations at which the kind is known to fit nowhere."""
    decision: Decision | None = None
    """Why it fits nowhere."""
    diagnosis: Diagnosis | None = None
    """The diagnosis after PostFilter, which found nothing to do."""
    statuses: RowStatuses | None = None
    """The status of each row, if rows can be checked one by one: the failure then holds until one of them changes."""


class RowStatuses:
    """The status of every row for one kind of pod, and a check whether changed rows still reject it for the same
    reason.

    If they do, and no pod on these rows can be evicted, the diagnosis is still the same.
    """

    def __init__(
        self,
        evaluation: Evaluation,
        statuses: Mapping[int, Status],
        policy: DefaultPreemption | None,
        changes: RowChangeLog,
        priorities: LowestPriorities,
    ) -> None:
        self.plan = evaluation.plan
        self._statuses, self._policy, self._changes, self._priorities = statuses, policy, changes, priorities
        self._goes_by_priority = policy is not None and type(policy).may_evict is DefaultPreemption.may_evict
        self._pod, self._state, self._cluster = evaluation.pod, evaluation.state, evaluation.cluster
        running = [plugin for plugin in self.plan.outline.filter if plugin.name not in evaluation.skipped]
        self._filters = [(plugin, is_fixed(plugin)) for plugin in running]
        changes.catch_up()
        self._epoch, self._reader = changes.epoch, LogReader([changes.log])
        self._reader.catch_up()
        self._others: set[int] = set()
        """The rows whose status was different when they were last checked."""

    @classmethod
    def of(
        cls,
        evaluation: Evaluation,
        decision: Decision,
        framework: Framework,
        changes: RowChangeLog,
        priorities: LowestPriorities,
    ) -> RowStatuses | None:
        """The statuses behind a decision; None if they cannot show whether the diagnosis still holds."""
        plan, rows = evaluation.plan, evaluation.cluster.rows
        outline = plan.outline
        # A plugin that skips Filter for this pod skips it in PostFilter, too.
        concerned = [plugin for plugin in framework.post_filter if plugin.name not in evaluation.skipped]
        policy = concerned[0] if concerned else None
        if (
            evaluation.looked_at is not None
            or len(decision.rejected) < evaluation.cluster.node_count
            or plan.behaviour.collects_all_reasons
            or outline.varying_filter
            or outline.varying_pre_filter
            or not all(is_fixed(plugin) or filters_by_node(plugin) for plugin in outline.filter)
            or len(concerned) > 1
            or not (policy is None or isinstance(policy, DefaultPreemption))
        ):
            return None
        statuses = {rows[name]: status for name, status in decision.rejected.items()}
        found = cls(evaluation, statuses, policy, changes, priorities)
        priorities.catch_up()
        return found if not any(map(found._has_victims, statuses)) else None

    def still_hold(self) -> bool | None:
        """Check changed rows again; True if all rows reject the pod as before, None if that cannot be determined."""
        self._changes.catch_up()
        rows = self._reader.read()
        if rows is None or self._epoch != self._changes.epoch:
            return None
        self._priorities.catch_up()
        looked_at = self._others.union(rows.tolist())
        self._others = {row for row in looked_at if not self._holds(row) or self._has_victims(row)}
        return not self._others

    def _holds(self, row: int) -> bool:
        before = self._statuses.get(row)
        if before is None:
            return False
        node = NodeInfo(self._cluster, row)
        for plugin, stays in self._filters:
            if stays:
                # This filter's answer is fixed, and no earlier filter rejected the row.
                if plugin.name == before.plugin:
                    return True
                continue
            status = plugin.filter_node(self._state, self._pod, node)
            if status is not SUCCESS:
                status = checked_status(plugin.name, status)
            if status != SUCCESS:
                return status.code is before.code and status.reasons == before.reasons and plugin.name == before.plugin
            if plugin.name == before.plugin:
                return False
        return False

    def _has_victims(self, row: int) -> bool:
        """Whether a pod on this row may be evicted, so that the pod might fit."""
        if self._policy is None or self._statuses[row].code is not Code.UNSCHEDULABLE:
            return False
        may_evict, pod = self._policy.may_evict, self._pod
        if self._goes_by_priority:
            return self._priorities.of(row) < pod.priority
        return any(may_evict(self._cluster.as_victim(other), pod) for other in self._cluster.pods_on(row))


class FailedKinds:
    """Remembers which kinds of pods fit nowhere, until a change might make them fit.

    A kind is what no filter of a profile can tell apart (`Plans.kind_of`), plus the requests of the pod's resource
    claims. A failed pod is not remembered if it cannot stand for its kind: it has objects named after it, it is
    nominated to a node, an extender is interested in it, or its profile has a plugin that does not declare what it
    reads.
    """

    MOST_KINDS = 1 << 12
    MOST_KEPT_STATUSES = 1 << 20
    """Bounds memory: kinds times nodes."""

    def __init__(
        self,
        cluster: Cluster,
        nominations: Nominations,
        frameworks: Mapping[str, Framework],
        extenders: Sequence[Extender],
        plans: Mapping[str, Plans],
        changes: RowChangeLog,
    ) -> None:
        """`frameworks` and `plans` are those of each profile."""
        self._cluster, self._nominations, self._extenders = cluster, nominations, extenders
        self._frameworks, self._plans, self._changes = frameworks, plans, changes
        self._profiles = {name for name, framework in frameworks.items() if _goes_by_kind(framework)}
        most = min(max(self.MOST_KEPT_STATUSES // max(cluster.columns.size, 1), 64), self.MOST_KINDS)
        self._known: RecentlyUsed[FailedKind] = RecentlyUsed(most)
        self._priorities = LowestPriorities(cluster, changes)
        self.are_any = False
        """Whether any kind is remembered; while all pods fit, `find` has nothing to look up."""

    def find(self, pod: Pod, *, look_again: bool = False) -> FailedKind | None:
        """The record of the pod's kind if it is known to fit nowhere now, else None.

        With `look_again`, and if only pods came or went since, the plan is asked again: if it has no feasible node, the
        kind still fits nowhere, though perhaps for other reasons.
        """
        if not self.are_any:
            return None
        info = self._cluster.info_of(pod)
        known: FailedKind | None = self._known[self._kind(pod, info)]
        if known is None or self._nominations.node_of(pod):
            return None
        state = self._state()
        if known.as_of != state:
            if not self._still_holds(known, info, pod.spec.scheduler_name):
                changed_pods_only = known.as_of[1:3] == state[1:3]
                if not (look_again and changed_pods_only and self._has_no_node(info, pod.spec.scheduler_name)):
                    return None
                known.decision = known.diagnosis = None
            known.as_of = state
        return known

    def add(self, pod: Pod) -> FailedKind:
        """Record that the pod fits nowhere now; the record is kept only if it holds for all pods of its kind."""
        failed, info = FailedKind(self._state()), self._cluster.info_of(pod)
        if self._stands_for_its_kind(pod, info):
            self._known[self._kind(pod, info)] = failed
            self.are_any = True
        return failed

    def diagnosed(
        self, failed: FailedKind, diagnosis: Diagnosis, decision: Decision, evaluation: Evaluation | None
    ) -> None:
        """Record the diagnosis of a kind, and the statuses to check whether it still holds after changes."""
        failed.diagnosis = diagnosis
        if evaluation is not None and not self._nominations:
            framework = self._frameworks[evaluation.pod.spec.scheduler_name]
            failed.statuses = RowStatuses.of(evaluation, decision, framework, self._changes, self._priorities)

    def _still_holds(self, known: FailedKind, info: PodInfo, profile: str) -> bool:
        statuses, known.statuses = known.statuses, None
        if statuses is None or self._nominations or statuses.plan is not self._plans[profile].of(info):
            return False
        holds = statuses.still_hold()
        if holds is not None:
            # Keep the statuses: a row where the pod fits now may be full again soon.
            known.statuses = statuses
        return bool(holds)

    def _has_no_node(self, info: PodInfo, profile: str) -> bool:
        """Whether the filters with kept results reject every node."""
        plan = self._plans[profile].of(info)
        if plan.outline.varying_pre_filter or plan.outline.narrows:
            return False
        plan.catch_up()
        return plan.feasible_count == 0 and not plan.may_have_errors

    def _state(self) -> tuple[int, int, int, int]:
        return *self._cluster.version, self._nominations.version

    def _kind(self, pod: Pod, info: PodInfo) -> Hashable:
        claims = claims_key(pod, self._cluster.store, self._cluster.rules) if pod.spec.resource_claims else None
        plans = self._plans.get(pod.spec.scheduler_name)
        return info if plans is None else plans.kind_of(info), pod.spec.scheduler_name, claims

    def _stands_for_its_kind(self, pod: Pod, info: PodInfo) -> bool:
        return (
            pod.spec.scheduler_name in self._profiles
            and not info.has_own_objects
            and not self._nominations.node_of(pod)
            and not (self._extenders and any(extender.is_interested(pod) for extender in self._extenders))
        )


def _goes_by_kind(framework: Framework) -> bool:
    """Whether all plugins that may reject a pod depend on nothing but its kind."""
    return all(map(_is_known, (*framework.pre_filter, *framework.filter, *framework.post_filter)))


def _is_known(plugin: Plugin) -> bool:
    # Podium's own plugins read the compiled spec only; other plugins tell by declaring what they read.
    return plugin.reads is not None or type(plugin).__module__.startswith("podium.")
