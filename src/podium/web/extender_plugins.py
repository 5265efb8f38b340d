"""Runs the plugins of a profile for an extender: which nodes pass, their scores, and where evicting pods helps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.cluster.columns import Ints
from podium.engine.release import CURRENT, AnyRelease, Options, release_of
from podium.errors import InputError, PluginError
from podium.extenders import pod_uid
from podium.framework import SKIP, SUCCESS, Code, CycleState, Framework, Registry, Status
from podium.framework.plugin import MAX_NODE_SCORE, PLUGIN_FAULTS
from podium.framework.status import checked_numbers, checked_verdict
from podium.model import Pod

UNKNOWN_NODE = "the extender does not know this node"


class NodesAsked(NamedTuple):
    """The nodes in a request: the rows of those that the cluster has, and the names of the others."""

    rows: Ints
    unknown: Sequence[str] = ()


class Filtered(NamedTuple):
    """The nodes that pass; for the others, why not, and whether evicting pods could help."""

    passed: list[str]
    failed: dict[str, str]
    unresolvable: dict[str, str]


class PluginVerbs:
    """The plugins of a profile, run on the nodes that kube-scheduler names.

    `highest` is the score of a node with all points: kube-scheduler expects 10.
    """

    def __init__(self, framework: Framework, *, highest: int = 10) -> None:
        self._framework, self.highest = framework, highest

    @property
    def verbs(self) -> list[str]:
        """The verbs that the plugins serve."""
        framework = self._framework
        filters = ["filter", "preempt"] if framework.filter or framework.pre_filter else []
        return [*filters, *(["prioritize"] if framework.score else [])]

    @property
    def plugins(self) -> list[str]:
        """The plugins that run, by name."""
        asked = (*self._framework.pre_filter, *self._framework.filter, *(each.plugin for each in self._framework.score))
        return list(dict.fromkeys(plugin.name for plugin in asked))

    # -- filter ----------------------------------------------------------------------------------------------------

    def filter(self, cluster: Cluster, pod: Pod, asked: NodesAsked) -> Filtered:
        """The nodes that pass every filter; the first filter that rejects a node gives the reason."""
        failed, unresolvable = dict.fromkeys(asked.unknown, UNKNOWN_NODE), dict[str, str]()
        passed = []
        known = [cluster.names[row] for row in asked.rows.tolist()]
        for name, status in zip(known, self._statuses(cluster, pod, asked.rows), strict=True):
            if status is SUCCESS:
                passed.append(name)
            elif status.code is Code.UNSCHEDULABLE:
                failed[name] = status.message
            else:
                unresolvable[name] = status.message
        return Filtered(passed, failed, unresolvable)

    def _statuses(self, cluster: Cluster, pod: Pod, rows: Ints) -> list[Status]:
        """The status of each row, in their order."""
        state, nodes = CycleState(cluster.info_of(pod)), Nodes(cluster, rows)
        statuses = [SUCCESS] * len(rows)
        with PLUGIN_FAULTS:
            skipped, only, stopped = self._pre_filter(state, pod, nodes)
            if stopped is not None:
                return [stopped] * len(rows)
            if only is not None:
                absent = Status.unresolvable("node(s) didn't satisfy plugin(s) PreFilter")
                statuses = [SUCCESS if cluster.names[row] in only else absent for row in rows.tolist()]
            for plugin in self._framework.filter:
                if plugin.name in skipped:
                    continue
                verdict = checked_verdict(plugin.name, plugin.filter(state, pod, nodes), len(nodes))
                if verdict.error is not None:
                    raise PluginError(plugin.name, f"failed: {verdict.error.message}")
                codes = verdict.codes
                for place in np.flatnonzero(codes).tolist():
                    if statuses[place] is SUCCESS:
                        statuses[place] = verdict.describe(int(codes[place]))
        return statuses

    def _pre_filter(
        self, state: CycleState, pod: Pod, nodes: Nodes
    ) -> tuple[set[str], frozenset[str] | None, Status | None]:
        """The plugins that skip, the only nodes to check, and the status that rejects the pod everywhere."""
        skipped: set[str] = set()
        only: frozenset[str] | None = None
        for plugin in self._framework.pre_filter:
            result = plugin.pre_filter(state, pod, nodes)
            if result.status == SKIP:
                skipped.add(plugin.name)
            elif result.status.code is Code.ERROR:
                raise PluginError(plugin.name, f"failed: {result.status.message}")
            elif result.status != SUCCESS:
                return skipped, only, result.status
            if result.node_names is not None:
                only = result.node_names if only is None else only & result.node_names
        return skipped, only, None

    # -- prioritize ------------------------------------------------------------------------------------------------

    def prioritize(self, cluster: Cluster, pod: Pod, rows: Ints) -> Ints:
        """The score of each row, from 0 to `highest`: the mean of the plugins' scores by their weights."""
        state, nodes = CycleState(cluster.info_of(pod)), Nodes(cluster, rows)
        total, weights = np.zeros(len(rows), dtype=np.int64), 0
        if not len(rows):
            return total
        with PLUGIN_FAULTS:
            skipped = set()
            for before in self._framework.pre_score:
                status = before.pre_score(state, pod, nodes)
                if status == SKIP:
                    skipped.add(before.name)
                elif status != SUCCESS:
                    raise PluginError(before.name, f"failed: {status.message}")
            for plugin, weight in self._framework.score:
                weights += weight
                if plugin.name in skipped:
                    continue
                scores = checked_numbers(plugin.name, "score", plugin.score(state, pod, nodes), len(nodes))
                if plugin.normalizes:
                    found = plugin.normalize(state, pod, scores, nodes)
                    scores = checked_numbers(plugin.name, "normalize", found, len(nodes))
                if scores.min() < 0 or scores.max() > MAX_NODE_SCORE:
                    raise PluginError(plugin.name, f"scored outside 0..{MAX_NODE_SCORE}")
                total += weight * scores
        # Rounded to the nearest integer, halves up.
        full = MAX_NODE_SCORE * max(weights, 1)
        return (2 * total * self.highest + full) // (2 * full)

    # -- preempt ---------------------------------------------------------------------------------------------------

    def preempt(self, cluster: Cluster, pod: Pod, victims: Mapping[str, Sequence[str]]) -> list[str]:
        """The nodes that pass every filter once their victims, given by UID, are gone."""
        kept = []
        for name, uids in victims.items():
            row = cluster.rows.get(name)
            if row is None:
                continue
            with _without(cluster, [each for each in cluster.pods_on(row) if pod_uid(each) in uids]):
                if self._statuses(cluster, pod, np.array([row], dtype=np.int64)) == [SUCCESS]:
                    kept.append(name)
        return kept


