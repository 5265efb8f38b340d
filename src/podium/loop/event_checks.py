"""Events that cannot be meant: they are about objects that nothing brought by then."""

from __future__ import annotations

from collections.abc import Iterable

from podium.errors import InputError
from podium.load.kinds import full_name
from podium.loop.controllers import WORKLOADS
from podium.loop.timeline_events import TimedEvent, Verb
from podium.objects import Object, Pod, ReplicaSet

COMES = (Verb.ADD, Verb.UPDATE)


def check_events(events: Iterable[TimedEvent], objects: Iterable[Object]) -> None:
    """InputError for the first event that takes away or changes an object that was never there.

    `objects` are there from the beginning. What went by then is no error, nor what a workload may have made.
    """
    there: set[tuple[type[Object], str]] = set()
    made_by: list[str] = []
    coming: dict[tuple[type[Object], str], float] | None = None

    def comes(item: Object) -> None:
        there.add((type(item), item.key))
        if isinstance(item, WORKLOADS):
            made_by.append(f"{item.key}-")

    for item in objects:
        comes(item)
    events = tuple(events)
    for event in events:
        item = event.object
        identity = type(item), item.key
        if event.verb in COMES:
            comes(item)
        elif identity not in there and not (isinstance(item, Pod | ReplicaSet) and item.key.startswith(tuple(made_by))):
            if coming is None:
                coming = {(type(one.object), one.object.key): one.time for one in reversed(events) if one.verb in COMES}
            raise InputError(_problem(event, coming.get(identity)), event.where)


def _problem(event: TimedEvent, comes_at: float | None) -> str:
    item = event.object
    name = full_name(type(item).__name__, item.namespace, item.name)
    if comes_at is not None:
        return f"{event.verb} at {event.time:g}s of {name}, which comes at {comes_at:g}s: change one of the times"
    return f"{event.verb} of {name}, which is neither in the cluster nor added before: check its name, or add it"
