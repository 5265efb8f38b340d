"""How the releases differ in what they know of devices."""

from __future__ import annotations

from dataclasses import dataclass, replace

from podium import cel


@dataclass(frozen=True, slots=True)
class DeviceRules:
    """What a release does with devices: first its features at their default, then how it goes about things."""

    admin_access: bool = True
    prioritized_lists: bool = True
    consumable_capacity: bool = True
    partitionable_devices: bool = True
    device_taints: bool = True
    device_taint_rules: bool = False
    binding_conditions: bool = True
    extended_resources: bool = True
    prefers_first_alternatives: bool = True
    """Whether the plugin scores nodes by which alternative of a request they can give."""
    distinct_by_request: bool = True
    """distinctAttribute remembers one value for each request, so that a device is not compared with all others."""
    counter_slices_everywhere: bool = True
    """A slice with shared counters is looked at for every node, whichever nodes it names."""
    all_leaves_out_full_devices: bool = True
    """A request for all devices leaves out those without enough capacity left, instead of failing for them."""
    steps_are_binary: bool = True
    """A capacity rounded up to a step is written in binary units, and one beyond int64 is taken for what is left of it."""
    shares_need_capacity: bool = True
    """Only a share with capacity shows that a device's counters are paid for."""
    cel: cel.Environment = cel.V1_36
    """What expressions may use."""
    always_speaks_up: bool = True
    """PostFilter says that there is nothing to deallocate, rather than nothing."""


V1_36 = DeviceRules()
V1_37 = DeviceRules(
    device_taint_rules=True,
    distinct_by_request=False,
    counter_slices_everywhere=False,
    all_leaves_out_full_devices=False,
    steps_are_binary=False,
    shares_need_capacity=False,
    cel=cel.V1_37,
    always_speaks_up=False,
)
V1_35 = replace(
    V1_36,
    consumable_capacity=False,
    partitionable_devices=False,
    device_taints=False,
    binding_conditions=False,
    extended_resources=False,
    cel=cel.V1_34,
)
V1_34 = replace(V1_35, prefers_first_alternatives=False)
