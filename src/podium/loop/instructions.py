"""What goes into the loop, and what comes out: events, and what to do about pods."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from podium.objects import Object, Pod


class EventType(StrEnum):
    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


class Event(NamedTuple):
    """An object came, changed or went. To delete one, its kind, namespace and name suffice."""

    type: EventType
    object: Object


class Bind(NamedTuple):
    """Bind the pod to the node. The loop counts on it: report an update of the pod, or `bind_failed`."""

    pod: Pod
    node: str
    attempts: int


class Evict(NamedTuple):
    """Delete a pod to make room for another one, and report that as an event."""

    pod: Pod
    by: Pod
    node: str


class Nominate(NamedTuple):
    """Note in the pod's status that it waits for room on a node; an empty name takes that back."""

    pod: Pod
    node: str


class Unschedulable(NamedTuple):
    """Note in the pod's status that it was tried and why it could not be placed."""

    pod: Pod
    message: str
    plugins: tuple[str, ...]
    """Who rejected it, sorted; empty if something went wrong instead."""
    is_error: bool


class Wait(NamedTuple):
    """A node is chosen, but Permit plugins let the pod wait: nothing to do. `until` is the latest time in seconds."""

    pod: Pod
    node: str
    plugins: tuple[str, ...]
    until: float


Instruction = Bind | Evict | Nominate | Unschedulable | Wait
