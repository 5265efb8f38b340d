from __future__ import annotations

from typing import Any

import pytest

from builders import decide, make_node, make_pod, rejections

NODES = [make_node("cordoned", unschedulable=True), make_node("open")]
KEY = "node.kubernetes.io/unschedulable"


@pytest.mark.parametrize(
    ("tolerations", "feasible"),
    [
        pytest.param([], ("open",), id="none"),
        pytest.param([{"key": KEY, "operator": "Exists", "effect": "NoSchedule"}], ("cordoned", "open"), id="the key"),
        pytest.param([{"operator": "Exists"}], ("cordoned", "open"), id="everything"),
        pytest.param([{"key": KEY, "operator": "Exists", "effect": "NoExecute"}], ("open",), id="another effect"),
        pytest.param([{"key": KEY, "operator": "Equal", "value": "x"}], ("open",), id="another value"),
    ],
)
def test_only_pods_that_tolerate_it_go_to_cordoned_nodes(tolerations: list[Any], feasible: tuple[str, ...]) -> None:
    assert decide(NODES, make_pod(tolerations=tolerations)).feasible == feasible


def test_evicting_pods_does_not_help() -> None:
    expected = ("NodeUnschedulable", "UnschedulableAndUnresolvable", ("node(s) were unschedulable",))
    assert rejections(decide(NODES, make_pod())) == {"cordoned": expected}
