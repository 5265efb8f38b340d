"""How scores differ from release to release."""

from __future__ import annotations

from typing import Any

import pytest

from builders import MEBI, expression, make_node, make_object, make_pod, node_affinity, scores, spread
from podium.model import Object
from releases.releasing import BETA_ZONE, argument, decide_as, policy, scored

SERVICE = make_object("Service", "web", spec={"selector": {"app": "web"}})
SMALLEST = -(2**63)
OLD = ("v1.8", "v1.14")


def test_taints_are_scaled_in_floats_in_v1_8() -> None:
    """One of three taints: (1 - 1/3) * 10 is 6.67; in integers 10 - 10/3 is 7."""
    taints = ["a=:PreferNoSchedule", "b=:PreferNoSchedule", "c=:PreferNoSchedule"]
    nodes = [make_node("one", taints=taints[:1]), make_node("three", taints=taints), make_node("none")]

    assert scored("v1.8", nodes, make_pod(), "TaintTolerationPriority") == {"one": 6, "three": 0, "none": 10}
    assert scored("v1.14", nodes, make_pod(), "TaintTolerationPriority") == {"one": 7, "three": 0, "none": 10}


@pytest.mark.parametrize("release", [*OLD, "v1.18"])
def test_preferred_names_and_empty_preferences_count_nothing(release: str) -> None:
    preferred = [
        (50, {"matchFields": [expression("metadata.name", "In", "a")]}),
        (30, {}),
        (20, {"matchExpressions": [expression("disk", "Exists")]}),
    ]
    nodes = [make_node("a"), make_node("b", labels={"disk": "ssd"})]
    pod = make_pod(affinity=node_affinity(preferred=preferred))

    decision = decide_as(release, nodes, pod, policy((), ["NodeAffinityPriority"]))

    assert decision.scores[0].raw == {"a": 0, "b": 20}


# -- spreading -------------------------------------------------------------------------------------------------------

ZONED: list[Object] = [make_node("a", labels={BETA_ZONE: "1"}), make_node("b", labels={BETA_ZONE: "2"}), make_node("c")]


def test_a_zone_without_any_sibling_divides_by_zero_in_v1_8() -> None:
    """0/0 becomes the smallest integer; nodes without a zone do not divide."""
    pod = make_pod(labels={"app": "web"})

    assert scored("v1.8", [*ZONED, SERVICE], pod, "SelectorSpreadPriority") == {"a": SMALLEST, "b": SMALLEST, "c": 10}
    assert scored("v1.14", [*ZONED, SERVICE], pod, "SelectorSpreadPriority") == {"a": 10, "b": 10, "c": 10}


@pytest.mark.parametrize(("weight", "product"), [(1, SMALLEST), (2, 0), (3, SMALLEST)])
def test_and_the_product_with_the_weight_wraps_around(weight: int, product: int) -> None:
    document = policy((), [{"name": "SelectorSpreadPriority", "weight": weight}])

    decision = decide_as("v1.8", [*ZONED, SERVICE], make_pod(labels={"app": "web"}), document)

    assert decision.totals == {"a": product, "b": product, "c": 10 * weight}
    assert decision.scores[0].weighted == decision.totals
    assert decision.node == "c"


def test_pods_of_nobody_are_not_spread_by_zone() -> None:
    assert scored("v1.8", ZONED, make_pod(), "SelectorSpreadPriority") == {"a": 10, "b": 10, "c": 10}


def test_v1_8_counts_pods_that_match_any_selector_and_later_releases_all() -> None:
    controller = make_object("ReplicationController", "web", spec={"selector": {"tier": "front"}, "template": {}})
    siblings = [
        make_pod("of-service", node="a", labels={"app": "web"}),
        make_pod("of-both", node="b", labels={"app": "web", "tier": "front"}),
    ]
    objects = [make_node("a"), make_node("b"), SERVICE, controller, *siblings]
    pod = make_pod(labels={"app": "web", "tier": "front"})

    assert scored("v1.8", objects, pod, "SelectorSpreadPriority") == {"a": 0, "b": 0}
    assert scored("v1.14", objects, pod, "SelectorSpreadPriority") == {"a": 10, "b": 0}


