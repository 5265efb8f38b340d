"""Placing pods one after the other, with the reason at hand when one fits nowhere."""

from __future__ import annotations

from podium.cluster import Cluster, PodInfo
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.objects import Pod


def put_back(cluster: Cluster, pod: Pod, node: str) -> None:
    """Put a pod back on the node it was on, whether it says so itself or was only placed there."""
    if pod.spec.node_name:
        cluster.add(pod)
    else:
        cluster.assume(pod, node)


class Placing:
    """Places pods and remembers why some did not fit: until another is placed, equal pods fail alike.

    Tell it when pods left: then what did not fit may.
    """

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.message = ""
        """Why the last pod that was not placed fits nowhere."""
        self._failures: dict[tuple[PodInfo, str], str] = {}

    def place(self, pod: Pod) -> str | None:
        """Put the pod on its node; None if it fits nowhere or cannot be decided."""
        kind = (self.scheduler.cluster.info_of(pod), pod.spec.scheduler_name)
        if kind in self._failures:
            self.message = self._failures[kind]
            return None
        try:
            node = self.scheduler.schedule(pod)
        except (InputError, PluginError, ExtenderError) as error:
            self.message = str(error)
            return None
        if node is not None:
            self._failures.clear()
            return node
        decision = self.scheduler.decide(pod)
        self.message = self._failures[kind] = decision.error or decision.message
        return None

    def room_was_made(self) -> None:
        """Pods left: nothing that was learned about those that did not fit holds any more."""
        self._failures.clear()