@contextmanager
def _without(cluster: Cluster, pods: Iterable[Pod]) -> Iterator[None]:
    """The cluster without some pods, for the length of the block."""
    gone = list(pods)
    for pod in gone:
        cluster.remove(pod)
    try:
        yield
    finally:
        for pod in gone:
            cluster.add(pod)


def extender_framework(
    registry: Registry,
    wanted: Sequence[str],
    document: Mapping[str, Any] | None = None,
    *,
    release: AnyRelease = CURRENT,
    options: Options | None = None,
) -> Framework:
    """The plugins to serve: the `wanted` ones, else all of the configuration's first profile.

    The configuration has the arguments and weights of plugins. An old release has the plugins that its configuration
    names.
    """
    made = release_of(release)
    if not wanted:
        if document is None and options is None:
            raise InputError("no plugin to serve: name one with --plugin, or a configuration with --config")
        setup = made.set_up(document, options=options, registry=registry)
        return Framework(setup.config.profiles[0], setup.registry)
    if made.is_old:
        raise InputError(f"--plugin cannot be used with {made.name}: name its plugins in a --config")
    given = dict(document or {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"})
    profiles = [dict(each or {}) for each in given.get("profiles") or [{}]]
    today = made.set_up(document, registry=registry).config.profiles[0].points["score"]
    weights = {ref.name: ref.weight for ref in today}
    profiles[0]["plugins"] = {
        "multiPoint": {
            "disabled": [{"name": "*"}],
            "enabled": [
                *({"name": name} for name in ("PrioritySort", "DefaultBinder") if name not in wanted),
                *({"name": name, **({"weight": weights[name]} if name in weights else {})} for name in wanted),
            ],
        }
    }
    given["profiles"] = profiles[:1]
    setup = made.set_up(given, registry=registry)
    return Framework(setup.config.profiles[0], setup.registry)