def test_service_spreading_looks_at_services_alone_in_v1_8() -> None:
    replica_set = make_object("ReplicaSet", "web", spec={"selector": {"matchLabels": {"tier": "front"}}})
    objects = [make_node("a"), make_node("b"), replica_set, make_pod("there", node="a", labels={"tier": "front"})]
    pod = make_pod(labels={"tier": "front"})

    assert scored("v1.8", objects, pod, "ServiceSpreadingPriority") == {"a": 10, "b": 10}
    assert scored("v1.14", objects, pod, "ServiceSpreadingPriority") == {"a": 0, "b": 10}


@pytest.mark.parametrize("release", OLD)
def test_terminating_pods_and_pods_of_other_namespaces_are_no_siblings(release: str) -> None:
    others = [
        make_pod("going", node="a", labels={"app": "web"}, deleted=True),
        make_pod("far", node="a", labels={"app": "web"}, namespace="far"),
    ]
    objects = [make_node("a"), make_node("b"), SERVICE, *others]

    assert scored(release, objects, make_pod(labels={"app": "web"}), "SelectorSpreadPriority") == {"a": 10, "b": 10}


def test_service_anti_affinity_counts_pods_everywhere_in_v1_8() -> None:
    """Four pods of the service, one of them terminating and one on a node that is not feasible."""
    nodes = [
        *(make_node(name, labels={"rack": rack}) for name, rack in (("a", "1"), ("b", "2"))),
        make_node("cordoned", labels={"rack": "2"}, unschedulable=True),
        make_node("bare"),
    ]
    pods = [
        make_pod("p1", node="a", labels={"app": "web"}),
        make_pod("p2", node="a", labels={"app": "web"}),
        make_pod("p3", node="b", labels={"app": "web"}, deleted=True),
        make_pod("p4", node="cordoned", labels={"app": "web"}),
    ]
    objects = [*nodes, *pods, SERVICE]
    by_rack = argument("Spread", "serviceAntiAffinity", 1, label="rack")

    assert scored("v1.8", objects, make_pod(labels={"app": "web"}), by_rack) == {"a": 5, "b": 7, "bare": 0}
    assert scored("v1.14", objects, make_pod(labels={"app": "web"}), by_rack) == {"a": 0, "b": 10, "bare": 0}


# -- images ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "expected"), [(22, 0), (23, 1), (120, 1), (121, 2), (999, 10), (1000, 10), (5000, 10)]
)
def test_the_buckets_of_image_sizes_in_v1_8(size: int, expected: int) -> None:
    nodes = [make_node("has", images={"app": size * MEBI}), make_node("lacks")]

    assert scored("v1.8", nodes, make_pod(image="app"), "ImageLocalityPriority")["has"] == expected


def test_image_names_get_a_tag_since_v1_14() -> None:
    nodes = [make_node(name, images={"app:latest": 1000 * MEBI}) for name in ("a", "b")]

    assert scored("v1.8", nodes, make_pod(image="app"), "ImageLocalityPriority") == {"a": 0, "b": 0}
    assert scored("v1.14", nodes, make_pod(image="app"), "ImageLocalityPriority") == {"a": 10, "b": 10}


