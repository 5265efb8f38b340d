"""Go's duration strings, such as `1m30s`, `100ms` or `-1.5h`."""

from __future__ import annotations

import re
from typing import Final

SECOND: Final = 1_000_000_000
"""Durations are whole nanoseconds."""

_UNITS = {
    "ns": 1,
    "us": 1_000,
    "\u00b5s": 1_000,  # the micro sign
    "\u03bcs": 1_000,  # the Greek letter mu: Go reads both
    "ms": 1_000_000,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_TERM = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]+)")
_INT64 = range(-(2**63), 2**63)


def parse_duration(text: str) -> int:
    """The nanoseconds `text` stands for; a ValueError when Go would not read it. Only `0` needs no unit."""
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0
    total, position = 0, 0
    while position < len(unsigned) or not unsigned:
        term = _TERM.match(unsigned, position)
        if term is None or not (term[1] or term[2]) or term[3] not in _UNITS:
            raise ValueError(f"invalid duration {text!r}")
        whole, fraction, unit = term[1] or "0", term[2] or "", _UNITS[term[3]]
        total += int(whole) * unit + int(fraction or "0") * unit // 10 ** len(fraction)
        position = term.end()
    nanoseconds = -total if text[0] == "-" else total
    if nanoseconds not in _INT64:
        raise ValueError(f"invalid duration {text!r}")
    return nanoseconds
