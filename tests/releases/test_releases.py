"""What each release runs with when it is told nothing, and how it goes about a decision."""

from __future__ import annotations

import pytest

from builders import make_node, make_pod
from podium.cluster import Cluster
from podium.config import ExtenderConfig
from podium.engine import Scheduler
from podium.engine.release import CLUSTER_AUTOSCALER_PROVIDER, Options, release_of
from podium.errors import ConfigError, InputError
from podium.releases import RELEASES, legacy_dict
from releases.releasing import decide_as, policy

DEFAULT_PRIORITIES = {
    "BalancedResourceAllocation": 1,
    "InterPodAffinityPriority": 1,
    "LeastRequestedPriority": 1,
    "NodeAffinityPriority": 1,
    "NodePreferAvoidPodsPriority": 10000,
    "SelectorSpreadPriority": 1,
    "TaintTolerationPriority": 1,
}


def test_the_releases() -> None:
    assert {name: release.version for name, release in RELEASES.items()} == {
        "v1.8": "v1.8.15",
        "v1.14": "v1.14.10",
        "v1.18": "v1.18.20",
    }


def test_an_unknown_release_is_refused_in_one_line() -> None:
    with pytest.raises(InputError, match=r"^release 'v1\.9' is unknown; use one of v1\.8, v1\.14, v1\.18, v1\.29, "):
        release_of("v1.9")


@pytest.mark.parametrize("release", ["v1.8", "v1.14", "v1.18"])
def test_an_unknown_provider_is_refused(release: str) -> None:
    with pytest.raises(InputError, match="algorithm provider 'MyProvider' is unknown; use DefaultProvider or"):
        release_of(release).set_up(options=Options(provider="MyProvider"))


def test_the_default_provider_of_v1_8() -> None:
    effective = release_of("v1.8").set_up().effective

    assert effective["priorities"] == DEFAULT_PRIORITIES
    assert effective["predicates"] == [
        *("CheckNodeCondition", "CheckNodeDiskPressure", "CheckNodeMemoryPressure", "GeneralPredicates"),
        *("MatchInterPodAffinity", "MaxAzureDiskVolumeCount", "MaxEBSVolumeCount", "MaxGCEPDVolumeCount"),
        *("NoDiskConflict", "NoVolumeNodeConflict", "NoVolumeZoneConflict", "PodToleratesNodeTaints"),
    ]


def test_the_default_provider_of_v1_14() -> None:
    effective = release_of("v1.14").set_up().effective

    assert effective["priorities"] == {**DEFAULT_PRIORITIES, "ImageLocalityPriority": 1}
    assert {"CheckNodeUnschedulable", "CheckVolumeBinding", "MaxCSIVolumeCountPred"} <= {*effective["predicates"]}
    assert "CheckNodeCondition" not in effective["predicates"]


def test_conditions_come_back_in_v1_14_when_taints_do_not_speak_for_them() -> None:
    effective = release_of("v1.14").set_up(options=Options(feature_gates={"TaintNodesByCondition": False})).effective

    assert {"CheckNodeCondition", "CheckNodePIDPressure"} <= {*effective["predicates"]}
    assert "CheckNodeUnschedulable" not in effective["predicates"]


def test_the_default_plugins_of_v1_18() -> None:
    effective = release_of("v1.18").set_up().effective["default-scheduler"]

    assert effective["predicates"][-2:] == ["InterPodAffinity", "PodTopologySpread"]
    assert effective["priorities"]["NodePreferAvoidPods"] == 10000
    assert len(effective["priorities"]) == 9


@pytest.mark.parametrize(
    ("release", "more", "less"),
    [
        ("v1.8", "MostRequestedPriority", "LeastRequestedPriority"),
        ("v1.14", "MostRequestedPriority", "LeastRequestedPriority"),
        ("v1.18", "NodeResourcesMostAllocated", "NodeResourcesLeastAllocated"),
    ],
)
def test_the_cluster_autoscaler_provider_packs(release: str, more: str, less: str) -> None:
    effective = release_of(release).set_up(options=Options(provider=CLUSTER_AUTOSCALER_PROVIDER)).effective
    priorities = effective.get("default-scheduler", effective)["priorities"]

    assert more in priorities
    assert less not in priorities


@pytest.mark.parametrize(("release", "name"), [("v1.14", "ResourceLimitsPriority"), ("v1.18", "NodeResourceLimits")])
def test_a_feature_gate_adds_resource_limits(release: str, name: str) -> None:
    options = Options(feature_gates={"ResourceLimitsPriorityFunction": True})
    effective = release_of(release).set_up(options=options).effective

    assert effective.get("default-scheduler", effective)["priorities"][name] == 1


def test_today_is_a_release_like_the_others() -> None:
    effective = release_of("v1.36").set_up().effective["default-scheduler"]

    assert effective["priorities"]["TaintToleration"] == 3


def test_a_configuration_of_another_generation_is_refused() -> None:
    document = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    with pytest.raises(ConfigError, match="reads an object of kind Policy and apiVersion v1"):
        release_of("v1.14").set_up(document)
    with pytest.raises(ConfigError, match="apiVersion: Unsupported value: "):
        release_of("v1.18").set_up(document)
    with pytest.raises(ConfigError, match="Unsupported value"):
        release_of("v1.36").set_up(policy())


