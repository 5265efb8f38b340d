"""Plugin arguments: their types, defaults and limits."""

from __future__ import annotations

import pytest

from podium.config import default_config, plugin_args
from podium.config.plugin_args import (
    EMPTIER_IS_BETTER,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    value_on_shape,
)
from podium.model.meta import NodeSelector, NodeSelectorTerm, SelectorRequirement
from podium.model.pod import NodeAffinity, PreferredSchedulingTerm, TopologySpreadConstraint
from podium.rules import NEWEST_RULES

from .documents import IN_TREE, args_of, document, off, parsed, paths_of, the_profile, with_args

ZONE = {"maxSkew": 2, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
RATIO = "RequestedToCapacityRatio"


def test_every_plugin_that_takes_arguments_has_defaults() -> None:
    (profile,) = default_config(IN_TREE, NEWEST_RULES).profiles
    assert profile.args == {
        "DefaultPreemption": plugin_args.DefaultPreemptionArgs(
            min_candidate_nodes_percentage=10, min_candidate_nodes_absolute=100
        ),
        "DynamicResources": plugin_args.DynamicResourcesArgs(filter_timeout=10, binding_timeout=600),
        "InterPodAffinity": plugin_args.InterPodAffinityArgs(
            hard_pod_affinity_weight=1, ignore_preferred_terms_of_existing_pods=False
        ),
        "NodeAffinity": plugin_args.NodeAffinityArgs(added_affinity=None),
        "NodeResourcesBalancedAllocation": plugin_args.NodeResourcesBalancedAllocationArgs(
            resources=(ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
        ),
        "NodeResourcesFit": plugin_args.NodeResourcesFitArgs(
            scoring_strategy=ScoringStrategy(
                type="LeastAllocated", resources=(ResourceSpec("cpu", 1), ResourceSpec("memory", 1))
            )
        ),
        "PodTopologySpread": plugin_args.PodTopologySpreadArgs(default_constraints=(), defaulting_type="System"),
        "VolumeBinding": plugin_args.VolumeBindingArgs(bind_timeout_seconds=600, shape=EMPTIER_IS_BETTER),
    }


def fit(**strategy: object) -> dict[str, object]:
    return {"scoringStrategy": strategy}


def ratio(*points: tuple[int, int]) -> dict[str, object]:
    shape = [{"utilization": utilization, "score": score} for utilization, score in points]
    return fit(type=RATIO, requestedToCapacityRatio={"shape": shape})


def expression(operator: str, *values: str, key: str = "a") -> dict[str, object]:
    return {"key": key, "operator": operator, "values": list(values)}


def required(*expressions: object, **term: object) -> dict[str, object]:
    terms = [{"matchExpressions": list(expressions), **term}]
    return {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def preferred(weight: int, *expressions: object) -> dict[str, object]:
    term = {"weight": weight, "preference": {"matchExpressions": list(expressions)}}
    return {"addedAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [term]}}


def spread(*constraints: object) -> dict[str, object]:
    return {"defaultingType": "List", "defaultConstraints": list(constraints)}


@pytest.mark.parametrize(
    ("plugin", "args", "typed"),
    [
        (
            "DefaultPreemption",
            {"minCandidateNodesPercentage": 0},
            plugin_args.DefaultPreemptionArgs(min_candidate_nodes_percentage=0),
        ),
        (
            "DynamicResources",
            {"filterTimeout": "0s", "bindingTimeout": "1m30s"},
            plugin_args.DynamicResourcesArgs(filter_timeout=0, binding_timeout=90),
        ),
        ("DynamicResources", {"filterTimeout": None}, plugin_args.DynamicResourcesArgs()),
        (
            "InterPodAffinity",
            {"hardPodAffinityWeight": 0, "ignorePreferredTermsOfExistingPods": True},
            plugin_args.InterPodAffinityArgs(hard_pod_affinity_weight=0, ignore_preferred_terms_of_existing_pods=True),
        ),
        (
            "NodeResourcesBalancedAllocation",
            {"resources": [{"name": "a"}, {"name": "b", "weight": 0}]},
            plugin_args.NodeResourcesBalancedAllocationArgs(resources=(ResourceSpec("a", 1), ResourceSpec("b", 1))),
        ),
        (
            "NodeResourcesFit",
            {"ignoredResources": ["example.com/a"], "ignoredResourceGroups": ["b.com"]},
            plugin_args.NodeResourcesFitArgs(ignored_resources=("example.com/a",), ignored_resource_groups=("b.com",)),
        ),
        (
            "NodeResourcesFit",
            fit(type="MostAllocated", resources=[{"name": "cpu"}, {"name": "x", "weight": 100}]),
            plugin_args.NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(
                    type="MostAllocated", resources=(ResourceSpec("cpu", 1), ResourceSpec("x", 100))
                )
            ),
        ),
        (
            "NodeResourcesFit",
            ratio((0, 10), (100, 0)),
            plugin_args.NodeResourcesFitArgs(
                scoring_strategy=ScoringStrategy(
                    type=RATIO, shape=(UtilizationShapePoint(0, 10), UtilizationShapePoint(100, 0))
                )
            ),
        ),
        (
            "PodTopologySpread",
            spread({**ZONE, "minDomains": 2, "nodeTaintsPolicy": "Honor", "matchLabelKeys": ["k"]}),
            plugin_args.PodTopologySpreadArgs(
                defaulting_type="List",
                default_constraints=(
                    TopologySpreadConstraint(
                        max_skew=2,
                        topology_key="zone",
                        when_unsatisfiable="ScheduleAnyway",
                        min_domains=2,
                        node_taints_policy="Honor",
                        match_label_keys=["k"],
                    ),
                ),
            ),
        ),
        (
            "VolumeBinding",
            {"bindTimeoutSeconds": 0},
            plugin_args.VolumeBindingArgs(bind_timeout_seconds=0, shape=EMPTIER_IS_BETTER),
        ),
        ("VolumeBinding", {"shape": None}, plugin_args.VolumeBindingArgs(shape=EMPTIER_IS_BETTER)),
        ("VolumeBinding", {"shape": []}, plugin_args.VolumeBindingArgs(shape=EMPTIER_IS_BETTER)),
    ],
)
def test_arguments(plugin: str, args: object, typed: object) -> None:
    assert args_of(plugin, args) == typed


def test_added_affinity() -> None:
    args = required(expression("In", "x"), matchFields=[expression("In", "n", key="metadata.name")])
    assert args_of("NodeAffinity", args) == plugin_args.NodeAffinityArgs(
        added_affinity=NodeAffinity(
            required=NodeSelector(
                node_selector_terms=[
                    NodeSelectorTerm(
                        match_expressions=[SelectorRequirement(key="a", operator="In", values=["x"])],
                        match_fields=[SelectorRequirement(key="metadata.name", operator="In", values=["n"])],
                    )
                ]
            )
        )
    )
    term = NodeSelectorTerm(match_expressions=[SelectorRequirement(key="a", operator="Exists")])
    assert args_of("NodeAffinity", preferred(3, expression("Exists"))) == plugin_args.NodeAffinityArgs(
        added_affinity=NodeAffinity(preferred=[PreferredSchedulingTerm(weight=3, preference=term)])
    )


REQUIRED = "addedAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms[0]"
PREFERRED = "addedAffinity.preferredDuringSchedulingIgnoredDuringExecution[0]"
SHAPE = "scoringStrategy.requestedToCapacityRatio.shape"


@pytest.mark.parametrize(
    ("plugin", "args", "path"),
    [
        ("DefaultPreemption", {"minCandidateNodesPercentage": 101}, "minCandidateNodesPercentage"),
        ("DefaultPreemption", {"minCandidateNodesAbsolute": -1}, "minCandidateNodesAbsolute"),
        ("DynamicResources", {"filterTimeout": "-1s"}, "filterTimeout"),
        ("DynamicResources", {"bindingTimeout": "999ms"}, "bindingTimeout"),
        ("InterPodAffinity", {"hardPodAffinityWeight": -1}, "hardPodAffinityWeight"),
        ("InterPodAffinity", {"hardPodAffinityWeight": 101}, "hardPodAffinityWeight"),
        ("NodeAffinity", required(expression("in", "x")), f"{REQUIRED}.matchExpressions[0].operator"),
        ("NodeAffinity", required(expression("In")), f"{REQUIRED}.matchExpressions[0].values"),
        ("NodeAffinity", required(expression("NotIn")), f"{REQUIRED}.matchExpressions[0].values"),
        ("NodeAffinity", required(expression("Exists", "x")), f"{REQUIRED}.matchExpressions[0].values"),
        ("NodeAffinity", required(expression("DoesNotExist", "x")), f"{REQUIRED}.matchExpressions[0].values"),
        ("NodeAffinity", required(expression("Gt")), f"{REQUIRED}.matchExpressions[0].values"),
        ("NodeAffinity", required(expression("Gt", "1", "2")), f"{REQUIRED}.matchExpressions[0].values"),
        ("NodeAffinity", required(expression("Lt", "x")), f"{REQUIRED}.matchExpressions[0].values[0]"),
        ("NodeAffinity", required(expression("Lt", str(2**63))), f"{REQUIRED}.matchExpressions[0].values[0]"),
        # An integer, but no label has such a value.
        ("NodeAffinity", required(expression("Gt", "-1")), f"{REQUIRED}.matchExpressions[0].values[0]"),
        ("NodeAffinity", required(expression("In", "a b")), f"{REQUIRED}.matchExpressions[0].values[0]"),
        ("NodeAffinity", required(expression("Exists", key="a b")), f"{REQUIRED}.matchExpressions[0].key"),
        ("NodeAffinity", required(matchFields=[expression("Gt", "1")]), f"{REQUIRED}.matchFields[0].operator"),
        ("NodeAffinity", required(matchFields=[expression("In", "1", "2")]), f"{REQUIRED}.matchFields[0].values"),
        ("NodeAffinity", preferred(1, expression("In")), f"{PREFERRED}.matchExpressions[0].values"),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "a", "weight": 2}]}, "resources[0].weight"),
        ("NodeResourcesBalancedAllocation", {"resources": [{"name": "a"}] * 2}, "resources[1].name"),
        ("NodeResourcesFit", {"ignoredResources": ["a b"]}, "ignoredResources[0]"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["a.com/b"]}, "ignoredResourceGroups[0]"),
        ("NodeResourcesFit", {"ignoredResourceGroups": ["a b"]}, "ignoredResourceGroups[0]"),
        ("NodeResourcesFit", fit(), "scoringStrategy.type"),
        ("NodeResourcesFit", fit(type="Tetris"), "scoringStrategy.type"),
        ("NodeResourcesFit", fit(type=RATIO), "scoringStrategy.requestedToCapacityRatio"),
        (
            "NodeResourcesFit",
            fit(type="MostAllocated", requestedToCapacityRatio={}),
            "scoringStrategy.requestedToCapacityRatio",
        ),
        (
            "NodeResourcesFit",
            fit(type="MostAllocated", resources=[{"name": "cpu", "weight": -1}]),
            "scoringStrategy.resources[0].weight",
        ),
        (
            "NodeResourcesFit",
            fit(type="MostAllocated", resources=[{"name": "cpu", "weight": 101}]),
            "scoringStrategy.resources[0].weight",
        ),
        ("NodeResourcesFit", fit(type=RATIO, requestedToCapacityRatio={}), SHAPE),
        ("NodeResourcesFit", ratio(), SHAPE),
        ("NodeResourcesFit", ratio((50, 1), (50, 2)), f"{SHAPE}[1].utilization"),
        ("NodeResourcesFit", ratio((0, 0), (101, 0)), f"{SHAPE}[1].utilization"),
        ("NodeResourcesFit", ratio((-1, 0)), f"{SHAPE}[0].utilization"),
        ("NodeResourcesFit", ratio((0, 11)), f"{SHAPE}[0].score"),
        ("NodeResourcesFit", ratio((0, -1)), f"{SHAPE}[0].score"),
        ("PodTopologySpread", {"defaultConstraints": [ZONE]}, "defaultingType"),
        ("PodTopologySpread", {"defaultingType": "Never"}, "defaultingType"),
        ("PodTopologySpread", spread({**ZONE, "maxSkew": 0}), "defaultConstraints[0].maxSkew"),
        ("PodTopologySpread", spread({**ZONE, "topologyKey": ""}), "defaultConstraints[0].topologyKey"),
        ("PodTopologySpread", spread({**ZONE, "topologyKey": "a b"}), "defaultConstraints[0].topologyKey"),
        ("PodTopologySpread", spread({**ZONE, "whenUnsatisfiable": ""}), "defaultConstraints[0].whenUnsatisfiable"),
        ("PodTopologySpread", spread({**ZONE, "whenUnsatisfiable": "X"}), "defaultConstraints[0].whenUnsatisfiable"),
        ("PodTopologySpread", spread({**ZONE, "labelSelector": {}}), "defaultConstraints[0].labelSelector"),
        ("PodTopologySpread", spread(ZONE, ZONE), "defaultConstraints[1]"),
        ("VolumeBinding", {"bindTimeoutSeconds": -1}, "bindTimeoutSeconds"),
        ("VolumeBinding", {"shape": [{"utilization": 0, "score": 11}]}, "shape[0].score"),
    ],
)
def test_refused_arguments(plugin: str, args: object, path: str) -> None:
    found = dict.fromkeys(paths_of(with_args(plugin, args)))
    assert list(found) == [f"profiles[0].pluginConfig[0].args.{path}"]


