"""Evaluates one pod on one cluster: PreFilter, Filter, PreScore, Score and NormalizeScore in kube-scheduler's order,
then the extenders.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from copy import copy
from typing import Any

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.columns import NO_ROWS, Ints, Mask, is_any
from podium.cluster.nodes import Groups, ReturnedNodes
from podium.engine._feasible_rows import FeasibleRows, NodeStatuses, Ranking, RowScores, check_scores
from podium.engine.plan import Plan
from podium.engine.plan_results import FEW_NODES, filters_by_node, scores_by_node
from podium.errors import ExtenderError, ExtenderWarning, PluginError
from podium.extenders import Extender, FilterResult
from podium.framework import SUCCESS, Code, Status, Verdict
from podium.framework.fast_paths import ByNodeLabels
from podium.framework.plugin import NOTHING, CycleState, FilterPlugin, PreFilterPlugin, PreScorePlugin, ScorePlugin
from podium.framework.registry import Weighted
from podium.framework.status import PASSED, checked_number, checked_numbers, checked_status, checked_verdict
from podium.model import Node, Pod
from podium.rules import NEWEST_RULES, Rules


class Evaluation:
    """Finds the nodes that fit a pod and ranks them. It reads live arrays: use it before the cluster changes again."""

    def __init__(
        self, plan: Plan, info: PodInfo, pod: Pod, cluster: Cluster, shared: Mapping[str, Any] = NOTHING
    ) -> None:
        """`shared` is added to the cycle state before any plugin runs."""
        self.plan, self.pod, self.cluster = plan, pod, cluster
        self.state = CycleState(info, plan.state)
        if shared:
            self.state.update(shared)
        self.absent: Status | None = None
        """The status of the nodes that no filter looked at, because PreFilter excluded them."""
        self.pre_filter_status: Status | None = None
        """Why PreFilter rejected the pod as a whole, if it did."""
        self.stopped_at = ""
        """The plugin at which PreFilter stopped; empty if it ran to the end."""
        self.narrowed_by: tuple[str, ...] = ()
        """The plugins whose PreFilter limited the search to some nodes, or to none; sorted."""
        self.looked_at: Ints | None = None
        """The rows that the filters check; None for all."""
        self.node_count = cluster.node_count
        """How many nodes the pod could go to, if all fitted."""
        self.feasible = FeasibleRows(plan, cluster)
        """The rows where the pod fits."""
        self.rejected_by_nominated: dict[int, Status] = {}
        """By row, why the filters reject it once the pods nominated to it are counted."""
        self.skipped = plan.outline.skipped
        """The plugins that skip Filter for this pod."""
        self.skipped_scores: set[str] = set()
        """The plugins that skip Score for this pod."""
        self.scores_given_nodes = False
        """Whether other nodes are scored in place of the feasible ones."""
        self._nodes: Nodes | None = None
        self.fresh = plan.fresh
        """The plugins that can keep results, but had none yet for this kind of pod."""
        if plan.fresh:
            plan.forget_fresh()
        plan.catch_up()
        self._pre_filter()
        self._filter()

    @property
    def kept(self) -> tuple[str, ...]:
        """The plugins that reuse results of earlier pods."""
        return tuple(sorted(self.plan.parts.keys() - self.fresh))

    # -- filtering -------------------------------------------------------------------------------------------------

    def _pre_filter(self) -> None:
        outline = self.plan.outline
        if outline.narrows:
            self._pre_filter_in_order()
            return
        for plugin in outline.varying_pre_filter:
            outcome = plugin.pre_filter(self.state, self.pod, self.cluster.nodes)
            if outcome == PASSED:
                continue
            if outcome.status.code is not Code.SKIP:
                self._pre_filter_in_order()
                return
            self.skipped |= {plugin.name}

    def _pre_filter_in_order(self) -> None:
        """Run PreFilter in the order of the profile, which matters when a plugin rejects the pod or leaves only some
        nodes.
        """
        names: frozenset[str] | None = None
        narrowing: list[str] = []
        rules = self.cluster.rules
        for plugin in self.plan.outline.pre_filter:
            known = self.plan.parts.get(plugin.name)
            outcome = known.pre_filter if known else plugin.pre_filter(self.state, self.pod, self.cluster.nodes)
            code = outcome.status.code
            if code is Code.SKIP:
                self.skipped |= {plugin.name}
            elif code is Code.UNSCHEDULABLE and rules.pre_filter_runs_on:
                # The other plugins still run: preemption needs their state later.
                self._reject(outcome.status._replace(plugin=plugin.name))
            elif code in (Code.UNSCHEDULABLE, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
                self._reject(outcome.status._replace(plugin=plugin.name))
                self._forget_after(plugin)
                return
            elif code is not Code.SUCCESS:
                raise PluginError(plugin.name, f"failed in PreFilter: {outcome.status.message}")
            elif outcome.node_names is not None:
                narrowing.append(plugin.name)
                names = outcome.node_names if names is None else names & outcome.node_names
                if not names:
                    shown = sorted(narrowing) if rules.narrowing_plugins_are_sorted else narrowing
                    status = Status.unresolvable(_unsatisfied(shown))
                    if not rules.conflicting_pre_filters_are_unresolvable:
                        status = status._replace(code=Code.UNSCHEDULABLE)
                    self._reject(status)
                    self.narrowed_by = tuple(sorted(narrowing))
                    self._forget_after(plugin)
                    return
        if names is not None and self.pre_filter_status is None:
            self.narrowed_by = tuple(sorted(narrowing))
            if rules.counts_absent_nodes:
                self.absent = Status.unresolvable(f"node(s) didn't satisfy plugin(s) [{' '.join(self.narrowed_by)}]")
            rows = sorted(row for row in map(self.cluster.rows.get, names) if row is not None)
            self.looked_at = np.array(rows, dtype=np.int64)

    def _forget_after(self, last: PreFilterPlugin) -> None:
        """Drop the state of the plugins after the one at which PreFilter stopped: they would not have run."""
        self.stopped_at = last.name
        plugins = self.plan.outline.pre_filter
        for plugin in plugins[plugins.index(last) + 1 :]:
            self.state.pop(plugin.name, None)

    def _reject(self, status: Status) -> None:
        self.absent = self.pre_filter_status = status
        self.sample(NO_ROWS)

    def _filter(self) -> None:
        """Find the feasible rows. The order in which filters reject does not matter here; `statuses`
        reconstructs it.
        """
        if self.pre_filter_status is not None:
            return
        if self.looked_at is not None:
            self.feasible.keep(self.looked_at[self.plan.feasible[self.looked_at]])
        if self.plan.may_have_errors:
            self.statuses()
        for plugin in self.plan.outline.varying_filter:
            if plugin.name not in self.skipped and self.feasible.count:
                self._narrow(plugin)

    def _narrow(self, plugin: FilterPlugin) -> None:
        """Drop the feasible rows that a filter rejects; a filter that depends on labels alone checks one node of each
        group.
        """
        labels = plugin.filter_labels(self.state) if isinstance(plugin, ByNodeLabels) else None
        groups = None if labels is None else self.cluster.groups.by(labels)
        if groups is not None and groups.are_few:
            rejected = self._rejects(plugin, Nodes(self.cluster, groups.examples))
            if rejected is not None:
                self.feasible.drop_groups(groups.everywhere(rejected), groups)
        else:
            nodes = self.feasible.nodes
            rejected = self._rejects(plugin, nodes)
            if rejected is not None:
                self.feasible.drop(rejected, nodes)

    def _rejects(self, plugin: FilterPlugin, nodes: Nodes) -> Mask | None:
        """Whether each node is rejected by a filter that runs for this pod alone; None if the filter accepts all."""
        if len(nodes) > FEW_NODES or not filters_by_node(plugin):
            verdict = self._run(plugin, nodes)
            return verdict.rejected if verdict.accepted is None else None
        state, pod, cluster = self.state, self.pod, self.cluster
        statuses = [plugin.filter_node(state, pod, NodeInfo(cluster, row)) for row in nodes.rows.tolist()]
        return np.array([s is not SUCCESS and self._is_rejection(plugin, s) for s in statuses], dtype=np.bool_)

    @staticmethod
    def _is_rejection(plugin: FilterPlugin, status: Status) -> bool:
        if checked_status(plugin.name, status).code is Code.ERROR:
            raise PluginError(plugin.name, f"failed: {status.message}")
        return status != SUCCESS

    def _run(self, plugin: FilterPlugin, nodes: Nodes) -> Verdict:
        verdict = checked_verdict(plugin.name, plugin.filter(self.state, self.pod, nodes), len(nodes))
        error = verdict.error
        if error is not None:
            raise PluginError(plugin.name, f"failed: {error.message}")
        return verdict

    def statuses(self) -> dict[int, Status]:
        """The status of each rejected row, from the first filter in the order of the profile that rejects it.

        In releases that collect all reasons, the status joins the reasons of all filters that reject the row.
        """
        found: dict[int, Status] = {}
        for status, rows in self._rejections():
            for row in rows.tolist():
                found[row] = joined(found[row], status) if row in found else status
        looked_at = None if self.looked_at is None else set(self.looked_at.tolist())
        found.update(
            {row: why for row, why in self.rejected_by_nominated.items() if looked_at is None or row in looked_at}
        )
        return found

    def node_statuses(self) -> NodeStatuses | None:
        """The same as `statuses`, by node name; None where the status of a row has to be joined from several."""
        if self.rejected_by_nominated or self.plan.behaviour.collects_all_reasons:
            return None
        kept = self.plan.rejections(self.skipped) if self.looked_at is None else None
        if kept is not None:
            return NodeStatuses(kept.codes.copy(), kept.statuses, self.cluster.names_now, kept.rows_of)
        codes, statuses = np.zeros(self.cluster.columns.size, dtype=np.int64), [SUCCESS]
        for status, rows in self._rejections():
            codes[rows] = len(statuses)
            statuses.append(status)
        return NodeStatuses(codes, statuses, self.cluster.names_now)

    def _rejections(self) -> Iterator[tuple[Status, Ints]]:
        """For each filter, the status and the rows it rejects: those that no earlier filter rejected, or all of them
        where the release collects all reasons.
        """
        collects = self.plan.behaviour.collects_all_reasons
        undecided = np.flatnonzero(self.cluster.columns.alive) if self.looked_at is None else self.looked_at
        for plugin in self.plan.outline.filter:
            if plugin.name in self.skipped or not len(undecided):
                continue
            results = self.plan.filter_results(plugin)
            if results is None:
                verdict = self._run(plugin, Nodes(self.cluster, undecided))
            else:
                results.catch_up()
                verdict = Verdict(results.values[undecided], results.describe)
                if verdict.error is not None:
                    raise PluginError(plugin.name, f"failed: {verdict.error.message}")
            is_rejected = verdict.codes != 0
            if not is_any(is_rejected):
                continue
            rows, codes = undecided[is_rejected], verdict.codes[is_rejected]
            while len(rows):
                code = codes.item(0)
                others = codes != code
                yield verdict.describe(code)._replace(plugin=plugin.name), rows[~others]
                rows, codes = rows[others], codes[others]
            if not collects:
                undecided = undecided[~is_rejected]

    def reject_by_nominated(self, statuses: dict[int, Status]) -> None:
        """Reject the rows that the filters pass only while the pods nominated to them are not counted."""
        self.rejected_by_nominated = statuses
        rows = self.feasible.rows
        self.feasible.keep(rows[~np.isin(rows, list(statuses))])

    def limit_to(self, rows: Ints) -> None:
        """Continue as if the cluster had only the nodes of these rows, which are in ascending order."""
        self.node_count = len(rows)
        if self.pre_filter_status is None:
            self.sample(rows if self.looked_at is None else rows[np.isin(rows, self.looked_at)])

    def sample(self, rows: Ints) -> None:
        """Limit the search to these rows, in ascending order; feasible rows outside of them are dropped."""
        feasible = self.feasible.rows if len(rows) else rows
        self.looked_at = rows
        self.feasible.keep(rows[np.isin(rows, feasible)])

    def only_on(self, row: int) -> Evaluation:
        """A copy of the evaluation in which the node of this feasible row is the only node."""
        single = copy(self)
        single.narrow_to(row)
        return single

    def narrow_to(self, row: int) -> None:
        """Continue as if the node of this feasible row were the only node."""
        self.absent, self.rejected_by_nominated, self.narrowed_by = None, {}, ()
        self.looked_at = np.array([row], dtype=np.int64)
        self.feasible = FeasibleRows(self.plan, self.cluster)
        self.feasible.keep(self.looked_at)

    # -- scoring ---------------------------------------------------------------------------------------------------

    def rank(self) -> Ranking:
        """The ranking that `select` chooses from. A score that is the same on every feasible node is left out."""
        plan, feasible = self.plan, self.feasible
        if self.scores_given_nodes:
            return self._rank_given_nodes()
        if plan.may_be_invalid:
            for results in plan.final_scores():
                results.catch_up()
                self._check(results.plugin, results.values[feasible.rows])
        if plan.outline.varying_pre_score:
            self._run_pre_score(plan.outline.varying_pre_score)
        if not plan.varying_scores and not feasible.are_listed:
            return Ranking(None, [], None, feasible)
        scores = [self._score_one(each) for each in plan.varying_scores if each.plugin.name not in self.skipped_scores]
        varying = [scored for scored in scores if not scored.are_equal]
        if not feasible.are_listed and all(scored.groups is not None for scored in varying):
            by_groups = [(s.groups, s.normalized * s.weight) for s in varying if s.groups is not None]
            return Ranking(None, scores, feasible.rank(by_groups) if by_groups else None, feasible)
        rows = None if feasible.are_everywhere else feasible.rows
        ranking = plan.total if rows is None else plan.total.take(rows)
        for scored in varying:
            ranking = ranking + scored.of(rows).normalized * scored.weight
        return Ranking(rows, scores, ranking)

    def score_instead(self, nodes: Nodes) -> None:
        """Make `rank` score these nodes in place of the feasible ones; they use the same rows."""
        self._nodes, self.scores_given_nodes = nodes, True

    def _rank_given_nodes(self) -> Ranking:
        """The ranking of the substitute nodes. No kept results exist for them: every plugin scores them now."""
        self._run_pre_score(self.plan.outline.pre_score)
        plugins = [each for each in self.plan.outline.score if each.plugin.name not in self.skipped_scores]
        nodes = self._scored
        scores = [self._score_now(weighted, nodes) for weighted in plugins]
        values = np.zeros(len(nodes), dtype=np.int64)
        for scored in scores:
            values += scored.normalized * scored.weight
        return Ranking(self.feasible.rows, scores, values)

    @property
    def _scored(self) -> Nodes:
        """The nodes to score."""
        if self._nodes is None:
            self._nodes = self.feasible.nodes
        return self._nodes

    def _run_pre_score(self, plugins: Sequence[PreScorePlugin]) -> None:
        for plugin in plugins:
            status = plugin.pre_score(self.state, self.pod, self._scored)
            if status is SUCCESS:
                continue
            if status.code is Code.SKIP:
                self.skipped_scores.add(plugin.name)
            elif status.code is not Code.SUCCESS:
                raise PluginError(plugin.name, f"failed in PreScore: {status.message}")

    def _score_one(self, weighted: Weighted) -> RowScores:
        """Score for this pod alone: for a plugin without kept results, or one that normalises."""
        plugin, nodes = weighted.plugin, self._scored
        results = self.plan.score_results(plugin)
        labels = plugin.score_labels(self.state) if results is None and isinstance(plugin, ByNodeLabels) else None
        groups = None if labels is None else self.cluster.groups.by(labels)
        if groups is not None and groups.are_few:
            return self._score_groups(weighted, groups)
        if results is None:
            return self._score_now(weighted, nodes)
        results.catch_up()
        return self._normalized_scores(weighted, nodes.take(results.values), nodes)

    def _score_now(self, weighted: Weighted, nodes: Nodes) -> RowScores:
        plugin = weighted.plugin
        raw = checked_numbers(plugin.name, "score", plugin.score(self.state, self.pod, nodes), len(nodes))
        return self._normalized_scores(weighted, raw, nodes)

    def _normalized_scores(self, weighted: Weighted, raw: Ints, nodes: Nodes) -> RowScores:
        plugin, weight = weighted
        normalized = self._normalized(plugin, raw, nodes)
        return RowScores(plugin.name, weight, raw, normalized, are_equal=self._check(plugin, normalized))

    def _score_groups(self, weighted: Weighted, groups: Groups) -> RowScores:
        """Score one node of each group that has feasible nodes; all nodes of the group get its score."""
        plugin, weight = weighted
        chosen = self.feasible.represent(groups)
        nodes = chosen.nodes
        if len(nodes) > FEW_NODES or not scores_by_node(plugin):
            raw = checked_numbers(plugin.name, "score", plugin.score(self.state, self.pod, nodes), len(nodes))
        else:
            found = (checked_number(plugin.name, plugin.score_node(self.state, self.pod, node)) for node in nodes)
            raw = np.fromiter(found, np.int64, len(nodes))
        normalized = self._normalized(plugin, raw, nodes)
        are_equal = self._check(plugin, normalized)
        return RowScores(plugin.name, weight, chosen.spread(raw), chosen.spread(normalized), groups, are_equal)

    def _check(self, plugin: ScorePlugin, normalized: Ints) -> bool:
        """Raise if a score is out of the release's range; True if all scores are the same."""
        bounds = self.plan.behaviour.score_range
        return bounds is not None and check_scores(plugin.name, normalized, bounds)

    def _normalized(self, plugin: ScorePlugin, raw: Ints, nodes: Nodes) -> Ints:
        if not plugin.normalizes:
            return raw
        found = plugin.normalize(self.state, self.pod, raw, nodes)
        return checked_numbers(plugin.name, "normalize", found, len(nodes))

    def scores(self, ranking: Ranking) -> Iterator[RowScores]:
        """Every plugin's scores of the feasible rows, in the order of the profile; `ranking` is the result of
        `rank`.
        """
        known, rows = {scored.plugin: scored for scored in ranking.scores}, self.feasible.rows
        for weighted in self.plan.outline.listed_scores:
            plugin, weight = weighted
            results = self.plan.score_results(plugin)
            if plugin.name in self.plan.outline.zero_scores:
                zeros = np.zeros(self.feasible.count, dtype=np.int64)
                yield RowScores(plugin.name, weight, zeros, zeros)
            elif results is not None and not plugin.normalizes and not self.scores_given_nodes:
                results.catch_up()
                raw = results.values[rows]
                yield RowScores(plugin.name, weight, raw, raw)
            elif plugin.name not in self.skipped_scores:
                yield (known.get(plugin.name) or self._score_one(weighted)).of(rows)


