"""The loop at work on a live cluster: on a real clock, with its instructions carried out by API calls."""

from __future__ import annotations

import asyncio
import gc
import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any, NamedTuple

from podium.answers.explanation import explain_pod
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.config.plugin_args import VolumeBindingArgs
from podium.errors import PodiumError
from podium.framework import SKIP, SUCCESS, Code, CycleState, Plugin, PostBindPlugin, Registry, Status
from podium.framework.plugin import PLUGIN_FAULTS
from podium.live.binding import bind
from podium.live.client import ApiClient
from podium.live.decision_history import Decided, DecisionHistory
from podium.live.device_writes import DeviceWrites, WrittenDynamicResources
from podium.live.event_recorder import EventRecorder
from podium.live.metrics import ERROR, SCHEDULED, UNSCHEDULABLE, Metrics, PluginTimes, Values, event_labels, values_now
from podium.live.pod_group_conditions import write_condition
from podium.live.pod_statuses import NOT_SCHEDULABLE, SCHEDULER_ERROR, PodStatuses, UnscheduledCondition
from podium.live.preemptions import Preemptions, preempt
from podium.live.reflector import Reflectors
from podium.live.refused_writes import RefusedWrites
from podium.live.repeated_warnings import RepeatedWarnings
from podium.live.threads import DaemonThreads
from podium.live.volume_writes import VolumeWrites
from podium.loop import Bind, Event, EventType, Evict, Instruction, Nominate, SchedulerLoop, Unschedulable, Wait
from podium.loop.cycle import answer_of, with_plugin
from podium.loop.events import SetCondition
from podium.loop.queued_pod import Assumed
from podium.memory import collector_paused
from podium.model import Pod, PodGroup
from podium.model.pod_groups import Condition
from podium.plugins import IN_TREE
from podium.plugins.default_binder import BINDER, DefaultBinder
from podium.plugins.default_preemption import DefaultPreemption
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.storage.volume_binding import VolumeBinding
from podium.present.explanation import to_document

logger = logging.getLogger("podium.live")

SLICE = 0.02
"""Seconds of deciding after which answers of the API server are handled."""
FINISH_WITHIN = 10.0
"""Seconds for requests that were sent to be answered when the scheduler stops."""
TELL_WITHIN = 0.5
"""Seconds for statuses and events to be written then."""
SLOW_DECISION = 10.0
"""Seconds after which a decision is reported as slow."""


class RunSettings(NamedTuple):
    """How a scheduler runs."""

    bind_concurrency: int = 64
    """How many pods are bound at a time."""
    dry_run: bool = False
    """Whether to write nothing."""
    preempts: bool = True
    """Whether pods may be evicted for others."""


