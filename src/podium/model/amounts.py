"""Amounts of resources for people to read."""

from __future__ import annotations

from podium.model.resources import CPU, EPHEMERAL_STORAGE, HUGE_PAGES, MEMORY

_BYTES = (MEMORY, EPHEMERAL_STORAGE)
_UNITS = ("", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei")


def amount(resource: str, number: int) -> str:
    """An amount in scheduler units (milli-cpu, bytes, units) with at most one decimal: `2.5`, `31.3Gi`, `110`."""
    if resource == CPU:
        return _short(number / 1000)
    if resource in _BYTES or resource.startswith(HUGE_PAGES):
        size, unit = float(number), 0
        while abs(size) >= 1024 and unit < len(_UNITS) - 1:
            size, unit = size / 1024, unit + 1
        return f"{_short(size)}{_UNITS[unit]}"
    return f"{number:,}"


def _short(number: float) -> str:
    return f"{number:,.1f}".removesuffix(".0")
