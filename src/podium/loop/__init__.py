"""The scheduling queue, and the scheduling and binding cycles around a decision."""

from podium.loop.cycle import SchedulerLoop
from podium.loop.events import Bind, ChangeObject, Event, EventType, Evict, Instruction, Nominate, Unschedulable, Wait
from podium.loop.queue import SchedulingQueue
from podium.loop.queued_pod import WAITING_PODS, WaitingPods
from podium.loop.snapshot import LoopSnapshot, resume, take_snapshot

__all__ = [
    "WAITING_PODS",
    "Bind",
    "ChangeObject",
    "Event",
    "EventType",
    "Evict",
    "Instruction",
    "LoopSnapshot",
    "Nominate",
    "SchedulerLoop",
    "SchedulingQueue",
    "Unschedulable",
    "Wait",
    "WaitingPods",
    "resume",
    "take_snapshot",
]
