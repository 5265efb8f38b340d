"""How many more pods fit, placed one by one until one does not; how many nodes the remaining pods need; and which
devices there are, which pods hold them, and which are free.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import Any, NamedTuple, Unpack

from podium.answers.node_mixes import NodesNeeded, NodeTemplate, nodes_needed
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.engine.scheduler import Config, SchedulerKeywords, SchedulerOptions
from podium.errors import InputError, PluginError
from podium.framework.obstacle import Obstacle, RejectedNodes
from podium.lookup import find_nodes
from podium.model import DeviceClass, Pod, ResourceClaim
from podium.model.pod import is_of_daemon_set
from podium.model.quantity import format_quantity
from podium.plugins.dynamic_resources.device_selectors import SelectionError, selects
from podium.plugins.dynamic_resources.inventory import Inventory, inventory_of
from podium.plugins.dynamic_resources.pools import CandidateDevice, DeviceID, PooledDevice
from podium.plugins.dynamic_resources.requests import expressions_of
from podium.plugins.dynamic_resources.shared_counters import CounterUse
from podium.rules import Rules
from podium.wording import counted
from podium.workloads import workload_of
from podium.workloads.replicas import pods_of


@dataclass(frozen=True, slots=True)
class Fits:
    """How many pods of one template fit, and on which nodes, in the order in which nodes were first used."""

    template: Pod
    nodes: Mapping[str, int]

    @property
    def count(self) -> int:
        return sum(self.nodes.values())

    @property
    def workload(self) -> str:
        return workload_of(self.template)

    def to_dict(self) -> dict[str, Any]:
        return {
            "pod": self.template.key,
            "workload": self.workload,
            "count": self.count,
            "nodes": dict(self.nodes),
        }


@dataclass(frozen=True, slots=True)
class Capacity:
    """How many more pods fit, where, and why the next one does not."""

    fits: tuple[Fits, ...]
    """One for each template."""
    mix: tuple[int, ...]
    """How many pods of each template are placed per round."""
    limit: int
    """The number of pods after which the search stops; 0 for no limit."""
    stopped_by: Decision | None
    """The decision about the first pod that does not fit; None if all fit up to the limit."""
    cluster: Cluster
    """The cluster with all fitting pods placed."""
    obstacles: Mapping[str, tuple[Obstacle, ...]] = field(default_factory=dict)
    """Per node that rejected the first pod that does not fit, the things in the way that can be named."""

    @property
    def count(self) -> int:
        """How many pods fit, of all templates together."""
        return sum(fits.count for fits in self.fits)

    @property
    def message(self) -> str:
        """Why the next pod does not fit, in a sentence."""
        if self.stopped_by is None and not self.limit:
            return "every node that it is meant for has one"
        if self.stopped_by is None:
            return f"the limit of {counted(self.limit, 'pod')} is reached"
        return self.stopped_by.error or self.stopped_by.message

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain data."""
        return {
            "count": self.count,
            "mix": list(self.mix),
            "limit": self.limit or None,
            "pods": [fits.to_dict() for fits in self.fits],
            "stoppedBy": self.stopped_by_dict(),
        }

    def stopped_by_dict(self) -> dict[str, Any]:
        """Why the next pod does not fit, as plain data."""
        stopped_by = self.stopped_by
        return {
            "pod": None if stopped_by is None else stopped_by.pod,
            "message": self.message,
            "reasons": {} if stopped_by is None else dict(sorted(stopped_by.reasons().items())),
        }


def capacity(
    cluster: Cluster,
    templates: Pod | Sequence[Pod],
    config: Config | SchedulerOptions = None,
    *,
    mix: Sequence[int] = (),
    limit: int = 0,
    exclude_nodes: Iterable[str] = (),
    **keywords: Unpack[SchedulerKeywords],
) -> Capacity:
    """Place pods of the templates one by one, as the scheduler would, until one fits nowhere.

    The cluster stays as it is. Several templates take turns: each round places as many pods of each as `mix` says, by
    default one. Nothing is evicted for them, and pending pods of the cluster take no room. For a DaemonSet, one pod is
    tried on each eligible node.
    """
    templates = (templates,) if isinstance(templates, Pod) else tuple(templates)
    turns = checked_mix(mix, templates)
    cluster = without_nodes(cluster, exclude_nodes)
    wanted = limit or None
    nodes: list[Counter[str]] = [Counter() for _ in templates]
    stopped_by: Decision | None = None
    obstacles: Mapping[str, tuple[Obstacle, ...]] = {}
    with closing(Scheduler(cluster, SchedulerOptions.steady(config, **keywords))) as scheduler:
        for place, pod in islice(pods_of(templates, turns, cluster), wanted):
            try:
                node = None if pod.spec.scheduling_gates else scheduler.schedule(pod)
            except PluginError as error:
                raise InputError(f"pod {pod.key} cannot be decided: {error}") from error
            if node is not None:
                nodes[place][node] += 1
                continue
            if stopped_by is None:
                stopped_by = scheduler.decide(pod, preempt=True)
                rejected = RejectedNodes(pod, stopped_by.rejected, cluster)
                obstacles = scheduler.framework_of(pod).obstacles(rejected) if stopped_by.rejected else {}
            if not is_of_daemon_set(pod):
                break
    fits = tuple(Fits(template, dict(counts)) for template, counts in zip(templates, nodes, strict=True))
    return Capacity(fits, turns, limit, stopped_by, cluster, obstacles)


