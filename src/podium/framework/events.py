"""Cluster events, and the hints with which a plugin says which of them may help a pod that it rejected."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag, auto
from typing import Any, NamedTuple

from podium.cluster import Cluster, PodInfo
from podium.model import Object, Pod


class Action(IntFlag):
    """What happened to an object, under kube-scheduler's names.

    An update of a node or a pod names the part that changed. An update that changed none of these parts has all the
    bits of UPDATE; only plugins that register for all of UPDATE get it.
    """

    ADD = auto()
    DELETE = auto()
    UPDATE_NODE_ALLOCATABLE = auto()
    UPDATE_NODE_LABEL = auto()
    UPDATE_NODE_TAINT = auto()
    UPDATE_NODE_CONDITION = auto()
    UPDATE_NODE_ANNOTATION = auto()
    UPDATE_NODE_DECLARED_FEATURE = auto()
    UPDATE_POD_LABEL = auto()
    UPDATE_POD_SCALE_DOWN = auto()
    UPDATE_POD_TOLERATION = auto()
    UPDATE_POD_SCHEDULING_GATES_ELIMINATED = auto()
    UPDATE_POD_GENERATED_RESOURCE_CLAIM = auto()
    UPDATE = (
        UPDATE_NODE_ALLOCATABLE
        | UPDATE_NODE_LABEL
        | UPDATE_NODE_TAINT
        | UPDATE_NODE_CONDITION
        | UPDATE_NODE_ANNOTATION
        | UPDATE_NODE_DECLARED_FEATURE
        | UPDATE_POD_LABEL
        | UPDATE_POD_SCALE_DOWN
        | UPDATE_POD_TOLERATION
        | UPDATE_POD_SCHEDULING_GATES_ELIMINATED
        | UPDATE_POD_GENERATED_RESOURCE_CLAIM
    )


ANYTHING = "*"
"""The resource of an event that is about every waiting pod."""


class ClusterEvent(NamedTuple):
    """A change of one object: `old` is None when it was added, `new` when it was deleted.

    `resource` is the object's kind, or `*` for an event that is about every waiting pod.
    """

    resource: str
    action: Action
    old: Object | None = None
    new: Object | None = None

    @property
    def is_wildcard(self) -> bool:
        return self.resource == ANYTHING


class WaitingPod(NamedTuple):
    """A pod that a plugin rejected and that waits for an event that may help."""

    pod: Pod
    info: PodInfo
    """The pod's compiled spec."""
    cluster: Cluster

    def is_same(self, other: Pod | None) -> bool:
        """Whether an event is about the waiting pod itself."""
        return other is not None and other.key == self.pod.key


Hint = Callable[[WaitingPod, Any, Any], bool]
"""A queueing hint: whether a change of an object from `old` to `new` may help the waiting pod."""


def always(waiting: WaitingPod, old: object, new: object) -> bool:
    """The hint of a plugin that does not look closer at an event."""
    return True


class EventHint(NamedTuple):
    """Events of one kind of object that may help a pod that the plugin rejected, and a hint that looks closer."""

    resource: str
    """The kind of the object, such as `Node`."""
    actions: Action
    hint: Hint = always

    def matches(self, event: ClusterEvent) -> bool:
        """Whether the event is about this kind of object and one of these actions."""
        # An update that changed nothing in particular has all the bits of UPDATE: all of them must be registered.
        return (
            self.resource == event.resource
            and bool(self.actions & event.action)
            and int(event.action) <= int(self.actions)
        )


def is_about_itself(waiting: WaitingPod, old: Pod | None, new: Pod) -> bool:
    """The hint for events that help only the pod they are about."""
    return waiting.is_same(new)


def is_placed(pod: Pod) -> bool:
    """Whether a pod takes up room on a node, or will as soon as preemption has made some."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
