"""What calls cost, as the run-time cost limit counts: functions of the arguments and the result.

A call that failed costs too, so arguments may be of any type, and None where one failed.
"""

from __future__ import annotations

from math import ceil

from podium.cel.overloads import Cost
from podium.cel.values import Amount, Cidr, Format, Ip, Optional, Semver, Url, Value

_TRAVERSAL = 0.1
_PATTERN = 0.25
_SIZED = (str, bytes, list, dict)


def unit(_given: list[Value], _result: Value) -> int:
    """The cost of most functions."""
    return 1


def size(value: Value) -> int:
    """The size that counts: of a text, list or map; 1 for other values."""
    if isinstance(value, _SIZED):
        return len(value)
    if type(value) is Optional and value.present:
        return size(value.value)
    if type(value) is Ip:
        return 4 if value.address.version == 4 else 16
    return ceil(value.bits / 8) if type(value) is Cidr else 1


# Functions whose cost is known by their name alone; other calls that may reach several overloads cost 1.
BY_NAME = frozenset({
    "isSorted", "sum", "max", "min", "indexOf", "lastIndexOf", "includes", "lowerAscii", "upperAscii", "substring",
    "trim", "replace", "split", "join", "find", "findAll", "containsIP", "containsCIDR", "isSemver", "semver",
    "validate",
})  # fmt: skip


def traversal(argument: int = 0, factor: int = 1) -> Cost:
    """A tenth of the size of an argument, or several times that."""
    return lambda given, _result: ceil(size(given[argument]) * factor * _TRAVERSAL)


def smaller(given: list[Value], _result: Value) -> int:
    """A comparison: a tenth of the smaller size."""
    return ceil(min(size(given[0]), size(given[1])) * _TRAVERSAL)


def both(given: list[Value], _result: Value) -> int:
    """A concatenation: a tenth of the sizes together."""
    return ceil((size(given[0]) + size(given[1])) * _TRAVERSAL)


def product(given: list[Value], _result: Value) -> int:
    """A search: each tenth of one with each of the other."""
    return ceil(size(given[0]) * _TRAVERSAL) * ceil(size(given[1]) * _TRAVERSAL)


def pattern(given: list[Value], _result: Value) -> int:
    """A match with a regular expression."""
    return _pattern_cost(size(given[0]), size(given[1]))


def validation(given: list[Value], _result: Value) -> int:
    """A check of a format by name."""
    return _pattern_cost(size(given[1]), given[0].pattern_size) if type(given[0]) is Format else 1


def _pattern_cost(text: int, expression: int) -> int:
    return ceil((1.0 + text) * _TRAVERSAL) * ceil(expression * _PATTERN)


def elements(given: list[Value], _result: Value) -> int:
    """A search in a list: each element counts."""
    return size(given[1])


def deep(given: list[Value], _result: Value) -> int:
    """A walk through everything in the first argument."""
    return _walk(given[0])


def _walk(value: Value) -> int:
    if isinstance(value, (str, bytes)):
        return int(len(value) * _TRAVERSAL)
    if isinstance(value, list):
        return sum(map(_walk, value))
    if isinstance(value, dict):
        return sum(_walk(key) + _walk(item) for key, item in value.items())
    return 1


def joined(_given: list[Value], result: Value) -> int:
    """The text made, twice."""
    return ceil(size(result) * 2 * _TRAVERSAL)


def sets(factor: int) -> Cost:
    """Each element of one list against each of the other."""
    return lambda given, _result: 1 + size(given[0]) * size(given[1]) * factor


def made_list(_given: list[Value], result: Value) -> int:
    """A new list, by its size."""
    return size(result) + 11


def flattened(given: list[Value], _result: Value) -> int:
    """A new list, by what went in and how deep."""
    depth = given[1] if len(given) == 2 and type(given[1]) is int else 1
    return size(given[0]) * depth + 11


def ordered(argument: int = 0) -> Cost:
    """A new list, by each element of an argument against each."""

    def cost(given: list[Value], _result: Value) -> int:
        found = given[argument] if type(given[argument]) is list else []
        factor = 2.1 if found and isinstance(found[0], (str, bytes)) else 2.0
        return int(len(found) * len(found) * factor) + 11

    return cost


def contained(text_argument: bool, extra: bool) -> Cost:
    """A network that contains an address, or a network with `extra`, given as a text or not."""

    def cost(given: list[Value], _result: Value) -> int:
        network = size(given[0])
        total = ceil(2 * network * _TRAVERSAL) + (ceil(network * _TRAVERSAL) + 1 if extra else 0)
        return total + (ceil(size(given[1]) * _TRAVERSAL) if text_argument else 0)

    return cost


def equality(given: list[Value], result: Value) -> int:
    """`==`: a comparison, or 1 for the types of Kubernetes."""
    return 1 if type(given[0]) in _KUBERNETES else smaller(given, result)


_KUBERNETES = frozenset({Amount, Semver, Ip, Cidr, Url, Format})
