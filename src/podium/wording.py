"""Numbers, lists of names and foreign text in sentences: `1 pod`, `2 pods`, `a, b and 3 more`."""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence
from itertools import takewhile
from operator import eq


def counted(number: int, noun: str) -> str:
    """`1 node`, `5,000 nodes`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def listed(names: Sequence[str], most: int) -> str:
    """At most `most` names: `a, b, c and 7 more`."""
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most:,} more"


def joined(parts: Sequence[str]) -> str:
    """`a, b and c`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def one_line(text: str, limit: int | None = None) -> str:
    """The text without line breaks and control characters, so that no input can forge a second line.

    With a limit, at most that many characters.
    """
    if limit is not None:
        text = text[: 4 * limit]
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if limit is None or len(line) <= limit else line[: limit - 3] + "..."


NEAR = 0.75
"""How similar two names must be for one to be a likely misspelling of the other."""


def near_names(name: str, known: Iterable[str], most: int = 1) -> list[str]:
    """The known names that this name may be a misspelling of, most similar first."""
    from difflib import SequenceMatcher, get_close_matches  # takes a while to import, and most runs need no suggestion

    names = list(known)
    close = get_close_matches(name, names, n=len(names) or 1, cutoff=NEAR)
    # Among equally similar names, those with the same beginning come first.
    close.sort(key=lambda each: (-SequenceMatcher(None, each, name).ratio(), -_shared_beginning(each, name)))
    return close[:most] or [each for each in names if each.lower() == name.lower()][:most]


def _shared_beginning(one: str, other: str) -> int:
    return sum(takewhile(bool, map(eq, one, other)))


def did_you_mean(names: Sequence[str]) -> str:
    """`; did you mean a, b or c?`; empty if there are no names."""
    return f"; did you mean {' or '.join(filter(None, (', '.join(names[:-1]), names[-1])))}?" if names else ""


def csv_text(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows as CSV, the header first, each with its line break; None is an empty cell."""
    import csv  # here, because most runs write none, and every module imports this one

    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows([csv_cell(cell) for cell in row] for row in rows)
    return text.getvalue()


_FORMULA_STARTS = ("=", "+", "-", "@")


def csv_cell(value: object) -> object:
    """A value for a CSV cell; control characters in names from the input are escaped.

    A text that a spreadsheet would compute gets an apostrophe in front, by which spreadsheets know a text.
    """
    if not isinstance(value, str):
        return value
    if not value.isprintable():
        value = "".join(char if char.isprintable() else repr(char)[1:-1] for char in value)
    return f"'{value}" if value.startswith(_FORMULA_STARTS) else value


_TYPES = {
    "array": "a list",
    "bool": "true or false",
    "float": "a number",
    "int": "a whole number",
    "null": "nothing",
    "object": "an object",
    "str": "a text",
}
"""JSON's types, as a decoder names them, in words."""


def value_problem(decoder_error: str) -> str:
    """A decoder's error about a value, in words: the field first, then what is wrong with it.

    `Expected `int`, got `str` - at `$.seed`` becomes `seed must be a whole number, not a text`.
    """
    message, at, path = decoder_error.rpartition(" - at `")
    message, path = (message, path.rstrip("`").lstrip("$").lstrip(".")) if at else (path, "")
    where = path or "the value"
    quoted = message.split("`")[1::2]
    if message.startswith("Object missing required field"):
        return f"{'.'.join(filter(None, (path, quoted[0])))} is missing"
    if message.startswith("Object contains unknown field"):
        return f"{'.'.join(filter(None, (path, quoted[0])))} is not a field that is known here"
    if message.startswith("Invalid value"):
        return f"{where} cannot be {message.removeprefix('Invalid value ')}"
    if ", got " in message and len(quoted) > 1:
        wanted, given = (
            " or ".join(_TYPES.get(part.strip(), part.strip()) for part in each.split("|"))
            for each in (quoted[0], quoted[1])
        )
        return f"{where} must be {wanted}, not {given}"
    if " of length >= " in message:
        least = message.rpartition(" ")[2]
        return f"{where} is empty" if least == "1" else f"{where} needs at least {least}"
    if " of length <= " in message:
        return f"{where} is longer than {int(message.rpartition(' ')[2]):,}"
    for sign, words in ((" >= ", "at least"), (" <= ", "at most"), (" > ", "more than"), (" < ", "less than")):
        if sign in message:
            return f"{where} must be {words} {message.rpartition(sign)[2]}"
    return f"{path}: {message}" if path else message
