"""Nodes named by label, and the worst of them to lose."""

from __future__ import annotations

import json
from itertools import combinations

import pytest

from answers.losing import failed, nodes, web
from builders import ZONE, make_node
from podium.answers import Fate, fail, find_nodes, nodes_matching, worst_domain, worst_nodes
from podium.answers.disruption import DISRUPTION_NAMES
from podium.cluster import Cluster
from podium.errors import InputError
from podium.example import fleet
from podium.manifests import load

SELECTED = {
    "zone=a": ["a1", "a2"],
    f"{ZONE}=b": ["b1"],
    "node=a2": ["a2"],
    "hostname=a1": ["a1"],
    "zone=a,hostname=a1": ["a1"],
}


@pytest.mark.parametrize(("selector", "expected"), SELECTED.items())
def test_nodes_are_named_by_label(selector: str, expected: list[str]) -> None:
    assert nodes_matching(Cluster.from_objects(nodes("a1 a2 b1")), selector) == expected


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ("zone=x", f"no node with zone=x; {ZONE} is one of a, b"),
        ("rack=x", "no node with rack=x; no node has the label rack"),
        ("zone=a,hostname=b1", "no node with zone=a,hostname=b1"),
        ("zone", "cannot read 'zone'; write a label as key=value"),
        ("zone=", "cannot read 'zone='"),
        ("", "cannot read ''"),
        ("zone!=a", "cannot read 'zone!=a'"),
        ("zone in (a)", "cannot read 'zone in "),
    ],
)
def test_a_label_that_names_no_node_is_bad_input(selector: str, problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        nodes_matching(Cluster.from_objects(nodes("a1 a2 b1")), selector)


def test_a_selector_is_not_taken_for_the_name_of_a_node() -> None:
    with pytest.raises(InputError, match="cannot read 'a1'"):
        find_nodes(Cluster.from_objects(nodes("a1 a2 b1")), [], ["a1"])


def uneven() -> Cluster:
    """Losing d1 and d2 together leaves no place for what needs ssd; each alone is harmless."""
    ssd = [make_node(name, labels={ZONE: "d", "disk": "ssd"}) for name in ("d1", "d2")]
    picky = [web(f"picky-{name}", name, node_selector={"disk": "ssd"}) for name in ("d1", "d2")]
    return Cluster.from_objects([*nodes("a1 a2 b1 b2"), *ssd, *picky, web("w", "a1"), web("x", "b1")])


def test_the_worst_set_is_found_among_all() -> None:
    found = worst_nodes(uneven(), 2)

    assert found.disruption.nodes == ("d1", "d2")
    assert len(found.disruption.of(Fate.PENDING)) == 2
    assert (found.exhaustive, found.tried, found.possible) == (True, 15, 15)


def test_the_worst_set_is_the_one_that_trying_each_afresh_finds() -> None:
    cluster = Cluster.from_objects(load([each for each in fleet() if "data" in json.dumps(each["metadata"])]))
    pairs: list[tuple[str, ...]] = list(combinations(sorted(cluster.rows), 2))
    pending = {pair: len(fail(cluster, pair).of(Fate.PENDING)) for pair in pairs}

    found = worst_nodes(cluster, 2)

    assert found.tried == len(pairs)
    assert len(found.disruption.of(Fate.PENDING)) == max(pending.values())
    assert pending[found.disruption.nodes] == max(pending.values()) > min(pending.values())


def test_a_bounded_search_says_so() -> None:
    tried: list[None] = []
    found = worst_nodes(uneven(), 2, most=12, on_tried=lambda: tried.append(None))

    assert not found.exhaustive
    assert found.tried == len(tried) <= 12
    assert found.possible == 15


def test_a_search_that_may_try_next_to_nothing_still_finds_a_set() -> None:
    found = worst_nodes(uneven(), 3, most=1)

    assert len(found.disruption.nodes) == 3
    assert not found.exhaustive


def test_the_worst_zone() -> None:
    found = worst_domain(uneven(), "zone")

    assert found.domain == f"{ZONE}=d"
    assert (found.exhaustive, found.tried, found.possible) == (True, 3, 3)


@pytest.mark.parametrize("number", [0, 6, 7])
def test_not_all_nodes_can_fail(number: int) -> None:
    with pytest.raises(InputError, match=f"cannot lose {number} of 6 nodes; from 1 to 5 can fail"):
        worst_nodes(uneven(), number)


def test_values_are_those_that_conditions_may_name() -> None:
    assert tuple(failed(*nodes("a1 a2"), web("w", "a1")).values) == DISRUPTION_NAMES
