"""The pods of Jobs, and the Jobs of CronJobs."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podium.model import CronJob, Job, Object, ObjectMeta, Pod
from podium.workloads.expansion import Expansion
from podium.workloads.owners import active, controller_reference


def expand_job(job: Job, expansion: Expansion) -> Iterator[Object]:
    """The pods that a Job would start now: up to its parallelism, but no more than remain to complete."""
    pods = expansion.owned(job, Pod)
    missing = _wanted(job, pods) - len(active(pods))
    labels = {
        "batch.kubernetes.io/controller-uid": job.metadata.uid,
        "batch.kubernetes.io/job-name": job.name,
        "controller-uid": job.metadata.uid,
        "job-name": job.name,
    }
    template = job.spec.template
    metadata = replace(template.metadata, labels={**template.metadata.labels, **labels})
    yield from expansion.pods(job, replace(template, metadata=metadata), missing)


def expand_cron_job(cron_job: CronJob, expansion: Expansion) -> Iterator[Object]:
    """One Job, as if it were due now, unless the input already has one."""
    if cron_job.spec.suspend or expansion.owned(cron_job, Job):
        return
    metadata = ObjectMeta(
        name=expansion.free_name(Job, cron_job.namespace, cron_job.name),
        namespace=cron_job.namespace,
        owner_references=[controller_reference(cron_job)],
    )
    job = expansion.add(Job(metadata=metadata, spec=cron_job.spec.job_template.spec))
    yield job
    yield from expand_job(job, expansion)
    expansion.due.append(cron_job.key)


def _wanted(job: Job, pods: list[Pod]) -> int:
    if job.spec.suspend:
        return 0
    succeeded = max(job.status.succeeded, sum(pod.status.phase == "Succeeded" for pod in pods))
    if job.spec.completions is None:
        # A work queue: once a pod has succeeded, the others finish and none is started.
        return 0 if succeeded else job.spec.parallelism
    return min(job.spec.parallelism, job.spec.completions - succeeded)
