"""Controllers that make pods, and the objects that group, rank or protect pods."""

from __future__ import annotations

from podium.model.meta import Count, Int32, LabelSelector, Object, Struct
from podium.model.pod import PodTemplateSpec
from podium.model.storage import PersistentVolumeClaim


class Namespace(Object, frozen=True):
    """Its labels decide what a namespaceSelector reaches."""


class ServiceSpec(Struct, frozen=True):
    selector: dict[str, str] | None = None


class Service(Object, frozen=True):
    spec: ServiceSpec = ServiceSpec()


class PriorityClass(Object, frozen=True):
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str | None = None


class PodDisruptionBudgetSpec(Struct, frozen=True):
    selector: LabelSelector | None = None
    min_available: Int32 | str | None = None
    max_unavailable: Int32 | str | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True):
    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(Object, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class WorkloadSpec(Struct, frozen=True):
    """Deployment, ReplicaSet: a number of pods from one template."""

    replicas: Count = 1
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class Deployment(Object, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()


class ReplicaSet(Object, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()


class StatefulSetOrdinals(Struct, frozen=True):
    start: Count = 0


class StatefulSetSpec(WorkloadSpec, frozen=True):
    volume_claim_templates: list[PersistentVolumeClaim] = []
    ordinals: StatefulSetOrdinals = StatefulSetOrdinals()


class StatefulSet(Object, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()


class ReplicationControllerSpec(Struct, frozen=True):
    replicas: Count = 1
    selector: dict[str, str] = {}
    template: PodTemplateSpec | None = None


class ReplicationController(Object, frozen=True):
    spec: ReplicationControllerSpec = ReplicationControllerSpec()


class DaemonSetSpec(Struct, frozen=True):
    selector: LabelSelector | None = None
    template: PodTemplateSpec = PodTemplateSpec()


class DaemonSet(Object, frozen=True):
    spec: DaemonSetSpec = DaemonSetSpec()


class JobSpec(Struct, frozen=True):
    parallelism: Count = 1
    completions: Count | None = None
    suspend: bool = False
    template: PodTemplateSpec = PodTemplateSpec()


class JobStatus(Struct, frozen=True):
    succeeded: Count = 0


class Job(Object, frozen=True):
    spec: JobSpec = JobSpec()
    status: JobStatus = JobStatus()


class JobTemplateSpec(Struct, frozen=True):
    spec: JobSpec = JobSpec()


class CronJobSpec(Struct, frozen=True):
    suspend: bool = False
    job_template: JobTemplateSpec = JobTemplateSpec()


class CronJob(Object, frozen=True):
    spec: CronJobSpec = CronJobSpec()
