"""The scheduler: a configuration and a cluster, ready to decide pods."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, TypedDict, Unpack

import numpy as np

from podium.cluster import Cluster, PodInfo
from podium.cluster.columns import NO_ROWS, Ints
from podium.config import STORAGE_PLUGINS, ignoring
from podium.engine._evaluation import NO_EXTENDERS, Evaluation, ExtenderRound
from podium.engine._failed_kinds import FailedKinds
from podium.engine._feasible_rows import BestRows, Ranking, ScoredRows
from podium.engine._nominated_pods_check import NominatedPodsCheck
from podium.engine._nominations import Nominations
from podium.engine._row_changes import RowChangeLog
from podium.engine.decision import Attempt, Decision, Diagnosis, PluginScores
from podium.engine.plan import Plans
from podium.engine.preemption import CLEAR, Preempted, Preemption, SharedSearchState, outlook
from podium.engine.release import CURRENT, AnyRelease, Options, Setup, release_of
from podium.engine.release import Config as Config
from podium.engine.select import First, Sampling, TieBreak, tie_break
from podium.errors import ExtenderError, InputError, PluginError
from podium.framework import SUCCESS, CycleState, Framework, Registry, Status
from podium.framework.plugin import NOTHING, PLUGIN_FAULTS
from podium.model import Pod, PodGroup
from podium.plugins import IN_TREE


class SchedulerKeywords(TypedDict, total=False):
    """The keyword arguments of every function that creates a scheduler; `SchedulerOptions` documents them."""

    registry: Registry
    release: AnyRelease
    options: Options | None
    tie_break: TieBreak | str | None
    seed: int
    sampling: Literal["all", "upstream"]
    equivalence_cache: bool
    assume_volumes: bool


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions:
    """A configuration, a release, and the choices that both leave open."""

    config: Config = None
    registry: Registry = field(default_factory=lambda: IN_TREE)
    """The plugins that the configuration may name."""
    release: AnyRelease = CURRENT
    options: Options | None = None
    """The command line and environment of an old release's scheduler."""
    tie_break: TieBreak | str | None = None
    """How to choose among several best nodes: random, first, round-robin ...; None for the release's own way."""
    seed: int = 0
    """The seed of all random choices."""
    sampling: Literal["all", "upstream"] = "all"
    """`upstream` evaluates part of the nodes of a large cluster, as kube-scheduler does; `all` evaluates every node."""
    equivalence_cache: bool = True
    """Whether results are kept from pod to pod. If not, every pod is decided from scratch: same decisions, but
    slower.
    """
    assume_volumes: bool = False
    """Whether to ignore storage: every volume is assumed to exist and to be usable on every node."""

    @classmethod
    def of(cls, config: Config | SchedulerOptions, **keywords: Unpack[SchedulerKeywords]) -> SchedulerOptions:
        """Combine a configuration and keyword arguments; keywords override the given options."""
        if isinstance(config, SchedulerOptions):
            return replace(config, **keywords) if keywords else config
        return cls(config=config, **keywords)

    @classmethod
    def steady(cls, config: Config | SchedulerOptions, **keywords: Unpack[SchedulerKeywords]) -> SchedulerOptions:
        """Like `of`, but ties go to the smallest name unless asked otherwise, so that answers are reproducible."""
        options = cls.of(config, **keywords)
        return options if options.tie_break is not None else replace(options, tie_break="first")

    def set_up(self) -> Setup:
        """The configuration, plugins and release behaviour that a scheduler with these options runs with."""
        return release_of(self.release).set_up(self.config, options=self.options, registry=self.registry)


class MemberSearch(NamedTuple):
    """How a pod is tried as part of a group."""

    state: Mapping[str, Any]
    """What plugins find in the pod's cycle state from the start."""
    rows: Ints | None = None
    """The only rows to look at, in ascending order; None for all."""


