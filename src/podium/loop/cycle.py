"""The scheduling loop: takes events and returns instructions, without other side effects."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterable
from operator import itemgetter
from typing import Unpack

from msgspec.structs import replace

from podium.cluster import Cluster, PodInfo
from podium.config import ignoring
from podium.engine.decision import Diagnosis
from podium.engine.scheduler import Config, Scheduler, SchedulerKeywords, SchedulerOptions
from podium.errors import ExtenderError, InputError, PluginError
from podium.framework import SUCCESS, Code, CycleState, Plugin, Status
from podium.framework.events import Action, ClusterEvent
from podium.loop.events import (
    Bind,
    ChangeObject,
    Event,
    EventType,
    Evict,
    Instruction,
    Nominate,
    RequeueFilter,
    Unschedulable,
    Wait,
    node_changes,
    object_change,
    pod_changes,
    pods_to_requeue_for_node,
    pods_to_requeue_for_pod,
    reaches_waiting_pods,
)
from podium.loop.group_cycle import GroupCycles
from podium.loop.queue import SchedulingQueue
from podium.loop.queued_pod import (
    MAX_PERMIT_TIMEOUT,
    WAITING_PODS,
    Assumed,
    PodAtPermit,
    Position,
    QueuedPod,
    WaitingPods,
)
from podium.model import Node, Object, Pod, PodGroup
from podium.plugins.default_preemption import DefaultPreemption


def answer_of(plugin: Plugin, point: str, ask: Callable[[CycleState, Pod, str], Status], assumed: Assumed) -> Status:
    """A plugin's status at an extension point of the binding cycle."""
    try:
        return with_plugin(ask(assumed.state, assumed.pod, assumed.node), plugin, point)
    except Exception as error:
        return with_plugin(raised(error), plugin, point)


def with_plugin(status: Status, plugin: Plugin, point: str) -> Status:
    """A plugin's status with its name; an error is worded as kube-scheduler does."""
    if status.code is Code.ERROR:
        status = Status.error(f'running {point} plugin "{plugin.name}": {status.message}')
    return status if status == SUCCESS else status._replace(plugin=plugin.name)


def raised(error: Exception) -> Status:
    """The status for an exception that a plugin raised."""
    return Status.error(f"{type(error).__name__}: {error}")


