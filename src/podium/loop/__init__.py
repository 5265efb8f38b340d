"""What surrounds a decision: the queue, the scheduling and binding cycles, and time."""

from podium.loop.cycle import SchedulerLoop
from podium.loop.instructions import Bind, Event, EventType, Evict, Instruction, Nominate, Unschedulable, Wait
from podium.loop.queue import SchedulingQueue
from podium.loop.waiting import WAITING_PODS, WaitingPods

__all__ = [
    "WAITING_PODS",
    "Bind",
    "Event",
    "EventType",
    "Evict",
    "Instruction",
    "Nominate",
    "SchedulerLoop",
    "SchedulingQueue",
    "Unschedulable",
    "Wait",
    "WaitingPods",
]