def without_nodes(cluster: Cluster, excluded: Iterable[str]) -> Cluster:
    """A copy of the cluster without some nodes; InputError for a node that it does not have."""
    cluster = cluster.fork()
    for name in find_nodes(cluster, excluded):
        cluster.remove(cluster.node(name))
    return cluster


def checked_mix(mix: Sequence[int], templates: Sequence[Pod]) -> tuple[int, ...]:
    """How many pods of each template come in turn; by default one."""
    if not templates:
        raise InputError("no pod to find the capacity for; give at least one")
    if not mix:
        return (1,) * len(templates)
    if len(mix) != len(templates):
        numbers = counted(len(mix), "number")
        raise InputError(f"a mix of {numbers} for {counted(len(templates), 'pod')}; give one number for each pod")
    if any(number < 1 for number in mix):
        raise InputError(f"a mix of {':'.join(map(str, mix))}; each number must be at least 1")
    return tuple(mix)


@dataclass(frozen=True, slots=True)
class CapacityQuestion:
    """How many more pods of some templates fit, and how many nodes the others, or the pending pods, need."""

    templates: Sequence[Pod]
    mix: Sequence[int]
    """How many pods of each template come in turn; empty if each template is counted on its own."""
    at_least: int
    """How many pods there are to be: nodes are added for those that do not fit."""
    limit: int
    offers: Sequence[NodeTemplate]
    """The nodes that can be added; empty if that is not asked."""
    excluded: Sequence[str]
    """The nodes that do not count."""

    @property
    def counts_each(self) -> bool:
        """Whether every template is counted on its own."""
        return len(self.templates) > 1 and not self.mix and not self.offers

    def count_each(self, cluster: Cluster, options: SchedulerOptions) -> list[Capacity]:
        """How many pods of each template fit while there are none of the others."""
        cluster = without_nodes(cluster, self.excluded)
        return [capacity(cluster, template, options, limit=self.limit) for template in self.templates]

    def count(self, cluster: Cluster, options: SchedulerOptions) -> tuple[Capacity | None, NodesNeeded | None]:
        """How many pods fit, if there are templates; how many nodes the rest needs, if nodes are offered."""
        cluster = without_nodes(cluster, self.excluded)
        found, waiting = None, list(cluster.pending.values())
        if self.templates:
            most = self.limit or (self.at_least if self.offers else 0)
            found = capacity(cluster, self.templates, options, mix=self.mix, limit=most)
            cluster, waiting = found.cluster, []
            if self.offers:
                more = pods_of(self.templates, found.mix, cluster)
                waiting = [pod for _, pod in islice(more, max(self.at_least - found.count, 0))]
        return found, nodes_needed(cluster, waiting, self.offers, options) if self.offers else None


# -- devices -----------------------------------------------------------------------------------------------------------


MANY_NODES = "(several nodes)"
NO_CLASS = "-"


class DeviceState(StrEnum):
    """Why a device is not free for new claims; the first state that applies."""

    IN_USE = "in use"
    UNUSABLE = "unusable"
    """Its pool is incomplete, invalid or replaced, or no node can use it."""
    BLOCKED = "blocked"
    """Devices that share counters with it are in use."""
    TAINTED = "tainted"
    SHARED = "shared"
    """In use, but open for more claims."""
    FREE = "free"


class Holder(NamedTuple):
    """A claim that has a device, and the pods it is reserved for."""

    claim: str
    """namespace/name"""
    request: str
    pods: tuple[str, ...]
    consumed: dict[str, str]
    """The capacity of a shared device that it uses."""
    is_admin: bool


@dataclass(frozen=True, slots=True)
class DeviceStatus:
    """One device."""

    id: DeviceID
    node: str
    """The node that can use it; MANY_NODES for several, empty for none."""
    classes: tuple[str, ...]
    state: DeviceState
    holders: tuple[Holder, ...]
    left: dict[str, str]
    """The remaining capacity of a shared device."""
    taints: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Devices:
    """All devices, ordered by node, driver, pool and name, and the pools that cannot be used."""

    devices: tuple[DeviceStatus, ...]
    problems: tuple[str, ...]
    """`resource pool driver/pool is currently invalid`"""

    def counts(self) -> dict[tuple[str, str], Counter[DeviceState]]:
        """The number of devices per state, by node and class; a device of two classes counts for both."""
        found: dict[tuple[str, str], Counter[DeviceState]] = {}
        for device in self.devices:
            for name in device.classes or (NO_CLASS,):
                found.setdefault((device.node, name), Counter())[device.state] += 1
        return found

    def to_dict(self) -> dict[str, Any]:
        """The devices as plain data."""
        return {
            "classes": [
                {"node": node or None, "class": None if name == NO_CLASS else name, "devices": counts.total()}
                | {_camel(state): counts[state] for state in DeviceState}
                for (node, name), counts in self.counts().items()
            ],
            "devices": [_document(device) for device in self.devices],
            "problems": list(self.problems),
        }


