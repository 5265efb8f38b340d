"""Measuring one figure, in processes of its own: what other figures leave behind in memory does not matter.

usage: python -m bench.measure FIGURE REPETITIONS [DUMP]      (writes samples as JSON)
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import msgspec

from bench.figures import BY_NAME, DUMP, Figure
from bench.hour import full_events, full_kinds_events, full_nodes, hour_events, hour_nodes
from bench.reference import SLICES, Sample, Yardstick, peak_bytes, take
from bench.shapes import Fields, case
from podium.answers import capacity
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.manifests import load
from podium.memory import collector_relaxed
from podium.model import Node, Object, Pod
from podium.timeline import Timeline, TimelineResult

ROOT = Path(__file__).parent.parent


class BrokenError(Exception):
    """What was to be measured did not do its work, so how long it took means nothing."""


def measure(figure: Figure, dump: Path | None = None) -> list[Sample]:
    """Every sample of a figure; `dump` is the file for those that need it."""
    if figure.kind == "command":
        return [_command(figure, dump) for _ in range(figure.repetitions)]
    return [sample for _ in range(figure.processes) for sample in _in_own_process(figure, dump)]


def _in_own_process(figure: Figure, dump: Path | None) -> list[Sample]:
    arguments = [sys.executable, "-m", "bench.measure", figure.name, str(figure.repetitions)]
    done = subprocess.run([*arguments, *([str(dump)] if dump else [])], stdout=subprocess.PIPE, cwd=ROOT, check=False)
    if done.returncode:
        raise BrokenError(f"{figure.name}: failed, see above")
    return msgspec.json.decode(done.stdout, type=list[Sample])


def _command(figure: Figure, dump: Path | None) -> Sample:
    """The command line from a cold start to its end."""
    program = Path(sys.executable).parent / "podium"
    arguments = [str(dump) if argument == DUMP else argument for argument in figure.arguments]
    yardstick = Yardstick()
    yardstick.run(SLICES // 2)
    start = time.perf_counter()
    process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = time.perf_counter() - start
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise BrokenError(f"{figure.name}: podium {' '.join(arguments)} ended with {process.returncode}")
    yardstick.run(SLICES // 2)
    return Sample(seconds, usage.ru_utime + usage.ru_stime, yardstick.seconds, peak_bytes(usage))


# -- in the process of the figure ----------------------------------------------------------------------------------


def samples(figure: Figure, dump: Path | None = None) -> Iterator[Sample]:
    """Measure in this process."""
    if figure.kind == "schedule":
        yield from _schedule(figure)
    elif figure.kind == "hour":
        yield from _hour(figure)
    elif figure.kind == "full":
        yield from _full(figure)
    elif figure.kind == "capacity":
        yield from _capacity(figure)
    elif dump is None:
        raise ValueError(f"{figure.name} needs a dump")
    elif figure.kind == "load":
        for _ in range(figure.repetitions):
            yield take([lambda: load(dump)])
    else:
        objects = load(dump)
        for _ in range(figure.repetitions):
            yield take([lambda: Cluster.from_objects(objects)])


def _schedule(figure: Figure) -> Iterator[Sample]:
    objects, pods = _objects(figure)
    for _ in range(figure.repetitions):
        decide = _decider(figure, Cluster.from_objects([*objects, *pods]))
        placed: list[str | None] = []
        gc.collect()
        yield take([partial(_decide_all, decide, some, placed) for some in _in_turn(pods)])
        fitting = len(pods) - placed.count(None)
        if fitting != figure.fitting:
            raise BrokenError(f"{figure.name}: {fitting} of {len(pods)} pods were scheduled, not {figure.fitting}")


def _hour(figure: Figure) -> Iterator[Sample]:
    nodes, events = hour_nodes(figure.nodes), hour_events(0, figure.nodes, figure.pods)
    for _ in range(figure.repetitions):
        yield take([lambda: Timeline(nodes, events).run()])


def _full(figure: Figure) -> Iterator[Sample]:
    nodes = full_nodes(figure.nodes)
    events = full_kinds_events(0, figure.pods, figure.apps) if figure.apps else full_events(0, figure.pods)
    for _ in range(figure.repetitions):
        results: list[TimelineResult] = []
        yield take([partial(_live_through, nodes, events, results)])
        if results[0].unplaced:
            raise BrokenError(f"{figure.name}: {len(results[0].unplaced)} pods never got a node")


def _live_through(nodes: list[Node], events: list[Fields], results: list[TimelineResult]) -> None:
    results.append(Timeline(nodes, events).run())


def _capacity(figure: Figure) -> Iterator[Sample]:
    objects, (pod, *_) = _objects(figure._replace(pods=1))
    cluster = Cluster.from_objects(objects)
    for _ in range(figure.repetitions):
        found: list[int] = []
        yield take([partial(_fill, cluster, pod, found)])
        if found != [figure.pods]:
            raise BrokenError(f"{figure.name}: {found[0]} pods fit, not {figure.pods}")


def _fill(cluster: Cluster, pod: Pod, found: list[int]) -> None:
    found.append(capacity(cluster, pod).count)


def _objects(figure: Figure) -> tuple[list[Object], list[Pod]]:
    made = case(figure.shape, figure.nodes, figure.pods, figure.running)
    return list(load(made["objects"])), load(made["pods"]).of(Pod)


def _in_turn(pods: list[Pod]) -> list[list[Pod]]:
    """The pods in as many parts as the yardstick has slices."""
    size = max(len(pods) // SLICES, 1)
    return [pods[start : start + size] for start in range(0, len(pods), size)]


def _decider(figure: Figure, cluster: Cluster) -> Callable[[Pod], str | None]:
    """What takes a pod to its node, on a fresh scheduler."""
    scheduler = Scheduler(cluster, tie_break="first")
    return partial(_preempt, scheduler) if figure.shape == "preemption" else scheduler.schedule


def _decide_all(decide: Callable[[Pod], str | None], pods: list[Pod], placed: list[str | None]) -> None:
    with collector_relaxed():
        placed.extend(map(decide, pods))


def _preempt(scheduler: Scheduler, pod: Pod) -> str | None:
    """Make room for the pod, and schedule it again as the queue would: it is nominated to where room was made."""
    return scheduler.schedule(pod, preempt=True)


def main() -> None:
    try:
        name, repetitions, *rest = sys.argv[1:]
        figure = BY_NAME[name]._replace(repetitions=int(repetitions))
    except (ValueError, KeyError):
        raise SystemExit(__doc__) from None
    taken = list(samples(figure, Path(rest[0]) if rest else None))
    sys.stdout.buffer.write(msgspec.json.encode(taken))


if __name__ == "__main__":
    main()
