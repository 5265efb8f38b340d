"""The first pod of each workload, even if it is scaled to zero or suspended."""

from __future__ import annotations

from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests import Objects
from podium.manifests.defaults import Priorities
from podium.model import CronJob, DaemonSet, Job, Object, Pod, ReplicaSet
from podium.model.objects import SCALED, JobSpec, JobStatus
from podium.workloads.created_pods import expand_workloads
from podium.workloads.expansion import Expansion
from podium.workloads.owners import workload_of
from podium.workloads.scaling import scaled_workload


def first_pods(objects: Objects, where: str) -> list[Pod]:
    """The first pod of each pod and workload among the objects, named after the workload.

    This includes workloads that are scaled to zero or suspended.
    """
    priorities = Priorities(objects)
    willing = Objects(with_one_pod(obj, priorities) for obj in objects)
    expanded = expand_workloads(willing)
    cron_jobs, first = jobs_of_cron_jobs(expanded), dict[tuple[str, str], Pod]()
    for pod in expanded.of(Pod):
        job = cron_jobs.get((pod.namespace, workload_of(pod)))
        pod = pod if job is None else owned_as(pod, job)
        workload = workload_of(pod)
        named = pod if workload.startswith("Pod/") else named_after(pod, workload.partition("/")[2])
        first.setdefault((pod.namespace, workload), named)
    if not first:
        raise InputError("no pod and no workload that makes pods in it", where)
    return list(first.values())


def with_one_pod(obj: Object, priorities: Priorities) -> Object:
    """A copy of a workload that creates at least one pod; for a DaemonSet the pod itself, for no particular node."""
    match obj:
        case ReplicaSet() if obj.metadata.controller is not None:
            return obj
        case Job():
            return replace(obj, spec=_one_at_once(obj.spec), status=JobStatus())
        case CronJob():
            job_template = replace(obj.spec.job_template, spec=_one_at_once(obj.spec.job_template.spec))
            return replace(obj, spec=replace(obj.spec, suspend=False, job_template=job_template))
        case DaemonSet():
            (pod, *_) = Expansion(()).pod(obj, obj.spec.template, obj.name)
            assert isinstance(pod, Pod)
            return priorities.resolve(replace(pod, spec=replace(pod.spec, priority=None)))
        case _:
            return scaled_workload(obj, 1) if isinstance(obj, SCALED) else obj


def _one_at_once(spec: JobSpec) -> JobSpec:
    return replace(spec, parallelism=1, completions=1, suspend=False)


def jobs_of_cron_jobs(objects: Objects) -> dict[tuple[str, str], Job]:
    """The Jobs that belong to a CronJob, by namespace and workload."""
    return {(job.namespace, f"Job/{job.name}"): job for job in objects.of(Job) if job.metadata.controller is not None}


def owned_as(pod: Pod, job: Job) -> Pod:
    """A pod of a CronJob's Job as if the CronJob owned it: the Job is one of many."""
    return replace(pod, metadata=replace(pod.metadata, owner_references=job.metadata.owner_references))


def named_after(pod: Pod, name: str) -> Pod:
    """A workload's pod under the workload's name, to which numbers are added for further pods."""
    return replace(pod, metadata=replace(pod.metadata, name=name))
