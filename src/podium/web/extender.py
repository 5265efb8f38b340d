"""The extender over HTTP, as kube-scheduler calls it: runs the plugins of a profile, and returns names and scores of
nodes.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from time import perf_counter
from typing import Any, Generic, NamedTuple, TypeVar

import msgspec
import numpy as np
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from podium.cluster import Cluster, Nodes
from podium.cluster.columns import Ints
from podium.engine.release import CURRENT, AnyRelease, Options, release_of
from podium.errors import InputError, PluginError, PodiumError
from podium.extenders import pod_uid
from podium.framework import SKIP, SUCCESS, Code, CycleState, Framework, Registry, Status
from podium.framework.plugin import MAX_NODE_SCORE, PLUGIN_FAULTS
from podium.framework.status import checked_numbers, checked_verdict
from podium.loop import Event, EventType
from podium.manifests.defaults import StoredPods
from podium.model import Node, Object, ObjectMeta, Pod
from podium.web.serving import App, Guard, RequestMetrics, TooLargeError

# -- the plugins of a profile ------------------------------------------------------------------------------------------


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

    def _cycle(self, cluster: Cluster, pod: Pod) -> CycleState:
        """The state of a new cycle, with pods counted as the profile's release does."""
        cluster.count_as(self._framework.rules)
        return CycleState(cluster.info_of(pod))

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
        state, nodes = self._cycle(cluster, pod), Nodes(cluster, rows)
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
        state, nodes = self._cycle(cluster, pod), Nodes(cluster, rows)
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
        return Framework(setup.config.profiles[0], setup.registry, setup.rules)
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
    setup = made.set_up(given, options=options, registry=registry)
    return Framework(setup.config.profiles[0], setup.registry, setup.rules)


# -- over HTTP ---------------------------------------------------------------------------------------------------------


class NameTable:
    """Finds the rows of all names in a JSON list at once.

    A name is treated as words of eight bytes, so that thousands are looked up in a few operations on columns. A
    dictionary takes five times as long, as each name is at another place in memory.
    """

    MASKS = np.array([(1 << 8 * length) - 1 for length in range(9)], dtype=np.uint64)
    """Masks for words of which only the first bytes belong to the name."""

    def __init__(self, rows: Mapping[str, int]) -> None:
        encoded = [name.encode() for name in rows]
        self._width = max(map(len, encoded), default=0) // 8 + 1
        padded = b"".join([name.ljust(8 * self._width, b"\0") for name in encoded])
        self._words: NDArray[np.uint64] = np.frombuffer(padded, "<u8").reshape(len(rows), self._width)
        self._factors = np.random.default_rng(0).integers(1 << 63, size=self._width, dtype=np.uint64) | np.uint64(1)
        hashes = self._words @ self._factors
        order = np.argsort(hashes)
        self._hashes, self._words = hashes[order], self._words[order]
        self._rows = np.fromiter(rows.values(), np.int64, len(rows))[order]

    def rows(self, listed: bytes) -> Ints | None:
        """The row of each name. None if a name is unknown, or if the list is not formatted as Go does it."""
        padded = listed + bytes(8 * self._width + 8)
        quotes = np.flatnonzero(np.frombuffer(padded, np.uint8) == ord('"'))
        starts, ends = quotes[0::2] + 1, quotes[1::2]
        is_plain = (
            listed.startswith(b'["')
            and b"\\" not in listed
            and ends[-1] == len(listed) - 2
            and np.all(starts[1:] == ends[:-1] + 3)
        )
        if not is_plain or not len(self._rows):
            return None
        words = self._words_of(padded, starts, ends - starts)
        places = np.minimum(np.searchsorted(self._hashes, words @ self._factors), len(self._rows) - 1)
        is_same = np.max(ends - starts) < 8 * self._width and np.array_equal(self._words[places], words)
        return self._rows[places] if is_same else None

    def _words_of(self, padded: bytes, starts: Ints, lengths: Ints) -> NDArray[np.uint64]:
        """The words of the names that begin at these places."""
        at_every_byte: NDArray[np.uint64] = np.ndarray(len(padded) - 7, "<u8", padded, strides=(1,))
        words = np.empty((len(starts), self._width), dtype=np.uint64)
        for number in range(self._width):
            of_name = self.MASKS[np.clip(lengths - 8 * number, 0, 8)]
            words[:, number] = at_every_byte[starts + 8 * number] & of_name
        return words


