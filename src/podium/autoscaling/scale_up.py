"""Growing: which group gets how many nodes for the pods that fit nowhere."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from podium.autoscaling.groups import NodeGroup
from podium.autoscaling.what_if import WhatIf
from podium.model import Pod
from podium.model.resources import CPU, MEMORY, pod_resources


@dataclass(frozen=True)
class Option:
    """A group that could grow by some nodes, and the pods that would fit then."""

    group: NodeGroup
    nodes: int
    pods: tuple[Pod, ...]
    waste: float
    """The share of cpu and memory of the new nodes that these pods leave unused, from 0 to 1."""

    @property
    def price(self) -> float:
        """Per hour, for each pod that is helped."""
        return self.group.price_per_hour * self.nodes / len(self.pods)


def options(
    waiting: Sequence[Pod], tried: WhatIf, room: Mapping[str, int], groups: Sequence[NodeGroup]
) -> list[Option]:
    """What each group could do for pods that fit nowhere in `tried`; `room` is how many nodes it may still get."""
    ordered = sorted(waiting, key=_size, reverse=True)
    found = (_option(group, ordered, tried.copy(), room[group.name]) for group in groups if room[group.name] > 0)
    return [option for option in found if option is not None]


def _size(pod: Pod) -> tuple[int, int]:
    requests = pod_resources(pod).requests
    return requests.get(CPU, 0), requests.get(MEMORY, 0)


def _option(group: NodeGroup, pods: Sequence[Pod], tried: WhatIf, room: int) -> Option | None:
    """Add nodes of a group one by one, each for a pod that does not fit on those there are."""
    helped: list[Pod] = []
    added = 0
    hopeless: set[object] = set()
    for pod in pods:
        kind = tried.cluster.infos.of(pod)
        if tried.fits(pod):
            helped.append(pod)
        elif added < room and kind not in hopeless:
            node = group.node(f"new-{added}")
            tried.add(node)
            if tried.fits(pod):
                helped.append(pod)
                added += 1
            else:
                hopeless.add(kind)
                tried.remove(node)
    if not added:
        return None
    nodes = [tried.cluster.rows[group.node(f"new-{number}").name] for number in range(added)]
    return Option(group, added, tuple(helped), _waste(tried, nodes))


def _waste(tried: WhatIf, rows: Sequence[int]) -> float:
    nodes = tried.cluster.nodes.of(np.array(rows))
    used = [nodes.requested(resource).sum() / max(nodes.allocatable(resource).sum(), 1) for resource in (CPU, MEMORY)]
    return 1 - float(sum(used)) / len(used)


def choose(found: Sequence[Option], expander: str, rng: random.Random) -> Option:
    """The option an expander prefers; of equals the one whose group stands first."""
    match expander:
        case "price":
            return min(found, key=lambda option: option.price)
        case "priority":
            return max(found, key=lambda option: option.group.priority)
        case "most-pods":
            return max(found, key=lambda option: len(option.pods))
        case "random":
            return rng.choice(found)
    return min(found, key=lambda option: option.waste)
