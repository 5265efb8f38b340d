"""The pods that the workloads of an input create, with all that comes with them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from podium.manifests.loading import Objects, first_few, missing_references
from podium.model import (
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
from podium.workloads.admission import Refusal
from podium.workloads.daemon_sets import expand_daemon_set
from podium.workloads.deployments import expand_deployment, expand_replica_set, expand_replication_controller
from podium.workloads.expansion import Expansion
from podium.workloads.jobs import expand_cron_job, expand_job
from podium.workloads.stateful_sets import expand_stateful_set


def _expand_pod(pod: Pod, expansion: Expansion) -> Iterator[Object]:
    """The claims of a pending pod's ephemeral volumes; a running pod's claims exist, whether or not in the input."""
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


def _treated_as_due(cron_jobs: Sequence[str]) -> list[str]:
    """A warning for CronJobs that create pods now, whatever their schedules say."""
    if not cron_jobs:
        return []
    one = len(cron_jobs) == 1
    kind, jobs = ("CronJob", "one job") if one else ("CronJobs", "one job each")
    return [f"{kind} {first_few(cron_jobs)} treated as if due now: the pods of {jobs} added"]


class Expanded(NamedTuple):
    """The objects with the pods of workloads, and the pods that the API server refuses to create."""

    objects: Objects
    refused: tuple[Refusal, ...]


def expand_workloads(objects: Objects, is_due: Callable[[CronJob], bool] | None = None) -> Objects:
    """The objects, and after each workload the pending pods that it wants and does not have.

    Pods of the input count for their controller, by its kind and name. The pods come with the ReplicaSets, Jobs,
    PersistentVolumeClaims and ResourceClaims that controllers would create, including the claims of ephemeral volumes.
    Names are the same in every run. CronJobs that are not suspended are due if `is_due` returns True. LimitRanges set
    the defaults of new pods; a warning lists the pods that LimitRanges or ResourceQuotas do not allow.
    """
    return expanded_workloads(objects, is_due).objects


def expanded_workloads(objects: Objects, is_due: Callable[[CronJob], bool] | None = None) -> Expanded:
    """See `expand_workloads`; also returns which pods are refused."""
    expansion = Expansion(objects)
    expanded: list[Object] = []
    for obj in objects:
        if type(obj) is Pod and obj.spec.resource_claims and not obj.spec.node_name and not obj.finished:
            pod, claims = expansion.with_claims(obj)
            expanded += [pod, *claims]
        else:
            expanded.append(obj)
        if is_due is not None and type(obj) is CronJob and not is_due(obj):
            continue
        expand = _EXPAND.get(type(obj))
        if expand is not None and not obj.metadata.deletion_timestamp:
            expanded += expand(obj, expansion)
    refused = tuple(expansion.refused)
    if len(expanded) == len(objects) and not refused:
        return Expanded(objects, ())
    known = set(missing_references(objects))
    kept = Objects(
        (),
        warnings=[warning for warning in objects.warnings if warning not in known],
        ignored=objects.ignored,
        scheduler_config=objects.scheduler_config,
        applied=objects.applied,
    )
    warnings = [
        *map(str, refused),
        *_treated_as_due(expansion.due),
        *expansion.priorities.warnings,
        *missing_references(expanded),
    ]
    return Expanded(kept.replaced(expanded, warnings), refused)
