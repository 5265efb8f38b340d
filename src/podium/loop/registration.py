"""What a plugin is interested in: events that may help the pods it rejected, and a closer look at each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from podium.cluster import Cluster, PodInfo
from podium.framework.events import Action, ClusterEvent
from podium.framework.plugin import Plugin
from podium.model import Pod


class Rejected(NamedTuple):
    """A pod that waits because a plugin rejected it."""

    pod: Pod
    info: PodInfo
    plugin: Plugin
    cluster: Cluster

    def is_same(self, other: Pod | None) -> bool:
        """Whether an event is about the waiting pod itself."""
        return other is not None and other.key == self.pod.key


Hint = Callable[[Rejected, Any, Any], bool]
"""Whether a change from one version of an object to another, None where there is none, may help a waiting pod."""


def always(rejected: Rejected, old: object, new: object) -> bool:
    return True


def never(rejected: Rejected, old: object, new: object) -> bool:
    return False


class Registration(NamedTuple):
    """Events of one kind of object, and which of them may help."""

    resource: str
    actions: Action
    hint: Hint = always

    def matches(self, event: ClusterEvent) -> bool:
        # An update that says nothing in particular has all the bits, and matches only who wants all of them.
        return (
            self.resource == event.resource
            and bool(self.actions & event.action)
            and int(event.action) <= int(self.actions)
        )


def is_placed(pod: Pod) -> bool:
    """Whether a pod takes up room on a node, or will as soon as preemption has made some."""
    return bool(pod.spec.node_name or pod.status.nominated_node_name)
