from __future__ import annotations

from typing import Any

import pytest

from builders import decide, make_node, make_pod, scores, with_args
from podium.config.plugin_args import NodeResourcesBalancedAllocationArgs, ResourceSpec
from podium.plugins.node_resources_balanced_allocation import NodeResourcesBalancedAllocation
from podium.testing import check_plugin

PLUGIN = "NodeResourcesBalancedAllocation"


def balance(requests: dict[str, Any], *there: dict[str, Any], config: dict[str, Any] | None = None) -> int | None:
    """The score of a node of 4 cpu, 8Gi and 2 gpu with these pods on it."""
    node, other = make_node("n", cpu="4", memory="8Gi", gpu=2), make_node("other", gpu=2)
    pods = [make_pod(f"p{number}", node="n", requests=each) for number, each in enumerate(there)]
    found = scores(decide([node, other, *pods], make_pod(requests=requests), config), PLUGIN)
    return None if found is None else found["n"]


# A node is 100 even when its fractions are the same, less by their standard deviation; half of the difference the pod
# makes, before to after, goes up or down from 75.
@pytest.mark.parametrize(
    ("requests", "there", "expected"),
    [
        # 0/0 -> 1/4, 2/8: 100 -> 100.
        pytest.param({"cpu": "1", "memory": "2Gi"}, [], 75, id="even before and after"),
        # 0/0 -> 2/4, 2/8: 100 -> 100 - 12.5 = 87; 50 + (50 - 13) / 2, rounded down.
        pytest.param({"cpu": "2", "memory": "2Gi"}, [], 68, id="made uneven"),
        # 1/4, 0 -> 1/4, 2/8: 87 -> 100; 50 + (50 + 13) / 2, rounded down.
        pytest.param({"memory": "2Gi"}, [{"cpu": "1"}], 81, id="made even"),
        # 4/4, 0 -> 4/4, 8/8: 50 -> 100; 50 + (50 + 50) / 2.
        pytest.param({"memory": "8Gi"}, [{"cpu": "4"}], 100, id="made perfectly even"),
        # 0/0 -> 4/4, 0: 100 -> 50; 50 + (50 - 50) / 2.
        pytest.param({"cpu": "4"}, [], 50, id="made as uneven as can be"),
        pytest.param({"cpu": "1", "memory": "2Gi"}, [{}], 75, id="pods without requests count for nothing"),
    ],
)
def test_evenness(requests: dict[str, Any], there: list[dict[str, Any]], expected: int) -> None:
    assert balance(requests, *there) == expected


@pytest.mark.parametrize("requests", [{}, {"example.com/gpu": 1}])
def test_a_pod_that_asks_for_none_of_the_resources_is_not_scored(requests: dict[str, Any]) -> None:
    assert balance(requests) is None


def test_with_three_resources_it_is_the_standard_deviation() -> None:
    three = [{"name": name, "weight": 1} for name in ("cpu", "memory", "example.com/gpu")]
    config = with_args(PLUGIN, resources=three)
    # 1/4, 2/8, 1/2: mean 1/3, deviation sqrt((2 * (1/12)^2 + (1/6)^2) / 3) = 0.1178; 88. 50 + (50 - 12) / 2.
    assert balance({"cpu": "1", "memory": "2Gi", "example.com/gpu": 1}, config=config) == 69


@pytest.mark.parametrize("names", [("cpu",), ("cpu", "memory"), ("cpu", "memory", "example.com/gpu")])
def test_one_node_at_a_time_it_says_the_same(names: tuple[str, ...]) -> None:
    args = NodeResourcesBalancedAllocationArgs(resources=tuple(ResourceSpec(name) for name in names))
    nodes = [make_node(f"n{gpus}", cpu="7", memory="9Gi", gpu=gpus) for gpus in range(3)]
    there = [make_pod(f"p{n}", node=f"n{n}", requests={"cpu": f"{n + 1}100m", "memory": f"{n}Gi"}) for n in range(3)]
    pod = make_pod("asks", requests={"cpu": "300m", "memory": "1Gi", "example.com/gpu": 1})
    check_plugin(NodeResourcesBalancedAllocation, args, objects=[*nodes, *there, pod])
