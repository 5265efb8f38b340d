"""Calls of functions: which overload carries one out, with which checks, and what it costs."""

from __future__ import annotations

from collections.abc import Callable

from podium.cel import cost
from podium.cel.overloads import Cost, Overload
from podium.cel.steps import Run, Slots, Step, charge, constant
from podium.cel.syntax import Call, Literal, Node, Select, is_index
from podium.cel.types import DEVICE, STRING, Type, has_variable
from podium.cel.values import EvalError, Format, Semver, Uint, Value, equal, fits, to_key
from podium.errors import CelError

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


def dispatch(node: Call, arguments: list[Node]) -> Callable[..., Value]:
    """What carries out a call: the only overload, with a check of what the types leave open, or the first that fits."""
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


def _checked(function: str, overload: Overload, nodes: list[Node]) -> Callable[..., Value]:
    """The overload, with a check of the arguments whose static type does not say enough."""
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


def _is_certain(node: Node, wanted: Type) -> bool:
    """Whether nothing is left to check at run time.

    A static type alone does not say so: where dyn took part, `x.orValue(1)` has the type int and may be a text.
    """
    if wanted.is_dyn or wanted.is_variable:
        return True
    return _is_trusted(node) and node.type == wanted


def _is_trusted(node: Node) -> bool:
    """Whether a value is sure to have the static type: a literal, a field of the device, a result that never varies."""
    if isinstance(node, Literal):
        return True
    if isinstance(node, Call) and not is_index(node):
        return all(not has_variable(overload.result) for overload in node.overloads)
    while isinstance(node, Select) or is_index(node):
        node = next(node.children())
    return node.type == DEVICE


def instantiated(implementation: Callable[..., Value], value: Value) -> Value:
    """What a constant becomes when the program is made; an error then is one of the expression."""
    try:
        return implementation(value)
    except EvalError as error:
        raise CelError(f"program instantiation failed: {error}") from None


def member_of_constants(steps: list[Step]) -> Step | None:
    """`x in [...]` with constants of simple types: a lookup, which costs nothing. Go cannot look up every type."""
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
        if type(value) in (Semver, bytes, Format):
            raise EvalError("internal error: runtime error: hash of unhashable type")
        return False

    return Step(run)


def price_of(node: Call) -> Cost:
    """What the call costs; one that may reach several overloads costs by the name of its function, or 1."""
    return node.overloads[0].cost if len(node.overloads) == 1 or node.function in cost.BY_NAME else cost.unit


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
    """The same with its cost. One or two arguments are all evaluated and paid for, even if the first fails."""

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
