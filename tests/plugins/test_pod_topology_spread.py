from __future__ import annotations

from typing import Any

import pytest

from builders import HOSTNAME, ZONE, decide, make_node, make_object, make_pod, rejections, scores, spread, with_args
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Node, Pod

PLUGIN = "PodTopologySpread"
REASON = "node(s) didn't match pod topology spread constraints"
MISSING = f"{REASON} (missing required label)"
WEB = {"app": "web"}


def node(name: str, zone: str | None = None, **fields: Any) -> Node:
    labels = {HOSTNAME: name} | ({} if zone is None else {ZONE: zone}) | fields.pop("labels", {})
    return make_node(name, labels=labels, **fields)


def pods(where: str, count: int, **fields: Any) -> list[Pod]:
    return [make_pod(f"{where}-{number}", node=where, **{"labels": WEB, **fields}) for number in range(count)]


def spreading(*constraints: dict[str, Any], **fields: Any) -> Pod:
    return make_pod(topology_spread_constraints=list(constraints), **{"labels": WEB, **fields})


# -- hard constraints ----------------------------------------------------------------------------------------------

ZONES = [node("a", "a"), node("b", "b"), node("c", "c")]
TWO_ONE_NONE = [*ZONES, *pods("a", 2), *pods("b", 1)]


@pytest.mark.parametrize(
    ("constraint", "feasible"),
    [
        # There would be 3, 2 or 1 pods, and the emptiest zone has none.
        pytest.param(spread(ZONE, WEB, skew=1), ("c",), id="skew 1"),
        pytest.param(spread(ZONE, WEB, skew=2), ("b", "c"), id="skew 2"),
        pytest.param(spread(ZONE, WEB, skew=3), ("a", "b", "c"), id="skew 3"),
        pytest.param(spread(ZONE, {"app": "db"}, skew=1), ("a", "b", "c"), id="pods that do not count"),
        pytest.param(spread(ZONE, {}, skew=1), ("a", "b", "c"), id="an empty selector counts none"),
        pytest.param(spread(ZONE, None, skew=1), ("a", "b", "c"), id="no selector counts none"),
    ],
)
def test_no_zone_may_have_too_many_more_than_the_emptiest(
    constraint: dict[str, Any], feasible: tuple[str, ...]
) -> None:
    decision = decide(TWO_ONE_NONE, spreading(constraint))
    assert decision.feasible == feasible
    assert rejections(decision) == {
        name: (PLUGIN, "Unschedulable", (REASON,)) for name in ("a", "b", "c") if name not in feasible
    }


def test_a_pod_that_does_not_count_itself_adds_nothing() -> None:
    assert decide(TWO_ONE_NONE, spreading(spread(ZONE, WEB), labels={})).feasible == ("b", "c")


def test_pods_being_deleted_and_pods_of_other_namespaces_do_not_count() -> None:
    there = [*pods("a", 3, deleted=True), *pods("b", 3, namespace="team")]
    assert decide([*ZONES, *there], spreading(spread(ZONE, WEB))).feasible == ("a", "b", "c")


def test_a_node_without_the_label_cannot_be_used() -> None:
    decision = decide([*ZONES, node("none")], spreading(spread(ZONE, WEB)))
    assert rejections(decision) == {"none": (PLUGIN, "UnschedulableAndUnresolvable", (MISSING,))}


def test_all_constraints_must_hold_and_the_first_that_does_not_gives_the_reason() -> None:
    nodes = [node("a1", "a"), node("a2", "a"), node("b1", "b"), make_node("bare", labels={HOSTNAME: "bare"})]
    pod = spreading(spread(HOSTNAME, WEB), spread(ZONE, WEB, skew=2))
    decision = decide([*nodes, *pods("a1", 1), *pods("a2", 1)], pod)
    # Node bare lacks the zone, so it is no domain of the first constraint either: a1 and a2 have one more than b1.
    assert decision.feasible == ("b1",)
    assert {name: status.reasons[0] for name, status in decision.rejected.items()} == {
        "a1": REASON,
        "a2": REASON,
        "bare": MISSING,
    }


@pytest.mark.parametrize(("min_domains", "feasible"), [(1, ("a", "b")), (2, ("a", "b")), (3, ())])
def test_fewer_domains_than_wanted_count_as_if_one_were_empty(min_domains: int, feasible: tuple[str, ...]) -> None:
    nodes = [node("a", "a"), node("b", "b"), *pods("a", 1), *pods("b", 1)]
    assert decide(nodes, spreading(spread(ZONE, WEB, min_domains=min_domains))).feasible == feasible


