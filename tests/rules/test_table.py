from __future__ import annotations

from pathlib import Path

import pytest

from podium.errors import InputError
from podium.rules import DIFFERENCES, differences, rules_of, with_rule
from podium.rules.gates import ABOUT_TIME, GATES, NEWEST, RELEASE_NAMES, short_name

DOCS = Path(__file__).parents[2] / "docs" / "releases.md"


def test_one_object_per_release_and_gates() -> None:
    assert rules_of("v1.33") is rules_of("v1.33")
    assert rules_of("v1.36", {"StorageCapacityScoring": True}) is rules_of("v1.36", {"StorageCapacityScoring": True})
    assert rules_of("v1.36") is not rules_of("v1.37")


def test_a_difference_holds_from_its_release_on() -> None:
    for each in DIFFERENCES:
        holds = [getattr(rules_of(release), each.name) for release in RELEASE_NAMES]
        assert holds == sorted(holds), each.name
        first = next((r for r, held in zip(RELEASE_NAMES, holds, strict=True) if held), "")
        assert first == each.release, each.name


def test_what_differs_between_two_releases() -> None:
    names = [each.name for each in differences(rules_of("v1.35"), rules_of("v1.36"))]
    assert "balanced_allocation_compares_before_and_after" in names
    assert {each.release for each in differences(rules_of("v1.35"), rules_of("v1.36"))} == {"v1.36"}
    assert differences(rules_of(NEWEST), rules_of(NEWEST)) == []


def test_one_rule_can_be_switched() -> None:
    rules = with_rule(rules_of("v1.35"), "balanced_allocation_compares_before_and_after", True)
    changed = differences(rules_of("v1.35"), rules)
    assert [each.name for each in changed] == ["balanced_allocation_compares_before_and_after"]


def test_every_gate_switches_a_rule_or_needs_one_that_does() -> None:
    switching = {each.gate for each in DIFFERENCES} - {""}
    assert switching <= GATES.keys()
    others = [gate for gate in GATES.values() if gate.name not in switching | ABOUT_TIME]
    assert all(switching & {*gate.needs} for gate in others)


def test_the_page_about_releases_lists_every_difference() -> None:
    page = DOCS.read_text(encoding="utf-8")
    missing = [each.name for each in DIFFERENCES if each.release not in ("", "v1.29") and each.sentence not in page]
    assert missing == []


@pytest.mark.parametrize(
    ("version", "name"),
    [("v1.36", "v1.36"), ("1.36", "v1.36"), ("v1.33.5-gke.100", "v1.33"), ("v1.34.1+k3s1", "v1.34"), ("nope", None)],
)
def test_how_releases_are_written(version: str, name: str | None) -> None:
    assert short_name(version) == name


def test_an_unknown_release() -> None:
    with pytest.raises(InputError, match=r"release 'v1\.28' is unknown"):
        rules_of("v1.28")
