"""The API server's defaults for new objects, and pods as it would store them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from hashlib import blake2b
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests._devices import default_claim, default_claim_template
from podium.manifests.checks import check, refused_by_api_server
from podium.manifests.decode import effective_namespace
from podium.model import (
    Container,
    ContainerPort,
    DaemonSet,
    Deployment,
    Job,
    Namespace,
    Node,
    Object,
    ObjectMeta,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodGroup,
    PodSpec,
    PodStatus,
    PriorityClass,
    ReplicationController,
    ResourceClaim,
    ResourceClaimTemplate,
    ResourceList,
    ResourceRequirements,
    StatefulSet,
    TopologySpreadConstraint,
    Volume,
)
from podium.model.objects import RollingUpdate
from podium.model.pod import DEFAULT_SCHEDULER_NAME
from podium.model.quantity import format_quantity, stored_resources
from podium.model.resources import HUGE_PAGES, pod_requests
from podium.model.selectors import with_label_keys_merged
from podium.rules import NEWEST_RULES

T = TypeVar("T")
Labels = dict[str, str]


def has_label_keys(spec: PodSpec) -> bool:
    """Whether the stored spec depends on the pod's labels."""
    return any(constraint.match_label_keys for constraint in spec.topology_spread_constraints)


def merge_into_constraints(
    constraints: list[TopologySpreadConstraint], labels: Labels
) -> list[TopologySpreadConstraint]:
    """The constraints with the pod's own labels merged into their selectors; the same list if nothing changes."""

    def merge(constraint: TopologySpreadConstraint) -> TopologySpreadConstraint:
        selector = with_label_keys_merged(constraint.label_selector, constraint.match_label_keys, [], labels)
        return constraint if selector is constraint.label_selector else replace(constraint, label_selector=selector)

    return each(constraints, merge)


def each(items: list[T], change: Callable[[T], T]) -> list[T]:
    """Every item changed; the same list if no item changes."""
    changed = None
    for position, item in enumerate(items):
        new = change(item)
        if new is not item:
            changed = changed or list(items)
            changed[position] = new
    return changed or items


DEFAULT_GRACE_PERIOD_SECONDS = 30

_POD_LEVEL = ("cpu", "memory")
_NO_SOURCE = Volume()


def default_pod(pod: Pod) -> Pod:
    """The pod as the API server would store it on creation; the same object if nothing changes."""
    spec = with_label_keys(default_spec(pod.spec), pod.metadata.labels)
    return pod if spec is pod.spec else replace(pod, spec=spec)


def default_spec(spec: PodSpec) -> PodSpec:
    """Apply the API server's defaults that do not depend on the pod's labels; the same object if nothing changes."""
    changes: dict[str, Any] = {}
    containers = _containers(spec.containers, spec.host_network)
    if containers is not spec.containers:
        changes["containers"] = containers
    if spec.init_containers:
        init_containers = _containers(spec.init_containers, spec.host_network)
        if init_containers is not spec.init_containers:
            changes["init_containers"] = init_containers
    if spec.resources is not None:
        changes["resources"] = _pod_level(spec, spec.resources)
    if spec.overhead and (overhead := stored_resources(spec.overhead)) is not spec.overhead:
        changes["overhead"] = overhead
    if spec.volumes and (volumes := each(deciding_volumes(spec.volumes), _volume)) is not spec.volumes:
        changes["volumes"] = volumes
    if not spec.scheduler_name:
        changes["scheduler_name"] = DEFAULT_SCHEDULER_NAME
    if spec.termination_grace_period_seconds is None:
        changes["termination_grace_period_seconds"] = DEFAULT_GRACE_PERIOD_SECONDS
    return replace(spec, **changes) if changes else spec


def deciding_volumes(volumes: list[Volume]) -> list[Volume]:
    """The volumes that can affect where a pod goes; the same list if all can.

    Scheduling reads nothing but the name of other volumes, and a service account token's name differs for every pod.
    """
    deciding = [volume for volume in volumes if replace(volume, name="") != _NO_SOURCE]
    return volumes if len(deciding) == len(volumes) else deciding


def with_label_keys(spec: PodSpec, labels: dict[str, str]) -> PodSpec:
    """The spec with the pod's labels merged into selectors that use label keys; the same object if nothing changes.

    The label keys of pod affinity are merged when the pod is compiled, since not all releases do so.
    """
    constraints = merge_into_constraints(spec.topology_spread_constraints, labels)
    return (
        spec
        if constraints is spec.topology_spread_constraints
        else replace(spec, topology_spread_constraints=constraints)
    )


