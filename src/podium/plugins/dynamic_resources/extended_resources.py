"""Extended resources backed by device classes: the device requests they become, and their totals per node for
scoring.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster
from podium.cluster.cluster import UpToDate
from podium.cluster.columns import Ints
from podium.model import Container, DeviceClass, Pod
from podium.model.devices import EXACT_COUNT, DeviceClaim, DeviceRequest, ExactDeviceRequest, ResourceClaimSpec
from podium.model.pod import ContainerExtendedResourceRequest as Mapped
from podium.model.quantity import parse_quantity
from podium.model.resources import PodResources, is_extended_resource
from podium.model.selectors import Labels
from podium.plugins.dynamic_resources.device_selectors import SelectionError, selects_as_exclusive
from podium.plugins.dynamic_resources.inventory import Inventory, inventory_of
from podium.plugins.dynamic_resources.pools import PooledDevice
from podium.plugins.dynamic_resources.requests import expressions_of
from podium.rules import Rules

CLASS_PREFIX = "deviceclass.resource.kubernetes.io/"
"""A resource name with this prefix always means the class named after it."""


class _Backed:
    """The device classes of a cluster by the extended resources they back."""

    def __init__(self) -> None:
        self._as_of = -1
        self.classes: dict[str, DeviceClass] = {}

    def catch_up(self, cluster: Cluster) -> None:
        store = cluster.store
        if store.version != self._as_of:
            changed = store.since(self._as_of) if self._as_of >= 0 else None
            if changed is None or any(type(item) is DeviceClass for item in changed):
                self.classes = backed_by(store.of(DeviceClass))
            self._as_of = store.version


_BACKED = UpToDate(_Backed)


def backed_resources(cluster: Cluster) -> Mapping[str, DeviceClass]:
    """The extended resources that a device class backs, with the class."""
    return _BACKED.of(cluster).classes


def extended_requests(resources: PodResources) -> dict[str, int]:
    """The extended resources that a pod requests, whether or not a class backs them."""
    return {name: amount for name, amount in resources.requests.items() if amount and may_be_backed(name)}


def asks_for_backed(resources: PodResources, cluster: Cluster) -> bool:
    """Whether a pod requests an extended resource that a device class backs."""
    if not cluster.store.has_any(DeviceClass):
        return False
    requests = extended_requests(resources)
    return bool(requests) and not requests.keys().isdisjoint(backed_resources(cluster))


@lru_cache(maxsize=4096)
def may_be_backed(name: str) -> bool:
    return is_extended_resource(name) or name.startswith(CLASS_PREFIX)


def backed_by(classes: Iterable[DeviceClass]) -> dict[str, DeviceClass]:
    """Classes by the extended resources they back; if several classes name one resource, the newest, then the smaller
    name.

    The scheduler reads the classes ordered by name. A class whose resource is already backed by a class that is not
    older backs nothing: not even the resource with its own name.
    """
    found: dict[str, DeviceClass] = {}
    for each in sorted(classes, key=lambda each: each.name):
        resource = each.spec.extended_resource_name
        rival = found.get(resource) if resource else None
        if rival is not None and _created(each) <= _created(rival):
            continue
        if resource:
            found[resource] = each
        found[CLASS_PREFIX + each.name] = each
    return found


def _created(device_class: DeviceClass) -> str:
    return device_class.metadata.creation_timestamp or ""


# -- requests ------------------------------------------------------------------------------------------------------


class ExtendedRequests(NamedTuple):
    """The claim for a pod's extended resources on a node, and which request serves which container."""

    spec: ResourceClaimSpec
    mappings: list[Mapped]


class _Needed(NamedTuple):
    """The devices that a container needs for itself."""

    name: str
    class_name: str
    number: int


