"""The plans of one profile, kept by kind of pod, and the parts they share."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from typing import Any, NamedTuple
from weakref import ref

from podium.cluster import Aspect, Cluster, PodInfo
from podium.cluster.recently_used import RecentlyUsed
from podium.engine.plan.outcomes import RowOutcomes
from podium.engine.plan.outline import Outline, Part, PreOutcome
from podium.engine.plan.plan import Plan, filters_of, scores_of
from podium.engine.plan.results import ReadAspects
from podium.engine.release import Conduct
from podium.framework import Framework, Plugin
from podium.framework.fast_paths import ForSomePods
from podium.framework.plugin import PodView


class SharedParts:
    """The parts shared by pods that differ only in the resources they request."""

    __slots__ = ("outlines", "parts", "state", "unconcerned", "varying")

    def __init__(self, parts: dict[str, Part], unconcerned: frozenset[str], varying: frozenset[str]) -> None:
        self.parts, self.unconcerned, self.varying = parts, unconcerned, varying
        self.state = _left_by(parts)
        self.outlines: dict[tuple[PreOutcome, ...], tuple[Outline, RowOutcomes]] = {}
        """By the pre_outcomes of the other parts."""


class _Keys(NamedTuple):
    """A pod's signatures: the part of it that each plugin with kept results depends on."""

    by_state: tuple[Hashable, ...]
    by_row: tuple[Hashable, ...]
    reads_metadata: bool
    """Whether a plugin read more than the pod's spec to sign it."""


def _no_plan() -> None:
    """In place of a plan that is not made yet."""


class _Known:
    """The plan of pods with one signature."""

    __slots__ = ("as_of", "plan")

    def __init__(self) -> None:
        self.plan: Callable[[], Plan | None] = _no_plan
        """Gives None once the plan is forgotten: what it knows of every node takes memory."""
        self.as_of = (-1, False, -1)
        """As of which versions of what `concerns` may look at, and which turn of the plans."""


def _left_by(parts: dict[str, Part]) -> dict[str, Any]:
    """What plugins left for their later extension points."""
    return {key: value for part in parts.values() for key, value in part.state.items()}


class Plans:
    """The plans of one profile on one cluster."""

    MOST_CELLS = 1 << 22
    """Bounds memory: plans times nodes."""
    MOST_KINDS = 1 << 14
    """Of how many kinds of pods it is known which plan they have."""

    def __init__(self, framework: Framework, cluster: Cluster, conduct: Conduct, *, keep: bool = True) -> None:
        self._framework, self._cluster, self._conduct = framework, cluster, conduct
        most = min(max(self.MOST_CELLS // max(cluster.columns.size, 1), 64), 4096)
        self._by_signature: RecentlyUsed[_Known] = RecentlyUsed(self.MOST_KINDS)
        self._keys_by_spec: RecentlyUsed[_Keys] = RecentlyUsed(self.MOST_KINDS)
        self._keys: RecentlyUsed[_Keys] = RecentlyUsed(self.MOST_KINDS)
        self._plans: RecentlyUsed[Plan] = RecentlyUsed(most)
        self._frames: RecentlyUsed[SharedParts] = RecentlyUsed(most)
        self._parts: RecentlyUsed[Part] = RecentlyUsed(4 * most)
        self._row_outcomes: RecentlyUsed[RowOutcomes] = RecentlyUsed(most)
        plugins = framework.plugins.values()
        keeping = [(p, ReadAspects(cluster, p.reads)) for p in plugins if keep and p.reads is not None]
        self._by_state = [each for each in keeping if each[0].reads == Aspect.RESOURCES]
        self._by_row = [each for each in keeping if each[0].reads != Aspect.RESOURCES]
        self._with_concerns = [p for p in plugins if p.reads is None and isinstance(p, ForSomePods)]
        """The plugins that have nothing to do with some pods."""
        self._varying = [p for p, _ in keeping if type(p).varies is not Plugin.varies]
        """The plugins of which nothing is kept for some pods."""

    def of(self, info: PodInfo) -> Plan:
        cluster = self._cluster
        as_of = cluster.store.version, cluster.census.with_terms > 0, self._plans.turns
        known = self._by_signature.get_or_make(info.signature, _Known)
        plan = known.plan()
        if plan is None or known.as_of != as_of:
            plan = self._plan(info, self._concerned(info), self._varying_for(info))
            known.plan, known.as_of = ref(plan), as_of
        return plan

    def _concerned(self, info: PodInfo) -> tuple[bool, ...]:
        cluster = self._cluster
        return tuple([plugin.concerns(info, cluster) for plugin in self._with_concerns])

    def _varying_for(self, info: PodInfo) -> frozenset[str]:
        """The plugins that would keep results, but not for such pods."""
        cluster = self._cluster
        return frozenset([plugin.name for plugin in self._varying if plugin.varies(info, cluster)])

    def _plan(self, info: PodInfo, concerned: tuple[bool, ...], varying: frozenset[str]) -> Plan:
        keys = self._keys_by_spec.get_or_make(info.spec_signature, lambda: self._make_keys(info))
        if keys.reads_metadata:
            # A plugin that reads metadata of one pod reads it of all pods with an equal spec.
            keys = self._keys.get_or_make(info.signature, lambda: self._make_keys(info))
        frame = self._frames.get_or_make(
            (keys.by_row, concerned, varying), lambda: self._make_frame(keys.by_row, concerned, varying, info)
        )
        return self._plans.get_or_make((frame, keys.by_state), lambda: self._make_plan(frame, keys.by_state, info))

    def _make_keys(self, info: PodInfo) -> _Keys:
        view = PodView(info)
        by_state = tuple([plugin.sign(view) for plugin, _ in self._by_state])
        by_row = tuple([plugin.sign(view) for plugin, _ in self._by_row])
        return _Keys(by_state, by_row, view.reads_metadata)

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
        return Plan(outline, parts, frame.state | _left_by(asked), self._cluster, self._conduct, rows)

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
        """The outline of such plans, and their row outcomes: the same for all plans that have these parts."""
        outline = Outline(self._framework, {name: part.pre_outcome for name, part in parts.items()}, unconcerned)
        filters = filters_of(parts, outline.kept_filters.by_row)
        scores = scores_of(parts, outline.final_scores.by_row, outline.weights)
        raw = tuple([results for _, results in scores_of(parts, outline.raw_scores, outline.weights)])

        def make() -> RowOutcomes:
            return RowOutcomes(filters, scores, raw, self._cluster)

        return outline, self._row_outcomes.get_or_make((filters, scores, raw), make)
