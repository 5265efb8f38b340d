"""Optional values: values that may be absent."""

from __future__ import annotations

from podium.cel.overloads import Library
from podium.cel.values import NONE, Duration, EvalError, Optional, Timestamp, Value

library = Library()
declare = library.declare


@declare("optional.of(A): optional(A)")
def _of(value: Value) -> Optional:
    return Optional(True, value)


@declare("optional.none(): optional(A)")
def _none() -> Optional:
    return NONE


@declare("optional.ofNonZeroValue(A): optional(A)")
def _of_non_zero(value: Value) -> Optional:
    zero = not value if isinstance(value, (bool, int, float, str, bytes, list, dict)) or value is None else False
    if type(value) in (Duration, Timestamp):
        zero = _is_zero_time(value)
    if type(value) is Optional:
        zero = not value.present or not _of_non_zero(value.value).present
    return NONE if zero else Optional(True, value)


def _is_zero_time(value: Duration | Timestamp) -> bool:
    """Go's zero time is the first day of year 1."""
    return value.nanos == (0 if type(value) is Duration else -62_135_596_800 * 10**9)


@declare("optional(A).value(): A")
def _value(optional: Optional) -> Value:
    if not optional.present:
        raise EvalError("optional.none() dereference")
    return optional.value


@declare("optional(A).hasValue(): bool")
def _has_value(optional: Optional) -> bool:
    return optional.present


@declare("optional(A).or(optional(A)): optional(A)", "optional(A).orValue(A): A")
def _or(*_arguments: Value) -> Value:
    raise AssertionError("the planner evaluates the alternative only where it is needed")


@declare("list(A).first(): optional(A)")
def _first(elements: list[Value]) -> Optional:
    return Optional(True, elements[0]) if elements else NONE


@declare("list(A).last(): optional(A)")
def _last(elements: list[Value]) -> Optional:
    return Optional(True, elements[-1]) if elements else NONE


@declare("optional.unwrap(list(optional(A))): list(A)", "list(optional(A)).unwrapOpt(): list(A)")
def _unwrap(elements: list[Value]) -> list[Value]:
    if any(type(each) is not Optional for each in elements):
        raise EvalError("value is not optional")
    return [each.value for each in elements if each.present]
