"""Functions that do not do the same, or do not cost the same, in every release."""

from __future__ import annotations

from podium.cel import cost
from podium.cel.functions.standard import same
from podium.cel.overloads import Library
from podium.cel.regex import compile_pattern
from podium.cel.values import EvalError, Value

# More elements than the cost limit allows; they are not made.
_MAX_RANGE = 1_000_000


def cel_library(newer: bool) -> Library:
    """What changed between cel-go 0.26 and 0.29: the newer one checks more and counts other arguments."""
    library = Library()

    @library.declare("string.startsWith(string): bool", cost=cost.traversal(1 if newer else 0))
    def _starts_with(text: str, prefix: str) -> bool:
        return text.startswith(prefix)

    @library.declare("string.endsWith(string): bool", cost=cost.traversal(1 if newer else 0))
    def _ends_with(text: str, suffix: str) -> bool:
        return text.endswith(suffix)

    @library.declare("matches(string, string): bool", cost=cost.pattern if newer else cost.unit)
    @library.declare("string.matches(string): bool", cost=cost.pattern)
    def _matches(text: str, pattern: str) -> bool:
        return compile_pattern(pattern).search(text)

    @library.declare("string.indexOf(string): int", "string.indexOf(string, int): int", cost=cost.deep)
    def _index_of(text: str, part: str, offset: int = 0) -> int:
        _check_offset(part, offset)
        if part == "":
            return min(offset, len(text)) if newer else offset
        return text.find(part, offset)

    @library.declare("string.lastIndexOf(string): int", cost=cost.deep)
    def _last_index_of(text: str, part: str) -> int:
        return text.rfind(part)

    @library.declare("string.lastIndexOf(string, int): int", cost=cost.deep)
    def _last_index_before(text: str, part: str, offset: int) -> int:
        _check_offset(part, offset)
        if part == "":
            return min(offset, len(text)) if newer else offset
        return -1 if offset >= len(text) else text.rfind(part, 0, offset + len(part))

    def _check_offset(part: str, offset: int) -> None:
        if offset < 0 and (newer or part):
            raise EvalError(f"index out of range: {offset}")

    if not newer:

        @library.declare("duration(int): duration")
        def _duration(number: int) -> Value:
            # Declared, so that it compiles, and never carried out.
            raise EvalError(f"type conversion error: {number} is not a duration")

    @library.declare("lists.range(int): list(int)", cost=cost.made_list, small=False)
    def _range(count: int) -> list[Value]:
        if newer and count < 0:
            raise EvalError(f"lists.range: size must be non-negative, got {count}")
        if newer and count > _MAX_RANGE:
            raise EvalError(f"lists.range: size {count} exceeds maximum allowed ({_MAX_RANGE})")
        return [*range(min(count, _MAX_RANGE))]

    return library


def includes_library(limit: int) -> Library:
    """`value.includes(element)`: a list has the element, or the value is equal to it.

    A limit, if there is one, refuses to look at more elements.
    """
    library = Library()

    @library.declare("dyn.includes(dyn): bool", cost=cost.unit if limit else cost.deep)
    def _includes(value: Value, wanted: Value) -> bool:
        if type(value) is not list:
            return same(value, wanted)
        for index, each in enumerate(value):
            if limit and index >= limit:
                raise EvalError(f"'includes' function cannot be applied to lists longer than {limit} values")
            if same(each, wanted):
                return True
        return False

    return library
