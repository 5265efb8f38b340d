"""Placing all pending pods one after the other: where each goes, and how full the nodes are afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from podium.cluster import Cluster
from podium.engine.scheduler import Config, Scheduler, SchedulerKeywords, SchedulerOptions
from podium.errors import ExtenderError, InputError, PluginError
from podium.manifests import workload_of
from podium.memory import collector_relaxed
from podium.model import CSINode, PersistentVolumeClaim, Pod, StorageClass
from podium.model.objects import storage_class_of
from podium.plugins.storage.claims import SELECTED_NODE, STORAGE, BindableVolumes, claim_name
from podium.plugins.storage.csi_migration import DRIVERS

if TYPE_CHECKING:
    import polars


ClaimOutcome = Literal["bound", "reserved", "provisioned", "undecided"]


@dataclass(frozen=True, slots=True)
class PlacedClaim:
    """A claim of a placed pod, and the volume behind it."""

    claim: str
    """namespace/name"""
    pod: str
    """The first pod placed that uses it, as namespace/name."""
    size: str
    """How much it asks for, as the claim writes it; empty if it does not say."""
    storage_class: str
    """Empty for none."""
    outcome: ClaimOutcome
    """`bound` before, `reserved` for it now, to be `provisioned`, or `undecided` where no plugin binds volumes."""
    volume: str | None = None
    """None for a volume that does not exist yet."""
    node: str | None = None
    """The node that a volume is provisioned for."""
    topology: Mapping[str, str] = field(default_factory=dict)
    """Where on that account it is provisioned: the node's labels that its driver goes by, as far as a CSINode says."""


def placed_claims(cluster: Cluster, placed: Iterable[tuple[Pod, str]]) -> tuple[PlacedClaim, ...]:
    """The claims of these pods on their nodes, each once, in the order of the pods."""
    volumes, found = BindableVolumes(), dict[str, PlacedClaim]()
    for pod, node in placed:
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace) if name else None
            if claim is not None and claim.key not in found:
                volumes.catch_up(cluster.store, cluster.rules)
                found[claim.key] = _placed_claim(claim, pod, node, cluster, volumes)
    return tuple(found.values())


def _placed_claim(
    claim: PersistentVolumeClaim, pod: Pod, node: str, cluster: Cluster, volumes: BindableVolumes
) -> PlacedClaim:
    size = str(claim.spec.resources.requests.get(STORAGE, ""))
    storage_class = storage_class_of(claim)
    about = (claim.key, pod.key, size, storage_class)
    if claim.spec.volume_name:
        return PlacedClaim(*about, "bound", claim.spec.volume_name)
    selected = claim.metadata.annotations.get(SELECTED_NODE)
    if selected is not None:
        return PlacedClaim(*about, "provisioned", None, selected, _topology(storage_class, selected, cluster))
    row = cluster.rows[node]
    for reserved in volumes.reserved_for(claim):
        if row in volumes.rows(reserved.reach, cluster):
            return PlacedClaim(*about, "reserved", reserved.name)
    return PlacedClaim(*about, "undecided")


def _topology(class_name: str, node_name: str, cluster: Cluster) -> dict[str, str]:
    """The labels by which a class's driver tells nodes apart, with the values they have on a node."""
    storage_class, csi_node = cluster.store.of(StorageClass).get(class_name), cluster.store.of(CSINode).get(node_name)
    if storage_class is None or csi_node is None or node_name not in cluster.rows:
        return {}
    name = DRIVERS.get(storage_class.provisioner, storage_class.provisioner)
    labels = cluster.node(node_name).metadata.labels
    keys = [key for driver in csi_node.spec.drivers if driver.name == name for key in driver.topology_keys]
    return {key: labels[key] for key in keys if key in labels}


Amounts = Mapping[str, int]
"""Per resource, in milli-cpu, bytes or units."""


class Placement(NamedTuple):
    """Where a pod went; without a node, `message` says why nowhere."""

    pod: Pod
    node: str | None
    message: str = ""
    failed_plugin: str = ""
    """The plugin that failed on the pod, which is why it went nowhere."""

    @property
    def workload(self) -> str:
        return workload_of(self.pod)


class Usage(NamedTuple):
    """How much of a node, or of the whole cluster, is requested before and after."""

    allocatable: Amounts
    before: Amounts
    after: Amounts


