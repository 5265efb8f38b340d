"""What fits where in one release and not in another."""

from __future__ import annotations

from typing import Any

import pytest

from builders import HOSTNAME, affinity, expression, make_node, make_object, make_pod, node_affinity, pod_term
from podium.model import Object, Pod
from releases.releasing import decide_as, failures

Fields = dict[str, Any]


def port(number: int, **fields: str) -> list[Fields]:
    return [{"containerPort": number, "hostPort": number, **fields}]


def feasible(release: str, objects: list[Object], pod: Pod, **extra: Any) -> tuple[str, ...]:
    return decide_as(release, objects, pod, **extra).feasible


# -- resources -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("release", "fits"), [("v1.8", False), ("v1.14", False), ("v1.18", False), ("v1.36", True)])
def test_a_pod_that_asks_for_memory_only_minds_cpu_given_away_twice(release: str, fits: bool) -> None:
    """Old releases compare cpu and memory for every pod that asks for anything."""
    objects: list[Object] = [make_node("full", cpu="1"), make_pod("greedy", node="full", requests={"cpu": "2"})]

    assert bool(feasible(release, objects, make_pod(requests={"memory": "1Mi"}))) is fits


@pytest.mark.parametrize("release", ["v1.8", "v1.14", "v1.18"])
def test_a_pod_that_asks_for_nothing_does_not_mind(release: str) -> None:
    objects: list[Object] = [make_node("full", cpu="1"), make_pod("greedy", node="full", requests={"cpu": "2"})]

    assert feasible(release, objects, make_pod()) == ("full",)


@pytest.mark.parametrize(("release", "fits"), [("v1.8", True), ("v1.14", True), ("v1.18", False), ("v1.36", False)])
def test_init_containers_of_running_pods_count_since_v1_18(release: str, fits: bool) -> None:
    init = [{"name": "init", "resources": {"requests": {"cpu": "3"}}}]
    running = make_pod("running", node="a", requests={"cpu": "1"}, init_containers=init)

    assert bool(feasible(release, [make_node("a", cpu="4"), running], make_pod(requests={"cpu": "2"}))) is fits


@pytest.mark.parametrize("release", ["v1.8", "v1.14", "v1.18"])
def test_init_containers_of_the_incoming_pod_always_count(release: str) -> None:
    init = [{"name": "init", "resources": {"requests": {"cpu": "3"}}}]

    assert feasible(release, [make_node("a", cpu="2")], make_pod(init_containers=init)) == ()


@pytest.mark.parametrize(("release", "fits"), [("v1.8", True), ("v1.14", True), ("v1.18", False)])
def test_overhead_counts_since_v1_18(release: str, fits: bool) -> None:
    pod = make_pod(requests={"cpu": "1"}, overhead={"cpu": "1"})

    assert bool(feasible(release, [make_node("a", cpu="1500m")], pod)) is fits


def test_v1_8_does_not_count_attachable_volumes_as_a_resource() -> None:
    pod = make_pod(requests={"attachable-volumes-aws-ebs": 1})

    assert feasible("v1.8", [make_node("a")], pod) == ("a",)
    assert feasible("v1.14", [make_node("a")], pod) == ()


# -- ports -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "old", "new"),
    [
        (port(80), False, False),
        (port(80, protocol="UDP"), False, True),
        (port(80, hostIP="10.0.0.2"), False, True),
        (port(81), True, True),
    ],
    ids=["every address", "another protocol", "another address", "another number"],
)
def test_ports_compare_by_number_alone_in_v1_8(wanted: list[Fields], old: bool, new: bool) -> None:
    objects: list[Object] = [make_node("a"), make_pod("there", node="a", ports=port(80, hostIP="10.0.0.1"))]
    pod = make_pod(ports=wanted)

    assert bool(feasible("v1.8", objects, pod)) is old
    assert bool(feasible("v1.14", objects, pod)) is new


# -- nodes -----------------------------------------------------------------------------------------------------------


def test_v1_8_does_not_know_match_fields() -> None:
    named = [{"matchFields": [expression("metadata.name", "In", "a")]}]
    pod = make_pod(affinity=node_affinity(required=named))

    assert feasible("v1.14", [make_node("a"), make_node("b")], pod) == ("a",)
    assert feasible("v1.8", [make_node("a"), make_node("b")], pod) == ()


