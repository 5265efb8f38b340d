from __future__ import annotations

from typing import Any

import pytest

from builders import decide, make_node, make_pod, rejections, scores, with_args
from podium.config.plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    REQUESTED_TO_CAPACITY_RATIO,
    NodeResourcesFitArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
)
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.testing import check_plugin

PLUGIN = "NodeResourcesFit"
UNSCHEDULABLE, UNRESOLVABLE = "Unschedulable", "UnschedulableAndUnresolvable"
NODE = make_node("n", cpu="4", memory="8Gi", pods=3, gpu=2, ephemeral_storage="10Gi", hugepages="64Mi")
THERE = make_pod("there", node="n", requests={"cpu": "3", "memory": "6Gi", "example.com/gpu": 1})


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        pytest.param({"cpu": "1", "memory": "2Gi", "example.com/gpu": 1}, None, id="all that is left"),
        pytest.param({"cpu": "1001m"}, (UNSCHEDULABLE, ("Insufficient cpu",)), id="more cpu than is left"),
        pytest.param({"cpu": "4001m"}, (UNRESOLVABLE, ("Insufficient cpu",)), id="more cpu than there is"),
        pytest.param({"memory": "3Gi"}, (UNSCHEDULABLE, ("Insufficient memory",)), id="memory"),
        pytest.param(
            {"ephemeral-storage": "11Gi"}, (UNRESOLVABLE, ("Insufficient ephemeral-storage",)), id="ephemeral storage"
        ),
        pytest.param({"hugepages-2Mi": "66Mi"}, (UNRESOLVABLE, ("Insufficient hugepages-2Mi",)), id="huge pages"),
        pytest.param({"example.com/gpu": 2}, (UNSCHEDULABLE, ("Insufficient example.com/gpu",)), id="extended"),
        pytest.param({"vendor.io/x": 1}, (UNRESOLVABLE, ("Insufficient vendor.io/x",)), id="a resource it lacks"),
        pytest.param(
            {"memory": "3Gi", "cpu": "2"}, (UNSCHEDULABLE, ("Insufficient cpu", "Insufficient memory")), id="two"
        ),
        pytest.param(
            {"memory": "9Gi", "cpu": "2"},
            (UNRESOLVABLE, ("Insufficient cpu", "Insufficient memory")),
            id="two, one of them hopeless",
        ),
        pytest.param({"cpu": "0", "vendor.io/x": 0}, None, id="nothing of something"),
    ],
)
def test_requests_must_fit_what_is_left(requests: dict[str, Any], expected: tuple[str, tuple[str, ...]] | None) -> None:
    decision = decide([NODE, THERE], make_pod(requests=requests))
    assert rejections(decision) == ({} if expected is None else {"n": (PLUGIN, *expected)})


def test_a_node_takes_so_many_pods() -> None:
    full = [make_pod(f"p{number}", node="n") for number in range(3)]
    assert rejections(decide([NODE, *full], make_pod())) == {"n": (PLUGIN, UNSCHEDULABLE, ("Too many pods",))}
    decision = decide([NODE, *full], make_pod(requests={"cpu": "5"}))
    assert rejections(decision) == {"n": (PLUGIN, UNRESOLVABLE, ("Too many pods", "Insufficient cpu"))}


