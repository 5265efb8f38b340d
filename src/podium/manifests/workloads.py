"""The pods that Deployments, ReplicaSets, StatefulSets, DaemonSets, Jobs and CronJobs create: owners, names, claims
from templates, and the pod of a template.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests.decode import full_name
from podium.manifests.defaults import Priorities, default_object, generated_suffix, generated_uid
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
    OwnerReference,
    PersistentVolumeClaim,
    Pod,
    PodSpec,
    PodStatus,
    PodTemplateSpec,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
    SelectorRequirement,
    StatefulSet,
    StorageClass,
    Toleration,
    Volume,
)
from podium.model.objects import WorkloadSpec
from podium.model.pod import PersistentVolumeClaimVolumeSource, PodResourceClaimStatus
from podium.model.selectors import NOT_READY, UNREACHABLE, required_node_affinity, untolerated

# -- what controllers need ---------------------------------------------------------------------------------------------


POD_CLAIM_NAME = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a generated claim that names its entry in the pod's resourceClaims."""

_DEFAULT_CLASS = ("storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class")

TemplateOf = Callable[[str, str], ResourceClaimTemplate | None]
"""A template by its name and namespace."""


def claims_for(pod: Pod, template_of: TemplateOf) -> tuple[Pod, list[ResourceClaim]]:
    """The claims that a pod needs and does not have, and the pod with their names in its status.

    The pod must have a uid. If a template is missing, no claim is created: the pod waits for it. Names are the same in
    every run.
    """
    made: list[ResourceClaim] = []
    statuses = list(pod.status.resource_claim_statuses)
    known = {status.name for status in statuses}
    for reference in pod.spec.resource_claims:
        name = reference.resource_claim_template_name
        template = template_of(name, pod.namespace) if name and reference.name not in known else None
        if template is not None:
            claim = _made_from(template, pod, reference.name)
            made.append(claim)
            statuses.append(PodResourceClaimStatus(name=reference.name, resource_claim_name=claim.name))
    if not made:
        return pod, made
    return replace(pod, status=replace(pod.status, resource_claim_statuses=statuses)), made


def _made_from(template: ResourceClaimTemplate, pod: Pod, entry: str) -> ResourceClaim:
    prefix, metadata = f"{pod.name}-{entry}-", template.spec.metadata
    claim = ResourceClaim(
        metadata=ObjectMeta(
            name=prefix + generated_suffix(pod.namespace, prefix, pod.metadata.uid),
            generate_name=prefix,
            namespace=pod.namespace,
            labels=metadata.labels,
            annotations={**metadata.annotations, POD_CLAIM_NAME: entry},
            owner_references=[_owned_by(pod)],
        ),
        spec=template.spec.spec,
    )
    stored = default_object(claim)
    assert isinstance(stored, ResourceClaim)
    return stored


def _owned_by(pod: Pod) -> OwnerReference:
    return OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.metadata.uid, controller=True)


# -- volumes -------------------------------------------------------------------------------------------------------


def ephemeral_claims(pod: Pod, default_class: str | None) -> Iterator[PersistentVolumeClaim]:
    """A claim for each generic ephemeral volume of a pod, which must have a uid: the pod owns the claims."""
    for volume in pod.spec.volumes:
        template = volume.ephemeral.volume_claim_template if volume.ephemeral else None
        if template is not None:
            metadata = ObjectMeta(
                name=f"{pod.name}-{volume.name}",
                namespace=pod.namespace,
                labels=template.metadata.labels,
                annotations=template.metadata.annotations,
                owner_references=[_owned_by(pod)],
            )
            yield stored_claim(PersistentVolumeClaim(metadata=metadata, spec=template.spec), default_class)


def stateful_claims(stateful_set: StatefulSet, pod: str, default_class: str | None) -> list[PersistentVolumeClaim]:
    """The claims of the StatefulSet's pod with this name, one per volumeClaimTemplate; they outlive the pod."""
    selector = stateful_set.spec.selector
    labels = selector.match_labels if selector else {}
    claims = []
    for template in stateful_set.spec.volume_claim_templates:
        metadata = ObjectMeta(
            name=f"{template.name}-{pod}",
            namespace=stateful_set.namespace,
            labels={**template.metadata.labels, **labels},
            annotations=template.metadata.annotations,
        )
        claims.append(stored_claim(PersistentVolumeClaim(metadata=metadata, spec=template.spec), default_class))
    return claims


