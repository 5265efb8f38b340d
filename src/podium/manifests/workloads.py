"""The pods that Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs create."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from msgspec.structs import replace

from podium.manifests.expansion import (
    HASH_LABEL,
    Expansion,
    active,
    controller_reference,
    deployment_of,
    refuse_too_many,
    stateful_claims,
    template_hash,
    with_claims_as_volumes,
)
from podium.manifests.loading import Objects, first_few, missing_references
from podium.model import (
    Affinity,
    CronJob,
    DaemonSet,
    Deployment,
    Job,
    LabelSelector,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Object,
    ObjectMeta,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    SelectorRequirement,
    StatefulSet,
    Toleration,
)
from podium.model.objects import WorkloadSpec
from podium.model.selectors import required_node_affinity, untolerated

_NAME_FIELD = "metadata.name"
_GENERATION = "deprecated.daemonset.template.generation"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def expand_daemon_set(daemon_set: DaemonSet, expansion: Expansion) -> Iterator[Object]:
    """A pod for each eligible node that has none, bound to it by node affinity."""
    template = with_daemon_tolerations(daemon_set.spec.template)
    served = {target_node(pod) for pod in expansion.owned(daemon_set, Pod) if not pod.finished}
    for node in expansion.nodes:
        if node.name not in served and should_run(template, node):
            yield from daemon_pod(daemon_set, node.name, expansion)


def daemon_pod(daemon_set: DaemonSet, node: str, expansion: Expansion) -> Iterator[Object]:
    """A DaemonSet's pod for a node: its affinity names the node, and it has the standard daemon tolerations."""
    labels = {"controller-revision-hash": template_hash(daemon_set.spec.template)}
    if _GENERATION in daemon_set.metadata.annotations:
        labels["pod-template-generation"] = daemon_set.metadata.annotations[_GENERATION]
    name = f"{daemon_set.name}-{node}"
    if expansion.is_taken(Pod, daemon_set.namespace, name):
        name = expansion.free_name(Pod, daemon_set.namespace, name)
    template = _bound_for(with_daemon_tolerations(daemon_set.spec.template), node)
    yield from expansion.pod(daemon_set, template, name, labels=labels)


def with_daemon_tolerations(template: PodTemplateSpec) -> PodTemplateSpec:
    """The template with the tolerations that a DaemonSet adds."""
    return replace(template, spec=replace(template.spec, tolerations=daemon_tolerations(template.spec)))


def should_run(template: PodTemplateSpec, node: Node) -> bool:
    """Whether a node gets a daemon pod: the template does not exclude it, and tolerates all its hard taints."""
    spec = template.spec
    if spec.node_name not in ("", node.name):
        return False
    if not required_node_affinity(Pod(spec=spec)).matches(node.metadata.labels, node.name):
        return False
    return untolerated(node.spec.taints, spec.tolerations) is None


def should_continue(template: PodTemplateSpec, node: Node) -> bool:
    """Whether a node keeps an existing daemon pod: as `should_run`, but only NoExecute taints count."""
    lasting = [taint for taint in node.spec.taints if taint.effect == "NoExecute"]
    return should_run(template, replace(node, spec=replace(node.spec, taints=lasting)))


def target_node(pod: Pod) -> str | None:
    """The node that a daemon pod runs on or is meant for; None if it names none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    for term in affinity.required.node_selector_terms if affinity and affinity.required else ():
        for field in term.match_fields:
            if field.key == _NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return None


def daemon_tolerations(spec: PodSpec) -> list[Toleration]:
    """The template's tolerations, and those of every daemon pod."""
    wanted = [*_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if spec.host_network else [])]
    standard = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in wanted]
    # A toleration that differs only in tolerationSeconds is replaced by the standard one, which has no limit.
    replaced = {_identity(toleration): toleration for toleration in standard}
    own = [replaced.pop(_identity(toleration), toleration) for toleration in spec.tolerations]
    return [*own, *replaced.values()]


def _identity(toleration: Toleration) -> tuple[str, str, str, str]:
    return toleration.key, toleration.operator, toleration.value, toleration.effect


def _bound_for(template: PodTemplateSpec, node: str) -> PodTemplateSpec:
    """The template with this node's name as its required node affinity, replacing what it required."""
    field = SelectorRequirement(key=_NAME_FIELD, operator="In", values=[node])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    affinity = template.spec.affinity or Affinity()
    node_affinity = replace(affinity.node_affinity or NodeAffinity(), required=required)
    return replace(template, spec=replace(template.spec, affinity=replace(affinity, node_affinity=node_affinity)))


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


def expand_replica_set(replica_set: ReplicaSet, expansion: Expansion) -> Iterator[Object]:
    """The pods a ReplicaSet lacks."""
    have = len(active(expansion.owned(replica_set, Pod)))
    yield from expansion.pods(replica_set, replica_set.spec.template, replica_set.spec.replicas - have)


def expand_replication_controller(controller: ReplicationController, expansion: Expansion) -> Iterator[Object]:
    """The pods a ReplicationController lacks."""
    if controller.spec.template is not None:
        have = len(active(expansion.owned(controller, Pod)))
        yield from expansion.pods(controller, controller.spec.template, controller.spec.replicas - have)


