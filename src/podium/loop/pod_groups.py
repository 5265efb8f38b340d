"""The part of the scheduling queue that holds PodGroups: a group and its waiting pods are one entity."""

from __future__ import annotations

from bisect import insort
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

from podium.framework.events import ClusterEvent
from podium.loop.queued_pod import NEVER, BackoffTimes, Heap, QueuedPod
from podium.model import ObjectMeta, Pod, PodGroup, PodSpec

INCOMPLETE, GATED, ACTIVE, BACKOFF = "incomplete", "gated", "active", "backoff"
"""Where a pod of a group waits; incomplete means that its PodGroup does not exist."""


def member_order(queued: QueuedPod) -> tuple[int, int, float, str]:
    """The order of the pods in a group: by priority, then by attempts, both descending, then by arrival and name."""
    return -queued.pod.priority, -queued.attempts, queued.timestamp, queued.pod.name


@dataclass(slots=True, eq=False)
class QueuedGroup:
    """A PodGroup with pods that wait, and its attempts so far. Times are in seconds."""

    group: PodGroup
    number: int
    """How many pods and groups were added before it: breaks ties."""
    timestamp: float
    """When its first pod came, or when it was last tried."""
    members: list[QueuedPod] = field(default_factory=list)
    """The waiting pods, in the order in which they are tried."""
    attempts: int = 0
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    gating_plugin: str = ""
    """The plugin that gates one of its pods, and so the group."""
    until: float = NEVER
    """When its backoff ends; computed when it fails, with the number of pods that it has then."""
    flushed_at: float = NEVER
    key: str = field(init=False)
    """Namespace and name of the group."""
    pod: Pod = field(init=False)
    """Stands for the group where the queue is sorted: it has the group's priority."""

    def __post_init__(self) -> None:
        self.key = self.group.key
        metadata = ObjectMeta(name=self.group.name, namespace=self.group.namespace)
        self.pod = Pod(metadata=metadata, spec=PodSpec(priority=self.group.priority))

    def add(self, queued: QueuedPod) -> None:
        insort(self.members, queued, key=member_order)

    def get(self, key: str) -> QueuedPod | None:
        return next((member for member in self.members if member.key == key), None)

    def remove(self, key: str) -> QueuedPod | None:
        found = self.get(key)
        if found is not None:
            self.members.remove(found)
        return found


