"""Which plugins run at each extension point, in which order, with which weight."""

from __future__ import annotations

import pytest

from podium.config import EXTENSION_POINTS, PluginRef, default_config, parse_config
from podium.rules import NEWEST_RULES
from profiles import DEFAULT_FILTERS as FILTERS

from .documents import IN_TREE, document, errors_of, names_at, off, on, parsed, paths_of, the_profile, with_plugins

DEFAULT_WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "NodeResourcesFit": 1,
    "VolumeBinding": 1,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "DynamicResources": 2,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}


@pytest.mark.parametrize(
    ("point", "names"),
    [
        ("preEnqueue", "SchedulingGates DynamicResources DefaultPreemption"),
        ("queueSort", "PrioritySort"),
        (
            "preFilter",
            "NodeName NodeUnschedulable TaintToleration NodeAffinity NodePorts NodeResourcesFit VolumeRestrictions "
            "NodeVolumeLimits VolumeBinding VolumeZone "
            "PodTopologySpread InterPodAffinity DynamicResources NodeDeclaredFeatures",
        ),
        ("filter", " ".join(FILTERS)),
        ("postFilter", "DynamicResources DefaultPreemption"),
        (
            "preScore",
            "TaintToleration NodeAffinity NodeResourcesFit VolumeBinding PodTopologySpread InterPodAffinity "
            "NodeResourcesBalancedAllocation",
        ),
        ("score", " ".join(DEFAULT_WEIGHTS)),
        ("reserve", "VolumeBinding DynamicResources"),
        ("permit", ""),
        ("preBind", "VolumeBinding DynamicResources"),
        ("bind", "DefaultBinder"),
        ("postBind", ""),
    ],
)
def test_default_plugins(point: str, names: str) -> None:
    (profile,) = default_config(IN_TREE, NEWEST_RULES).profiles
    assert names_at(profile, point) == names.split()


def test_default_weights() -> None:
    (profile,) = default_config(IN_TREE, NEWEST_RULES).profiles
    assert dict(profile.points["score"]) == DEFAULT_WEIGHTS
    assert set(profile.points) == set(EXTENSION_POINTS)


def test_a_default_plugin_that_is_not_known_is_left_out() -> None:
    known = {name: points for name, points in IN_TREE.items() if name != "DynamicResources"}
    (profile,) = default_config(known, NEWEST_RULES).profiles
    assert names_at(profile, "postFilter") == ["DefaultPreemption"]
    assert "DynamicResources" not in profile.args


def test_v1beta2_has_its_own_points_and_weights() -> None:
    profile = the_profile(document("v1beta2"))
    ones = ("NodeResourcesBalancedAllocation", "ImageLocality", "InterPodAffinity", "NodeResourcesFit", "NodeAffinity")
    weights = {**dict.fromkeys(ones, 1), "PodTopologySpread": 2, "TaintToleration": 1}
    assert list(profile.points["score"]) == list(weights.items())
    assert names_at(profile, "filter") == ["NodeUnschedulable", "NodeName", *FILTERS[2:-2]]
    assert names_at(profile, "preEnqueue") == ["SchedulingGates"]


def test_v1beta3_has_the_plugins_of_v1() -> None:
    assert the_profile(document("v1beta3")) == the_profile(document("v1"))


def test_v1beta2_reconfigures_a_default_in_place() -> None:
    plugins = {"score": on(NodeResourcesFit=7) | off("ImageLocality")}
    profile = the_profile(document("v1beta2", profiles=[{"plugins": plugins}]))
    assert profile.points["score"][:3] == (
        PluginRef("NodeResourcesBalancedAllocation", 1),
        PluginRef("InterPodAffinity", 1),
        PluginRef("NodeResourcesFit", 7),
    )


def test_a_point_may_turn_off_one_plugin_or_all() -> None:
    one = the_profile(with_plugins(filter=off("NodeName")))
    assert names_at(one, "filter") == [name for name in FILTERS if name != "NodeName"]
    everything = the_profile(with_plugins(filter=off("*")))
    assert names_at(everything, "filter") == []
    assert names_at(everything, "preFilter") == names_at(one, "preFilter")


def test_multi_point_turns_a_plugin_off_everywhere() -> None:
    profile = the_profile(with_plugins(multiPoint=off("NodeAffinity")))
    assert all("NodeAffinity" not in names_at(profile, point) for point in EXTENSION_POINTS)
    assert "NodeAffinity" not in profile.args


def test_disabling_what_does_not_exist_is_nothing() -> None:
    assert the_profile(with_plugins(filter=off("Nope"))) == the_profile(document())


def test_a_weight_at_multi_point_keeps_the_place() -> None:
    profile = the_profile(with_plugins(multiPoint=on(NodeAffinity=9)))
    assert dict(profile.points["score"]) == DEFAULT_WEIGHTS | {"NodeAffinity": 9}
    assert names_at(profile, "filter") == FILTERS


