"""What happens in a cluster, as far as it may make a waiting pod fit."""

from __future__ import annotations

from enum import IntFlag, auto
from typing import NamedTuple

from podium.model import Object


class Action(IntFlag):
    """What happened to an object, under kube-scheduler's names.

    An update says what it changed, where that is known; one that changed nothing in particular has all the bits of
    UPDATE, and is of interest only to who asks for all of them.
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
