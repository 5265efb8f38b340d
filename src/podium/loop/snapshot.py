"""Saves the state of the loop as data, and resumes a loop from it as if it had not been interrupted."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from typing import Any, Unpack

import msgspec

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.errors import InputError
from podium.loop.cycle import SchedulerLoop
from podium.loop.queue import SchedulingQueue
from podium.loop.queued_pod import NEVER, QueuedPod
from podium.model import KINDS, Node, Object, ObjectMeta, Pod

VERSION = 1
DEAD = "dead-row-"
"""The prefix of placeholder nodes that occupy dead rows while a cluster is rebuilt."""


class SavedPod(msgspec.Struct, frozen=True):
    """A pod in the queue, by namespace and name; the list it is in tells its part of the queue."""

    pod: str
    number: int
    timestamp: float
    attempts: int
    unschedulable_count: int
    consecutive_errors: int
    unschedulable_plugins: list[str]
    pending_plugins: list[str]
    gating_plugin: str
    flushed_at: float | None
    message: str = ""
    active_since: float | None = None


class SavedQueue(msgspec.Struct, frozen=True):
    start: float
    arrivals: int
    active: list[SavedPod]
    backoff: list[SavedPod]
    unschedulable: list[SavedPod]


class LoopSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a loop: objects as the API server has them, plus the state that only the scheduler has."""

    version: int
    config: str
    """A digest of the configuration, to detect that a loop is resumed with another one."""
    rows: list[Node | None]
    """The node of each row; None for a dead row."""
    dead_rows: list[int]
    """The dead rows in the order in which new nodes reuse them."""
    objects: list[tuple[str, msgspec.Raw]]
    pods: list[Pod]
    placed: list[str]
    """The pods on nodes, in the order they were placed."""
    pending: list[str]
    queue: SavedQueue
    nominations: list[tuple[str, str]]
    choices: Any
    """The state of all random choices."""


def take_snapshot(loop: SchedulerLoop) -> LoopSnapshot:
    """The loop as data. InputError while pods are being bound: the plugins' state for them cannot be saved."""
    if loop.assumed or len(loop.waiting):
        raise InputError(
            "a snapshot cannot be taken while pods are being bound or wait at Permit, "
            f"as {sorted((*loop.assumed, *(one.pod.key for one in loop.waiting)))[0]} does; take it before or after"
        )
    if loop.queue.groups:
        key = next(iter(loop.queue.groups)).key
        raise InputError(f"a snapshot cannot hold pods of PodGroups that wait, as {key} does; take it before or after")
    cluster = loop.cluster
    return LoopSnapshot(
        version=VERSION,
        config=config_digest(loop.scheduler.config),
        rows=[cluster.node(name) if name else None for name in cluster.names],
        dead_rows=_dead_rows(cluster),
        objects=[(type(item).__name__, msgspec.Raw(msgspec.json.encode(item))) for item in all_objects(cluster)],
        pods=list(loop.pods.values()),
        placed=[pod.key for pod, _ in cluster.placed()],
        pending=list(cluster.pending),
        queue=_save_queue(loop.queue),
        nominations=list(_nominations(loop)),
        choices=loop.scheduler.save(),
    )


def resume(
    snapshot: LoopSnapshot,
    config: Config | SchedulerOptions = None,
    **keywords: Unpack[SchedulerKeywords],
) -> SchedulerLoop:
    """Resume a loop from a snapshot; the configuration and the plugins must be those it was taken with."""
    if snapshot.version != VERSION:
        raise InputError(f"the snapshot is of format {snapshot.version}, this is {VERSION}; take a new one")
    loop = SchedulerLoop(_rebuild(snapshot), config, now=snapshot.queue.start, **keywords)
    if config_digest(loop.scheduler.config) != snapshot.config:
        raise InputError("the snapshot was taken with another configuration; give the same one")
    loop.pods = {pod.key: pod for pod in snapshot.pods}
    _restore_queue(loop, snapshot.queue)
    for key, node in snapshot.nominations:
        loop.scheduler.nominations.nominate(loop.pods[key], node)
    loop.scheduler.restore(_tuples(snapshot.choices))
    return loop