def joined(one: Status, other: Status) -> Status:
    """Join two filters' reasons against one node; the result is unresolvable if either status is."""
    code = other.code if one.code is Code.UNSCHEDULABLE else one.code
    plugins = one.plugins + other.plugins
    return Status(code, one.reasons + other.reasons, ", ".join(plugins), plugins)


def _unsatisfied(plugins: Sequence[str]) -> str:
    if len(plugins) == 1:
        return f"node(s) didn't satisfy plugin {plugins[0]}"
    return f"node(s) didn't satisfy plugin(s) [{' '.join(plugins)}] simultaneously"


class ExtenderRound:
    """Calls the extenders that are interested in one pod, and keeps their answers."""

    __slots__ = (
        *("_interested", "_pod", "_returned", "_rules"),
        *("dropped", "rejections", "returned_by", "scores", "unasked"),
    )

    def __init__(self, extenders: Sequence[Extender], pod: Pod, rules: Rules) -> None:
        self._pod, self._rules = pod, rules
        self._interested = [extender for extender in extenders if extender.is_interested(pod)]
        self.rejections: list[tuple[int, Status]] = []
        """The rows that extenders rejected, with the status, in order."""
        self.scores: dict[str, Ints] = {}
        """Per extender name, the weighted score of each feasible row."""
        self.dropped: dict[str, tuple[str, ...]] = {}
        """Per extender, the nodes it left out without giving a reason."""
        self.unasked: dict[str, tuple[str, ...]] = {}
        """Per extender, the nodes it passed although it was not asked about them."""
        self.returned_by: tuple[str, ...] = ()
        """The extenders whose Node objects are scored in place of the cluster's."""
        self._returned: dict[str, Node] = {}

    def filter(self, evaluation: Evaluation) -> None:
        """Let each extender narrow the feasible rows; an ignorable extender that fails is skipped."""
        cluster = evaluation.cluster
        if self._interested:
            # The extenders were asked about the nominated node first; start over for the other nodes.
            self.dropped, self.unasked, self.returned_by, self._returned = {}, {}, (), {}
        for extender in self._interested:
            if not extender.is_filter:
                continue
            nodes = self._nodes(evaluation)
            if not nodes:
                return
            try:
                result = extender.filter(self._pod, nodes)
            except ExtenderError as error:
                if extender.ignorable:
                    _warn(f"{error}: the pod is decided without it, as it is ignorable")
                    continue
                raise
            self._note(extender, nodes, result)
            for make, reasons in ((Status.unresolvable, result.unresolvable), (Status.unschedulable, result.failed)):
                known = ((cluster.rows.get(name), reason) for name, reason in reasons.items())
                self.rejections += [(row, make(reason)) for row, reason in known if row is not None]
            if strangers := [name for name in result.passed if name not in cluster.rows]:
                raise ExtenderError(extender.name, f"passed node {strangers[0]!r}, which is not in the cluster")
            evaluation.feasible.keep(np.array(sorted(cluster.rows[name] for name in result.passed), dtype=np.int64))

    def _note(self, extender: Extender, nodes: Sequence[Node], result: FilterResult) -> None:
        """Keep the Node objects of an answer, and note the nodes that it leaves out."""
        self._returned.update(result.returned)
        if result.returned and self._rules.scores_returned_nodes:
            self.returned_by += (extender.name,)
        mentioned = {*result.passed, *result.failed, *result.unresolvable}
        dropped = tuple(node.name for node in nodes if node.name not in mentioned)
        if dropped:
            self.dropped[extender.name] = dropped
        unasked = tuple(sorted({*result.passed}.difference(node.name for node in nodes)))
        if unasked:
            self.unasked[extender.name] = unasked

    def over(self, statuses: dict[int, Status], feasible: Ints) -> dict[int, Status]:
        """The status of rows rejected by filters or extenders, without the rows that an extender passed after all."""
        for row, status in self.rejections:
            # Depending on the release, an extender's reason replaces earlier ones or is added to them.
            before = None if self._rules.extender_reason_replaces else statuses.get(row)
            if before is not None and status.code is Code.UNSCHEDULABLE:
                # The filter's status stays; the extender's reasons are added to it.
                status = before._replace(reasons=before.reasons + status.reasons)
            elif before is not None:
                status = status._replace(reasons=before.reasons + status.reasons)
            statuses[row] = status
        passed = set(feasible.tolist())
        return {row: status for row, status in statuses.items() if row not in passed}

    def prioritize(self, evaluation: Evaluation) -> None:
        """Let each extender score the feasible rows; an extender that fails adds nothing."""
        cluster, nodes = evaluation.cluster, self._nodes(evaluation)
        rows = evaluation.feasible.rows
        for extender in self._interested:
            try:
                raw = extender.prioritize(self._pod, nodes)
            except ExtenderError as error:
                _warn(f"{error}: the nodes are scored without it")
                continue
            scores = [extender.weighted(raw.get(cluster.names[row], 0)) for row in rows]
            self.scores[extender.name] = self.scores.get(extender.name, 0) + np.array(scores, dtype=np.int64)

    def add_scores(self, ranking: Ranking, evaluation: Evaluation) -> Ranking:
        """The ranking of the feasible rows, with the extenders' scores added."""
        values, rows = ranking.values, ranking.rows
        if rows is None:
            rows = evaluation.feasible.rows
            values = values[rows]
        for scores in self.scores.values():
            values = values + scores
        return Ranking(rows, ranking.scores, values)

    def nodes_to_score(self, evaluation: Evaluation) -> Nodes | None:
        """The nodes to score in place of the plan's kept results; None to use the kept results.

        These are the Node objects that extenders sent back, without pods. If extenders sent none but passed nodes that
        were rejected before, which have no kept scores, they are the cluster's own feasible nodes.
        """
        cluster, rows = evaluation.cluster, evaluation.feasible.rows
        if not self.returned_by:
            return Nodes(cluster, rows) if self.unasked else None
        returned = [self._returned[cluster.names[row]] for row in rows]
        return ReturnedNodes(_emptied(cluster, returned), rows, cluster)

    def _nodes(self, evaluation: Evaluation) -> list[Node]:
        cluster = evaluation.cluster
        names = [cluster.names[row] for row in evaluation.feasible.rows]
        return [self._returned.get(name) or cluster.node(name) for name in names]


def _emptied(cluster: Cluster, nodes: Sequence[Node]) -> Cluster:
    """A copy of the cluster in which these nodes are as given, without pods and without images."""
    emptied = cluster.fork()
    for node in nodes:
        for pod in emptied.pods_on(emptied.rows[node.name]):
            emptied.remove(pod)
        # Image states are known for the cluster's own nodes only.
        emptied.update(replace(node, status=replace(node.status, images=[])))
    return emptied


def _warn(message: str) -> None:
    warnings.warn(message, ExtenderWarning, stacklevel=2)


NO_EXTENDERS = ExtenderRound((), Pod(), NEWEST_RULES)
"""Used when no extenders are configured."""
