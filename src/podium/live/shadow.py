"""Compares Podium's decision with every binding of a cluster's own scheduler; `podium shadow` as a process."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import AsyncExitStack
from enum import StrEnum
from typing import Any, NamedTuple

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client import Counter as PrometheusClientCounter

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine import Decision, Scheduler
from podium.errors import InputError
from podium.live.client import Access, ApiClient
from podium.live.metrics import CONTENT_TYPE, exposition
from podium.live.reading import SCHEDULED_BY
from podium.live.reflector import Reflectors
from podium.loop import Event, EventType
from podium.model import Object, Pod

SLICE = 0.05
"""Seconds of deciding after which the reflectors get their turn."""


LOOKS_AHEAD = 32
"""How many pods, bound one after the other, may have been decided in another order."""
QUIET = 0.5
"""After this many seconds without an event, no pod is expected that was decided before those seen."""


class Outcome(StrEnum):
    """How the two decisions compare."""

    SAME = "same"
    """The same node, the only best one."""
    TIE = "tie"
    """Another node with the same score."""
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
    """Podium's node; None if the pod fits nowhere, or if that is not known."""
    plugin: str = ""
    """The plugin that made the difference."""
    reason: str = ""

    def to_dict(self) -> dict[str, Any]:
        return {**self._asdict(), "outcome": self.outcome.value}


class Shadow:
    """Follows a cluster, and decides each pod on the state just before it was bound. Writes nothing."""

    def __init__(self, objects: Iterable[Object], config: KubeSchedulerConfiguration | None, **options: Any) -> None:
        """`options` are those of `Scheduler`."""
        self.cluster = Cluster.from_objects(objects)
        self.scheduler = Scheduler(self.cluster, config, **options)
        self.outcomes: Counter[Outcome] = Counter()
        self.plugins: Counter[str] = Counter()
        """How often each plugin made a difference."""
        self._held: dict[str, Pod] = {}
        """Pods that were bound and are not compared yet."""

    @property
    def agreement(self) -> float | None:
        """The share of the compared pods that are on a node as good as Podium's; None if there are none."""
        agreed = self.outcomes[Outcome.SAME] + self.outcomes[Outcome.TIE]
        known = agreed + self.outcomes[Outcome.OTHER]
        return agreed / known if known else None

    def handle(self, event: Event, *, has_gap: bool = False) -> list[Compared]:
        """Handle an event; returns the comparisons that are complete now.

        A scheduler may bind pods in another order than it decides them. So pods bound one after the other wait here for
        a moment, and those that agree come first. With `has_gap`, earlier events may have been missed.
        """
        item = event.object
        if isinstance(item, Pod) and event.type is not EventType.DELETE and not item.finished:
            if item.key in self._held:
                self._held[item.key] = item
                return []
            if self._is_news(item):
                return self._bound(item, has_gap)
            self._apply(event, item)
            return []
        compared = self.settle()
        if isinstance(item, Pod):
            self._apply(event, item)
        else:
            self.cluster.remove(item) if event.type is EventType.DELETE else self.cluster.update(item)
        return compared

    def settle(self) -> list[Compared]:
        """Compare all waiting pods, because something happened after they were decided."""
        return [self._settle_one() for _ in range(len(self._held))]

    def _bound(self, pod: Pod, has_gap: bool) -> list[Compared]:
        waiting = self.cluster.pending.get(pod.key)
        if has_gap:
            return [*self.settle(), self._unknown(pod, "the watch had a gap")]
        if waiting is None or waiting.metadata.uid != pod.metadata.uid:
            return [*self.settle(), self._unknown(pod, "it was bound when it was first seen")]
        self._held[pod.key] = pod
        return [self._settle_one()] if len(self._held) > LOOKS_AHEAD else []

    def _settle_one(self) -> Compared:
        """Compare one of the waiting pods: the first that agrees, else the one that was bound first."""
        first = None
        for pod in list(self._held.values()):
            compared = self._compare(pod)
            first = first or compared
            if compared.outcome is not Outcome.OTHER:
                first = compared
                break
        assert first is not None, "called only if a pod waits"
        self._counted(first, self._held.pop(first.pod))
        return first

    def _unknown(self, pod: Pod, reason: str) -> Compared:
        compared = Compared(time.time(), pod.key, pod.spec.node_name, Outcome.UNKNOWN, reason=reason)
        self._counted(compared, pod)
        return compared

    def _counted(self, compared: Compared, pod: Pod) -> None:
        self.outcomes[compared.outcome] += 1
        self.plugins[compared.plugin] += bool(compared.plugin)
        self._apply(Event(EventType.UPDATE, pod), pod)

    def _is_news(self, pod: Pod) -> bool:
        """Whether a pod of this scheduler is newly bound."""
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

    def _compare(self, pod: Pod) -> Compared:
        now, node, waiting = time.time(), pod.spec.node_name, self.cluster.pending[pod.key]
        decision = self.scheduler.decide(waiting)
        if decision.error:
            return Compared(now, pod.key, node, Outcome.UNKNOWN, reason=decision.error)
        if node == decision.node or node in decision.ties:
            outcome = Outcome.SAME if len(decision.ties) <= 1 else Outcome.TIE
            return Compared(now, pod.key, node, outcome, decision.node)
        plugin, reason = difference(decision, node)
        return Compared(now, pod.key, node, Outcome.OTHER, decision.node, plugin, reason)