def expand_deployment(deployment: Deployment, expansion: Expansion) -> Iterator[Object]:
    """The ReplicaSet of a Deployment, if it has none yet, and the pods that all its ReplicaSets together lack."""
    replica_sets = expansion.owned(deployment, ReplicaSet)
    wanted = deployment.spec.replicas
    if replica_sets:
        for replica_set in replica_sets:
            yield from expand_replica_set(replica_set, expansion)
        # The remaining pods go to the current ReplicaSet, as if the Deployment had just been scaled up.
        current = current_replica_set(replica_sets)
        have = sum(len(active(expansion.owned(each, Pod))) for each in replica_sets)
        yield from expansion.pods(current, current.spec.template, wanted - have)
        return
    # The input may contain the pods without their ReplicaSet.
    pods = active(expansion.deployed.get((deployment.namespace, deployment.name), []))
    if wanted > len(pods):
        replica_set = expansion.add(new_replica_set(deployment, pods[-1] if pods else None))
        yield replica_set
        yield from expansion.pods(replica_set, replica_set.spec.template, wanted - len(pods))


def current_replica_set(sets: Sequence[ReplicaSet]) -> ReplicaSet:
    """The ReplicaSet for new pods: that of the last revision; without revisions the largest, and among those
    the newest.
    """
    return max(sets, key=lambda each: (_revision(each), each.spec.replicas, each.metadata.creation_timestamp or ""))


def _revision(replica_set: ReplicaSet) -> int:
    return annotated_number(replica_set, "deployment.kubernetes.io/revision") or 0


def annotated_number(obj: Object, key: str) -> int | None:
    """The value of an annotation if it is a number of at least 0, else None."""
    text = obj.metadata.annotations.get(key, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None


def new_replica_set(deployment: Deployment, pod: Pod | None = None, collisions: int = 0) -> ReplicaSet:
    """The Deployment's current ReplicaSet: the one of `pod`, or a new one; `collisions` change its name."""
    template = deployment.spec.template
    owner = pod.metadata.controller if pod else None
    number = pod.metadata.labels[HASH_LABEL] if pod else template_hash(template, collisions)
    labels = {**template.metadata.labels, HASH_LABEL: number}
    selector = deployment.spec.selector or LabelSelector(match_labels=template.metadata.labels)
    return ReplicaSet(
        metadata=ObjectMeta(
            name=f"{deployment.name}-{number}",
            namespace=deployment.namespace,
            uid=owner.uid if owner else "",
            labels=labels,
            owner_references=[controller_reference(deployment)],
        ),
        spec=WorkloadSpec(
            replicas=deployment.spec.replicas,
            selector=replace(selector, match_labels={**selector.match_labels, HASH_LABEL: number}),
            template=PodTemplateSpec(metadata=replace(template.metadata, labels=labels), spec=template.spec),
        ),
    )


def expand_stateful_set(stateful_set: StatefulSet, expansion: Expansion) -> Iterator[Object]:
    """The pods with missing ordinals, each after its missing claims."""
    start = stateful_set.spec.ordinals.start
    refuse_too_many(stateful_set, stateful_set.spec.replicas)
    for ordinal in range(start, start + stateful_set.spec.replicas):
        # A terminating pod still holds the name, and the controller waits for it.
        if not expansion.is_taken(Pod, stateful_set.namespace, f"{stateful_set.name}-{ordinal}"):
            yield from stateful_pod(stateful_set, ordinal, expansion)


def stateful_pod(stateful_set: StatefulSet, ordinal: int, expansion: Expansion) -> Iterator[Object]:
    """One pod of a StatefulSet, after its missing claims; existing claims are reused."""
    name = f"{stateful_set.name}-{ordinal}"
    template = stateful_set.spec.template
    for claim in stateful_claims(stateful_set, name, expansion.default_class):
        if not expansion.is_taken(PersistentVolumeClaim, claim.namespace, claim.name):
            yield expansion.add(claim)
    claims = {each.name: f"{each.name}-{name}" for each in stateful_set.spec.volume_claim_templates}
    spec = replace(template.spec, volumes=with_claims_as_volumes(template.spec.volumes, claims))
    labels = {
        **ordinal_labels(name, ordinal),
        "controller-revision-hash": f"{stateful_set.name}-{template_hash(template)}",
    }
    yield from expansion.pod(stateful_set, replace(template, spec=spec), name, labels=labels)


def ordinal_labels(name: str, ordinal: int) -> dict[str, str]:
    """The labels that distinguish the pods of a StatefulSet."""
    return {"statefulset.kubernetes.io/pod-name": name, "apps.kubernetes.io/pod-index": str(ordinal)}


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


def expand_workloads(objects: Objects, is_due: Callable[[CronJob], bool] | None = None) -> Objects:
    """The objects, and after each workload the pending pods that it wants and does not have.

    Pods of the input count for their controller, by its kind and name. The pods come with the ReplicaSets, Jobs,
    PersistentVolumeClaims and ResourceClaims that controllers would create, including the claims of ephemeral volumes.
    Names are the same in every run. CronJobs that are not suspended are due if `is_due` returns True.
    """
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
    if len(expanded) == len(objects):
        return objects
    known = set(missing_references(objects))
    kept = Objects(
        (),
        warnings=[warning for warning in objects.warnings if warning not in known],
        ignored=objects.ignored,
        scheduler_config=objects.scheduler_config,
        applied=objects.applied,
    )
    warnings = [*_treated_as_due(expansion.due), *expansion.priorities.warnings, *missing_references(expanded)]
    return kept.replaced(expanded, warnings)


def workload_of(pod: Pod) -> str:
    """The workload of a pod: `Deployment/web`, `StatefulSet/db`, or `Pod/name` for a pod without one.

    If the name of a ReplicaSet ends in the pod's template hash, the Deployment's name is the part before it.
    """
    owner = pod.metadata.controller
    if owner is None:
        return f"Pod/{pod.name}"
    deployment = deployment_of(pod)
    return f"Deployment/{deployment}" if deployment else f"{owner.kind}/{owner.name}"