def extended_claim(pod: Pod, resources: Iterable[str], classes: Mapping[str, DeviceClass]) -> ExtendedRequests:
    """The device requests for these resources, ordered by resource name; mappings in the scheduler's order.

    Init containers, except sidecars, reuse the devices of the containers after them, and share among each other what
    they need beyond that.
    """
    needed: list[_Needed] = []
    mappings: list[Mapped] = []
    for resource in sorted(resources):
        own, mapped = _requests_of(pod, resource, classes[resource].name)
        needed += own
        mappings += mapped
    requests = [
        DeviceRequest(
            name=each.name,
            exactly=ExactDeviceRequest(
                device_class_name=each.class_name, allocation_mode=EXACT_COUNT, count=each.number
            ),
        )
        for each in sorted(needed)
    ]
    return ExtendedRequests(ResourceClaimSpec(devices=DeviceClaim(requests=requests)), mappings)


def _requests_of(pod: Pod, resource: str, class_name: str) -> tuple[list[_Needed], list[Mapped]]:
    """The requests for one resource, and their mappings: long-lived containers first."""
    init = pod.spec.init_containers
    containers = [*init, *pod.spec.containers]
    is_short = [place < len(init) and each.restart_policy != "Always" for place, each in enumerate(containers)]
    lasting: list[_Needed | None] = [None] * len(containers)
    mappings: list[Mapped] = []
    for place, container in enumerate(containers):
        if not is_short[place]:
            lasting[place], mapped = _own(place, container, resource, class_name, [])
            mappings += mapped
    largest: _Needed | None = None
    passing: list[tuple[Mapped, bool]] = []
    for place, container in enumerate(containers):
        if is_short[place]:
            reusable = [each for each in lasting[place:] if each is not None]
            own, mapped = _own(place, container, resource, class_name, reusable)
            passing += [(each, own is not None and each.request_name == own.name) for each in mapped]
            if own is not None and (largest is None or largest.number < own.number):
                largest = own
    for each, is_own in passing:
        name = largest.name if is_own and largest is not None else each.request_name
        mappings.append(replace(each, request_name=name))
    return [each for each in (largest, *lasting) if each is not None], mappings


def _own(
    place: int, container: Container, resource: str, class_name: str, reusable: list[_Needed]
) -> tuple[_Needed | None, list[Mapped]]:
    """The devices that a container needs beyond the requests it can reuse, and all requests that serve it."""
    requests = container.resources.requests
    amount = parse_quantity(requests[resource]) if resource in requests else 0
    if not amount or amount != int(amount):
        return None, []
    served, names = 0, []
    for each in reusable:
        served += each.number
        names.append(each.name)
        if served >= amount:
            return None, [_mapped(container, resource, name) for name in names]
    # The number is the position of the resource among the container's requests.
    own = _Needed(f"container-{place}-request-{sorted(requests).index(resource)}", class_name, int(amount) - served)
    return own, [_mapped(container, resource, name) for name in (*names, own.name)]


def _mapped(container: Container, resource: str, request: str) -> Mapped:
    return Mapped(container_name=container.name, resource_name=resource, request_name=request)


def device_totals(cluster: Cluster, rules: Rules, device_class: DeviceClass, rows: Ints) -> tuple[Ints, Ints]:
    """Per row, the devices of the class and those in use; 0 if an expression of the class fails."""
    inventory = inventory_of(cluster, rules)
    there, taken = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for place, row in enumerate(rows.tolist()):
        name = cluster.names[row]
        try:
            devices = _of_class(inventory, device_class, name, cluster.node(name).metadata.labels)
        except SelectionError:
            continue
        there[place] = len(devices)
        taken[place] = sum(inventory.in_use.is_allocated(device.id) for device in devices)
    return there, taken


def _of_class(inventory: Inventory, device_class: DeviceClass, node_name: str, labels: Labels) -> list[PooledDevice]:
    expressions = expressions_of(device_class.spec.selectors)
    return [
        device
        for each in inventory.slices_near(node_name)
        for device in each.devices
        if device.reach.includes(node_name, labels) and selects_as_exclusive(expressions, device, inventory.rules)
    ]
