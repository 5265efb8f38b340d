"""A cluster over simulated time: events, controllers, pods that run and end, on a virtual clock."""

from podium.timeline._timeline import Timeline, resume_timeline, save_timeline
from podium.timeline._world import Surroundings
from podium.timeline.result import Life, Sample, TimelineResult, Utilisation
from podium.timeline.timed_events import TimedEvent, TimelineEvents, Verb, read_timeline

__all__ = [
    "Life",
    "Sample",
    "Surroundings",
    "TimedEvent",
    "Timeline",
    "TimelineEvents",
    "TimelineResult",
    "Utilisation",
    "Verb",
    "read_timeline",
    "resume_timeline",
    "save_timeline",
]
