"""How often something was asked and how long it took, in the text that Prometheus reads."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0)
"""Upper bounds, in seconds."""


class Metrics:
    """Requests by verb and status, failures of plugins, and a histogram of seconds for each verb."""

    def __init__(self, prefix: str, verbs: Sequence[str]) -> None:
        self._prefix = prefix
        self._requests: Counter[tuple[str, int]] = Counter()
        self._failures: Counter[str] = Counter(dict.fromkeys(verbs, 0))
        self._buckets = {verb: [0] * (len(BUCKETS) + 1) for verb in verbs}
        self._seconds = dict.fromkeys(verbs, 0.0)

    def observed(self, verb: str, seconds: float, status: int) -> None:
        """Count a request."""
        self._requests[verb, status] += 1
        self._buckets[verb][bisect_left(BUCKETS, seconds)] += 1
        self._seconds[verb] += seconds

    def failed(self, verb: str) -> None:
        """Count a plugin that failed."""
        self._failures[verb] += 1

    def text(self) -> str:
        """All of it, one sample a line."""
        name = self._prefix
        lines = [f"# HELP {name}_requests_total Requests by verb and status.", f"# TYPE {name}_requests_total counter"]
        for (verb, status), count in sorted(self._requests.items()):
            lines.append(f'{name}_requests_total{{verb="{verb}",code="{status}"}} {count}')
        lines += [
            f"# HELP {name}_plugin_failures_total Requests in which a plugin failed.",
            f"# TYPE {name}_plugin_failures_total counter",
            *(f'{name}_plugin_failures_total{{verb="{verb}"}} {count}' for verb, count in self._failures.items()),
            f"# HELP {name}_seconds How long requests took.",
            f"# TYPE {name}_seconds histogram",
        ]
        for verb, counts in self._buckets.items():
            below = 0
            for bound, count in zip((*map(str, BUCKETS), "+Inf"), counts, strict=True):
                below += count
                lines.append(f'{name}_seconds_bucket{{verb="{verb}",le="{bound}"}} {below}')
            lines.append(f'{name}_seconds_sum{{verb="{verb}"}} {self._seconds[verb]:.6f}')
            lines.append(f'{name}_seconds_count{{verb="{verb}"}} {below}')
        return "\n".join(lines) + "\n"
