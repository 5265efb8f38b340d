"""What is measured, and what is promised about it."""

from __future__ import annotations

from typing import Literal, NamedTuple

from bench.dump import WAITING

NODES, PODS = 5_000, 1_000
GROWTH = (1_000, 5_000, 20_000, 100_000)
DUMP = "{dump}"
"""Stands for the path of the dump in a command's arguments."""
GB = 1e9


class Figure(NamedTuple):
    """One number to measure: pods scheduled a second, or seconds taken by something else.

    Scheduling takes the pods one after the other on a fresh scheduler; making the cluster does not count.
    """

    name: str
    kind: Literal["schedule", "load", "build", "command", "hour", "full", "capacity"] = "schedule"
    shape: str = "basic"
    nodes: int = NODES
    pods: int = PODS
    running: int = 0
    apps: int = 0
    """In a full cluster, how many apps have nine kinds of pods each; 0 for three kinds without labels."""
    arguments: tuple[str, ...] = ()
    """Of the command line, for a command."""
    processes: int = 2
    repetitions: int = 4
    """In each process; the best of all counts."""
    is_quick: bool = True
    """Whether it is part of a quick run."""
    is_asked_for: bool = False
    """Whether it is measured only when it is asked for by its name: it takes minutes and gigabytes."""
    pods_per_second: int | None = None
    """Promised, at least."""
    seconds: float | None = None
    """Promised, at most."""
    peak: float | None = None
    """Promised, at most: bytes of memory."""

    @property
    def units(self) -> int:
        """How many things are done in the time measured."""
        return self.pods if self.kind == "schedule" else 1

    @property
    def fitting(self) -> int:
        """How many of the pods fit."""
        return self.pods - self.pods // 2 if self.shape == "unschedulable" else self.pods

    @property
    def needs_dump(self) -> bool:
        return self.kind in ("load", "build") or DUMP in self.arguments

    def quickly(self) -> Figure:
        return self._replace(processes=1, repetitions=min(self.repetitions, 3))


class Go(NamedTuple):
    """Pods a second of kube-scheduler's in-process algorithm, without an API server, on a machine of two cores."""

    sampling: int
    """With its default sampling: about one node in ten."""
    all_nodes: int


GO = {
    "basic": Go(667, 70),
    "mixed": Go(621, 113),
    "nodeaffinity": Go(509, 90),
    "antiaffinity": Go(262, 88),
    "affinity": Go(246, 78),
    "prefaffinity": Go(491, 91),
    "spread": Go(326, 78),
    "prefspread": Go(467, 64),
}

PROMISED = {
    "basic": 20_000,
    "mixed": 10_000,
    "nodeaffinity": 10_000,
    "antiaffinity": 10_000,
    "unschedulable": 10_000,
    "affinity": 5_000,
    "prefaffinity": 5_000,
    "spread": 5_000,
    "prefspread": 5_000,
}

SHAPES = (
    *(Figure(shape, shape=shape, pods_per_second=speed) for shape, speed in PROMISED.items()),
    Figure("running", running=50_000),
    Figure("distinct", shape="distinct", pods=10_000, repetitions=3, is_quick=False, pods_per_second=4_000),
    Figure("csipv", shape="csipv"),
    Figure("devices", shape="devices", nodes=1_000, pods=5_000, pods_per_second=500),
    Figure(
        "preemption",
        shape="preemption",
        nodes=1_000,
        running=4_000,
        repetitions=2,
        is_quick=False,
        pods_per_second=5_000,
    ),
)


def growth_name(shape: str, nodes: int) -> str:
    """The figure of a shape on a number of nodes; on 5,000 of them it is the shape's own."""
    return shape if nodes == NODES else f"{shape}-{nodes}"


GROWING = tuple(
    Figure(growth_name(shape, nodes), shape=shape, nodes=nodes, repetitions=3, is_quick=nodes <= 20_000)
    for shape in ("basic", "mixed")
    for nodes in GROWTH
    if nodes != NODES
)

LARGE = Figure(
    "large", nodes=100_000, pods=100_000, processes=1, repetitions=2, is_quick=False, seconds=30.0, peak=4 * GB
)

MILLION = tuple(
    Figure(
        f"million-{shape}",
        shape=shape,
        nodes=100_000,
        pods=1_000_000,
        processes=1,
        repetitions=1,
        is_quick=False,
        is_asked_for=True,
        seconds=90.0,
        peak=6 * GB,
    )
    for shape in ("basic", "mixed", "spread")
)

LOADING = (
    Figure("load", "load", processes=3, repetitions=1, is_quick=False, seconds=5.0, peak=1.5 * GB),
    Figure("build", "build", processes=3, repetitions=1, is_quick=False),
    Figure(
        "explain",
        "command",
        arguments=("explain", WAITING, "-f", DUMP),
        processes=1,
        repetitions=3,
        is_quick=False,
        seconds=8.0,
    ),
    Figure("help", "command", arguments=("--help",), processes=1, repetitions=10, seconds=0.3),
)

HOUR = Figure("hour", "hour", nodes=1_000, pods=20_000, processes=1, repetitions=2, is_quick=False, seconds=60.0)
"""An hour of cluster life: pods that come and go, and one node in a hundred that fails."""

FULL = tuple(
    Figure(name, "full", nodes=nodes, pods=pods, processes=1, repetitions=2, is_quick=False, seconds=seconds)
    for name, nodes, pods, seconds in (
        ("full", 50, 1_000, 2.0),
        ("full-3000", 50, 3_000, 6.0),
        ("full-10000", 200, 10_000, 20.0),
    )
)
"""Too many pods for the nodes: most of them wait, and are tried again whenever one ends."""

FULL_KINDS = tuple(
    Figure(name, "full", nodes=nodes, pods=pods, apps=apps, processes=1, repetitions=2, is_quick=False, seconds=seconds)
    for name, nodes, pods, apps, seconds in (
        ("full-kinds", 50, 1_000, 20, 2.0),
        ("full-kinds-3000", 50, 3_000, 20, 6.0),
        ("full-kinds-10000", 200, 10_000, 111, 20.0),
    )
)
"""The same with nine kinds of pods for each app: labels and requests differ."""

CAPACITY = Figure("capacity", "capacity", nodes=1_000, pods=40_000, processes=1, repetitions=3, seconds=2.0)
"""How many pods of `basic` fit."""

FIGURES = (*SHAPES, *GROWING, LARGE, *MILLION, *LOADING, HOUR, *FULL, *FULL_KINDS, CAPACITY)
BY_NAME = {figure.name: figure for figure in FIGURES}
