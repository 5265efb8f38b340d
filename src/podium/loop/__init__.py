"""What surrounds a decision: the queue, the scheduling and binding cycles, and time."""

from podium.loop.cycle import SchedulerLoop
from podium.loop.instructions import Bind, Event, EventType, Evict, Instruction, Nominate, Unschedulable, Wait
from podium.loop.plot import write_plot
from podium.loop.queue import SchedulingQueue
from podium.loop.snapshot import LoopSnapshot, resume, take_snapshot
from podium.loop.surroundings import Surroundings
from podium.loop.timeline import Timeline
from podium.loop.timeline_events import TimedEvent, TimelineEvents, Verb, read_timeline
from podium.loop.timeline_result import Life, Sample, TimelineResult
from podium.loop.timeline_snapshot import resume_timeline, save_timeline
from podium.loop.waiting import WAITING_PODS, WaitingPods

__all__ = [
    "WAITING_PODS",
    "Bind",
    "Event",
    "EventType",
    "Evict",
    "Instruction",
    "Life",
    "LoopSnapshot",
    "Nominate",
    "Sample",
    "SchedulerLoop",
    "SchedulingQueue",
    "Surroundings",
    "TimedEvent",
    "Timeline",
    "TimelineEvents",
    "TimelineResult",
    "Unschedulable",
    "Verb",
    "Wait",
    "WaitingPods",
    "read_timeline",
    "resume",
    "resume_timeline",
    "save_timeline",
    "take_snapshot",
    "write_plot",
]
