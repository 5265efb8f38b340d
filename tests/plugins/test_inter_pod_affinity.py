from __future__ import annotations

from typing import Any

import pytest

from builders import (
    HOSTNAME,
    ZONE,
    affinity,
    decide,
    expression,
    make_node,
    make_object,
    make_pod,
    pod_term,
    rejections,
    scores,
    with_args,
)
from podium.model import Node, Pod

PLUGIN = "InterPodAffinity"
AFFINITY = "node(s) didn't match pod affinity rules"
ANTI_AFFINITY = "node(s) didn't match pod anti-affinity rules"
EXISTING = "node(s) didn't satisfy existing pods anti-affinity rules"
WEB, DB = {"app": "web"}, {"app": "db"}


def node(name: str, zone: str | None = None) -> Node:
    return make_node(name, labels={HOSTNAME: name} | ({} if zone is None else {ZONE: zone}))


NODES = [node("a1", "a"), node("a2", "a"), node("b1", "b"), node("none")]


def feasible(pod: Pod, *others: Any) -> tuple[str, ...]:
    return decide([*NODES, *others], pod).feasible


# -- required affinity ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("terms", "there", "expected"),
    [
        pytest.param([pod_term(ZONE, WEB)], [("a1", WEB)], ("a1", "a2"), id="in the same zone"),
        pytest.param([pod_term(HOSTNAME, WEB)], [("a1", WEB)], ("a1",), id="on the same node"),
        pytest.param([pod_term(ZONE, WEB)], [("a1", DB)], (), id="nobody to be with"),
        pytest.param([pod_term(ZONE, WEB)], [("none", WEB)], (), id="where there is no such label"),
        pytest.param([pod_term(ZONE, {})], [("b1", {})], ("b1",), id="an empty selector means every pod"),
        pytest.param([pod_term(ZONE)], [("b1", {})], (), id="no selector means no pod"),
        pytest.param(
            [pod_term(ZONE, WEB), pod_term(HOSTNAME, {"tier": "front"})],
            [("a1", WEB | {"tier": "front"}), ("a2", WEB)],
            ("a1",),
            id="a pod must meet all terms to count for any",
        ),
        pytest.param(
            [pod_term(ZONE, WEB), pod_term(ZONE, DB)],
            [("a1", WEB), ("a2", DB)],
            (),
            id="two pods do not meet two terms together",
        ),
    ],
)
def test_a_pod_goes_where_those_are_it_wants_to_be_with(
    terms: list[Any], there: list[tuple[str, dict[str, str]]], expected: tuple[str, ...]
) -> None:
    others = [make_pod(f"p{n}", node=where, labels=labels) for n, (where, labels) in enumerate(there)]
    decision = decide([*NODES, *others], make_pod(affinity=affinity(required=terms)))
    assert decision.feasible == expected
    rejected = {each.name for each in NODES} - set(expected)
    assert rejections(decision) == dict.fromkeys(rejected, (PLUGIN, "UnschedulableAndUnresolvable", (AFFINITY,)))


def test_the_first_of_a_group_may_go_wherever_the_label_is() -> None:
    pod = make_pod(labels=WEB, affinity=affinity(required=[pod_term(ZONE, WEB)]))
    assert feasible(pod) == ("a1", "a2", "b1")
    assert feasible(pod, make_pod("there", node="b1", labels=WEB)) == ("b1",)


def test_a_pod_being_deleted_still_counts() -> None:
    pod = make_pod(affinity=affinity(required=[pod_term(ZONE, WEB)]))
    assert feasible(pod, make_pod("going", node="b1", labels=WEB, deleted=True)) == ("b1",)


# -- required anti-affinity ----------------------------------------------------------------------------------------


def test_a_pod_stays_away_from_those_it_wants_to_avoid() -> None:
    pod = make_pod(affinity=affinity(required=[pod_term(ZONE, WEB)], anti=True))
    decision = decide([*NODES, make_pod("there", node="a1", labels=WEB)], pod)
    assert rejections(decision) == dict.fromkeys(("a1", "a2"), (PLUGIN, "Unschedulable", (ANTI_AFFINITY,)))
    assert decision.feasible == ("b1", "none")


