"""The fields of slices and claims that the API server of a release keeps."""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from podium.model.devices import Device, DeviceCapacity, DeviceRequest, ResourceClaimSpec, ResourceSliceSpec
from podium.rules import Rules

_UNSAID = Device()


def _fields_of_devices(rules: Rules) -> dict[str, Any]:
    """The fields of devices that belong to disabled features, with their default values."""
    by_feature = (
        (rules.device_taints, ("taints",)),
        (rules.device_counters, ("consumes_counters", "node_name", "node_selector", "all_nodes")),
        (rules.device_binding_conditions, ("binding_conditions", "binding_failure_conditions", "binds_to_node")),
        (rules.device_capacity, ("allow_multiple_allocations",)),
    )
    return {name: getattr(_UNSAID, name) for is_on, names in by_feature if not is_on for name in names}


def kept_slice(spec: ResourceSliceSpec, rules: Rules) -> ResourceSliceSpec | None:
    """A slice as the API server of a release stores it: without the fields of disabled features.

    None for a slice that it refuses, because no remaining field says which nodes it is for.
    """
    dropped = _fields_of_devices(rules)
    if not dropped:
        return spec
    devices = [replace(device, **dropped) for device in spec.devices]
    if not rules.device_capacity:
        devices = [replace(device, capacity=_without_policies(device)) for device in devices]
    if rules.device_counters:
        return replace(spec, devices=devices)
    if spec.per_device_node_selection:
        return None
    return replace(spec, devices=devices, shared_counters=[])


def _without_policies(device: Device) -> dict[str, DeviceCapacity]:
    return {name: replace(each, request_policy=None) for name, each in device.capacity.items()}


def kept_requests(spec: ResourceClaimSpec, rules: Rules) -> list[DeviceRequest]:
    """The requests of a claim as the API server of a release stores them: without the fields of disabled features.

    Tolerations stay: with taints disabled there is nothing to tolerate.
    """
    requests = spec.devices.requests
    dropped = {} if rules.device_capacity else {"capacity": None}
    dropped_from_exact = dropped if rules.device_admin_access else {**dropped, "admin_access": None}
    if not dropped_from_exact:
        return requests
    return [
        replace(
            request,
            exactly=None if request.exactly is None else replace(request.exactly, **dropped_from_exact),
            first_available=[replace(each, **dropped) for each in request.first_available],
        )
        for request in requests
    ]


def refused_field(spec: ResourceClaimSpec, rules: Rules) -> str:
    """A required field that the API server of a release drops, so that it refuses the claim; empty if there is none."""
    if not rules.device_alternatives:
        for request in spec.devices.requests:
            if request.first_available:
                return f"firstAvailable of request {request.name}"
    if not rules.device_capacity and rules.distinct_attribute_is_dropped:
        for place, constraint in enumerate(spec.devices.constraints):
            if constraint.distinct_attribute is not None:
                return f"distinctAttribute of constraint {place}"
    return ""
