"""Checks for the authors of plugins: does a plugin keep its contract? It is run on small clusters."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np

from podium.cluster import Aspect, Cluster
from podium.cluster.columns import SHARED_ASPECTS
from podium.errors import PluginError
from podium.framework.events import EventHint
from podium.framework.fast_paths import ForSomePods, NormalizesByMax
from podium.framework.plugin import (
    EXTENSION_POINTS,
    FilterPlugin,
    Plugin,
    PodView,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ScorePlugin,
    points_of,
)
from podium.framework.status import SUCCESS, Code, Status
from podium.framework.suggested_change import Change, RejectedPod
from podium.model import Object
from podium.rules import NEWEST_RULES
from podium.testing._plugin_run import ClusterChange, PluginResults, PluginRun, Samples, call

MUST_DEFINE: dict[str, tuple[str, ...]] = {
    "preEnqueue": ("pre_enqueue", "pre_enqueue_in"),
    "queueSort": ("sort_key",),
    "preFilter": ("pre_filter",),
    "filter": ("filter_node", "filter"),
    "postFilter": ("post_filter",),
    "preScore": ("pre_score",),
    "score": ("score_node", "score"),
    "permit": ("permit",),
    "preBind": ("pre_bind",),
    "bind": ("bind",),
    "postBind": ("post_bind",),
}
"""Per extension point, the methods of which a plugin must define at least one."""


def check_plugin(plugin: type[Plugin], args: object = None, *, objects: Iterable[Object] = ()) -> None:
    """Raise a PluginError that names the plugin and the rule it breaks, unless it keeps its contract.

    The plugin runs on small clusters with pods of all kinds. Label keys that occur in its code are put on nodes and
    pods with numbers as values; `objects` adds nodes and pods that it needs besides. Reserve, Permit, PostFilter and
    the bind points are not called, since they may have effects outside.
    """
    _check_class(plugin)
    for tried in ({}, None, args):
        call(plugin.name, "its constructor", plugin, tried)

    def make() -> Plugin:
        return plugin.of_release(NEWEST_RULES, args)

    samples = Samples(plugin, objects)
    _check_queueing(make(), samples)
    _check_repeatable(make, samples)
    _check_views(make(), samples)
    _check_forms(make(), samples)
    _check_labels(make(), samples)
    _check_concerns(make(), samples)
    _check_normalizing(make(), samples)
    _check_lines(make(), samples)
    _check_fixes(make(), samples)
    if plugin.reads is not None:
        _check_sign(make(), samples)
        _check_reads(make, plugin.reads, samples)


def _check_class(plugin: type[Plugin]) -> None:
    if not (isinstance(plugin, type) and issubclass(plugin, Plugin) and points_of(plugin)):
        name = getattr(plugin, "__name__", repr(plugin))
        raise PluginError(name, "is of no extension point: derive it from FilterPlugin, ScorePlugin or the like")
    if not (isinstance(plugin.name, str) and plugin.name):
        raise PluginError(plugin.__name__, "has no name: set its class attribute `name`")
    for point in sorted(points_of(plugin)):
        kind, methods = EXTENSION_POINTS[point], MUST_DEFINE.get(point, ())
        if methods and all(getattr(plugin, method) is getattr(kind, method) for method in methods):
            raise PluginError(plugin.name, f"derives from {kind.__name__} but does not define {' or '.join(methods)}")
    if not (plugin.reads is None or isinstance(plugin.reads, Aspect)):
        raise PluginError(plugin.name, f"has {plugin.reads!r} for `reads`: use None or Aspect flags")


def _check_queueing(plugin: Plugin, samples: Samples) -> None:
    cluster = samples.cluster()
    for pod in samples.pods:
        if isinstance(plugin, PreEnqueuePlugin):
            status = call(plugin.name, "pre_enqueue", plugin.pre_enqueue_in, pod, cluster)
            if not isinstance(status, Status) or (status != SUCCESS and not status.code.rejects):
                raise PluginError(plugin.name, f"returns {status!r} from pre_enqueue: use SUCCESS or a rejection")
    events = call(plugin.name, "events_to_register", plugin.events_to_register)
    if not (events is None or (isinstance(events, Sequence) and all(isinstance(each, EventHint) for each in events))):
        raise PluginError(plugin.name, f"returns {events!r} from events_to_register: return EventHints, or None")
    if isinstance(plugin, QueueSortPlugin):
        queued = [_Queued(pod, float(number)) for number, pod in enumerate(samples.pods)]
        keys = [call(plugin.name, "sort_key", plugin.sort_key, each) for each in queued]
        call(plugin.name, "comparing what sort_key returns", sorted, keys)


class _Queued:
    """A pod in the queue, as `sort_key` sees it."""

    def __init__(self, pod: Any, timestamp: float) -> None:
        self.pod, self.timestamp = pod, timestamp


def _check_repeatable(make: Callable[[], Plugin], samples: Samples) -> None:
    """Check that the same pod on the same cluster gets the same results, and that the cluster does not change."""
    cluster = samples.cluster()
    first = [PluginRun(make(), pod, cluster).results() for pod in samples.pods]
    again = make()
    for pod, results in zip(samples.pods, first, strict=True):
        difference = results.difference(PluginRun(again, pod, cluster).results(), cluster.nodes.names)
        if difference:
            raise PluginError(again.name, f"is not deterministic: asked again, {difference}")


def _check_views(plugin: Plugin, samples: Samples) -> None:
    """Check that a node's result does not depend on the order of nodes, nor on other nodes if results are kept."""
    cluster = samples.cluster()
    rows = cluster.nodes.rows
    for pod in samples.pods:
        run = PluginRun(plugin, pod, cluster)
        results, names = run.results(), cluster.nodes.names
        places = {int(row): place for place, row in enumerate(rows)}
        for view in (rows[::-1], rows[1::2], *(rows[place : place + 1] for place in range(0, len(rows), 2))):
            expected = results.of([places[int(row)] for row in view], [names[places[int(row)]] for row in view])
            if len(view) < len(rows) and plugin.reads is None:
                expected = expected._replace(scores=None)
            difference = expected.difference(run.results_for(view), expected.names)
            if difference:
                order = "another order" if len(view) == len(rows) else "fewer nodes"
                raise PluginError(plugin.name, f"must not depend on which nodes it is given: for {order}, {difference}")