def difference(decision: Decision, node: str) -> tuple[str, str]:
    """The plugin that kept a pod off the node it was bound to, or made another node win, and a sentence."""
    status = decision.rejected.get(node)
    if status is not None:
        return status.plugin, f"{node} is rejected: {', '.join(status.reasons)}"
    if decision.node is None or node not in decision.totals:
        return "", f"{node} was not checked"
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
        # A repeated list may lack events in between.
        has_gap, lists = reflectors.lists != lists, reflectors.lists
        until, events = time.monotonic() + SLICE, reflectors.events
        while events and (has_gap or time.monotonic() < until):
            _tell(shadow.handle(events.popleft(), has_gap=has_gap), reports)
        if not events:
            reflectors.has_events.clear()
            waits = [asyncio.create_task(each.wait()) for each in (reflectors.has_events, stop)]
            done, _ = await asyncio.wait(waits, timeout=QUIET, return_when=asyncio.FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
            if not done:
                _tell(shadow.settle(), reports)
        await asyncio.sleep(0)
    _tell(shadow.settle(), reports)


def _tell(found: Iterable[Compared], reports: Iterable[Callable[[Compared], None]]) -> None:
    for compared in found:
        for report in reports:
            report(compared)


Report = Callable[[Compared], None]


def run_shadow(
    access: Access,
    config: KubeSchedulerConfiguration | None,
    report: Report,
    *,
    port: int | None = None,
    seconds: float | None = None,
    on_start: Callable[[Shadow], None] = lambda shadow: None,
    **options: Any,
) -> Shadow:
    """Follow a cluster until SIGTERM, SIGINT or the end of the time; returns the results. `options` are those of
    `Scheduler`.
    """
    return asyncio.run(_run(access, config, report, port, seconds, on_start, options))


async def _run(
    access: Access,
    config: KubeSchedulerConfiguration | None,
    report: Report,
    port: int | None,
    seconds: float | None,
    on_start: Callable[[Shadow], None],
    options: dict[str, Any],
) -> Shadow:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    async with AsyncExitStack() as stack:
        reflectors = Reflectors(await stack.enter_async_context(ApiClient(access)), SCHEDULED_BY)
        await reflectors.start()
        stack.push_async_callback(reflectors.stop)
        await reflectors.synced()
        shadow = Shadow(reflectors.begin(), config, **options)
        metrics = _Metrics()
        if port is not None:
            stack.push_async_callback(await metrics.serve(port))
        if seconds is not None:
            loop.call_later(seconds, stop.set)
        on_start(shadow)
        await follow(shadow, reflectors, stop, [metrics.count, report])
        shadow.scheduler.close()
        return shadow


class _Metrics:
    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._pods = PrometheusClientCounter(
            "podium_shadow_pods_total",
            "Pods bound, by how Podium's decision compares.",
            ["outcome"],
            registry=self._registry,
        )
        self._plugins = PrometheusClientCounter(
            "podium_shadow_differences_total",
            "Pods that Podium puts elsewhere, by the plugin that makes the difference.",
            ["plugin"],
            registry=self._registry,
        )

    def count(self, compared: Compared) -> None:
        self._pods.labels(compared.outcome.value).inc()
        if compared.plugin:
            self._plugins.labels(compared.plugin).inc()

    async def serve(self, port: int) -> Callable[[], Any]:
        """Listen on the loopback interface; returns a function that stops it."""
        app = web.Application()
        app.add_routes([web.get("/metrics", self._answer)])
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, "127.0.0.1", port).start()
        except OSError as error:
            raise InputError(f"cannot listen at port {port}: {os.strerror(error.errno or 0).lower()}") from None
        return runner.cleanup

    async def _answer(self, request: web.Request) -> web.Response:
        return web.Response(body=exposition(self._registry), headers={"Content-Type": CONTENT_TYPE})