def config_digest(config: KubeSchedulerConfiguration) -> str:
    return hashlib.blake2b(repr(config).encode(), digest_size=16).hexdigest()


# -- the cluster -----------------------------------------------------------------------------------------------------


def _dead_rows(cluster: Cluster) -> list[int]:
    """The dead rows in the order in which new nodes reuse them, determined on a copy."""
    dead = cluster.names.count("")
    if not dead:
        return []
    twin = cluster.fork()
    for number in range(dead):
        twin.add(_placeholder(number))
    return [twin.rows[f"{DEAD}{number}"] for number in range(dead)]


def _placeholder(number: int) -> Node:
    return Node(metadata=ObjectMeta(name=f"{DEAD}{number}"))


def _rebuild(snapshot: LoopSnapshot) -> Cluster:
    cluster = Cluster()
    for row, node in enumerate(snapshot.rows):
        cluster.add(_placeholder(row) if node is None else node)
    # The row that was freed last is reused first.
    for row in reversed(snapshot.dead_rows):
        cluster.remove(_placeholder(row))
    for kind, raw in snapshot.objects:
        cluster.add(msgspec.json.decode(raw, type=KINDS[kind]))
    pods = {pod.key: pod for pod in snapshot.pods}
    first = [*snapshot.placed, *snapshot.pending]
    rest = pods.keys() - set(first)
    for key in (*first, *(key for key in pods if key in rest)):
        cluster.add(pods[key])
    return cluster


# -- the queue -------------------------------------------------------------------------------------------------------


def _save_queue(queue: SchedulingQueue) -> SavedQueue:
    return SavedQueue(
        queue.start,
        queue.arrivals,
        [_saved(queued) for queued in queue.active],
        [_saved(queued) for queued in queue.backoff],
        [_saved(queued) for queued in queue.unschedulable],
    )


def _saved(queued: QueuedPod) -> SavedPod:
    return SavedPod(
        queued.pod.key,
        queued.number,
        queued.timestamp,
        queued.attempts,
        queued.unschedulable_count,
        queued.consecutive_errors,
        sorted(queued.unschedulable_plugins),
        sorted(queued.pending_plugins),
        queued.gating_plugin,
        None if queued.flushed_at == NEVER else queued.flushed_at,
        queued.message,
        queued.active_since,
    )


def _restore_queue(loop: SchedulerLoop, saved: SavedQueue) -> None:
    queue = loop.queue
    for queued in list(queue):
        queue.remove(queued.pod.key)
    queue.arrivals = saved.arrivals
    for one in saved.active:
        queue.active.push(_queued(one, loop))
    for one in saved.backoff:
        queue.backoff.add(_queued(one, loop))
    for one in saved.unschedulable:
        queue.put_unschedulable(_queued(one, loop))


def _queued(saved: SavedPod, loop: SchedulerLoop) -> QueuedPod:
    pod = loop.pods[saved.pod]
    return QueuedPod(
        pod,
        loop.cluster.info_of(pod),
        saved.number,
        saved.timestamp,
        saved.attempts,
        saved.unschedulable_count,
        saved.consecutive_errors,
        frozenset(saved.unschedulable_plugins),
        frozenset(saved.pending_plugins),
        saved.gating_plugin,
        NEVER if saved.flushed_at is None else saved.flushed_at,
        saved.message,
        saved.active_since,
    )


# -- the rest --------------------------------------------------------------------------------------------------------


def _nominations(loop: SchedulerLoop) -> Iterator[tuple[str, str]]:
    """The nomination of each pod, and an empty one for pods that have none although their status names a node."""
    nominations = loop.scheduler.nominations
    for node in nominations.nodes():
        for pod in nominations.on(node):
            yield pod.key, node
    for key, pod in loop.cluster.pending.items():
        if pod.status.nominated_node_name and not nominations.node_of(pod):
            yield key, ""


def _tuples(value: Any) -> Any:
    """Turn the lists that JSON made of tuples back into tuples."""
    return tuple(map(_tuples, value)) if isinstance(value, list | tuple) else value


def all_objects(cluster: Cluster) -> Iterator[Object]:
    """Every object that is neither a node nor a pod, kind by kind."""
    for kind in KINDS.values():
        if kind not in (Node, Pod):
            yield from cluster.store.of(kind)