def _check_forms(plugin: Plugin, samples: Samples) -> None:
    """Check that a plugin with both forms, for one node and for arrays, returns the same from both."""
    kind = type(plugin)
    filters = isinstance(plugin, FilterPlugin) and _defines_both(kind, FilterPlugin, "filter", "filter_node")
    scores = isinstance(plugin, ScorePlugin) and _defines_both(kind, ScorePlugin, "score", "score_node")
    cluster = samples.cluster()
    for pod in samples.pods if filters or scores else ():
        arrays, single = PluginRun(plugin, pod, cluster), PluginRun(plugin, pod, cluster, one_at_a_time=True)
        difference = arrays.results().difference(single.results(), cluster.nodes.names)
        if difference:
            raise PluginError(plugin.name, f"says different things in its two forms: one node at a time, {difference}")


def _defines_both(kind: type[Plugin], point: type[Plugin], array: str, single: str) -> bool:
    return all(getattr(kind, method) is not getattr(point, method) for method in (array, single))


def _check_labels(plugin: Plugin, samples: Samples) -> None:
    """Check that nodes with equal values of the labels that a ByNodeLabels plugin names get the same result."""
    cluster = samples.cluster()
    for pod in samples.pods:
        run = PluginRun(plugin, pod, cluster)
        results = run.results()
        for point, labels, values in run.by_labels(results):
            columns = [cluster.nodes.codes(label) for label in labels]
            known: dict[tuple[int, ...], tuple[str, Any]] = {}
            for place, name in enumerate(cluster.nodes.names):
                key = tuple(int(column[place]) for column in columns)
                other, value = known.setdefault(key, (name, values[place]))
                if value != values[place]:
                    raise PluginError(
                        plugin.name,
                        f"says in {point}_labels that only {', '.join(labels) or 'nothing'} counts, but nodes {other} "
                        f"and {name}, which agree in that, get {value} and {values[place]}",
                    )


def _check_concerns(plugin: Plugin, samples: Samples) -> None:
    """Check that a pod which the plugin does not concern passes on all nodes and gets no scores."""
    if not isinstance(plugin, ForSomePods):
        return
    cluster = samples.cluster()
    for pod in samples.pods:
        if call(plugin.name, "concerns", plugin.concerns, PodView(cluster.infos.of(pod)), cluster):
            continue
        results = PluginRun(plugin, pod, cluster).results()
        says = f"says in `concerns` that it has nothing to do with pod {pod.name}, but its"
        if results.pre_filter is not None and results.pre_filter.status.code is not Code.SKIP:
            raise PluginError(plugin.name, f"{says} pre_filter does not return SKIP")
        if results.statuses is not None and set(results.statuses) != {SUCCESS}:
            raise PluginError(plugin.name, f"{says} filter rejects nodes")
        if results.pre_score is not None and results.pre_score.code is not Code.SKIP:
            raise PluginError(plugin.name, f"{says} pre_score does not return SKIP")


def _check_normalizing(plugin: Plugin, samples: Samples) -> None:
    """Check that scores end up in 0..100, and that a NormalizesByMax plugin normalizes each score independently of the
    number of nodes that have it.
    """
    if not isinstance(plugin, ScorePlugin):
        return
    cluster = samples.cluster()
    for pod in samples.pods:
        run = PluginRun(plugin, pod, cluster)
        results = run.results()
        if results.scores is None:
            continue
        run.normalized(np.array(results.scores, dtype=np.int64), cluster.nodes.rows)
        if isinstance(plugin, NormalizesByMax):
            for score in sorted(set(results.scores)):
                one = run.normalized(np.array([score]), cluster.nodes.rows[:1])[0]
                many = run.normalized(np.full(len(results.scores), score), cluster.nodes.rows)
                if set(many) != {one}:
                    raise PluginError(
                        plugin.name,
                        f"is a NormalizesByMax plugin, but {score} becomes {one} on one node and {many[0]} on many",
                    )


