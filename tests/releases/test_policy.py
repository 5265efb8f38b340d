"""Policy files: what they may say, what it comes to, and what is refused, in which words."""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_node, make_object, make_pod, scores
from podium.engine.release import Options, release_of
from podium.errors import ConfigError
from podium.framework import FilterPlugin, Registry, Status
from podium.plugins import IN_TREE
from podium.releases._predicates import PodToleratesNodeNoExecuteTaints
from podium.releases.policy import parse_policy
from podium.releases.rules import V1_8, V1_14
from releases.releasing import argument, decide_as, failures, policy

Fields = dict[str, Any]

POLICY_RELEASES = ("v1.8", "v1.14", "v1.18")
OLD = ("v1.8", "v1.14")


def effective(release: str, document: Fields, **options: Any) -> Fields:
    found = release_of(release).set_up(document, options=Options(**options)).effective
    return dict(found.get("default-scheduler", found))


def refusal(release: str, document: Fields) -> str:
    with pytest.raises(ConfigError) as caught:
        release_of(release).set_up(document)
    assert "\n" not in str(caught.value)
    return str(caught.value)


# -- what lists mean -------------------------------------------------------------------------------------------------


def test_lists_that_are_left_out_mean_nothing_in_v1_8_and_the_defaults_later() -> None:
    left_out = policy(None, None)

    assert effective("v1.8", left_out)["predicates"] == ["CheckNodeCondition"]
    assert effective("v1.8", left_out)["priorities"] == {}
    assert effective("v1.14", left_out)["predicates"] == release_of("v1.14").set_up().effective["predicates"]
    assert len(effective("v1.18", left_out)["priorities"]) == 9


def test_empty_lists_leave_what_is_mandatory() -> None:
    empty = policy((), ())

    assert effective("v1.8", empty)["predicates"] == ["CheckNodeCondition"]
    assert effective("v1.14", empty)["predicates"] == ["CheckNodeUnschedulable", "PodToleratesNodeTaints"]
    assert effective("v1.18", empty)["predicates"] == ["NodeUnschedulable", "TaintToleration"]
    assert effective("v1.14", empty)["priorities"] == {}


@pytest.mark.parametrize("release", OLD)
def test_a_name_given_twice_counts_once_with_its_last_weight(release: str) -> None:
    twice = policy((), [{"name": "EqualPriority", "weight": 2}, {"name": "EqualPriority", "weight": 3}])

    assert effective(release, twice)["priorities"] == {"EqualPriority": 3}


# -- fields nobody knows ---------------------------------------------------------------------------------------------

STRANGE = policy([{"name": "GeneralPredicates", "note": ""}], [{"name": "EqualPriority", "weight": 1}], comment="ours")


def warnings(release: str, document: Fields) -> tuple[str, ...]:
    return release_of(release).set_up(document).warnings


@pytest.mark.parametrize("release", OLD)
def test_they_are_passed_over_before_v1_18_with_a_warning(release: str) -> None:
    assert effective(release, STRANGE)["priorities"] == {"EqualPriority": 1}
    assert warnings(release, STRANGE) == (f'{release} does not know and passes over "predicates[0].note", "comment"',)


def test_v1_18_refuses_them() -> None:
    assert refusal("v1.18", STRANGE) == 'unknown field "predicates[0].note"; unknown field "comment"'


@pytest.mark.parametrize(
    "argued",
    [
        argument("Mine", "labelsPresence", labels=["a"], presence=True, note=""),
        argument("Mine", "serviceAffinity", labels=["a"], note=""),
    ],
)
def test_nor_within_an_argument(argued: Fields) -> None:
    (kind,) = argued["argument"]

    assert refusal("v1.18", policy([argued])) == f'unknown field "predicates[0].argument.{kind}.note"'
    assert len(warnings("v1.14", policy([argued]))) == 1


@pytest.mark.parametrize("release", POLICY_RELEASES)
def test_an_extender_may_say_anything_in_every_release(release: str) -> None:
    extender = {"urlPrefix": "http://x/", "weight": 1, "color": "red", "tlsConfig": {"Insecure": True, "mood": "good"}}

    assert warnings(release, policy((), (), extenders=[extender])) == (
        f'{release} does not know and passes over "extenders[0].color", "extenders[0].tlsConfig.mood"',
    )


