"""How a run of the study goes: the order in which tasks arrive, and how much of the GPUs they got."""

from collections import Counter

import numpy as np
from go_random import GoRandom
from gpu_share import GPU_MILLI, WHOLE
from msgspec.structs import replace
from typical_pods import COUNT, models

from podium import Objects, Simulation
from podium.model import Node, Pod

ARRIVING = 1.3  # tasks arrive until they ask for so much of all GPUs
MEASURED = (60, 80, 90, 100, 110, 120, 130)  # percent of the GPUs asked for so far
WATCHES = 10  # kinds of objects that the paper's simulator watches; it draws a number for each


def arrivals(objects: Objects, seed: int) -> list:
    """The nodes under names in random order, and the tasks in random order, as many as ask for 130 % of all GPUs.

    All tasks of the trace come first; behind them tasks drawn from it at random. Of a trace that asks for more, random
    tasks are left out. The draws are those of the paper's simulator, in its order.
    """
    rng, nodes, trace = GoRandom(seed), sorted(objects.of(Node), key=_name), objects.of(Pod)
    if not any(map(milli, trace)):
        raise ValueError("no task of the trace asks for GPUs")
    rng.int63()  # which the simulator writes to its log
    kinds = Counter(map(_kind, trace))
    tasks = sorted(trace, key=_name)
    rng.shuffle(tasks)
    most, asked = ARRIVING * sum(map(offered, nodes)), sum(map(milli, tasks))
    while asked > most:
        asked -= milli(tasks.pop(rng.intn(len(tasks))))
    # What a task asks for of one GPU decides whether it is the last.
    while len(tasks) >= len(trace) and asked + min(milli(task := trace[rng.intn(len(trace))]), WHOLE) <= most:
        asked += milli(task)
        tasks.append(_renamed(task, f"{task.name}-again-{len(tasks)}"))
    for _ in range(WATCHES):
        rng.int63()
    places = rng.perm(len(nodes))
    named = [_renamed(node, f"{place:05}-{node.name}") for place, node in zip(places, nodes, strict=True)]
    # Typical is what the whole trace asks for: the first task of a kind stands for all of that kind, others for none.
    return [*sorted(named, key=_name), *(_counting(task, kinds.pop(_kind(task), 0)) for task in tasks)]


def allocation(simulation: Simulation) -> dict[str, float]:
    """Percent of the GPUs that are allocated when the tasks so far asked for 60 ... 130 percent of them."""
    asked = np.array([milli(placement.pod) for placement in simulation.placements])
    was_placed = np.array([placement.node is not None for placement in simulation.placements])
    capacity = simulation.total.allocatable[GPU_MILLI] / 100
    arrived, allocated = asked.cumsum() / capacity, (asked * was_placed).cumsum() / capacity
    # As the paper does: the mean while it is that many percent, rounded; else what it was last.
    at = {percent: allocated[arrived.round() == percent] for percent in MEASURED}
    last = {percent: allocated[arrived <= percent][-1:] for percent in MEASURED}
    return {f"allocated_{percent}": (at[percent] if len(at[percent]) else last[percent]).mean() for percent in MEASURED}


def milli(task: Pod) -> int:
    return int(task.spec.containers[0].resources.requests.get(GPU_MILLI, 0))


def offered(node: Node) -> int:
    return int(node.status.allocatable.get(GPU_MILLI, 0))


def _name(item) -> str:
    return item.name


def _kind(task: Pod):
    requests = task.spec.containers[0].resources.requests
    return requests["cpu"], requests.get(GPU_MILLI), models(task)


def _counting(task: Pod, number: int) -> Pod:
    return replace(task, metadata=replace(task.metadata, annotations={COUNT: str(number)}))


def _renamed(item, name: str):
    return replace(item, metadata=replace(item.metadata, name=name))