# -- setting up again --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", RELEASES)
def test_a_configuration_that_was_set_up_can_be_set_up_again(release: str) -> None:
    nodes = [make_node("a"), make_node("b", taints=["team=a:NoSchedule"])]
    setup = release_of(release).set_up()

    again = Scheduler(Cluster.from_objects(nodes), setup.config, release=release, tie_break="first")

    assert again.decide(make_pod()) == decide_as(release, nodes, make_pod())
    assert release_of(release).set_up(setup.config).effective == setup.effective


def test_what_a_policy_asks_of_the_engine_stays_with_it() -> None:
    setup = release_of("v1.14").set_up(policy(None, None, alwaysCheckAllPredicates=True))

    assert release_of("v1.14").set_up(setup.config).behaviour.collects_all_reasons


def test_but_not_by_another_release() -> None:
    config = release_of("v1.8").set_up().config

    for other in ("v1.14", "v1.36"):
        with pytest.raises(ConfigError, match=rf"is a configuration of v1\.8, not of {other}"):
            release_of(other).set_up(config)


# -- ways of deciding ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "is_scored"), [("v1.8", True), ("v1.14", False), ("v1.18", False)])
def test_a_single_feasible_node_is_scored_in_v1_8_only(release: str, is_scored: bool) -> None:
    decision = decide_as(release, [make_node("only")], make_pod())

    assert decision.node == "only"
    assert bool(decision.totals) is is_scored


@pytest.mark.parametrize(
    ("release", "message"),
    [
        (
            "v1.8",
            "No nodes are available that match all of the predicates: Insufficient cpu (2), Insufficient pods (1).",
        ),
        ("v1.14", "0/2 nodes are available: 1 Insufficient pods, 2 Insufficient cpu."),
        ("v1.18", "0/2 nodes are available: 1 Too many pods, 2 Insufficient cpu."),
    ],
)
def test_the_sentence_for_a_pod_that_fits_nowhere(release: str, message: str) -> None:
    nodes = [make_node("a", cpu="1"), make_node("b", cpu="1", pods=0)]

    assert decide_as(release, nodes, make_pod(requests={"cpu": "2"})).message == message


@pytest.mark.parametrize("release", RELEASES)
def test_a_cluster_without_nodes(release: str) -> None:
    assert decide_as(release, [], make_pod()).message == "no nodes available to schedule pods"


@pytest.mark.parametrize("release", RELEASES)
def test_schedule_takes_what_place_takes(release: str) -> None:
    def scheduler() -> Scheduler:
        nodes = [make_node("a", cpu="2"), make_node("b", cpu="4"), make_node("c", cpu="4")]
        return Scheduler(Cluster.from_objects(nodes), release=release, seed=3)

    pods = [make_pod(f"p{number}", requests={"cpu": "1"}) for number in range(12)]
    placing, scheduling = scheduler(), scheduler()

    assert [placing.place(pod).node for pod in pods] == [scheduling.schedule(pod) for pod in pods]


def test_statuses_of_several_predicates_name_them_all() -> None:
    nodes = [make_node("bad", cpu="1", taints=["team=a:NoSchedule"])]

    status = decide_as("v1.8", nodes, make_pod(requests={"cpu": "2"})).rejected["bad"]

    assert status.plugin == "GeneralPredicates, PodToleratesNodeTaints"
    assert status.reasons == ("Insufficient cpu", "PodToleratesNodeTaints")
    assert status.code.value == "UnschedulableAndUnresolvable"


def test_v1_8_looks_at_every_node_even_when_asked_to_sample() -> None:
    nodes = [make_node(f"n{number:03}") for number in range(300)]

    assert len(decide_as("v1.8", nodes, make_pod(), sampling="upstream").feasible) == 300
    assert len(decide_as("v1.14", nodes, make_pod(), sampling="upstream").feasible) < 300


def test_a_decision_in_the_words_of_the_old_releases() -> None:
    nodes = [make_node("ok"), make_node("bad", cpu="1", taints=["team=a:NoSchedule"])]

    shape = legacy_dict(decide_as("v1.8", nodes, make_pod(requests={"cpu": "2"})))

    assert shape["failed"] == {"bad": ["Insufficient cpu", "PodToleratesNodeTaints"]}
    assert shape["failed_predicates"] == {"bad": ["GeneralPredicates", "PodToleratesNodeTaints"]}
    assert (shape["node"], shape["feasible"]) == ("ok", ["ok"])
    assert "rejected" not in shape


@pytest.mark.parametrize(("release", "added"), [("v1.8", 15), ("v1.14", 15), ("v1.18", 150), ("v1.36", 150)])
def test_an_extenders_score_counts_tenfold_where_scores_go_to_a_hundred(release: str, added: int) -> None:
    extender = release_of(release).behaviour.extender(ExtenderConfig(url_prefix="http://localhost:1/", weight=3))

    assert extender.weighted(5) == added