def test_preemption_needs_a_candidate() -> None:
    args = {"minCandidateNodesPercentage": 0, "minCandidateNodesAbsolute": 0}
    assert len(paths_of(with_args("DefaultPreemption", args))) == 2


@pytest.mark.parametrize(
    ("plugin", "args"),
    [
        # Nothing looks at a preference without weight, nor at a term without requirements.
        ("NodeAffinity", preferred(0, expression("In"))),
        ("NodeAffinity", required()),
        ("NodeAffinity", required(expression("Gt", "5"), expression("In", ""))),
        ("NodeAffinity", {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {}}}),
        ("NodeResourcesFit", fit(type="LeastAllocated", resources=[{"name": "cpu"}, {"name": "cpu"}])),
        ("NodeResourcesFit", ratio((40, 3))),
        ("PodTopologySpread", spread(ZONE, {**ZONE, "whenUnsatisfiable": "DoNotSchedule"})),
        ("PodTopologySpread", spread({**ZONE, "nodeAffinityPolicy": "Whatever", "minDomains": 0})),
        ("Nope", "anything"),
        ("NodeName", {"unused": True}),
    ],
)
def test_accepted_arguments(plugin: str, args: object) -> None:
    assert parsed(with_args(plugin, args))


def test_arguments_of_fit_are_checked_only_where_it_runs() -> None:
    bad = [{"name": "NodeResourcesFit", "args": fit(type="Tetris")}]
    assert parsed(document(profiles=[{"plugins": {"multiPoint": off("NodeResourcesFit")}, "pluginConfig": bad}]))
    assert paths_of(document(profiles=[{"plugins": {"filter": off("*")}, "pluginConfig": bad}]))


