"""Schedule the pods of a case, some at a time, with the version of Podium that is on the path.

usage: PYTHONPATH=VERSION/src python -P bench/turn_worker.py CASE      (bench.turns starts one for each version)

CASE is a JSON file: `objects` and `pods` as bench.shapes makes them, and `preempt`, whether pods may replace others.
It writes null when the case is loaded. Then each line of stdin is a request and gets a line of JSON: `round` makes a
new cluster and scheduler, and gets null; a number schedules so many of the next pods, and gets the seconds of processor
time and the pods' nodes.
"""

from __future__ import annotations

import gc
import inspect
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

# This script runs with old versions, too: they have these names, but not in the same modules.
from podium import Cluster, Scheduler, load

try:
    from podium.memory import collector_relaxed
except ImportError:
    # The versions before that module only collected less often.
    @contextmanager
    def collector_relaxed() -> Iterator[None]:
        young, *older = gc.get_threshold()
        gc.set_threshold(100 * young, *older)
        yield
        gc.set_threshold(young, *older)


class Round:
    """A new scheduler, and the pods that it is to schedule, one after the other."""

    def __init__(self, objects: Sequence[Any], pods: Sequence[Any], *, preempt: bool) -> None:
        scheduler = Scheduler(Cluster.from_objects([*objects, *pods]), tie_break="first")
        self._decide = _with_preemption(scheduler) if preempt else scheduler.schedule
        self._pods, self._done = pods, 0
        gc.collect()

    def decide(self, count: int) -> tuple[float, list[str | None]]:
        """Schedule the next `count` pods: seconds of processor time, and the node of each."""
        pods = self._pods[self._done : self._done + count]
        self._done += count
        start = time.process_time()
        with collector_relaxed():
            nodes = list(map(self._decide, pods))
        return time.process_time() - start, nodes


def _with_preemption(scheduler: Scheduler) -> Callable[[Any], str | None]:
    """What takes a pod to its node and evicts others for it, in the fastest way that this version has."""
    if "preempt" in inspect.signature(scheduler.schedule).parameters:
        return partial(scheduler.schedule, preempt=True)
    return partial(_place_and_schedule, scheduler)


def _place_and_schedule(scheduler: Scheduler, pod: Any) -> str | None:
    """Make room for the pod, then schedule it again as the queue would: it is nominated to where room was made."""
    decision = scheduler.place(pod, preempt=True)
    return scheduler.schedule(pod) if decision.nominated else decision.node


def main() -> None:
    """Answer requests until there are no more."""
    case = json.loads(Path(sys.argv[1]).read_bytes())
    objects, pods = list(load(case["objects"])), list(load(case["pods"]))
    current: Round | None = None
    print("null", flush=True)
    for request in sys.stdin:
        answer: object = None
        if request.strip() == "round":
            # Memory of the cluster before is free when the next one is made.
            current = None
            gc.collect()
            current = Round(objects, pods, preempt=case["preempt"])
        elif current is not None:
            answer = current.decide(int(request))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
