"""`--fail-if`: conditions on what a command finds, for pipelines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Collection

    from podium.answers import Condition

FailIf = Annotated[
    list[str],
    typer.Option(
        "--fail-if",
        metavar="CONDITION",
        help="Exit code 1 if this holds, such as 'pending > 0'; may be given several times.",
    ),
]


def read_conditions(texts: Sequence[str], names: Collection[str]) -> list[Condition]:
    """The conditions, which may speak of these names."""
    from podium.answers import Condition

    return [Condition.parse(text, names) for text in texts]


def exit_code(conditions: Sequence[Condition], values: Mapping[str, float], otherwise: bool = False) -> int:
    """1 if a condition holds, which is said on stderr; without conditions, 1 if it comes to that `otherwise`."""
    from podium.cli.output import warn

    if not conditions:
        return int(otherwise)
    met = [condition for condition in conditions if condition.holds(values)]
    for condition in met:
        warn(f"--fail-if {condition.text!r} holds: {condition.explained(values)}")
    return int(bool(met))


def with_conditions(
    document: dict[str, Any], conditions: Sequence[Condition], values: Mapping[str, float]
) -> dict[str, Any]:
    """The document, and which of the conditions hold."""
    found = [{"condition": condition.text, "holds": condition.holds(values)} for condition in conditions]
    return {**document, "failIf": found} if found else document
