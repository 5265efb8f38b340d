"""What Podium would have decided, for every pod that a cluster's own scheduler binds."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any, NamedTuple

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Decision, Scheduler
from podium.live.reflector import Reflectors
from podium.loop import Event, EventType
from podium.model import Object, Pod

SLICE = 0.05
"""Seconds of deciding after which the reflectors get their turn."""


class Outcome(StrEnum):
    """How the two decisions compare."""

    SAME = "same"
    """The same node, the only best one."""
    TIE = "tie"
    """A node that is as good as any."""
    OTHER = "other"
    UNKNOWN = "unknown"
    """The state before is not known: a watch gap, or the pod was bound while Podium was catching up."""


class Compared(NamedTuple):
    """One pod that was bound."""

    time: float
    """Seconds since the epoch."""
    pod: str
    node: str
    outcome: Outcome
    podium: str | None = None
    """Where Podium would have put it; None if nowhere, or if that is not known."""
    plugin: str = ""
    """Which plugin made the difference."""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "outcome": self.outcome.value}


class Shadow:
    """A cluster as it changes, and what Podium decides just before each pod is bound. Writes nothing."""

    def __init__(self, objects: Iterable[Object], config: KubeSchedulerConfiguration | None, **options: Any) -> None:
        """`options` are those of `Scheduler`."""
        self.cluster = Cluster.from_objects(objects)
        self.scheduler = Scheduler(self.cluster, config, **options)
        self.outcomes: Counter[Outcome] = Counter()
        self.plugins: Counter[str] = Counter()
        """How often each plugin made a difference."""

    @property
    def agreement(self) -> float | None:
        """The share of pods on a node that is as good as any, of those that could be compared; None of none."""
        agreed = self.outcomes[Outcome.SAME] + self.outcomes[Outcome.TIE]
        known = agreed + self.outcomes[Outcome.OTHER]
        return agreed / known if known else None

    def handle(self, event: Event, *, has_gap: bool = False) -> Compared | None:
        """Take note of an event; for a pod that was bound by it, how that compares.

        With `has_gap` it is not known what else happened before it.
        """
        item = event.object
        if not isinstance(item, Pod):
            self.cluster.remove(item) if event.type is EventType.DELETE else self.cluster.update(item)
            return None
        compared = None
        if event.type is not EventType.DELETE and self._is_news(item):
            compared = self._compare(item, has_gap)
            self.outcomes[compared.outcome] += 1
            self.plugins[compared.plugin] += bool(compared.plugin)
        self._apply(event, item)
        return compared

    def _is_news(self, pod: Pod) -> bool:
        """Whether a pod of ours is bound that was not so far."""
        if not pod.spec.node_name or pod.spec.scheduler_name not in self.scheduler.frameworks or pod.finished:
            return False
        found = self.cluster.find_pod(pod.key)
        return found is None or found[1] is None

    def _apply(self, event: Event, pod: Pod) -> None:
        if event.type is EventType.DELETE or pod.finished:
            self.cluster.remove(pod)
        else:
            self.cluster.update(pod)
        self.scheduler.nominations.forget(pod)
        is_waiting = event.type is not EventType.DELETE and not pod.spec.node_name
        if is_waiting and pod.status.nominated_node_name and pod.spec.scheduler_name in self.scheduler.frameworks:
            self.scheduler.nominations.nominate(pod, pod.status.nominated_node_name)

    def _compare(self, pod: Pod, has_gap: bool) -> Compared:
        now, node = time.time(), pod.spec.node_name
        waiting = self.cluster.pending.get(pod.key)
        if has_gap:
            return Compared(now, pod.key, node, Outcome.UNKNOWN, reason="the watch had a gap")
        if waiting is None or waiting.metadata.uid != pod.metadata.uid:
            return Compared(now, pod.key, node, Outcome.UNKNOWN, reason="it was bound when it was first seen")
        decision = self.scheduler.decide(waiting)
        if decision.error:
            return Compared(now, pod.key, node, Outcome.UNKNOWN, reason=decision.error)
        if node == decision.node or node in decision.ties:
            outcome = Outcome.SAME if len(decision.ties) <= 1 else Outcome.TIE
            return Compared(now, pod.key, node, outcome, decision.node)
        plugin, reason = difference(decision, node)
        return Compared(now, pod.key, node, Outcome.OTHER, decision.node, plugin, reason)


def difference(decision: Decision, node: str) -> tuple[str, str]:
    """Which plugin kept a pod off the node it was bound to, or made another one win, and in what words."""
    status = decision.rejected.get(node)
    if status is not None:
        return status.plugin, f"{node} is rejected: {', '.join(status.reasons)}"
    if decision.node is None or node not in decision.totals:
        return "", f"{node} was not looked at"
    best = decision.node
    lost = {each.plugin: each.weighted[best] - each.weighted[node] for each in decision.scores}
    for name, scores in decision.extender_scores.items():
        lost[name] = scores[best] - scores[node]
    plugin = max(lost, key=lambda name: lost[name])
    totals = f"{decision.totals[best]} to {decision.totals[node]}"
    return plugin, f"{best} beats {node} by {totals}, {lost[plugin]} of it by {plugin}"


async def follow(
    shadow: Shadow, reflectors: Reflectors, stop: asyncio.Event, reports: Iterable[Callable[[Compared], None]]
) -> None:
    """Compare every pod that is bound from now on, until told to stop."""
    lists = reflectors.lists
    while not stop.is_set():
        reflectors.check()
        # A list that was made again may leave out what happened in between.
        has_gap, lists = reflectors.lists != lists, reflectors.lists
        until, events = time.monotonic() + SLICE, reflectors.events
        while events and (has_gap or time.monotonic() < until):
            compared = shadow.handle(events.popleft(), has_gap=has_gap)
            if compared is not None:
                for report in reports:
                    report(compared)
        if not events:
            reflectors.has_events.clear()
            waits = [asyncio.create_task(each.wait()) for each in (reflectors.has_events, stop)]
            await asyncio.wait(waits, timeout=1.0, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        await asyncio.sleep(0)
