"""DynamicResources: pods without claims are not its business, pods with them are refused."""

from __future__ import annotations

from builders import decide, make_config, make_node, make_pod, scores
from podium.plugins import IN_TREE
from podium.plugins.dynamic_resources import DynamicResources

CLAIMS = [{"name": "gpu", "resourceClaimName": "one-gpu"}]


def test_a_pod_without_claims_is_let_through_and_scores_nothing() -> None:
    decision = decide([make_node("a"), make_node("b")], make_pod())

    assert decision.feasible == ("a", "b")
    assert scores(decision, "DynamicResources") == {"a": 0, "b": 0}


def test_a_pod_with_claims_is_refused_in_clear_words() -> None:
    decision = decide([make_node("a")], make_pod(resource_claims=CLAIMS))

    assert decision.error == (
        "plugin 'DynamicResources' failed in PreFilter: the pod has resourceClaims, which are not modelled: "
        "remove them, or disable DynamicResources"
    )


def test_it_can_be_disabled() -> None:
    config = make_config({"plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}})

    assert decide([make_node("a")], make_pod(resource_claims=CLAIMS), config).node == "a"


def test_without_its_prefilter_its_filter_refuses() -> None:
    config = make_config({"plugins": {"preFilter": {"disabled": [{"name": "DynamicResources"}]}}})

    assert "resourceClaims" in decide([make_node("a")], make_pod(resource_claims=CLAIMS), config).error


def test_it_serves_the_points_that_configurations_may_name() -> None:
    served = "preEnqueue preFilter filter postFilter podGroupPostFilter score reserve preBind"

    assert IN_TREE.points[DynamicResources.name] == set(served.split())
