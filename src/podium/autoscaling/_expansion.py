"""Which group grows for pods that fit nowhere, and by how many nodes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from podium.autoscaling._node_groups import NodeGroup
from podium.autoscaling.trial_cluster import TrialCluster
from podium.cluster import PodInfo
from podium.model import Pod
from podium.model.quantity import parse_quantity
from podium.model.resources import CPU, MEMORY, pod_resources, scheduler_units
from podium.rules import Rules


@dataclass(frozen=True)
class ExpansionOption:
    """A group that could grow by some nodes, and the pods that would fit then."""

    group: NodeGroup
    nodes: int
    pods: tuple[Pod, ...]
    rules: Rules
    """The release that counts the pods."""

    @property
    def price(self) -> float:
        """The price per hour of the new nodes, divided by the number of pods they help."""
        return self.group.price_per_hour * self.nodes / len(self.pods)

    @property
    def waste(self) -> float:
        """The unused share of the new nodes' cpu plus the unused share of their memory, from 0 to 2."""
        template, asked = self.group.template, [pod_resources(pod, self.rules).requests for pod in self.pods]
        capacity = template.status.capacity or template.allocatable
        offered = scheduler_units({name: parse_quantity(amount) for name, amount in capacity.items()})
        requested = {name: sum(each.get(name, 0) for each in asked) for name in (CPU, MEMORY)}
        return sum(1 - amount / max(offered.get(name, 0) * self.nodes, 1) for name, amount in requested.items())


def options(
    waiting: Sequence[Pod], tried: TrialCluster, room: Mapping[str, int], groups: Sequence[NodeGroup]
) -> list[ExpansionOption]:
    """The option of each group that helps pods which fit nowhere in `tried`; `room` is how many nodes a group may still
    get.
    """
    ordered = sorted(waiting, key=lambda pod: _size(tried.cluster.info_of(pod)), reverse=True)
    found = (_option(group, ordered, tried, room[group.name]) for group in groups if room[group.name] > 0)
    return [option for option in found if option is not None]


def _size(info: PodInfo) -> tuple[int, int]:
    requests = info.resources.requests
    return requests.get(CPU, 0), requests.get(MEMORY, 0)


def _option(group: NodeGroup, pods: Sequence[Pod], tried: TrialCluster, room: int) -> ExpansionOption | None:
    """Try how many nodes a group needs: one is added for each pod that does not fit yet. `tried` stays as it is."""
    option: ExpansionOption | None = None

    def grow(trial: TrialCluster) -> bool:
        nonlocal option
        option = _grown(group, pods, trial, room)
        return option is not None

    tried.attempt(grow, keep=False)
    return option


def _grown(group: NodeGroup, pods: Sequence[Pod], tried: TrialCluster, room: int) -> ExpansionOption | None:
    helped: list[Pod] = []
    added = 0
    hopeless: set[object] = set()
    for pod in pods:
        kind = tried.cluster.infos.of(pod)
        if tried.fits(pod):
            helped.append(pod)
        elif added < room and kind not in hopeless:
            node = group.node(f"new_{added}")
            tried.add(node)
            if tried.fits(pod):
                helped.append(pod)
                added += 1
            else:
                hopeless.add(kind)
                tried.remove(node)
    return ExpansionOption(group, added, tuple(helped), tried.cluster.rules) if added else None


BY: Mapping[str, Callable[[ExpansionOption], float]] = {
    "least-waste": lambda option: option.waste,
    "price": lambda option: option.price,
    "priority": lambda option: -option.group.priority,
    "most-pods": lambda option: -len(option.pods),
    "least-nodes": lambda option: option.nodes,
}
"""The value of an option that each expander minimises."""


def choose(found: Sequence[ExpansionOption], expanders: Sequence[str], rng: random.Random) -> ExpansionOption:
    """Apply the expanders one after the other until one option is left; of equal ones, the first group in the file
    wins.
    """
    for expander in expanders:
        if expander == "random":
            return rng.choice(found)
        values = [BY[expander](option) for option in found]
        found = [option for option, value in zip(found, values, strict=True) if value == min(values)]
    return found[0]