def test_pods_that_are_there_keep_others_away() -> None:
    there = make_pod("there", node="a1", affinity=affinity(required=[pod_term(ZONE, WEB)], anti=True))
    decision = decide([*NODES, there], make_pod(labels=WEB))
    assert rejections(decision) == dict.fromkeys(("a1", "a2"), (PLUGIN, "Unschedulable", (EXISTING,)))
    assert feasible(make_pod(labels=DB), there) == ("a1", "a2", "b1", "none")


def test_unmet_affinity_is_said_before_anti_affinity_and_that_before_others_anti_affinity() -> None:
    keeps_away = make_pod("k", node="a1", labels=DB, affinity=affinity(required=[pod_term(ZONE, WEB)], anti=True))
    web = make_pod("w", node="b1", labels=WEB)
    wants = affinity(required=[pod_term(HOSTNAME, WEB)]) | affinity(required=[pod_term(ZONE, DB)], anti=True)
    reasons = decide([*NODES, keeps_away, web], make_pod(labels=WEB, affinity=wants)).rejected
    assert {name: status.reasons[0] for name, status in reasons.items()} == {
        "a1": AFFINITY,
        "a2": AFFINITY,
        "none": AFFINITY,
    }
    only_anti = affinity(required=[pod_term(HOSTNAME, DB)], anti=True)
    reasons = decide([*NODES, keeps_away, web], make_pod(labels=WEB, affinity=only_anti)).rejected
    assert {name: status.reasons[0] for name, status in reasons.items()} == {"a1": ANTI_AFFINITY, "a2": EXISTING}


# -- namespaces ----------------------------------------------------------------------------------------------------

TEAM = make_object("Namespace", "team", labels={"friendly": "yes"})
FRIENDLY = {"matchLabels": {"friendly": "yes"}}
NOT_MARKED = {"matchExpressions": [expression("friendly", "DoesNotExist")]}


@pytest.mark.parametrize(
    ("fields", "there", "expected"),
    [
        pytest.param({}, "default", True, id="its own namespace by default"),
        pytest.param({}, "team", False, id="and no other"),
        pytest.param({"namespaces": ["team"]}, "team", True, id="a listed namespace"),
        pytest.param({"namespaces": ["team"]}, "default", False, id="then not its own"),
        pytest.param({"namespace_selector": FRIENDLY}, "team", True, id="a selected namespace"),
        pytest.param({"namespace_selector": FRIENDLY}, "default", False, id="one that is not selected"),
        pytest.param({"namespace_selector": FRIENDLY, "namespaces": ["default"]}, "default", True, id="listed besides"),
        pytest.param({"namespace_selector": {}}, "unheard-of", True, id="an empty selector means all namespaces"),
        pytest.param({"namespace_selector": NOT_MARKED}, "team", False, id="one that no labels match is like others"),
    ],
)
def test_which_namespaces_a_term_means(fields: dict[str, Any], there: str, expected: bool) -> None:
    pod = make_pod(affinity=affinity(required=[pod_term(ZONE, WEB, **fields)]))
    found = feasible(pod, TEAM, make_pod("there", namespace=there, node="b1", labels=WEB))
    assert found == (("b1",) if expected else ())


@pytest.mark.parametrize("release", ["v1.29", "v1.33", "v1.34", "v1.36", "v1.37"])
def test_a_selector_that_no_labels_match_means_all_namespaces_from_v1_34_to_v1_36(release: str) -> None:
    pod = make_pod(affinity=affinity(required=[pod_term(ZONE, WEB, namespace_selector=NOT_MARKED)]))
    there = make_pod("there", namespace="team", node="b1", labels=WEB)
    expected = ("b1",) if release in ("v1.34", "v1.36") else ()
    assert decide([*NODES, TEAM, there], pod, release=release).feasible == expected


@pytest.mark.parametrize(
    ("selector", "namespace", "kept_away"),
    [
        (FRIENDLY, "team", True),
        (FRIENDLY, "unheard-of", False),
        ({}, "unheard-of", True),
        (NOT_MARKED, "team", False),
        (NOT_MARKED, "unheard-of", True),
    ],
)
def test_terms_of_pods_that_are_there_go_by_the_labels_of_the_incoming_pods_namespace(
    selector: dict[str, Any], namespace: str, kept_away: bool
) -> None:
    term = pod_term(HOSTNAME, WEB, namespace_selector=selector)
    there = make_pod("there", node="a1", affinity=affinity(required=[term], anti=True))
    found = feasible(make_pod(namespace=namespace, labels=WEB), TEAM, there)
    assert ("a1" not in found) is kept_away


