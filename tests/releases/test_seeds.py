"""Worked examples from explanations of kube-scheduler's code, each as the release they explain would have it."""

from __future__ import annotations

from collections import Counter

import pytest

from builders import (
    MEBI,
    affinity,
    decide,
    expression,
    make_config,
    make_node,
    make_object,
    make_pod,
    node_affinity,
    pod_term,
    scores,
    with_args,
)
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Node, Pod
from podium.releases import HostPriority, normalize_reduce
from releases.releasing import BETA_ZONE, decide_as, failures, policy, scored

OLD = ("v1.8", "v1.14", "v1.18")

# -- node1 and node2 are in the north, node3 and node4 in the south --------------------------------------------------

REGIONS: list[Node] = [
    make_node(name, labels={"region": region})
    for name, region in (("node1", "north"), ("node2", "north"), ("node3", "south"), ("node4", "south"))
]


@pytest.mark.parametrize("release", OLD)
def test_anti_affinity_is_symmetric(release: str) -> None:
    """A on node2 does not want B in its region: B, which says nothing about A, can go to the south only."""
    pod_a = make_pod("a", node="node2", affinity=affinity(required=[pod_term("region", {"app": "b"})], anti=True))

    decision = decide_as(release, [*REGIONS, pod_a], make_pod("b", labels={"app": "b"}))

    assert decision.feasible == ("node3", "node4")


@pytest.mark.parametrize("release", OLD)
def test_affinity_goes_where_the_other_pod_is(release: str) -> None:
    """A wants to be in B's region, and B is on node1: node1 and node2 will do."""
    pod_b = make_pod("b", node="node1", labels={"app": "b"})
    pod_a = make_pod("a", affinity=affinity(required=[pod_term("region", {"app": "b"})]))

    assert decide_as(release, [*REGIONS, pod_b], pod_a).feasible == ("node1", "node2")


@pytest.mark.parametrize("release", OLD)
def test_affinity_is_not_symmetric(release: str) -> None:
    """That A must be where B is does not mean that B must be where A is; it only had better be."""
    pod_a = make_pod("a", node="node1", affinity=affinity(required=[pod_term("region", {"app": "b"})]))
    name = "InterPodAffinity" if release == "v1.18" else "InterPodAffinityPriority"

    decision = decide_as(release, [*REGIONS, pod_a], make_pod("b", labels={"app": "b"}))

    assert decision.feasible == ("node1", "node2", "node3", "node4")
    best = 100 if release == "v1.18" else 10
    assert scores(decision, name) == {"node1": best, "node2": best, "node3": 0, "node4": 0}


@pytest.mark.parametrize("release", OLD)
def test_the_first_pod_of_a_group_that_wants_to_be_together_may_go_anywhere(release: str) -> None:
    together = affinity(required=[pod_term("region", {"app": "a"})])
    scheduler = Scheduler(Cluster.from_objects(REGIONS), release=release, tie_break="first")

    assert len(scheduler.decide(make_pod("a1", labels={"app": "a"}, affinity=together)).feasible) == 4
    scheduler.place(make_pod("a1", labels={"app": "a"}, affinity=together))
    assert scheduler.decide(make_pod("a2", labels={"app": "a"}, affinity=together)).feasible == ("node1", "node2")


# -- Map and Reduce --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "reverse", "expected"),
    [
        ([5, 20], False, [2, 10]),  # 10 * 5 / 20, without its fraction
        ([5, 20], True, [8, 0]),
        ([3, 10], True, [7, 0]),  # 3 becomes 7
        ([4, 10], True, [6, 0]),  # 4 becomes 6
        ([0, 0], False, [0, 0]),
        ([0, 0], True, [10, 10]),
    ],
)
def test_normalize_reduce(counts: list[int], reverse: bool, expected: list[int]) -> None:
    given = [HostPriority(f"n{place}", count) for place, count in enumerate(counts)]

    assert [priority.score for priority in normalize_reduce(given, reverse=reverse)] == expected


