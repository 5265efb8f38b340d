from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from builders import HOSTNAME, ZONE, affinity, make_node, make_pod, pod_term
from podium.cluster import Cluster, Nodes
from podium.cluster.census import Census, LiveTerms, Matching, Owning, RowMask, Scope
from podium.cluster.pods import Term
from podium.model import Node
from podium.model.selectors import (
    EVERYTHING,
    NOTHING,
    Requirement,
    Selector,
    SelectorIndex,
    match_labels,
    selecting_pair,
)

GREEN = match_labels({"color": "green"})
GREEN_PODS = Matching((Scope(frozenset(("default",)), GREEN),))


def zoned(**zones: str) -> list[Node]:
    return [make_node(name, labels={ZONE: zone, HOSTNAME: name}) for name, zone in zones.items()]


def per_node(cluster: Cluster, question: Matching | Owning) -> dict[str, int]:
    counts = cluster.census.tally(question).per_row()
    return {name: int(counts[row]) for name, row in cluster.rows.items() if counts[row]}


def per_zone(cluster: Cluster, question: Matching | Owning, mask: RowMask | None = None) -> dict[str, tuple[int, int]]:
    """Pods and nodes in each zone that has nodes."""
    domains = cluster.census.tally(question).by_domain(ZONE, mask)
    values = cluster.columns.label(ZONE).values.values
    return {v: (int(domains.counts[c]), int(domains.nodes[c])) for c, v in enumerate(values) if domains.nodes[c]}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        pytest.param(GREEN_PODS, {"a1": 2, "b1": 1}, id="labels and a namespace"),
        pytest.param(Matching((Scope(None, GREEN),)), {"a1": 2, "b1": 2}, id="every namespace"),
        pytest.param(Matching((Scope(frozenset(("team",)), EVERYTHING),)), {"b1": 1}, id="all pods of a namespace"),
        pytest.param(Matching((Scope(None, NOTHING),)), {}, id="a selector of nothing"),
        pytest.param(replace(GREEN_PODS, terminating=False), {"a1": 1, "b1": 1}, id="without pods being deleted"),
        pytest.param(
            Matching((Scope(None, GREEN), Scope(frozenset(("team",)), EVERYTHING))), {"b1": 1}, id="within two scopes"
        ),
    ],
)
def test_a_tally_counts_the_pods_a_question_means(question: Matching, expected: dict[str, int]) -> None:
    pods = [
        make_pod("p1", node="a1", labels={"color": "green"}),
        make_pod("p2", node="a1", labels={"color": "green", "x": "y"}, deleted=True),
        make_pod("p3", node="b1", labels={"color": "green"}),
        make_pod("p4", node="b1", labels={"color": "green"}, namespace="team"),
        make_pod("p5", node="a2", labels={"color": "blue"}),
    ]
    cluster = Cluster.from_objects([*zoned(a1="a", a2="a", b1="b"), *pods])
    assert per_node(cluster, question) == expected

    asked_first = Cluster.from_objects(zoned(a1="a", a2="a", b1="b"))
    asked_first.census.tally(question)
    for pod in pods:
        asked_first.add(pod)
    assert per_node(asked_first, question) == expected


def test_an_owning_tally_counts_a_term_as_often_as_pods_carry_it() -> None:
    term = pod_term(ZONE, {"color": "green"})
    once = make_pod("once", node="a1", affinity=affinity(required=[term], anti=True))
    twice = make_pod("twice", node="b1", affinity=affinity(required=[term, term], anti=True))
    cluster = Cluster.from_objects([*zoned(a1="a", b1="b"), once, twice])
    (compiled,) = cluster.census.terms["required_anti_affinity"].counts
    assert per_node(cluster, Owning("required_anti_affinity", compiled)) == {"a1": 1, "b1": 2}
    assert per_node(cluster, Owning("required_affinity", compiled)) == {}


def test_domains_follow_pods_and_nodes() -> None:
    cluster = Cluster.from_objects(zoned(a1="a", a2="a", b1="b"))
    assert per_zone(cluster, GREEN_PODS) == {"a": (0, 2), "b": (0, 1)}
    for number, node in enumerate(("a1", "a2", "b1", "a1")):
        cluster.add(make_pod(f"p{number}", node=node, labels={"color": "green"}))
    assert per_zone(cluster, GREEN_PODS) == {"a": (3, 2), "b": (1, 1)}
    cluster.update(zoned(a1="c")[0])
    assert per_zone(cluster, GREEN_PODS) == {"a": (1, 1), "b": (1, 1), "c": (2, 1)}
    cluster.remove(make_pod("p0", node="a1"))
    cluster.update(make_node("a2"))
    assert per_zone(cluster, GREEN_PODS) == {"b": (1, 1), "c": (1, 1)}