def _containers(containers: list[Container], host_network: bool) -> list[Container]:
    return each(containers, _host_network_container if host_network else _container)


def _container(container: Container) -> Container:
    given = container.resources
    resources = _resources(given) if given.limits or given.requests else given
    ports = each(container.ports, _port) if container.ports else container.ports
    if resources is given and ports is container.ports:
        return container
    return replace(container, resources=resources, ports=ports)


def _host_network_container(container: Container) -> Container:
    container = _container(container)
    ports = each(container.ports, _host_network_port)
    return container if ports is container.ports else replace(container, ports=ports)


def _resources(given: ResourceRequirements) -> ResourceRequirements:
    limits = stored_resources(given.limits)
    requests = stored_resources(_with_limits(given.requests, given.limits))
    if limits is given.limits and requests is given.requests:
        return given
    return ResourceRequirements(requests=requests, limits=limits)


def _with_limits(requests: ResourceList, limits: ResourceList) -> ResourceList:
    """The requests, plus the limit of every resource that is limited but not requested."""
    return requests if limits.keys() <= requests.keys() else {**limits, **requests}


def _port(port: ContainerPort) -> ContainerPort:
    return port if port.protocol else replace(port, protocol="TCP")


def _host_network_port(port: ContainerPort) -> ContainerPort:
    return port if port.host_port or not port.container_port else replace(port, host_port=port.container_port)


def _volume(volume: Volume) -> Volume:
    if volume.rbd is not None and not volume.rbd.pool:
        return replace(volume, rbd=replace(volume.rbd, pool="rbd"))
    if volume.azure_disk is not None and volume.azure_disk.read_only is None:
        return replace(volume, azure_disk=replace(volume.azure_disk, read_only=False))
    return volume


def _pod_level(spec: PodSpec, given: ResourceRequirements) -> ResourceRequirements:
    """The pod-level requirements, completed from its containers and from its own limits.

    Sums the amounts as written: they are rounded to thousandths afterwards.
    """
    limits, requests = dict(given.limits), dict(given.requests)
    if limits or requests:
        for name, quantity in _sum_of_containers(spec, "limits").items():
            if name.startswith(HUGE_PAGES) and name not in requests:
                limits.setdefault(name, quantity)
    if limits:
        for name, quantity in _sum_of_containers(spec, "requests").items():
            if name in _POD_LEVEL:
                requests.setdefault(name, quantity)
        for name, quantity in limits.items():
            if name in _POD_LEVEL or name.startswith(HUGE_PAGES):
                requests.setdefault(name, quantity)
    return ResourceRequirements(requests=stored_resources(requests), limits=stored_resources(limits))


def _sum_of_containers(spec: PodSpec, side: str) -> ResourceList:
    """The containers' total requests or limits, with init containers and sidecars counted as scheduling does."""

    def asking(container: Container) -> Container:
        given = container.resources
        asked = given.limits if side == "limits" else _with_limits(given.requests, given.limits)
        return replace(container, resources=ResourceRequirements(requests=asked))

    asked = PodSpec(
        containers=[asking(container) for container in spec.containers],
        init_containers=[asking(container) for container in spec.init_containers],
    )
    # Every release sums up containers like this; they differ in pod-level requests and in resizes, which are not there.
    summed = pod_requests(Pod(spec=asked), NEWEST_RULES)
    return {name: format_quantity(amount) for name, amount in summed.items()}


NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"

# The letters of names generated by Kubernetes: no vowels, so no words, and no similar characters.
_NAME_LETTERS = "bcdfghjklmnpqrstvwxz2456789"


def default_object(obj: Object) -> Object:
    """The object as the API server would store it on creation; the same object if nothing changes.

    It must have a name; if it has no uid, it gets one generated from its kind, namespace and name.
    """
    metadata = default_metadata(type(obj).__name__, obj.metadata)
    if metadata is not obj.metadata:
        obj = replace(obj, metadata=metadata)
    default = _DEFAULTS.get(type(obj))
    return obj if default is None else default(obj)


def default_metadata(kind: str, metadata: ObjectMeta) -> ObjectMeta:
    """The metadata with namespace and uid; the same object if it has both."""
    namespace = effective_namespace(kind, metadata.namespace)
    if metadata.uid and namespace == metadata.namespace:
        return metadata
    return replace(metadata, namespace=namespace, uid=metadata.uid or generated_uid(kind, namespace, metadata.name))