def test_a_map_may_score_beyond_ten_and_reduce_brings_it_back() -> None:
    """Node affinity adds up weights, 80 and 20 here; NormalizeReduce makes 10, 8 and 2 of 100, 80 and 20."""
    nodes = [
        make_node("both", labels={"a": "", "b": ""}),
        make_node("a", labels={"a": ""}),
        make_node("b", labels={"b": ""}),
    ]
    preferred = [
        (80, {"matchExpressions": [expression("a", "Exists")]}),
        (20, {"matchExpressions": [expression("b", "Exists")]}),
    ]
    pod = make_pod(affinity=node_affinity(preferred=preferred))

    decision = decide_as("v1.14", nodes, pod, policy((), ["NodeAffinityPriority"]))

    assert decision.scores[0].raw == {"both": 100, "a": 80, "b": 20}
    assert decision.scores[0].normalized == {"both": 10, "a": 8, "b": 2}


def test_inter_pod_affinity_priority_scales_between_the_least_and_the_most() -> None:
    """Counts of 20, 5 and -3: 10 * (5 - -3) / (20 - -3) is 3 and some."""
    nodes = [make_node(name, labels={"h": name}) for name in ("a", "b", "c")]
    running = [make_pod(f"on-{name}", node=name, labels={"on": name}) for name in ("a", "b", "c")]
    rules = affinity(preferred=[(20, pod_term("h", {"on": "a"})), (5, pod_term("h", {"on": "b"}))])
    rules |= affinity(preferred=[(3, pod_term("h", {"on": "c"}))], anti=True)

    found = scored("v1.14", [*nodes, *running], make_pod(affinity=rules), "InterPodAffinityPriority")

    assert found == {"a": 10, "b": 3, "c": 0}


def test_inter_pod_affinity_priority_is_zero_everywhere_without_any_affinity() -> None:
    assert scored("v1.14", [make_node("a"), make_node("b")], make_pod(), "InterPodAffinityPriority") == {"a": 0, "b": 0}


# -- 10 * (max - count) / max, and two thirds of it for the zone ------------------------------------------------------


def spread_world(*, zones: bool) -> list[Node | Pod]:
    labels = {"a": "z1", "b": "z1", "c": "z2", "d": "z2"}
    nodes = [make_node(name, labels={BETA_ZONE: zone} if zones else {}) for name, zone in labels.items()]
    counts = {"a": 4, "b": 1, "c": 2, "d": 0}
    pods = [
        make_pod(f"{node}{number}", node=node, labels={"app": "web"})
        for node, count in counts.items()
        for number in range(count)
    ]
    return [*nodes, *pods]


SERVICE = make_object("Service", "web", spec={"selector": {"app": "web"}})


@pytest.mark.parametrize("release", ["v1.8", "v1.14"])
def test_spreading_over_nodes(release: str) -> None:
    objects = [*spread_world(zones=False), SERVICE]

    found = scored(release, objects, make_pod(labels={"app": "web"}), "SelectorSpreadPriority")

    assert found == {"a": 0, "b": 7, "c": 5, "d": 10}


@pytest.mark.parametrize("release", ["v1.8", "v1.14"])
def test_spreading_over_zones_too(release: str) -> None:
    """Zone z1 has five of the pods, z2 two: 10 * (5 - 2) / 5 = 6; a third of the node's score, two of the zone's."""
    objects = [*spread_world(zones=True), SERVICE]

    found = scored(release, objects, make_pod(labels={"app": "web"}), "SelectorSpreadPriority")

    assert found == {"a": 0, "b": int(7.5 / 3), "c": int(5 / 3 + 6 * 2 / 3), "d": int(10 / 3 + 6 * 2 / 3)}


# -- resources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "scale"), [("v1.8", 10), ("v1.14", 10)])
def test_balanced_allocation_is_ten_minus_the_difference_of_the_fractions(release: str, scale: int) -> None:
    """Half the cpu and a quarter of the memory: (1 - |0.5 - 0.25|) * 10 = 7.5."""
    nodes = [make_node("uneven", cpu="4", memory="8Gi"), make_node("even", cpu="4", memory="4Gi")]
    pod = make_pod(requests={"cpu": "2", "memory": "2Gi"})

    assert scored(release, nodes, pod, "BalancedResourceAllocation") == {"uneven": 7, "even": scale}


def test_balanced_allocation_of_a_full_node_is_zero() -> None:
    nodes = [make_node("full", cpu="2", memory="8Gi"), make_node("free", cpu="4", memory="8Gi")]

    found = scored("v1.14", nodes, make_pod(requests={"cpu": "2", "memory": "1Gi"}), "BalancedResourceAllocation")

    assert found["full"] == 0