class GroupQueue:
    """Groups to try now (active), later (backoff) or after an event (gated), and pods whose group does not exist.

    No event wakes a group that could not be placed: only its backoff does. It is gated if a plugin gates one of its
    pods.
    """

    def __init__(
        self,
        times: BackoffTimes,
        sort_key: Callable[[Any], Any],
        group_of: Callable[[str], PodGroup | None],
        passes_gates: Callable[[QueuedPod], bool],
        *,
        checks_gates_before_backoff: bool,
    ) -> None:
        """`group_of` finds a PodGroup by namespace/name; `passes_gates` runs PreEnqueue for a pod."""
        self._times, self._group_of, self._passes_gates = times, group_of, passes_gates
        self._checks_gates_before_backoff = checks_gates_before_backoff
        self.active = Heap[QueuedGroup](sort_key)
        self._backoff = Heap[QueuedGroup](lambda group: group.until)
        self._gated: dict[str, QueuedGroup] = {}
        self._incomplete: dict[str, dict[str, QueuedPod]] = {}
        """By group, the pods whose PodGroup does not exist, in order of arrival."""
        self._returned: dict[str, QueuedPod] = {}
        """The pods that come or fail while their group is being tried."""
        self.popped = ""
        """The group that is being tried."""

    def __bool__(self) -> bool:
        """Whether any pod of a group waits."""
        return bool(self.active or self._backoff or self._gated or self._incomplete or self._returned)

    def __len__(self) -> int:
        """The number of waiting pods."""
        return sum(1 for _ in self)

    def __iter__(self) -> Iterator[QueuedPod]:
        for group in (*self.active, *self._backoff, *self._gated.values()):
            yield from group.members
        for pods in self._incomplete.values():
            yield from pods.values()
        yield from self._returned.values()

    @property
    def gated(self) -> list[QueuedGroup]:
        return list(self._gated.values())

    def of(self, key: str) -> QueuedGroup | None:
        """A waiting group, by namespace/name."""
        return self.active.get(key) or self._backoff.get(key) or self._gated.get(key)

    def get(self, pod: Pod) -> QueuedPod | None:
        """A waiting pod of a group."""
        group = self.of(pod.group_key)
        found = group.get(pod.key) if group is not None else None
        return found or self._incomplete.get(pod.group_key, {}).get(pod.key) or self._returned.get(pod.key)

    def part_of(self, pod: Pod) -> str:
        """Where a pod waits; empty if it does not."""
        group = self.of(pod.group_key)
        if group is None or group.get(pod.key) is None:
            return INCOMPLETE if pod.key in self._incomplete.get(pod.group_key, {}) else ""
        if group.key in self.active:
            return ACTIVE
        return BACKOFF if group.key in self._backoff else GATED

    # -- pods come and go --------------------------------------------------------------------------------------------

    def add(self, queued: QueuedPod, now: float) -> None:
        """Add a pod to its group; the group is put back where it waits, unless a plugin gates the pod."""
        key = queued.pod.group_key
        group = self._group_of(key)
        if group is None:
            self._incomplete.setdefault(key, {})[queued.key] = queued
            return
        waiting = self.of(key)
        if waiting is not None:
            with _Move(self, waiting, now):
                waiting.add(queued)
        elif self.popped == key:
            self._returned[queued.key] = queued
        else:
            waiting = QueuedGroup(group, queued.number, queued.timestamp)
            waiting.add(queued)
            self._activate(waiting)

    def update(self, queued: QueuedPod, now: float, is_worth: Callable[[QueuedGroup], bool]) -> None:
        """The pod has changed; `is_worth` says whether that may release a gated group."""
        group = self.of(queued.pod.group_key)
        if group is None:
            return
        if group.key in self._gated and is_worth(group):
            self._retry(group, now)

    def remove(self, pod: Pod, now: float) -> None:
        """Remove a pod that is gone or was placed; its group is put back where it waits."""
        key = pod.group_key
        incomplete = self._incomplete.get(key)
        if incomplete is not None and incomplete.pop(pod.key, None) is not None and not incomplete:
            del self._incomplete[key]
        self._returned.pop(pod.key, None)
        waiting = self.of(key)
        if waiting is None:
            return
        if len(waiting.members) == 1 and waiting.get(pod.key) is not None:
            self._take(waiting)
            return
        with _Move(self, waiting, now):
            waiting.remove(pod.key)

    # -- groups come and go ------------------------------------------------------------------------------------------

    def group_added(self, group: PodGroup, now: float) -> None:
        """The pods that waited for this PodGroup join the queue."""
        for queued in self._incomplete.pop(group.key, {}).values():
            self.add(queued, now)

    def group_updated(self, group: PodGroup) -> None:
        waiting = self.of(group.key)
        if waiting is not None:
            waiting.group = group

    def group_deleted(self, group: PodGroup) -> None:
        """The pods wait until the PodGroup exists again."""
        waiting = self.of(group.key)
        if waiting is not None:
            self._take(waiting)
            self._incomplete.setdefault(group.key, {}).update({one.key: one for one in waiting.members})

    # -- groups are tried --------------------------------------------------------------------------------------------

    def pop(self) -> QueuedGroup | None:
        """Take the first active group; the caller must call `put_back` for it."""
        group = self.active.pop()
        if group is not None:
            self.popped = group.key
            group.attempts += 1
            for member in group.members:
                member.attempts += 1
        return group

    def put_back(self, tried: QueuedGroup, *, is_success: bool, is_error: bool, now: float) -> None:
        """Queue the pods that came back from an attempt, with those that came meanwhile; none is left, nothing
        happens.
        """
        self.popped = ""
        returned, self._returned = list(self._returned.values()), {}
        if not returned:
            return
        were_tried = {member.key for member in tried.members}
        group = self._group_of(tried.key)
        assert group is not None, "a PodGroup cannot be deleted while it is tried"
        tried.group, tried.members = group, []
        for queued in returned:
            tried.add(queued)
        tried.flushed_at = NEVER
        if is_success:
            tried.unschedulable_count = tried.consecutive_errors = 0
        elif is_error:
            tried.consecutive_errors += 1
        else:
            tried.unschedulable_count, tried.consecutive_errors = tried.unschedulable_count + 1, 0
        if not is_success or not any(queued.key in were_tried for queued in returned):
            tried.timestamp = now
        tried.until = self._times.until_of_group(
            tried.consecutive_errors or tried.unschedulable_count, len(tried.members), tried.timestamp
        )
        if is_success:
            self._activate(tried)
        else:
            self._back_off(tried, now)

    # -- things happen -----------------------------------------------------------------------------------------------

    def move_all(self, event: ClusterEvent, now: float, is_worth: Callable[[QueuedGroup, ClusterEvent], bool]) -> None:
        """Try gated groups again that an event may help."""
        for group in self.gated:
            if is_worth(group, event):
                self._retry(group, now)

    def flush(self, now: float, due: Callable[[float], float]) -> None:
        """Try groups whose backoff is over, and gated groups that have waited too long; `due` says when that is."""
        while (group := self._backoff.first()) is not None and self._times.ends_at(group.until) <= now:
            self._backoff.pop()
            if self._checks_gates_before_backoff:
                self.active.push(group)
            else:
                self._activate(group)
        for group in self.gated:
            at = due(max(group.timestamp, group.flushed_at))
            if at <= now:
                group.flushed_at = at
                self._retry(group, now)

    def next_flush(self, due: Callable[[float], float]) -> float | None:
        """The next time when `flush` has something to do."""
        first = self._backoff.first()
        times = [due(max(group.timestamp, group.flushed_at)) for group in self._gated.values()]
        if first is not None:
            times.append(self._times.ends_at(first.until))
        return min(times, default=None)

    # -- where groups go ---------------------------------------------------------------------------------------------

    def _take(self, group: QueuedGroup) -> str:
        """Take a group out of the queue; returns where it was."""
        if self.active.remove(group.key) is not None:
            return ACTIVE
        if self._backoff.remove(group.key) is not None:
            return BACKOFF
        del self._gated[group.key]
        return GATED

    def _put(self, group: QueuedGroup, part: str, now: float) -> None:
        """Put a group back to where it was, through PreEnqueue; a gated group stays gated."""
        if part == GATED:
            self._gated[group.key] = group
        elif part == BACKOFF:
            self._back_off(group, now)
        else:
            self._activate(group)

    def _retry(self, group: QueuedGroup, now: float) -> None:
        """Try a gated group after its backoff, if no pod is gated any more."""
        self._gated.pop(group.key)
        self._back_off(group, now)

    def _back_off(self, group: QueuedGroup, now: float) -> None:
        if not self._times.is_within(group.until, now):
            self._activate(group)
        elif not self._checks_gates_before_backoff or self._is_free(group):
            self._backoff.push(group)

    def _activate(self, group: QueuedGroup) -> None:
        if self._is_free(group):
            self.active.push(group)

    def _is_free(self, group: QueuedGroup) -> bool:
        """Run PreEnqueue for all pods; a gated pod gates the group."""
        group.gating_plugin = ""
        for member in group.members:
            if not self._passes_gates(member):
                group.gating_plugin = member.gating_plugin
        if group.gating_plugin:
            self._gated[group.key] = group
        return not group.gating_plugin


class _Move:
    """Takes a group out of the queue, and puts it back to where it was."""

    def __init__(self, queue: GroupQueue, group: QueuedGroup, now: float) -> None:
        self._queue, self._group, self._now = queue, group, now

    def __enter__(self) -> None:
        self._part = self._queue._take(self._group)

    def __exit__(self, *_: object) -> None:
        self._queue._put(self._group, self._part, self._now)