def generated_uid(kind: str, namespace: str, name: str) -> str:
    """A uid for an object that has none: the same in every run, and unique."""
    return f"{kind}/{namespace}/{name}" if namespace else f"{kind}/{name}"


def generated_suffix(*parts: object, length: int = 5) -> str:
    """The suffix of a generated name; it depends on `parts` alone."""
    number = int.from_bytes(blake2b("\0".join(map(str, parts)).encode(), digest_size=8).digest())
    letters = []
    for _ in range(length):
        number, letter = divmod(number, len(_NAME_LETTERS))
        letters.append(_NAME_LETTERS[letter])
    return "".join(letters)


def _default_node(node: Node) -> Node:
    status = node.status
    capacity = stored_resources(status.capacity)
    allocatable = capacity if status.allocatable is None and capacity else stored_resources(status.allocatable or {})
    if capacity is status.capacity and allocatable is status.allocatable:
        return node
    return replace(node, status=replace(status, capacity=capacity, allocatable=allocatable))


def _default_namespace(namespace: Namespace) -> Namespace:
    metadata = namespace.metadata
    if metadata.labels.get(NAMESPACE_NAME_LABEL) == metadata.name:
        return namespace
    labels = {**metadata.labels, NAMESPACE_NAME_LABEL: metadata.name}
    return replace(namespace, metadata=replace(metadata, labels=labels))


def _default_persistent_volume(volume: PersistentVolume) -> PersistentVolume:
    spec = volume.spec
    capacity = stored_resources(spec.capacity)
    if capacity is not spec.capacity:
        volume = replace(volume, spec=replace(spec, capacity=capacity))
    return volume if volume.status.phase else replace(volume, status=replace(volume.status, phase="Pending"))


def _default_claim(claim: PersistentVolumeClaim) -> PersistentVolumeClaim:
    spec = claim.spec
    requests = stored_resources(spec.resources.requests)
    if requests is not spec.resources.requests:
        claim = replace(claim, spec=replace(spec, resources=replace(spec.resources, requests=requests)))
    return claim if claim.status.phase else replace(claim, status=replace(claim.status, phase="Pending"))


def _default_replication_controller(controller: ReplicationController) -> ReplicationController:
    labels = controller.spec.template.metadata.labels if controller.spec.template else {}
    if labels and not controller.spec.selector:
        controller = replace(controller, spec=replace(controller.spec, selector=labels))
    if labels and not controller.metadata.labels:
        controller = replace(controller, metadata=replace(controller.metadata, labels=labels))
    return controller


def _default_job(job: Job) -> Job:
    labels = job.spec.template.metadata.labels
    return job if job.metadata.labels or not labels else replace(job, metadata=replace(job.metadata, labels=labels))


_DEFAULTS: dict[type[Object], Callable[[Any], Object]] = {
    Job: _default_job,
    Namespace: _default_namespace,
    Node: _default_node,
    PersistentVolume: _default_persistent_volume,
    PersistentVolumeClaim: _default_claim,
    Pod: default_pod,
    ReplicationController: _default_replication_controller,
    ResourceClaim: default_claim,
    ResourceClaimTemplate: default_claim_template,
}


_ROLLING_UPDATES = {
    Deployment: RollingUpdate(max_surge="25%", max_unavailable="25%"),
    StatefulSet: RollingUpdate(max_surge=0, max_unavailable=1),
    DaemonSet: RollingUpdate(max_surge=0, max_unavailable=1),
}


def rolling_update(workload: Deployment | StatefulSet | DaemonSet) -> RollingUpdate:
    """The rolling-update bounds of the workload, with defaults filled in."""
    strategy = workload.spec.strategy if isinstance(workload, Deployment) else workload.spec.update_strategy
    given, default = strategy.rolling_update, _ROLLING_UPDATES[type(workload)]
    return replace(
        given,
        max_surge=default.max_surge if given.max_surge is None else given.max_surge,
        max_unavailable=default.max_unavailable if given.max_unavailable is None else given.max_unavailable,
    )


PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"

BUILT_IN = {
    name: PriorityClass(metadata=ObjectMeta(name=name), value=value)
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
}
"""The priority classes that every cluster has."""

_NO_CLASS = PriorityClass()