@pytest.mark.parametrize(
    ("policy", "feasible"),
    [
        # Zones a and b have one pod each, and the pod cannot go to the empty zone c.
        pytest.param({}, ("a", "b"), id="by default nodes it does not select are not counted"),
        pytest.param({"node_affinity_policy": "Honor"}, ("a", "b"), id="Honor"),
        pytest.param({"node_affinity_policy": "Ignore"}, (), id="Ignore"),
    ],
)
def test_the_node_affinity_policy(policy: dict[str, Any], feasible: tuple[str, ...]) -> None:
    nodes = [node(name, name, labels={"disk": disk}) for name, disk in (("a", "ssd"), ("b", "ssd"), ("c", "hdd"))]
    pod = spreading(spread(ZONE, WEB, **policy), node_selector={"disk": "ssd"})
    assert decide([*nodes, *pods("a", 1), *pods("b", 1)], pod).feasible == feasible


@pytest.mark.parametrize(
    ("policy", "feasible"),
    [
        pytest.param({}, (), id="by default tainted nodes are counted"),
        pytest.param({"node_taints_policy": "Ignore"}, (), id="Ignore"),
        pytest.param({"node_taints_policy": "Honor"}, ("a", "b"), id="Honor"),
    ],
)
def test_the_node_taints_policy(policy: dict[str, Any], feasible: tuple[str, ...]) -> None:
    nodes = [node("a", "a"), node("b", "b"), node("c", "c", taints=["team=x:NoSchedule"])]
    pod = spreading(spread(ZONE, WEB, **policy))
    assert decide([*nodes, *pods("a", 1), *pods("b", 1)], pod).feasible == feasible


def test_match_label_keys_count_pods_of_the_same_revision_only() -> None:
    there = [*pods("a", 2, labels=WEB | {"rev": "1"}), *pods("b", 1, labels=WEB | {"rev": "2"})]
    pod = spreading(spread(ZONE, WEB, match_label_keys=["rev"]), labels=WEB | {"rev": "2"})
    assert decide([*ZONES, *there], pod).feasible == ("a", "c")


# -- soft constraints ----------------------------------------------------------------------------------------------


def test_zones_with_fewer_pods_score_higher() -> None:
    # Three zones: a pod counts ln(3 + 2) = 1.609. 2, 1 and 0 pods: 3.22, 1.61 and 0, rounded to 3, 2 and 0.
    # The other way round, of the highest: (3 + 0 - 3) / 3, (3 - 2) / 3 and 3 / 3.
    decision = decide(TWO_ONE_NONE, spreading(spread(ZONE, WEB, hard=False)))
    assert scores(decision, PLUGIN) == {"a": 0, "b": 33, "c": 100}


def test_a_larger_skew_makes_differences_matter_less() -> None:
    # 3.22 + 3, 1.61 + 3 and 3, rounded to 6, 5 and 3; (6 + 3 - x) / 6.
    decision = decide(TWO_ONE_NONE, spreading(spread(ZONE, WEB, skew=4, hard=False)))
    assert scores(decision, PLUGIN) == {"a": 50, "b": 66, "c": 100}


def test_by_host_every_node_is_counted_on_its_own() -> None:
    nodes = [node("a1", "a"), node("a2", "a"), node("b1", "b")]
    # Three nodes: ln(5) again. 2, 0 and 1 pods.
    decision = decide([*nodes, *pods("a1", 2), *pods("b1", 1)], spreading(spread(HOSTNAME, WEB, hard=False)))
    assert scores(decision, PLUGIN) == {"a1": 0, "a2": 100, "b1": 33}


def test_nodes_that_lack_a_label_score_nothing() -> None:
    decision = decide([*TWO_ONE_NONE, node("none")], spreading(spread(ZONE, WEB, hard=False)))
    assert scores(decision, PLUGIN) == {"a": 0, "b": 33, "c": 100, "none": 0}


def test_without_any_pod_all_nodes_score_full() -> None:
    assert scores(decide(ZONES, spreading(spread(ZONE, WEB, hard=False))), PLUGIN) == {"a": 100, "b": 100, "c": 100}


# -- default constraints -------------------------------------------------------------------------------------------

SERVICE = make_object("Service", "web", spec={"selector": WEB})
PAIR = [node("a", "a"), node("b", "b"), *pods("a", 1)]


