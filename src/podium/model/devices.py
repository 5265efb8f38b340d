"""ResourceClaim, ResourceSlice, DeviceClass and the other objects of `resource.k8s.io`: devices that pods claim."""

from __future__ import annotations

import msgspec

from podium.model.meta import Int64, NodeSelector, Object, ObjectMeta, Quantity, Struct
from podium.model.objects import Taint
from podium.model.pod import Toleration

EXACT_COUNT, ALL = "ExactCount", "All"
"""The number of devices in a request: its count, or all that match."""


# -- slices: what there is -----------------------------------------------------------------------------------------


class DeviceAttribute(Struct, frozen=True):
    """A value of one of four types, or a list of values of one type; the other fields are None."""

    int_value: Int64 | None = msgspec.field(name="int", default=None)
    bool_value: bool | None = msgspec.field(name="bool", default=None)
    string_value: str | None = msgspec.field(name="string", default=None)
    version_value: str | None = msgspec.field(name="version", default=None)
    int_values: list[Int64] | None = msgspec.field(name="ints", default=None)
    bool_values: list[bool] | None = msgspec.field(name="bools", default=None)
    string_values: list[str] | None = msgspec.field(name="strings", default=None)
    version_values: list[str] | None = msgspec.field(name="versions", default=None)

    @property
    def is_single(self) -> bool:
        """Whether it is a single value, which can be compared with another."""
        singles = self.int_value, self.bool_value, self.string_value, self.version_value
        return any(value is not None for value in singles)


class CapacityRequestPolicyRange(Struct, frozen=True):
    min: Quantity | None = None
    max: Quantity | None = None
    step: Quantity | None = None


class CapacityRequestPolicy(Struct, frozen=True):
    default: Quantity | None = None
    valid_values: list[Quantity] = []
    valid_range: CapacityRequestPolicyRange | None = None


class DeviceCapacity(Struct, frozen=True):
    value: Quantity = 0
    request_policy: CapacityRequestPolicy | None = None


class Counter(Struct, frozen=True):
    value: Quantity = 0


class CounterSet(Struct, frozen=True):
    name: str = ""
    counters: dict[str, Counter] = {}


class DeviceCounterConsumption(Struct, frozen=True):
    counter_set: str = ""
    counters: dict[str, Counter] = {}
    compatibility_groups: list[str] = []


class DeviceDerivedAttribute(Struct, frozen=True):
    """An attribute that a request derives from others. No release reads it by default: using it is an error."""

    name: str = ""


class DeviceTaint(Taint, frozen=True):
    """Keeps claims off a device unless they tolerate it; with the effect None, it has no effect."""


class DeviceToleration(Toleration, frozen=True):
    """What a request tolerates. Unlike a pod's toleration, it may set seconds for any effect."""


class Device(Struct, frozen=True):
    name: str = ""
    attributes: dict[str, DeviceAttribute] = {}
    capacity: dict[str, DeviceCapacity] = {}
    consumes_counters: list[DeviceCounterConsumption] = []
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    taints: list[DeviceTaint] = []
    binds_to_node: bool = False
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] = []
    allow_multiple_allocations: bool | None = None


class ResourcePool(Struct, frozen=True):
    name: str = ""
    generation: Int64 = 0
    resource_slice_count: Int64 = 0


class ResourceSliceSpec(Struct, frozen=True):
    driver: str = ""
    pool: ResourcePool = ResourcePool()
    node_name: str | None = None
    node_selector: NodeSelector | None = None
    all_nodes: bool = False
    per_device_node_selection: bool = False
    devices: list[Device] = []
    shared_counters: list[CounterSet] = []


class ResourceSlice(Object, frozen=True):
    spec: ResourceSliceSpec = ResourceSliceSpec()


# -- classes and claims: what is asked for -------------------------------------------------------------------------


class CELDeviceSelector(Struct, frozen=True):
    expression: str = ""


class DeviceSelector(Struct, frozen=True):
    cel: CELDeviceSelector | None = None


