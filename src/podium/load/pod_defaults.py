"""What the API server fills in when a pod is created, as far as scheduling reads it."""

from __future__ import annotations

from typing import Any

from msgspec.structs import astuple, replace

from podium.load.label_keys import each, merge_into_affinity, merge_into_constraints
from podium.load.quantities import stored
from podium.objects import Container, ContainerPort, Pod, PodSpec, ResourceList, ResourceRequirements, Volume
from podium.quantity import format_quantity
from podium.resources import pod_requests

DEFAULT_SCHEDULER = "default-scheduler"
DEFAULT_GRACE_PERIOD_SECONDS = 30

_HUGE_PAGES = "hugepages-"
_POD_LEVEL = ("cpu", "memory")
# All but the name, which comes first.
_NO_SOURCE = astuple(Volume())[1:]


def default_pod(pod: Pod) -> Pod:
    """The pod as the API server would store it on creation; the same object when it says everything already."""
    spec = with_label_keys(default_spec(pod.spec), pod.metadata.labels)
    return pod if spec is pod.spec else replace(pod, spec=spec)


def default_spec(spec: PodSpec) -> PodSpec:
    """What the API server fills in whatever the pod's labels are; the same object when it says everything already."""
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
    if spec.overhead and (overhead := stored(spec.overhead)) is not spec.overhead:
        changes["overhead"] = overhead
    if spec.volumes and (volumes := each(deciding_volumes(spec.volumes), _volume)) is not spec.volumes:
        changes["volumes"] = volumes
    if not spec.scheduler_name:
        changes["scheduler_name"] = DEFAULT_SCHEDULER
    if spec.termination_grace_period_seconds is None:
        changes["termination_grace_period_seconds"] = DEFAULT_GRACE_PERIOD_SECONDS
    return replace(spec, **changes) if changes else spec


def deciding_volumes(volumes: list[Volume]) -> list[Volume]:
    """The volumes that can decide where a pod goes; the same list when all can.

    Of the others nothing but a name is read, and that of a service account's token is another one for every pod.
    """
    deciding = [volume for volume in volumes if astuple(volume)[1:] != _NO_SOURCE]
    return volumes if len(deciding) == len(volumes) else deciding


def with_label_keys(spec: PodSpec, labels: dict[str, str]) -> PodSpec:
    """The spec with a pod's labels in the selectors that name them by key; the same object when nothing changes."""
    affinity = merge_into_affinity(spec.affinity, labels)
    constraints = merge_into_constraints(spec.topology_spread_constraints, labels)
    if affinity is spec.affinity and constraints is spec.topology_spread_constraints:
        return spec
    return replace(spec, affinity=affinity, topology_spread_constraints=constraints)


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
    limits = stored(given.limits)
    requests = stored(_with_limits(given.requests, given.limits))
    if limits is given.limits and requests is given.requests:
        return given
    return ResourceRequirements(requests=requests, limits=limits)


def _with_limits(requests: ResourceList, limits: ResourceList) -> ResourceList:
    """The requests, and the limit of everything that is limited and not requested."""
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
    """The requirements of the pod as a whole, filled in from its containers and from its own limits.

    Works on the amounts as written: rounding to thousandths comes after the sums.
    """
    limits, requests = dict(given.limits), dict(given.requests)
    if limits or requests:
        for name, quantity in _sum_of_containers(spec, "limits").items():
            if name.startswith(_HUGE_PAGES) and name not in requests:
                limits.setdefault(name, quantity)
    if limits:
        for name, quantity in _sum_of_containers(spec, "requests").items():
            if name in _POD_LEVEL:
                requests.setdefault(name, quantity)
        for name, quantity in limits.items():
            if name in _POD_LEVEL or name.startswith(_HUGE_PAGES):
                requests.setdefault(name, quantity)
    return ResourceRequirements(requests=stored(requests), limits=stored(limits))


def _sum_of_containers(spec: PodSpec, side: str) -> ResourceList:
    """What the containers request, or are limited to, together: init containers and sidecars as scheduling counts."""

    def asking(container: Container) -> Container:
        given = container.resources
        asked = given.limits if side == "limits" else _with_limits(given.requests, given.limits)
        return replace(container, resources=ResourceRequirements(requests=asked))

    asked = PodSpec(
        containers=[asking(container) for container in spec.containers],
        init_containers=[asking(container) for container in spec.init_containers],
    )
    return {name: format_quantity(amount) for name, amount in pod_requests(Pod(spec=asked)).items()}
