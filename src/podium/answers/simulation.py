"""Places all pending pods as the scheduling loop does, and reports where each goes and how full the nodes get."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Unpack

from podium.answers._at_rest import PodOutcome, RestingCluster, run_to_rest, without_preemption
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


NOT_CREATED_AGAIN = "no controller makes it again"
Amounts = Mapping[str, int]
"""Per resource, in milli-cpu, bytes or units."""


class Placement(NamedTuple):
    """Where a pod went; if it has no node, `message` says why. A preempted pod is created again and decided as well."""

    pod: Pod
    node: str | None
    message: str = ""
    failed_plugin: str = ""
    """The plugin that failed on the pod, which is why it went nowhere."""
    preempted_by: str = ""
    """The pod that preempted it, as namespace/name; empty for a pod that was pending."""
    old_node: str | None = None
    """The node that it lost, if it was preempted."""
    is_lost: bool = False
    """Whether it is gone for good: it was preempted, and no controller creates it again."""

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
    """Every pending pod in the order of the queue, then the preempted pods; and how full nodes are before and after."""

    placements: tuple[Placement, ...]
    nodes: Mapping[str, Usage]
    """Per node, by name."""
    cluster: Cluster
    """The cluster with every pod placed that fits."""
    claims: tuple[PlacedClaim, ...] = ()
    """The claims of the pods placed, and the volumes they get."""
    is_settled: bool = True
    """Whether the cluster came to rest; if not, pods evict each other for ever, and this is a moment of that."""

    @property
    def placed(self) -> tuple[Placement, ...]:
        return tuple(placement for placement in self.placements if placement.node is not None)

    @property
    def preempted(self) -> tuple[Placement, ...]:
        """The pods that lost their node to a pod of higher priority."""
        return tuple(placement for placement in self.placements if placement.preempted_by)

    @property
    def pending(self) -> tuple[Placement, ...]:
        """The pods that have no node at the end."""
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
    preempt: bool = True,
    messages: bool = True,
    on_decided: Callable[[Placement], object] = lambda placement: None,
    **keywords: Unpack[SchedulerKeywords],
) -> Simulation:
    """Schedule pending pods until nothing changes any more; `cluster` itself does not change.

    `pods` defaults to the cluster's pending pods. They are decided in the order of the profile's QueueSort: by
    priority, then creation, then input order. A pod that fits nowhere preempts others if that helps, unless `preempt`
    is off, and is tried again when something happens that may help it. Preempted pods are created again and wait behind
    the others. Pods of workloads exist only after `expand_workloads` has added them. Without `messages`, no reasons are
    collected for pods that fit nowhere, which saves time. `on_decided` is called with each placement, a pod that does
    not fit at first included. `keywords` are those of `Scheduler`: registry, release, tie_break ...
    """
    options = SchedulerOptions.of(config, **keywords)
    waiting = list(cluster.pending.values() if pods is None else pods)
    if not _needs_loop(options):
        found = place_in_order(cluster, waiting, options, messages=False, on_decided=on_decided, until_one_fails=True)
        if found.fits:
            return found
    return _run(cluster, waiting, options, preempt=preempt, messages=messages)


def _needs_loop(options: SchedulerOptions) -> bool:
    """Whether placing pods in order may differ from the loop even if all fit, or asks extenders twice."""
    with closing(Scheduler(Cluster(), options)) as scheduler:
        return bool(scheduler.extenders or any(each.permit for each in scheduler.frameworks.values()))


def place_in_order(
    cluster: Cluster,
    pods: Iterable[Pod] | None = None,
    config: Config | SchedulerOptions = None,
    *,
    messages: bool = True,
    until_one_fails: bool = False,
    on_decided: Callable[[Placement], object] = lambda placement: None,
    **keywords: Unpack[SchedulerKeywords],
) -> Simulation:
    """Decide pending pods once each, in queue order, each on the cluster with the earlier ones placed.

    Nothing is preempted, and no pod is tried again. If all fit, that is what the loop does. The arguments are those of
    `simulate`; with `until_one_fails`, it ends with the first pod that does not fit.
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
            if until_one_fails and any(placement.node is None for placement in made):
                break
    return simulation_of(placements, before, cluster)


def _run(
    cluster: Cluster, pods: Sequence[Pod], options: SchedulerOptions, *, preempt: bool, messages: bool
) -> Simulation:
    """Let the loop place the pods."""
    at_first, cluster = cluster, cluster.fork()
    for pod in pods:
        if pod.key not in cluster.pending:
            cluster.add(pod)
    chosen = options if preempt else without_preemption(options)
    with closing(Scheduler(Cluster(), options)) as scheduler:
        ordered = in_queue_order(pods, scheduler)
    with run_to_rest(cluster, chosen, waiting=ordered) as resting:
        waited = [_placement(pod, resting.pods[pod.key], resting, messages=messages) for pod in ordered]
        known = {pod.key for pod in ordered}
        others = [(at_first.find_pod(key), found) for key, found in resting.pods.items() if key not in known]
        displaced = [_placement(pod[0], found, resting, messages=messages) for pod, found in others if pod is not None]
        return simulation_of([*waited, *displaced], requested_by_node(at_first), cluster, is_settled=resting.is_settled)


def _placement(pod: Pod, outcome: PodOutcome, resting: RestingCluster, *, messages: bool) -> Placement:
    old_node, by = outcome.old_node or None, outcome.preempted_by
    if outcome.pod is None:
        return Placement(pod, None, NOT_CREATED_AGAIN, preempted_by=by, old_node=old_node, is_lost=True)
    message, plugin = "", ""
    if outcome.node is None and messages:
        message, plugin = resting.why_pending(outcome.pod)
    return Placement(pod, outcome.node, message, plugin, by, old_node)


def simulation_of(
    placements: Sequence[Placement], before: Mapping[str, Amounts], cluster: Cluster, *, is_settled: bool = True
) -> Simulation:
    """Summarise placements on a cluster that has them; `before` is what was requested from each node."""
    allocatable, after = _amounts(cluster, cluster.columns.allocatable), requested_by_node(cluster)
    nodes = {name: Usage(allocatable[name], before[name], after[name]) for name in sorted(allocatable)}
    placed = ((placement.pod, placement.node) for placement in placements if placement.node is not None)
    return Simulation(tuple(placements), nodes, cluster, placed_claims(cluster, placed), is_settled)


def with_usage_before(simulation: Simulation, before: Mapping[str, Amounts]) -> Simulation:
    """The simulation with other amounts as what was requested from each node before."""
    nodes = {name: usage._replace(before=before[name]) for name, usage in simulation.nodes.items()}
    return replace(simulation, nodes=nodes)


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