def test_fields_that_came_later_are_not_known_before() -> None:
    shape = [{"utilization": 0, "score": 10}]
    ratio = argument("Ratio", "requestedToCapacityRatioArguments", 1, shape=shape, resources=[{"name": "cpu"}])
    later = {"ignorable": True, "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}]}
    extender = {"urlPrefix": "http://x/", "weight": 1, **later}
    checked = policy(["GeneralPredicates"], (), alwaysCheckAllPredicates=True, extenders=[extender])

    assert warnings("v1.14", checked) == ()
    assert warnings("v1.8", checked) == (
        'v1.8 does not know and passes over "extenders[0].ignorable", "extenders[0].managedResources", '
        '"alwaysCheckAllPredicates"',
    )
    (found,) = parse_policy(checked, V1_8).extenders
    assert (found.ignorable, found.managed_resources) == (False, ())
    assert warnings("v1.14", policy((), [ratio])) == (
        'v1.14 does not know and passes over "priorities[0].argument.requestedToCapacityRatioArguments.resources"',
    )
    assert warnings("v1.18", policy((), [ratio])) == ()


# -- names of one's own ----------------------------------------------------------------------------------------------

RACK = argument("NeedsRack", "labelsPresence", labels=["rack"], presence=True)
NODES = [make_node("racked", labels={"rack": "1"}), make_node("loose")]


def test_a_predicate_under_a_name_of_ones_own_runs_in_v1_8() -> None:
    decision = decide_as("v1.8", NODES, make_pod(), policy([RACK]))

    assert decision.rejected["loose"].plugin == "NeedsRack"
    assert decision.rejected["loose"].reasons == ("CheckNodeLabelPresence",)


def test_but_never_in_v1_14_which_runs_only_names_it_has_an_order_for() -> None:
    named = {**RACK, "name": "CheckNodeLabelPresence"}

    assert decide_as("v1.14", NODES, make_pod(), policy([RACK])).feasible == ("loose", "racked")
    assert "NeedsRack" in effective("v1.14", policy([RACK]))["predicates"]
    assert failures(decide_as("v1.14", NODES, make_pod(), policy([named]))) == {
        "loose": {"node(s) didn't have the requested labels"}
    }


def test_and_becomes_part_of_one_plugin_in_v1_18() -> None:
    decision = decide_as("v1.18", NODES, make_pod(), policy([RACK]))

    assert decision.rejected["loose"].plugin == "NodeLabel"


def test_v1_18_does_not_look_at_the_argument_of_a_name_it_knows() -> None:
    named = {**RACK, "name": "CheckNodeLabelPresence"}

    assert decide_as("v1.18", NODES, make_pod(), policy([named])).feasible == ("loose", "racked")


def test_pod_fits_ports_is_configured_but_never_runs_in_v1_14() -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    objects = [make_node("taken"), make_pod("there", node="taken", ports=port)]
    document = policy(["PodFitsPorts"])

    assert decide_as("v1.8", objects, make_pod(ports=port), document).node is None
    assert decide_as("v1.14", objects, make_pod(ports=port), document).node == "taken"
    assert decide_as("v1.18", objects, make_pod(ports=port), document).node is None


def test_preferences_of_one_kind_share_a_plugin_in_v1_18() -> None:
    """Two labels of weight 3: the mean of both, six times."""
    likes = [argument(f"Likes{label}", "labelPreference", 3, label=label, presence=True) for label in ("rack", "disk")]

    decision = decide_as("v1.18", NODES, make_pod(), policy((), likes))

    assert decision.totals == {"racked": 50 * 6, "loose": 0}
    separate = decide_as("v1.14", NODES, make_pod(), policy((), likes))
    assert separate.totals == {"racked": 10 * 3, "loose": 0}


def test_service_affinity_keeps_the_pods_of_a_service_where_the_first_is() -> None:
    document = policy([argument("CheckServiceAffinity", "serviceAffinity", labels=["rack"])])
    nodes = [
        make_node("a", labels={"rack": "1"}),
        make_node("b", labels={"rack": "1"}),
        make_node("c", labels={"rack": "2"}),
    ]
    service = make_object("Service", "web", spec={"selector": {"app": "web"}})
    first = make_pod("first", node="b", labels={"app": "web"})

    decision = decide_as("v1.14", [*nodes, service, first], make_pod(labels={"app": "web"}), document)

    assert decision.feasible == ("a", "b")
    assert decision.rejected["c"].reasons == ("node(s) didn't match service affinity",)


def test_hard_pod_affinity_symmetric_weight() -> None:
    assert effective("v1.14", policy(None, None))["hardPodAffinitySymmetricWeight"] == 1
    heavy = policy(None, None, hardPodAffinitySymmetricWeight=42)
    assert effective("v1.14", heavy)["hardPodAffinitySymmetricWeight"] == 42


# -- extenders -------------------------------------------------------------------------------------------------------


def test_extenders_under_their_old_field_names_in_any_case() -> None:
    extender = {
        "urlPrefix": "http://localhost:8888/",
        "FilterVerb": "filter",
        "prioritizeVerb": "prioritize",
        "BindVerb": "bind",
        "weight": 5,
        "enableHttps": False,
        "httpTimeout": 100000000,
        "nodeCacheCapable": True,
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
        "ignorable": True,
    }
    (found,) = parse_policy(policy((), (), extenders=[extender]), V1_14).extenders

    assert (found.filter_verb, found.prioritize_verb, found.bind_verb) == ("filter", "prioritize", "bind")
    assert (found.weight, found.http_timeout, found.node_cache_capable, found.ignorable) == (5, 0.1, True, True)
    assert found.managed_resources[0].ignored_by_scheduler


def test_a_resource_that_an_extender_counts_is_not_looked_at() -> None:
    extender = {
        "urlPrefix": "http://localhost:1/",
        "weight": 1,
        "bindVerb": "bind",
        "managedResources": [{"name": "example.com/gpu", "ignoredByScheduler": True}],
    }
    pod = make_pod(requests={"example.com/gpu": 1})

    ignored = policy(["GeneralPredicates"], ["EqualPriority"], extenders=[extender])
    assert decide_as("v1.14", [make_node("a")], pod, ignored).node == "a"
    assert decide_as("v1.14", [make_node("a")], pod, policy(["GeneralPredicates"], ["EqualPriority"])).node is None


# -- refusals --------------------------------------------------------------------------------------------------------

ZERO = {"name": "LeastRequestedPriority", "weight": 0}
HUGE = {"name": "LeastRequestedPriority", "weight": 2**63 // 10}


@pytest.mark.parametrize("release", POLICY_RELEASES)
@pytest.mark.parametrize("priority", [ZERO, HUGE, {**ZERO, "weight": -1}])
def test_weights_must_be_positive_and_not_overflow(release: str, priority: Fields) -> None:
    said = "Priority LeastRequestedPriority should have a positive weight applied to it or it has overflown"

    assert refusal(release, policy((), [priority])) == said


@pytest.mark.parametrize("release", OLD)
def test_the_sum_of_weights_must_not_overflow(release: str) -> None:
    large = [{"name": name, "weight": 2**62 // 10} for name in ("EqualPriority", "LeastRequestedPriority")]
    large.append({"name": "MostRequestedPriority", "weight": 1})

    assert refusal(release, policy((), large)) == "total priority of priority functions has overflown"


@pytest.mark.parametrize(
    ("release", "document", "said"),
    [
        ("v1.8", policy(["NoSuch"]), "fatal: Invalid configuration: Predicate type not found for NoSuch"),
        ("v1.14", policy(["NoSuch"]), "fatal: Invalid configuration: Predicate type not found for NoSuch"),
        ("v1.18", policy(["NoSuch"]), 'fatal: Invalid configuration: Predicate type not found for "NoSuch"'),
        ("v1.14", policy((), ["NoSuch"]), "fatal: Invalid configuration: Priority type not found for NoSuch"),
        ("v1.18", policy((), ["NoSuch"]), 'fatal: Invalid configuration: Priority type not found for "NoSuch"'),
        (
            "v1.14",
            policy(["CheckNodeMemoryPressure"]),
            "fatal: Invalid configuration: Predicate type not found for CheckNodeMemoryPressure",
        ),
        (
            "v1.14",
            policy([{"name": "Both", "argument": {}}]),
            "fatal: Exactly 1 predicate argument is required, numArgs: 0, Predicate: Both",
        ),
        (
            "v1.8",
            policy((), [argument("Ratio", "requestedToCapacityRatioArguments", 1, shape=[])]),
            "fatal: Exactly 1 priority argument is required, numArgs: 0, Priority: Ratio",
        ),
        (
            "v1.14",
            policy((), [argument("Ratio", "requestedToCapacityRatioArguments", 1, shape=[])]),
            "fatal: invalid RequestedToCapacityRatioPriority arguments: at least one point must be specified",
        ),
        (
            "v1.14",
            policy(None, None, hardPodAffinitySymmetricWeight=101),
            "invalid hardPodAffinitySymmetricWeight: 101, must be in the range 1-100",
        ),
        (
            "v1.18",
            policy(None, None, hardPodAffinitySymmetricWeight=-1),
            "hardPodAffinitySymmetricWeight: Invalid value: -1: not in valid range [0-100]",
        ),
        (
            "v1.14",
            policy([argument("-", "labelsPresence", labels=["a"], presence=True)]),
            "fatal: Algorithm name - does not match the name validation regexp "
            '"^[a-zA-Z0-9]([-a-zA-Z0-9]*[a-zA-Z0-9])$".',
        ),
        (
            "v1.18",
            policy(
                (),
                [
                    argument("A", "labelPreference", 1, label="a", presence=True),
                    argument("B", "labelPreference", 2, label="b", presence=True),
                ],
            ),
            'LabelPreference  priority "B" has a different weight with "A"',
        ),
        (
            "v1.8",
            policy((), (), extenders=[{"urlPrefix": "http://x/", "filterVerb": "filter"}]),
            "Priority for extender http://x/ should have a positive weight applied to it",
        ),
        (
            "v1.18",
            policy(
                (),
                [
                    argument("A", "serviceAntiAffinity", 1, label="a"),
                    argument("B", "serviceAntiAffinity", 1, label="b"),
                    argument("C", "serviceAntiAffinity", 2, label="c"),
                ],
            ),
            'ServiceAntiAffinity  priority "C" has a different weight with "B"',
        ),
        (
            "v1.14",
            policy((), (), extenders=[{"urlPrefix": "http://x/", "weight": 1, "httpTimeout": "5s"}]),
            "extenders[0].httpTimeout: must be an integer, of nanoseconds",
        ),
        ("v1.14", policy((), (), extenders=["http://x/"]), "extenders[0]: must be an object"),
        (
            "v1.14",
            policy((), [{"name": "EqualPriority", "weight": 2**64}]),
            "priorities[0].weight: must be an integer of 64 bits",
        ),
        (
            "v1.14",
            {"apiVersion": "v2", "kind": "Policy"},
            'apiVersion: Unsupported value: "v2": supported values: "v1"',
        ),
        ("v1.14", policy("x"), "fatal: Invalid configuration: Predicate type not found for x"),
        ("v1.14", {**policy(), "predicates": "all"}, "predicates: must be a list"),
    ],
)
def test_what_upstream_refuses(release: str, document: Fields, said: str) -> None:
    assert refusal(release, document) == said


def test_v1_18_refuses_a_predicate_together_with_one_of_its_parts() -> None:
    said = refusal("v1.18", policy(["GeneralPredicates", "PodFitsHostPorts"]))

    assert said.startswith('plugin "NodePorts" already registered as "PreFilterPlugin"')


# -- predicates of the user's ----------------------------------------------------------------------------------------


class EvenNames(FilterPlugin):
    """Pass nodes whose name ends in an even digit."""

    name = "EvenNames"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status:
        return Status() if int(node.name[-1]) % 2 == 0 else Status.unschedulable("odd")


@pytest.mark.parametrize("release", POLICY_RELEASES)
def test_a_predicate_written_in_python_is_named_like_any_other(release: str) -> None:
    registry = Registry((*IN_TREE.values(), EvenNames))
    nodes = [make_node("n1"), make_node("n2")]

    decision = decide_as(release, nodes, make_pod(), policy(["EvenNames"]), registry=registry)

    assert decision.feasible == ("n2",)
    assert decision.rejected["n1"].reasons == ("odd",)


def test_no_execute_taints_have_a_place_in_the_order_but_must_be_registered() -> None:
    nodes = [make_node("evicting", taints=["a=:NoExecute"]), make_node("ok")]
    document = policy(["PodToleratesNodeNoExecuteTaints"])

    assert refusal("v1.14", document).startswith("fatal:")
    registry = Registry((*IN_TREE.values(), PodToleratesNodeNoExecuteTaints))
    decision = decide_as("v1.8", nodes, make_pod(), document, registry=registry)
    assert decision.feasible == ("ok",)


def test_several_points_of_a_ratio() -> None:
    """Half of the node would be used: in the middle between 10 at 0 percent and 0 at 100."""
    shape = [{"utilization": 0, "score": 10}, {"utilization": 100, "score": 0}]
    ratio = argument("Ratio", "requestedToCapacityRatioArguments", 1, shape=shape)
    nodes = [make_node("a", cpu="2", memory="2Gi"), make_node("b", cpu="4", memory="4Gi")]

    decision = decide_as("v1.14", nodes, make_pod(requests={"cpu": "1", "memory": "1Gi"}), policy((), [ratio]))

    assert scores(decision, "Ratio") == {"a": 5, "b": 8}