class Priorities:
    """Gives pods the priority of their class; remembers the classes it did not find."""

    def __init__(self, objects: Iterable[Object]) -> None:
        classes = [obj for obj in objects if type(obj) is PriorityClass]
        self.classes = BUILT_IN | {each.name: each for each in classes}
        # Several defaults are a race in the cluster; the API server uses the lowest.
        self.default = min((c for c in classes if c.global_default), key=lambda c: c.value, default=_NO_CLASS)
        self.missing: dict[str, None] = {}

    def resolve(self, pod: Pod) -> Pod:
        """Set the pod's priority from its class; a pod that already has a priority, as in a dump, stays as it is."""
        spec = pod.spec
        if spec.priority is not None:
            return pod
        chosen = self._class_of(pod)
        policy = spec.preemption_policy or chosen.preemption_policy or PREEMPT_LOWER_PRIORITY
        name = spec.priority_class_name or chosen.name
        return replace(
            pod,
            spec=replace(spec, priority=chosen.value, preemption_policy=policy, priority_class_name=name),
        )

    def resolve_group(self, group: PodGroup) -> PodGroup:
        """Set the priority of a PodGroup from its class, as for pods."""
        chosen = self._class_of(group)
        name = group.spec.priority_class_name or chosen.name
        return replace(group, spec=replace(group.spec, priority=chosen.value, priority_class_name=name))

    def _class_of(self, pod: Pod | PodGroup) -> PriorityClass:
        name = pod.spec.priority_class_name
        if not name:
            return self.default
        found = self.classes.get(name)
        if found is None:
            self.missing.setdefault(name)
            return _NO_CLASS
        return found

    @property
    def warnings(self) -> list[str]:
        """One line per class that pods name and the input lacks."""
        return [
            f"PriorityClass {name} is not in the input: priority 0 assumed for the pods that name it"
            for name in self.missing
        ]


_encode = msgspec.json.Encoder().encode


class StoredPods:
    """Checks pods and applies defaults; equal specs become one object, and so do equal statuses.

    The node and the start time, which are specific to a pod, are ignored in that comparison.
    """

    # Pods of one template mostly come close together; the bound is for input in which all pods differ.
    REMEMBERED = 1 << 14

    def __init__(self) -> None:
        self._specs: dict[bytes, tuple[PodSpec, bool]] = {}
        """Each with defaults applied, and with whether it refers to the pod's labels by key."""
        self._statuses: dict[bytes, PodStatus] = {}
        self._labels = {b""}
        """The labels of pods in manifests that were already checked."""

    def stored(self, pod: Pod, on_refused: Callable[[InputError], None] | None = None) -> Pod:
        """The pod, which must have a name, with defaults applied; InputError with the field path, as from `check`.

        Equal pods are checked once; for a manifest, `on_refused` is called with fields that only the API server would
        refuse.
        """
        shared = replace(pod.spec, node_name="", volumes=deciding_volumes(pod.spec.volumes))
        spec_key, status_key = _text_of(shared), _text_of(replace(pod.status, start_time=None))
        labels = _text_of(pod.metadata.labels) if on_refused is not None else b""
        known, status = self._specs.get(spec_key), self._statuses.get(status_key)
        if known is None or status is None or labels not in self._labels:
            check(pod, manifest=on_refused is not None)
            if on_refused is not None and (problem := refused_by_api_server(pod)) is not None:
                on_refused(problem)
            if len(self._labels) >= self.REMEMBERED:
                self._labels = {b""}
            self._labels.add(labels)
        if known is None:
            if len(self._specs) >= self.REMEMBERED:
                self._specs.clear()
            filled = default_spec(shared)
            known = self._specs[spec_key] = filled, has_label_keys(filled)
        if status is None:
            if len(self._statuses) >= self.REMEMBERED:
                self._statuses.clear()
            status = self._statuses[status_key] = pod.status
        spec, names_labels = known
        if names_labels:
            spec = with_label_keys(spec, pod.metadata.labels)
        if pod.spec.node_name:
            spec = replace(spec, node_name=pod.spec.node_name)
        if status.start_time != pod.status.start_time:
            status = replace(status, start_time=pod.status.start_time)
        return Pod(metadata=default_metadata("Pod", pod.metadata), spec=spec, status=status)


def _text_of(part: PodSpec | PodStatus | dict[str, str]) -> bytes:
    """Equal for equal parts."""
    try:
        return _encode(part)
    except UnicodeEncodeError as error:
        raise InputError(f"holds {error.object!r}, which is not Unicode text") from None