class DeviceClassSpec(Struct, frozen=True):
    selectors: list[DeviceSelector] = []
    extended_resource_name: str | None = None


class DeviceClass(Object, frozen=True):
    spec: DeviceClassSpec = DeviceClassSpec()


class CapacityRequirements(Struct, frozen=True):
    requests: dict[str, Quantity] = {}


class ExactDeviceRequest(Struct, frozen=True):
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: Int64 = 0
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DeviceDerivedAttribute] = []


class DeviceSubRequest(Struct, frozen=True):
    name: str = ""
    device_class_name: str = ""
    selectors: list[DeviceSelector] = []
    allocation_mode: str = ""
    count: Int64 = 0
    tolerations: list[DeviceToleration] = []
    capacity: CapacityRequirements | None = None
    derived_attributes: list[DeviceDerivedAttribute] = []


class DeviceRequest(Struct, frozen=True):
    name: str = ""
    exactly: ExactDeviceRequest | None = None
    first_available: list[DeviceSubRequest] = []


class DeviceConstraint(Struct, frozen=True):
    requests: list[str] = []
    match_attribute: str | None = None
    distinct_attribute: str | None = None


class DeviceClaim(Struct, frozen=True):
    requests: list[DeviceRequest] = []
    constraints: list[DeviceConstraint] = []


class ResourceClaimSpec(Struct, frozen=True):
    devices: DeviceClaim = DeviceClaim()


# -- allocations: who has what -------------------------------------------------------------------------------------


class DeviceRequestAllocationResult(Struct, frozen=True):
    """One device of an allocation; `request` is `name` or `name/subrequest`."""

    request: str = ""
    driver: str = ""
    pool: str = ""
    device: str = ""
    admin_access: bool | None = None
    tolerations: list[DeviceToleration] = []
    binding_conditions: list[str] | None = None
    binding_failure_conditions: list[str] = []
    share_id: str | None = msgspec.field(name="shareID", default=None)
    consumed_capacity: dict[str, Quantity] | None = None
    skip_node_operations: list[str] = []


class DeviceAllocationResult(Struct, frozen=True):
    results: list[DeviceRequestAllocationResult] = []


class AllocationResult(Struct, frozen=True):
    devices: DeviceAllocationResult = DeviceAllocationResult()
    node_selector: NodeSelector | None = None
    allocation_timestamp: str | None = None


class ResourceClaimConsumerReference(Struct, frozen=True):
    api_group: str = ""
    resource: str = ""
    name: str = ""
    uid: str = ""


class DeviceCondition(Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class AllocatedDeviceStatus(Struct, frozen=True):
    driver: str = ""
    pool: str = ""
    device: str = ""
    share_id: str | None = msgspec.field(name="shareID", default=None)
    conditions: list[DeviceCondition] = []


class ResourceClaimStatus(Struct, frozen=True):
    allocation: AllocationResult | None = None
    reserved_for: list[ResourceClaimConsumerReference] = []
    devices: list[AllocatedDeviceStatus] = []


class ResourceClaim(Object, frozen=True):
    spec: ResourceClaimSpec = ResourceClaimSpec()
    status: ResourceClaimStatus = ResourceClaimStatus()


class ResourceClaimTemplateSpec(Struct, frozen=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: ResourceClaimSpec = ResourceClaimSpec()


class ResourceClaimTemplate(Object, frozen=True):
    spec: ResourceClaimTemplateSpec = ResourceClaimTemplateSpec()


# -- taint rules ---------------------------------------------------------------------------------------------------


class DeviceTaintSelector(Struct, frozen=True):
    driver: str | None = None
    pool: str | None = None
    device: str | None = None


class DeviceTaintRuleSpec(Struct, frozen=True):
    device_selector: DeviceTaintSelector | None = None
    taint: DeviceTaint = DeviceTaint()


class DeviceTaintRule(Object, frozen=True):
    spec: DeviceTaintRuleSpec = DeviceTaintRuleSpec()
