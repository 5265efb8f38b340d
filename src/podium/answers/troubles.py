"""What is wrong in a cluster: pods that fit nowhere, by cause; full nodes; budgets that block a drain; drift."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from podium.answers.audit import Finding, audit
from podium.answers.closest_nodes import ClosestNode
from podium.answers.simulation import simulate
from podium.answers.why_nowhere import why_nowhere
from podium.cluster import Cluster
from podium.cluster.budgets import BudgetHealth, Health
from podium.engine.scheduler import SchedulerOptions
from podium.model import PodDisruptionBudget
from podium.workloads import workload_of

FULL = 0.9
"""The share of a resource from which a node counts as full."""
MOST_EXPLAINED = 12
"""For how many causes the closest nodes are looked for."""
MOST_AUDITED = 3_000_000
"""Up to how many pods times nodes running pods are decided again."""


@dataclass(frozen=True, slots=True)
class PendingCause:
    """Pending pods that fit nowhere for the same reason."""

    reason: str
    """The scheduler's message."""
    pods: tuple[str, ...]
    closest: tuple[ClosestNode, ...]
    """The nodes that the first of the pods comes closest to; empty if that was not looked for."""


class StuckWorkload(NamedTuple):
    """A workload with pods that fit nowhere."""

    namespace: str
    workload: str
    waiting: int
    pods: int


class FullNode(NamedTuple):
    """A node with little of a resource left: the resource that is shortest."""

    node: str
    resource: str
    share: float
    """How much of it is requested, where 1 is all."""


class BlockingBudget(NamedTuple):
    """A budget that allows no eviction now."""

    budget: str
    health: Health
    pods: tuple[str, ...]
    """The running pods that it keeps on their nodes."""


@dataclass(frozen=True, slots=True)
class Troubles:
    """What is wrong in a cluster; each list is ordered by how bad it is, then by name."""

    pending: tuple[PendingCause, ...]
    placeable: int
    """How many pending pods get a node once they are placed."""
    workloads: tuple[StuckWorkload, ...]
    full_nodes: tuple[FullNode, ...]
    budgets: tuple[BlockingBudget, ...]
    drift: Mapping[Finding, int] | None
    """Running pods by what would become of them now; None if the cluster is too large to decide all of them."""


def troubles(cluster: Cluster, options: SchedulerOptions) -> Troubles:
    """Look for everything that is wrong; ties go to the smallest name."""
    options = SchedulerOptions.steady(options)
    found = simulate(cluster, config=options)
    by_reason: dict[str, list[str]] = {}
    stuck: dict[tuple[str, str], int] = {}
    for each in found.pending:
        by_reason.setdefault(each.message, []).append(each.pod.key)
        key = (each.pod.namespace, workload_of(each.pod))
        stuck[key] = stuck.get(key, 0) + 1
    order = sorted(by_reason.items(), key=lambda item: (-len(item[1]), item[0]))
    causes = [
        PendingCause(reason, tuple(pods), _closest(cluster, pods[0], options) if place < MOST_EXPLAINED else ())
        for place, (reason, pods) in enumerate(order)
    ]
    running = sum(1 for _ in cluster.placed())
    drift = None
    if running * cluster.node_count <= MOST_AUDITED:
        audited = audit(cluster, options)
        drift = {finding: len(audited.of(finding)) for finding in Finding}
    return Troubles(
        tuple(causes), len(found.placed), _stuck_workloads(cluster, stuck), _full(cluster), _blocking(cluster), drift
    )


def _closest(cluster: Cluster, key: str, options: SchedulerOptions) -> tuple[ClosestNode, ...]:
    found = cluster.find_pod(key)
    return () if found is None else why_nowhere(cluster, found[0], options, most=0).closest


def _stuck_workloads(cluster: Cluster, stuck: Mapping[tuple[str, str], int]) -> tuple[StuckWorkload, ...]:
    everything = (*cluster.pending.values(), *(pod for pod, _ in cluster.placed()))
    sizes = dict.fromkeys(stuck, 0)
    for pod in everything if stuck else ():
        key = (pod.namespace, workload_of(pod))
        if key in sizes:
            sizes[key] += 1
    found = [StuckWorkload(*key, waiting, sizes[key]) for key, waiting in stuck.items()]
    return tuple(sorted(found, key=lambda each: (-each.waiting, each.namespace, each.workload)))


def _full(cluster: Cluster) -> tuple[FullNode, ...]:
    """The nodes of which more than nine tenths of some resource is requested, the fullest first."""
    columns, found = cluster.columns, []
    for name, row in cluster.rows.items():
        shares = [
            (float(requested / allocatable), resource)
            for resource, allocatable, requested in zip(
                columns.resources.values, columns.allocatable[:, row], columns.requested[:, row], strict=False
            )
            if allocatable > 0
        ]
        share, resource = max(shares, default=(0.0, ""))
        if share > FULL:
            found.append(FullNode(name, resource, share))
    return tuple(sorted(found, key=lambda each: (-each.share, each.node)))


def _blocking(cluster: Cluster) -> tuple[BlockingBudget, ...]:
    health, covered = BudgetHealth(cluster), dict[str, list[str]]()
    for pod, _ in cluster.placed():
        for name in health.of(pod):
            covered.setdefault(name, []).append(pod.key)
    found = []
    for budget in cluster.store.of(PodDisruptionBudget):
        now = health.health(budget.key, cluster)
        if not now.allowed and covered.get(budget.key):
            found.append(BlockingBudget(budget.key, now, tuple(sorted(covered[budget.key]))))
    return tuple(sorted(found, key=lambda each: each.budget))
