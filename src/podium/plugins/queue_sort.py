"""PrioritySort and SchedulingGates: which pods enter the queue, and in which order they leave it."""

from __future__ import annotations

from collections.abc import Sequence

from podium.framework.events import Action, EventHint, is_about_itself
from podium.framework.plugin import PreEnqueuePlugin, QueuedPod, QueueSortPlugin
from podium.framework.status import SUCCESS, Status
from podium.model import Pod


class PrioritySort(QueueSortPlugin):
    """Higher priority first, then the pod that has waited longer."""

    name = "PrioritySort"

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        return -queued.pod.priority, queued.timestamp


class SchedulingGates(PreEnqueuePlugin):
    """Keep pods with scheduling gates out of the queue."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.spec.scheduling_gates:
            return SUCCESS
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Status.unresolvable(f"waiting for scheduling gates: [{gates}]")

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Pod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, is_about_itself),)