def condition_node(name: str, **conditions: str) -> Object:
    listed = [{"type": kind, "status": status} for kind, status in conditions.items()]
    return make_object(
        "Node", name, status={"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "9"}, "conditions": listed}
    )


CONDITIONS = [
    condition_node("ok", Ready="True", MemoryPressure="False"),
    condition_node("unready", Ready="Unknown"),
    condition_node("offline", NetworkUnavailable="True"),
    condition_node("full", OutOfDisk="True"),
    condition_node("memory", MemoryPressure="True"),
    condition_node("disk", DiskPressure="True"),
    condition_node("pids", PIDPressure="True"),
]


def test_conditions_in_v1_8() -> None:
    decision = decide_as("v1.8", CONDITIONS, make_pod())

    assert failures(decision) == {
        "unready": {"NodeNotReady"},
        "offline": {"NodeNetworkUnavailable"},
        "full": {"NodeOutOfDisk"},
        "memory": {"NodeUnderMemoryPressure"},
        "disk": {"NodeUnderDiskPressure"},
    }


def test_conditions_do_not_matter_in_v1_14_where_taints_speak_for_them() -> None:
    assert len(feasible("v1.14", CONDITIONS, make_pod())) == len(CONDITIONS)


def test_conditions_in_v1_14_without_that_feature() -> None:
    decision = decide_as("v1.14", CONDITIONS, make_pod(), gates={"TaintNodesByCondition": False})

    assert sorted(decision.rejected) == ["disk", "memory", "offline", "pids", "unready"]
    assert decision.rejected["pids"].reasons == ("node(s) had pid pressure",)


def test_memory_pressure_is_for_pods_that_ask_for_nothing() -> None:
    assert "memory" in feasible("v1.8", CONDITIONS, make_pod(requests={"cpu": "1m"}))


def test_a_cordoned_node_takes_pods_that_tolerate_it_but_not_in_v1_8() -> None:
    tolerant = make_pod(tolerations=[{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}])
    cordoned: list[Object] = [make_node("a", unschedulable=True)]

    assert feasible("v1.8", cordoned, tolerant) == ()
    assert feasible("v1.14", cordoned, tolerant) == ("a",)


@pytest.mark.parametrize(
    ("release", "reason"),
    [
        ("v1.8", "PodToleratesNodeTaints"),
        ("v1.14", "node(s) had taints that the pod didn't tolerate"),
        ("v1.18", "node(s) had taint {team: a}, that the pod didn't tolerate"),
    ],
)
def test_how_a_taint_is_named(release: str, reason: str) -> None:
    decision = decide_as(release, [make_node("a", taints=["team=a:NoSchedule"])], make_pod())

    assert decision.rejected["a"].reasons == (reason,)


# -- other pods ------------------------------------------------------------------------------------------------------

RACKS: list[Object] = [
    make_node("a", labels={HOSTNAME: "a", "rack": "1"}),
    make_node("b", labels={HOSTNAME: "b", "rack": "1"}),
    make_node("c", labels={HOSTNAME: "c", "rack": "2"}),
]


def test_the_anti_affinity_terms_of_a_pod_share_the_key_of_the_last_in_v1_8() -> None:
    """The owner minds the pod on its host; its second term, about something else, is for the whole rack."""
    terms = [pod_term(HOSTNAME, {"app": "new"}), pod_term("rack", {"app": "other"})]
    owner = make_pod("owner", node="a", affinity=affinity(required=terms, anti=True))
    pod = make_pod(labels={"app": "new"})

    assert feasible("v1.8", [*RACKS, owner], pod) == ("c",)
    assert feasible("v1.14", [*RACKS, owner], pod) == ("b", "c")


def test_one_pod_must_meet_all_affinity_terms_since_v1_14() -> None:
    terms = [pod_term("rack", {"app": "x"}), pod_term("rack", {"tier": "y"})]
    others = [make_pod("x", node="a", labels={"app": "x"}), make_pod("y", node="b", labels={"tier": "y"})]
    pod = make_pod(affinity=affinity(required=terms))

    assert feasible("v1.8", [*RACKS, *others], pod) == ("a", "b")
    assert feasible("v1.14", [*RACKS, *others], pod) == ()


def test_each_term_is_waived_for_itself_in_v1_8() -> None:
    """The pod matches both terms, somebody else matches the first: only the second is waived."""
    terms = [pod_term("rack", {"app": "x"}), pod_term("rack", {"tier": "y"})]
    other = make_pod("x", node="c", labels={"app": "x"})
    pod = make_pod(labels={"app": "x", "tier": "y"}, affinity=affinity(required=terms))

    assert feasible("v1.8", [*RACKS, other], pod) == ("c",)
    # Nobody matches both terms, so that both are waived.
    assert feasible("v1.14", [*RACKS, other], pod) == ("a", "b", "c")


def test_the_first_pod_of_a_group_may_go_where_the_label_is_missing_until_today() -> None:
    nodes: list[Object] = [make_node("labelled", labels={"rack": "1"}), make_node("bare")]
    pod = make_pod(labels={"app": "x"}, affinity=affinity(required=[pod_term("rack", {"app": "x"})]))

    for release in ("v1.8", "v1.14", "v1.18"):
        assert feasible(release, nodes, pod) == ("bare", "labelled")
    assert feasible("v1.36", nodes, pod) == ("labelled",)


@pytest.mark.parametrize(
    ("release", "reasons"),
    [
        ("v1.8", ("MatchInterPodAffinity",)),
        ("v1.14", ("node(s) didn't match pod affinity/anti-affinity", "node(s) didn't match pod affinity rules")),
        ("v1.18", ("node(s) didn't match pod affinity/anti-affinity", "node(s) didn't match pod affinity rules")),
    ],
)
def test_how_affinity_is_explained(release: str, reasons: tuple[str, ...]) -> None:
    pod = make_pod(affinity=affinity(required=[pod_term("rack", {"app": "nobody"})]))

    assert decide_as(release, RACKS, pod).rejected["a"].reasons == reasons