def test_pods_of_a_service_are_spread_over_hosts_and_zones() -> None:
    # Two nodes in two zones: ln(4) = 1.386 each. a: 1.386 + 2 by host and 1.386 + 4 by zone, 8.77; b: 2 + 4.
    # (9 + 6 - 9) / 9 and (9 + 6 - 6) / 9.
    assert scores(decide([*PAIR, SERVICE], make_pod(labels=WEB)), PLUGIN) == {"a": 66, "b": 100}


def test_system_defaults_also_count_nodes_without_a_zone() -> None:
    nodes = [node("a"), node("b"), *pods("a", 1)]
    # By host alone: 1.386 + 2 and 2, rounded to 3 and 2; (3 + 2 - 3) / 3 and 3 / 3.
    assert scores(decide([*nodes, SERVICE], make_pod(labels=WEB)), PLUGIN) == {"a": 66, "b": 100}


@pytest.mark.parametrize(
    ("labels", "owner", "others"),
    [
        pytest.param(WEB, None, [], id="no service"),
        pytest.param({"app": "db"}, None, [SERVICE], id="a service of others"),
        pytest.param(WEB, {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "gone"}, [], id="an unknown owner"),
        pytest.param(WEB, {"apiVersion": "batch/v1", "kind": "Job", "name": "web"}, [], id="an owner of another kind"),
    ],
)
def test_pods_that_belong_to_nothing_are_not_spread(
    labels: dict[str, str], owner: dict[str, str] | None, others: list[Any]
) -> None:
    assert scores(decide([*PAIR, *others], make_pod(labels=labels, owner=owner)), PLUGIN) is None


@pytest.mark.parametrize(
    ("kind", "api_version", "spec"),
    [
        ("ReplicaSet", "apps/v1", {"selector": {"matchLabels": WEB}}),
        ("StatefulSet", "apps/v1", {"selector": {"matchLabels": WEB}}),
        ("ReplicationController", "v1", {"selector": WEB}),
    ],
)
def test_pods_of_one_owner_are_spread(kind: str, api_version: str, spec: dict[str, Any]) -> None:
    owner = make_object(kind, "web", namespace="default", spec=spec)
    pod = make_pod(labels=WEB, owner={"apiVersion": api_version, "kind": kind, "name": "web"})
    assert scores(decide([*PAIR, owner], pod), PLUGIN) == {"a": 66, "b": 100}


def test_a_pod_with_constraints_of_its_own_gets_no_defaults() -> None:
    pod = spreading(spread("rack", WEB, hard=False))
    assert scores(decide([*PAIR, SERVICE], pod), PLUGIN) == {"a": 0, "b": 0}


def test_listed_defaults_take_the_place_of_the_systems() -> None:
    hard = {"topologyKey": ZONE, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    config = with_args(PLUGIN, defaultingType="List", defaultConstraints=[hard])
    decision = decide([*PAIR, SERVICE], make_pod(labels=WEB), config)
    assert decision.feasible == ("b",)
    assert decide(PAIR, make_pod(labels=WEB), config).feasible == ("a", "b")


def test_no_listed_defaults_means_none() -> None:
    config = with_args(PLUGIN, defaultingType="List", defaultConstraints=[])
    assert scores(decide([*PAIR, SERVICE], make_pod(labels=WEB), config), PLUGIN) is None


def test_two_configurations_on_one_cluster_do_not_mix() -> None:
    nodes = [make_node("n0", labels={HOSTNAME: "n0", ZONE: "a"}), make_node("n1", labels={HOSTNAME: "n1"})]
    service = make_object("Service", "web", namespace="default", spec={"selector": {"app": "web"}})
    running = make_pod("r", node="n0", labels={"app": "web"})
    pod = make_pod("p", labels={"app": "web"})
    constraints = [
        {"topologyKey": HOSTNAME, "maxSkew": 3, "whenUnsatisfiable": "ScheduleAnyway"},
        {"topologyKey": ZONE, "maxSkew": 5, "whenUnsatisfiable": "ScheduleAnyway"},
    ]
    listed = with_args("PodTopologySpread", defaultingType="List", defaultConstraints=constraints)
    alone = Scheduler(Cluster.from_objects([*nodes, service, running]), listed).decide(pod)
    shared = Cluster.from_objects([*nodes, service, running])
    system = Scheduler(shared).decide(pod)
    assert Scheduler(shared, listed).decide(pod).scores == alone.scores != system.scores
