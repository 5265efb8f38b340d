"""The last decisions, and the cluster as it was when they were made."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

from msgspec.structs import replace

from podium.engine import Scheduler
from podium.engine.select import Preferred
from podium.loop import Event, SchedulerLoop
from podium.loop.queued_pod import Assumed
from podium.model import Node, Object, Pod
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.storage.volume_binding import VolumeBinding

MOST_REMEMBERED_DECISIONS = 1000
MOST_UNDOABLE_CHANGES = 20_000
"""The number of cluster changes that can be undone; earlier decisions are forgotten."""


class Decided(NamedTuple):
    """The result of the last attempt of a pod. `at` is in seconds since the epoch."""

    at: float
    attempts: int
    node: str = ""
    message: str = ""


class _Change(NamedTuple):
    """A changed object: before, or None if it did not exist, and after."""

    before: Object | None
    after: Object


class _Remembered(NamedTuple):
    pod: Pod
    decided: Decided
    number: int
    """How many changes there were before."""
    nominated: Sequence[tuple[str, str]]
    """The nominated pods and their nodes."""


class DecisionHistory:
    """Remembers the decisions of a loop; the cluster of that time is reconstructed on demand.

    Each change is kept with the object that it replaced, so that a copy of the cluster can be taken back to any
    decision. This costs a reference or two per change, and their number is limited.
    """

    def __init__(self, loop: SchedulerLoop) -> None:
        self._loop = loop
        self._changes: deque[_Change] = deque(maxlen=MOST_UNDOABLE_CHANGES)
        self._count = 0
        """The number of changes so far, including forgotten ones."""
        self._decisions: dict[str, _Remembered] = {}

    # -- remembering -------------------------------------------------------------------------------------------------

    def happens(self, event: Event) -> Object | None:
        """Note an event before it is handled; returns the object before it, None if it did not exist."""
        before = self._known(event.object)
        self._note(before, event.object)
        return before

    def placed(self, assumed: Assumed) -> None:
        """Note that a pod was placed on a node, and volumes and devices were reserved for it."""
        self._note(assumed.pod, _on(assumed.pod, assumed.node))
        for before, after in VolumeBinding.reserved(assumed.state):
            self._note(before, after)
        devices: PodDevices | None = assumed.state.get(DynamicResources.name)
        for pending in devices.reserved.values() if devices is not None else ():
            self._note(None, pending)

    def taken_back(self, assumed: Assumed) -> None:
        """Note that a pod's placement was undone."""
        self._note(_on(assumed.pod, assumed.node), assumed.pod)

    def decided(self, pod: Pod, decided: Decided) -> None:
        """Note a decision, made on the cluster with all changes noted so far."""
        nominations = self._loop.scheduler.nominations
        nominated = [(each.key, node) for node in nominations.nodes() for each in nominations.on(node)]
        self._decisions.pop(pod.key, None)
        self._decisions[pod.key] = _Remembered(pod, decided, self._count, nominated)
        if len(self._decisions) > MOST_REMEMBERED_DECISIONS:
            del self._decisions[next(iter(self._decisions))]

    def _note(self, before: Object | None, after: Object) -> None:
        self._changes.append(_Change(before, after))
        self._count += 1

    def _known(self, item: Object) -> Object | None:
        """An object as the cluster has it; a pod with the node that it counts on."""
        cluster = self._loop.cluster
        if isinstance(item, Node):
            return cluster.node(item.name) if item.name in cluster.rows else None
        if isinstance(item, Pod):
            assumed = self._loop.assumed.get(item.key)
            known = self._loop.pods.get(item.key)
            return _on(known, assumed[1].node) if known is not None and assumed is not None else known
        return cluster.store.of(type(item)).get(item.name, item.namespace)

    # -- looking back ------------------------------------------------------------------------------------------------

    def last(self, key: str) -> Decided | None:
        """The result of a pod's last attempt; None if it is forgotten."""
        found = self._decisions.get(key)
        return None if found is None else found.decided

    def scheduler_then(self, key: str) -> tuple[Scheduler, Pod] | None:
        """A scheduler on the cluster of the time when a pod was decided, and the pod; None if that is forgotten.

        Among nodes with the same score it chooses the one that was chosen then.
        """
        found = self._decisions.get(key)
        if found is None or self._count - found.number > len(self._changes):
            return None
        cluster = self._loop.cluster.fork()
        for change in islice(reversed(self._changes), self._count - found.number):
            if change.before is None:
                cluster.remove(change.after)
            else:
                cluster.update(change.before)
        scheduler = Scheduler(cluster, self._loop.scheduler.options, tie_break=Preferred(found.decided.node))
        for pod, node in found.nominated:
            if pod in cluster.pending:
                scheduler.nominations.nominate(cluster.pending[pod], node)
        return scheduler, found.pod


def _on(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))