def with_claims_as_volumes(volumes: Iterable[Volume], claims: dict[str, str]) -> list[Volume]:
    """The volumes, where those named in `claims` are replaced by their claims."""
    wired = [
        Volume(name=name, persistent_volume_claim=PersistentVolumeClaimVolumeSource(claim_name=claim))
        for name, claim in claims.items()
    ]
    return [*wired, *(volume for volume in volumes if volume.name not in claims)]


def stored_claim(claim: PersistentVolumeClaim, default_class: str | None) -> PersistentVolumeClaim:
    """The claim as the API server would store it: with the default storage class unless it names another."""
    if claim.spec.storage_class_name is None and default_class is not None:
        claim = replace(claim, spec=replace(claim.spec, storage_class_name=default_class))
    stored = default_object(claim)
    assert isinstance(stored, PersistentVolumeClaim)
    return stored


def default_storage_class(classes: Iterable[StorageClass]) -> str | None:
    """The storage class of claims that name none: the newest class marked as default; None if there is none."""
    marked = [each for each in classes if any(each.metadata.annotations.get(key) == "true" for key in _DEFAULT_CLASS)]
    by_name = sorted(marked, key=lambda each: each.name)
    newest = max(by_name, key=lambda each: each.metadata.creation_timestamp or "", default=None)
    return newest.name if newest else None


T = TypeVar("T", bound=Object)

HASH_LABEL = "pod-template-hash"
MOST_PODS_OF_WORKLOAD = 1_000_000
"""The maximum number of pods of one workload."""

_API_VERSIONS = {
    "Pod": "v1",
    "ReplicationController": "v1",
    "CronJob": "batch/v1",
    "Job": "batch/v1",
    "DaemonSet": "apps/v1",
    "Deployment": "apps/v1",
    "ReplicaSet": "apps/v1",
    "StatefulSet": "apps/v1",
}
_HASH_LENGTH = 6


class Expansion:
    """The objects of the input, and the creation of those that controllers would add."""

    def __init__(self, objects: Iterable[Object]) -> None:
        objects = list(objects)
        self.nodes = [obj for obj in objects if type(obj) is Node]
        self.priorities = Priorities(objects)
        self.due: list[str] = []
        """The CronJobs treated as due now."""
        self._taken = {obj.identity for obj in objects}
        self._next: Counter[tuple[str, str, str]] = Counter()
        self._owned: dict[tuple[str, str, str], list[Object]] = defaultdict(list)
        self.default_class = default_storage_class(obj for obj in objects if type(obj) is StorageClass)
        self._claim_templates = {
            (obj.namespace, obj.name): obj for obj in objects if isinstance(obj, ResourceClaimTemplate)
        }
        for obj in objects:
            self._note_owner(obj)

    def owned(self, owner: Object, kind: type[T]) -> list[T]:
        """The objects of a kind that have `owner` as their controller."""
        owned = self._owned.get(owner.identity, ())
        return [obj for obj in owned if type(obj) is kind]

    @cached_property
    def deployed(self) -> dict[tuple[str, str], list[Pod]]:
        """The pods of each Deployment, by its namespace and name, as derived from the names of the pods' owners."""
        deployed = defaultdict(list)
        for owned in self._owned.values():
            for pod in owned:
                if type(pod) is Pod and (name := deployment_of(pod)):
                    deployed[pod.namespace, name].append(pod)
        return deployed

    def is_taken(self, kind: type[Object], namespace: str, name: str) -> bool:
        return (kind.__name__, namespace, name) in self._taken

    def free_name(self, kind: type[Object], namespace: str, prefix: str) -> str:
        """`prefix-0`, or the next number that is free."""
        key = (kind.__name__, namespace, prefix)
        while self.is_taken(kind, namespace, f"{prefix}-{self._next[key]}"):
            self._next[key] += 1
        return f"{prefix}-{self._next[key]}"

    def pods(self, owner: Object, template: PodTemplateSpec, number: int) -> Iterator[Object]:
        """A number of pods of a template, with their claims."""
        refuse_too_many(owner, number)
        for _ in range(number):
            name = self.free_name(Pod, owner.namespace, owner.name)
            yield from self.pod(owner, template, name)

    def pod(
        self, owner: Object, template: PodTemplateSpec, name: str, *, labels: dict[str, str] | None = None
    ) -> Iterator[Object]:
        """One pending pod of a template, and a claim for each generic ephemeral volume."""
        metadata = ObjectMeta(
            name=name,
            generate_name=f"{owner.name}-",
            namespace=owner.namespace,
            labels={**template.metadata.labels, **(labels or {})},
            annotations=template.metadata.annotations,
            owner_references=[controller_reference(owner)],
        )
        pod = self.add(Pod(metadata=metadata, spec=template.spec, status=PodStatus(phase="Pending")))
        pod, claims = self.with_claims(pod)
        yield self.priorities.resolve(pod)
        yield from claims
        yield from self.ephemeral_claims(pod)

    def with_claims(self, pod: Pod) -> tuple[Pod, list[ResourceClaim]]:
        """A pod with the resource claims that are created from templates for it."""
        if not pod.spec.resource_claims:
            return pod, []
        pod, claims = claims_for(pod, lambda name, namespace: self._claim_templates.get((namespace, name)))
        return pod, [self.add(claim) for claim in claims]

    def add(self, obj: T) -> T:
        """The object as the API server would store it; it is known to the expansion from now on."""
        stored = default_object(obj)
        assert isinstance(stored, type(obj))
        self._taken.add(stored.identity)
        self._note_owner(stored)
        return stored

    def _note_owner(self, obj: Object) -> None:
        owner = obj.metadata.controller if obj.metadata.owner_references else None
        if owner is not None:
            self._owned[owner.kind, obj.namespace, owner.name].append(obj)

    def ephemeral_claims(self, pod: Pod) -> Iterator[Object]:
        """A claim for each generic ephemeral volume that has none yet."""
        for claim in ephemeral_claims(pod, self.default_class):
            if not self.is_taken(PersistentVolumeClaim, claim.namespace, claim.name):
                yield self.add(claim)


