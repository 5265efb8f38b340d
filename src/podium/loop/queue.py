"""kube-scheduler's scheduling queue, on a clock that the caller owns."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from enum import IntEnum
from functools import partial

from podium.cluster import Cluster, PodInfo
from podium.engine.decision import Diagnosis
from podium.framework.events import ClusterEvent, WaitingPod
from podium.framework.plugin import FilterPlugin, PermitPlugin, Plugin, PreEnqueuePlugin, PreFilterPlugin, ReservePlugin
from podium.framework.registry import Framework
from podium.framework.status import SUCCESS, Status
from podium.loop.events import ASSIGNED, TARGET, PluginHints, RequeueFilter, label_of, pod_changes
from podium.loop.pod_groups import GroupQueue, QueuedGroup
from podium.loop.queued_pod import (
    NEVER,
    WINDOW,
    BackoffQueue,
    BackoffTimes,
    Heap,
    InFlight,
    PodGroup,
    Position,
    QueuedPod,
)
from podium.model import Pod
from podium.model import PodGroup as PodGroupObject
from podium.plugins import IN_TREE
from podium.plugins.priority_sort import PrioritySort

FLUSH_AFTER = 300.0
"""After this many seconds a pod is tried again even without an event."""
FLUSH_EVERY = 30.0
"""Seconds between two checks for pods that have waited too long."""
RETRY_EVERY = FLUSH_AFTER + FLUSH_EVERY
"""Seconds between two attempts of a pod that nothing helps: the flush happens at the first check after FLUSH_AFTER."""


class UnschedulablePods:
    """Pods by namespace and name, in groups of pods that every event affects in the same way. Times are in seconds."""

    def __init__(self, start: float) -> None:
        self._start = start
        self._pods: dict[str, Hashable] = {}
        """The group of each pod."""
        self._groups: dict[Hashable, PodGroup] = {}

    def __len__(self) -> int:
        return len(self._pods)

    def __contains__(self, key: str) -> bool:
        return key in self._pods

    def __iter__(self) -> Iterator[QueuedPod]:
        return (self._groups[group].get(key) for key, group in self._pods.items())

    @property
    def gated_count(self) -> int:
        return sum(len(group) for group in self._groups.values() if group.example.is_gated)

    def get(self, key: str) -> QueuedPod | None:
        group = self._pods.get(key)
        return None if group is None else self._groups[group].get(key)

    def groups(self) -> list[PodGroup]:
        return list(self._groups.values())

    def key_of(self, group: PodGroup) -> Hashable:
        """What the pods of a group had in common when they were put there."""
        return self._pods[group.example.key]

    def put(self, queued: QueuedPod, group: Hashable) -> None:
        """Add a pod to a group, or move it there."""
        self.remove(queued.key)
        found = self._groups.get(group)
        if found is None:
            found = self._groups[group] = PodGroup()
        found.add(queued)
        self._pods[queued.key] = group

    def remove(self, key: str) -> QueuedPod | None:
        """Remove a pod and return it, up to date; None if it is not here."""
        group = self._pods.pop(key, None)
        if group is None:
            return None
        queued = self._groups[group].remove(key)
        if not len(self._groups[group]):
            del self._groups[group]
        return queued

    # -- pods to be tried where they are -----------------------------------------------------------------------------

    def woken(self) -> list[PodGroup]:
        """The groups with woken pods."""
        return [group for group in self._groups.values() if group.woken_count]

    def is_woken(self, key: str) -> bool:
        group = self._pods.get(key)
        return group is not None and self._groups[group].is_woken(key)

    # -- waiting too long --------------------------------------------------------------------------------------------

    def waiting(self) -> list[tuple[float, QueuedPod]]:
        """The pods that no event woke, and the time when each will have waited too long."""
        return self._waiting(self._groups.values())

    def _waiting(self, groups: Iterable[PodGroup]) -> list[tuple[float, QueuedPod]]:
        return [(self.flush_time(max(one.timestamp, one.flushed_at)), one) for group in groups for one in group.idle()]

    def due(self, now: float) -> list[tuple[float, QueuedPod]]:
        """The pods that have waited too long, and the time when that was noticed, earliest first."""
        groups = [group for group in self._groups.values() if self.flush_time(group.earliest) <= now]
        found = [each for each in self._waiting(groups) if each[0] <= now]
        return sorted(found, key=lambda each: (each[0], each[1].number))

    def next_flush(self) -> float | None:
        """The time when the next pod has waited too long."""
        earliest = min([group.earliest for group in self._groups.values()], default=math.inf)
        return None if earliest == math.inf else self.flush_time(earliest)

    def flush_time(self, since: float) -> float:
        """When a pod that has waited since a time has waited too long."""
        if since == math.inf:
            return since
        looks = math.floor((since + FLUSH_AFTER - self._start) / FLUSH_EVERY) + 1
        return self._start + looks * FLUSH_EVERY


REJECTING = (PreEnqueuePlugin, PreFilterPlugin, FilterPlugin, ReservePlugin, PermitPlugin)
"""The kinds of plugins that can reject a pod; their events count."""
NO_PLUGIN_HINTS = PluginHints(Plugin())
"""The hints of extenders, which are not plugins: any event may change their answer."""

ACTIVE, BACKOFF, UNSCHEDULABLE = "active", "backoff", "unschedulable"
"""The parts of the queue, as named in kube-scheduler's metrics."""
POD_ADDED, FAILED = "UnscheduledPodAdd", "ScheduleAttemptFailure"
BACKOFF_IS_OVER, POPPED_EARLY = "BackoffComplete", "PopFromBackoffQ"
WAITED_TOO_LONG, ACTIVATED = "UnschedulableTimeout", "ForceActivate"
"""Causes besides cluster events that move a pod to a part of the queue, as named in kube-scheduler's metrics."""


