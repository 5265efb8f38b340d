"""What an allocation hands to the drivers, entry by entry."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from podium.live.device_writes import Chosen, chosen_requests, device_configuration

A, B = ("a", "gpu"), ("b", "gpu")
FAST, OTHER = ("c/fast", "fast"), ("d", "other")
CLASSES = {"gpu": [{"opaque": 1}, {"opaque": 2}], "fast": [{"opaque": 3}], "other": []}


class Case(NamedTuple):
    """Requests as they were served, the claim's own configuration, and what becomes of both."""

    name: str
    chosen: list[Chosen]
    own: list[dict[str, Any]]
    expected: list[dict[str, Any]]


CASES = [
    Case("no configuration", [OTHER], [], []),
    Case("of the class of all requests", [A, B], [], [{"source": "FromClass", "opaque": n} for n in (1, 2)]),
    Case(
        "of the class of one request", [FAST, OTHER], [], [{"source": "FromClass", "requests": ["c/fast"], "opaque": 3}]
    ),
    Case("of the claim for all", [OTHER], [{"opaque": 9}], [{"source": "FromClaim", "opaque": 9}]),
    Case(
        "of the claim for one",
        [OTHER, FAST],
        [{"requests": ["d"], "opaque": 9}],
        [
            {"source": "FromClass", "requests": ["c/fast"], "opaque": 3},
            {"source": "FromClaim", "requests": ["d"], "opaque": 9},
        ],
    ),
    Case("for an alternative that was not taken", [OTHER], [{"requests": ["d/x"], "opaque": 9}], []),
]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_configuration(case: Case) -> None:
    assert device_configuration(case.chosen, CLASSES, case.own) == case.expected


def test_the_alternative_counts_that_was_taken() -> None:
    alternatives = [{"name": "fast", "deviceClassName": "fast"}, {"name": "slow", "deviceClassName": "other"}]
    requests: list[dict[str, Any]] = [
        {"name": "a", "exactly": {"deviceClassName": "gpu"}},
        {"name": "c", "firstAvailable": alternatives},
    ]

    assert chosen_requests(requests, ["a", "c/slow"]) == [("a", "gpu"), ("c/slow", "other")]
