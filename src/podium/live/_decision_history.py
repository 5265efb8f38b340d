"""The last decisions, and the cluster as it was when each of them was made."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, NamedTuple

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.engine import Scheduler
from podium.loop import Event, SchedulerLoop
from podium.loop.queued_pod import Assumed
from podium.model import Node, Object, Pod
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.dynamic_resources.pod_devices import PodDevices
from podium.plugins.storage.volume_binding import VolumeBinding

MOST_DECISIONS = 1000
MOST_CHANGES = 20_000
"""How many changes of the cluster can be undone; decisions before that are forgotten."""


class Decided(NamedTuple):
    """What became of a pod when it was last tried. `at` is seconds since the epoch."""

    at: float
    attempts: int
    node: str = ""
    message: str = ""


class _Change(NamedTuple):
    """An object that changed: as it was, or None if it was not there, and as it is."""

    before: Object | None
    after: Object


class _Remembered(NamedTuple):
    pod: Pod
    decided: Decided
    number: int
    """How many changes there were before."""
    nominated: Sequence[tuple[str, str]]
    """Pods and the nodes that they waited for."""


class DecisionHistory:
    """Remembers decisions of a loop; what the cluster was like is worked out when somebody asks.

    Changes are kept with what was before, so that a copy of the cluster can be taken back to any decision: keeping
    costs a reference or two for each change, and there are only so many.
    """

    def __init__(self, loop: SchedulerLoop) -> None:
        self._loop = loop
        self._changes: deque[_Change] = deque(maxlen=MOST_CHANGES)
        self._count = 0
        """How many changes there were so far, forgotten ones included."""
        self._decisions: dict[str, _Remembered] = {}

    # -- remembering -------------------------------------------------------------------------------------------------

    def happens(self, event: Event) -> Object | None:
        """An object is about to change; as it is before that, None if it is not there."""
        before = self._known(event.object)
        self._note(before, event.object)
        return before

    def placed(self, assumed: Assumed) -> None:
        """A pod was placed on a node, and volumes and devices were reserved for it."""
        self._note(assumed.pod, _on(assumed.pod, assumed.node))
        for before, after in VolumeBinding.reserved(assumed.state):
            self._note(before, after)
        devices: PodDevices | None = assumed.state.get(DynamicResources.name)
        for pending in devices.reserved.values() if devices is not None else ():
            self._note(None, pending)

    def taken_back(self, assumed: Assumed) -> None:
        """A pod is not on its node after all."""
        self._note(_on(assumed.pod, assumed.node), assumed.pod)

    def decided(self, pod: Pod, decided: Decided) -> None:
        """A decision was made on the cluster as it is by all that was told so far."""
        nominations = self._loop.scheduler.nominations
        nominated = [(each.key, node) for node in nominations.nodes() for each in nominations.on(node)]
        self._decisions.pop(pod.key, None)
        self._decisions[pod.key] = _Remembered(pod, decided, self._count, nominated)
        if len(self._decisions) > MOST_DECISIONS:
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
        """What became of a pod when it was last tried; None if that is not remembered."""
        found = self._decisions.get(key)
        return None if found is None else found.decided

    def scheduler_then(self, key: str) -> tuple[Scheduler, Pod] | None:
        """A scheduler on the cluster as it was when a pod was decided, and the pod; None if that is forgotten.

        Of nodes with the same points it takes the one that was taken.
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
        scheduler = Scheduler(cluster, self._loop.scheduler.options, tie_break=_Taken(found.decided.node))
        for pod, node in found.nominated:
            if pod in cluster.pending:
                scheduler.nominations.nominate(cluster.pending[pod], node)
        return scheduler, found.pod


class _Taken:
    """Takes a node that was taken before; the first where that is not among the best."""

    def __init__(self, node: str) -> None:
        self._node = node

    def choose(self, rows: Ints, cluster: Cluster) -> int:
        return next((row for row in rows.tolist() if cluster.names[row] == self._node), int(rows[0]))

    def save(self) -> Any:
        return None

    def restore(self, saved: Any) -> None:
        """Nothing to restore: the choice was made before."""


def _on(pod: Pod, node: str) -> Pod:
    return replace(pod, spec=replace(pod.spec, node_name=node))
