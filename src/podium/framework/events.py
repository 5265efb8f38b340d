"""Cluster events, and the hints with which a plugin says which of them may help a pod that it rejected."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntFlag, auto
from typing import Any, NamedTuple

from podium.cluster import Cluster, PodInfo
from podium.config.types import MAX_NODE_SCORE as MAX_NODE_SCORE
from podium.framework.status import ObjectChange as ObjectChange
from podium.model import Object, Pod
from podium.rules import Rules


class Action(IntFlag):
    """What happened to an object, under kube-scheduler's names.

    An update of a node or a pod names the part that changed. An update that changed none of these parts has all bits of
    UPDATE; only plugins that register for all of UPDATE get it.
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
"""The resource of an event that concerns every waiting pod."""


class ClusterEvent(NamedTuple):
    """A change of one object: `old` is None when it was added, `new` when it was deleted.

    `resource` is the object's kind, or `*` for an event that concerns every waiting pod.
    """

    resource: str
    action: Action
    old: Object | None = None
    new: Object | None = None

    @property
    def is_wildcard(self) -> bool:
        return self.resource == ANYTHING


class WaitingPod(NamedTuple):
    """A pod that a plugin rejected, and that waits for an event that may help."""

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
    """The hint of a plugin that does not examine an event."""
    return True


class EventHint(NamedTuple):
    """Events of one kind of object that may help a pod that the plugin rejected, and a hint that examines them."""

    resource: str
    """The kind of the object, for example `Node`."""
    actions: Action
    hint: Hint = always

    @property
    def without_hint(self) -> EventHint:
        """The same events without a hint: each may help."""
        return self._replace(hint=always)

    def matches(self, event: ClusterEvent) -> bool:
        """Whether the event is about this kind of object and one of these actions."""
        # An update that changed no known part has all bits of UPDATE: all of them must be registered.
        return (
            self.resource == event.resource
            and bool(self.actions & event.action)
            and int(event.action) <= int(self.actions)
        )


def node_update(part: Action, rules: Rules) -> Action:
    """The node updates that a plugin registers for that reads a part of a node; in some releases, more than
    that part.
    """
    if not rules.node_updates_name_their_part:
        return Action.UPDATE
    # Without hints, pods are not told about a new node that they do not tolerate or match. Its later updates replace
    # that event.
    return part if rules.queueing_hints else part | Action.UPDATE_NODE_TAINT | Action.UPDATE_NODE_LABEL


def is_about_itself(waiting: WaitingPod, old: Pod | None, new: Pod) -> bool:
    """The hint for events that help only the pod they are about."""
    return waiting.is_same(new)
