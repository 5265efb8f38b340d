"""The plan of one kind of pod: which plugins run, their results for every node, and the cache of plans."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any
from weakref import ref

import numpy as np

from podium.cluster import Aspect, Cluster, PodInfo
from podium.cluster.columns import Ints, Mask, is_any, lowest, once
from podium.cluster.nodes import Groups, Representatives
from podium.engine.plan_outcomes import INFEASIBLE, Rejections, RowOutcomes, StateOutcomes, WeightedScores
from podium.engine.plan_results import (
    FEW_NODES,
    NO_VALUES,
    FilterResults,
    Outline,
    Part,
    PreOutcome,
    ReadAspects,
    ScoreResults,
)
from podium.engine.release import ReleaseBehaviour
from podium.framework import Framework, Plugin
from podium.framework.fast_paths import ForSomePods
from podium.framework.plugin import PodView
from podium.framework.registry import Weighted
from podium.memory import RecentlyUsed

NOWHERE: Mask = np.zeros(0, dtype=np.bool_)


class Plan:
    """The results of one kind of pod under one profile, merged per node.

    Results that depend on a node's resources change with every pod placed, so they are kept per resource state instead
    of per node: the plugins evaluate one node of each state, and all nodes in that state share the result.
    """

    feasible: Mask = NOWHERE
    """Whether each row passes the filters with kept results."""
    feasible_count = 0
    total: Ints = NO_VALUES
    """The weighted sum of final scores per row; around INFEASIBLE where `feasible` is false."""
    # A new plan has not caught up with anything yet.
    _resources_head = _rows_head = _generation = -1
    _bounds: BlockBounds | None = None
    _feasible_rows: Ints | None = None
    _varying_scores: list[Weighted] | None = None

    def __init__(
        self,
        outline: Outline,
        parts: dict[str, Part],
        state: dict[str, Any],
        cluster: Cluster,
        behaviour: ReleaseBehaviour,
        rows: RowOutcomes,
        fresh: list[str],
    ) -> None:
        self.outline, self.parts, self._cluster, self.behaviour = outline, parts, cluster, behaviour
        self.fresh = fresh
        """The plugins that had no kept results before this plan's first pod."""
        self.state = state
        """The state that the plugins left for their later extension points."""
        self._rows = rows
        self._states = StateOutcomes(
            filters_of(parts, outline.kept_filters.by_state),
            scores_of(parts, outline.final_scores.by_state, outline.weights),
            cluster,
            by_node=outline.asks_by_node,
        )
        self._resources_log = cluster.logs[Aspect.RESOURCES]
        self._feasible_in: dict[int, Representatives] = {}
        self.memo: dict[Hashable, Any] = {}
        """Values that the engine derived from the plan's outline and parts."""

    def filter_results(self, plugin: Plugin) -> FilterResults | None:
        """The kept results of a plugin's Filter; None if it runs for every pod."""
        part = self.parts.get(plugin.name)
        return None if part is None else part.filter

    def rejections(self, skipped: frozenset[str]) -> Rejections | None:
        """Why each row is rejected, for a pod for which the `skipped` plugins skip Filter.

        None if a filter runs for every pod, or has failed.
        """
        found: Rejections | None = self.memo.get(("rejections", skipped))
        if found is None:
            running = [plugin for plugin in self.outline.filter if plugin.name not in skipped]
            filters = [results for plugin in running if (results := self.filter_results(plugin)) is not None]
            if len(filters) < len(running):
                return None
            found = self.memo["rejections", skipped] = Rejections(filters, self._rows, self._cluster)
        found.catch_up()
        return None if found.may_have_errors else found

    def score_results(self, plugin: Plugin) -> ScoreResults | None:
        """The kept raw scores of a plugin; None if it runs for every pod."""
        part = self.parts.get(plugin.name)
        return None if part is None else part.score

    def final_scores(self) -> list[ScoreResults]:
        """The kept scores that do not depend on other nodes."""
        kept = self.outline.final_scores
        return [results for _, results in scores_of(self.parts, kept.by_state + kept.by_row, self.outline.weights)]

    @property
    def varying_scores(self) -> list[Weighted]:
        """The scores to compute for every pod, without those that are the same on all nodes."""
        if self._varying_scores is None:
            uniform = self._rows.uniform
            self._varying_scores = [each for each in self.outline.varying_score if each.plugin not in uniform]
        return self._varying_scores

    def forget_fresh(self) -> None:
        """Note that a pod was decided: from now on, the plan's results count as known from earlier pods."""
        for name in self.fresh:
            self.parts[name].is_fresh = False
        self.fresh = []

    @property
    def may_have_errors(self) -> bool:
        """Whether a filter with kept results has failed."""
        return self._states.may_have_errors or self._rows.may_have_errors

    @property
    def may_be_invalid(self) -> bool:
        """Whether a final score was outside the range; that matters only on a feasible node."""
        return self._states.may_be_invalid or self._rows.may_be_invalid

    # -- catching up -----------------------------------------------------------------------------------------------

    def catch_up(self) -> None:
        """Bring the mask and the totals up to date with the cluster."""
        kept, log = self._rows, self._resources_log
        kept.catch_up()
        rows = log.since(self._resources_head) if self._generation == kept.generation else None
        if rows is None or self._rows_head != kept.log.head:
            self._varying_scores = None
            if rows is not None:
                others = kept.log.since(self._rows_head)
                rows = None if others is None else np.concatenate([rows, others])
        if rows is None or len(rows) > self._cluster.columns.size // 2:
            self._merge_all()
        elif len(rows) == 1:
            self._merge_one(rows.item(0))
        elif len(rows):
            # Pods evicted together were on the same node.
            few = set(rows.tolist()) if len(rows) <= FEW_NODES else ()
            if len(few) == 1:
                self._merge_one(*few)
            else:
                self._merge(rows)
        # Not earlier: a plugin that failed has to be evaluated again.
        self._resources_head, self._rows_head, self._generation = log.head, kept.log.head, kept.generation

    def _merge_all(self) -> None:
        passing = self._rows.passing
        if passing is None:
            self.total = self._states.of_many(None)
            self.total += self._rows.values
        else:
            outcome = self._states.of_many(passing.rows)
            if passing.values is not None:
                outcome += passing.values
            self.total = self._rows.values.copy()
            self.total[passing.rows] = outcome
        self._bounds = BlockBounds(self.total) if len(self.total) >= BlockBounds.LONG else None
        self.feasible = self.total > INFEASIBLE // 2
        self.feasible_count = int(np.count_nonzero(self.feasible))
        self._forget_feasible()

    def _merge(self, rows: Ints) -> None:
        total = self._states.of(rows)
        total += self._rows.values[rows]
        self.total[rows] = total
        if self._bounds is not None:
            self._bounds.raise_for(rows, total)
        if self.feasible_count == len(self.total) and lowest(total) > INFEASIBLE // 2:
            return
        passing = total > INFEASIBLE // 2
        if is_any(passing != self.feasible[rows]):
            rows = once(rows)
            before = np.count_nonzero(self.feasible[rows])
            self.feasible[rows] = self.total[rows] > INFEASIBLE // 2
            self.feasible_count += int(np.count_nonzero(self.feasible[rows]) - before)
            self._forget_feasible()

    def _merge_one(self, row: int) -> None:
        total = self._states.of_one(row) + self._rows.values.item(row)
        self.total[row] = total
        if self._bounds is not None:
            self._bounds.raise_one(row, total)
        passing = total > INFEASIBLE // 2
        if passing != self.feasible.item(row):
            self.feasible_count += 1 if passing else -1
            self.feasible[row] = passing
            self._forget_feasible()

    def first_best(self, allowed: tuple[Groups, Mask] | None) -> int:
        """The first row with the highest total; with `allowed`, only among the rows of those groups."""
        if allowed is None:
            return int(self.total.argmax()) if self._bounds is None else self._bounds.first_best(self.total, None)
        groups, are_allowed = allowed
        if self._bounds is None:
            return int(_only(self.total, are_allowed[groups.of_row]).argmax())
        return self._bounds.first_best(self.total, lambda rows: are_allowed[groups.of_row[rows]])

    def pass_by_row(self, rows: Ints) -> bool:
        """Whether the filters that read more than resources passed all of these rows when the plan last caught up."""
        return not len(rows) or lowest(self._rows.values[rows]) > INFEASIBLE // 2

    def passes_by_row(self, row: int) -> bool:
        """The same as `pass_by_row`, for one row."""
        return self._rows.values.item(row) > INFEASIBLE // 2

    def _forget_feasible(self) -> None:
        self._feasible_in.clear()
        self._feasible_rows = None

    @property
    def feasible_rows(self) -> Ints:
        """The rows that pass the filters with kept results."""
        if self._feasible_rows is None:
            self._feasible_rows = np.flatnonzero(self.feasible)
        return self._feasible_rows

    def feasible_in(self, groups: Groups) -> Representatives:
        """The feasible rows by group."""
        known = self._feasible_in.get(id(groups))
        if known is None:
            counts = np.bincount(groups.of_row[self.feasible], minlength=len(groups.first))
            known = self._feasible_in[id(groups)] = Representatives(self._cluster, groups, counts)
        return known


