"""KubeSchedulerConfiguration v1alpha2: what it may say, and what v1.18 refuses."""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_node, make_object, make_pod, scores
from podium.engine.release import release_of
from podium.errors import ConfigError
from releases.releasing import decide_as

Fields = dict[str, Any]


def config(plugins: Fields | None = None, args: Fields | None = None, **fields: Any) -> Fields:
    """A configuration of one profile: enabled and disabled plugins per point, and arguments by plugin."""
    profile: Fields = {"plugins": plugins or {}}
    profile["pluginConfig"] = [{"name": name, "args": given} for name, given in (args or {}).items()]
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1alpha2",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [profile],
        **fields,
    }


def names(*plugins: str | tuple[str, int]) -> list[Fields]:
    return [{"name": each} if isinstance(each, str) else {"name": each[0], "weight": each[1]} for each in plugins]


def refusal(document: Fields) -> str:
    with pytest.raises(ConfigError) as caught:
        release_of("v1.18").set_up(document)
    assert "\n" not in str(caught.value)
    return str(caught.value)


NODES = [make_node("a", cpu="2"), make_node("b", cpu="4")]
ONLY = {"score": {"disabled": names("*"), "enabled": names(("NodeResourcesMostAllocated", 7))}}


def test_plugins_are_enabled_after_the_defaults_that_are_not_disabled() -> None:
    effective = release_of("v1.18").set_up(config(ONLY)).effective["default-scheduler"]

    assert effective["priorities"] == {"NodeResourcesMostAllocated": 7}
    assert len(effective["predicates"]) == 15


def test_a_default_plugin_cannot_be_enabled_again_without_being_disabled() -> None:
    again = {"score": {"enabled": names(("ImageLocality", 5))}}

    assert refusal(config(again)) == 'plugin "ImageLocality" already registered as "ScorePlugin"'


def test_without_a_weight_it_is_one() -> None:
    plain = {"score": {"disabled": names("*"), "enabled": names("ImageLocality")}}

    assert release_of("v1.18").set_up(config(plain)).effective["default-scheduler"]["priorities"] == {
        "ImageLocality": 1
    }


def test_several_profiles() -> None:
    document = config()
    document["profiles"] = [{"schedulerName": "one"}, {"schedulerName": "two", "plugins": ONLY}]

    decision = decide_as("v1.18", NODES, make_pod(scheduler_name="two"), document)

    assert [found.plugin for found in decision.scores] == ["NodeResourcesMostAllocated"]


@pytest.mark.parametrize(
    ("document", "said"),
    [
        (config({"filter": {"enabled": names("NoSuch")}}), 'FilterPlugin "NoSuch" does not exist'),
        (
            config({"filter": {"enabled": names("ImageLocality")}}),
            'plugin "ImageLocality" does not extend FilterPlugin plugin',
        ),
        (config({"queueSort": {"disabled": names("*")}}), "exactly one queue sort plugin has to be enabled"),
        (config({"bind": {"disabled": names("*")}}), "at least one bind plugin is needed"),
        (
            config(args={"InterPodAffinity": {"hardPodAffinityWeight": 101}}),
            'error initializing plugin "InterPodAffinity": hardPodAffinityWeight: Invalid value: 101: '
            "not in valid range [0-100]",
        ),
        (
            config({"score": {"enabled": names("RequestedToCapacityRatio")}}),
            'error initializing plugin "RequestedToCapacityRatio": at least one point must be specified',
        ),
        (
            config(args={"PodTopologySpread": {"defaultConstraints": [{"topologyKey": "rack", "maxSkew": 0}]}}),
            'error initializing plugin "PodTopologySpread": defaultConstraints[0].maxSkew: Invalid value: 0: '
            'must be greater than zero; error initializing plugin "PodTopologySpread": '
            'defaultConstraints[0].whenUnsatisfiable: Unsupported value: "": supported values: '
            '"DoNotSchedule", "ScheduleAnyway"',
        ),
        (
            config(percentageOfNodesToScore=101),
            "percentageOfNodesToScore: Invalid value: 101: not in valid range [0-100]",
        ),
        (config(podInitialBackoffSeconds=0), "podInitialBackoffSeconds: Invalid value: 0: must be greater than 0"),
        (config(unknown=1), 'unknown field "unknown"'),
        (config({"score": {"enable": []}}), 'unknown field "profiles[0].plugins.score.enable"'),
        (
            config() | {"profiles": [{"schedulerName": "x"}, {"schedulerName": "x"}]},
            'profiles[1].schedulerName: Duplicate value: "x"',
        ),
    ],
)
def test_what_is_refused(document: Fields, said: str) -> None:
    assert refusal(document) == said


