"""The characters that patterns name by Unicode category or script, as Go's regular expressions look names up."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache
from importlib.resources import files

Ranges = list[tuple[str, str]]
"""First and last characters."""

_MINOR = {"C": "cfnos", "L": "lmotu", "M": "cen", "N": "dlo", "P": "cdefios", "S": "ckmo", "Z": "lps"}
_CATEGORIES = frozenset(major + minor for major, minors in _MINOR.items() for minor in ("", *minors))
_ALIASES = {
    "Casedletter": "Lc", "Closepunctuation": "Pe", "Cntrl": "Cc", "Combiningmark": "M", "Connectorpunctuation": "Pc",
    "Control": "Cc", "Currencysymbol": "Sc", "Dashpunctuation": "Pd", "Decimalnumber": "Nd", "Digit": "Nd",
    "Enclosingmark": "Me", "Finalpunctuation": "Pf", "Format": "Cf", "Initialpunctuation": "Pi", "Letter": "L",
    "Letternumber": "Nl", "Lineseparator": "Zl", "Lowercaseletter": "Ll", "Mark": "M", "Mathsymbol": "Sm",
    "Modifierletter": "Lm", "Modifiersymbol": "Sk", "Nonspacingmark": "Mn", "Number": "N", "Openpunctuation": "Ps",
    "Other": "C", "Otherletter": "Lo", "Othernumber": "No", "Otherpunctuation": "Po", "Othersymbol": "So",
    "Paragraphseparator": "Zp", "Privateuse": "Co", "Punct": "P", "Punctuation": "P", "Separator": "Z",
    "Spaceseparator": "Zs", "Spacingmark": "Mc", "Surrogate": "Cs", "Symbol": "S", "Titlecaseletter": "Lt",
    "Unassigned": "Cn", "Uppercaseletter": "Lu",
}  # fmt: skip
"""Other names of categories, as Go spells them: one capital letter, without spaces, underscores and hyphens."""


@lru_cache(maxsize=64)
def characters_named(name: str) -> Ranges | None:
    """The characters of a Unicode category such as L or Lu, or of a script such as Greek; None for an unknown name."""
    name = re.sub("[_ -]", "", name).capitalize()
    name = _ALIASES.get(name, name)
    if name == "Any":
        return [(chr(0), chr(sys.maxunicode))]
    if name == "Ascii":
        return [(chr(0), chr(0x7F))]
    if name == "Assigned":
        return complement(_of_categories("Cn"))
    if name == "Lc":
        return _of_categories("Lu", "Ll", "Lt")
    return _of_categories(name) if name in _CATEGORIES else _scripts().get(name)


def _of_categories(*names: str) -> Ranges:
    ranges: Ranges = []
    for code in range(sys.maxunicode + 1):
        character = chr(code)
        if unicodedata.category(character).startswith(names):
            if ranges and ord(ranges[-1][1]) == code - 1:
                ranges[-1] = (ranges[-1][0], character)
            else:
                ranges.append((character, character))
    return ranges


@lru_cache(maxsize=1)
def _scripts() -> dict[str, Ranges]:
    """The scripts by name; those whose names Go's lookup never finds are left out."""
    found = {}
    for line in files(__package__).joinpath("scripts.txt").read_text("ascii").splitlines():
        name, *ranges = line.split()
        if name != "#":
            ends = (each.partition("-") for each in ranges)
            found[name] = [(chr(int(low, 16)), chr(int(high or low, 16))) for low, _, high in ends]
    return found


def complement(ranges: Ranges) -> Ranges:
    """All other characters."""
    result: Ranges = []
    code = 0
    for low, high in sorted(ranges):
        if code < ord(low):
            result.append((chr(code), chr(ord(low) - 1)))
        code = max(code, ord(high) + 1)
    return [*result, (chr(code), chr(sys.maxunicode))] if code <= sys.maxunicode else result
