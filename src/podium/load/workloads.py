"""Workloads -> the pods their controllers would make."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from podium.load.daemon_sets import expand_daemon_set
from podium.load.expansion import Expansion, deployment_of
from podium.load.jobs import expand_cron_job, expand_job
from podium.load.loaded import Objects
from podium.load.phrases import some
from podium.load.references import missing_references
from podium.load.replicas import expand_deployment, expand_replica_set, expand_replication_controller
from podium.load.stateful_sets import expand_stateful_set
from podium.objects import (
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    Object,
    Pod,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)


def _expand_pod(pod: Pod, expansion: Expansion) -> Iterator[Object]:
    """The claims of a pending pod's ephemeral volumes; those of a pod that runs exist, whether in the input or not."""
    if not pod.spec.node_name and not pod.finished:
        yield from expansion.ephemeral_claims(pod)


_EXPAND: dict[type[Object], Callable[[Any, Expansion], Iterator[Object]]] = {
    CronJob: expand_cron_job,
    DaemonSet: expand_daemon_set,
    Deployment: expand_deployment,
    Job: expand_job,
    Pod: _expand_pod,
    ReplicaSet: expand_replica_set,
    ReplicationController: expand_replication_controller,
    StatefulSet: expand_stateful_set,
}


def expand_workloads(objects: Objects) -> Objects:
    """The objects, and behind each workload the pending pods it wants and does not have.

    Pods that the input has count for their controller, by its kind and name; with them come the ReplicaSets, Jobs and
    PersistentVolumeClaims that controllers would create on the way, the claims of ephemeral volumes among them. Names
    are the same in every run.
    """
    expansion = Expansion(objects)
    expanded: list[Object] = []
    for obj in objects:
        expanded.append(obj)
        expand = _EXPAND.get(type(obj))
        if expand is not None and not obj.metadata.deletion_timestamp:
            expanded += expand(obj, expansion)
    if len(expanded) == len(objects):
        return objects
    known = set(missing_references(objects))
    kept = Objects(
        (),
        warnings=[warning for warning in objects.warnings if warning not in known],
        ignored=objects.ignored,
        scheduler_config=objects.scheduler_config,
    )
    due = [f"CronJob {some(expansion.due)} treated as if due now: the pods of one job added"] if expansion.due else []
    warnings = [*due, *expansion.priorities.warnings, *missing_references(expanded)]
    return kept.replaced(expanded, warnings)


def workload_of(pod: Pod) -> str:
    """What a pod belongs to: `Deployment/web`, `StatefulSet/db`, or `Pod/name` for one on its own.

    A ReplicaSet whose name ends in the pod's template hash was made by the Deployment named before it.
    """
    owner = pod.metadata.controller
    if owner is None:
        return f"Pod/{pod.name}"
    deployment = deployment_of(pod)
    return f"Deployment/{deployment}" if deployment else f"{owner.kind}/{owner.name}"
