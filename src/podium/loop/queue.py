"""kube-scheduler's scheduling queue, on a clock that the caller owns."""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Hashable, Iterator, Mapping
from enum import IntEnum

from podium.cluster import Cluster
from podium.engine.decision import Diagnosis
from podium.framework import SUCCESS, Framework, Plugin, Status
from podium.framework.suggested_change import ANYTHING, Action, ClusterEvent, WaitingPod
from podium.loop.events import PluginHints, pod_changes
from podium.loop.queued_pod import NEVER, WINDOW, BackoffQueue, Heap, InFlight, QueuedPod
from podium.model import Pod

FLUSH_AFTER = 300.0
"""Seconds after which a pod is tried again, whatever happens."""
FLUSH_EVERY = 30.0
"""Seconds between two checks for pods that have waited that long."""
RETRY_EVERY = FLUSH_AFTER + FLUSH_EVERY
"""Seconds between two attempts of a pod that nothing helps: it is noticed at the check after these minutes."""

Group = Mapping[str, QueuedPod]


class UnschedulablePods:
    """Pods by namespace and name, in groups that every event treats alike. Times are in seconds."""

    def __init__(self, group_of: Callable[[QueuedPod], Hashable], start: float) -> None:
        self._group_of, self._start = group_of, start
        self._pods: dict[str, tuple[QueuedPod, Hashable, float]] = {}
        """Each pod with its group and the time it is flushed."""
        self._groups: dict[Hashable, dict[str, QueuedPod]] = {}
        self._flushes: list[tuple[float, int, str]] = []

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return (queued for queued, _, _ in self._pods.values())

    @property
    def gated_count(self) -> int:
        return sum(len(pods) for pods in self._groups.values() if next(iter(pods.values())).is_gated)

    def get(self, key: str) -> QueuedPod | None:
        found = self._pods.get(key)
        return None if found is None else found[0]

    def groups(self) -> list[Group]:
        return list(self._groups.values())

    def put(self, queued: QueuedPod) -> None:
        """Add a pod, or move it to the group it belongs to now."""
        key = queued.key
        self.remove(key)
        group, due = self._group_of(queued), self._due(queued)
        self._pods[key] = queued, group, due
        self._groups.setdefault(group, {})[key] = queued
        heapq.heappush(self._flushes, (due, queued.number, key))

    def remove(self, key: str) -> QueuedPod | None:
        found = self._pods.pop(key, None)
        if found is None:
            return None
        queued, group, _ = found
        del self._groups[group][key]
        if not self._groups[group]:
            del self._groups[group]
        return queued

    def waiting(self) -> list[tuple[float, QueuedPod]]:
        """The pods, and when each will have waited too long."""
        return [(due, queued) for queued, _, due in self._pods.values()]

    def due(self, now: float) -> Iterator[tuple[float, QueuedPod]]:
        """The pods that have waited too long, and when that was noticed."""
        while (at := self.next_flush()) is not None and at <= now:
            _, _, key = heapq.heappop(self._flushes)
            yield at, self._pods[key][0]

    def next_flush(self) -> float | None:
        """When the next pod has waited too long."""
        while self._flushes:
            at, number, key = self._flushes[0]
            found = self._pods.get(key)
            if found is not None and found[0].number == number and found[2] == at:
                return at
            heapq.heappop(self._flushes)
        return None

    def _due(self, queued: QueuedPod) -> float:
        since = max(queued.timestamp, queued.flushed_at)
        looks = math.floor((since + FLUSH_AFTER - self._start) / FLUSH_EVERY) + 1
        return self._start + looks * FLUSH_EVERY


TIMEOUT = ClusterEvent(ANYTHING, Action.UPDATE)
"""A pod has waited for five minutes: it is tried again whatever rejected it."""
UNKNOWN = PluginHints(Plugin())
"""The hints for extenders, which are no plugins: any event may change what they answer."""