class Scheduler:
    """Decides pods on a cluster as kube-scheduler would.

    `decide` says where a pod would go and why, and changes nothing; `place` also puts it there. `schedule` puts it
    there without collecting the reasons: the same decision, faster. `attempt` and `assume` are its two halves.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: Config | SchedulerOptions = None,
        **keywords: Unpack[SchedulerKeywords],
    ) -> None:
        """`keywords` are the fields of `SchedulerOptions`: registry, release, tie_break, seed and so on."""
        self.options = options = SchedulerOptions.of(config, **keywords)
        # Preemption of the old releases is not implemented.
        self._is_old = release_of(options.release).is_old
        self.setup = setup = options.set_up()
        """The scheduler's configuration, plugins and release behaviour."""
        settings = ignoring(setup.config, STORAGE_PLUGINS) if options.assume_volumes else setup.config
        self.cluster, self.config, behaviour = cluster, settings, setup.behaviour
        self.frameworks = {
            profile.scheduler_name: Framework(profile, setup.registry, setup.rules) for profile in settings.profiles
        }
        self._rules = setup.rules
        cluster.count_as(setup.rules)
        if setup.rules.pod_groups:
            cluster.members.schedulers = frozenset(self.frameworks)
        self._plans = {
            name: Plans(framework, cluster, behaviour, keep=options.equivalence_cache)
            for name, framework in self.frameworks.items()
        }
        self._tie_break = _resolve_tie_break(options.tie_break or behaviour.tie_break, options.seed)
        self.extenders = [behaviour.extender(extender) for extender in settings.extenders]
        self._sampling = Sampling(settings, adaptive=options.sampling == "upstream" and behaviour.samples_nodes)
        self.nominations = Nominations(p for p in cluster.pending.values() if p.spec.scheduler_name in self.frameworks)
        """The nominated pods, including pending pods of the cluster that have a nomination in their status."""
        changes = RowChangeLog(cluster, self.nominations)
        self._failed = (
            FailedKinds(cluster, self.nominations, self.frameworks, self.extenders, self._plans, changes)
            if options.equivalence_cache
            else None
        )
        self._nominated_pods_check = NominatedPodsCheck(self.nominations, changes)
        self._preemption = Preemption(
            SharedSearchState(self.nominations, changes, self.extenders, self._tie_break, options.seed)
        )

    def close(self) -> None:
        """Close connections to extenders."""
        for extender in self.extenders:
            extender.close()

    def framework_of(self, pod: Pod) -> Framework:
        """The profile that schedules the pod."""
        framework = self.frameworks.get(pod.spec.scheduler_name)
        if framework is None:
            known = ", ".join(self.frameworks)
            wanted = pod.spec.scheduler_name
            raise InputError(f"pod {pod.key}: no profile for scheduler name {wanted!r}; the configuration has {known}")
        return framework

    def group_of(self, pod: Pod) -> PodGroup | None:
        """The PodGroup that the pod is scheduled with; None if it is scheduled alone, or its group does not exist."""
        named = pod.spec.scheduling_group
        if named is None or not self._rules.pod_groups:
            return None
        return self.cluster.store.of(PodGroup).get(named.pod_group_name, pod.namespace)

    # -- deciding --------------------------------------------------------------------------------------------------

    def decide(self, pod: Pod, *, preempt: bool = False) -> Decision:
        """Where the pod would go now, with every node's status and every plugin's score; changes nothing.

        With `preempt`, PostFilter runs for a pod that fits nowhere: the decision then names the node and the pods whose
        eviction would make room.
        """
        before = self.save()
        decision, _ = self._explained(pod, preempt)
        self.restore(before)
        if decision.node is None and not preempt and not decision.error and not self._is_old:
            decision = replace(decision, eviction=outlook(decision, pod, self.cluster, self.framework_of(pod)))
        return decision

    def place(self, pod: Pod, *, preempt: bool = False, evict: bool = True, bind: bool = True) -> Decision:
        """Decide the pod, with all reasons, and put it on its node.

        With `preempt`, a pod that fits nowhere is nominated to the node where evicting pods makes room. The victims are
        removed at once, or without `evict` stay until the caller removes them. Without `bind`, plugins only reserve:
        other pods cannot use a claim yet that got its devices for this pod.
        """
        decision, evaluation = self._explained(pod, preempt)
        if evaluation is not None and decision.node is not None:
            status = self._put(evaluation, self.cluster.rows[decision.node])
            if status != SUCCESS:
                return Decision(pod.key, None, error=_failed_reserve(status), node_count=self.cluster.node_count)
            if bind:
                self._settle(evaluation, decision.node)
        elif preempt:
            clears = decision.clears_nomination or decision.error or not decision.node_count
            nominated = CLEAR if decision.nominated is None and clears else decision.nominated
            cluster = self.cluster if evict else None
            self._preemption.carry_out(pod, nominated, decision.victims, decision.changes, cluster)
        return decision

    def schedule(self, pod: Pod, *, preempt: bool = False) -> str | None:
        """Decide the pod and put it on its node, like `place`, but without collecting reasons.

        With `preempt`, a pod that fits nowhere replaces other pods, if evicting them makes room for it. None if the pod
        fits nowhere; `message` then says why. Raises where a decision would report an error.
        """
        with PLUGIN_FAULTS:
            evaluation, row = self._find_or_make_room(pod) if preempt else self._find(pod)
            if evaluation is None or row is None:
                return None
            status = self._put(evaluation, row)
        if status is not SUCCESS and status != SUCCESS:
            raise PluginError(status.plugin, _failed_reserve(status))
        if evaluation.plan.outline.reserve:
            self._settle(evaluation, self.cluster.names[row])
        return self.cluster.names[row]

    def message(self, pod: Pod) -> str:
        """Why the pod fits nowhere now, in kube-scheduler's sentence, or why it cannot be decided."""
        failed = self._failed.find(pod) if self._failed else None
        decision = failed.decision if failed else None
        if decision is None:
            before = self.save()
            decision, _ = self._explained(pod, preempt=False)
            self.restore(before)
            if failed and not decision.error:
                failed.decision = decision
        return decision.error or decision.message

    def score(self, pod: Pod) -> ScoredRows:
        """The scores of the nodes that fit the pod, as arrays and without reasons; changes nothing.

        There are no scores if a single node fits and the release does not score it. Raises where a decision would
        report an error.
        """
        sampled = self._sampling.save()
        try:
            with PLUGIN_FAULTS:
                evaluation, extended = self._evaluate(pod, everywhere=False)
                rows = NO_ROWS if evaluation is None else evaluation.feasible.rows
                if evaluation is None or len(rows) <= (0 if self.setup.behaviour.scores_single_node else 1):
                    return ScoredRows(rows, [], np.zeros(len(rows), dtype=np.int64), rows)
                return self._score(evaluation, extended)
        finally:
            self._sampling.restore(sampled)

    def best(self, pod: Pod) -> BestRows:
        """The rows of which `attempt` chooses one, without choosing; none if the pod fits nowhere. Changes nothing."""
        sampled = self._sampling.save()
        try:
            with PLUGIN_FAULTS:
                evaluation, extended = self._evaluate(pod, everywhere=False)
                count = 0 if evaluation is None else evaluation.feasible.count
                if evaluation is None or not count:
                    return BestRows(NO_ROWS, 0)
                if count == 1 and not self.setup.behaviour.scores_single_node:
                    return BestRows(evaluation.feasible.rows, count)
                return BestRows(self._rank(evaluation, extended).best, count)
        finally:
            self._sampling.restore(sampled)

    # -- in steps --------------------------------------------------------------------------------------------------

    def attempt(self, pod: Pod) -> Attempt:
        """Find the best node for the pod, without placing it and without collecting reasons.

        A failure is remembered: pods of one kind fail alike until something changes.
        """
        with PLUGIN_FAULTS:
            evaluation, row = self._find(pod)
        return Attempt(pod, None if row is None else self.cluster.names[row], evaluation)

    def attempt_member(self, pod: Pod, search: MemberSearch, *, explain: bool) -> tuple[Attempt, Decision | None]:
        """Find the best node for a pod of a group, without placing it; no PostFilter runs.

        The decision has all reasons, and with `explain` all scores; there is none for a pod that fits, otherwise.
        """
        # PostFilter reads which claims were in the way on any node, which only the explained way looks for.
        if not explain and not pod.spec.resource_claims:
            with PLUGIN_FAULTS:
                evaluation, extended = self._evaluate(pod, everywhere=False, member_of=search)
                row = None if evaluation is None else self._select(evaluation, extended)
            if row is not None:
                return Attempt(pod, self.cluster.names[row], evaluation), None
        decision, evaluation = self._explained(pod, preempt=False, member_of=search)
        return Attempt(pod, decision.node, evaluation), decision

    def assume(self, attempt: Attempt) -> Status:
        """Place the pod of an attempt on its node, and let plugins reserve what it needs there.

        If a plugin cannot reserve, the pod is back where it was before, and the status says why.
        """
        if attempt.evaluation is None or attempt.node is None:
            raise InputError(f"pod {attempt.pod.key}: there is no node to put it on")
        with PLUGIN_FAULTS:
            return self._put(attempt.evaluation, self.cluster.rows[attempt.node])

    def settle(self, attempt: Attempt) -> None:
        """Treat the assumed pod of an attempt as bound."""
        assert attempt.evaluation is not None, "assume has checked it"
        self._settle(attempt.evaluation, attempt.node or "")

    def take_back(self, attempt: Attempt) -> None:
        """Undo `assume`: the pod waits again, and is nominated to the node that its status names."""
        assert attempt.evaluation is not None, "assume has checked it"
        assert attempt.node is not None, "assume has checked it"
        self.unreserve(attempt.evaluation.state, attempt.pod, attempt.node)
        self.cluster.forget(attempt.pod)
        if attempt.pod.status.nominated_node_name:
            self.nominations.nominate(attempt.pod, attempt.pod.status.nominated_node_name)

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Let the plugins undo their reservations for an assumed pod, in reverse order; the pod itself stays."""
        for plugin in reversed(self.framework_of(pod).reserve):
            plugin.unreserve(state, pod, node_name)

    def diagnose(self, pod: Pod) -> Diagnosis:
        """Why a pod without a feasible node fits nowhere, and what PostFilter can do about it.

        The caller nominates the pod and evicts the victims.
        """
        failed = self._failed.find(pod) if self._failed else None
        if failed and failed.diagnosis:
            return failed.diagnosis
        sampled = self._sampling.save()
        decision, evaluation = self._explained(pod, preempt=True)
        self._sampling.restore(sampled)
        diagnosis = Diagnosis.of(decision)
        is_final = diagnosis.nominated is None and not diagnosis.changes and not diagnosis.is_error
        if self._failed and failed and is_final:
            self._failed.diagnosed(failed, diagnosis, decision, evaluation)
        return diagnosis

    def known_diagnosis(self, pod: Pod) -> Diagnosis | None:
        """The result of `diagnose` for a pod that is known to fit nowhere now; None if that is not known."""
        failed = self._failed.find(pod) if self._failed else None
        return failed.diagnosis if failed else None

    def kind_of(self, info: PodInfo, profile: str) -> Hashable:
        """Equal for pods of a profile that fit, or do not fit, alike as long as the filters that run stay the same."""
        plans = self._plans.get(profile)
        return info if plans is None or self.extenders else plans.kind_of(info)

    def save(self) -> tuple[Any, ...]:
        """The state besides the cluster that later choices depend on; pass it to `restore`."""
        return self._tie_break.save(), self._sampling.save(), self._preemption.save()

    def restore(self, saved: tuple[Any, ...]) -> None:
        """Reset the state that later choices depend on to a saved one."""
        tie_break, sampling, preempting = saved
        self._tie_break.restore(tie_break)
        self._sampling.restore(sampling)
        self._preemption.restore(preempting)

    # -- how -------------------------------------------------------------------------------------------------------

    def _find(self, pod: Pod) -> tuple[Evaluation | None, int | None]:
        """The row to place the pod on, without collecting reasons; None if no node fits. The evaluation is None if that
        was known already.
        """
        failed = self._failed
        if failed is not None and failed.are_any and failed.find(pod, look_again=True) is not None:
            return None, None
        start = self._sampling.start
        evaluation, extended = self._evaluate(pod, everywhere=False)
        row = None if evaluation is None else self._select(evaluation, extended)
        # Not if sampling moved its start: the next pod of this kind would have to move it as well.
        if row is None and failed is not None and self._sampling.start == start:
            failed.add(pod)
        return evaluation, row

    def _explained(
        self, pod: Pod, preempt: bool, *, member_of: MemberSearch | None = None
    ) -> tuple[Decision, Evaluation | None]:
        nodes = self.cluster.node_count
        try:
            with PLUGIN_FAULTS:
                evaluation, extended = self._evaluate(pod, everywhere=True, member_of=member_of)
                if evaluation is None:
                    return Decision(pod.key, None), None
                return self._explain(evaluation, extended, preempt), evaluation
        except (InputError, PluginError, ExtenderError) as error:
            return Decision(pod.key, None, error=str(error), node_count=nodes), None

    def _explain(self, evaluation: Evaluation, extended: ExtenderRound, preempt: bool) -> Decision:
        """The decision with all scores and reasons; with `preempt`, also the result of PostFilter."""
        key, names = evaluation.pod.key, self.cluster.names
        rejected = self._rejected(evaluation, extended)
        rows = evaluation.feasible.rows.tolist() if evaluation.feasible.count else ()
        feasible = tuple(sorted([names[row] for row in rows]))
        absent = self._absent(evaluation, len(feasible) + len(rejected))
        found: dict[str, Any] = {
            "feasible": feasible,
            "rejected": rejected,
            "absent": absent,
            "narrowed_by": evaluation.narrowed_by,
            "node_count": evaluation.node_count,
            "fit_error": self.setup.behaviour.fit_error,
            "kept": evaluation.kept,
            "dropped": extended.dropped,
            "unasked": extended.unasked,
            "scored_as_returned_by": extended.returned_by,
            "pre_filter_status": evaluation.pre_filter_status,
        }
        if not feasible and preempt:
            found |= self._post_filter(evaluation, rejected, absent).fields()
        if not feasible:
            return Decision(key, None, **found)
        if len(feasible) == 1 and not self.setup.behaviour.scores_single_node:
            chosen: dict[str, Any] = {"node": feasible[0], "ties": feasible}
        else:
            chosen = self._choose(evaluation, extended)
        return Decision(key, **found, **chosen, details=_details(evaluation, chosen["node"]))

    def _find_or_make_room(self, pod: Pod) -> tuple[Evaluation | None, int | None]:
        """The row to place the pod on, after evicting pods there if necessary; None if that helps nowhere."""
        evaluation, extended = self._evaluate(pod, everywhere=True)
        row = None if evaluation is None else self._select(evaluation, extended)
        if evaluation is None or row is not None:
            return evaluation, row
        rejected = self._rejected(evaluation, extended)
        found = self._post_filter(evaluation, rejected, self._absent(evaluation, len(rejected)))
        victims = [victim.key for victim in found.victims]
        self._preemption.carry_out(pod, found.nominated, victims, found.changes, self.cluster)
        if not found.nominated:
            return evaluation, None
        if found.makes_room and not self.extenders:
            # The dry run checked the nominated node as the next attempt would, which looks at no other node.
            self._check_queue(pod, self.framework_of(pod))
            return evaluation, self.cluster.rows[found.nominated]
        return self._find(pod)

    def _post_filter(self, evaluation: Evaluation, rejected: Mapping[str, Status], absent: Status | None) -> Preempted:
        return self._preemption.attempt(rejected, absent, evaluation, self.framework_of(evaluation.pod))

    def _absent(self, evaluation: Evaluation, looked_at: int) -> Status | None:
        """The status of nodes that no filter checked; None if the filters checked all nodes."""
        absent = evaluation.absent if self.setup.rules.counts_absent_nodes else None
        if absent is None and looked_at < evaluation.node_count:
            absent = Status.unresolvable()
        return absent

    def _rejected(self, evaluation: Evaluation, extended: ExtenderRound) -> Mapping[str, Status]:
        """Why nodes were rejected, by PreFilter as well in releases that record that for every node."""
        names, by_pre_filter = self.cluster.names, evaluation.pre_filter_status
        if by_pre_filter is not None and not self.setup.rules.counts_absent_nodes:
            statuses = dict.fromkeys(self.cluster.rows.values(), by_pre_filter)
        else:
            found = None if extended.rejections or extended.unasked else evaluation.node_statuses()
            if found is not None:
                return found
            statuses = evaluation.statuses()
        statuses = extended.over(statuses, evaluation.feasible.rows)
        return {names[row]: statuses[row] for row in sorted(statuses, key=names.__getitem__)}

    def _choose(self, evaluation: Evaluation, extended: ExtenderRound) -> dict[str, Any]:
        """Score the feasible nodes and choose one, keeping all scores."""
        found = self._score(evaluation, extended)
        names = [self.cluster.names[row] for row in found.rows.tolist()]
        order = np.array(sorted(range(len(names)), key=names.__getitem__), dtype=np.int64)
        nodes = [names[place] for place in order.tolist()]

        def by_node(values: Ints) -> dict[str, int]:
            return dict(zip(nodes, values[order].tolist(), strict=True))

        titles = {each.plugin.name: each.plugin.title for each in evaluation.plan.outline.listed_scores}
        scores = [
            PluginScores(each.plugin, each.weight, by_node(each.raw), by_node(each.normalized), titles[each.plugin])
            for each in found.scores
        ]
        return {
            "node": self.cluster.names[self._tie_break.choose(found.best, self.cluster)],
            "scores": tuple(scores),
            "extender_scores": {name: by_node(values) for name, values in extended.scores.items()},
            "totals": by_node(found.totals),
            "ties": tuple(sorted([self.cluster.names[row] for row in found.best.tolist()])),
        }

    def _score(self, evaluation: Evaluation, extended: ExtenderRound) -> ScoredRows:
        """All scores of the feasible rows, and their totals."""
        ranking = self._rank(evaluation, extended)
        rows = evaluation.feasible.rows
        totals = np.full(len(rows), int(evaluation.plan.outline.scores_one and not self.extenders), dtype=np.int64)
        scores = list(evaluation.scores(ranking))
        for scored in scores:
            totals += scored.normalized * scored.weight
        for values in extended.scores.values():
            totals += values
        return ScoredRows(rows, scores, totals, ranking.best)

    def _put(self, evaluation: Evaluation, row: int) -> Status:
        """Place the pod and let plugins reserve what it needs; undo it if a plugin cannot."""
        self.cluster.place(evaluation.pod, row, evaluation.state.info)
        self.nominations.forget(evaluation.pod)
        if not evaluation.plan.outline.reserve:
            return SUCCESS
        status = self._reserve(evaluation, self.cluster.names[row])
        if status != SUCCESS:
            self.cluster.forget(evaluation.pod)
        return status

    def _settle(self, evaluation: Evaluation, node_name: str) -> None:
        """Treat a placed pod as bound: the devices of its claims become available to other pods that share the
        claims.
        """
        for plugin in evaluation.plan.outline.reserve:
            plugin.settle(evaluation.state, evaluation.pod, node_name)

    def _reserve(self, evaluation: Evaluation, node_name: str) -> Status:
        """Run Reserve; when one plugin fails, Unreserve all in reverse order."""
        plugins = evaluation.plan.outline.reserve
        for plugin in plugins:
            status = plugin.reserve(evaluation.state, evaluation.pod, node_name)
            if status != SUCCESS:
                for undone in reversed(plugins):
                    undone.unreserve(evaluation.state, evaluation.pod, node_name)
                return status._replace(plugin=plugin.name)
        return SUCCESS

    def _select(self, evaluation: Evaluation, extended: ExtenderRound) -> int | None:
        """The row to place the pod on, without collecting reasons."""
        count = evaluation.feasible.count
        if count == 0:
            return None
        if count == 1 and not self.setup.behaviour.scores_single_node:
            return int(evaluation.feasible.rows[0])
        ranking = self._rank(evaluation, extended)
        if isinstance(self._tie_break, First) and self.cluster.rows_in_name_order:
            return ranking.first_best
        return self._tie_break.choose(ranking.best, self.cluster)

    def _rank(self, evaluation: Evaluation, extended: ExtenderRound) -> Ranking:
        if not self.extenders:
            return evaluation.rank()
        nodes_to_score = extended.nodes_to_score(evaluation)
        if nodes_to_score is not None:
            evaluation.score_instead(nodes_to_score)
        ranking = evaluation.rank()
        extended.prioritize(evaluation)
        return extended.add_scores(ranking, evaluation)

    def _evaluate(
        self, pod: Pod, *, everywhere: bool, member_of: MemberSearch | None = None
    ) -> tuple[Evaluation | None, ExtenderRound]:
        """Filter, sample and ask the extenders; None for a cluster without nodes.

        With `everywhere`, the evaluation can tell for every node why it was rejected. `member_of` is set for a pod that
        is tried as part of a group, which has left the queue as a whole.
        """
        extended = NO_EXTENDERS
        if self.extenders:
            extended = ExtenderRound(self.extenders, pod, self.setup.rules)
        framework = self.framework_of(pod)
        if member_of is None:
            group = self.group_of(pod)
            if group is not None:
                raise InputError(
                    f"pod {pod.key}: {self._rules.release} decides it with its PodGroup {group.key}, not alone"
                )
            self._check_queue(pod, framework)
        if not self.cluster.node_count:
            return None, extended
        cluster = self.cluster
        # Schedulers of several releases may alternate on one cluster.
        if cluster.infos.rules is not self._rules:
            cluster.count_as(self._rules)
        info = cluster.info_of(pod)
        shared = NOTHING if member_of is None else member_of.state
        evaluation = Evaluation(self._plans[pod.spec.scheduler_name].of(info), info, pod, cluster, shared)
        if member_of is not None and member_of.rows is not None:
            evaluation.limit_to(member_of.rows)
        if self.nominations:
            self._nominated_pods_check.apply(evaluation, everywhere=everywhere)
        nominated = self.nominations.node_of(pod)
        if nominated:
            on_nominated = self._on_nominated(evaluation, nominated, extended)
            if on_nominated is not None:
                return on_nominated, extended
        if member_of is None or member_of.rows is None:
            self._sampling.apply(evaluation, framework, self.extenders)
        if self.extenders:
            extended.filter(evaluation)
        return evaluation, extended

    def check_queue(self, pod: Pod) -> None:
        """PluginError if a plugin keeps the pod out of the queue."""
        self._check_queue(pod, self.framework_of(pod))

    def _check_queue(self, pod: Pod, framework: Framework) -> None:
        for plugin in framework.pre_enqueue:
            status = plugin.pre_enqueue_in(pod, self.cluster)
            if status is not SUCCESS and status != SUCCESS:
                raise PluginError(plugin.name, f"keeps the pod out of the queue: {status.message}")

    def _on_nominated(self, evaluation: Evaluation, node_name: str, extended: ExtenderRound) -> Evaluation | None:
        """The evaluation of the node that the pod is nominated to; None if the pod does not fit there. If it fits, no
        other node is checked.
        """
        row = self.cluster.rows.get(node_name)
        if row is None or not evaluation.feasible.has(row):
            return None
        if not self.extenders:
            evaluation.narrow_to(row)
            return evaluation
        single = evaluation.only_on(row)
        extended.filter(single)
        return single if single.feasible.count else None


def _details(evaluation: Evaluation, node_name: str) -> dict[str, Any]:
    """The plugins' reservations on a node."""
    found: dict[str, Any] = {}
    for plugin in evaluation.plan.outline.reserve:
        found |= plugin.details(evaluation.state, evaluation.pod, node_name)
    return found


def _failed_reserve(status: Status) -> str:
    return f"failed in Reserve: {status.message}"


def _resolve_tie_break(chosen: TieBreak | str, seed: int) -> TieBreak:
    return tie_break(chosen, seed) if isinstance(chosen, str) else chosen