def test_arguments_of_other_plugins_are_checked_everywhere() -> None:
    bad = [{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]
    assert paths_of(document(profiles=[{"plugins": {"multiPoint": off("InterPodAffinity")}, "pluginConfig": bad}]))


def test_arguments_of_other_plugins_stay_as_they_are() -> None:
    profile = the_profile(with_args("Mine", {"deep": [1, {"a": None}]}))
    assert profile.args["Mine"] == {"deep": [1, {"a": None}]}


def test_arguments_are_given_once() -> None:
    twice = [{"name": "Mine"}, {"name": "Mine"}]
    assert paths_of(document(profiles=[{"pluginConfig": twice}])) == ["profiles[0].pluginConfig[1]"]


def test_the_kind_of_the_arguments_is_not_the_plugin() -> None:
    assert paths_of(with_args("NodeResourcesFitArgs", {})) == ["profiles[0].pluginConfig[0].name"]


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta3"])
def test_a_beta_version_reads_arguments_of_any_version(version: str) -> None:
    args = {"apiVersion": f"kubescheduler.config.k8s.io/{version}", "kind": "VolumeBindingArgs"}
    config = document("v1beta2", profiles=[{"pluginConfig": [{"name": "VolumeBinding", "args": args}]}])
    assert the_profile(config).args["VolumeBinding"] == plugin_args.VolumeBindingArgs(shape=EMPTIER_IS_BETTER)


@pytest.mark.parametrize(
    ("utilization", "score"), [(0, 20), (10, 20), (11, 30), (13, 50), (14, 47), (15, 44), (16, 40), (100, 40)]
)
def test_a_score_between_the_points_of_a_shape(utilization: int, score: int) -> None:
    # What is added to the score of the point before is truncated toward zero: 50 - 3.33 is 47.
    shape = [UtilizationShapePoint(10, 2), UtilizationShapePoint(13, 5), UtilizationShapePoint(16, 4)]

    assert value_on_shape(shape, utilization) == score
    assert value_on_shape([UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10)], utilization, 10) == (
        utilization // 10
    )