def strategy(kind: str, **fields: object) -> dict[str, object]:
    resources = [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]
    args = {"scoringStrategy": {"type": kind, "resources": resources, **fields}}
    return with_args("NodeResourcesFit", **args)


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # (capacity - used) * 100 / capacity of cpu and memory, averaged
        (strategy("LeastAllocated"), {"half": (50 + 75) // 2, "most": (20 + 75) // 2}),
        # used * 100 / capacity
        (strategy("MostAllocated"), {"half": (50 + 25) // 2, "most": (80 + 25) // 2}),
        # f(used / capacity), here a line that falls until 50 percent and rises from there
        (
            strategy(
                "RequestedToCapacityRatio",
                requestedToCapacityRatio={
                    "shape": [
                        {"utilization": 0, "score": 10},
                        {"utilization": 50, "score": 0},
                        {"utilization": 100, "score": 10},
                    ]
                },
            ),
            {"half": 50, "most": round((60 + 50) / 2)},
        ),
    ],
    ids=["LeastAllocated", "MostAllocated", "RequestedToCapacityRatio"],
)
def test_the_three_strategies_of_node_resources_fit(config: dict[str, object], expected: dict[str, int]) -> None:
    nodes = [make_node("half", cpu="4", memory="8Gi"), make_node("most", cpu="2500m", memory="8Gi")]

    decision = decide(nodes, make_pod(requests={"cpu": "2", "memory": "2Gi"}), config)

    assert scores(decision, "NodeResourcesFit") == expected


def test_the_weights_example_without_balanced_allocation() -> None:
    weights = {
        "NodeResourcesFit": 2,
        "InterPodAffinity": 1,
        "NodeAffinity": 1,
        "PodTopologySpread": 2,
        "TaintToleration": 1,
        "ImageLocality": 1,
    }
    enabled = [{"name": name, "weight": weight} for name, weight in weights.items()]
    disabled = [{"name": "NodeResourcesBalancedAllocation"}]
    config = make_config({"plugins": {"score": {"enabled": enabled, "disabled": disabled}}})
    nodes = [make_node("a", cpu="4", memory="8Gi"), make_node("b", cpu="8", memory="16Gi")]

    decision = decide(nodes, make_pod(requests={"cpu": "2", "memory": "4Gi"}), config)

    used = {scored.plugin: scored.weight for scored in decision.scores}
    assert "NodeResourcesBalancedAllocation" not in used
    # The example does not speak of these, which stay as they are by default.
    assert used.items() <= weights.items() | {("DynamicResources", 2), ("VolumeBinding", 1)}
    # 50 and 75 of 100 are left; twice that, and the same from the others for both nodes.
    assert decision.totals["b"] - decision.totals["a"] == 2 * (75 - 50)


def test_a_resource_that_a_node_has_none_of_is_left_out_of_the_mean() -> None:
    """Not counted as zero: 50 of 100 for cpu and memory, whatever weight the gpu has."""
    resources = [
        {"name": "cpu", "weight": 1},
        {"name": "memory", "weight": 1},
        {"name": "example.com/gpu", "weight": 2},
    ]
    args = {"scoringStrategy": {"type": "LeastAllocated", "resources": resources}}
    config = with_args("NodeResourcesFit", **args)
    nodes = [make_node("a", cpu="4", memory="8Gi"), make_node("b", cpu="4", memory="8Gi")]

    decision = decide(nodes, make_pod(requests={"cpu": "2", "memory": "4Gi"}), config)

    assert scores(decision, "NodeResourcesFit") == {"a": 50, "b": 50}


@pytest.mark.parametrize("release", OLD)
def test_an_empty_preference_likes_no_node(release: str) -> None:
    nodes = [make_node("a", labels={"disk": "ssd"}), make_node("b")]
    preferred = [(80, {}), (20, {"matchExpressions": [expression("disk", "Exists")]})]
    name = "NodeAffinity" if release == "v1.18" else "NodeAffinityPriority"

    decision = decide_as(release, nodes, make_pod(affinity=node_affinity(preferred=preferred)))

    found = next(scored for scored in decision.scores if scored.plugin == name)
    assert found.raw == {"a": 20, "b": 0}


def test_only_taints_that_prefer_are_counted() -> None:
    """Asked of no predicate that would reject it, a node with another taint is as good as one without."""
    nodes = [make_node("a", taints=["x=:PreferNoSchedule"]), make_node("b", taints=["y=:NoExecute"]), make_node("c")]

    assert scored("v1.8", nodes, make_pod(), "TaintTolerationPriority") == {"a": 0, "b": 10, "c": 10}


# -- choosing --------------------------------------------------------------------------------------------------------


def test_reservoir_sampling_is_uniform() -> None:
    """1200 draws among 4 equal nodes: each is taken about 300 times (chi square with 3 degrees below 16.3)."""
    cluster = Cluster.from_objects([make_node(name) for name in "abcd"])
    scheduler = Scheduler(cluster, release="v1.18", seed=7)
    seen: Counter[str | None] = Counter()
    pod = make_pod()
    for _ in range(1200):
        seen[scheduler.schedule(pod)] += 1
        cluster.remove(pod)

    assert sum((count - 300) ** 2 / 300 for count in seen.values()) < 16.3
    assert len(seen) == 4


@pytest.mark.parametrize(("release", "order"), [("v1.14", "abcabc"), ("v1.8", "cbacba")])
def test_nodes_with_the_same_score_take_turns(release: str, order: str) -> None:
    """lastNodeIndex counts up with every pod; v1.8 has sorted the nodes by name, the largest first."""
    cluster = Cluster.from_objects([make_node(name) for name in "abc"])
    scheduler = Scheduler(cluster, policy((), ["EqualPriority"]), release=release)

    assert "".join(str(scheduler.place(make_pod(f"p{number}")).node) for number in range(6)) == order


@pytest.mark.parametrize("release", OLD)
def test_without_priorities_every_node_scores_one(release: str) -> None:
    decision = decide_as(release, [make_node("a"), make_node("b")], make_pod(), policy((), ()))

    assert decision.totals == {"a": 1, "b": 1}


def test_prefer_avoid_pods_decides_over_everything_else() -> None:
    """Weight 10000: a node that would rather not have the controller's pods loses to one that is nearly full."""
    avoid = '{"preferAvoidPods": [{"podSignature": {"podController": {"kind": "ReplicaSet", "uid": "rs"}}}]}'
    annotations = {"scheduler.alpha.kubernetes.io/preferAvoidPods": avoid}
    shy = make_object(
        "Node", "shy", annotations=annotations, status={"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}
    )
    pod = make_pod(owner={"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "rs", "uid": "rs"})

    decision = decide_as("v1.14", [shy, make_node("tiny", cpu="200m", memory="256Mi")], pod)

    assert decision.node == "tiny"
    assert decision.totals["tiny"] - decision.totals["shy"] > 90000


def test_images_count_by_their_size_between_23_mebi_and_1000() -> None:
    """v1.8 gives a bucket of ten to the plain size; later releases scale it by the share of nodes that have it."""
    nodes = [make_node("has", images={"app": 500 * MEBI, "app:latest": 500 * MEBI}), make_node("lacks")]
    pod = make_pod(image="app")

    assert scored("v1.8", nodes, pod, "ImageLocalityPriority") == {"has": 10 * (500 - 23) // 977 + 1, "lacks": 0}
    assert scored("v1.14", nodes, pod, "ImageLocalityPriority") == {"has": 10 * (250 - 23) // 977, "lacks": 0}


def test_all_predicates_are_asked_in_v1_8_and_only_until_one_fails_in_v1_14() -> None:
    nodes = [make_node("bad", cpu="1", taints=["team=a:NoSchedule"])]
    pod = make_pod(requests={"cpu": "2"}, node_selector={"disk": "ssd"})

    both = {"bad": {"Insufficient cpu", "MatchNodeSelector", "PodToleratesNodeTaints"}}
    assert failures(decide_as("v1.8", nodes, pod)) == both
    # GeneralPredicates collects inside; taints are not reached.
    first = {"bad": {"Insufficient cpu", "node(s) didn't match node selector"}}
    assert failures(decide_as("v1.14", nodes, pod)) == first
    every = policy(None, None, alwaysCheckAllPredicates=True)
    assert len(failures(decide_as("v1.14", nodes, pod, every))["bad"]) == 3
    assert len(failures(decide_as("v1.18", nodes, pod))["bad"]) == 1
    assert len(failures(decide_as("v1.18", nodes, pod, every))["bad"]) == 3
