"""Compiles calls and lookups like `device.attributes["gpu.example.com"].?model` to closures that also count the
cost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from podium.cel import _types as types
from podium.cel._syntax import Call, Expr, Literal, Select, is_index
from podium.cel._types import DEVICE, STRING, Cost, Overload, Type, has_variable
from podium.cel._values import (
    KEY_TYPES,
    NONE,
    DomainMap,
    Empty,
    EvalError,
    NamedFormat,
    Optional,
    Semver,
    Uint,
    Value,
    equal,
    fits,
    to_key,
    type_name,
)
from podium.errors import CelError

COST_LIMIT = 1_000_000

# The state of one evaluation: the cost so far, the device, and the variables.
Slots = list[Any]
Run = Callable[[Slots], Value]


class CostLimitError(Exception):
    """The evaluation exceeded the cost limit; nothing absorbs this error."""


class Step(NamedTuple):
    """The closure of a node. `constant`: it is the constant `value`, also to cel-go; `folded`: it always
    returns `value`.
    """

    run: Run
    constant: bool = False
    value: Value = None
    folded: bool = False


def constant(value: Value) -> Step:
    """A step that returns a value known at compile time."""
    return Step(lambda _slots: value, True, value)


def charge(slots: Slots, cost: int) -> None:
    """Add to the cost of the evaluation; raises CostLimitError beyond the limit."""
    slots[0] += cost
    if slots[0] > COST_LIMIT:
        raise CostLimitError


_SIMPLE = frozenset({bool, int, Uint, float, str})


def equality(node: Call, steps: list[Step]) -> Callable[[Value, Value], bool]:
    wanted = node.function == "_==_"
    texts = any(step.constant and type(step.value) is str for step in steps[1:])
    if texts and node.arguments[0].type == STRING and _is_trusted(node.arguments[0]):
        return (lambda one, other: bool(one == other)) if wanted else (lambda one, other: bool(one != other))
    if wanted:
        return equal
    return _unequal


def _unequal(one: Value, other: Value) -> bool:
    """`!=`: values that cannot be compared are unequal."""
    try:
        return not equal(one, other)
    except EvalError:
        return True


def dispatch(node: Call, arguments: list[Expr]) -> Callable[..., Value]:
    """The implementation of a call: the only overload, with checks of what the types leave open, or the first
    that fits.
    """
    overloads = node.overloads
    if all(overload.run is overloads[0].run for overload in overloads) and overloads[0].dynamic:
        return overloads[0].run
    if len(overloads) == 1:
        return _checked(node.function, overloads[0], arguments)

    def run(*arguments: Value) -> Value:
        for overload in overloads:
            if all(map(fits, arguments, overload.arguments)):
                return overload.run(*arguments)
        raise EvalError(f"no such overload: {node.function}")

    return run


def _checked(function: str, overload: Overload, nodes: list[Expr]) -> Callable[..., Value]:
    """The overload, with checks of the arguments whose static type is not precise enough."""
    implementation = overload.run
    pairs = enumerate(zip(nodes, overload.arguments, strict=True))
    open_arguments = [(index, wanted) for index, (node, wanted) in pairs if not _is_certain(node, wanted)]
    if not open_arguments:
        return implementation

    def run(*arguments: Value) -> Value:
        for index, wanted in open_arguments:
            if not fits(arguments[index], wanted):
                raise EvalError(f"no such overload: {function}")
        return implementation(*arguments)

    return run


def _is_certain(node: Expr, wanted: Type) -> bool:
    """Whether nothing is left to check at run time.

    A static type alone is not enough: if dyn is involved, `x.orValue(1)` has the type int and may be a string.
    """
    if wanted.is_dyn or wanted.is_variable:
        return True
    return _is_trusted(node) and node.type == wanted


def _is_trusted(node: Expr) -> bool:
    """Whether a value certainly has its static type: a literal, a field of the device, a result that never varies."""
    if isinstance(node, Literal):
        return True
    if isinstance(node, Call) and not is_index(node):
        return all(not has_variable(overload.result) for overload in node.overloads)
    while isinstance(node, Select) or is_index(node):
        node = next(node.children())
    return node.type == DEVICE


def instantiated(implementation: Callable[..., Value], value: Value) -> Value:
    """The value of a constant when the program is created; an error then is an error of the expression."""
    try:
        return implementation(value)
    except EvalError as error:
        raise CelError(f"program instantiation failed: {error}") from None


def member_of_constants(steps: list[Step]) -> Step | None:
    """`x in [...]` with constants of simple types: a lookup without cost. Go cannot look up every type."""
    wanted, elements = steps
    if type(elements.value) is not list or any(type(each) not in _SIMPLE for each in elements.value):
        return None
    if not elements.value:
        return constant(False)
    keys = frozenset(map(to_key, elements.value))

    def run(slots: Slots) -> Value:
        value = wanted.run(slots)
        if type(value) in _SIMPLE:
            return to_key(value) in keys
        if type(value) in (Semver, bytes, NamedFormat):
            raise EvalError("internal error: runtime error: hash of unhashable type")
        return False

    return Step(run)


def price_of(node: Call) -> Cost:
    """The cost of a call; if it may reach several overloads, the cost by its function's name, or 1."""
    return node.overloads[0].cost if len(node.overloads) == 1 or node.function in types.BY_NAME else types.unit


def applied(implementation: Callable[..., Value], runs: list[Run]) -> Run:
    """A call of a function with its arguments evaluated first."""
    if len(runs) == 1:
        (only,) = runs
        return lambda slots: implementation(only(slots))
    if len(runs) == 2:
        first, second = runs
        return lambda slots: implementation(first(slots), second(slots))
    return lambda slots: implementation(*[run(slots) for run in runs])


def counted(implementation: Callable[..., Value], runs: list[Run], price: Cost) -> Run:
    """The same with its cost. One or two arguments are always evaluated and charged, even if the first fails."""

    def run(slots: Slots) -> Value:
        arguments: list[Value] = []
        failure: EvalError | None = None
        for argument in runs:
            try:
                arguments.append(argument(slots))
            except EvalError as error:
                if len(runs) > 2:
                    raise
                failure = failure or error
                arguments.append(None)
        result: Value = None
        if failure is None:
            try:
                result = implementation(*arguments)
            except EvalError as error:
                failure = error
        charge(slots, price(arguments, result))
        if failure is not None:
            raise failure
        return result

    return run


Charge = Callable[[Slots, int], None] | None
_MISSING = object()


class Qualifier(NamedTuple):
    """One step of a chain: the key, its value if it is constant, and how absence is treated."""

    run: Run
    constant: Value
    optional: bool
    test_only: bool


def plan_attribute(root: Run, qualifiers: list[Qualifier], on_device: bool, charge: Charge) -> Run:
    """The closure of a chain. There are fast paths for the most common keys: device fields and constant strings."""
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
    """The element of a list or map, or _MISSING; other values have no elements."""
    kind = type(container)
    if kind is dict:
        return container.get(to_key(key), _MISSING) if type(key) in KEY_TYPES else _MISSING
    if kind is DomainMap:
        return container[key] if type(key) is str else {}
    if kind is list:
        index = _list_index(key)
        return container[index] if 0 <= index < len(container) else _MISSING
    if kind is Empty:
        raise EvalError(f"no such field {key!r}")
    return _MISSING


def _list_index(key: Value) -> int:
    if type(key) is int or type(key) is Uint:
        return key
    if type(key) is float and key.is_integer():
        return int(key)
    raise EvalError(f"unsupported index type '{type_name(key)}' in list")
