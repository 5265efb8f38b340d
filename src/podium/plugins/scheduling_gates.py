"""SchedulingGates: pods that may not enter the queue yet."""

from __future__ import annotations

from collections.abc import Sequence

from podium.framework.events import Action, EventHint, is_about_itself
from podium.framework.plugin import PreEnqueuePlugin
from podium.framework.status import SUCCESS, Status
from podium.model import Pod


class SchedulingGates(PreEnqueuePlugin):
    """Keep pods with scheduling gates out of the queue."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status:
        if not pod.spec.scheduling_gates:
            return SUCCESS
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return Status.unresolvable(f"waiting for scheduling gates: [{gates}]")

    def events_to_register(self) -> Sequence[EventHint]:
        # Without hints, any update of a pod lets it try again.
        if not self.release_rules.own_updates_ask_hints:
            return ()
        return (EventHint("Pod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, is_about_itself),)