class SchedulerLoop:
    """kube-scheduler's loop over one cluster, for all profiles of a configuration.

    Report events with `handle`; call `run_one` while `has_work`, and carry out the instructions it returns. All methods
    take the time, in seconds of any clock that does not go backwards; `next_wake_up` says when there is work without a
    new event. The loop owns the cluster from now on: change it by events only.
    """

    def __init__(
        self,
        cluster: Cluster,
        config: Config | SchedulerOptions = None,
        *,
        now: float = 0.0,
        runs_binding: bool = True,
        waiting: Iterable[Pod] | None = None,
        **keywords: Unpack[SchedulerKeywords],
    ) -> None:
        """`keywords` are those of `Scheduler`: registry, tie_break, seed and so on.

        With `runs_binding` off, whoever carries out `Bind` also runs PreBind, Bind and PostBind. `waiting` are the
        pending pods of the cluster to put into the queue, first come first served; by default all.
        """
        self.cluster = cluster
        self._runs_binding = runs_binding
        self.extenders_bind = True
        """Whether an extender with a bindVerb binds the pods it is interested in."""
        self.scheduler = Scheduler(cluster, config, **keywords)
        settings = self.scheduler.config
        self.queue = SchedulingQueue(
            self.scheduler.frameworks,
            cluster,
            initial_backoff=settings.pod_initial_backoff_seconds,
            max_backoff=settings.pod_max_backoff_seconds,
            start=now,
            kind_of=self.scheduler.kind_of,
        )
        self.waiting = WaitingPods()
        """The pods that wait at Permit."""
        self.tries_one_by_one = False
        """Whether `run_one` makes one attempt only; otherwise, pods that are known to fit nowhere fail together."""
        self.group_cycles = GroupCycles(self)
        """The cycles of PodGroups."""
        self.pods: dict[str, Pod] = {}
        """Every pod as last reported, by namespace and name."""
        self.assumed: dict[str, tuple[QueuedPod, Assumed]] = {}
        """The pods that are being bound, until that is reported."""
        for pod in (*cluster.pending.values(), *(pod for pod, _ in cluster.placed()), *cluster.stranded):
            self.pods[pod.key] = pod
        for pod in list(cluster.pending.values()) if waiting is None else waiting:
            if self.is_responsible(pod):
                self.queue.add(pod, now)

    def scheduler_on(self, cluster: Cluster, leave_out: Collection[str] = ()) -> Scheduler:
        """A scheduler with the same configuration for another cluster, for example a copy to try something on.

        `leave_out` names plugins that it does not run.
        """
        # The configuration is not read again, which would take longer than the rest.
        config = ignoring(self.scheduler.setup.config, leave_out)
        return Scheduler(cluster, dataclasses.replace(self.scheduler.options, config=config, tie_break="first"))

    def close(self) -> None:
        """Close connections to extenders."""
        self.scheduler.close()

    def is_responsible(self, pod: Pod) -> bool:
        """Whether a profile of this scheduler places the pod, as opposed to another scheduler."""
        return pod.spec.scheduler_name in self.scheduler.frameworks

    # -- events ------------------------------------------------------------------------------------------------------

    def handle(self, event: Event, now: float) -> None:
        """Record an event; pods that it may help are tried again."""
        item, is_gone = event.object, event.type is EventType.DELETE
        if isinstance(item, Pod):
            if is_gone or item.finished:
                self._on_pod_deleted(item.key, now)
            else:
                self._on_pod_updated(item, now)
        elif isinstance(item, Node):
            self._on_node_deleted(item.name, now) if is_gone else self._on_node_updated(item, now)
        else:
            self._on_object_changed(item, is_gone, now)

    def _on_node_updated(self, node: Node, now: float) -> None:
        old = self.cluster.node(node.name) if node.name in self.cluster.rows else None
        self.cluster.update(node)
        rules = self.scheduler.setup.rules
        changes = [ClusterEvent("Node", Action.ADD, None, node)] if old is None else node_changes(old, node, rules)
        only = pods_to_requeue_for_node(node, self.cluster, rules) if changes else None
        for change in changes:
            self.queue.move_all(change, now, only)

    def _on_node_deleted(self, name: str, now: float) -> None:
        if name in self.cluster.rows:
            node = self.cluster.node(name)
            self._tell(ClusterEvent("Node", Action.DELETE, node), now)
            self.cluster.remove(node)

    def _on_object_changed(self, item: Object, is_gone: bool, now: float) -> None:
        shelf = self.cluster.store.of(type(item))
        old = shelf.get(item.name, item.namespace)
        if is_gone and old is None:
            return
        self.cluster.remove(item) if is_gone else self.cluster.update(item)
        if isinstance(item, PodGroup) and (old is None or isinstance(old, PodGroup)):
            self.queue.note_group(old, None if is_gone else item, now)
        self._tell(object_change(old, None if is_gone else item), now)

    def _tell(self, event: ClusterEvent, now: float) -> None:
        if reaches_waiting_pods(event, self.scheduler.setup.rules):
            self.queue.move_all(event, now)

    def _on_pod_updated(self, pod: Pod, now: float) -> None:
        old = self.pods.get(pod.key)
        if old is not None and (
            old.metadata.uid != pod.metadata.uid or (old.spec.node_name and not pod.spec.node_name)
        ):
            # A new pod has taken over the name.
            self._on_pod_deleted(pod.key, now)
            old = None
        self.pods[pod.key] = pod
        if pod.spec.node_name:
            self._on_pod_bound(old, pod, now)
        elif not self.is_responsible(pod):
            self.cluster.update(pod)
        elif old is None:
            self.cluster.add(pod)
            self._note_nomination(pod)
            self.queue.add(pod, now)
            if self.scheduler.setup.rules.pod_groups:
                self.queue.move_all(ClusterEvent("UnscheduledPod", Action.ADD, None, pod), now)
        else:
            self._on_waiting_pod_updated(old, pod, now)

    def _on_pod_bound(self, old: Pod | None, pod: Pod, now: float) -> None:
        if pod.key in self.waiting:
            # Another scheduler was faster.
            self._unreserve(self._stop_assuming(pod.key))
        self.cluster.update(pod)
        if old is not None and old.spec.node_name:
            for change in pod_changes(old, pod, self.scheduler.setup.rules):
                frees = change.action is Action.UPDATE_POD_SCALE_DOWN
                self.queue.move_all(change, now, None if frees else self._pods_to_requeue_for(pod))
            return
        self.assumed.pop(pod.key, None)
        self.scheduler.nominations.forget(pod)
        self.queue.remove(pod.key)
        self.queue.move_all(ClusterEvent("Pod", Action.ADD, None, pod), now, self._pods_to_requeue_for(pod))
        if self.queue.is_member(pod):
            self.queue.groups.remove(pod, now)

    def _pods_to_requeue_for(self, pod: Pod) -> RequeueFilter | None:
        return pods_to_requeue_for_pod(pod, self.cluster, self.scheduler.setup.rules)

    def _on_waiting_pod_updated(self, old: Pod, pod: Pod, now: float) -> None:
        """Handle an update of a pod that this scheduler has not bound yet."""
        if self.is_assumed(pod.key):
            is_told_of = self.scheduler.setup.rules.deleted_assumed_pods_are_told
            if is_told_of and pod.terminating and not old.terminating:
                self._on_assumed_pod_deleted(pod.key, now)
            return
        self.cluster.update(pod)
        nominated = self.scheduler.nominations.node_of(old)
        is_reported = old.status.nominated_node_name or pod.status.nominated_node_name
        self.scheduler.nominations.nominate(pod, pod.status.nominated_node_name if is_reported else nominated)
        self.queue.update(old, pod, now)
        if old.status.nominated_node_name not in ("", pod.status.nominated_node_name):
            self._room_freed_for_lower(old, now)

    def _on_pod_deleted(self, key: str, now: float) -> None:
        pod = self.pods.pop(key, None)
        if pod is None:
            return
        if self.is_assumed(key):
            self._on_assumed_pod_deleted(key, now)
            self.cluster.remove(pod)
            return
        if not pod.spec.node_name and self.queue.is_member(pod):
            # The group still counts the pod when it returns to the queue without it.
            self.queue.groups.remove(pod, now)
        self.cluster.remove(pod)
        if pod.spec.node_name:
            self.queue.move_all(ClusterEvent("Pod", Action.DELETE, pod), now)
            return
        self.queue.remove(key)
        nominated = self.scheduler.nominations.node_of(pod)
        self.scheduler.nominations.forget(pod)
        if nominated and self.is_responsible(pod):
            self._room_freed_for_lower(pod, now)

    def _room_freed_for_lower(self, pod: Pod, now: float) -> None:
        """Tell pods that yield to this one that it gave up the room reserved for it, as if it had been there
        and left.
        """
        if not self.scheduler.setup.rules.given_up_nominations_are_told:
            return
        self.queue.move_all(
            ClusterEvent("Pod", Action.DELETE, pod), now, only=lambda other: other.pod.priority <= pod.priority
        )

    def is_assumed(self, key: str) -> bool:
        """Whether a pod is being bound, or waits at Permit."""
        return key in self.assumed or key in self.waiting

    def _on_assumed_pod_deleted(self, key: str, now: float) -> None:
        """Release at once what a deleted assumed pod took."""
        assumed = self._stop_assuming(key)
        self._unreserve(assumed)
        self._forget(assumed, now)

    def _stop_assuming(self, key: str) -> Assumed:
        """Stop tracking a pod that is being bound or waits at Permit."""
        if key in self.assumed:
            return self.assumed.pop(key)[1]
        self.queue.done(key)
        return self.waiting.take(key).assumed

    def _note_nomination(self, pod: Pod) -> None:
        if pod.status.nominated_node_name:
            self.scheduler.nominations.nominate(pod, pod.status.nominated_node_name)

    # -- work --------------------------------------------------------------------------------------------------------

    def has_work(self, now: float) -> bool:
        """Whether `run_one` would do something now."""
        if self.queue.has_next:
            return True
        wake_up = self.next_wake_up()
        return wake_up is not None and wake_up <= now

    def next_wake_up(self) -> float | None:
        """The next time with work to do even without an event; None if there is none."""
        times = (self.queue.next_flush(), self.waiting.next_timeout())
        return min((time for time in times if time is not None), default=None)

    def count_vain_retries(self, until: float) -> None:
        """Count the retries until a time, assuming no events, of pods that are known to fit nowhere."""
        if not self.scheduler.extenders and not len(self.waiting):
            self.queue.count_vain_retries(until, self._is_vain)

    def _is_vain(self, queued: QueuedPod) -> bool:
        """Whether another attempt would fail exactly like the last one."""
        if queued.pod.terminating or self.pods.get(queued.key) is not queued.pod:
            return False
        known = self.scheduler.known_diagnosis(queued.pod)
        return (
            known is not None
            and bool(known.unschedulable_plugins)
            and known.unschedulable_plugins == queued.unschedulable_plugins
        )

    def run_one(self, now: float) -> list[Instruction]:
        """Continue with the pods that need not wait at Permit any more, and try the next pod of the queue."""
        self.queue.flush(now)
        instructions: list[Instruction] = []
        for waiting in self.waiting.take_ready(now):
            instructions += self.stop_waiting(waiting, now)
        failed = [] if self.tries_one_by_one else self._fail_known(now)
        if failed:
            return instructions + failed
        group = self.queue.pop_group() if self.queue.groups else None
        if group is not None:
            return instructions + self.group_cycles.run(group, now)
        queued = self.queue.pop()
        if queued is not None:
            instructions += self._scheduling_cycle(queued, now)
        return instructions

    def _fail_known(self, now: float) -> list[Instruction]:
        """Fail the next pods of the queue that are known to fit nowhere; nothing changes between their attempts."""
        queue, nominations = self.queue, self.scheduler.nominations
        instructions = self._fail_woken(now)
        known: dict[tuple[PodInfo, str], tuple[Diagnosis, tuple[str, ...]]] = {}
        while (queued := queue.first()) is not None:
            pod, kind = queued.pod, (queued.info, queued.pod.spec.scheduler_name)
            if pod.terminating or self.pods.get(queued.key) is not pod:
                break
            is_alone = self.scheduler.extenders or nominations.node_of(pod) or pod.spec.resource_claims
            found = None if is_alone else known.get(kind)
            if found is None:
                diagnosis = self.scheduler.known_diagnosis(pod)
                if diagnosis is None or not diagnosis.unschedulable_plugins:
                    break
                found = known[kind] = diagnosis, diagnosis.rejectors
            queue.reject_first(found[0], now)
            instructions.append(Unschedulable(pod, found[0].message, found[1], False))
            instructions += self._fail_woken(now)
        return instructions

    def _fail_woken(self, now: float) -> list[Instruction]:
        """Fail the woken pods that are known to fit nowhere, in bulk, up to the first pod that has to be tried.

        If a woken pod has to be tried before all pods that `pop` could return, it becomes the next to be popped. There
        is no instruction for a pod whose message did not change.
        """
        self.queue.split_outdated(now)
        groups = self.queue.woken_groups()
        if not groups:
            return []
        known = [(group, self.scheduler.known_diagnosis(group.example.pod)) for group in groups]
        others = [group for group, diagnosis in known if diagnosis is None or not diagnosis.unschedulable_plugins]
        first = min([(group.first()[0], group) for group in others], key=itemgetter(0), default=None)
        limit = self.queue.first_position()
        if first is not None and (limit is None or first[0] < limit):
            limit = first[0]
        else:
            first = None
        failed: list[tuple[Position, Instruction]] = []
        for group, diagnosis in known:
            if diagnosis is not None and diagnosis.unschedulable_plugins:
                plugins = diagnosis.rejectors
                for position, queued in self.queue.reject_woken(group, diagnosis, limit, now):
                    failed.append((position, Unschedulable(queued.pod, diagnosis.message, plugins, False)))
        if first is not None:
            self.queue.bring_first(first[1], now)
        return [instruction for _, instruction in sorted(failed, key=itemgetter(0))]

    def _scheduling_cycle(self, queued: QueuedPod, now: float) -> list[Instruction]:
        if queued.pod.terminating:
            self.queue.done(queued.pod.key)
            return []
        found = self._attempt(queued.pod)
        if isinstance(found, Diagnosis):
            return self.fail(queued, found, now)
        return self._permit(queued, found, now)

    def _attempt(self, pod: Pod) -> Assumed | Diagnosis:
        """Place a pod: run Filter, Score and Reserve, and PostFilter if no node fits."""
        scheduler = self.scheduler
        try:
            attempt = scheduler.attempt(pod)
            if attempt.node is None or attempt.evaluation is None:
                return scheduler.diagnose(pod)
            status = scheduler.assume(attempt)
        except PluginError as error:
            return Diagnosis.of_error(str(error), error.plugin)
        except (InputError, ExtenderError) as error:
            return Diagnosis.of_error(str(error))
        if status != SUCCESS:
            return Diagnosis.of_status(status)
        return Assumed(pod, attempt.node, attempt.evaluation.state)

    def _permit(self, queued: QueuedPod, assumed: Assumed, now: float) -> list[Instruction]:
        deadlines = self.ask_permit(assumed, now)
        if isinstance(deadlines, Status):
            return self._undo(queued, assumed, deadlines, now)
        if not deadlines:
            return self._binding_cycle(queued, assumed, now)
        waiting = PodAtPermit(queued, assumed, deadlines)
        self.waiting.add(waiting)
        return [Wait(assumed.pod, assumed.node, tuple(sorted(deadlines)), waiting.until)]

    def ask_permit(self, assumed: Assumed, now: float) -> dict[str, tuple[float, float]] | Status:
        """Run Permit: per plugin that asks the pod to wait, its deadline and timeout; the status of one that
        rejects it.
        """
        deadlines: dict[str, tuple[float, float]] = {}
        plugins = self.scheduler.framework_of(assumed.pod).permit
        if plugins:
            assumed.state[WAITING_PODS] = self.waiting
        for plugin in plugins:
            try:
                status, patience = plugin.permit(assumed.state, assumed.pod, assumed.node)
            except Exception as error:
                status, patience = raised(error), 0.0
            status = with_plugin(status, plugin, "Permit")
            if status.code is Code.WAIT:
                patience = min(patience, MAX_PERMIT_TIMEOUT)
                deadlines[plugin.name] = now + patience, patience
            elif status != SUCCESS:
                return status
        return deadlines

    def stop_waiting(self, waiting: PodAtPermit, now: float) -> list[Instruction]:
        """Bind a pod that waited at Permit, or put it back into the queue if it was rejected."""
        queued, assumed = waiting.queued, waiting.assumed
        if waiting.rejection is None:
            return self._binding_cycle(queued, assumed, now)
        instructions = self._undo(queued, assumed, waiting.rejection, now)
        self._room_freed(assumed, now, only=lambda queued: queued.key != assumed.pod.key)
        return instructions

    def _binding_cycle(self, queued: QueuedPod, assumed: Assumed, now: float) -> list[Instruction]:
        pod = assumed.pod
        self.queue.done(pod.key)
        status = self._pre_bind_and_bind(assumed) if self._runs_binding else SUCCESS
        if status != SUCCESS:
            return self._fail_to_bind(queued, assumed, status, now) + self._expected_node(assumed, status)
        self.assumed[pod.key] = queued, assumed
        if self._runs_binding:
            for post_bind in self.scheduler.framework_of(pod).post_bind:
                post_bind.post_bind(assumed.state, pod, assumed.node)
        return [Bind(pod, assumed.node, queued.attempts)]

    def _pre_bind_and_bind(self, assumed: Assumed) -> Status:
        """Run PreBind, then bind by an extender or by the first Bind plugin that does not skip; returns the first
        failure, or the result of binding.
        """
        framework = self.scheduler.framework_of(assumed.pod)
        for pre_bind in framework.pre_bind:
            status = answer_of(pre_bind, "PreBind", pre_bind.pre_bind, assumed)
            if status != SUCCESS:
                return status
        bound = self.bind_by_extender(assumed) if self.extenders_bind else None
        if bound is not None:
            return bound
        status = SUCCESS
        for bind in framework.bind:
            status = answer_of(bind, "Bind", bind.bind, assumed)
            if status.code is not Code.SKIP:
                break
        return status

    def bind_by_extender(self, assumed: Assumed) -> Status | None:
        """Let the first interested extender with a bindVerb bind the pod; None if the plugins have to bind it."""
        for extender in self.scheduler.extenders:
            if not (extender.is_binder and extender.is_interested(assumed.pod)):
                continue
            try:
                extender.bind(assumed.pod, assumed.node)
            except ExtenderError as error:
                if extender.ignorable:
                    continue
                return Status.error(str(error))
            return SUCCESS
        return None

    def bind_failed(self, key: str, status: Status, now: float) -> list[Instruction]:
        """Report that a pod could not be bound, for the reason in the status: it is tried again after its backoff."""
        found = self.assumed.pop(key, None)
        return [] if found is None else self._fail_to_bind(*found, status, now)

    # -- failures ----------------------------------------------------------------------------------------------------

    def _fail_to_bind(self, queued: QueuedPod, assumed: Assumed, status: Status, now: float) -> list[Instruction]:
        """Free what the pod took after PreBind or Bind failed, and put it back into the queue."""
        self._unreserve(assumed)
        self._forget(assumed, now)
        diagnosis = Diagnosis.of_error(status.message, status.plugin)._replace(is_error=not status.code.rejects)
        return self.fail(queued, diagnosis, now)

    def _expected_node(self, assumed: Assumed, status: Status) -> list[Instruction]:
        """The nomination of a pod that failed in PreBind: its status names the node since PreBind began, and stays
        so.
        """
        pod, framework = self.pods.get(assumed.pod.key), self.scheduler.framework_of(assumed.pod)
        has_begun = any(plugin.name == status.plugin for plugin in framework.pre_bind)
        if pod is None or not has_begun or not self.scheduler.setup.rules.nominates_expected_node:
            return []
        self.scheduler.nominations.nominate(pod, assumed.node)
        return [Nominate(pod, assumed.node)]

    def _undo(self, queued: QueuedPod, assumed: Assumed, status: Status, now: float) -> list[Instruction]:
        """Undo the placement of a pod that Permit rejected."""
        self._unreserve(assumed)
        self._take_back(assumed)
        return self.fail(queued, Diagnosis.of_status(status), now)

    def _unreserve(self, assumed: Assumed) -> None:
        self.scheduler.unreserve(assumed.state, assumed.pod, assumed.node)

    def _forget(self, assumed: Assumed, now: float) -> None:
        self._take_back(assumed)
        self._room_freed(assumed, now)

    def _take_back(self, assumed: Assumed) -> None:
        self.cluster.remove(assumed.pod)
        pod = self.pods.get(assumed.pod.key)
        if pod is not None:
            self.cluster.add(pod)

    def _room_freed(self, assumed: Assumed, now: float, only: RequeueFilter | None = None) -> None:
        spec = replace(assumed.pod.spec, node_name=assumed.node)
        self.queue.move_all(ClusterEvent("Pod", Action.DELETE, replace(assumed.pod, spec=spec)), now, only)

    def fail(self, queued: QueuedPod, diagnosis: Diagnosis, now: float) -> list[Instruction]:
        """Put the pod back into the queue and report why; preempt if that helps."""
        key = queued.pod.key
        pod = self.pods.get(key)
        is_another = pod is not None and (
            pod.metadata.uid != queued.pod.metadata.uid or self.queue.get(key) is not None
        )
        if pod is None or pod.spec.node_name or is_another:
            self.queue.done(key)
            return []
        queued.pod, queued.info = pod, self.cluster.info_of(pod)
        queued.unschedulable_plugins, queued.pending_plugins = (
            diagnosis.unschedulable_plugins,
            diagnosis.pending_plugins,
        )
        queued.gating_plugin, queued.message = "", diagnosis.message
        self.queue.put_back(queued, now)
        failed = Unschedulable(pod, diagnosis.message, diagnosis.rejectors, diagnosis.is_error, diagnosis.failed_plugin)
        instructions: list[Instruction] = [failed]
        instructions += [ChangeObject(pod, *change) for change in diagnosis.changes]
        return instructions + self._nominate(pod, diagnosis) + self._evict(pod, diagnosis)

    def _nominate(self, pod: Pod, diagnosis: Diagnosis) -> list[Instruction]:
        nominations, instructions = self.scheduler.nominations, list[Instruction]()
        before = nominations.node_of(pod)
        if diagnosis.nominated is not None:
            for lower in nominations.clear_lower(diagnosis.nominated, pod.priority):
                instructions.append(Nominate(self.pods.get(lower.key, lower), ""))
            self.scheduler.nominations.nominate(pod, diagnosis.nominated)
        elif diagnosis.clears_nomination and before:
            self.scheduler.nominations.nominate(pod, "")
        after = nominations.node_of(pod)
        return [*instructions, Nominate(pod, after)] if after != before else instructions

    def _evict(self, pod: Pod, diagnosis: Diagnosis) -> list[Instruction]:
        instructions: list[Instruction] = []
        for key in diagnosis.victims:
            if key in self.waiting:
                self.waiting.reject(key, DefaultPreemption.name, "preempted")
            else:
                instructions.append(Evict(self.pods[key], pod, diagnosis.nominated or ""))
        return instructions
