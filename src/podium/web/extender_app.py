"""The extender over HTTP, as kube-scheduler calls it: /filter, /prioritize, /preempt; /livez, /readyz, /metrics."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from time import perf_counter
from typing import Any

import msgspec
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from podium.cluster import Cluster
from podium.errors import InputError, PodiumError
from podium.loop import Event, EventType
from podium.manifests.stored_pods import StoredPods
from podium.model import Node, Object, Pod
from podium.web.guard import App, Guard, TooLargeError
from podium.web.metrics import Metrics
from podium.web.plugin_verbs import NodesAsked, PluginVerbs

JSON = "application/json"
MOST_LISTS = 16
NO_CLUSTER = (
    "nodes came by name, but this extender has no cluster of its own: "
    "give it one with -f or --kubeconfig, or set nodeCacheCapable: false"
)


class NodeList(msgspec.Struct):
    """Nodes as they came, so that they can go back as they came."""

    items: list[msgspec.Raw] = []


class NodeArgs(msgspec.Struct, rename="pascal"):
    """ExtenderArgs: what filter and prioritize are asked."""

    pod: Pod
    nodes: NodeList | None = None
    node_names: msgspec.Raw = msgspec.Raw(b"null")


class MetaPod(msgspec.Struct, rename={"uid": "UID"}):
    """A victim by its UID."""

    uid: str = ""


class MetaVictims(msgspec.Struct, rename={"pods": "Pods", "pdb_violations": "NumPDBViolations"}):
    """The victims on one node, and how many of them budgets would have protected."""

    pods: list[MetaPod] = []
    pdb_violations: int = 0


class Victims(msgspec.Struct, rename={"pods": "Pods", "pdb_violations": "NumPDBViolations"}):
    """The same, with whole pods."""

    pods: list[Pod] = []
    pdb_violations: int = 0


class PreemptionArgs(msgspec.Struct, rename="pascal"):
    """ExtenderPreemptionArgs."""

    pod: Pod
    node_name_to_victims: dict[str, Victims] | None = None
    node_name_to_meta_victims: dict[str, MetaVictims] | None = None


class ExtenderServer:
    """Answers kube-scheduler; one thread asks the plugins, one request after the other.

    `cluster` is the extender's own copy, or None: then it knows of the nodes what it is sent, and of no pods. With
    `follows`, a copy comes with `begin` and is kept up to date with `change`; until then the extender is not ready.
    """

    def __init__(self, verbs: PluginVerbs, cluster: Cluster | None = None, *, follows: bool = False) -> None:
        self._verbs, self._cluster = verbs, cluster
        self.is_ready = not follows
        self._pods = StoredPods()
        self._asked: dict[bytes, tuple[int, NodesAsked]] = {}
        self._thread = ThreadPoolExecutor(1, "plugins")
        self.metrics = Metrics("podium_extender", ("filter", "prioritize", "preempt"))

    def close(self) -> None:
        """End the thread."""
        self._thread.shutdown()

    async def begin(self, objects: Sequence[Object]) -> None:
        """Take over a cluster."""
        self._cluster = await asyncio.get_running_loop().run_in_executor(self._thread, Cluster.from_objects, objects)
        self.is_ready = True

    async def change(self, events: Sequence[Event]) -> None:
        """Take over what happened to it."""
        await asyncio.get_running_loop().run_in_executor(self._thread, self._change, events)

    def _change(self, events: Sequence[Event]) -> None:
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

    async def _answer(self, verb: str, request: Request, run: Callable[[bytes], bytes]) -> Response:
        start = perf_counter()
        status, body = 200, b""
        try:
            given = await request.body()
            body = await asyncio.get_running_loop().run_in_executor(self._thread, run, given)
        except TooLargeError as error:
            status, body = 413, _problem(error)
        except InputError as error:
            status, body = 400, _problem(error)
        except PodiumError as error:
            # Filter has a place for this; of the other verbs, kube-scheduler heeds the status.
            status, body = (200 if verb == "filter" else 500), _problem(error)
            self.metrics.failed(verb)
        self.metrics.observed(verb, perf_counter() - start, status)
        return Response(body, status, media_type=JSON)

    # -- in the thread ---------------------------------------------------------------------------------------------

    def _filter(self, body: bytes) -> bytes:
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

    def _prioritize(self, body: bytes) -> bytes:
        args = _decoded(body, NodeArgs)
        cluster, asked, _ = self._nodes(args)
        scores = self._verbs.prioritize(cluster, self._pods.stored(args.pod), asked.rows).tolist()
        found = [b"%s%d}" % pair for pair in zip(asked.heads, scores, strict=True)]
        return b"[%s]" % b",".join([*found, *asked.tails])

    def _preempt(self, body: bytes) -> bytes:
        args = _decoded(body, PreemptionArgs)
        victims = args.node_name_to_meta_victims
        if victims is None:
            victims = {
                node: MetaVictims([MetaPod(pod.metadata.uid) for pod in each.pods], each.pdb_violations)
                for node, each in (args.node_name_to_victims or {}).items()
            }
        kept = list(victims)
        if self._cluster is not None:
            uids = {node: [pod.uid for pod in each.pods] for node, each in victims.items()}
            kept = self._verbs.preempt(self._cluster, self._pods.stored(args.pod), uids)
        return msgspec.json.encode({"NodeNameToMetaVictims": {node: victims[node] for node in kept}})

    def _nodes(self, args: NodeArgs) -> tuple[Cluster, NodesAsked, dict[str, msgspec.Raw] | None]:
        """The cluster to look at, the nodes that are asked about, and those as they came, if they came whole."""
        listed = bytes(args.node_names)
        if listed != b"null":
            if self._cluster is None:
                raise InputError(NO_CLUSTER)
            return self._cluster, self._named(self._cluster, listed), None
        nodes = [(_decoded(bytes(raw), Node), raw) for raw in (args.nodes.items if args.nodes is not None else ())]
        names, raws = [node.name for node, _ in nodes], {node.name: raw for node, raw in nodes}
        cluster = self._cluster or Cluster.from_objects([node for node, _ in nodes])
        return cluster, NodesAsked.among(cluster, names), raws

    def _named(self, cluster: Cluster, names: bytes) -> NodesAsked:
        """The nodes of a list of names; lists repeat, and looking up thousands of names takes its time."""
        known = self._asked.get(names)
        if known is None or known[0] != cluster.node_set_version:
            if len(self._asked) >= MOST_LISTS:
                self._asked.clear()
            known = cluster.node_set_version, NodesAsked.among(cluster, _decoded(names, list[str]))
            self._asked[names] = known
        return known[1]


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
        Route("/livez", alive, methods=["GET"]),
        Route("/readyz", ready, methods=["GET"]),
        Route("/metrics", metrics, methods=["GET"]),
    ]
    return Guard(Starlette(routes=routes), **guarding)