class Strategy(IntEnum):
    """What an event means to a waiting pod."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class SchedulingQueue:
    """Pods that want a node: those to try now (active), later (backoff), and after an event that may help.

    Every method that depends on the time is told what time it is, in seconds; time must not go backwards. A pod is in
    one place only: active, backing off, unschedulable (gated pods among them), or in flight, which is everything from
    `pop` to `done`.
    """

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        cluster: Cluster,
        *,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        start: float = 0.0,
    ) -> None:
        self._frameworks, self._cluster, self.start = frameworks, cluster, start
        (queue_sort,) = next(iter(frameworks.values())).queue_sort
        self.active = Heap(queue_sort.sort_key)
        self._pops_early = all(framework.rules.pops_from_backoff for framework in frameworks.values())
        self.backoff = BackoffQueue(
            initial_backoff, max_backoff, queue_sort.sort_key, window=WINDOW if self._pops_early else 0.0
        )
        self.unschedulable = UnschedulablePods(self._group_of, start)
        self.in_flight = InFlight()
        self._hints = {
            name: {plugin.name: PluginHints(plugin) for plugin in framework.plugins.values()}
            for name, framework in frameworks.items()
        }
        self._interested: dict[Hashable, tuple[PluginHints, ...]] = {}
        self._by_spec: dict[tuple[str, frozenset[str]], bool] = {}
        """Per profile and rejecting plugins, whether all of these go by the spec of a pod in their hints."""
        self.arrivals = 0
        """How many pods came so far."""

    def __len__(self) -> int:
        """Pods that wait, in flight not included."""
        return len(self.active) + len(self.backoff) + len(self.unschedulable)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self.active
        yield from self.backoff
        yield from self.unschedulable

    def get(self, key: str) -> QueuedPod | None:
        """A pod that waits, by namespace/name."""
        return self.active.get(key) or self.backoff.get(key) or self.unschedulable.get(key)

    # -- pods come and go --------------------------------------------------------------------------------------------

    def add(self, pod: Pod, now: float) -> QueuedPod:
        """A new pod: active, unless a plugin gates it."""
        self.arrivals += 1
        queued = QueuedPod(pod, self._cluster.info_of(pod), self.arrivals, now)
        self._move_to_active(queued)
        return queued

    def update(self, old: Pod, new: Pod, now: float) -> None:
        """A waiting pod changed; one that fits nowhere may do so now."""
        events = pod_changes(old, new)
        if new.key in self.in_flight:
            for event in events:
                self.in_flight.note(event)
            return
        queued = self.get(new.key)
        if queued is None:
            self.add(new, now)
            return
        queued.pod, queued.info = new, self._cluster.info_of(new)
        if new.key in self.active:
            self.active.push(queued)
        elif self.backoff.remove(new.key):
            self.backoff.add(queued)
        else:
            self.unschedulable.put(queued)
            for event in events:
                self._requeue(queued, self._worth_requeueing(queued, event), now)
                if new.key not in self.unschedulable:
                    break

    def remove(self, key: str) -> None:
        """A pod is gone, or was placed by somebody else."""
        self.active.remove(key) or self.backoff.remove(key) or self.unschedulable.remove(key)

    # -- pods are tried ----------------------------------------------------------------------------------------------

    @property
    def has_next(self) -> bool:
        """Whether there is a pod to try now: an active one or, failing that, one whose backoff is cut short."""
        return bool(self.active) or (self._pops_early and bool(self.backoff.rejected))

    def pop(self) -> QueuedPod | None:
        """Take the next pod to try; report back with `done` or `put_back`."""
        queued = self.active.pop() or (self.backoff.rejected.pop() if self._pops_early else None)
        if queued is not None:
            queued.attempts += 1
            self.in_flight.start(queued.key)
        return queued

    def first(self) -> QueuedPod | None:
        """The pod that `pop` would take."""
        if self.active:
            return self.active.first()
        return self.backoff.rejected.first() if self._pops_early else None

    def reject_first(self, diagnosis: Diagnosis, now: float) -> None:
        """Take the first pod and put it back at once, as plugins have rejected it: what `pop` and `put_back` do."""
        queued = self.active.pop() if self.active else self.backoff.rejected.pop()
        if queued is not None:
            queued.attempts += 1
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
            queued.unschedulable_plugins = diagnosis.unschedulable_plugins
            queued.pending_plugins, queued.gating_plugin = diagnosis.pending_plugins, ""
            queued.timestamp, queued.flushed_at = now, NEVER
            self.unschedulable.put(queued)

    def done(self, key: str) -> None:
        """A pod that was taken needs the queue no more."""
        self.in_flight.done(key)

    def put_back(self, queued: QueuedPod, now: float) -> None:
        """A pod could not be placed, for the reasons noted in it: it waits for what may help, or tries again soon."""
        if queued.rejectors:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        queued.timestamp = now
        queued.flushed_at = float("-inf")
        strategy = self._strategy_for_returning(queued)
        self.in_flight.done(queued.key)
        self._requeue(queued, strategy, now)

    def _strategy_for_returning(self, queued: QueuedPod) -> Strategy:
        """What the events while the pod was tried mean to it; whom no plugin rejected tries again anyway."""
        if not queued.rejectors:
            return Strategy.AFTER_BACKOFF
        events = self.in_flight.events_for(queued.key)
        return max((self._worth_requeueing(queued, event) for event in events), default=Strategy.SKIP)

    # -- things happen -----------------------------------------------------------------------------------------------

    def move_all(self, event: ClusterEvent, now: float, only: Callable[[Pod], bool] | None = None) -> None:
        """Something happened in the cluster: let the pods try again that it may help. `only` leaves others out."""
        for group in self.unschedulable.groups():
            strategy = self._worth_requeueing(next(iter(group.values())), event)
            if strategy is not Strategy.SKIP:
                moved = [queued for queued in group.values() if only is None or only(queued.pod)]
                for queued in moved:
                    self._requeue(queued, strategy, now)
        self.in_flight.note(event)

    def activate(self, key: str, now: float) -> bool:
        """Let a pod be tried next, whatever rejected it; whether it is active now."""
        queued = self.unschedulable.get(key) or self.backoff.remove(key)
        return queued is not None and self._move_to_active(queued)

    def flush(self, now: float) -> None:
        """Let the pods try again whose backoff is over, or that have waited too long."""
        for queued in self.backoff.pop_completed(now):
            self.active.push(queued)
        for at, queued in list(self.unschedulable.due(now)):
            queued.flushed_at = at
            self._requeue(queued, Strategy.AFTER_BACKOFF, now)

    def count_vain_retries(self, until: float, is_vain: Callable[[QueuedPod], bool]) -> None:
        """Count the retries up to a time that would fail as the last one did, all but the last, without making them.

        For a stretch in which nothing happens: a pod that waits is tried every `RETRY_EVERY` seconds.
        """
        if self.active or len(self.backoff.rejected) or len(self.backoff.failed) or self.backoff.longest > FLUSH_AFTER:
            return
        for due, queued in self.unschedulable.waiting():
            vain = math.floor((until - due) / RETRY_EVERY)
            if vain > 0 and not queued.is_gated and is_vain(queued):
                queued.attempts += vain
                queued.unschedulable_count += vain
                queued.timestamp, queued.flushed_at = due + (vain - 1) * RETRY_EVERY, NEVER
                self.unschedulable.put(queued)

    def next_flush(self) -> float | None:
        """When `flush` has something to do next; None if not without further events."""
        times = (self.backoff.next_completion(), self.unschedulable.next_flush())
        return min((time for time in times if time is not None), default=None)

    # -- where pods go -----------------------------------------------------------------------------------------------

    def _requeue(self, queued: QueuedPod, strategy: Strategy, now: float) -> None:
        if strategy is Strategy.SKIP:
            self.unschedulable.put(queued)
        elif strategy is Strategy.AFTER_BACKOFF and self.backoff.is_backing_off(queued, now):
            if self._passes_gates(queued):
                self.unschedulable.remove(queued.key)
                self.backoff.add(queued)
        else:
            self._move_to_active(queued)

    def _move_to_active(self, queued: QueuedPod) -> bool:
        if not self._passes_gates(queued):
            return False
        self.unschedulable.remove(queued.key)
        self.active.push(queued)
        return True

    def _passes_gates(self, queued: QueuedPod) -> bool:
        """Ask the PreEnqueue plugins, the one that gated the pod before first; a gated pod goes to the others."""
        plugins = self._frameworks[queued.pod.spec.scheduler_name].pre_enqueue
        if queued.gating_plugin:
            plugins = sorted(plugins, key=lambda plugin: plugin.name != queued.gating_plugin)
        for plugin in plugins:
            status: Status = plugin.pre_enqueue_in(queued.pod, self._cluster)
            if status is not SUCCESS and status != SUCCESS:
                queued.unschedulable_plugins |= {plugin.name}
                queued.gating_plugin = plugin.name
                self.unschedulable.put(queued)
                return False
        queued.gating_plugin = ""
        return True

    def _worth_requeueing(self, queued: QueuedPod, event: ClusterEvent) -> Strategy:
        """Whether an event may change what the plugins said that rejected the pod."""
        rejectors = queued.rejectors
        if not rejectors or event.is_wildcard:
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        interested = self._interested_in(event, queued.pod.spec.scheduler_name, rejectors)
        if queued.is_gated and all(hints.plugin.name != queued.gating_plugin for hints in interested):
            return strategy
        waiting = WaitingPod(queued.pod, queued.info, self._cluster)
        for hints in interested:
            if hints.may_help(waiting, event):
                if hints.plugin.name in queued.pending_plugins:
                    return Strategy.IMMEDIATELY
                strategy = Strategy.AFTER_BACKOFF
                if not queued.pending_plugins:
                    return strategy
        return strategy

    def _interested_in(self, event: ClusterEvent, profile: str, rejectors: frozenset[str]) -> tuple[PluginHints, ...]:
        key = (event.resource, event.action, profile, rejectors)
        found = self._interested.get(key)
        if found is None:
            known = self._hints[profile]
            hints = (known.get(name, UNKNOWN) for name in sorted(rejectors))
            found = self._interested[key] = tuple(each for each in hints if each.is_interested(event))
        return found

    def _group_of(self, queued: QueuedPod) -> Hashable:
        """Pods of one spec, rejected by the same plugins, are helped by the same events; else each is on its own."""
        profile, rejectors = queued.pod.spec.scheduler_name, queued.rejectors
        by_spec = self._by_spec.get((profile, rejectors))
        if by_spec is None:
            known = self._hints[profile]
            by_spec = all(known.get(name, UNKNOWN).goes_by_spec for name in rejectors)
            self._by_spec[profile, rejectors] = by_spec
        # Claims for devices are a pod's own.
        is_alone = not by_spec or queued.info.has_own_objects or queued.pod.spec.resource_claims
        return queued.info, rejectors, queued.pending_plugins, queued.gating_plugin, queued.key if is_alone else ""