class KnownNodes:
    """A cluster's nodes in the form of requests, valid as long as the cluster has the same nodes."""

    MOST_LISTS = 16

    def __init__(self, cluster: Cluster, highest: int) -> None:
        self.cluster, self._highest, self._version = cluster, highest, cluster.node_set_version
        self._lists: dict[bytes, NodesAsked] = {}

    def is_current(self) -> bool:
        """Whether the cluster still has the same nodes."""
        return self._version == self.cluster.node_set_version

    def listed(self, names: bytes) -> NodesAsked:
        """The nodes of a JSON list of names. Lists repeat, so the last ones are kept."""
        found = self._lists.get(names)
        if found is None:
            if len(self._lists) >= self.MOST_LISTS:
                self._lists.clear()
            found = self._lists[names] = self._look_up(names)
        return found

    def _look_up(self, names: bytes) -> NodesAsked:
        rows = self._names.rows(names)
        return self.among(_decoded(names, list[str])) if rows is None else NodesAsked(rows)

    @cached_property
    def _names(self) -> NameTable:
        return NameTable(self.cluster.rows)

    @cached_property
    def priorities(self) -> HostPriorities:
        """Writes the scores of these nodes."""
        return HostPriorities(self.cluster.names, self._highest)

    def among(self, names: Sequence[str]) -> NodesAsked:
        """The nodes with these names."""
        rows = list(map(self.cluster.rows.get, names))
        unknown = [name for name, row in zip(names, rows, strict=True) if row is None]
        return NodesAsked(np.array([row for row in rows if row is not None], dtype=np.int64), unknown)


class HostPriorities:
    """Writes HostPriorityList as JSON: a table of bytes with one entry per row, into which the scores are written.

    JSON ignores spaces before a number, so all entries have the same length.
    """

    def __init__(self, names: Sequence[str], highest: int) -> None:
        self._digits = len(str(highest))
        starts = [b'{"Host":%s,"Score":' % msgspec.json.encode(name) for name in names]
        length = max(map(len, starts), default=0) + self._digits
        entries = b"".join([start.ljust(length) + b"}," for start in starts])
        self._entries: NDArray[np.uint8] = np.frombuffer(entries, np.uint8).reshape(len(starts), length + 2)

    def written(self, rows: Ints, scores: Ints) -> bytes:
        """The scores of some rows."""
        entries = self._entries.take(rows, axis=0)
        for place in range(self._digits):
            digits = scores // 10**place
            # The first digit is always written, others if the score is that high.
            entries[:, -3 - place] = np.where((digits > 0) | (place == 0), ord("0") + digits % 10, ord(" "))
        return b"[%s]" % entries.tobytes()[:-1]


P = TypeVar("P")
JSON = "application/json"
NO_CLUSTER = (
    "nodes came by name, but this extender has no cluster of its own: "
    "give it one with -f or --kubeconfig, or set nodeCacheCapable: false"
)


class NodeList(msgspec.Struct):
    """Nodes as received, so that they can be returned unchanged."""

    items: list[msgspec.Raw] = []


class NodeArgs(msgspec.Struct, rename="pascal"):
    """ExtenderArgs: the request of filter and prioritize."""

    pod: Pod
    nodes: NodeList | None = None
    node_names: msgspec.Raw = msgspec.Raw(b"null")


class MetaPod(msgspec.Struct, rename={"uid": "UID"}):
    """A victim by its UID."""

    uid: str = ""


class NodeVictims(msgspec.Struct, Generic[P], rename={"pods": "Pods", "pdb_violations": "NumPDBViolations"}):
    """The victims on one node, whole or by their UIDs, and how many of them violate a budget."""

    pods: list[P] = []
    pdb_violations: int = 0


