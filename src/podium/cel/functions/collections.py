"""Functions of lists and sets."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

from podium.cel import cost
from podium.cel.functions.standard import checked_duration, checked_int, checked_uint, same
from podium.cel.overloads import Library
from podium.cel.values import Duration, EvalError, Uint, Value, compare, contains, type_name

library = Library()
declare = library.declare

_COMPARABLE = ("int", "uint", "double", "bool", "duration", "timestamp", "string", "bytes")
_ZEROS: dict[str, Value] = {"int": 0, "uint": Uint(0), "double": 0.0, "duration": Duration(0)}


def _for_each(template: str) -> list[str]:
    return [template.replace("T", kind) for kind in _COMPARABLE]


@declare(*_for_each("list(T).isSorted(): bool"), cost=cost.deep)
def _is_sorted(elements: list[Value]) -> bool:
    return all(_order(one, other) <= 0 for one, other in pairwise(elements))


def _order(one: Value, other: Value) -> int:
    """The order of two elements; 0 where they have none, as Kubernetes takes it."""
    try:
        return compare(one, other)
    except EvalError:
        return 0


def _sum(kind: str) -> Callable[[list[Value]], Value]:
    def run(elements: list[Value]) -> Value:
        total = _ZEROS[kind]
        for each in elements:
            if type(each) is not type(total):
                raise EvalError("no such overload")
            if kind == "duration":
                total = checked_duration(total.nanos + each.nanos)
            elif kind == "double":
                total += each
            else:
                total = (checked_int if kind == "int" else checked_uint)(int(total) + int(each))
        return total

    return run


for _kind in _ZEROS:
    declare(f"list({_kind}).sum(): {_kind}", cost=cost.deep)(_sum(_kind))


def _extreme(name: str, sign: int) -> None:
    def run(elements: list[Value]) -> Value:
        if not elements:
            raise EvalError(f"{name} called on empty list")
        best = elements[0]
        for each in elements[1:]:
            if _order(best, each) == sign:
                best = each
        return best

    declare(*(f"list({kind}).{name}(): {kind}" for kind in _COMPARABLE), cost=cost.deep)(run)


_extreme("min", 1)
_extreme("max", -1)


@declare("list(A).indexOf(A): int", cost=cost.deep)
def _index_of(elements: list[Value], wanted: Value) -> int:
    return next((index for index, each in enumerate(elements) if same(each, wanted)), -1)


@declare("list(A).lastIndexOf(A): int", cost=cost.deep)
def _last_index_of(elements: list[Value], wanted: Value) -> int:
    return next((index for index in reversed(range(len(elements))) if same(elements[index], wanted)), -1)


@declare("list(A).slice(int, int): list(A)", cost=cost.made_list, small=False)
def _slice(elements: list[Value], start: int, end: int) -> list[Value]:
    if not 0 <= start <= end <= len(elements):
        raise EvalError(f"cannot slice({start}, {end}), list is length {len(elements)}")
    return elements[start:end]


@declare("list(list(A)).flatten(): list(A)", cost=cost.flattened, small=False, dynamic=True)
@declare("list(dyn).flatten(int): list(dyn)", cost=cost.flattened, small=False, dynamic=True)
def _flatten(elements: Value, depth: Value = 1) -> list[Value]:
    if type(elements) is not list or type(depth) is not int:
        raise EvalError("no such overload: flatten")
    if depth < 0:
        raise EvalError("level must be non-negative")
    flat: list[Value] = []
    for each in elements:
        flat += _flatten(each, depth - 1) if type(each) is list and depth else [each]
    return flat


def sort_by(elements: list[Value], keys: list[Value]) -> list[Value]:
    """The elements in the order of their keys, which must be of one type that has an order."""
    if len(elements) != len(keys):
        raise EvalError("expected a list of the same size as the associated keys list")
    if not elements:
        return elements
    if type_name(keys[0]) not in {"int", "uint", "double", "bool", "string", "bytes"} and not _is_time(keys[0]):
        raise EvalError("list elements must be comparable")
    if len({type(key) for key in keys}) > 1:
        raise EvalError("list elements must have the same type")
    return [elements[index] for index in sorted(range(len(keys)), key=keys.__getitem__)]


def _is_time(value: Value) -> bool:
    return type_name(value) in ("google.protobuf.Duration", "google.protobuf.Timestamp")


@declare(*_for_each("list(T).sort(): list(T)"), cost=cost.ordered(), small=False)
def _sort(elements: list[Value]) -> list[Value]:
    return sort_by(elements, elements)


declare(*_for_each("list(A).@sortByAssociatedKeys(list(T)): list(A)"), cost=cost.ordered(1), small=False)(sort_by)


@declare("list(A).reverse(): list(A)", cost=cost.made_list, small=False)
def _reverse(elements: list[Value]) -> list[Value]:
    return elements[::-1]


@declare("list(A).distinct(): list(A)", cost=cost.ordered(), small=False)
def _distinct(elements: list[Value]) -> list[Value]:
    unique: list[Value] = []
    for each in elements:
        if not any(same(each, other) for other in unique):
            unique.append(each)
    return unique


@declare("sets.contains(list(A), list(A)): bool", cost=cost.sets(1), small=False)
def _set_contains(elements: list[Value], others: list[Value]) -> bool:
    return all(contains(elements, each) for each in others)


@declare("sets.equivalent(list(A), list(A)): bool", cost=cost.sets(2), small=False)
def _set_equivalent(one: list[Value], other: list[Value]) -> bool:
    return _set_contains(one, other) and _set_contains(other, one)


@declare("sets.intersects(list(A), list(A)): bool", cost=cost.sets(1), small=False)
def _set_intersects(one: list[Value], other: list[Value]) -> bool:
    return any(contains(other, each) for each in one)