def _check_lines(plugin: Plugin, samples: Samples) -> None:
    """Check that `score_lines` end in the score, and `normalize_lines` in the normalized score."""
    cluster = samples.cluster()
    for pod in samples.pods if isinstance(plugin, ScorePlugin) else ():
        run = PluginRun(plugin, pod, cluster)
        results = run.results()
        if results.scores is None:
            continue
        scores = np.array(results.scores, dtype=np.int64)
        normalized = run.normalized(scores, cluster.nodes.rows)
        for place, name in enumerate(results.names):
            for what, lines, number in (
                ("score_lines", run.score_lines(place), results.scores[place]),
                ("normalize_lines", run.normalize_lines(scores, place), normalized[place]),
            ):
                if lines and not _ends_in(lines[-1], number):
                    says = f"says of node {name} in {what} {lines[-1]!r}"
                    raise PluginError(plugin.name, f"{says}: the last line must end in the score, {number}")


def _ends_in(line: str, number: int) -> bool:
    """Whether a line ends in a number, written `1234` or `1,234`."""
    found = re.search(r"(?<![\d,.])-?[\d,]+$", line)
    return found is not None and found[0].replace(",", "") == str(number)


def _check_fixes(plugin: Plugin, samples: Samples) -> None:
    """Check that `fixes`, for rejected nodes, and `score_fixes`, for the others, return Change values."""
    cluster = samples.cluster()
    for pod in samples.pods:
        results = PluginRun(plugin, pod, cluster).results()
        for name, status in zip(results.names, results.statuses or (), strict=False):
            if status.code.rejects:
                rejected = RejectedPod(pod, name, status, cluster)
                _check_changes(plugin, "fixes", call(plugin.name, "fixes", lambda at: list(plugin.fixes(at)), rejected))
        if isinstance(plugin, ScorePlugin):
            for name in results.names:
                found = call(plugin.name, "score_fixes", lambda at: list(plugin.score_fixes(*at)), (pod, name, cluster))
                _check_changes(plugin, "score_fixes", found)


def _check_changes(plugin: Plugin, method: str, changes: list[Any]) -> None:
    for change in changes:
        if not isinstance(change, Change):
            raise PluginError(plugin.name, f"returns {change!r} from {method}: return Change values")


def _check_sign(plugin: Plugin, samples: Samples) -> None:
    """Check that pods with equal signatures get equal results: they share the kept results."""
    cluster = samples.cluster()
    views = [PodView(cluster.infos.of(pod)) for pod in samples.pods]
    signatures = [call(plugin.name, "sign", plugin.sign, view) for view in views]
    for signature in signatures:
        call(plugin.name, "hashing what sign returns", hash, signature)
    results_by_pod = [PluginRun(plugin, pod, cluster).results() for pod in samples.pods]
    for first, second in combinations(range(len(views)), 2):
        if signatures[first] == signatures[second]:
            difference = results_by_pod[first].difference(results_by_pod[second], cluster.nodes.names)
            if difference:
                raise PluginError(
                    plugin.name,
                    f"must return from `sign` all it reads of a pod: pods {samples.pods[first].name} and "
                    f"{samples.pods[second].name} have the signature {signatures[first]!r}, but for the second, "
                    f"{difference}",
                )


def _check_reads(make: Callable[[], Plugin], reads: Aspect, samples: Samples) -> None:
    """Check that results change only with the aspects in `reads`, and only for the changed node."""
    cluster, plugin = samples.cluster(), make()
    kept = [PluginRun(plugin, pod, cluster) for pod in samples.pods]
    results_by_pod = [run.results() for run in kept]
    for change in samples.changes():
        change.apply(cluster)
        fresh = make()
        for place, run in enumerate(kept):
            expected = PluginRun(fresh, run.pod, cluster).results()
            known = _caught_up(run, results_by_pod[place], change, reads, cluster)
            difference = known.difference(expected, cluster.nodes.names)
            if difference:
                raise PluginError(plugin.name, _wrong_reads(reads, change, difference))
            results_by_pod[place] = expected


def _caught_up(
    run: PluginRun, old: PluginResults, change: ClusterChange, reads: Aspect, cluster: Cluster
) -> PluginResults:
    """The results as the engine would keep them: old ones, evaluated again only where an aspect in `reads` changed."""
    touched = change.aspects & reads
    if touched & SHARED_ASPECTS:
        return run.results()
    is_new = change.node is not None and change.node not in old.names
    if change.node is None or not (touched or is_new):
        return old
    changed = np.array([cluster.rows[change.node]], dtype=np.int64)
    return old.merged(run.results_for(changed), cluster.nodes.names)


def _wrong_reads(reads: Aspect, change: ClusterChange, difference: str) -> str:
    said = str(reads.name) if reads else "nothing"
    if change.aspects & reads:
        return (
            f"may depend on nothing but the node and what `reads` says, {said}: PreFilter, PreScore and the answers "
            f"for other nodes are not asked for again, but after {change.what}, {difference}"
        )
    missing = change.aspects.name
    return f"says it reads {said}, but after {change.what}, {difference}; add what it reads ({missing}) to `reads`"