def test_the_weight_of_the_score_point_wins() -> None:
    profile = the_profile(with_plugins(multiPoint=on(ImageLocality=9), score=on(ImageLocality=4)))
    assert dict(profile.points["score"])["ImageLocality"] == 4


def test_a_weight_of_zero_is_one() -> None:
    profile = the_profile(with_plugins(score=on(NodeAffinity=0)))
    assert dict(profile.points["score"])["NodeAffinity"] == 1


def test_what_a_point_lists_of_multi_point_comes_first() -> None:
    profile = the_profile(with_plugins(filter=on("NodePorts", "NodeName")))
    rest = [name for name in FILTERS if name not in ("NodePorts", "NodeName")]
    assert names_at(profile, "filter") == ["NodePorts", "NodeName", *rest]


def test_what_a_point_lists_and_turns_off_comes_last() -> None:
    profile = the_profile(with_plugins(filter=on("NodePorts") | off("NodePorts")))
    assert names_at(profile, "filter") == [*(name for name in FILTERS if name != "NodePorts"), "NodePorts"]


def test_a_plugin_of_the_user_comes_after_the_defaults() -> None:
    config = with_plugins(multiPoint=on("Mine"), permit=on("Theirs"))
    known = IN_TREE | {"Mine": frozenset({"filter", "score"}), "Theirs": frozenset({"permit", "filter"})}
    (profile,) = parse_config(config, known, rules=NEWEST_RULES).profiles
    assert names_at(profile, "filter") == [*FILTERS, "Mine"]
    assert profile.points["score"][-1] == PluginRef("Mine", 1)
    assert names_at(profile, "permit") == ["Theirs"]


@pytest.mark.parametrize(
    ("plugins", "path"),
    [
        ({"filter": on("Nope")}, "filter.enabled"),
        ({"multiPoint": on("Nope")}, "multiPoint.enabled"),
        ({"multiPoint": on("EBSLimits")}, "multiPoint.enabled"),
        ({"filter": on("")}, "filter.enabled"),
        ({"score": on("NodeName")}, "score.enabled"),
        ({"filter": on("NodeName", "NodeName")}, "filter.enabled"),
        ({"multiPoint": on("NodeName", "NodeName")}, "multiPoint.enabled"),
        ({"multiPoint": on("GangScheduling", "GangScheduling") | off("*")}, "multiPoint.enabled"),
        ({"queueSort": off("*")}, "queueSort"),
        ({"queueSort": off("PrioritySort")}, "queueSort"),
        ({"bind": off("*")}, "bind"),
        ({"multiPoint": off("DefaultBinder")}, "bind"),
        ({"score": on(NodeAffinity=-1)}, "score"),
        ({"multiPoint": on(TaintToleration=-1)}, "score"),
        ({"placementScore": on("Nope")}, "placementScore.enabled"),
    ],
)
def test_refused_plugins(plugins: dict[str, object], path: str) -> None:
    assert f"profiles[0].plugins.{path}" in paths_of(with_plugins(**plugins))


@pytest.mark.parametrize(
    "plugins",
    [
        {"multiPoint": off("*"), "queueSort": on("PrioritySort"), "bind": on("DefaultBinder")},
        {"multiPoint": on("PrioritySort", "DefaultBinder") | off("*")},
        {"queueSort": on("PrioritySort")},
        {"queueSort": on("PrioritySort") | off("*")},
        {"multiPoint": on("GangScheduling")},
        # Twice at multiPoint, but overridden at the only point where it would run twice.
        {"multiPoint": on("PrioritySort", "PrioritySort"), "queueSort": on("PrioritySort")},
        {"score": on(NodeAffinity=2**31 - 1, ImageLocality=2**31 - 1)},
        # kube-scheduler notices a negative weight by the plugin that follows it.
        {"multiPoint": on(ImageLocality=-1)},
        {"placementGenerate": on("TopologyPlacementGenerator"), "placementScore": on(PodGroupPodsCount=2)},
    ],
)
def test_accepted_plugins(plugins: dict[str, object]) -> None:
    assert parsed(with_plugins(**plugins))


@pytest.mark.parametrize("name", ["AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"])
def test_removed_plugins_are_refused_even_in_plugin_config(name: str) -> None:
    assert paths_of(with_plugins(filter=on(name))) == ["profiles[0].plugins.filter.enabled[0]"]
    assert paths_of(document(profiles=[{"pluginConfig": [{"name": name}]}])) == ["profiles[0].pluginConfig[0]"]
    assert parsed(document("v1beta3", profiles=[{"pluginConfig": [{"name": name}]}]))


def test_every_unknown_plugin_is_told() -> None:
    errors = errors_of(with_plugins(filter=on("A", "B"), score=on("C")))
    assert [error.split('"')[1] for error in errors] == ["A", "B", "C"]