def devices(cluster: Cluster, rules: Rules) -> Devices:
    """The devices in the cluster, by the rules of a release."""
    inventory = inventory_of(cluster, rules)
    holders = _holders(cluster)
    candidates = dict(_candidates(inventory, cluster))
    classes = [(each.name, expressions_of(each.spec.selectors)) for each in cluster.store.of(DeviceClass)]
    found = []
    for device in (device for each in inventory.slices() for device in each.devices):
        nodes, candidate = candidates.get(device, ([], None))
        found.append(
            DeviceStatus(
                device.id,
                nodes[0] if len(nodes) == 1 else MANY_NODES if nodes else device.reach.node_name or "",
                tuple(name for name, expressions in classes if _is_of(expressions, device, rules)),
                _state(device, candidate, inventory),
                tuple(holders.get(device.id, ())),
                _left(device, inventory),
                tuple(f"{taint.key}={taint.value}:{taint.effect}" for taint in device.taints),
            )
        )
    problems = {inventory.pools_of(row).problem for row in cluster.rows.values()} - {""}
    return Devices(
        tuple(sorted(found, key=lambda each: (each.node == MANY_NODES, each.node, each.id))),
        tuple(f"resource pool {problem}" for problem in sorted(problems)),
    )


def _candidates(
    inventory: Inventory, cluster: Cluster
) -> Iterator[tuple[PooledDevice, tuple[list[str], CandidateDevice]]]:
    """Per usable device, the nodes that can use it, and one of them to look up its pool."""
    found: dict[PooledDevice, tuple[list[str], CandidateDevice]] = {}
    for name, row in sorted(cluster.rows.items()):
        for candidate in inventory.pools_of(row).candidates:
            if candidate.is_reachable:
                found.setdefault(candidate.device, ([], candidate))[0].append(name)
    return iter(found.items())


def _state(device: PooledDevice, candidate: CandidateDevice | None, inventory: Inventory) -> DeviceState:
    in_use = inventory.in_use
    if device.id in in_use.exclusively:
        return DeviceState.IN_USE
    if candidate is None:
        return DeviceState.UNUSABLE
    if in_use.is_allocated(device.id):
        return DeviceState.SHARED
    if device.counters and not CounterUse(in_use).has_enough(candidate.pool, device):
        return DeviceState.BLOCKED
    return DeviceState.TAINTED if device.taints else DeviceState.FREE


def _left(device: PooledDevice, inventory: Inventory) -> dict[str, str]:
    consumed = inventory.in_use.consumed.get(device.id, {})
    if not device.is_shared:
        return {}
    return {
        name: format_quantity(each.value.value - consumed.get(name, 0), binary=each.value.text.endswith("i"))
        for name, each in device.capacity.items()
    }


def _is_of(expressions: tuple[str, ...], device: PooledDevice, rules: Rules) -> bool:
    try:
        return selects(expressions, device, rules)
    except SelectionError:
        return False


def _holders(cluster: Cluster) -> dict[DeviceID, list[Holder]]:
    found: dict[DeviceID, list[Holder]] = {}
    for claim in cluster.store.of(ResourceClaim):
        for device, holder in _held(claim):
            found.setdefault(device, []).append(holder)
    return found


def _held(claim: ResourceClaim) -> Iterable[tuple[DeviceID, Holder]]:
    pods = tuple(each.name for each in claim.status.reserved_for if each.resource == "pods")
    for result in claim.status.allocation.devices.results if claim.status.allocation else ():
        consumed = {name: str(amount) for name, amount in (result.consumed_capacity or {}).items()}
        holder = Holder(claim.key, result.request, pods, consumed, bool(result.admin_access))
        yield DeviceID(result.driver, result.pool, result.device), holder


def _document(device: DeviceStatus) -> dict[str, Any]:
    return {
        "driver": device.id.driver,
        "pool": device.id.pool,
        "device": device.id.device,
        "node": device.node or None,
        "classes": list(device.classes),
        "state": device.state.value,
        "heldBy": [
            {
                "claim": each.claim,
                "request": each.request,
                "pods": list(each.pods),
                "consumedCapacity": each.consumed,
                "adminAccess": each.is_admin,
            }
            for each in device.holders
        ],
        "left": device.left,
        "taints": list(device.taints),
    }


def _camel(state: DeviceState) -> str:
    return "inUse" if state is DeviceState.IN_USE else state.value