def test_arguments_of_plugins_that_do_not_run_are_not_looked_at() -> None:
    odd = {"NodeLabel": {"presentLabels": 5}, "RequestedToCapacityRatio": {"shape": []}, "Unheard": {}}

    assert release_of("v1.18").set_up(config(args=odd)).effective


def test_arguments_for_the_same_plugin_twice() -> None:
    document = config(args={"NodeResourcesFit": {}})
    document["profiles"][0]["pluginConfig"] *= 2

    assert refusal(document) == "repeated config for plugin NodeResourcesFit"


def test_a_filter_without_its_pre_filter_fails_every_pod() -> None:
    unprepared = config({"preFilter": {"disabled": names("NodePorts")}})

    decision = decide_as("v1.18", NODES, make_pod(), unprepared)

    assert decision.error == "plugin 'NodePorts' failed: error reading \"PreFilterNodePorts\" from cycleState"


def test_a_score_without_its_pre_score_fails_every_pod_that_is_scored() -> None:
    unprepared = config({"preScore": {"disabled": names("TaintToleration")}})

    assert decide_as("v1.18", NODES[:1], make_pod(), unprepared).node == "a"
    assert 'error reading "PreScoreTaintToleration"' in decide_as("v1.18", NODES, make_pod(), unprepared).error


def test_resources_that_least_allocated_is_told_to_count_are_ignored() -> None:
    """v1.18 takes the argument, and scores cpu and memory all the same."""
    args = {"NodeResourcesLeastAllocated": {"resources": [{"name": "memory", "weight": 1}]}}
    plugins = {"score": {"disabled": names("*"), "enabled": names("NodeResourcesLeastAllocated")}}
    pod = make_pod(requests={"cpu": "1", "memory": "1Gi"})

    told = decide_as("v1.18", NODES, pod, config(plugins, args))

    assert scores(told, "NodeResourcesLeastAllocated") == {"a": (50 + 87) // 2, "b": (75 + 87) // 2}


def test_default_constraints_hold_for_pods_that_something_selects() -> None:
    constraint = {"topologyKey": "rack", "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    document = config(args={"PodTopologySpread": {"defaultConstraints": [constraint]}})
    nodes = [make_node("a", labels={"rack": "1"}), make_node("b", labels={"rack": "2"})]
    objects = [*nodes, make_pod("there", node="a", labels={"app": "web"})]
    pod = make_pod(labels={"app": "web"})

    assert decide_as("v1.18", objects, pod, document).feasible == ("a", "b")
    service = make_object("Service", "web", spec={"selector": {"app": "web"}})
    decision = decide_as("v1.18", [*objects, service], pod, document)
    assert decision.feasible == ("b",)
    assert decision.rejected["a"].reasons == ("node(s) didn't match pod topology spread constraints",)


def test_arguments_are_read_leniently_with_a_warning() -> None:
    args = {
        "InterPodAffinity": {"hardPodAffinityWeight": 5, "note": ""},
        "NodeLabel": {"presentLabels": ["rack"]},
        "NodeName": {"note": ""},
    }

    assert release_of("v1.18").set_up(config(args=args)).warnings == (
        'v1.18 does not know and passes over "InterPodAffinity.note"',
        "v1.18 passes over the pluginConfig of NodeName, which takes none",
        "v1.18 passes over the pluginConfig of NodeLabel, which does not run",
    )


def test_a_field_of_the_configuration_itself_must_be_known() -> None:
    assert refusal(config(algorithmSource={"provider": "DefaultProvider"})) == 'unknown field "algorithmSource"'
