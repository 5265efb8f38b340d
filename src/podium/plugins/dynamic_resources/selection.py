"""Which devices a class and a request select by their CEL expressions."""

from __future__ import annotations

from functools import lru_cache

from podium.cel import AttributeValue, CelError, Device, DeviceSelector, Environment, parse_version
from podium.model.devices import DeviceAttribute
from podium.plugins.dynamic_resources.devices import PooledDevice
from podium.rules import Rules

MOST_LISTED = 48
"""How long a list v1.36 goes through."""


class SelectionError(Exception):
    """An expression that cannot be compiled, or that fails for a device."""


def selects(expressions: tuple[str, ...], device: PooledDevice, rules: Rules) -> bool:
    """Whether all expressions hold for a device; SelectionError with the number of the one that fails."""
    known = device.matches
    for number, expression in enumerate(expressions):
        matches = known.get(expression)
        if matches is None:
            matches = known[expression] = _evaluate(expression, device, rules, number)
        if not matches:
            return False
    return True


def selects_as_exclusive(expressions: tuple[str, ...], device: PooledDevice, rules: Rules) -> bool:
    """What `selects` says, where expressions are told that no device may be had several times."""
    for expression in expressions:
        if device.is_shared and "allowMultipleAllocations" in expression:
            selector = _compiled(expression, _environment(rules))
            if isinstance(selector, CelError):
                raise SelectionError(str(selector))
            try:
                matches = selector.matches_device(_prepared(device, is_shared=False))
            except CelError as error:
                raise SelectionError(str(error)) from None
        else:
            matches = selects((expression,), device, rules)
        if not matches:
            return False
    return True


def _evaluate(expression: str, device: PooledDevice, rules: Rules, number: int) -> bool:
    selector = _compiled(expression, _environment(rules))
    if isinstance(selector, CelError):
        raise SelectionError(f"selector #{number}: CEL compile error: {selector}")
    try:
        if device.seen_by_cel is None:
            device.seen_by_cel = _prepared(device, is_shared=device.is_shared)
        return selector.matches_device(device.seen_by_cel)
    except CelError as error:
        raise SelectionError(f"selector #{number} on device {device.id}: CEL runtime error: {error}") from None


@lru_cache(maxsize=1024)
def _compiled(expression: str, environment: Environment) -> DeviceSelector | CelError:
    try:
        return DeviceSelector(expression, environment)
    except CelError as error:
        return error


def _environment(rules: Rules) -> Environment:
    return Environment(
        list_attributes=rules.device_expressions_read_lists,
        includes=rules.device_expressions_have_includes,
        includes_limit=0 if rules.device_expressions_read_lists else MOST_LISTED,
    )


def _prepared(device: PooledDevice, *, is_shared: bool) -> Device:
    spec = device.device
    attributes = {name: _value(name, attribute) for name, attribute in spec.attributes.items()}
    capacity = {name: each.value for name, each in spec.capacity.items()}
    return Device(device.driver, attributes, capacity, is_shared)


def _value(name: str, attribute: DeviceAttribute) -> AttributeValue:
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    return parse_version(attribute.version_value)
