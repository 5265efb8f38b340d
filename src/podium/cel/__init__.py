"""The Common Expression Language as kube-scheduler uses it to select devices.

from podium.cel import DeviceSelector

selector = DeviceSelector('device.driver == "gpu.example.com"')
selector.matches("gpu.example.com", {"model": "h100"}, {"memory": "80Gi"})
"""

from podium.cel._device import (
    V1_34,
    V1_36,
    V1_37,
    AttributeValue,
    CapacityValue,
    Device,
    DeviceSelector,
    Environment,
    parse_version,
)
from podium.cel._values import Semver
from podium.errors import CelError

__all__ = [
    "V1_34", "V1_36", "V1_37", "AttributeValue", "CapacityValue", "CelError", "Device", "DeviceSelector",
    "Environment", "Semver", "parse_version",
]  # fmt: skip
