"""Turns a checked expression into Python closures, once; each takes the slots of one evaluation and gives a value.

Slot 0 counts the cost, slot 1 holds the device, and every variable has a slot of its own. Errors are exceptions.
Where `counted` is off, nothing is added to the cost: the selector asks for that when the limit is out of reach.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from podium.cel import cost
from podium.cel.attributes import Qualifier, plan_attribute
from podium.cel.macros import ACCUMULATOR
from podium.cel.overloads import Cost
from podium.cel.regex import compile_pattern
from podium.cel.syntax import Call, Fold, Ident, ListLiteral, Literal, MapLiteral, Node, Select
from podium.cel.values import EvalError, Format, Optional, Semver, Uint, Value, equal, fits, from_key, to_key
from podium.errors import CelError

COST_LIMIT = 1_000_000
LIST_COST, MAP_COST = 10, 30

Slots = list[Any]
Run = Callable[[Slots], Value]

_UNSET = object()
_SIMPLE = frozenset({bool, int, Uint, float, str})
_CONVERSIONS = frozenset({"bool", "bytes", "double", "duration", "dyn", "int", "string", "timestamp", "type", "uint"})
_PATTERN_FUNCTIONS = frozenset({"matches", "find", "findAll"})


class CostExceeded(Exception):
    """The evaluation cost more than the limit; nothing absorbs this."""


class Step(NamedTuple):
    """The closure of a node. `constant` says that it always gives `value`."""

    run: Run
    constant: bool = False
    value: Value = None


def charge(slots: Slots, cost: int) -> None:
    """Add to the cost of the evaluation; raises CostExceeded beyond the limit."""
    slots[0] += cost
    if slots[0] > COST_LIMIT:
        raise CostExceeded


def _constant(value: Value) -> Step:
    return Step(lambda _slots: value, True, value)


class Planner:
    """Plans one expression."""

    def __init__(self, counted: bool) -> None:
        self.counted = counted
        self.slots = 2
        self.scopes: list[dict[str, tuple[int, Step | None]]] = [{"device": (1, None)}]

    def charged(self, run: Run, price: int) -> Run:
        """The closure, with a cost to be paid after it, also after an error."""
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

    def plan(self, node: Node) -> Step:
        match node:
            case Literal():
                return _constant(node.value)
            case Ident() if node.constant is None:
                return Step(self.charged(self.variable(node.name), 1))
            case Ident() | Select() if node.constant is not None:
                return _constant(node.constant)
            case Select():
                return self.attribute(node)
            case Call():
                return self.call(node)
            case ListLiteral():
                return self.list_literal(node)
            case MapLiteral():
                return self.map_literal(node)
            case Fold():
                return Step(self.fold(node))
        raise AssertionError(node)

    def variable(self, name: str) -> Run:
        slot, initial = next(scope[name] for scope in reversed(self.scopes) if name in scope)
        if initial is None:
            return lambda slots: slots[slot]
        compute = initial.run

        def accumulated(slots: Slots) -> Value:
            """An accumulator: computed when it is first asked for, and an error raises where it is used."""
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

    def part(self, node: Node) -> Step:
        """A node that is the key or the branch of another chain: a chain itself costs nothing there but its keys."""
        if isinstance(node, Ident) and node.constant is None:
            return Step(self.variable(node.name))
        if (isinstance(node, Select) and node.constant is None) or _is_index(node):
            return self.attribute(node, 0)
        return self.plan(node)

    def attribute(self, node: Node, price: int = 1) -> Step:
        """A chain of selections and indices, from its root on."""
        qualifiers: list[Qualifier] = []
        root = node
        while True:
            if isinstance(root, Select) and root.constant is None:
                qualifiers.insert(0, Qualifier(_constant(root.name).run, root.name, root.optional, root.test_only))
                root = root.operand
            elif isinstance(root, Call) and _is_index(root):
                index = self.part(root.arguments[1])
                key = index.value if index.constant else None
                qualifiers.insert(0, Qualifier(index.run, key, root.function == "_[?_]", False))
                root = root.arguments[0]
            else:
                break
            if qualifiers[0].test_only and len(qualifiers) > 1:
                break
        on_device = isinstance(root, Ident) and self.is_device(root)
        is_ternary = isinstance(root, Call) and root.function == "_?_:_"
        run = plan_attribute(self.part(root).run, qualifiers, on_device, charge if self.counted else None)
        return Step(self.charged(run, 0 if qualifiers[-1].test_only or is_ternary else price))

    def is_device(self, node: Ident) -> bool:
        return next(scope for scope in reversed(self.scopes) if node.name in scope) is self.scopes[0]

    def call(self, node: Call) -> Step:
        special = {
            "_&&_": self.all_of, "_||_": self.any_of, "_?_:_": self.conditional, "orValue": self.or_value,
            "or": self.or_value, "@not_strictly_false": self.not_strictly_false,
        }.get(node.function)  # fmt: skip
        if special is not None:
            return Step(special(node))
        if _is_index(node):
            return self.attribute(node)
        arguments = [node.target, *node.arguments] if node.target is not None else node.arguments
        steps = [self.plan(each) for each in arguments]
        if node.function == "@in" and len(node.overloads) == 1 and (member := _member_of_constants(steps)) is not None:
            return member
        return self.function(node, steps, [each.type for each in arguments])

    def function(self, node: Call, steps: list[Step], types: list[Any]) -> Step:
        if node.function in ("_==_", "_!=_"):
            implementation: Callable[..., Value] = _equality(node, steps)
        else:
            implementation = _dispatch(node, types)
        if node.function in _PATTERN_FUNCTIONS and steps[1].constant:
            _instantiated(compile_pattern, steps[1].value)
        if all(step.constant for step in steps):
            if node.function in _CONVERSIONS and len(steps) == 1:
                return _constant(_instantiated(implementation, steps[0].value))
            if not self.counted:
                try:
                    return _constant(implementation(*(step.value for step in steps)))
                except EvalError:
                    pass
        runs = [step.run for step in steps]
        return Step(_counted(implementation, runs, _cost(node)) if self.counted else _applied(implementation, runs))

    def all_of(self, node: Call) -> Run:
        return self.logical(node, False)

    def any_of(self, node: Call) -> Run:
        return self.logical(node, True)

    def logical(self, node: Call, decisive: bool) -> Run:
        """`&&` or `||`: the decisive value of any term wins, even over errors of terms before and after it."""
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

    def conditional(self, node: Call) -> Run:
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

    def or_value(self, node: Call) -> Run:
        """`orValue` and `or` of an optional: the alternative is evaluated only if it is needed."""
        assert node.target is not None
        operand, alternative = self.plan(node.target).run, self.plan(node.arguments[0]).run
        unwrap = node.function == "orValue"

        def run(slots: Slots) -> Value:
            value = operand(slots)
            if type(value) is not Optional:
                return value
            if value.present:
                return value.value if unwrap else value
            return alternative(slots)

        return run

    def not_strictly_false(self, node: Call) -> Run:
        operand = self.plan(node.arguments[0]).run

        def run(slots: Slots) -> Value:
            try:
                return operand(slots) is not False
            except EvalError:
                return True

        return self.charged(run, 1)

    def list_literal(self, node: ListLiteral) -> Step:
        steps = [self.plan(each) for each in node.elements]
        if all(step.constant for step in steps) and not node.optional:
            return _constant([step.value for step in steps])
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

    def map_literal(self, node: MapLiteral) -> Step:
        entries = [(self.plan(key), self.plan(value), optional) for key, value, optional in node.entries]

        def build(slots: Slots) -> Value:
            built: dict[Value, Value] = {}
            for key_step, value_step, optional in entries:
                key, value = to_key(key_step.run(slots)), value_step.run(slots)
                if optional:
                    if type(value) is not Optional:
                        raise EvalError("cannot initialize optional entry from non-optional value")
                    if not value.present:
                        built.pop(key, None)
                        continue
                    value = value.value
                built[key] = value
            return built

        if all(key.constant and value.constant and not optional for key, value, optional in entries):
            try:
                return _constant(build([]))
            except EvalError:
                pass
        return Step(self.charged(build, MAP_COST))

    def new_slot(self) -> int:
        self.slots += 1
        return self.slots - 1

    def fold(self, node: Fold) -> Run:
        over, initial = self.plan(node.range), self.plan(node.initial)
        slot, first, second = self.new_slot(), self.new_slot(), self.new_slot()
        collects = isinstance(node.initial, (ListLiteral, MapLiteral)) and node.accumulator == ACCUMULATOR
        if collects:
            make = list if isinstance(node.initial, ListLiteral) else dict
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

    def adding(self, node: Node, slot: int) -> Run:
        """A step that adds to the list or map of a macro, in place: nothing else has seen it yet."""
        if isinstance(node, Call) and node.function == "_?_:_":
            kept, added = self.plan(node.arguments[0]).run, self.adding(node.arguments[1], slot)
            same = self.part(node.arguments[2]).run

            def choose(slots: Slots) -> Value:
                keep = kept(slots)
                if type(keep) is not bool:
                    raise EvalError("no such overload")
                return added(slots) if keep else same(slots)

            return choose
        assert isinstance(node, Call)
        accumulated = self.plan(node.arguments[0]).run
        if node.function == "_+_":
            assert isinstance(node.arguments[1], ListLiteral)
            element = self.plan(node.arguments[1].elements[0])

            def append(slots: Slots) -> Value:
                value = element.run(slots)
                elements = accumulated(slots)
                elements.append(value)
                return elements

            return self.charged(append, 1 if element.constant else 1 + LIST_COST)
        return self.charged(self.inserting(node, accumulated), 1)

    def inserting(self, node: Call, accumulated: Run) -> Run:
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


def _entries(elements: Value, pairs: bool) -> Any:
    """What the loop variables go through: index or key and value with two of them, element or key with one."""
    if isinstance(elements, dict):
        return [(from_key(key), value) for key, value in elements.items()]
    if type(elements) is not list:
        raise EvalError("got a value that is no list or map as the range of a comprehension")
    return list(enumerate(elements)) if pairs else [(each, None) for each in elements]


def _equality(node: Call, steps: list[Step]) -> Callable[[Value, Value], bool]:
    wanted = node.function == "_==_"
    texts = any(step.constant and type(step.value) is str for step in steps[1:])
    if texts and node.arguments[0].type.name == "string":
        return (lambda one, other: bool(one == other)) if wanted else (lambda one, other: bool(one != other))
    if wanted:
        return equal
    return lambda one, other: not equal(one, other)


def _dispatch(node: Call, types: list[Any]) -> Callable[..., Value]:
    """What carries out a call: the only overload, with a check of what the types leave open, or the first that fits."""
    overloads = node.overloads
    if all(overload.run is overloads[0].run for overload in overloads) and overloads[0].dynamic:
        return overloads[0].run
    if len(overloads) == 1 and all(map(_is_certain, types, overloads[0].arguments)):
        return overloads[0].run

    def run(*arguments: Value) -> Value:
        for overload in overloads:
            if all(map(fits, arguments, overload.arguments)):
                return overload.run(*arguments)
        raise EvalError(f"no such overload: {node.function}")

    return run


def _is_certain(found: Any, wanted: Any) -> bool:
    """Whether the static type leaves nothing to check at run time."""
    if wanted.is_dyn or wanted.is_variable:
        return True
    return found.name == wanted.name and all(map(_is_certain, found.parameters, wanted.parameters))


def _is_index(node: Node) -> bool:
    return isinstance(node, Call) and node.function in ("_[_]", "_[?_]")


def _instantiated(implementation: Callable[..., Value], value: Value) -> Value:
    """What a constant becomes when the program is made; an error then is one of the expression."""
    try:
        return implementation(value)
    except EvalError as error:
        raise CelError(f"program instantiation failed: {error}") from None


def _member_of_constants(steps: list[Step]) -> Step | None:
    """`x in [...]` with constants of simple types: a lookup, which costs nothing. Go cannot look up every type."""
    wanted, elements = steps
    if type(elements.value) is not list or any(type(each) not in _SIMPLE for each in elements.value):
        return None
    if not elements.value:
        return _constant(False)
    keys = frozenset(map(to_key, elements.value))

    def run(slots: Slots) -> Value:
        value = wanted.run(slots)
        if type(value) in _SIMPLE:
            return to_key(value) in keys
        if type(value) in (Semver, bytes, Format):
            raise EvalError("internal error: runtime error: hash of unhashable type")
        return False

    return Step(run)


def _cost(node: Call) -> Cost:
    """What the call costs; one that may reach several overloads costs by the name of its function, or 1."""
    return node.overloads[0].cost if len(node.overloads) == 1 or node.function in cost.BY_NAME else cost.unit


def _applied(implementation: Callable[..., Value], runs: list[Run]) -> Run:
    """A call of a function with its arguments evaluated first."""
    if len(runs) == 1:
        (only,) = runs
        return lambda slots: implementation(only(slots))
    if len(runs) == 2:
        first, second = runs
        return lambda slots: implementation(first(slots), second(slots))
    return lambda slots: implementation(*[run(slots) for run in runs])


def _counted(implementation: Callable[..., Value], runs: list[Run], price: Cost) -> Run:
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
