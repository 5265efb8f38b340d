"""Compiles a checked expression to Python closures, once; each takes the slots of one evaluation and returns a value.

Slot 0 counts the cost, slot 1 holds the device, and every variable has its own slot. Errors are exceptions. If
`counted` is off, no cost is counted: the selector turns it off when the limit is out of reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from podium.cel import _syntax as syntax
from podium.cel import _types as types
from podium.cel._messages import MESSAGE_COST, build_message
from podium.cel._parser import ACCUMULATOR
from podium.cel._regex import compile_pattern
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
    from_key,
    to_key,
    type_name,
)
from podium.cel._work import WorkLimitError
from podium.errors import CelError

# -- calls and lookups -------------------------------------------------------------------------------------------------


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


# -- expressions -------------------------------------------------------------------------------------------------------


K = TypeVar("K", str, Value)
LIST_COST, MAP_COST = 10, 30

_UNSET = object()
_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})
_PATTERN_FUNCTIONS = frozenset({"matches", "find", "findAll"})


class Planner:
    """Plans one expression. `strict_optionals`: orValue of a value that is not optional fails."""

    def __init__(self, counted: bool, strict_optionals: bool) -> None:
        self.counted = counted
        self.strict_optionals = strict_optionals
        self.slots = 2
        self.scopes: list[dict[str, tuple[int, Step | None]]] = [{"device": (1, None)}]

    def charged(self, run: Run, price: int) -> Run:
        """The closure, with a cost that is charged after it, also after an error."""
        if not self.counted or not price:
            return run

        def paying(slots: Slots) -> Value:
            try:
                value = run(slots)
            except EvalError:
                charge(slots, price)
                raise
            charge(slots, price)
            return value

        return paying

    def plan(self, node: syntax.Expr) -> Step:
        match node:
            case syntax.Literal():
                return constant(node.value)
            case syntax.Ident() if node.constant is None:
                return Step(self.charged(self.variable(node.name), 1))
            case syntax.Ident() | syntax.Select() if node.constant is not None:
                return constant(node.constant)
            case syntax.Select():
                return self.attribute(node)
            case syntax.Call():
                return self.call(node)
            case syntax.ListLiteral():
                return self.list_literal(node)
            case syntax.MapLiteral():
                return self.map_literal(node)
            case syntax.MessageLiteral():
                return Step(self.message_literal(node))
            case syntax.Fold():
                return Step(self.fold(node))
        raise AssertionError(node)

    def variable(self, name: str) -> Run:
        slot, initial = next(scope[name] for scope in reversed(self.scopes) if name in scope)
        if initial is None:
            return lambda slots: slots[slot]
        compute = initial.run

        def accumulated(slots: Slots) -> Value:
            """An accumulator: computed on first use; an error is raised where it is used."""
            value = slots[slot]
            if value is _UNSET:
                try:
                    value = compute(slots)
                except EvalError as error:
                    value = error
                slots[slot] = value
            if type(value) is EvalError:
                raise value
            return value

        return accumulated

    def part(self, node: syntax.Expr) -> Step:
        """A node that is the key or the branch of another chain; a chain costs nothing there but its keys."""
        if isinstance(node, syntax.Ident) and node.constant is None:
            return Step(self.variable(node.name))
        if (isinstance(node, syntax.Select) and node.constant is None) or is_index(node):
            return self.attribute(node, 0)
        return self.plan(node)

    def attribute(self, node: syntax.Expr, price: int = 1) -> Step:
        """A chain of selections and indices, from its root on."""
        qualifiers: list[Qualifier] = []
        root = node
        while True:
            if isinstance(root, syntax.Select) and root.constant is None:
                qualifiers.insert(0, Qualifier(constant(root.name).run, root.name, root.optional, root.test_only))
                root = root.operand
            elif isinstance(root, syntax.Call) and is_index(root):
                index = self.part(root.arguments[1])
                key = index.value if index.constant else None
                qualifiers.insert(0, Qualifier(index.run, key, root.function == "_[?_]", False))
                root = root.arguments[0]
            else:
                break
            if qualifiers[0].test_only and len(qualifiers) > 1:
                break
        on_device = isinstance(root, syntax.Ident) and self.is_device(root)
        is_ternary = isinstance(root, syntax.Call) and root.function == "_?_:_"
        run = plan_attribute(self.part(root).run, qualifiers, on_device, charge if self.counted else None)
        return Step(self.charged(run, 0 if qualifiers[-1].test_only or is_ternary else price))

    def is_device(self, node: syntax.Ident) -> bool:
        return next(scope for scope in reversed(self.scopes) if node.name in scope) is self.scopes[0]

    def call(self, node: syntax.Call) -> Step:
        special = {
            "_&&_": self.all_of, "_||_": self.any_of, "_?_:_": self.conditional, "orValue": self.or_value,
            "or": self.or_value, "@not_strictly_false": self.not_strictly_false,
        }.get(node.function)  # fmt: skip
        if special is not None:
            return Step(special(node))
        if is_index(node):
            return self.attribute(node)
        arguments = [node.target, *node.arguments] if node.target is not None else node.arguments
        steps = [self.plan(each) for each in arguments]
        if node.function == "@in" and len(node.overloads) == 1 and (member := member_of_constants(steps)) is not None:
            return member
        return self.function(node, steps, arguments)

    def function(self, node: syntax.Call, steps: list[Step], arguments: list[syntax.Expr]) -> Step:
        if node.function in ("_==_", "_!=_"):
            implementation: Callable[..., Value] = equality(node, steps)
        else:
            implementation = dispatch(node, arguments)
        if node.function in _PATTERN_FUNCTIONS and steps[1].constant:
            instantiated(compile_pattern, steps[1].value)
        if node.function in _CONVERSIONS and len(steps) == 1 and steps[0].constant:
            return constant(instantiated(implementation, steps[0].value))
        if not self.counted and all(step.constant or step.folded for step in steps):
            try:
                value = implementation(*(step.value for step in steps))
                return Step(lambda _slots: value, False, value, True)
            except (EvalError, WorkLimitError):
                pass
        runs = [step.run for step in steps]
        return Step(counted(implementation, runs, price_of(node)) if self.counted else applied(implementation, runs))

    def all_of(self, node: syntax.Call) -> Run:
        return self.logical(node, False)

    def any_of(self, node: syntax.Call) -> Run:
        return self.logical(node, True)

    def logical(self, node: syntax.Call, decisive: bool) -> Run:
        """`&&` or `||`: the decisive value of any term wins, even over errors of other terms."""
        terms = [self.plan(each).run for each in node.arguments]

        def run(slots: Slots) -> Value:
            failure: EvalError | None = None
            for term in terms:
                try:
                    value = term(slots)
                except EvalError as error:
                    failure = failure or error
                    continue
                if value is decisive:
                    return decisive
                if type(value) is not bool:
                    failure = failure or EvalError("no such overload")
            if failure is not None:
                raise failure
            return not decisive

        return run

    def conditional(self, node: syntax.Call) -> Run:
        condition = self.plan(node.arguments[0]).run
        first, second = self.part(node.arguments[1]).run, self.part(node.arguments[2]).run

        def run(slots: Slots) -> Value:
            chosen = condition(slots)
            if chosen is True:
                return first(slots)
            if chosen is False:
                return second(slots)
            raise EvalError("no such overload")

        return run

    def or_value(self, node: syntax.Call) -> Run:
        """`orValue` and `or` of an optional: the alternative is evaluated only if it is needed."""
        assert node.target is not None
        operand, alternative = self.plan(node.target).run, self.plan(node.arguments[0]).run
        unwrap, strict = node.function == "orValue", self.strict_optionals

        def run(slots: Slots) -> Value:
            value = operand(slots)
            if type(value) is not Optional:
                if strict:
                    raise EvalError("no such overload")
                return value
            if value.present:
                return value.value if unwrap else value
            return alternative(slots)

        return run

    def not_strictly_false(self, node: syntax.Call) -> Run:
        operand = self.plan(node.arguments[0]).run

        def run(slots: Slots) -> Value:
            try:
                return operand(slots) is not False
            except EvalError:
                return True

        return self.charged(run, 1)

    def list_literal(self, node: syntax.ListLiteral) -> Step:
        steps = [self.plan(each) for each in node.elements]
        if all(step.constant for step in steps) and not node.optional:
            return constant([step.value for step in steps])
        runs = [step.run for step in steps]
        if not node.optional:
            return Step(self.charged(lambda slots: [run(slots) for run in runs], LIST_COST))

        def build(slots: Slots) -> Value:
            elements: list[Value] = []
            for index, run in enumerate(runs):
                value = run(slots)
                if index in node.optional:
                    if type(value) is not Optional:
                        raise EvalError("cannot initialize optional list element from non-optional value")
                    elements += [value.value] if value.present else []
                else:
                    elements.append(value)
            return elements

        return Step(self.charged(build, LIST_COST))

    def map_literal(self, node: syntax.MapLiteral) -> Step:
        entries = [(self.plan(key), self.plan(value), optional) for key, value, optional in node.entries]

        def build(slots: Slots) -> Value:
            built: dict[Value, Value] = {}
            for key_step, value_step, optional in entries:
                _set_entry(built, to_key(key_step.run(slots)), value_step.run(slots), optional)
            return built

        if all(key.constant and value.constant and not optional for key, value, optional in entries):
            try:
                return constant(build([]))
            except EvalError:
                pass
        return Step(self.charged(build, MAP_COST))

    def message_literal(self, node: syntax.MessageLiteral) -> Run:
        fields = [(name, self.plan(value).run, optional) for name, value, optional in node.fields]

        def run(slots: Slots) -> Value:
            given: dict[str, Value] = {}
            for name, compute, optional in fields:
                _set_entry(given, name, compute(slots), optional)
            return build_message(node.name, given)

        return self.charged(run, MESSAGE_COST)

    def new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def fold(self, node: syntax.Fold) -> Run:
        over, initial = self.plan(node.range), self.plan(node.initial)
        slot, first, second = self.new_slot(), self.new_slot(), self.new_slot()
        collects = isinstance(node.initial, (syntax.ListLiteral, syntax.MapLiteral)) and node.accumulator == ACCUMULATOR
        if collects:
            make = list if isinstance(node.initial, syntax.ListLiteral) else dict
            initial = Step(lambda _slots: make())
        self.scopes.append({node.accumulator: (slot, initial)})
        loops = not (over.constant and not over.value)
        self.scopes.append({node.variable: (first, None), node.second_variable: (second, None)})
        condition = self.plan(node.condition)
        step = self.adding(node.step, slot) if collects else self.plan(node.step).run
        self.scopes.pop()
        result = self.plan(node.result).run
        self.scopes.pop()

        def bind(slots: Slots) -> Value:
            slots[slot] = _UNSET
            return result(slots)

        if not loops:
            return bind
        always = condition.constant and condition.value is True
        return _loop(over.run, (slot, first, second), bool(node.second_variable), None if always else condition.run,
                     step, result)  # fmt: skip

    def adding(self, node: syntax.Expr, slot: int) -> Run:
        """A step that adds to the list or map of a macro in place: nothing else has seen it yet."""
        if isinstance(node, syntax.Call) and node.function == "_?_:_":
            kept, added = self.plan(node.arguments[0]).run, self.adding(node.arguments[1], slot)
            same = self.part(node.arguments[2]).run

            def choose(slots: Slots) -> Value:
                keep = kept(slots)
                if type(keep) is not bool:
                    raise EvalError("no such overload")
                return added(slots) if keep else same(slots)

            return choose
        assert isinstance(node, syntax.Call)
        accumulated = self.plan(node.arguments[0]).run
        if node.function == "_+_":
            assert isinstance(node.arguments[1], syntax.ListLiteral)
            element = self.plan(node.arguments[1].elements[0])

            def append(slots: Slots) -> Value:
                value = element.run(slots)
                elements = accumulated(slots)
                elements.append(value)
                return elements

            return self.charged(append, 1 if element.constant else 1 + LIST_COST)
        return self.charged(self.inserting(node, accumulated), 1)

    def inserting(self, node: syntax.Call, accumulated: Run) -> Run:
        parts = [self.plan(each).run for each in node.arguments[1:]]

        def insert(slots: Slots) -> Value:
            if len(parts) == 2:
                new = {to_key(parts[0](slots)): parts[1](slots)}
            else:
                new = parts[0](slots)
                if not isinstance(new, dict):
                    raise EvalError("no such overload")
            built = accumulated(slots)
            for key, value in new.items():
                if key in built:
                    raise EvalError(f"insert failed: key {from_key(key)} already exists")
                built[key] = value
            return built

        return insert


def _loop(over: Run, places: tuple[int, int, int], pairs: bool, condition: Run | None, step: Run, result: Run) -> Run:
    slot, first, second = places

    def run(slots: Slots) -> Value:
        elements = over(slots)
        slots[slot] = _UNSET
        for key, value in _entries(elements, pairs):
            slots[first] = key
            slots[second] = value
            if condition is None:
                slots[slot] = step(slots)
                continue
            if condition(slots) is False:
                break
            try:
                slots[slot] = step(slots)
            except EvalError as error:
                slots[slot] = error
        return result(slots)

    return run


def _set_entry(entries: dict[K, Value], key: K, value: Value, optional: bool) -> None:
    """Set an entry of a map or message; an optional entry without a value is removed."""
    if not optional:
        entries[key] = value
    elif type(value) is not Optional:
        raise EvalError("cannot initialize optional entry from non-optional value")
    elif value.present:
        entries[key] = value.value
    else:
        entries.pop(key, None)


def _entries(elements: Value, pairs: bool) -> Any:
    """What the loop variables iterate over: index or key and value for two variables, element or key for one."""
    if isinstance(elements, dict):
        return [(from_key(key), value) for key, value in elements.items()]
    if type(elements) is not list:
        raise EvalError("got a value that is no list or map as the range of a comprehension")
    return list(enumerate(elements)) if pairs else [(each, None) for each in elements]