class PreemptionArgs(msgspec.Struct, rename="pascal"):
    """ExtenderPreemptionArgs."""

    pod: Pod
    node_name_to_victims: dict[str, NodeVictims[Pod]] | None = None
    node_name_to_meta_victims: dict[str, NodeVictims[MetaPod]] | None = None


class BindingArgs(
    msgspec.Struct, rename={"name": "PodName", "namespace": "PodNamespace", "uid": "PodUID", "node": "Node"}
):
    """ExtenderBindingArgs."""

    name: str
    namespace: str
    uid: str
    node: str


Binder = Callable[[Pod, str], Awaitable[None]]
"""Binds a pod to a node."""


class ExtenderServer:
    """Answers kube-scheduler, one request after the other: a plugin that never returns blocks /livez as well.

    `cluster` is the extender's own copy. If it is None, the extender knows only the nodes that it is sent, and no pods.
    With `follows`, a copy comes with `begin` and is kept up to date with `change`; until then the extender is not
    ready.
    """

    def __init__(self, verbs: PluginVerbs, cluster: Cluster | None = None, *, follows: bool = False) -> None:
        self._verbs, self._cluster = verbs, cluster
        self.is_ready = not follows
        self._pods = StoredPods()
        self._known: KnownNodes | None = None
        self._binder: Binder | None = None
        self.metrics = RequestMetrics("podium_extender", ("filter", "prioritize", "preempt", "bind"))

    async def begin(self, objects: Sequence[Object]) -> None:
        """Take over a cluster."""
        self._cluster = await asyncio.to_thread(Cluster.from_objects, objects)
        # All objects stay: scanning them for garbage again and again would delay calls.
        gc.freeze()
        self.is_ready = True

    async def change(self, events: Sequence[Event]) -> None:
        """Apply changes to the cluster."""
        assert self._cluster is not None, "begin comes first"
        for event in events:
            if event.type is EventType.DELETE:
                self._cluster.remove(event.object)
            else:
                self._cluster.update(event.object)

    async def filter(self, request: Request) -> Response:
        """ExtenderFilterResult: names for names, nodes for nodes."""
        return await self._answer("filter", request, self._filter)

    async def prioritize(self, request: Request) -> Response:
        """HostPriorityList."""
        return await self._answer("prioritize", request, self._prioritize)

    async def preempt(self, request: Request) -> Response:
        """ExtenderPreemptionResult."""
        return await self._answer("preempt", request, self._preempt)

    def bind_with(self, binder: Binder) -> None:
        """Answer /bind from now on."""
        self._binder = binder

    async def bind(self, request: Request) -> Response:
        """ExtenderBindingResult."""
        return await self._answer("bind", request, self._bind)

    async def _bind(self, body: bytes) -> bytes:
        if self._binder is None:
            raise InputError("this extender does not bind: start it with --bind")
        args: BindingArgs = _decoded(body, BindingArgs)
        pod = Pod(metadata=ObjectMeta(name=args.name, namespace=args.namespace, uid=args.uid))
        await self._binder(pod, args.node)
        return msgspec.json.encode({"Error": ""})

    async def _answer(self, verb: str, request: Request, run: Callable[[bytes], Awaitable[bytes]]) -> Response:
        start = perf_counter()
        status, body = 200, b""
        try:
            body = await run(await request.body())
        except TooLargeError as error:
            status, body = 413, _problem(error)
        except InputError as error:
            status, body = 400, _problem(error)
        except PodiumError as error:
            # The results of filter and bind have a field for errors; for other verbs, kube-scheduler uses the HTTP
            # status.
            status, body = (200 if verb in ("filter", "bind") else 500), _problem(error)
            self.metrics.failed(verb)
        self.metrics.observed(verb, perf_counter() - start, status)
        return Response(body, status, media_type=JSON)

    async def _filter(self, body: bytes) -> bytes:
        args = _decoded(body, NodeArgs)
        cluster, asked, raws = self._nodes(args)
        found = self._verbs.filter(cluster, self._pods.stored(args.pod), asked)
        result: dict[str, Any] = {
            "FailedNodes": found.failed,
            "FailedAndUnresolvableNodes": found.unresolvable,
            "Error": "",
        }
        if raws is None:
            return msgspec.json.encode({"NodeNames": found.passed, "Nodes": None, **result})
        items = [raws[name] for name in found.passed]
        return msgspec.json.encode({"Nodes": {"metadata": {}, "items": items}, "NodeNames": None, **result})

    async def _prioritize(self, body: bytes) -> bytes:
        args = _decoded(body, NodeArgs)
        cluster, asked, _ = self._nodes(args)
        scores = self._verbs.prioritize(cluster, self._pods.stored(args.pod), asked.rows)
        written = self._known_of(cluster).priorities.written(asked.rows, scores)
        if not asked.unknown:
            return written
        known: list[dict[str, Any]] = msgspec.json.decode(written)
        return msgspec.json.encode(known + [{"Host": name, "Score": 0} for name in asked.unknown])

    async def _preempt(self, body: bytes) -> bytes:
        args = _decoded(body, PreemptionArgs)
        victims = args.node_name_to_meta_victims
        if victims is None:
            victims = {
                node: NodeVictims([MetaPod(pod.metadata.uid) for pod in each.pods], each.pdb_violations)
                for node, each in (args.node_name_to_victims or {}).items()
            }
        kept = list(victims)
        if self._cluster is not None:
            uids = {node: [pod.uid for pod in each.pods] for node, each in victims.items()}
            kept = self._verbs.preempt(self._cluster, self._pods.stored(args.pod), uids)
        return msgspec.json.encode({"NodeNameToMetaVictims": {node: victims[node] for node in kept}})

    def _nodes(self, args: NodeArgs) -> tuple[Cluster, NodesAsked, dict[str, msgspec.Raw] | None]:
        """The cluster to use, the nodes in question, and the nodes as received, if they were sent whole."""
        listed = bytes(args.node_names)
        if listed != b"null":
            if self._cluster is None:
                raise InputError(NO_CLUSTER)
            return self._cluster, self._known_of(self._cluster).listed(listed), None
        nodes = [(_decoded(bytes(raw), Node), raw) for raw in (args.nodes.items if args.nodes is not None else ())]
        names, raws = [node.name for node, _ in nodes], {node.name: raw for node, raw in nodes}
        cluster = self._cluster or Cluster.from_objects([node for node, _ in nodes])
        return cluster, self._known_of(cluster).among(names), raws

    def _known_of(self, cluster: Cluster) -> KnownNodes:
        if self._known is None or self._known.cluster is not cluster or not self._known.is_current():
            self._known = KnownNodes(cluster, self._verbs.highest)
        return self._known


def _decoded(body: bytes, kind: type[Any]) -> Any:
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise InputError(f"is not what kube-scheduler sends: {error}", getattr(kind, "__name__", "")) from None


def _problem(error: Exception) -> bytes:
    return msgspec.json.encode({"Error": " ".join(str(error).split())})


def extender_application(server: ExtenderServer, **guarding: Any) -> App:
    """The extender behind the guard."""

    async def alive(request: Request) -> Response:
        return Response(b"ok", media_type="text/plain")

    async def ready(request: Request) -> Response:
        return Response(b"ok" if server.is_ready else b"not synced", 200 if server.is_ready else 503)

    async def metrics(request: Request) -> Response:
        return Response(server.metrics.text(), media_type="text/plain; version=0.0.4")

    routes = [
        Route("/filter", server.filter, methods=["POST"]),
        Route("/prioritize", server.prioritize, methods=["POST"]),
        Route("/preempt", server.preempt, methods=["POST"]),
        Route("/bind", server.bind, methods=["POST"]),
        Route("/livez", alive, methods=["GET"]),
        Route("/readyz", ready, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]
    return Guard(Starlette(routes=routes), **guarding)