class Scheduling:
    """Schedules the pods of one cluster from its current state on, while `run` runs."""

    def __init__(
        self,
        client: ApiClient,
        events_client: ApiClient,
        reflectors: Reflectors,
        config: KubeSchedulerConfiguration,
        settings: RunSettings,
        metrics: Metrics,
        options: dict[str, Any],
    ) -> None:
        """Start from all current objects. `options` are those of `Scheduler`: registry, tie_break and so on."""
        writing = RefusedWrites(client)
        self._requests, self._client, self._reflectors, self._settings = client, writing, reflectors, settings
        self._warnings = RepeatedWarnings()
        options = dict(options)
        self._preemptions = Preemptions(is_allowed=settings.preempts)
        if not settings.dry_run:
            plugins = WrittenDynamicResources, self._preemptions.plugin()
            options["registry"] = _replaced(options.get("registry") or IN_TREE, plugins)
        self._config = config
        self._statuses, self._recorder = PodStatuses(writing), EventRecorder(RefusedWrites(events_client))
        self._volumes, self._devices = VolumeWrites(writing, reflectors), DeviceWrites(writing, reflectors)
        self._slots = asyncio.Semaphore(settings.bind_concurrency)
        self._wake_up = reflectors.has_events
        self._tasks: set[asyncio.Task[None]] = set()
        self._in_threads: set[asyncio.Task[Any] | None] = set()
        """The tasks that wait for a user's plugin."""
        self._waiting: dict[str, float] = {}
        """The times since which pods wait at Permit."""
        self._expecting: set[str] = set()
        """The uids of pods whose status names the node that they are about to be bound to."""
        self._threads = DaemonThreads(settings.bind_concurrency, "binding")
        """The threads in which the user's plugins run during binding."""
        self._deciding = DaemonThreads(1, "deciding")
        """The thread that decides where extenders or plugins of users take part: their calls may take long."""
        self._explaining = DaemonThreads(1, "explaining")
        self._turn = asyncio.Lock()
        """Held by whoever reads or changes the loop while a decision may be under way in its thread."""
        self._last_turn: float | None = None
        """When the scheduler last went on to something else, on the monotonic clock; None while it does not run."""
        self._event_loop = asyncio.get_running_loop()
        self._went_back = reflectors.went_back
        self.metrics = metrics
        self._times = PluginTimes(metrics)
        self.loop = self._new_loop(options)
        self.history = DecisionHistory(self.loop)
        self._decides_in_thread = bool(config.extenders) or _has_plugins_of_users(self.loop)

    def _new_loop(self, options: dict[str, Any]) -> SchedulerLoop:
        with collector_paused():
            cluster = Cluster.from_objects(self._reflectors.begin())
            now = time.monotonic()
            loop = SchedulerLoop(cluster, self._config, now=now, runs_binding=False, **options)
        gc.freeze()
        self._times.measure(loop.scheduler.frameworks)
        logger.info("scheduling: %d nodes, %d pods, %d pending", cluster.node_count, len(loop.pods), len(loop.queue))
        return loop

    # -- working -----------------------------------------------------------------------------------------------------

    async def run(self, stop: asyncio.Event) -> bool:
        """Schedule until told to stop, or until the API server went back to an older state; bindings that were sent
        are then finished. Returns whether all of them were.
        """
        if not self._settings.dry_run:
            self._recorder.start()
        stopping = asyncio.create_task(stop.wait())
        stopping.add_done_callback(lambda _: self._wake_up.set())
        try:
            while not stop.is_set() and self._reflectors.went_back == self._went_back:
                self._reflectors.check()
                self._last_turn = time.monotonic()
                async with self._turn:
                    with PLUGIN_FAULTS:
                        self._take_events()
                        has_worked = await self._schedule(stop)
                if not has_worked:
                    await self._rest(stop)
                await asyncio.sleep(0)
            return await self._hand_over()
        finally:
            stopping.cancel()
            await self._give_up()
            self._last_turn = None
            for threads in (self._threads, self._deciding, self._explaining):
                threads.shutdown()
            self.loop.close()

    def _take_events(self) -> None:
        events, until = self._reflectors.events, time.monotonic() + SLICE
        while events and time.monotonic() < until:
            event = events.popleft()
            if isinstance(event.object, Pod):
                self._note_pod(event, event.object)
            current = self._devices.current(event)
            if current is not None:
                self._handle(current)

    def _handle(self, event: Event) -> None:
        """Pass an event to the loop, and keep the object before it."""
        begin, item, rules = time.monotonic(), event.object, self.loop.scheduler.setup.rules
        before = self.history.happens(event)
        if isinstance(item, Pod):
            # The pod as reported, without the node that it counts on.
            labels = event_labels(event, self.loop.pods.get(item.key), rules, is_ours=self.loop.is_responsible(item))
        else:
            labels = event_labels(event, before, rules)
        self.loop.handle(event, begin)
        seconds = time.monotonic() - begin
        for label in labels:
            self.metrics.event_seconds.labels(label).observe(seconds)

    def _note_pod(self, event: Event, pod: Pod) -> None:
        if event.type is EventType.DELETE or pod.terminating:
            self._preemptions.pod_goes(pod)
        if event.type is EventType.DELETE or pod.spec.node_name:
            self._statuses.forget(pod.key)
            self._preemptions.forget(pod)
            self._waiting.pop(pod.key, None)
            self._expecting.discard(pod.metadata.uid)

    async def _schedule(self, stop: asyncio.Event) -> bool:
        """Try pods for a while; returns whether there was anything to do."""
        loop = self.loop
        begin = now = time.monotonic()
        while now < begin + SLICE and loop.has_work(now) and not stop.is_set():
            if self._decides_in_thread:
                instructions = await self._decide_in_thread(now, stop)
            else:
                instructions = loop.run_one(now)
            after = time.monotonic()
            if instructions:
                self.metrics.algorithm_seconds.observe(after - now)
                self._times.attempted(instructions[0].pod.spec.scheduler_name)
                self._measure(instructions, after - now)
                self._carry_out(instructions, now)
            now = after
        return now != begin or bool(self._reflectors.events)

    async def _decide_in_thread(self, now: float, stop: asyncio.Event) -> list[Instruction]:
        """Try the next pod in a thread, so that events, bindings and statuses go on meanwhile.

        If told to stop, the attempt is left alone: nothing of it has been written.
        """
        deciding = asyncio.get_running_loop().run_in_executor(self._deciding, self.loop.run_one, now)
        stopping = asyncio.create_task(stop.wait())
        try:
            while not deciding.done() and not stopping.done():
                waits = deciding, stopping
                done, _ = await asyncio.wait(waits, timeout=SLOW_DECISION, return_when=asyncio.FIRST_COMPLETED)
                if not done:
                    seconds = time.monotonic() - now
                    logger.warning("a decision has taken %.0f s: is an extender or a plugin slow?", seconds)
            return deciding.result() if deciding.done() else []
        finally:
            stopping.cancel()
            deciding.add_done_callback(_ignore_result)

    async def _rest(self, stop: asyncio.Event) -> None:
        """Wait until something happens or is due."""
        wake_up = self.loop.next_wake_up()
        self._wake_up.clear()
        if self._reflectors.events or stop.is_set():
            return
        timeout = 1.0 if wake_up is None else min(max(wake_up - time.monotonic(), 0.0), 1.0)
        # Not `wait_for`: in Python 3.11 it may swallow that this replica is to stop.
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout):
                await self._wake_up.wait()

    async def _hand_over(self) -> bool:
        """Finish the bindings that were sent, and return whether all are; what still waits for its turn is left to the
        next leader.
        """
        finishing = {each for each in self._tasks if each in self._requests.in_flight or each in self._in_threads}
        for task in self._tasks - finishing:
            task.cancel()
        logger.info("stopping: %d writes under way, %d given back", len(finishing), len(self._tasks - finishing))
        unfinished = set[asyncio.Task[None]]()
        if finishing:
            _, unfinished = await asyncio.wait(finishing, timeout=FINISH_WITHIN)
        await self._statuses.stop(TELL_WITHIN)
        await self._recorder.stop(TELL_WITHIN)
        return not unfinished

    async def _give_up(self) -> None:
        """Cancel what is under way: a replica that lost the lease must not write."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._statuses.stop(0.0)
        await self._recorder.stop(0.0)

    # -- carrying out ------------------------------------------------------------------------------------------------

    def _carry_out(self, instructions: list[Instruction], begin: float) -> None:
        """Carry out the loop's instructions; `begin` is when the attempt began that they come from."""
        evictions = [each for each in instructions if isinstance(each, Evict)]
        for instruction in instructions:
            match instruction:
                case Bind(pod, node, attempts):
                    self._note_bound(pod, Decided(time.time(), attempts, node))
                    if not self._settings.dry_run:
                        self._spawn(self._bind(pod, node, attempts, begin))
                case Wait(pod, node):
                    if not self._settings.dry_run:
                        self._nominate_expected(pod, node)
                case Unschedulable(pod, message, plugins, is_error):
                    self._fail(pod, message, is_error=is_error)
                    if DynamicResources.name in plugins and not self._settings.dry_run:
                        self._spawn(self._devices.release(self.loop))
                case Nominate(pod, node):
                    if not self._settings.dry_run:
                        self._statuses.nominate(pod, node)
                case SetCondition(_, group, condition):
                    if not self._settings.dry_run:
                        self._spawn(self._set_condition(group, condition))
        if evictions:
            self.metrics.victims.observe(len(evictions))
            if not self._settings.dry_run:
                self._preemptions.begin(evictions[0].by, [each.pod for each in evictions])
                self._spawn(self._preempt(evictions))

    async def _set_condition(self, group: PodGroup, condition: Condition) -> None:
        try:
            await write_condition(self._client, group, condition)
        except PodiumError as error:
            logger.warning("the condition of PodGroup %s cannot be written: %s", group.key, error)

    def _note_bound(self, pod: Pod, decided: Decided) -> None:
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
        queued = self.loop.queue.get(pod.key)
        self.history.decided(pod, Decided(time.time(), queued.attempts if queued else 0, message=message))
        if self._settings.dry_run:
            return
        if pod.metadata.uid in self._expecting:
            self._expecting.discard(pod.metadata.uid)
            self._statuses.nominate(pod, "")
        reason = SCHEDULER_ERROR if is_error else NOT_SCHEDULABLE
        self._record(pod, pod, "Warning", "FailedScheduling", "Scheduling", message)
        self._statuses.unschedulable(pod, UnscheduledCondition(reason, message))

    def _record(self, pod: Pod, cause: Pod, kind: str, reason: str, action: str, note: str) -> None:
        """Record an event about a pod, in the name of the profile of the pod that caused it."""
        known = self._reflectors.known("Pod", pod.key)
        version = known.version if known else ""
        self._recorder.record(pod, version, cause.spec.scheduler_name, kind, reason, action, note)

    # -- binding -----------------------------------------------------------------------------------------------------

    async def _bind(self, pod: Pod, node: str, attempts: int, begin: float) -> None:
        """The binding cycle of one pod: PreBind, Bind and PostBind; a failure is reported to the loop."""
        found = self.loop.assumed.get(pod.key)
        if found is None:
            return
        queued, assumed = found
        await self._tell_expected(assumed)
        status = await self._timed("PreBind", self._pre_bind(assumed), pod)
        if status == SUCCESS:
            async with self._slots:
                if not self._is_assumed(assumed):
                    # The pod was deleted while it waited for its turn.
                    await self._devices.unreserve(assumed, self.loop)
                    return
                status = await self._timed("Bind", self._bind_now(assumed), pod)
        if status != SUCCESS:
            await self._fail_to_bind(assumed, status, begin)
            return
        self._devices.is_bound(pod)
        self._record(pod, pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.key} to {node}")
        self.metrics.attempted(SCHEDULED, pod, time.monotonic() - begin)
        if queued.active_since is not None:
            label = str(attempts) if attempts < 15 else "15+"
            self.metrics.sli_seconds.labels(label).observe(time.monotonic() - queued.active_since)
        self.metrics.pod_attempts.observe(attempts)
        await self._timed("PostBind", self._post_bind(assumed), pod)

    def _is_assumed(self, assumed: Assumed) -> bool:
        """Whether the pod still counts on the node it is to be bound to: it may have been deleted and recreated."""
        found = self.loop.assumed.get(assumed.pod.key)
        return found is not None and found[1] is assumed

    async def _fail_to_bind(self, assumed: Assumed, status: Status, begin: float) -> None:
        await self._devices.unreserve(assumed, self.loop)
        async with self._turn:
            if not self._is_assumed(assumed):
                return
            self.history.taken_back(assumed)
            instructions = self.loop.bind_failed(assumed.pod.key, status, time.monotonic())
            self._measure(instructions, time.monotonic() - begin)
            self._carry_out(instructions, begin)
            self._wake_up.set()

    async def _tell_expected(self, assumed: Assumed) -> None:
        """Write the node of a pod to its nominatedNodeName if binding takes more than the binding call."""
        if self._has_to_prepare(assumed):
            self._nominate_expected(assumed.pod, assumed.node)
        if assumed.pod.metadata.uid in self._expecting:
            await self._statuses.written(assumed.pod.key)

    def _has_to_prepare(self, assumed: Assumed) -> bool:
        if VolumeBinding.reserved(assumed.state) or assumed.state.get(DynamicResources.name) is not None:
            return True
        plugins = self.loop.scheduler.framework_of(assumed.pod).pre_bind
        return any(not isinstance(plugin, VolumeBinding | DynamicResources) for plugin in plugins)

    def _nominate_expected(self, pod: Pod, node: str) -> None:
        if self.loop.scheduler.setup.rules.nominates_expected_node and pod.metadata.uid not in self._expecting:
            self._expecting.add(pod.metadata.uid)
            self._statuses.nominate(pod, node)

    async def _pre_bind(self, assumed: Assumed) -> Status:
        status = SUCCESS
        for plugin in self.loop.scheduler.framework_of(assumed.pod).pre_bind:
            match plugin:
                case VolumeBinding():
                    status = with_plugin(await self._written(self._bind_volumes(plugin, assumed)), plugin, "PreBind")
                case DynamicResources():
                    status = with_plugin(await self._written(self._bind_devices(assumed)), plugin, "PreBind")
                case _:
                    status = await self._in_thread(answer_of, plugin, "PreBind", plugin.pre_bind, assumed)
            if status != SUCCESS:
                break
        return status

    @staticmethod
    async def _written(writing: Awaitable[None]) -> Status:
        """Turn the result of a write into a plugin's status."""
        try:
            await writing
        except PodiumError as error:
            return Status.error(str(error))
        except Exception as error:  # an answer that is not what the API server promises
            logger.error("unexpected %r while writing", error)
            return Status.error(f"{type(error).__name__}: {error}")
        return SUCCESS

    async def _in_thread(self, work: Callable[..., Status], *arguments: Any) -> Status:
        """Run a user's plugin in a thread: it may make slow calls."""
        task = asyncio.current_task()
        self._in_threads.add(task)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, work, *arguments)
        finally:
            self._in_threads.discard(task)

    async def _bind_devices(self, assumed: Assumed) -> None:
        pod = assumed.pod

        def waits(note: str) -> None:
            self._record(pod, pod, "Normal", "BindingConditionsPending", "Scheduling", note)

        await self._devices.bind(assumed, self.loop, self._handle_written, waits)

    async def _handle_written(self, event: Event, note: Callable[[], None]) -> None:
        """Pass a claim that was written to the loop, and note that it was."""
        async with self._turn:
            self._handle(event)
            note()

    async def _bind_volumes(self, plugin: VolumeBinding, assumed: Assumed) -> None:
        args = plugin.args
        timeout = args.bind_timeout_seconds if isinstance(args, VolumeBindingArgs) else 600
        await self._volumes.bind(assumed, timeout)

    async def _bind_now(self, assumed: Assumed) -> Status:
        """The result of the extender that binds, or else of the first Bind plugin that does not skip."""
        if self._config.extenders:
            bound = await asyncio.to_thread(self.loop.bind_by_extender, assumed)
            if bound is not None:
                return bound
        status = SKIP
        for plugin in self.loop.scheduler.framework_of(assumed.pod).bind:
            if type(plugin) is DefaultBinder:
                status = with_plugin(await self._bind_by_default(assumed.pod, assumed.node), plugin, "Bind")
            else:
                assumed.state[BINDER] = self._binder
                status = await self._in_thread(answer_of, plugin, "Bind", plugin.bind, assumed)
            if status.code is not Code.SKIP:
                break
        return status

    async def _bind_by_default(self, pod: Pod, node: str) -> Status:
        return await self._written(bind(self._client, pod, node))

    def _binder(self, pod: Pod, node: str) -> Status:
        """Bind a pod on behalf of a plugin that runs in its own thread."""
        return asyncio.run_coroutine_threadsafe(self._bind_by_default(pod, node), self._event_loop).result()

    async def _post_bind(self, assumed: Assumed) -> Status:
        for plugin in self.loop.scheduler.framework_of(assumed.pod).post_bind:

            def told(state: CycleState, pod: Pod, node: str, plugin: PostBindPlugin = plugin) -> Status:
                plugin.post_bind(state, pod, node)
                return SUCCESS

            status = await self._in_thread(answer_of, plugin, "PostBind", told, assumed)
            if status != SUCCESS:
                logger.error("pod %s is bound, but %s", assumed.pod.key, status.message)
        return SUCCESS

    async def _preempt(self, evictions: list[Evict]) -> None:
        """Evict pods for another pod, which is tried again after a pause if that fails."""
        by = evictions[0].by
        try:
            await asyncio.gather(*(self._evict(*each) for each in evictions[:-1]))
            await self._evict(*evictions[-1])
        except PodiumError as error:
            self._warnings.warn(f"evict: {by.key}", f"pods cannot be evicted for {by.key}: {error}")
            await asyncio.sleep(self._preemptions.refused(by))
            async with self._turn:
                self.loop.queue.activate(by.key, time.monotonic())
                self._wake_up.set()

    async def _evict(self, pod: Pod, by: Pod, node: str, group: PodGroup | None) -> None:
        if await preempt(self._client, pod, by, group):
            note = f"Preempted by pod {by.metadata.uid} on node {node}"
            if group is not None:
                note = f"Preempted by podgroup {group.metadata.uid} on node cluster"
            self._record(pod, by, "Normal", "Preempted", "Preempting", note)

    # -- measuring ---------------------------------------------------------------------------------------------------

    def _measure(self, instructions: list[Instruction], seconds: float) -> None:
        """Count finished attempts, and record how long pods waited at Permit; `_bind` counts bound pods."""
        now = time.monotonic()
        for each in instructions:
            match each:
                case Wait(pod):
                    self._waiting[pod.key] = now
                case Bind(pod):
                    self._measure_waiting(pod, "Success", now)
                    if self._settings.dry_run:
                        self.metrics.attempted(SCHEDULED, pod, seconds)
                case Unschedulable(pod, _, plugins, is_error):
                    self._measure_waiting(pod, "Unschedulable", now)
                    self._count_preemption(pod, plugins)
                    self.metrics.attempted(ERROR if is_error else UNSCHEDULABLE, pod, seconds)

    def _count_preemption(self, pod: Pod, rejectors: tuple[str, ...]) -> None:
        """Count a preemption attempt of a pod that fits nowhere, whether or not it helps."""
        framework = self.loop.scheduler.framework_of(pod)
        fits_nowhere = any(each.name in rejectors for each in (*framework.pre_filter, *framework.filter))
        if fits_nowhere and any(isinstance(each, DefaultPreemption) for each in framework.post_filter):
            self.metrics.preemptions.inc()

    def _measure_waiting(self, pod: Pod, result: str, now: float) -> None:
        since = self._waiting.pop(pod.key, None)
        if since is not None:
            self.metrics.permit_seconds.labels(result).observe(now - since)

    async def _timed(self, point: str, work: Awaitable[Status], pod: Pod) -> Status:
        """The status of the plugins at an extension point; records how long they took."""
        begin = time.monotonic()
        status = await work
        labels = (point, status.code.value, pod.spec.scheduler_name)
        self.metrics.point_seconds.labels(*labels).observe(time.monotonic() - begin)
        return status

    async def values(self) -> Values:
        """The metrics of the current state."""
        async with self._turn:
            return values_now(self.loop, len(self._tasks))

    def seconds_since_turn(self) -> float:
        """How long the scheduler has been busy with one thing; 0 while it does not schedule."""
        last = self._last_turn
        return 0.0 if last is None else time.monotonic() - last

    async def explained(self, key: str) -> dict[str, Any] | str:
        """The last decision about a pod, as a document, explained on the cluster of that time or else on the current
        one; a sentence if there is none. It is explained in a thread.
        """
        async with self._turn:
            decided, then = self.history.last(key), self.history.scheduler_then(key)
            pod = self.loop.pods.get(key)
            if then is not None:
                scheduler, pod = then
            elif pod is not None:
                scheduler = self.loop.scheduler_on(self.loop.cluster.fork())
            else:
                return f"pod {key} is not in the cluster"
        explanation = await asyncio.get_running_loop().run_in_executor(self._explaining, explain_pod, scheduler, pod)
        return {
            "decided": None if decided is None else decided._asdict(),
            "asOf": "then" if then is not None else "now",
            "explanation": to_document(explanation),
        }


def _has_plugins_of_users(loop: SchedulerLoop) -> bool:
    """Whether a profile has a plugin that does not come with Podium."""
    plugins = (each for framework in loop.scheduler.frameworks.values() for each in framework.plugins.values())
    return any(type(each).__module__.partition(".")[0] != "podium" for each in plugins)


def _ignore_result(work: asyncio.Future[list[Instruction]]) -> None:
    """Look at the exception of work that nobody waits for, so that it is not reported as forgotten."""
    if not work.cancelled():
        work.exception()


def _replaced(registry: Registry, plugins: Iterable[type[Plugin]]) -> Registry:
    """The registry with some plugins replaced by others with the same names."""
    others = {each.name: each for each in plugins}
    made = Registry(others.get(name, each) for name, each in registry.items())
    made.asked_for = registry.asked_for
    return made
