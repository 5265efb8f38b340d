"""The scheduler of a live cluster: begins to schedule when it is told to, and says how it goes."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from podium.config import KubeSchedulerConfiguration
from podium.live.client import ApiClient
from podium.live.decision_history import DecisionHistory
from podium.live.metrics import Metrics, watch_values
from podium.live.reflector import Reflectors
from podium.live.scheduling import RunSettings, Scheduling
from podium.loop import SchedulerLoop

SETTLES_WITHIN = 1.0
"""Seconds for the other kinds of objects to be listed again after the API server went back to an older state."""


class LiveScheduler:
    """Schedules the pods of one cluster while `run` runs."""

    def __init__(
        self,
        client: ApiClient,
        events_client: ApiClient,
        reflectors: Reflectors,
        config: KubeSchedulerConfiguration,
        settings: RunSettings = RunSettings(),
        **options: Any,
    ) -> None:
        """`options` are those of `Scheduler`: registry, tie_break and so on."""
        self._client, self._events_client, self._reflectors = client, events_client, reflectors
        self._config, self._settings, self._options = config, settings, options
        self._clients = {id(each): each for each in (client, events_client, reflectors.client)}.values()
        self._scheduling: Scheduling | None = None
        self.metrics = Metrics()

    @property
    def loop(self) -> SchedulerLoop | None:
        """None until `run` has begun to schedule."""
        return None if self._scheduling is None else self._scheduling.loop

    @property
    def history(self) -> DecisionHistory | None:
        """The last decisions; None until `run` has begun to schedule."""
        return None if self._scheduling is None else self._scheduling.history

    async def run(self, stop: asyncio.Event) -> bool:
        """Schedule until told to stop; bindings that were sent are then finished. Returns whether all of them were.

        If the API server went back to an older state, everything that was assumed is forgotten.
        """
        has_finished = True
        while not stop.is_set():
            self._scheduling = Scheduling(
                self._client,
                self._events_client,
                self._reflectors,
                self._config,
                self._settings,
                self.metrics,
                self._options,
            )
            has_finished = await self._scheduling.run(stop)
            if not stop.is_set():
                await asyncio.sleep(SETTLES_WITHIN)
        return has_finished

    async def measure(self) -> None:
        """Take the current state into the metrics."""
        errors = sum((each.errors for each in self._clients), Counter[int]())
        self.metrics.values = {
            **watch_values(self._reflectors.health(), errors),
            **(await self._scheduling.values() if self._scheduling is not None else {}),
        }

    def view_ages(self) -> dict[str, float]:
        """For each kind of object that can be read, the seconds since the last list, event or bookmark."""
        return {kind: each.age for kind, each in self._reflectors.health().items()}

    def seconds_since_turn(self) -> float:
        """How long the scheduler has been busy with one thing; 0 while it does not schedule."""
        return 0.0 if self._scheduling is None else self._scheduling.seconds_since_turn()

    async def explained(self, key: str) -> dict[str, Any] | str:
        """The last decision about a pod as a document, with its explanation; a sentence if there is none."""
        if self._scheduling is None:
            return "this replica is not the leader"
        return await self._scheduling.explained(key)