def deployment_of(pod: Pod) -> str | None:
    """The Deployment of a pod's ReplicaSet: the part of its name before the template hash."""
    owner, number = pod.metadata.controller, pod.metadata.labels.get(HASH_LABEL)
    if owner is None or owner.kind != "ReplicaSet" or not number or not owner.name.endswith(f"-{number}"):
        return None
    return owner.name.removesuffix(f"-{number}")


def recreated(pod: Pod, name: str = "", uid: str = "") -> Pod:
    """The pod as its controller creates it again: without a node or anything else that happened since its creation.

    An empty `name` or `uid` leaves the old one.
    """
    metadata = replace(
        pod.metadata,
        name=name or pod.name,
        uid=uid or pod.metadata.uid,
        creation_timestamp=None,
        deletion_timestamp=None,
    )
    return replace(pod, metadata=metadata, spec=replace(pod.spec, node_name=""), status=PodStatus(phase="Pending"))


def active(pods: list[Pod]) -> list[Pod]:
    """The pods that a controller counts: neither finished nor terminating."""
    return [pod for pod in pods if not pod.finished and not pod.terminating]


def controller_reference(owner: Object) -> OwnerReference:
    kind = type(owner).__name__
    uid = owner.metadata.uid or generated_uid(kind, owner.namespace, owner.name)
    return OwnerReference(api_version=_API_VERSIONS[kind], kind=kind, name=owner.name, uid=uid, controller=True)


def template_hash(template: PodTemplateSpec, collisions: int = 0) -> str:
    """A short hash of a template; not the same letters as the controllers', but as stable."""
    salt = (collisions,) if collisions else ()
    return generated_suffix(msgspec.json.encode(template, order="deterministic"), *salt, length=_HASH_LENGTH)


def refuse_too_many(owner: Object, number: int) -> None:
    """InputError for a workload with more pods than any cluster has: creating them would exhaust the memory."""
    if number > MOST_PODS_OF_WORKLOAD:
        kind, name = type(owner).__name__, owner.name
        # A Deployment's ReplicaSet and a CronJob's Job are usually created here: no file contains them.
        for reference in owner.metadata.owner_references:
            if reference.controller:
                kind, name = reference.kind, reference.name
        name = full_name(kind, owner.namespace, name)
        raise InputError(f"{name}: asks for {number:,} pods; up to {MOST_PODS_OF_WORKLOAD:,} can be simulated")


# -- the pods of each workload -----------------------------------------------------------------------------------------


_NAME_FIELD = "metadata.name"
_GENERATION = "deprecated.daemonset.template.generation"
_TOLERATED = (
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoExecute"),
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
