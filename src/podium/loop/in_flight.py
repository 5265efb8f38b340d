"""What happens while pods are between being taken from the queue and being placed or put back."""

from __future__ import annotations

from collections.abc import Iterator

from podium.framework.events import ClusterEvent


class InFlight:
    """Pods on their way, by namespace and name, and the events since the first of them set out."""

    def __init__(self) -> None:
        self._since: dict[str, int] = {}
        self._events: list[ClusterEvent] = []
        self._forgotten = 0

    def __contains__(self, key: str) -> bool:
        return key in self._since

    def __iter__(self) -> Iterator[str]:
        return iter(self._since)

    def start(self, key: str) -> None:
        self._since[key] = self._forgotten + len(self._events)

    def note(self, event: ClusterEvent) -> None:
        """Remember an event for the pods that are on their way; there is nothing to remember if none is."""
        if self._since:
            self._events.append(event)

    def events_for(self, key: str) -> list[ClusterEvent]:
        """What happened since a pod set out."""
        return self._events[self._since[key] - self._forgotten :]

    def done(self, key: str) -> None:
        """The pod has arrived: drop it, and the events that only it would have looked at."""
        self._since.pop(key, None)
        kept_from = min(self._since.values(), default=self._forgotten + len(self._events))
        del self._events[: kept_from - self._forgotten]
        self._forgotten = kept_from
