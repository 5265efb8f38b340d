"""Evaluates the CEL selectors of requests and classes on devices."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from podium.errors import CelError, CelTimeoutError
from podium.model.devices import DeviceAttribute
from podium.plugins.dynamic_resources.pools import PooledDevice
from podium.rules import Rules

if TYPE_CHECKING:
    # Imported on demand: it takes time, and most clusters have no expression.
    from podium import cel


LONGEST_SEARCHED_LIST = 48
"""The maximum length of a list that v1.36 goes through."""


OPTIONAL_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue())"
    " or guarding the check with has() for optional fields"
)
"""Added by newer releases to the error of an expression that reads something a device does not have."""


class SelectionError(Exception):
    """An expression that cannot be compiled, or that fails for a device."""


class SelectionTimeoutError(SelectionError):
    """An expression that takes too long for a device."""


LONGEST_EVALUATION = 1_000_000
"""The work after which an evaluation is given up."""
SHORT_EVALUATION = 5_000
"""The same outside of a search, where devices are counted for scores and reports: an expression that takes longer fails
there, as others fail that have an error.
"""
_CHEAP = 1_000
"""Evaluations of up to this much work are not counted: there is one of each device, whatever is searched for."""


def work_of(expressions: tuple[str, ...], device: PooledDevice) -> int:
    """The work of evaluating expressions on a device; the same whether it was done now or earlier."""
    return sum(device.work.get(expression, 0) for expression in expressions) if device.work else 0


def selects(
    expressions: tuple[str, ...], device: PooledDevice, rules: Rules, most_work: float = SHORT_EVALUATION
) -> bool:
    """Whether all expressions select a device; SelectionError with the number of the expression that fails."""
    known = device.matches
    for number, expression in enumerate(expressions):
        matches = known.get(expression)
        if matches is None:
            matches = known[expression] = _evaluate(expression, device, rules, number, most_work)
        if not matches:
            return False
    return True


def selects_as_exclusive(expressions: tuple[str, ...], device: PooledDevice, rules: Rules) -> bool:
    """The same as `selects`, but expressions see every device as not shareable."""
    for expression in expressions:
        if device.is_shared and "allowMultipleAllocations" in expression:
            selector = _compiled(expression, _environment(rules))
            if isinstance(selector, CelError):
                raise SelectionError(str(selector))
            try:
                matches = selector.matches_device(_prepared(device, rules, is_shared=False))
            except CelError as error:
                raise SelectionError(str(error)) from None
        else:
            matches = selects((expression,), device, rules)
        if not matches:
            return False
    return True


def _evaluate(expression: str, device: PooledDevice, rules: Rules, number: int, most_work: float) -> bool:
    selector = _compiled(expression, _environment(rules))
    if isinstance(selector, CelError):
        raise SelectionError(f"selector #{number}: CEL compile error: {selector}")
    try:
        if device.seen_by_cel is None:
            device.seen_by_cel = _prepared(device, rules, is_shared=device.is_shared)
        found = selector.evaluate(device.seen_by_cel, min(most_work, LONGEST_EVALUATION))
        if found.work > _CHEAP:
            device.work[expression] = found.work
        return found.matches
    except CelTimeoutError as error:
        raise SelectionTimeoutError(str(error)) from None
    except CelError as error:
        where = f" on device {device.id}" if rules.device_errors_say_more else ""
        hint = OPTIONAL_HINT if rules.device_errors_say_more and "no such key:" in str(error) else ""
        raise SelectionError(f"selector #{number}{where}: CEL runtime error: {error}{hint}") from None


@lru_cache(maxsize=1024)
def _compiled(expression: str, environment: cel.Environment) -> cel.DeviceSelector | CelError:
    from podium import cel

    try:
        return cel.DeviceSelector(expression, environment)
    except CelError as error:
        return error


def _environment(rules: Rules) -> cel.Environment:
    from podium import cel

    return cel.Environment(
        list_attributes=rules.device_expressions_read_lists,
        includes=rules.device_expressions_have_includes,
        includes_limit=0 if rules.device_expressions_read_lists else LONGEST_SEARCHED_LIST,
        newer_cel=rules.device_expressions_read_lists,
    )


def _prepared(device: PooledDevice, rules: Rules, *, is_shared: bool) -> cel.Device:
    from podium import cel

    spec = device.device
    lists = rules.device_expressions_read_lists
    attributes = {name: _value(name, attribute, lists=lists) for name, attribute in spec.attributes.items()}
    capacity = {name: each.value for name, each in spec.capacity.items()}
    return cel.Device(device.driver, attributes, capacity, is_shared)


def _value(name: str, attribute: DeviceAttribute, *, lists: bool) -> cel.AttributeValue:
    from podium.cel import parse_version

    if lists:
        for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
            if values is not None:
                return values
        if attribute.version_values is not None:
            return [parse_version(version) for version in attribute.version_values]
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    return parse_version(attribute.version_value)
