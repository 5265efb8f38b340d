"""PrioritySort: the order of the queue."""

from __future__ import annotations

from podium.framework.plugin import QueuedPod, QueueSortPlugin


class PrioritySort(QueueSortPlugin):
    """Higher priority first, then the pod that has waited longer."""

    name = "PrioritySort"

    def sort_key(self, queued: QueuedPod) -> tuple[int, float]:
        return -queued.pod.priority, queued.timestamp
