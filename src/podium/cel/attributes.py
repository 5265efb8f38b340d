"""Chains such as `device.attributes["gpu.example.com"].?model`: a root and the keys looked up one after the other."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from podium.cel.steps import Run, Slots
from podium.cel.values import KEY_TYPES, NONE, DomainMap, EvalError, Optional, Uint, Value, to_key, type_name

Charge = Callable[[Slots, int], None] | None
_MISSING = object()


class Qualifier(NamedTuple):
    """One step of a chain: the key, its value where it is constant, and how absence is treated."""

    run: Run
    constant: Value
    optional: bool
    test_only: bool


def plan_attribute(root: Run, qualifiers: list[Qualifier], on_device: bool, charge: Charge) -> Run:
    """The closure of a chain. The keys of a device and of constant text, the most common, have shorter ways."""
    names = [each.constant for each in qualifiers]
    plain = not any(each.test_only or each.optional for each in qualifiers[:-1])
    if charge is None and on_device and plain and all(type(name) is str for name in names):
        if len(names) == 3:
            return _of_device(names, qualifiers[-1])
        if len(names) == 1 and not qualifiers[0].test_only and not qualifiers[0].optional:
            (name,) = names
            return lambda slots: slots[1][name]
    return _chain(root, qualifiers, charge)


def _of_device(names: list[str], last: Qualifier) -> Run:
    """`device.attributes["domain"].name`, also with `?` or in has()."""
    group, domain, name = names
    if last.test_only:
        return lambda slots: name in slots[1][group][domain]
    if last.optional:

        def optional(slots: Slots) -> Value:
            found = slots[1][group][domain]
            return Optional(True, found[name]) if name in found else NONE

        return optional

    def run(slots: Slots) -> Value:
        try:
            return slots[1][group][domain][name]
        except KeyError:
            raise EvalError(f"no such key: {name}") from None

    return run


def _chain(root: Run, qualifiers: list[Qualifier], charge: Charge) -> Run:
    test_only = qualifiers[-1].test_only

    def run(slots: Slots) -> Value:
        value = root(slots)
        optional = type(value) is Optional
        if optional:
            if not value.present:
                return False if test_only else value
            value = value.value
        for each in qualifiers:
            key = each.run(slots)
            optional = optional or each.optional
            found = find(value, key)
            if charge is not None and (found is not _MISSING or each.test_only or not optional):
                charge(slots, 1)
            if each.test_only:
                return found is not _MISSING
            if found is _MISSING:
                if optional:
                    return False if test_only else NONE
                raise EvalError(f"index out of bounds: {key}" if type(value) is list else f"no such key: {key}")
            value = found
        return Optional(True, value) if optional else value

    return run


def find(container: Value, key: Value) -> Value:
    """The element of a list or map, or _MISSING; a value that is neither has none."""
    kind = type(container)
    if kind is dict:
        return container.get(to_key(key), _MISSING) if type(key) in KEY_TYPES else _MISSING
    if kind is DomainMap:
        return container[key] if type(key) is str else {}
    if kind is list:
        index = _list_index(key)
        return container[index] if 0 <= index < len(container) else _MISSING
    return _MISSING


def _list_index(key: Value) -> int:
    if type(key) is int or type(key) is Uint:
        return key
    if type(key) is float and key.is_integer():
        return int(key)
    raise EvalError(f"unsupported index type '{type_name(key)}' in list")
