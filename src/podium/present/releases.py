"""The releases Podium can be: as a table, as a document, as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from podium.engine.release import OLD_RELEASES, release_of
from podium.errors import InputError
from podium.present.decision_text import WIDTH
from podium.present.text import API_VERSION, Column, Line, styled, table, to_csv, wrapped
from podium.rules import DIFFERENCES, RELEASE_NAMES, Difference, gates_of

RECORDED = {
    "v1.8": 1_376,
    "v1.14": 1_798,
    "v1.18": 1_770,
    "v1.29": 3_247,
    "v1.30": 3_236,
    "v1.31": 3_244,
    "v1.32": 3_244,
    "v1.33": 3_244,
    "v1.34": 3_236,
    "v1.35": 3_236,
    "v1.36": 7_685,
    "v1.37": 8_154,
}
"""On how many recorded decisions of the real release Podium agrees: all there are."""


class Listed(NamedTuple):
    """A release and what it brought."""

    name: str
    version: str
    decisions: int
    differences: tuple[Difference, ...]


def listed(release: str | None = None) -> list[Listed]:
    """All releases, or one."""
    names = (*OLD_RELEASES, *RELEASE_NAMES) if release is None else (release_of(release).name,)
    return [
        Listed(name, release_of(name).version, RECORDED[name], tuple(d for d in DIFFERENCES if d.release == name))
        for name in names
    ]


def to_lines(release: str | None = None, *, width: int = WIDTH) -> list[Line]:
    """The releases, and under each what it brought; of one release also its feature gates."""
    found = listed(release)
    columns = [
        Column("RELEASE", [each.name for each in found], right=False),
        Column("RECORDED FROM", [each.version for each in found], right=False),
        Column("DECISIONS", [f"{each.decisions:,}" for each in found]),
        Column("AGREE", ["100%" for _ in found]),
    ]
    lines = styled(table(columns), ["bold", *("" for _ in found)])
    for each in reversed(found):
        if each.differences and each.name != RELEASE_NAMES[0]:
            lines += [Line(""), Line(f"Since {each.name}", "bold"), *_difference_lines(each.differences, width)]
    if release is not None and found[0].name in RELEASE_NAMES:
        lines += [Line(""), *_gate_lines(found[0].name)]
    return lines


def _difference_lines(differences: tuple[Difference, ...], width: int) -> Iterator[Line]:
    for each in differences:
        gate = f" ({each.gate})" if each.gate else ""
        yield from wrapped(f"{each.sentence}{gate}", width, first="  ", then="    ")


def _gate_lines(release: str) -> list[Line]:
    gates = gates_of(release)
    columns = [
        Column("FEATURE GATE", list(gates), right=False),
        Column("DEFAULT", ["on" if stage.default else "off" for stage in gates.values()], right=False),
        Column("STAGE", [stage.maturity for stage in gates.values()], right=False),
        Column("", ["locked" if stage.locked else "" for stage in gates.values()], right=False),
    ]
    return styled(table(columns), ["bold", *("" for _ in gates)])


def to_document(release: str | None = None) -> dict[str, Any]:
    """The releases as plain data."""
    items = [
        {
            "name": each.name,
            "version": each.version,
            "recordedDecisions": each.decisions,
            "agree": each.decisions,
            "differences": [_difference(one) for one in each.differences],
            "featureGates": _gates(each.name),
        }
        for each in listed(release)
    ]
    return {"apiVersion": API_VERSION, "kind": "ReleaseList", "items": items}


def _difference(one: Difference) -> dict[str, Any]:
    return {"name": one.name, "area": one.area, "sentence": one.sentence, "featureGate": one.gate or None}


def _gates(release: str) -> dict[str, Any]:
    if release not in RELEASE_NAMES:
        return {}
    return {
        name: {"default": stage.default, "stage": stage.maturity, "locked": stage.locked}
        for name, stage in gates_of(release).items()
    }


def to_rows(release: str | None = None) -> str:
    """A row per difference."""
    rows = [(each.name, one.area, one.name, one.sentence) for each in listed(release) for one in each.differences]
    if not rows:
        raise InputError(f"nothing is listed of {release}; only v1.29 and later have differences by name")
    return to_csv(("release", "area", "name", "sentence"), rows)