# -- resources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", OLD)
def test_least_and_most_requested(release: str) -> None:
    """Cpu 3000 of 4000 left, memory 6 of 8: 7.5 cut to 7 for both."""
    nodes = [make_node("a", cpu="4", memory="8Gi"), make_node("b", cpu="1", memory="8Gi")]
    pod = make_pod(requests={"cpu": "1", "memory": "2Gi"})

    assert scored(release, nodes, pod, "LeastRequestedPriority") == {"a": 7, "b": (0 + 7) // 2}
    assert scored(release, nodes, pod, "MostRequestedPriority") == {"a": 2, "b": (10 + 2) // 2}


@pytest.mark.parametrize("release", OLD)
def test_containers_that_do_not_say_count_100_milli_and_200_mebi(release: str) -> None:
    nodes = [make_node("a", cpu="200m", memory="400Mi"), make_node("b", cpu="100m", memory="200Mi")]

    assert scored(release, nodes, make_pod(), "LeastRequestedPriority") == {"a": 5, "b": 0}
    asked = make_pod(requests={"cpu": "0", "memory": "0"})
    assert scored(release, nodes, asked, "LeastRequestedPriority") == {"a": 10, "b": 10}


def test_a_ratio_leaves_out_resources_that_score_nothing_since_v1_18() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 50, "score": 0}, {"utilization": 100, "score": 10}]
    ratio = argument("Ratio", "requestedToCapacityRatioArguments", 1, shape=shape)
    nodes = [make_node("a", cpu="1", memory="8Gi"), make_node("b", cpu="1", memory="8Gi")]
    pod = make_pod(requests={"cpu": "1", "memory": "1Gi"})

    old = decide_as("v1.14", nodes, pod, policy((), [ratio]))
    new = decide_as("v1.18", nodes, pod, policy((), [ratio]))

    assert scores(old, "Ratio") == {"a": 5, "b": 5}
    assert scores(new, "RequestedToCapacityRatio") == {"a": 100, "b": 100}


def test_resource_limits_give_one_point() -> None:
    nodes = [make_node("small", cpu="1", memory="1Gi"), make_node("large")]
    limited = {
        "name": "main",
        "resources": {"limits": {"cpu": "2", "memory": "2Gi"}, "requests": {"cpu": "1m", "memory": "1"}},
    }
    pod = make_pod(containers=[limited])
    gates = {"ResourceLimitsPriorityFunction": True}

    assert scored("v1.14", nodes, pod, "ResourceLimitsPriority", gates=gates) == {"small": 0, "large": 1}


def test_overhead_is_added_in_whole_units_to_v1_18s_score() -> None:
    """A quarter of a core of overhead adds one milli to what the score counts, not 250."""
    nodes = [make_node("a", cpu="100m", memory="400Mi"), make_node("b", cpu="1", memory="400Mi")]
    pod = make_pod(requests={"cpu": "90m", "memory": "0"}, overhead={"cpu": "250m"})

    decision = decide_as("v1.18", nodes, pod, policy((), ["LeastRequestedPriority"]))

    assert scores(decision, "NodeResourcesLeastAllocated") == {"a": (9 + 100) // 2, "b": (90 + 100) // 2}


# -- PodTopologySpread of v1.18 --------------------------------------------------------------------------------------


def spread_scores(**pod: Any) -> dict[str, int] | None:
    nodes = [make_node("a", labels={"rack": "1"}), make_node("b", labels={"rack": "2"}), make_node("bare")]
    running = [make_pod(f"p{number}", node="a", labels={"app": "web"}) for number in range(3)]
    running.append(make_pod("other", node="b", labels={"app": "web"}))
    decision = decide_as("v1.18", [*nodes, *running], make_pod(**pod), policy((), ["EvenPodsSpreadPriority"]))
    return scores(decision, "PodTopologySpread")


def test_v1_18_scores_the_share_of_pods_that_are_elsewhere() -> None:
    """Three pods in one rack, one in the other: (4 - 3) / (4 - 1) of a hundred, and a hundred."""
    soft = spread("rack", {"app": "web"}, hard=False)

    assert spread_scores(topology_spread_constraints=[soft]) == {"a": 33, "b": 100, "bare": 0}


def test_an_empty_selector_counts_every_pod_of_the_namespace() -> None:
    soft = spread("rack", {}, hard=False)

    assert spread_scores(topology_spread_constraints=[soft]) == {"a": 33, "b": 100, "bare": 0}


def test_without_constraints_every_node_scores_zero() -> None:
    assert spread_scores() == {"a": 0, "b": 0, "bare": 0}