def container(name: str, cpu: str, **fields: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", "resources": {"requests": {"cpu": cpu}}, **fields}


@pytest.mark.parametrize(
    ("spec", "fits"),
    [
        # The container asks for 1 cpu, and 4 are there.
        pytest.param({"init_containers": [container("a", "4"), container("b", "3")]}, True, id="the largest init fits"),
        pytest.param({"init_containers": [container("a", "4100m")]}, False, id="the largest init does not"),
        pytest.param({"init_containers": [container("s", "3", restartPolicy="Always")]}, True, id="sidecar and main"),
        pytest.param({"init_containers": [container("s", "3100m", restartPolicy="Always")]}, False, id="one too large"),
        pytest.param(
            {"init_containers": [container("s", "2", restartPolicy="Always"), container("a", "2500m")]},
            False,
            id="an init container runs next to the sidecars before it",
        ),
        pytest.param(
            {"init_containers": [container("a", "2500m"), container("s", "2", restartPolicy="Always")]},
            True,
            id="but not next to those after it",
        ),
        pytest.param({"overhead": {"cpu": "3"}}, True, id="overhead fits"),
        pytest.param({"overhead": {"cpu": "3001m"}}, False, id="overhead does not"),
        pytest.param({"resources": {"requests": {"cpu": "4"}}}, True, id="a pod-level request takes their place"),
        pytest.param({"resources": {"requests": {"cpu": "4001m"}}}, False, id="a pod-level request that is too large"),
    ],
)
def test_what_a_pod_asks_for_as_a_whole(spec: dict[str, Any], fits: bool) -> None:
    assert (decide([NODE], make_pod(requests={"cpu": "1"}, **spec)).node == "n") is fits


@pytest.mark.parametrize(
    "args", [{"ignoredResources": ["vendor.io/x"]}, {"ignoredResourceGroups": ["vendor.io"]}], ids=["name", "group"]
)
def test_resources_others_take_care_of_can_be_ignored(args: dict[str, Any]) -> None:
    assert decide([NODE], make_pod(requests={"vendor.io/x": 1}), with_args(PLUGIN, **args)).node == "n"


def strategy(kind: str, **fields: Any) -> dict[str, Any]:
    resources = [{"name": name, "weight": weight} for name, weight in fields.pop("resources").items()]
    return with_args(PLUGIN, scoringStrategy={"type": kind, "resources": resources, **fields})


def shape(*points: tuple[int, int]) -> dict[str, Any]:
    listed = [{"utilization": utilization, "score": score} for utilization, score in points]
    return {"requestedToCapacityRatio": {"shape": listed}}


EVEN = {"cpu": 1, "memory": 1}
# On `used` a pod without requests counts for 100m and 200Mi.
PAIR = [make_node("free", cpu="4", memory="8Gi"), make_node("used", cpu="4", memory="8Gi"), make_pod("x", node="used")]
POD = make_pod(requests={"cpu": "1", "memory": "2Gi"})


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        # free: 3000/4000 and 6/8 are left; used: 2900/4000 = 72 and 5944/8192 = 72 (both rounded down).
        pytest.param(None, {"free": 75, "used": 72}, id="LeastAllocated is the default"),
        pytest.param(strategy("LeastAllocated", resources=EVEN), {"free": 75, "used": 72}, id="LeastAllocated"),
        # free: 1000/4000 and 2/8 in use; used: 1100/4000 = 27 and 2248/8192 = 27.
        pytest.param(strategy("MostAllocated", resources=EVEN), {"free": 25, "used": 27}, id="MostAllocated"),
        pytest.param(
            strategy("RequestedToCapacityRatio", resources=EVEN, **shape((0, 0), (100, 10))),
            {"free": 25, "used": 27},
            id="a straight line up",
        ),
        # From 100 at 0 % down to 0 at 50 %: 100 - 2 * 25 and 100 - 2 * 27.
        pytest.param(
            strategy("RequestedToCapacityRatio", resources=EVEN, **shape((0, 10), (50, 0), (100, 10))),
            {"free": 50, "used": 46},
            id="a line down and up",
        ),
        pytest.param(
            strategy("RequestedToCapacityRatio", resources=EVEN, **shape((30, 4), (60, 8))),
            {"free": 40, "used": 40},
            id="level before the first point",
        ),
    ],
)
def test_strategies(config: dict[str, Any] | None, expected: dict[str, int]) -> None:
    assert scores(decide(PAIR, POD, config), PLUGIN) == expected


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        # cpu is used to 50 %, memory to 25 %.
        ({"cpu": 1, "memory": 1}, (50 + 75) // 2),
        ({"cpu": 3, "memory": 1}, (3 * 50 + 75) // 4),
        ({"memory": 2}, 75),
        ({"cpu": 1, "example.com/gpu": 5}, 50),
        ({"cpu": 1, "ephemeral-storage": 1}, 50),
    ],
)
def test_resources_have_weights_and_those_not_there_do_not_count(resources: dict[str, int], expected: int) -> None:
    nodes = [make_node("a", cpu="4", memory="8Gi", gpu=8), make_node("b", cpu="4", memory="8Gi", gpu=8)]
    pod = make_pod(requests={"cpu": "2", "memory": "2Gi"})
    decision = decide(nodes, pod, strategy("LeastAllocated", resources=resources))
    assert scores(decision, PLUGIN) == {"a": expected, "b": expected}