@dataclass(frozen=True, slots=True)
class Simulation:
    """Every pending pod in the order it was decided, and how full the nodes are before and after."""

    placements: tuple[Placement, ...]
    nodes: Mapping[str, Usage]
    """Per node, by name."""
    cluster: Cluster
    """The cluster with every pod placed that fits."""
    claims: tuple[PlacedClaim, ...] = ()
    """The claims of the pods placed, and the volumes they get."""

    @property
    def placed(self) -> tuple[Placement, ...]:
        return tuple(placement for placement in self.placements if placement.node is not None)

    @property
    def pending(self) -> tuple[Placement, ...]:
        """The pods that fit nowhere."""
        return tuple(placement for placement in self.placements if placement.node is None)

    @property
    def fits(self) -> bool:
        return not self.pending

    @property
    def total(self) -> Usage:
        """All nodes together."""
        sums: tuple[Counter[str], ...] = (Counter(), Counter(), Counter())
        for usage in self.nodes.values():
            for amounts, more in zip(sums, usage, strict=True):
                amounts.update(more)
        return Usage(*sums)

    def to_frame(self) -> polars.DataFrame:
        """A row per pod, in the order they were decided, with its node or why it has none.

        Needs polars: the extra `frames`.
        """
        from podium.present.notebook import simulation_frame

        return simulation_frame(self)

    def _repr_html_(self) -> str:
        from podium.present.notebook import simulation_html

        return simulation_html(self)


class Queued(NamedTuple):
    """A pod that waits, since a time in seconds."""

    pod: Pod
    timestamp: float


def simulate(
    cluster: Cluster,
    pods: Iterable[Pod] | None = None,
    config: Config | SchedulerOptions = None,
    *,
    messages: bool = True,
    on_decided: Callable[[Placement], object] = lambda placement: None,
    **keywords: Unpack[SchedulerKeywords],
) -> Simulation:
    """Decide pending pods one after the other, each on what the earlier ones left; the cluster stays as it is.

    `pods` are those of the cluster that are pending unless given. They are taken in the order of the profile's
    QueueSort: by priority, then creation, then as they came. Pods of workloads are there once `expand_workloads` has
    added them. Without `messages` nothing says why a pod fits nowhere, which saves time. `on_decided` is called
    with each placement. `keywords` are those of `Scheduler`: registry, release, tie_break ...
    """
    cluster = cluster.fork()
    waiting = list(cluster.pending.values() if pods is None else pods)
    before = requested_by_node(cluster)
    placements = []
    with closing(Scheduler(cluster, config, **keywords)) as scheduler, collector_relaxed():
        for pod in in_queue_order(waiting, scheduler):
            placements.append(_decide(pod, scheduler, messages=messages))
            on_decided(placements[-1])
    return simulation_of(placements, before, cluster)


def simulation_of(placements: Sequence[Placement], before: Mapping[str, Amounts], cluster: Cluster) -> Simulation:
    """What came of deciding pods, on a cluster that has them; `before` is what was requested of each node."""
    allocatable, after = _amounts(cluster, cluster.columns.allocatable), requested_by_node(cluster)
    nodes = {name: Usage(allocatable[name], before[name], after[name]) for name in sorted(allocatable)}
    placed = ((placement.pod, placement.node) for placement in placements if placement.node is not None)
    return Simulation(tuple(placements), nodes, cluster, placed_claims(cluster, placed))


def _decide(pod: Pod, scheduler: Scheduler, *, messages: bool) -> Placement:
    """Place the pod if it fits somewhere; with `messages`, say why if it does not."""
    try:
        node = scheduler.schedule(pod)
    except PluginError as error:
        return Placement(pod, None, str(error), error.plugin)
    except (InputError, ExtenderError) as error:
        return Placement(pod, None, str(error))
    return Placement(pod, node, scheduler.message(pod) if node is None and messages else "")


def in_queue_order(pods: Iterable[Pod], scheduler: Scheduler) -> list[Pod]:
    """The pods in the order they leave the queue; all profiles have the same QueueSort."""
    (queue_sort,) = next(iter(scheduler.frameworks.values())).queue_sort
    queued = sorted((Queued(pod, _created(pod)) for pod in pods), key=queue_sort.sort_key)
    return [waiting.pod for waiting in queued]


def _created(pod: Pod) -> float:
    """When the pod was created; one that was not yet, comes after all that were."""
    try:
        return datetime.fromisoformat(pod.metadata.creation_timestamp or "").timestamp()
    except ValueError:
        return float("inf")


def requested_by_node(cluster: Cluster) -> Mapping[str, Amounts]:
    return _amounts(cluster, cluster.columns.requested)


def _amounts(cluster: Cluster, table: Any) -> dict[str, dict[str, int]]:
    """A table of resources by rows as amounts by node."""
    resources = cluster.columns.resources.values
    return {name: dict(zip(resources, table[:, row].tolist(), strict=False)) for name, row in cluster.rows.items()}
