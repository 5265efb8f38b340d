"""Places all pending pods one after the other, and reports where each goes and how full the nodes are afterwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from podium.cluster import Cluster
from podium.engine.group_decision import QueuedMembers, decide_group
from podium.engine.scheduler import Config, Scheduler, SchedulerKeywords, SchedulerOptions
from podium.errors import ExtenderError, InputError, PluginError
from podium.memory import collector_relaxed
from podium.model import CSINode, PersistentVolumeClaim, Pod, PodSpec, StorageClass
from podium.model.objects import SELECTED_NODE, storage_class_of
from podium.model.pod import claim_name
from podium.plugins.storage.bindable_volumes import BindableVolumes
from podium.plugins.storage.claims import STORAGE
from podium.plugins.storage.csi_translation import DRIVERS
from podium.workloads import workload_of

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
    """The requested storage, as written in the claim; empty if it requests none."""
    storage_class: str
    """Empty for none."""
    outcome: ClaimOutcome
    """`bound` before, `reserved` for the pod now, to be `provisioned`, or `undecided` if no plugin binds volumes."""
    volume: str | None = None
    """None for a volume that does not exist yet."""
    node: str | None = None
    """The node for which a volume is provisioned."""
    topology: Mapping[str, str] = field(default_factory=dict)
    """Where the volume is provisioned: the node's labels that the driver uses, if a CSINode lists them."""


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
    """The topology labels of a class's driver, with their values on a node."""
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
    """Where a pod went; if it has no node, `message` says why."""

    pod: Pod
    node: str | None
    message: str = ""
    failed_plugin: str = ""
    """The plugin that failed on the pod, which is why it went nowhere."""

    @property
    def workload(self) -> str:
        return workload_of(self.pod)


class Usage(NamedTuple):
    """The resources requested from a node, or from the whole cluster, before and after."""

    allocatable: Amounts
    before: Amounts
    after: Amounts


@dataclass(frozen=True, slots=True)
class Simulation:
    """Every pending pod in the order of deciding, and how full the nodes are before and after."""

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
        """One row per pod, in the order of deciding, with its node or the reason why it has none.

        Needs polars: the extra `frames`.
        """
        from podium.present.html import simulation_frame

        return simulation_frame(self)

    def _repr_html_(self) -> str:
        from podium.present.html import simulation_html

        return simulation_html(self)


class Queued(NamedTuple):
    """A pod that has been waiting since a time, in seconds."""

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
    """Decide pending pods one after the other, each on the cluster with the earlier ones placed; `cluster` itself does
    not change.

    `pods` defaults to the cluster's pending pods. They are decided in the order of the profile's QueueSort: by
    priority, then creation, then input order. Pods of workloads exist only after `expand_workloads` has added them.
    Without `messages`, no reasons are collected for pods that fit nowhere, which saves time. `on_decided` is called
    with each placement. `keywords` are those of `Scheduler`: registry, release, tie_break ...
    """
    cluster = cluster.fork()
    waiting = list(cluster.pending.values() if pods is None else pods)
    before = requested_by_node(cluster)
    placements = []
    with closing(Scheduler(cluster, config, **keywords)) as scheduler, collector_relaxed():
        for entity in entities_in_queue_order(waiting, scheduler):
            if isinstance(entity, QueuedMembers):
                made = [Placement(*each) for each in decide_group(entity.group, entity.pods, scheduler)]
            else:
                made = [_decide(entity, scheduler, messages=messages)]
            placements += made
            for placement in made:
                on_decided(placement)
    return simulation_of(placements, before, cluster)


def simulation_of(placements: Sequence[Placement], before: Mapping[str, Amounts], cluster: Cluster) -> Simulation:
    """Summarise placements on a cluster that has them; `before` is what was requested from each node."""
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
    """The pods in the order in which they leave the queue; all profiles share one QueueSort."""
    (queue_sort,) = next(iter(scheduler.frameworks.values())).queue_sort
    queued = sorted((Queued(pod, _created(pod)) for pod in pods), key=queue_sort.sort_key)
    return [waiting.pod for waiting in queued]


def entities_in_queue_order(pods: Iterable[Pod], scheduler: Scheduler) -> list[Pod | QueuedMembers]:
    """The pods in the order in which they leave the queue, those of a PodGroup together."""
    ordered = in_queue_order(pods, scheduler)
    if not scheduler.setup.rules.pod_groups:
        return [*ordered]
    (queue_sort,) = next(iter(scheduler.frameworks.values())).queue_sort
    entities: list[tuple[Queued, Pod | QueuedMembers]] = []
    groups: dict[str, QueuedMembers] = {}
    for pod in ordered:
        group = scheduler.group_of(pod)
        if group is None:
            entities.append((Queued(pod, _created(pod)), pod))
        elif group.key in groups:
            groups[group.key].pods.append(pod)
        else:
            groups[group.key] = QueuedMembers(group, [pod])
            stand_in = Pod(metadata=group.metadata, spec=PodSpec(priority=group.priority))
            entities.append((Queued(stand_in, _created(pod)), groups[group.key]))
    for members in groups.values():
        members.pods.sort(key=lambda pod: (-pod.priority, _created(pod), pod.name))
    entities.sort(key=lambda each: queue_sort.sort_key(each[0]))
    return [entity for _, entity in entities]


def _created(pod: Pod) -> float:
    """The pod's creation time; pods that are not created yet come last."""
    try:
        return datetime.fromisoformat(pod.metadata.creation_timestamp or "").timestamp()
    except ValueError:
        return float("inf")


def requested_by_node(cluster: Cluster) -> Mapping[str, Amounts]:
    return _amounts(cluster, cluster.columns.requested)


def _amounts(cluster: Cluster, table: Any) -> dict[str, dict[str, int]]:
    """Convert a table of resources by row to amounts by node name."""
    resources = cluster.columns.resources.values
    return {name: dict(zip(resources, table[:, row].tolist(), strict=False)) for name, row in cluster.rows.items()}
