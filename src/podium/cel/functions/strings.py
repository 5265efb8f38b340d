"""Functions of text, and regular expressions on it."""

from __future__ import annotations

from podium.cel import cost
from podium.cel.functions.text_format import format_text
from podium.cel.overloads import Library
from podium.cel.regex import compile_pattern
from podium.cel.values import EvalError, Value

library = Library()
declare = library.declare

_QUOTED = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_QUOTED |= {"\\": "\\\\", '"': '\\"'}
_LOWER = {code: code + 32 for code in range(ord("A"), ord("Z") + 1)}
_UPPER = {lower: upper for upper, lower in _LOWER.items()}
# What Go's unicode.IsSpace takes for a space.
_SPACES = (
    "\t\n\v\f\r \x85\xa0\u1680"
    "\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000"
)


def _within(index: int, text: str) -> int:
    if 0 <= index <= len(text):
        return index
    raise EvalError(f"index out of range: {index}")


@declare("string.charAt(int): string")
def _char_at(text: str, index: int) -> str:
    return text[_within(index, text) :][:1]


@declare("string.lowerAscii(): string", cost=cost.traversal())
def _lower(text: str) -> str:
    return text.translate(_LOWER)


@declare("string.upperAscii(): string", cost=cost.traversal())
def _upper(text: str) -> str:
    return text.translate(_UPPER)


@declare("string.replace(string, string): string", cost=cost.traversal(factor=2), small=False)
def _replace(text: str, old: str, new: str) -> str:
    return text.replace(old, new)


@declare("string.replace(string, string, int): string", cost=cost.traversal(factor=2), small=False)
def _replace_some(text: str, old: str, new: str, count: int) -> str:
    return text.replace(old, new, max(count, -1))


@declare("string.split(string): list(string)", cost=cost.traversal(factor=2))
def _split(text: str, separator: str) -> list[Value]:
    return text.split(separator) if separator else list(text)


@declare("string.split(string, int): list(string)", cost=cost.traversal(factor=2))
def _split_some(text: str, separator: str, count: int) -> list[Value]:
    if count == 0:
        return []
    if count < 0:
        return _split(text, separator)
    if separator:
        return [*text.split(separator, count - 1)]
    return list(text) if len(text) <= count else [*text[: count - 1], text[count - 1 :]]


@declare("string.substring(int): string", cost=cost.traversal())
def _substring(text: str, start: int) -> str:
    return text[_within(start, text) :]


@declare("string.substring(int, int): string", cost=cost.traversal())
def _substring_between(text: str, start: int, end: int) -> str:
    if start > end:
        raise EvalError(f"invalid substring range. start: {start}, end: {end}")
    return text[_within(start, text) : _within(end, text)]


@declare("string.trim(): string", cost=cost.traversal())
def _trim(text: str) -> str:
    return text.strip(_SPACES)


@declare("strings.quote(string): string", cost=cost.traversal())
def _quote(text: str) -> str:
    return f'"{"".join(_QUOTED.get(each, each) for each in text)}"'


@declare("string.format(list(dyn)): string", cost=cost.traversal(), small=False)
def _format(text: str, arguments: list[Value]) -> str:
    return format_text(text, arguments)


@declare("list(string).join(): string", "list(string).join(string): string", cost=cost.joined, small=False)
def _join(texts: list[Value], separator: str = "") -> str:
    if any(type(each) is not str for each in texts):
        raise EvalError("join: invalid input")
    return separator.join(texts)


@declare("string.find(string): string", cost=cost.pattern)
def _find(text: str, pattern: str) -> str:
    span = compile_pattern(pattern).find(text)
    return text[span[0] : span[1]] if span else ""


@declare("string.findAll(string): list(string)", cost=cost.pattern)
@declare("string.findAll(string, int): list(string)", cost=cost.pattern)
def _find_all(text: str, pattern: str, limit: int = -1) -> list[Value]:
    return [*compile_pattern(pattern).find_all(text, limit)]