def test_a_mask_leaves_nodes_out_of_domains() -> None:
    cluster = Cluster.from_objects(
        [*zoned(a1="a", a2="a", b1="b"), make_pod("p", node="a2", labels={"color": "green"})]
    )
    mask = cluster.row_mask("not tainted", lambda: Nodes(cluster).by_taints(len) == 0)
    assert per_zone(cluster, GREEN_PODS, mask) == {"a": (1, 2), "b": (0, 1)}
    cluster.update(make_node("a2", labels={ZONE: "a"}, taints=["t=:NoSchedule"]))
    assert per_zone(cluster, GREEN_PODS, mask) == {"a": (0, 1), "b": (0, 1)}
    cluster.add(make_pod("q", node="a2", labels={"color": "green"}))
    cluster.add(make_pod("r", node="a1", labels={"color": "green"}))
    assert per_zone(cluster, GREEN_PODS, mask) == {"a": (1, 1), "b": (0, 1)}
    assert per_zone(cluster, GREEN_PODS) == {"a": (3, 2), "b": (0, 1)}


def test_a_row_mask_is_computed_again_only_after_labels_or_taints_change() -> None:
    cluster = Cluster.from_objects(zoned(a1="a"))
    computed = []

    def compute() -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
        computed.append(1)
        return np.ones(cluster.columns.size, dtype=np.bool_)

    mask = cluster.row_mask("all", compute)
    assert cluster.row_mask("all", compute) is mask
    mask.read()
    cluster.add(make_pod("p", node="a1"))
    mask.read()
    assert len(computed) == 1
    cluster.add(make_node("b1"))
    assert mask.read().tolist() == [True, True]
    assert len(computed) == 2


def test_tallies_are_counted_again_after_too_many_were_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Census, "MOST_TALLIES", 2)
    cluster = Cluster.from_objects([*zoned(a1="a"), make_pod("p", node="a1", labels={"color": "green"})])
    first = cluster.census.tally(GREEN_PODS)
    for number in range(3):
        cluster.census.tally(Matching((Scope(None, match_labels({"n": str(number)})),)))
    cluster.add(make_pod("q", node="a1", labels={"color": "green"}))
    assert cluster.census.tally(GREEN_PODS) is not first
    assert per_node(cluster, GREEN_PODS) == {"a1": 2}


TERM = Term(frozenset(("default",)), NOTHING, GREEN, ZONE)
ANYWHERE = replace(TERM, namespace_selector=EVERYTHING)
FRIENDLY = replace(TERM, namespaces=frozenset(), namespace_selector=match_labels({"friendly": "yes"}))


@pytest.mark.parametrize(
    ("namespace", "labels", "namespace_labels", "expected"),
    [
        ("default", {"color": "green"}, {}, [TERM, ANYWHERE]),
        ("team", {"color": "green"}, {}, [ANYWHERE]),
        ("team", {"color": "green"}, {"friendly": "yes"}, [ANYWHERE, FRIENDLY]),
        ("default", {"color": "blue"}, {"friendly": "yes"}, []),
    ],
)
def test_live_terms_find_the_terms_that_mean_a_pod(
    namespace: str, labels: dict[str, str], namespace_labels: dict[str, str], expected: list[Term]
) -> None:
    live = LiveTerms()
    for term in (TERM, ANYWHERE, FRIENDLY):
        live.change(term, 1)
    assert live.matching(namespace, labels, namespace_labels) == expected


def test_a_term_is_live_until_its_last_pod_goes() -> None:
    live = LiveTerms()
    assert not live.counts
    live.change(TERM, 2)
    twin = live.copy()
    live.change(TERM, -1)
    assert live.matching("default", {"color": "green"}, {}) == [TERM]
    live.change(TERM, -1)
    assert not live.counts
    assert live.matching("default", {"color": "green"}, {}) == []
    assert twin.counts[TERM] == 2


@pytest.mark.parametrize(
    ("selector", "pair"),
    [
        (GREEN, ("color", "green")),
        (Selector((Requirement("a", "Exists"), Requirement("b", "In", frozenset("x")))), ("b", "x")),
        (Selector((Requirement("a", "In", frozenset("xy")),)), None),
        (Selector((Requirement("a", "NotIn", frozenset("x")),)), None),
        (EVERYTHING, None),
    ],
)
def test_a_selector_is_looked_up_by_a_label_every_match_must_have(
    selector: Selector, pair: tuple[str, str] | None
) -> None:
    assert selecting_pair(selector) == pair


def test_a_selector_index_gives_candidates_by_label_and_all_others() -> None:
    index: SelectorIndex[str] = SelectorIndex()
    index.add(GREEN, "green")
    index.add(match_labels({"color": "blue"}), "blue")
    index.add(EVERYTHING, "everything")
    assert list(index.candidates({"color": "green"})) == ["everything", "green"]
    index.discard(GREEN, "green")
    assert list(index.candidates({"color": "green"})) == ["everything"]