class Strategy(IntEnum):
    """What an event means for a waiting pod."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


class SchedulingQueue:
    """Pods without a node: those to try now (active), later (backoff), or after an event that may help (unschedulable).

    Every method that depends on the time takes it as an argument, in seconds; time must not go backwards. A pod is in
    one place only: active, backing off, unschedulable (including gated pods), or in flight, which is from `pop` to
    `done`.
    """

    def __init__(
        self,
        frameworks: Mapping[str, Framework],
        cluster: Cluster,
        *,
        initial_backoff: float = 1.0,
        max_backoff: float = 10.0,
        start: float = 0.0,
        kind_of: Callable[[PodInfo, str], Hashable] = lambda info, profile: info,
    ) -> None:
        """`kind_of` is equal for pods of a profile that fit alike for now; by default, for pods of one spec."""
        self._kind_of = kind_of
        self._frameworks, self._cluster, self.start = frameworks, cluster, start
        first = next(iter(frameworks.values()))
        (queue_sort,), self._rules = first.queue_sort, first.rules
        self.active: Heap[QueuedPod] = Heap(queue_sort.sort_key)
        self._pops_early = self._rules.pops_from_backoff
        times = BackoffTimes(
            initial_backoff,
            max_backoff,
            window=WINDOW if self._pops_early else 0.0,
            start=start,
            fewest=0 if self._rules.untried_pods_do_not_back_off else 1,
            ends_late=self._rules.backoff_ends_late,
        )
        self.backoff = BackoffQueue(times, queue_sort.sort_key)
        self.unschedulable = UnschedulablePods(start)
        self._sort_key = queue_sort.sort_key
        self.groups = GroupQueue(
            times,
            queue_sort.sort_key,
            self.find_group,
            self._passes_pre_enqueue,
            checks_gates_before_backoff=self._pops_early,
        )
        """The PodGroups with waiting pods, where the release schedules groups."""
        self.in_flight = InFlight()
        self._moved_since_pop = False
        """Without hints: whether an event that any plugin registered for happened since the last `pop`."""
        self._hints = {
            name: {plugin.name: PluginHints(plugin) for plugin in framework.plugins.values()}
            for name, framework in frameworks.items()
        }
        self._interested: dict[Hashable, tuple[PluginHints, ...]] = {}
        self._by_spec: dict[tuple[str, frozenset[str]], bool] = {}
        """Per profile and set of rejecting plugins, whether the hints of all of them depend only on a pod's spec."""
        self.arrivals = 0
        """How many pods have been added so far."""
        self.incoming: Counter[tuple[str, ...]] = Counter()
        """How many pods entered each part, by cause; both under kube-scheduler's names."""
        self._can_try_groups = (
            self._pops_early
            and type(queue_sort) is PrioritySort
            and all(IN_TREE.get(p.name) is type(p) for each in frameworks.values() for p in each.pre_enqueue)
        )
        self._tries_groups = False

    def __len__(self) -> int:
        """The number of waiting pods, without those in flight."""
        return len(self.active) + len(self.backoff) + len(self.unschedulable) + len(self.groups)

    def __iter__(self) -> Iterator[QueuedPod]:
        yield from self.active
        yield from self.backoff
        yield from self.unschedulable
        yield from self.groups

    def get(self, key: str) -> QueuedPod | None:
        """A waiting pod, by namespace/name."""
        return self.active.get(key) or self.backoff.get(key) or self.unschedulable.get(key)

    def try_groups(self) -> None:
        """From now on, wake pods of a group in place instead of moving each, unless plugins want another order.

        The order of attempts stays the same, but woken pods are not in `active` or `backoff`. For callers that have
        every pod tried before time goes on.
        """
        self._tries_groups = self._can_try_groups

    # -- pods come and go --------------------------------------------------------------------------------------------

    def add(self, pod: Pod, now: float) -> QueuedPod:
        """Add a new pod: it is active, unless a plugin gates it."""
        self.arrivals += 1
        queued = QueuedPod(pod, self._cluster.info_of(pod), self.arrivals, now)
        if self.is_member(pod):
            self.groups.add(queued, now)
        else:
            self._move_to_active(queued, POD_ADDED, now)
        return queued

    def is_member(self, pod: Pod) -> bool:
        """Whether a pod is queued as part of its PodGroup."""
        return pod.spec.scheduling_group is not None and self._rules.pod_groups

    def update(self, old: Pod, new: Pod, now: float) -> None:
        """Update a waiting pod; a pod that fitted nowhere may fit now."""
        events = pod_changes(old, new, self._rules)
        if new.key in self.in_flight:
            for event in events:
                self.in_flight.note(event)
            return
        if self.is_member(old):
            self._update_member(new, events, now)
            return
        if self.unschedulable.is_woken(new.key):
            self._bring(new.key, now)
        queued = self.get(new.key)
        if queued is None:
            self.add(new, now)
            return
        queued.pod, queued.info = new, self._cluster.info_of(new)
        if new.key in self.active:
            self.active.push(queued)
        elif self.backoff.remove(new.key):
            self.backoff.add(queued)
        elif not self._rules.own_updates_ask_hints:
            self.put_unschedulable(queued)
            before, after = old.status.resource_claim_statuses, new.status.resource_claim_statuses
            if (old.spec, old.metadata, before) != (new.spec, new.metadata, after):
                self._requeue(queued, Strategy.AFTER_BACKOFF, now, label_of(events[0], TARGET))
        else:
            self.put_unschedulable(queued)
            for event in events:
                self._requeue(queued, self._worth_requeueing(queued, event), now, label_of(event, TARGET))
                if new.key not in self.unschedulable:
                    break

    def _update_member(self, new: Pod, events: list[ClusterEvent], now: float) -> None:
        queued = self.groups.get(new)
        if queued is None:
            self.add(new, now)
            return
        queued.pod, queued.info = new, self._cluster.info_of(new)
        self.groups.update(queued, now, lambda group: any(self._is_worth_for_group(group, each) for each in events))

    def remove(self, key: str) -> None:
        """Remove a pod that is gone, or was placed by another scheduler."""
        self.active.remove(key) or self.backoff.remove(key) or self.unschedulable.remove(key)

    # -- groups ------------------------------------------------------------------------------------------------------

    def note_group(self, old: PodGroupObject | None, new: PodGroupObject | None, now: float) -> None:
        """A PodGroup was added (`old` is None), changed or deleted (`new` is None)."""
        if not self._rules.pod_groups:
            return
        if old is None and new is not None:
            self.groups.group_added(new, now)
        elif new is not None:
            self.groups.group_updated(new)
        elif old is not None:
            self.groups.group_deleted(old)

    def find_group(self, key: str) -> PodGroupObject | None:
        """A PodGroup by namespace/name."""
        namespace, _, name = key.partition("/")
        return self._cluster.store.of(PodGroupObject).get(name, namespace)

    @property
    def is_group_next(self) -> bool:
        """Whether a group comes before all pods that `pop` could return."""
        group = self.groups.active.first()
        if group is None:
            return False
        pod = self.active.first()
        if pod is None:
            return True
        return (self._sort_key(group), group.number) < (self._sort_key(pod), pod.number)

    def pop_group(self) -> QueuedGroup | None:
        """Take the next group if it comes before all pods; the caller must call `groups.put_back` for it, and `done` or
        `put_back` for each of its pods.
        """
        group = self.groups.pop() if self.is_group_next else None
        if group is not None:
            for member in group.members:
                self.in_flight.start(member.key)
            self._moved_since_pop = False
        return group

    def _is_worth_for_group(self, group: QueuedGroup, event: ClusterEvent) -> bool:
        """Whether an event may change the answer of a plugin that rejected one of the pods."""
        return any(self._hinted(member, event) is not Strategy.SKIP for member in group.members)

    def _is_worth_for_gated_group(self, group: QueuedGroup, event: ClusterEvent) -> bool:
        """The same, for an event that the gating plugin registered."""
        profile = group.members[0].pod.spec.scheduler_name
        gating = self._interested_in(event, profile, frozenset((group.gating_plugin,)))
        return (event.is_wildcard or bool(gating)) and self._is_worth_for_group(group, event)

    # -- pods are tried ----------------------------------------------------------------------------------------------

    @property
    def has_next(self) -> bool:
        """Whether there is a pod to try now: an active pod or, if there is none, a pod whose backoff may be cut
        short.
        """
        return bool(
            self.active or self.groups.active or (self._pops_early and self.backoff.rejected) or self.woken_groups()
        )

    def pop(self) -> QueuedPod | None:
        """Take the next pod to try; the caller must call `done` or `put_back` for it."""
        queued = self.active.pop() or (self._pop_early() if self._pops_early else None)
        if queued is not None:
            queued.attempts += 1
            self.in_flight.start(queued.key)
            self._moved_since_pop = False
        return queued

    def _pop_early(self) -> QueuedPod | None:
        queued = self.backoff.rejected.pop()
        if queued is not None:
            self.incoming[ACTIVE, POPPED_EARLY] += 1
        return queued

    def first(self) -> QueuedPod | None:
        """The pod that `pop` would return; None if there is none, or a group comes first."""
        if self.groups.active and self.is_group_next:
            return None
        if self.active:
            return self.active.first()
        return self.backoff.rejected.first() if self._pops_early else None

    def reject_first(self, diagnosis: Diagnosis, now: float) -> None:
        """Record that plugins rejected the first pod: the same as `pop` and `put_back`."""
        queued = self.active.pop() if self.active else self._pop_early()
        if queued is not None:
            queued.attempts += 1
            self._moved_since_pop = False
            self._count_failure(queued, is_rejected=True)
            queued.unschedulable_plugins = diagnosis.unschedulable_plugins
            queued.pending_plugins, queued.gating_plugin = diagnosis.pending_plugins, ""
            queued.timestamp, queued.flushed_at, queued.message = now, NEVER, diagnosis.message
            self._put_aside(queued, FAILED)

    # -- pods are tried where they are -------------------------------------------------------------------------------

    def woken_groups(self) -> list[PodGroup]:
        """The groups with woken pods."""
        return self.unschedulable.woken() if self._tries_groups else []

    def split_outdated(self, now: float) -> None:
        """Split the groups with woken pods that a filter can tell apart since they were put there."""
        for group in self.woken_groups():
            if self.unschedulable.key_of(group) != self._group_of(group.example):
                for queued in list(group.pods):
                    if group.is_woken(queued.key):
                        self._bring(queued.key, now)
                    else:
                        self.put_unschedulable(group.get(queued.key))

    def first_position(self) -> Position | None:
        """The position of the pod that `pop` would return; woken pods may come before it."""
        queued = self.groups.active.first() if self.groups.active and self.is_group_next else self.first()
        if queued is None:
            return None
        until = NEVER if isinstance(queued, QueuedGroup) or self.active else self.backoff.times.until(queued)
        return Position(until, -queued.pod.priority, queued.timestamp, queued.number)

    def reject_woken(
        self, group: PodGroup, diagnosis: Diagnosis, before: Position | None, now: float
    ) -> list[tuple[Position, QueuedPod]]:
        """Record that plugins rejected the woken pods of a group up to a position; None for all of them.

        Returns the pods whose message changed, each with its position.
        """
        self._moved_since_pop = False
        rejectors = group.example.unschedulable_plugins, group.example.pending_plugins
        if rejectors == (diagnosis.unschedulable_plugins, diagnosis.pending_plugins):
            return group.reject(diagnosis, before, now)
        # The rejecting plugins changed, so these pods belong to another group from now on.
        keys = set(group.keys_before(before))
        changed = group.reject(diagnosis, before, now)
        for queued in [each for each in group.pods if each.key in keys]:
            self.unschedulable.remove(queued.key)
            queued.unschedulable_plugins, queued.pending_plugins = (
                diagnosis.unschedulable_plugins,
                diagnosis.pending_plugins,
            )
            self.put_unschedulable(queued)
        return changed

    def _bring(self, key: str, now: float) -> None:
        """Move a woken pod to where `pop` finds it."""
        queued = self.unschedulable.remove(key)
        if queued is not None:
            self.backoff.add(queued) if self.backoff.times.is_backing_off(queued, now) else self.active.push(queued)

    def bring_first(self, group: PodGroup, now: float) -> None:
        """Make the first woken pod of a group the one that `pop` returns; no other pod may come before it."""
        self._bring(group.first()[1], now)

    def done(self, key: str) -> None:
        """Drop a pod that was popped and need not come back."""
        self.in_flight.done(key)

    def put_back(self, queued: QueuedPod, now: float) -> None:
        """Put back a pod that could not be placed, for the reasons noted in it: it waits for an event, or for its
        backoff.
        """
        self._count_failure(queued, is_rejected=bool(queued.rejectors))
        queued.timestamp = now
        queued.flushed_at = NEVER
        if self.is_member(queued.pod):
            self.in_flight.done(queued.key)
            self.groups.add(queued, now)
            return
        strategy = self._strategy_for_returning(queued)
        self.in_flight.done(queued.key)
        self._requeue(queued, strategy, now, FAILED)

    def _count_failure(self, queued: QueuedPod, *, is_rejected: bool) -> None:
        if not self._rules.backoff_counts_failures_apart:
            queued.unschedulable_count = queued.attempts
        elif is_rejected:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1

    def _strategy_for_returning(self, queued: QueuedPod) -> Strategy:
        """What the events during the attempt mean for the pod; a pod that no plugin rejected is tried again anyway."""
        if not queued.rejectors:
            return Strategy.AFTER_BACKOFF
        if not self._rules.queueing_hints:
            return Strategy.AFTER_BACKOFF if self._moved_since_pop else Strategy.SKIP
        events = self.in_flight.events_for(queued.key)
        return max((self._worth_requeueing(queued, event) for event in events), default=Strategy.SKIP)

    # -- things happen -----------------------------------------------------------------------------------------------

    def move_all(self, event: ClusterEvent, now: float, only: RequeueFilter | None = None) -> None:
        """Try again the pods that an event may help. With `only`, pods for which it returns False are left out."""
        for group in self.unschedulable.groups():
            if group.woken_count == len(group):
                continue
            strategy = self._worth_requeueing(group.example, event)
            if strategy is Strategy.SKIP:
                continue
            if self._tries_groups and only is None and self._can_wake(group.example):
                group.wake(partial(self.backoff.times.ends, now))
                continue
            for queued in group.idle():
                if only is None or only(queued):
                    self._requeue(queued, strategy, now, label_of(event, ASSIGNED))
        if self.groups.gated:
            self._move_groups(event, now, only)
        self.in_flight.note(event)
        if not self._rules.queueing_hints and not self._moved_since_pop:
            self._moved_since_pop = any(
                isinstance(hints.plugin, REJECTING) and hints.is_interested(event)
                for of_profile in self._hints.values()
                for hints in of_profile.values()
            )

    def _move_groups(self, event: ClusterEvent, now: float, only: RequeueFilter | None) -> None:
        def is_worth(group: QueuedGroup, event: ClusterEvent) -> bool:
            is_told = only is None or any(map(only, group.members))
            return is_told and self._is_worth_for_gated_group(group, event)

        self.groups.move_all(event, now, is_worth)

    def activate(self, key: str, now: float) -> bool:
        """Try a pod next, whatever rejected it; returns whether it is active now."""
        queued = self.unschedulable.remove(key) or self.backoff.remove(key)
        return queued is not None and self._move_to_active(queued, ACTIVATED, now)

    def flush(self, now: float) -> None:
        """Try again the pods whose backoff is over, or that have waited too long."""
        for queued in self.backoff.pop_completed(now):
            if not self._pops_early:
                self._move_to_active(queued, BACKOFF_IS_OVER, now)
                continue
            self.active.push(queued)
            self.incoming[ACTIVE, BACKOFF_IS_OVER] += 1
        if self.groups:
            self.groups.flush(now, self.unschedulable.flush_time)
        for at, queued in self.unschedulable.due(now):
            self._moved_since_pop = True
            self.unschedulable.remove(queued.key)
            queued.flushed_at = at
            self._requeue(queued, Strategy.AFTER_BACKOFF, now, WAITED_TOO_LONG)

    def count_vain_retries(self, until: float, is_vain: Callable[[QueuedPod], bool]) -> None:
        """Count retries until a time that would fail like the last one, all but the last of them, without making them.

        For a period without events: a waiting pod is tried every `RETRY_EVERY` seconds.
        """
        coming = (
            self.active
            or self.groups
            or self.unschedulable.woken()
            or len(self.backoff.rejected)
            or len(self.backoff.failed)
        )
        if coming or self.backoff.times.longest > FLUSH_AFTER:
            return
        for due, queued in self.unschedulable.waiting():
            vain = math.floor((until - due) / RETRY_EVERY)
            if vain > 0 and not queued.is_gated and is_vain(queued):
                self.unschedulable.remove(queued.key)
                queued.attempts += vain
                queued.unschedulable_count += vain
                queued.timestamp, queued.flushed_at = due + (vain - 1) * RETRY_EVERY, NEVER
                self.put_unschedulable(queued)

    def next_flush(self) -> float | None:
        """The next time when `flush` has something to do; None if there is none without further events."""
        times = (
            self.backoff.next_completion(),
            self.unschedulable.next_flush(),
            self.groups.next_flush(self.unschedulable.flush_time),
        )
        return min((time for time in times if time is not None), default=None)

    # -- where pods go -----------------------------------------------------------------------------------------------

    def _requeue(self, queued: QueuedPod, strategy: Strategy, now: float, event: str) -> None:
        if strategy is Strategy.SKIP:
            self._put_aside(queued, event)
        elif strategy is Strategy.AFTER_BACKOFF and self.backoff.times.is_backing_off(queued, now):
            # In releases where pods leave their backoff only at its end, gates are checked then.
            if not self._pops_early or self._passes_gates(queued, event):
                self.unschedulable.remove(queued.key)
                self.backoff.add(queued)
                self.incoming[BACKOFF, event] += 1
        else:
            self._move_to_active(queued, event, now)

    def _move_to_active(self, queued: QueuedPod, event: str, now: float) -> bool:
        if not self._passes_gates(queued, event):
            return False
        self.unschedulable.remove(queued.key)
        self.active.push(queued)
        if queued.active_since is None:
            queued.active_since = now
        self.incoming[ACTIVE, event] += 1
        return True

    def put_unschedulable(self, queued: QueuedPod) -> None:
        """Put a pod among the unschedulable ones, in its current group."""
        self.unschedulable.put(queued, self._group_of(queued))

    def _put_aside(self, queued: QueuedPod, event: str) -> None:
        """Let a pod wait for an event that may help it."""
        if queued.key not in self.unschedulable:
            self.incoming[UNSCHEDULABLE, event] += 1
        self.put_unschedulable(queued)

    def _passes_gates(self, queued: QueuedPod, event: str) -> bool:
        """Run the PreEnqueue plugins, first the one that gated the pod before; a gated pod is moved to the
        unschedulable pods.
        """
        if self._passes_pre_enqueue(queued):
            return True
        self._put_aside(queued, event)
        return False

    def _passes_pre_enqueue(self, queued: QueuedPod) -> bool:
        plugins = self._frameworks[queued.pod.spec.scheduler_name].pre_enqueue
        if queued.gating_plugin:
            plugins = sorted(plugins, key=lambda plugin: plugin.name != queued.gating_plugin)
        for plugin in plugins:
            status: Status = plugin.pre_enqueue_in(queued.pod, self._cluster)
            if status is not SUCCESS and status != SUCCESS:
                queued.unschedulable_plugins |= {plugin.name}
                queued.gating_plugin = plugin.name
                return False
        queued.gating_plugin = ""
        return True

    def _worth_requeueing(self, queued: QueuedPod, event: ClusterEvent) -> Strategy:
        """Whether an event may change the answer of the plugins that rejected the pod."""
        if queued.is_gated and not event.is_wildcard:
            profile = queued.pod.spec.scheduler_name
            if not self._interested_in(event, profile, frozenset((queued.gating_plugin,))):
                return Strategy.SKIP
        return self._hinted(queued, event)

    def _hinted(self, queued: QueuedPod, event: ClusterEvent) -> Strategy:
        """The hints of the plugins that rejected the pod."""
        rejectors = queued.rejectors
        if not rejectors or event.is_wildcard:
            return Strategy.AFTER_BACKOFF
        strategy = Strategy.SKIP
        interested = self._interested_in(event, queued.pod.spec.scheduler_name, rejectors)
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
            hints = (known.get(name, NO_PLUGIN_HINTS) for name in sorted(rejectors))
            found = self._interested[key] = tuple(each for each in hints if each.is_interested(event))
        return found

    def _can_wake(self, queued: QueuedPod) -> bool:
        """Whether the pods of a pod's group can be woken in place: no plugin gates them or lets them skip the
        backoff.
        """
        return self._fares_alike(queued) and not queued.is_gated and not queued.pending_plugins

    @staticmethod
    def _fares_alike(queued: QueuedPod) -> bool:
        """Whether all pods of this spec fit, or do not fit, for the same reasons."""
        pod = queued.pod
        is_own = queued.info.has_own_objects or pod.spec.resource_claims or pod.status.nominated_node_name
        return not (is_own or pod.terminating)

    def _group_of(self, queued: QueuedPod) -> Hashable:
        """The group of a pod: pods of one kind, rejected by the same plugins, are helped by the same events; other pods
        are alone.
        """
        profile, rejectors = queued.pod.spec.scheduler_name, queued.rejectors
        by_spec = self._by_spec.get((profile, rejectors))
        if by_spec is None:
            known = self._hints[profile]
            by_spec = all(known.get(name, NO_PLUGIN_HINTS).goes_by_spec for name in rejectors)
            self._by_spec[profile, rejectors] = by_spec
        # A pod's resource claims and its nomination are its own.
        is_alone = not by_spec or not self._fares_alike(queued)
        kind = queued.info if is_alone else self._kind_of(queued.info, profile)
        return kind, profile, rejectors, queued.pending_plugins, queued.gating_plugin, queued.key if is_alone else ""
