"""The scheduler of a live cluster: the loop on a real clock, whose instructions are carried out by API calls."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Coroutine, Iterable
from typing import Any, NamedTuple

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.config.plugin_args import VolumeBindingArgs
from podium.errors import PodiumError
from podium.framework import SUCCESS, Plugin, Registry
from podium.live import writes
from podium.live.client import ApiClient
from podium.live.decision_history import Decided, DecisionHistory
from podium.live.device_writes import DeviceWrites, WrittenDynamicResources
from podium.live.metrics import (
    ERROR,
    SCHEDULED,
    UNSCHEDULABLE,
    GaugeValues,
    Metrics,
    PluginTimes,
    event_label,
    gauge_values,
)
from podium.live.reflector import Reflectors
from podium.live.writes import Condition, EventRecorder, PodStatuses, Preemptions, VolumeWrites
from podium.loop import Bind, Event, EventType, Evict, Instruction, Nominate, SchedulerLoop, Unschedulable, Wait
from podium.loop.queued_pod import Assumed
from podium.memory import collector_paused
from podium.model import Pod
from podium.plugins import IN_TREE
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.storage.volume_binding import VolumeBinding

logger = logging.getLogger("podium.live")

SLICE = 0.02
"""Seconds of deciding after which answers of the API server get their turn."""
FINISH_WITHIN = 30.0
"""Seconds that bindings under way have when the scheduler is to stop."""


class Settings(NamedTuple):
    """How a scheduler runs."""

    bind_concurrency: int = 64
    """How many pods are bound at once."""
    dry_run: bool = False
    """Whether nothing is written."""


class LiveScheduler:
    """Schedules the pods of one cluster for as long as `run` runs."""

    def __init__(
        self,
        client: ApiClient,
        events_client: ApiClient,
        reflectors: Reflectors,
        config: KubeSchedulerConfiguration,
        settings: Settings = Settings(),
        **options: Any,
    ) -> None:
        """`options` are those of `Scheduler`: registry, tie_break and so on."""
        self._client, self._reflectors, self._settings = client, reflectors, settings
        self._preemptions = Preemptions()
        if not settings.dry_run:
            plugins = WrittenDynamicResources, self._preemptions.plugin()
            options["registry"] = _replaced(options.get("registry") or IN_TREE, plugins)
        self._config, self._options = config, options
        self._statuses, self._recorder = PodStatuses(client), EventRecorder(events_client)
        self._volumes, self._devices = VolumeWrites(client, reflectors), DeviceWrites(client, reflectors)
        self._slots = asyncio.Semaphore(settings.bind_concurrency)
        self._wake_up = reflectors.has_events
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived: dict[str, float] = {}
        self._waiting: dict[str, float] = {}
        """Since when pods wait at Permit."""
        self.loop: SchedulerLoop | None = None
        """There once `run` has begun to schedule."""
        self.metrics = Metrics(self._gauges)
        self._times = PluginTimes(self.metrics)
        self.history: DecisionHistory | None = None
        """The last decisions; there once `run` has begun to schedule."""

    # -- working -----------------------------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event) -> None:
        """Schedule until told to stop; bindings under way are then finished."""
        loop = self._begin()
        if not self._settings.dry_run:
            self._recorder.start()
        try:
            while not stop.is_set():
                self._reflectors.check()
                self._take_events(loop)
                if not self._schedule(loop):
                    await self._rest(loop, stop)
                await asyncio.sleep(0)
            await self._finish(FINISH_WITHIN)
        finally:
            # Who is no longer the leader must not write: what is under way then is given up.
            await self._finish(0.0)
            loop.close()

    def _begin(self) -> SchedulerLoop:
        """Start from everything there is now."""
        self._reflectors.events.clear()
        with collector_paused():
            cluster = Cluster.from_objects(self._reflectors.objects())
            now = time.monotonic()
            loop = SchedulerLoop(cluster, self._config, now=now, extenders_bind=False, **self._options)
        gc.freeze()
        for pod in cluster.pending.values():
            if loop.is_responsible(pod):
                self._came(pod, now)
        self.metrics.incoming.labels("active", "PodAdd").inc(len(loop.queue.active))
        self._times.measure(loop.scheduler.frameworks)
        self.loop, self.history = loop, DecisionHistory(loop)
        logger.info("scheduling: %d nodes, %d pods, %d pending", cluster.node_count, len(loop.pods), len(loop.queue))
        return loop

    def _take_events(self, loop: SchedulerLoop) -> None:
        events, until = self._reflectors.events, time.monotonic() + SLICE
        while events and (now := time.monotonic()) < until:
            event = events.popleft()
            if isinstance(event.object, Pod):
                self._note_pod(loop, event, event.object, now)
            current = self._devices.current(event)
            if current is not None:
                self._handle(current)

    def _handle(self, event: Event) -> None:
        """Tell the loop what happened, and keep what was before."""
        assert self.loop is not None
        assert self.history is not None
        begin, label = time.monotonic(), event_label(event)
        self.history.happens(event)
        with self.metrics.counting(self.loop.queue, label):
            self.loop.handle(event, begin)
        self.metrics.event_seconds.labels(label).observe(time.monotonic() - begin)

    def _note_pod(self, loop: SchedulerLoop, event: Event, pod: Pod, now: float) -> None:
        if event.type is EventType.DELETE or pod.terminating:
            self._preemptions.pod_goes(pod)
        if event.type is EventType.DELETE or pod.spec.node_name:
            self._arrived.pop(pod.key, None)
            self._statuses.forget(pod.key)
            self._preemptions.give_up(pod)
            self._waiting.pop(pod.key, None)
        elif pod.key not in loop.pods and loop.is_responsible(pod):
            self._came(pod, now)

    def _came(self, pod: Pod, now: float) -> None:
        self._arrived[pod.key] = now

    def _schedule(self, loop: SchedulerLoop) -> bool:
        """Try pods for a while; whether there was anything to do."""
        begin = now = time.monotonic()
        while now < begin + SLICE and loop.has_work(now):
            with self.metrics.counting(loop.queue, "BackoffComplete"):
                loop.queue.flush(now)
            instructions = loop.run_one(now)
            after = time.monotonic()
            if instructions:
                self._measure(loop, instructions, after - now)
                self._carry_out(instructions)
            now = after
        return now != begin or bool(self._reflectors.events)

    async def _rest(self, loop: SchedulerLoop, stop: asyncio.Event) -> None:
        """Wait until something happens or is due."""
        wake_up = loop.next_wake_up()
        self._wake_up.clear()
        if self._reflectors.events or stop.is_set():
            return
        timeout = 1.0 if wake_up is None else min(max(wake_up - time.monotonic(), 0.0), 1.0)
        try:
            await asyncio.wait_for(self._wake_up.wait(), timeout)
        except TimeoutError:
            return

    async def _finish(self, within: float) -> None:
        """Let what is under way finish for so many seconds, then give up the rest."""
        if self._tasks and within:
            logger.info("stopping: %d writes are under way", len(self._tasks))
            await asyncio.wait(self._tasks, timeout=within)
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._statuses.stop(min(within, 1.0))
        await self._recorder.stop(min(within, 5.0))

    # -- carrying out ------------------------------------------------------------------------------------------------

    def _carry_out(self, instructions: list[Instruction]) -> None:
        evictions = [each for each in instructions if isinstance(each, Evict)]
        for instruction in instructions:
            match instruction:
                case Bind(pod, node, attempts):
                    self._note_bound(pod, Decided(time.time(), attempts, node))
                    if not self._settings.dry_run:
                        self._spawn(self._bind(pod, node, attempts))
                case Unschedulable(pod, message, plugins, is_error):
                    self._fail(pod, message, is_error=is_error)
                    if DynamicResources.name in plugins and not self._settings.dry_run and self.loop is not None:
                        self._spawn(self._devices.release(self.loop))
                case Nominate(pod, node):
                    if not self._settings.dry_run:
                        self._statuses.nominate(pod, node)
        if evictions:
            self.metrics.preemptions.inc()
            self.metrics.victims.observe(len(evictions))
            if not self._settings.dry_run:
                self._preemptions.begin(evictions[0].by, [each.pod for each in evictions])
                self._spawn(self._preempt(evictions))

    def _note_bound(self, pod: Pod, decided: Decided) -> None:
        assert self.loop is not None
        assert self.history is not None
        self.history.decided(pod, decided)
        if pod.key in self.loop.assumed:
            self.history.placed(self.loop.assumed[pod.key][1])

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("unexpected %r while writing", task.exception())

    def _fail(self, pod: Pod, message: str, *, is_error: bool) -> None:
        assert self.loop is not None
        assert self.history is not None
        queued = self.loop.queue.get(pod.key)
        self.history.decided(pod, Decided(time.time(), queued.attempts if queued else 0, message=message))
        if self._settings.dry_run:
            return
        reason = writes.SCHEDULER_ERROR if is_error else writes.UNSCHEDULABLE
        self._record(pod, pod, "Warning", "FailedScheduling", "Scheduling", message)
        self._statuses.unschedulable(pod, Condition(reason, message))

    def _record(self, pod: Pod, cause: Pod, kind: str, reason: str, action: str, note: str) -> None:
        """Note an event about a pod, in the name of the profile that scheduled the pod that caused it."""
        known = self._reflectors.known("Pod", pod.key)
        version = known.version if known else ""
        self._recorder.record(pod, version, cause.spec.scheduler_name, kind, reason, action, note)

    async def _bind(self, pod: Pod, node: str, attempts: int) -> None:
        """PreBind and Bind of one pod; the loop is told when that fails."""
        assert self.loop is not None
        found = self.loop.assumed.get(pod.key)
        if found is None:
            return
        assumed = found[1]
        try:
            await self._bind_volumes(assumed)
            await self._bind_devices(self.loop, assumed)
            async with self._slots:
                if pod.key not in self.loop.assumed:
                    # Deleted while it waited for its turn.
                    await self._devices.unreserve(assumed, self.loop)
                    return
                await self._bind_now(assumed)
        except PodiumError as error:
            await self._devices.unreserve(assumed, self.loop)
            if pod.key in self.loop.assumed and self.history is not None:
                self.history.taken_back(assumed)
            self._carry_out(self.loop.bind_failed(pod.key, str(error), time.monotonic()))
            self._wake_up.set()
            return
        self._devices.is_bound(pod)
        self._record(pod, pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.key} to {node}")
        arrived = self._arrived.pop(pod.key, None)
        if arrived is not None:
            label = str(attempts) if attempts < 15 else "15+"
            self.metrics.sli_seconds.labels(label).observe(time.monotonic() - arrived)
        self.metrics.pod_attempts.observe(attempts)

    async def _bind_devices(self, loop: SchedulerLoop, assumed: Assumed) -> None:
        if assumed.state.get(DynamicResources.name) is None:
            return
        pod, begin = assumed.pod, time.monotonic()

        def waits(note: str) -> None:
            self._record(pod, pod, "Normal", "BindingConditionsPending", "Scheduling", note)

        try:
            await self._devices.bind(assumed, loop, self._handle, waits)
        except PodiumError as error:
            raise PodiumError(f'running PreBind plugin "{DynamicResources.name}": {error}') from None
        finally:
            self._measure_point("PreBind", pod, begin)

    async def _bind_volumes(self, assumed: Assumed) -> None:
        if not VolumeBinding.reserved(assumed.state):
            return
        args = next((each.args for each in self._framework_args(assumed.pod)), None)
        timeout = args.bind_timeout_seconds if isinstance(args, VolumeBindingArgs) else 600
        begin = time.monotonic()
        try:
            await self._volumes.bind(assumed, timeout)
        except PodiumError as error:
            raise PodiumError(f'running PreBind plugin "VolumeBinding": {error}') from None
        finally:
            self._measure_point("PreBind", assumed.pod, begin)

    def _framework_args(self, pod: Pod) -> list[Any]:
        assert self.loop is not None
        return [each for each in self.loop.scheduler.framework_of(pod).pre_bind if each.name == VolumeBinding.name]

    async def _bind_now(self, assumed: Assumed) -> None:
        assert self.loop is not None
        begin, is_bound = time.monotonic(), None
        if self._config.extenders:
            is_bound = await asyncio.to_thread(self.loop.bind_by_extender, assumed)
        try:
            if is_bound is None:
                await writes.bind(self._client, assumed.pod, assumed.node)
            elif is_bound != SUCCESS:
                raise PodiumError(is_bound.message)
        except PodiumError as error:
            raise PodiumError(f'running Bind plugin "DefaultBinder": {error}') from None
        finally:
            self._measure_point("Bind", assumed.pod, begin)

    async def _preempt(self, evictions: list[Evict]) -> None:
        """Evict pods for another one, which is tried again at once if that fails."""
        by = evictions[0].by
        try:
            await asyncio.gather(*(self._evict(*each) for each in evictions[:-1]))
            await self._evict(*evictions[-1])
        except PodiumError as error:
            logger.warning("pods cannot be evicted for %s: %s", by.key, error)
            self._preemptions.give_up(by)
            if self.loop is not None:
                self.loop.queue.activate(by.key, time.monotonic())
                self._wake_up.set()

    async def _evict(self, pod: Pod, by: Pod, node: str) -> None:
        await writes.preempt(self._client, pod, by)
        note = f"Preempted by pod {by.metadata.uid} on node {node}"
        self._record(pod, by, "Normal", "Preempted", "Preempting", note)

    # -- measuring ---------------------------------------------------------------------------------------------------

    def _measure(self, loop: SchedulerLoop, instructions: list[Instruction], seconds: float) -> None:
        self.metrics.algorithm_seconds.observe(seconds)
        self._times.attempted(instructions[0].pod.spec.scheduler_name)
        for each in instructions:
            if isinstance(each, Bind):
                result = SCHEDULED
            elif isinstance(each, Unschedulable):
                result = ERROR if each.is_error else UNSCHEDULABLE
                place = "backoff" if loop.queue.backoff.get(each.pod.key) else "unschedulable"
                self.metrics.incoming.labels(place, "ScheduleAttemptFailure").inc()
            else:
                if isinstance(each, Wait):
                    self._waiting[each.pod.key] = time.monotonic()
                continue
            if each.pod.key in self._waiting:
                waited = time.monotonic() - self._waiting.pop(each.pod.key)
                self.metrics.permit_seconds.labels("Success" if result is SCHEDULED else "Unschedulable").observe(
                    waited
                )
            profile = each.pod.spec.scheduler_name
            self.metrics.attempts.labels(result, profile).inc()
            self.metrics.attempt_seconds.labels(result, profile).observe(seconds)

    def _measure_point(self, point: str, pod: Pod, begin: float) -> None:
        labels = (point, "Success", pod.spec.scheduler_name)
        self.metrics.point_seconds.labels(*labels).observe(time.monotonic() - begin)

    def _gauges(self) -> GaugeValues:
        return {} if self.loop is None else gauge_values(self.loop, len(self._tasks))


def _replaced(registry: Registry, plugins: Iterable[type[Plugin]]) -> Registry:
    """The registry with other plugins of the same names."""
    others = {each.name: each for each in plugins}
    made = Registry(others.get(name, each) for name, each in registry.items())
    made.asked_for = registry.asked_for
    return made