class BlockBounds:
    """Finds the first of the highest values of a long array without scanning all of it.

    Each block of the array has an upper bound for its values. A changed value raises the bound of its block; a search
    lowers the bounds that it finds too high.
    """

    __slots__ = ("_bounds",)

    BLOCK = 512
    LONG = 1 << 14
    """A shorter array is scanned as a whole, which takes no longer."""

    def __init__(self, values: Ints) -> None:
        """Start with these values."""
        self._bounds: Ints = np.maximum.reduceat(values, np.arange(0, len(values), self.BLOCK))

    def raise_for(self, rows: Ints, values: Ints) -> None:
        """Note the new values of some rows."""
        np.maximum.at(self._bounds, rows // self.BLOCK, values)

    def raise_one(self, row: int, value: int) -> None:
        """Note the new value of a row."""
        if value > self._bounds.item(row // self.BLOCK):
            self._bounds[row // self.BLOCK] = value

    def first_best(self, values: Ints, allowed: Callable[[slice], Mask] | None) -> int:
        """The first allowed row with the highest value; at least one row must be allowed."""
        # A maximum over the allowed rows is no bound for the others.
        bounds = self._bounds if allowed is None else self._bounds.copy()
        while True:
            block = int(bounds.argmax())
            rows = slice(block * self.BLOCK, (block + 1) * self.BLOCK)
            part = values[rows] if allowed is None else _only(values[rows], allowed(rows))
            place = int(part.argmax())
            if part.item(place) == bounds.item(block):
                return block * self.BLOCK + place
            bounds[block] = part[place]


def _only(values: Ints, allowed: Mask) -> Ints:
    return np.where(allowed, values, 2 * INFEASIBLE)


def filters_of(parts: dict[str, Part], names: tuple[str, ...]) -> tuple[FilterResults, ...]:
    """The kept results of these filters."""
    return tuple([results for name in names if (results := parts[name].filter) is not None])


def scores_of(parts: dict[str, Part], names: tuple[str, ...], weights: dict[str, int]) -> WeightedScores:
    """The kept raw scores of these plugins, each with its weight."""
    return tuple([(weights[name], results) for name in names if (results := parts[name].score) is not None])


class SharedParts:
    """The parts shared by pods that differ only in the resources they request."""

    __slots__ = ("fresh", "outlines", "parts", "state", "unconcerned", "varying")

    def __init__(self, parts: dict[str, Part], unconcerned: frozenset[str], varying: frozenset[str]) -> None:
        self.parts, self.unconcerned, self.varying = parts, unconcerned, varying
        self.state = {key: value for part in parts.values() for key, value in part.state.items()}
        """The state that plugins left for their later extension points."""
        self.fresh = _fresh(parts)
        """The plugins that had no kept results when a plan was last made."""
        self.outlines: dict[tuple[PreOutcome, ...], tuple[Outline, RowOutcomes]] = {}
        """By the pre_outcomes of the other parts."""


def _no_plan() -> None:
    """Used while no plan has been made yet."""


class _Kind:
    """What is known about one kind of pod: its signatures, and its plan.

    A signature is the part of the pod that a plugin's kept results depend on. Pods with equal specs are of one kind,
    unless `reads_metadata`.
    """

    __slots__ = ("as_of", "by_row", "by_state", "plan", "reads_metadata")

    def __init__(self, by_state: tuple[Hashable, ...], by_row: tuple[Hashable, ...], reads_metadata: bool) -> None:
        self.by_state, self.by_row = by_state, by_row
        self.reads_metadata = reads_metadata
        """Whether a plugin's signature or `concerns` uses more than the pod's spec."""
        self.plan: Callable[[], Plan | None] = _no_plan
        """Returns None once the plan is dropped to save memory."""
        self.as_of = (-1, False, -1)
        """The versions that `concerns` and `varies` may depend on, and the generation of the plans, for which the plan
        is valid.
        """


def _fresh(parts: dict[str, Part]) -> list[str]:
    """The plugins whose results no pod has used yet."""
    return [name for name, part in parts.items() if part.is_fresh]


class Plans:
    """The plans of one profile on one cluster."""

    MOST_CELLS = 1 << 22
    """Bounds memory: plans times nodes."""
    MOST_KINDS = 1 << 14
    """How many kinds of pods have their plan remembered."""

    def __init__(
        self, framework: Framework, cluster: Cluster, behaviour: ReleaseBehaviour, *, keep: bool = True
    ) -> None:
        self._framework, self._cluster, self._behaviour = framework, cluster, behaviour
        most = min(max(self.MOST_CELLS // max(cluster.columns.size, 1), 64), 4096)
        self._kinds_by_spec: RecentlyUsed[_Kind] = RecentlyUsed(self.MOST_KINDS)
        self._kinds: RecentlyUsed[_Kind] = RecentlyUsed(self.MOST_KINDS)
        self._plans: RecentlyUsed[Plan] = RecentlyUsed(most)
        self._frames: RecentlyUsed[SharedParts] = RecentlyUsed(most)
        self._parts: RecentlyUsed[Part] = RecentlyUsed(4 * most)
        self._row_outcomes: RecentlyUsed[RowOutcomes] = RecentlyUsed(most)
        plugins = framework.plugins.values()
        keeping = [(p, ReadAspects(cluster, p.reads)) for p in plugins if keep and p.reads is not None]
        self._by_state = [each for each in keeping if each[0].reads == Aspect.RESOURCES]
        self._by_row = [each for each in keeping if each[0].reads != Aspect.RESOURCES]
        self._with_concerns = [p for p in plugins if p.reads is None and isinstance(p, ForSomePods)]
        """The plugins that declare that they do not concern some pods."""
        self._varying = [p for p, _ in keeping if type(p).varies is not Plugin.varies]
        """The plugins that keep no results for some pods."""
        self._evicts_by_spec = all(type(plugin).__module__.startswith("podium.") for plugin in framework.post_filter)
        """Whether PostFilter reads nothing of a pod but its spec, as Podium's own plugins do."""

    def kind_of(self, info: PodInfo) -> PodInfo | bytes:
        """Equal for pods that no filter can tell apart now, nor a queueing hint of Podium's own plugins.

        That is the signature of the spec where no plugin reads more of the pod: labels that nothing selects make no
        difference. Where a filter runs for every pod, which may compare labels, it is the compiled spec itself.
        """
        try:
            outline = self.of(info).outline
        except Exception:  # a user's plugin may fail in any way, which an attempt of the pod reports
            return info
        kind = self._kinds_by_spec[info.spec_signature]
        reads_more = kind is None or kind.reads_metadata or not self._evicts_by_spec
        return info if reads_more or outline.varying_filter or outline.varying_pre_filter else info.spec_signature

    def of(self, info: PodInfo) -> Plan:
        cluster = self._cluster
        as_of = cluster.store.version, cluster.census.with_terms > 0, self._plans.turns
        kind = self._kinds_by_spec.get_or_make(info.spec_signature, partial(self._make_kind, info))
        if kind.reads_metadata:
            kind = self._kinds.get_or_make(info.signature, partial(self._make_kind, info, reads_metadata=True))
        plan = kind.plan()
        if plan is None or kind.as_of != as_of:
            plan, reads_metadata = self._plan(kind, info)
            if reads_metadata and not kind.reads_metadata:
                # The plan is not that of every pod with an equal spec.
                kind.reads_metadata = True
            else:
                kind.plan, kind.as_of = ref(plan), as_of
        return plan

    def _plan(self, kind: _Kind, info: PodInfo) -> tuple[Plan, bool]:
        """The plan of a kind of pod, and whether it depends on more than the pod's spec."""
        cluster, view = self._cluster, PodView(info)
        varying = frozenset([plugin.name for plugin in self._varying if plugin.varies(info, cluster)])
        concerned = tuple([plugin.concerns(view, cluster) for plugin in self._with_concerns])
        frame = self._frames.get_or_make(
            (kind.by_row, concerned, varying), lambda: self._make_frame(kind.by_row, concerned, varying, info)
        )
        plan = self._plans.get_or_make((frame, kind.by_state), lambda: self._make_plan(frame, kind.by_state, info))
        return plan, view.reads_metadata

    def _make_kind(self, info: PodInfo, *, reads_metadata: bool = False) -> _Kind:
        view = PodView(info)
        by_state = tuple([plugin.sign(view) for plugin, _ in self._by_state])
        by_row = tuple([plugin.sign(view) for plugin, _ in self._by_row])
        return _Kind(by_state, by_row, reads_metadata or view.reads_metadata)

    def _make_frame(
        self, keys: tuple[Hashable, ...], concerned: tuple[bool, ...], varying: frozenset[str], info: PodInfo
    ) -> SharedParts:
        unconcerned = {
            p.name for p, is_concerned in zip(self._with_concerns, concerned, strict=True) if not is_concerned
        }
        return SharedParts(self._parts_of(self._by_row, keys, varying, info), frozenset(unconcerned), varying)

    def _make_plan(self, frame: SharedParts, keys: tuple[Hashable, ...], info: PodInfo) -> Plan:
        asked = self._parts_of(self._by_state, keys, frame.varying, info)
        parts = frame.parts | asked
        pre_outcomes = tuple([part.pre_outcome for part in asked.values()])
        known = frame.outlines.get(pre_outcomes)
        if known is None:
            known = frame.outlines[pre_outcomes] = self._outline(parts, frame.unconcerned)
        outline, rows = known
        state = frame.state.copy()
        for part in asked.values():
            state.update(part.state)
        if frame.fresh:
            frame.fresh = _fresh(frame.parts)
        fresh = frame.fresh + _fresh(asked)
        return Plan(outline, parts, state, self._cluster, self._behaviour, rows, fresh)

    def _parts_of(
        self,
        plugins: list[tuple[Plugin, ReadAspects]],
        keys: tuple[Hashable, ...],
        varying: frozenset[str],
        info: PodInfo,
    ) -> dict[str, Part]:
        return {
            plugin.name: self._parts.get_or_make((plugin.name, key), partial(Part, plugin, followed, info))
            for (plugin, followed), key in zip(plugins, keys, strict=True)
            if plugin.name not in varying
        }

    def _outline(self, parts: dict[str, Part], unconcerned: frozenset[str]) -> tuple[Outline, RowOutcomes]:
        """The outline and the row outcomes, shared by all plans that have these parts."""
        outline = Outline(self._framework, {name: part.pre_outcome for name, part in parts.items()}, unconcerned)
        filters = filters_of(parts, outline.kept_filters.by_row)
        scores = scores_of(parts, outline.final_scores.by_row, outline.weights)
        raw = tuple([results for _, results in scores_of(parts, outline.raw_scores, outline.weights)])

        def make() -> RowOutcomes:
            return RowOutcomes(filters, scores, raw, self._cluster)

        return outline, self._row_outcomes.get_or_make((filters, scores, raw), make)
