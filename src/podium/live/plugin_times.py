"""How long plugins take, at each extension point and all of them together, under kube-scheduler's names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from time import perf_counter
from typing import Any

from podium.framework import Framework, Plugin, PostFilterResult, PreFilterResult, Status
from podium.live.metrics import Metrics

POINTS = {
    "pre_enqueue_in": "PreEnqueue",
    "pre_filter": "PreFilter",
    "filter": "Filter",
    "post_filter": "PostFilter",
    "pre_score": "PreScore",
    "score": "Score",
    "normalize": "ScoreExtensionNormalize",
    "reserve": "Reserve",
    "unreserve": "Unreserve",
    "permit": "Permit",
    "post_bind": "PostBind",
}
"""The methods of plugins that decide, and kube-scheduler's names of the points; who binds measures that itself."""
COUNTED = ("PreFilter", "Filter", "PreScore", "Score")
SAMPLED = 10
"""Of so many attempts, one has the time of each plugin measured, as in kube-scheduler."""


class PluginTimes:
    """Measures the plugins of a scheduler. What is known from earlier pods takes no time and is not measured."""

    def __init__(self, metrics: Metrics) -> None:
        self._seconds: dict[str, float] = {}
        """By extension point, in the attempt under way."""
        self._statuses: dict[str, str] = {}
        self._attempts = 0
        # Looking up the labels takes longer than counting.
        self._plugin = lru_cache(None)(metrics.plugin_seconds.labels)
        self._point = lru_cache(None)(metrics.point_seconds.labels)
        self._count = lru_cache(None)(metrics.plugin_evaluations.labels)

    def measure(self, frameworks: Mapping[str, Framework]) -> None:
        """Measure these profiles' plugins from now on."""
        for profile, framework in frameworks.items():
            for plugin in framework.plugins.values():
                for method, point in POINTS.items():
                    if hasattr(plugin, method):
                        setattr(plugin, method, self._measured(plugin, getattr(plugin, method), point, profile))

    def attempted(self, profile: str) -> None:
        """An attempt to schedule a pod is over: note how long its extension points took."""
        for point, seconds in self._seconds.items():
            self._point(point, self._statuses.get(point, "Success"), profile).observe(seconds)
        self._seconds.clear()
        self._statuses.clear()
        self._attempts += 1

    def _measured(self, plugin: Plugin, method: Callable[..., Any], point: str, profile: str) -> Callable[..., Any]:
        is_counted, name = point in COUNTED, plugin.name

        def measured(*arguments: Any) -> Any:
            begin = perf_counter()
            result = method(*arguments)
            seconds = perf_counter() - begin
            self._seconds[point] = self._seconds.get(point, 0.0) + seconds
            if is_counted:
                self._count(name, point, profile).inc()
            status = _status(result)
            if status != "Success":
                self._statuses[point] = status
            if self._attempts % SAMPLED == 0:
                self._plugin(name, point, status).observe(seconds)
            return result

        return measured


def _status(result: object) -> str:
    """The code of what a plugin returned; what it says of many nodes counts as success."""
    if isinstance(result, PreFilterResult | PostFilterResult):
        result = result.status
    elif isinstance(result, tuple) and not isinstance(result, Status):
        result = result[0]
    return str(result.code.value) if isinstance(result, Status) else "Success"
