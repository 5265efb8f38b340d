"""Whether a plugin keeps its contract: it is tried out on small clusters before anybody relies on it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import combinations
from typing import Any

import numpy as np
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster
from podium.cluster.change_log import SHARED_ASPECTS
from podium.errors import PluginError
from podium.framework.plugin import (
    EXTENSION_POINTS,
    FilterPlugin,
    Plugin,
    PreEnqueuePlugin,
    QueueSortPlugin,
    ScorePlugin,
    keys_by_spec,
    points_of,
)
from podium.framework.status import SUCCESS, Code, Status
from podium.model import Object, ObjectMeta
from podium.testing.plugin_calls import Answers, Outcome, call
from podium.testing.samples import Change, Samples

MUST_DEFINE: dict[str, tuple[str, ...]] = {
    "preEnqueue": ("pre_enqueue",),
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
"""Per extension point, the methods of which a plugin must define one."""


def check_plugin(plugin: type[Plugin], args: object = None, *, objects: Iterable[Object] = ()) -> None:
    """Raise PluginError, with the plugin's name and the rule it breaks, unless it keeps the contract of its points.

    The plugin is tried on small clusters with pods of all kinds. Labels whose keys stand in its code are put on nodes
    and pods with numbers as values; `objects` adds nodes and pods it needs besides. Reserve, Permit, PostFilter and
    the bind points are not called, since they may reach outside.
    """
    _check_class(plugin)
    for tried in ({}, None, args):
        call(plugin.name, "its constructor", plugin, tried)

    def make() -> Plugin:
        return plugin(args)

    samples = Samples(plugin, objects)
    _check_queueing(make(), samples)
    _check_repeatable(make, samples)
    _check_views(make(), samples)
    _check_forms(make(), samples)
    _check_labels(make(), samples)
    _check_concerns(make(), samples)
    _check_normalizing(make(), samples)
    if plugin.reads is not None:
        _check_key(make(), samples)
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
    for pod in samples.pods:
        if isinstance(plugin, PreEnqueuePlugin):
            status = call(plugin.name, "pre_enqueue", plugin.pre_enqueue, pod)
            if not isinstance(status, Status) or (status != SUCCESS and not status.code.rejects):
                raise PluginError(plugin.name, f"returns {status!r} from pre_enqueue: use SUCCESS or a rejection")
    if isinstance(plugin, QueueSortPlugin):
        queued = [_Queued(pod, float(number)) for number, pod in enumerate(samples.pods)]
        keys = [call(plugin.name, "sort_key", plugin.sort_key, each) for each in queued]
        call(plugin.name, "comparing what sort_key returns", sorted, keys)


class _Queued:
    def __init__(self, pod: Any, timestamp: float) -> None:
        self.pod, self.timestamp = pod, timestamp


def _check_repeatable(make: Callable[[], Plugin], samples: Samples) -> None:
    """The same pod on the same cluster gets the same answers, and the cluster stays as it was."""
    cluster = samples.cluster()
    first = [Answers(make(), pod, cluster).outcome() for pod in samples.pods]
    again = make()
    for pod, outcome in zip(samples.pods, first, strict=True):
        difference = outcome.difference(Answers(again, pod, cluster).outcome(), cluster.nodes.names)
        if difference:
            raise PluginError(again.name, f"is not deterministic: asked again, {difference}")


def _check_views(plugin: Plugin, samples: Samples) -> None:
    """What is said of a node does not depend on where it stands, nor, where results are kept, on the other nodes."""
    cluster = samples.cluster()
    rows = cluster.nodes.rows
    for pod in samples.pods:
        answers = Answers(plugin, pod, cluster)
        outcome, names = answers.outcome(), cluster.nodes.names
        places = {int(row): place for place, row in enumerate(rows)}
        for view in (rows[::-1], rows[1::2], *(rows[place : place + 1] for place in range(0, len(rows), 2))):
            expected = outcome.of([places[int(row)] for row in view], [names[places[int(row)]] for row in view])
            if len(view) < len(rows) and plugin.reads is None:
                expected = expected._replace(scores=None)
            difference = expected.difference(answers.about(view), expected.names)
            if difference:
                order = "another order" if len(view) == len(rows) else "fewer nodes"
                raise PluginError(plugin.name, f"must not depend on which nodes it is given: for {order}, {difference}")


def _check_forms(plugin: Plugin, samples: Samples) -> None:
    """A plugin that has both the form for one node and the form with arrays says the same in both."""
    kind = type(plugin)
    filters = isinstance(plugin, FilterPlugin) and _defines_both(kind, FilterPlugin, "filter", "filter_node")
    scores = isinstance(plugin, ScorePlugin) and _defines_both(kind, ScorePlugin, "score", "score_node")
    cluster = samples.cluster()
    for pod in samples.pods if filters or scores else ():
        arrays, single = Answers(plugin, pod, cluster), Answers(plugin, pod, cluster, one_at_a_time=True)
        difference = arrays.outcome().difference(single.outcome(), cluster.nodes.names)
        if difference:
            raise PluginError(plugin.name, f"says different things in its two forms: one node at a time, {difference}")


def _defines_both(kind: type[Plugin], point: type[Plugin], array: str, single: str) -> bool:
    return all(getattr(kind, method) is not getattr(point, method) for method in (array, single))


def _check_labels(plugin: Plugin, samples: Samples) -> None:
    """Nodes that agree in the labels a plugin says it goes by get the same answer."""
    cluster = samples.cluster()
    for pod in samples.pods:
        answers = Answers(plugin, pod, cluster)
        outcome = answers.outcome()
        for point, labels, values in answers.by_labels(outcome):
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
    """A pod the plugin has nothing to do with passes everywhere and gets no scores."""
    cluster = samples.cluster()
    for pod in samples.pods:
        if call(plugin.name, "concerns", plugin.concerns, cluster.infos.of(pod), cluster):
            continue
        outcome = Answers(plugin, pod, cluster).outcome()
        says = f"says in `concerns` that it has nothing to do with pod {pod.name}, but its"
        if outcome.pre_filter is not None and outcome.pre_filter.status.code is not Code.SKIP:
            raise PluginError(plugin.name, f"{says} pre_filter does not return SKIP")
        if outcome.statuses is not None and set(outcome.statuses) != {SUCCESS}:
            raise PluginError(plugin.name, f"{says} filter rejects nodes")
        if outcome.pre_score is not None and outcome.pre_score.code is not Code.SKIP:
            raise PluginError(plugin.name, f"{says} pre_score does not return SKIP")


def _check_normalizing(plugin: Plugin, samples: Samples) -> None:
    """Scores end up in 0..100; a plugin that normalises by the maximum does not mind how many nodes have a score."""
    if not isinstance(plugin, ScorePlugin):
        return
    cluster = samples.cluster()
    for pod in samples.pods:
        answers = Answers(plugin, pod, cluster)
        outcome = answers.outcome()
        if outcome.scores is None:
            continue
        answers.normalized(np.array(outcome.scores, dtype=np.int64), cluster.nodes.rows)
        if plugin.normalizes_by_max:
            for score in sorted(set(outcome.scores)):
                one = answers.normalized(np.array([score]), cluster.nodes.rows[:1])[0]
                many = answers.normalized(np.full(len(outcome.scores), score), cluster.nodes.rows)
                if set(many) != {one}:
                    raise PluginError(
                        plugin.name,
                        f"has normalizes_by_max, but {score} becomes {one} on one node and {many[0]} on many",
                    )


def _check_key(plugin: Plugin, samples: Samples) -> None:
    """Pods with the same key get the same answers: results are kept for all of them together."""
    cluster = samples.cluster()
    infos = [cluster.infos.of(pod) for pod in samples.pods]
    keys = [call(plugin.name, "key", plugin.key, info) for info in infos]
    for key in keys:
        call(plugin.name, "hashing what key returns", hash, key)
    outcomes = [Answers(plugin, pod, cluster).outcome() for pod in samples.pods]
    for first, second in combinations(range(len(infos)), 2):
        if keys[first] == keys[second]:
            difference = outcomes[first].difference(outcomes[second], cluster.nodes.names)
            if difference:
                raise PluginError(
                    plugin.name,
                    f"must say in `key` all it reads of a pod: pods {samples.pods[first].name} and "
                    f"{samples.pods[second].name} have the key {keys[first]!r}, but for the second, {difference}",
                )
    for pod, key in zip(samples.pods, keys, strict=True) if keys_by_spec(plugin) else ():
        elsewhere = replace(pod, metadata=ObjectMeta(name=pod.name, namespace="elsewhere"))
        other = call(plugin.name, "key", plugin.key, cluster.infos.of(elsewhere))
        if other != key:
            raise PluginError(
                plugin.name,
                f"has a `key` of_spec, which must not look at anything but the spec: pod {pod.name} has the key "
                f"{key!r}, but in another namespace and without labels and owners, {other!r}",
            )


def _check_reads(make: Callable[[], Plugin], reads: Aspect, samples: Samples) -> None:
    """Answers change only with what `reads` says, and only for the node it changed on."""
    cluster, plugin = samples.cluster(), make()
    kept = [Answers(plugin, pod, cluster) for pod in samples.pods]
    outcomes = [answers.outcome() for answers in kept]
    for change in samples.changes():
        change.apply(cluster)
        fresh = make()
        for place, answers in enumerate(kept):
            expected = Answers(fresh, answers.pod, cluster).outcome()
            known = _caught_up(answers, outcomes[place], change, reads, cluster)
            difference = known.difference(expected, cluster.nodes.names)
            if difference:
                raise PluginError(plugin.name, _wrong_reads(reads, change, difference))
            outcomes[place] = expected


def _caught_up(answers: Answers, old: Outcome, change: Change, reads: Aspect, cluster: Cluster) -> Outcome:
    """What the engine takes for the outcome: the old one, asked again where something that is read changed."""
    touched = change.aspects & reads
    if touched & SHARED_ASPECTS:
        return answers.outcome()
    is_new = change.node is not None and change.node not in old.names
    if change.node is None or not (touched or is_new):
        return old
    changed = np.array([cluster.rows[change.node]], dtype=np.int64)
    return old.merged(answers.about(changed), cluster.nodes.names)


def _wrong_reads(reads: Aspect, change: Change, difference: str) -> str:
    said = str(reads.name) if reads else "nothing"
    if change.aspects & reads:
        return (
            f"may depend on nothing but the node and what `reads` says, {said}: PreFilter, PreScore and the answers "
            f"for other nodes are not asked for again, but after {change.what}, {difference}"
        )
    missing = change.aspects.name
    return f"says it reads {said}, but after {change.what}, {difference}; add what it reads ({missing}) to `reads`"
