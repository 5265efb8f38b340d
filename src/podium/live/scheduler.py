"""A scheduler at work: the loop on a real clock, and the API server that carries out what it decides."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections import Counter, deque
from collections.abc import Coroutine, Mapping
from typing import Any, NamedTuple

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.config.plugin_args import VolumeBindingArgs
from podium.errors import PodiumError
from podium.framework import SUCCESS
from podium.live import writes
from podium.live.client import ApiClient
from podium.live.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, Metrics
from podium.live.reflector import Reflectors
from podium.live.writes import Condition, EventRecorder, PodStatuses, VolumeWrites
from podium.loop import Bind, Event, EventType, Evict, Instruction, Nominate, SchedulerLoop, Unschedulable
from podium.loop.queued_pod import Assumed
from podium.memory import collector_paused
from podium.model import Pod, ResourceClaim
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.storage.volume_binding import VolumeBinding

logger = logging.getLogger("podium.live")

SLICE = 0.02
"""Seconds of deciding after which answers of the API server get their turn."""
FINISH_WITHIN = 30.0
"""Seconds that bindings under way have when the scheduler is to stop."""
REMEMBERED = 1000
"""How many decisions are kept to be asked for."""


class Settings(NamedTuple):
    """How a scheduler runs."""

    bind_concurrency: int = 64
    """How many pods are bound at once."""
    dry_run: bool = False
    """Whether nothing is written."""


class Decided(NamedTuple):
    """What became of a pod when it was last tried. `at` is seconds since the epoch."""

    at: float
    attempts: int
    node: str = ""
    message: str = ""


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
        self._config, self._options = config, options
        self._statuses, self._recorder = PodStatuses(client), EventRecorder(events_client)
        self._volumes = VolumeWrites(client, reflectors)
        self._slots = asyncio.Semaphore(settings.bind_concurrency)
        self._wake_up = reflectors.has_events
        self._tasks: set[asyncio.Task[None]] = set()
        self._arrived: dict[str, float] = {}
        self.loop: SchedulerLoop | None = None
        """There once `run` has begun to schedule."""
        self.metrics = Metrics(self._gauges)
        self.decided: dict[str, Decided] = {}
        """What became of pods, by namespace and name: the last ones."""
        self._order: deque[str] = deque()

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
        self.loop = loop
        logger.info("scheduling: %d nodes, %d pods, %d pending", cluster.node_count, len(loop.pods), len(loop.queue))
        return loop

    def _take_events(self, loop: SchedulerLoop) -> None:
        events, until = self._reflectors.events, time.monotonic() + SLICE
        while events and (now := time.monotonic()) < until:
            event = events.popleft()
            if isinstance(event.object, Pod):
                self._note_pod(loop, event, event.object, now)
            loop.handle(event, now)

    def _note_pod(self, loop: SchedulerLoop, event: Event, pod: Pod, now: float) -> None:
        if event.type is EventType.DELETE or pod.spec.node_name:
            self._arrived.pop(pod.key, None)
            self._statuses.forget(pod.key)
        elif pod.key not in loop.pods and loop.is_responsible(pod):
            self._came(pod, now)

    def _came(self, pod: Pod, now: float) -> None:
        self._arrived[pod.key] = now
        self.metrics.incoming.labels("active", "PodAdd").inc()

    def _schedule(self, loop: SchedulerLoop) -> bool:
        """Try pods for a while; whether there was anything to do."""
        begin = now = time.monotonic()
        while now < begin + SLICE and loop.has_work(now):
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
                    self._remember(pod.key, Decided(time.time(), attempts, node))
                    if not self._settings.dry_run:
                        self._spawn(self._bind(pod, node, attempts))
                case Unschedulable(pod, message, _, is_error):
                    self._fail(pod, message, is_error=is_error)
                case Nominate(pod, node):
                    if not self._settings.dry_run:
                        self._statuses.nominate(pod, node)
        if evictions:
            self.metrics.preemptions.inc()
            self.metrics.victims.observe(len(evictions))
            if not self._settings.dry_run:
                self._spawn(self._preempt(evictions))

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("unexpected %r while writing", task.exception())

    def _fail(self, pod: Pod, message: str, *, is_error: bool) -> None:
        queued = self.loop.queue.get(pod.key) if self.loop else None
        self._remember(pod.key, Decided(time.time(), queued.attempts if queued else 0, message=message))
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
        try:
            self._check_devices(self.loop, found[1])
            await self._bind_volumes(found[1])
            async with self._slots:
                if pod.key not in self.loop.assumed:
                    # Deleted while it waited for its turn.
                    return
                await self._bind_now(found[1])
        except PodiumError as error:
            self._carry_out(self.loop.bind_failed(pod.key, str(error), time.monotonic()))
            self._wake_up.set()
            return
        self._record(pod, pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.key} to {node}")
        arrived = self._arrived.pop(pod.key, None)
        if arrived is not None:
            label = str(attempts) if attempts < 15 else "15+"
            self.metrics.sli_seconds.labels(label).observe(time.monotonic() - arrived)
        self.metrics.pod_attempts.observe(attempts)

    def _check_devices(self, loop: SchedulerLoop, assumed: Assumed) -> None:
        """Refuse a pod whose device claims would have to be written, and let the claims be as they were."""
        if assumed.state.get(DynamicResources.name) is None:
            return
        for claim in list(loop.cluster.store.of(ResourceClaim).within(assumed.pod.namespace)):
            known = self._reflectors.known("ResourceClaim", claim.key)
            if known is not None and known.object is not claim:
                loop.handle(Event(EventType.UPDATE, known.object), time.monotonic())
        raise PodiumError(f'running PreBind plugin "{DynamicResources.name}": device claims are not written yet')

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
        for pod, by, node in evictions:
            try:
                await writes.preempt(self._client, pod, by)
            except PodiumError as error:
                logger.warning("pod %s cannot be evicted for %s: %s", pod.key, by.key, error)
                if self.loop is not None:
                    self.loop.queue.activate(by.key, time.monotonic())
                    self._wake_up.set()
                return
            note = f"Preempted by pod {by.metadata.uid} on node {node}"
            self._record(pod, by, "Normal", "Preempted", "Preempting", note)

    # -- measuring ---------------------------------------------------------------------------------------------------

    def _measure(self, loop: SchedulerLoop, instructions: list[Instruction], seconds: float) -> None:
        self.metrics.algorithm_seconds.observe(seconds)
        for each in instructions:
            if isinstance(each, Bind):
                result = SCHEDULED
            elif isinstance(each, Unschedulable):
                result = ERROR if each.is_error else UNSCHEDULABLE
                place = "backoff" if loop.queue.backoff.get(each.pod.key) else "unschedulable"
                self.metrics.incoming.labels(place, "ScheduleAttemptFailure").inc()
            else:
                continue
            profile = each.pod.spec.scheduler_name
            self.metrics.attempts.labels(result, profile).inc()
            self.metrics.attempt_seconds.labels(result, profile).observe(seconds)

    def _measure_point(self, point: str, pod: Pod, begin: float) -> None:
        labels = (point, "Success", pod.spec.scheduler_name)
        self.metrics.point_seconds.labels(*labels).observe(time.monotonic() - begin)

    def _remember(self, key: str, decided: Decided) -> None:
        if key not in self.decided:
            self._order.append(key)
            if len(self._order) > REMEMBERED:
                self.decided.pop(self._order.popleft(), None)
        self.decided[key] = decided

    def _gauges(self) -> Mapping[str, Mapping[str, float]]:
        loop = self.loop
        if loop is None:
            return {}
        queue = loop.queue
        gated = sum(1 for queued in queue.unschedulable if queued.is_gated)
        rejectors = Counter(plugin for queued in queue for plugin in queued.rejectors)
        return {
            "scheduler_pending_pods": {
                "active": len(queue.active),
                "backoff": len(queue.backoff),
                "unschedulable": len(queue.unschedulable) - gated,
                "gated": gated,
            },
            "scheduler_cache_size": {
                "nodes": loop.cluster.node_count,
                "pods": len(loop.pods) - len(loop.cluster.pending),
                "assumed_pods": len(loop.assumed),
            },
            "scheduler_unschedulable_pods": {plugin: float(count) for plugin, count in rejectors.items()},
        }