def test_an_extended_resource_counts_for_pods_that_ask_for_it() -> None:
    nodes = [make_node("two", gpu=2), make_node("eight", gpu=8)]
    config = strategy("MostAllocated", resources={"example.com/gpu": 1})
    assert scores(decide(nodes, make_pod(requests={"example.com/gpu": 2}), config), PLUGIN) == {"two": 100, "eight": 25}


def test_a_resource_that_scores_nothing_is_left_out_of_a_ratio() -> None:
    nodes = [make_node("a", cpu="4", memory="8Gi"), make_node("b", cpu="4", memory="8Gi")]
    config = strategy("RequestedToCapacityRatio", resources=EVEN, **shape((0, 10), (50, 0), (100, 10)))
    # cpu at 50 % scores 0, memory at 25 % scores 50: the mean is of memory alone.
    pod = make_pod(requests={"cpu": "2", "memory": "2Gi"})
    assert scores(decide(nodes, pod, config), PLUGIN) == {"a": 50, "b": 50}


def test_a_node_beyond_its_capacity_scores_as_empty_handed() -> None:
    crowd = [make_pod(f"p{number}", node="tiny") for number in range(4)]
    nodes = [make_node("tiny", cpu="300m", memory="600Mi"), make_node("large")]
    least = scores(decide([*nodes, *crowd], make_pod()), PLUGIN)
    assert least is not None
    assert least["tiny"] == 0
    most = scores(decide([*nodes, *crowd], make_pod(), strategy("MostAllocated", resources=EVEN)), PLUGIN)
    assert most is not None
    assert most["tiny"] == 100


FOUR_RESOURCES = tuple(
    ResourceSpec(name, weight)
    for weight, name in enumerate(("cpu", "memory", "ephemeral-storage", "example.com/gpu"), 1)
)
HILL = tuple(UtilizationShapePoint(*point) for point in ((0, 0), (30, 7), (70, 10), (100, 1)))


@pytest.mark.parametrize(
    "strategy",
    [
        ScoringStrategy(type=LEAST_ALLOCATED, resources=FOUR_RESOURCES),
        ScoringStrategy(type=MOST_ALLOCATED, resources=FOUR_RESOURCES),
        ScoringStrategy(type=REQUESTED_TO_CAPACITY_RATIO, resources=FOUR_RESOURCES, shape=HILL),
    ],
    ids=lambda strategy: strategy.type,
)
@pytest.mark.parametrize("memory", ["8Gi", "100Pi"])
def test_one_node_at_a_time_it_says_the_same(strategy: ScoringStrategy, memory: str) -> None:
    large = make_node("large", cpu="7", memory=memory, gpu=3, ephemeral_storage="3Gi")
    pod = make_pod("asks", requests={"cpu": "300m", "memory": "1Gi", "example.com/gpu": 1})
    check_plugin(NodeResourcesFit, NodeResourcesFitArgs(scoring_strategy=strategy), objects=[large, NODE, THERE, pod])