def test_match_label_keys_and_mismatch_label_keys_narrow_the_selector() -> None:
    blue, green = WEB | {"version": "blue"}, WEB | {"version": "green"}
    there = [make_pod("b", node="a1", labels=blue), make_pod("g", node="b1", labels=green)]
    same = affinity(required=[pod_term(ZONE, WEB, match_label_keys=["version"])])
    other = affinity(required=[pod_term(ZONE, WEB, mismatch_label_keys=["version"])])
    assert feasible(make_pod(labels=blue, affinity=same), *there) == ("a1", "a2")
    assert feasible(make_pod(labels=blue, affinity=other), *there) == ("b1",)


# -- scores --------------------------------------------------------------------------------------------------------

ZONES = [node("a", "a"), node("b", "b"), node("c", "c")]


def ranked(pod: Pod, *others: Pod, **args: Any) -> dict[str, int] | None:
    config = with_args(PLUGIN, **args) if args else None
    return scores(decide([*ZONES, *others], pod, config), PLUGIN)


def web(name: str, where: str) -> Pod:
    return make_pod(name, node=where, labels=WEB)


@pytest.mark.parametrize(
    ("preferred", "anti", "expected"),
    [
        # Two pods in a, one in b: 2 * 10, 1 * 10 and 0, stretched over 0..100.
        ([(10, pod_term(ZONE, WEB))], False, {"a": 100, "b": 50, "c": 0}),
        ([(10, pod_term(ZONE, WEB))], True, {"a": 0, "b": 50, "c": 100}),
        # 2 * 10 - nothing, 1 * 10 + 30, nothing: of 40.
        ([(10, pod_term(ZONE, WEB)), (30, pod_term(ZONE, DB))], False, {"a": 50, "b": 100, "c": 0}),
        # Nobody matches: the plugin does not score.
        ([(10, pod_term(ZONE, {"app": "none"}))], False, None),
    ],
)
def test_preferred_terms_of_the_pod(preferred: list[Any], anti: bool, expected: dict[str, int] | None) -> None:
    there = [web("w1", "a"), web("w2", "a"), web("w3", "b"), make_pod("d", node="b", labels=DB)]
    assert ranked(make_pod(affinity=affinity(preferred=preferred, anti=anti)), *there) == expected


@pytest.mark.parametrize("anti", [False, True])
def test_preferred_terms_of_pods_that_are_there(anti: bool) -> None:
    liking = affinity(preferred=[(5, pod_term(ZONE, WEB))], anti=anti)
    there = make_pod("there", node="a", affinity=liking)
    expected = {"a": 0, "b": 100, "c": 100} if anti else {"a": 100, "b": 0, "c": 0}
    assert ranked(make_pod(labels=WEB), there) == expected
    assert ranked(make_pod(labels=DB), there) is None
    assert ranked(make_pod(labels=WEB), there, ignorePreferredTermsOfExistingPods=True) is None


def test_required_terms_of_pods_that_are_there_pull_with_a_weight_of_their_own() -> None:
    wanting = make_pod("w", node="a", labels=WEB, affinity=affinity(required=[pod_term(ZONE, WEB)]))
    liking = make_pod("l", node="b", affinity=affinity(preferred=[(4, pod_term(ZONE, WEB))]))
    assert ranked(make_pod(labels=WEB), wanting, liking) == {"a": 25, "b": 100, "c": 0}
    assert ranked(make_pod(labels=WEB), wanting, liking, hardPodAffinityWeight=8) == {"a": 100, "b": 50, "c": 0}
    assert ranked(make_pod(labels=WEB), wanting, liking, hardPodAffinityWeight=0) == {"a": 0, "b": 100, "c": 0}


def test_equal_scores_are_all_zero() -> None:
    there = [web("w1", "a"), web("w2", "b"), web("w3", "c")]
    pod = make_pod(affinity=affinity(preferred=[(10, pod_term(ZONE, WEB))]))
    assert ranked(pod, *there) == {"a": 0, "b": 0, "c": 0}
