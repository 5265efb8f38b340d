"""Which devices a class and a request select by their CEL expressions."""

from __future__ import annotations

from functools import lru_cache

from podium.cel import CelError, DeviceSelector
from podium.objects.devices import DeviceAttribute
from podium.plugins.dynamic_resources.devices import PooledDevice


class SelectionError(Exception):
    """An expression that cannot be compiled, or that fails for a device."""


def selects(expressions: tuple[str, ...], device: PooledDevice) -> bool:
    """Whether all expressions hold for a device; SelectionError with the number of the one that fails."""
    known = device.matches
    for number, expression in enumerate(expressions):
        matches = known.get(expression)
        if matches is None:
            matches = known[expression] = _evaluate(expression, device, number)
        if not matches:
            return False
    return True


def _evaluate(expression: str, device: PooledDevice, number: int) -> bool:
    selector = _compiled(expression)
    if isinstance(selector, CelError):
        raise SelectionError(f"selector #{number}: CEL compile error: {selector}")
    spec = device.device
    attributes = {name: _value(attribute) for name, attribute in spec.attributes.items()}
    capacity = {name: each.value for name, each in spec.capacity.items()}
    try:
        return selector.matches(device.driver, attributes, capacity, device.is_shared)
    except CelError as error:
        raise SelectionError(f"selector #{number}: CEL runtime error: {error}") from None


@lru_cache(maxsize=1024)
def _compiled(expression: str) -> DeviceSelector | CelError:
    try:
        return DeviceSelector(expression)
    except CelError as error:
        return error


def _value(attribute: DeviceAttribute) -> object:
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    return attribute.version_value
