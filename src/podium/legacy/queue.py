"""The queue of releases that do not order pods by priority."""

from __future__ import annotations

from podium.framework.plugin import QueuedPod, QueueSortPlugin


class FirstInFirstOut(QueueSortPlugin):
    """The pod that has waited longest first."""

    name = "FirstInFirstOut"

    def sort_key(self, queued: QueuedPod) -> float:
        return queued.timestamp
