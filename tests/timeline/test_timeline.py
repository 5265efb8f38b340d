"""A cluster over time: pods come, run, end, are lost and come back; nodes join, fail and are drained."""

from __future__ import annotations

import re
from collections.abc import Iterable
from fractions import Fraction
from time import process_time
from typing import Any

import pytest

from bench.hour import hour_events, hour_nodes
from builders import make_node, make_object, make_pod
from loop.driving import with_plugins
from loop.test_cycle import Pairs
from podium.cluster import NodeInfo
from podium.errors import InputError
from podium.framework import SUCCESS, CycleState, FilterPlugin, Status
from podium.manifests import load
from podium.model import Object, Pod
from podium.model.quantity import parse_quantity
from podium.timeline import Surroundings, Timeline, TimelineResult
from podium.timeline._world import NEXT_TRY

Fields = dict[str, Any]

ONE_CPU = {"cpu": "1"}
WEB_SET = {"kind": "ReplicaSet", "name": "web"}


def pod(name: str, *, cpu: str = "1", owner: str = "", priority: int = 0, **fields: Any) -> Fields:
    """A pod as it stands in an event; `owner` is such as `ReplicaSet/web`."""
    kind, _, owner_name = owner.partition("/")
    references = [{"kind": kind, "name": owner_name, "uid": owner_name, "controller": True}] if owner else []
    metadata: Fields = {"name": name, "labels": {"app": owner_name or name}, "ownerReferences": references}
    metadata["annotations"] = fields.pop("annotations", {})
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    spec = {"containers": [container], "priority": priority, **fields}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def node(name: str, cpu: str = "1", **spec: Any) -> Fields:
    status = {"allocatable": {"cpu": cpu, "memory": "8Gi", "pods": "10"}}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "spec": spec, "status": status}


def at(time: float, event: str, item: Fields, **fields: Any) -> Fields:
    return {"time": time, "event": event, "object": item, **fields}


def workload(kind: str, name: str, replicas: int, cpu: str = "1", **fields: Any) -> Fields:
    container = {"name": "main", "image": "app", "resources": {"requests": {"cpu": cpu}}}
    template = {
        "metadata": {"labels": {"app": name}, **fields.pop("metadata", {})},
        "spec": {"containers": [container]},
    }
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": name}}, "template": template, **fields}
    group = "batch/v1" if kind == "Job" else "apps/v1"
    return {"apiVersion": group, "kind": kind, "metadata": {"name": name}, "spec": spec}


def simulate(objects: Iterable[Object], *events: Fields, until: float | None = None, **options: Any) -> TimelineResult:
    return Timeline(objects, events, tie_break="first", **options).run(until)


def story(result: TimelineResult, *kinds: str) -> list[str]:
    """What happened, in words; generated parts of names are left out. Only some kinds of records, if they are given."""
    lines = []
    for record in result.log:
        if kinds and record["event"] not in kinds:
            continue
        named = (record.get(key, "") for key in ("pod", "name", "node", "reason"))
        words = (str(word).removeprefix("default/") for word in named if word)
        text = " ".join((f"{record['time']}", record["event"], *words))
        lines.append(re.sub(r"-[bcdfghjklmnpqrstvwxz24-9]{5}\b", "-*", text))
    return lines


@pytest.mark.parametrize("times", [{"sample_every": 0.0}, {"termination": -1.0}, {"drain_retry": float("nan")}])
def test_times_that_cannot_pass_are_refused(times: Fields) -> None:
    with pytest.raises(InputError, match=next(iter(times))):
        Surroundings(**times)


@pytest.mark.parametrize("field", ["status.startTime", "metadata.creationTimestamp"])
def test_a_time_that_is_none_is_refused(field: str) -> None:
    part, name = field.split(".")
    item = pod("p", nodeName="a")
    item[part] = {**item.get(part, {}), name: "yesterday"}
    with pytest.raises(InputError, match=f"pod default/p: {field} 'yesterday' is not a time; write it like 2026-"):
        simulate([make_node("a"), *load(item)], at(0, "add", pod("q")))


# -- pods come and go --------------------------------------------------------------------------------------------------


def test_pods_run_for_their_lifetime_and_make_room() -> None:
    result = simulate(
        [make_node("a", cpu="1")],
        at(0, "add", pod("first"), lifetime=30),
        at(10, "add", pod("second", annotations={"podium/lifetime": "1m"})),
        at(20, "add", pod("third"), lifetime="5s"),
    )
    assert story(result, "bind", "finish") == [
        "0 bind first a",
        "30 finish first a",
        "30 bind second a",
        "90 finish second a",
        "90 bind third a",
        "95 finish third a",
    ]
    assert result.pending_times == {"default/first": 0.0, "default/second": 20.0, "default/third": 70.0}
    assert result.unplaced == ()
    assert result.end == 95


def test_a_pod_without_a_lifetime_runs_until_it_is_deleted() -> None:
    result = simulate([make_node("a")], at(0, "add", pod("p")), at(50, "delete", pod("p")), at(60, "add", pod("q")))
    assert story(result, "bind", "delete") == ["0 bind p a", "50 delete p", "60 bind q a"]


def test_an_event_may_say_that_a_pod_is_done() -> None:
    done = {**pod("p"), "status": {"phase": "Succeeded"}}
    result = simulate([make_node("a", cpu="1")], at(0, "add", pod("p")), at(5, "add", pod("q")), at(10, "update", done))
    assert story(result, "bind", "finish") == ["0 bind p a", "10 finish p a", "10 bind q a"]


def test_a_pod_that_was_told_to_end_before_the_beginning_ends() -> None:
    objects = [make_node("a", cpu="1"), make_pod("old", node="a", deleted=True, requests=ONE_CPU)]
    assert story(simulate(objects, at(0, "add", pod("p"))), "gone", "bind") == ["1 gone old a", "1 bind p a"]


def test_pods_that_wait_at_the_end_are_told_apart() -> None:
    result = simulate([make_node("a", cpu="1")], at(0, "add", pod("p")), at(5, "add", pod("q")), until=100)
    assert [life.pod for life in result.unplaced] == ["default/q"]
    assert result.pending_times["default/q"] == 95.0


def test_the_scheduler_tries_again_by_itself_as_long_as_something_is_to_come() -> None:
    result = simulate([], at(0, "add", pod("p")), at(20, "add", node("a")), at(60, "add", pod("late", cpu="0")))
    # Without any node there is nothing that could reject the pod: it backs off, longer each time.
    assert story(result, "bind") == ["30 bind p a", "60 bind late a"]


@pytest.mark.parametrize("ends", [400.0, 3_000.0, 33_333.25, 100_000.0])
def test_retries_in_a_long_gap_count_although_they_are_not_made(ends: float) -> None:
    events = [
        at(0.5, "add", pod("first"), lifetime=ends),
        at(1.25, "add", pod("waits", cpu="800m"), lifetime=5),
        at(7, "add", pod("too-big", cpu="64")),
        at(100.125, "add", pod("gated", schedulingGates=[{"name": "later"}])),
    ]

    def made() -> Timeline:
        return Timeline([make_node("n1", cpu="1")], events, tie_break="first")

    at_once, in_steps = made(), made()
    # In steps that are shorter than the time between two retries every one of them is made.
    for step in range(1, int(ends / 300) + 3):
        in_steps.run(until=300.0 * step)
    result, expected = at_once.run(), in_steps.run()

    assert result.log == expected.log
    assert result.pods_csv() == expected.pods_csv()


def test_a_year_of_vain_retries_is_quick() -> None:
    objects = [make_node("n1", cpu="1"), *(make_pod(f"p{number}", requests={"cpu": "9"}) for number in range(20))]
    started = process_time()
    result = simulate(objects, at(0, "add", pod("lives"), lifetime=31_536_000))

    assert result.end > 31_536_000
    assert process_time() - started < 2


def test_a_message_is_noted_once_until_it_changes() -> None:
    result = simulate(
        [make_node("a", cpu="1"), make_pod("there", node="a", requests=ONE_CPU)],
        at(0, "add", pod("p")),
        at(10, "add", node("b", cpu="500m")),
        at(700, "add", pod("idle", cpu="0")),
    )
    assert story(result, "unschedulable") == ["0 unschedulable p", "330 unschedulable p"]


def test_an_update_of_a_pod_that_runs_does_not_move_it() -> None:
    result = simulate(
        [make_node("a", cpu="1")],
        at(0, "add", pod("p"), lifetime=100),
        at(10, "update", pod("p", nodeName="elsewhere", cpu="500m")),
        at(20, "add", pod("q", cpu="500m"), lifetime=1),
    )
    assert story(result, "bind", "finish") == ["0 bind p a", "20 bind q a", "21 finish q a", "100 finish p a"]


def test_a_priority_class_gives_pods_their_priority() -> None:
    urgent = {"kind": "PriorityClass", "apiVersion": "scheduling.k8s.io/v1", "metadata": {"name": "vip"}, "value": 9}
    low, high = pod("low"), pod("high", priorityClassName="vip")
    del low["spec"]["priority"], high["spec"]["priority"]
    result = simulate([make_node("a", cpu="1")], at(0, "add", urgent), at(1, "add", low), at(1, "add", high))
    assert story(result, "bind") == ["1 bind high a"]


# -- preemption ------------------------------------------------------------------------------------------------------


def test_an_evicted_pod_comes_back_through_its_controller() -> None:
    result = simulate(
        [make_node("a", cpu="1")],
        at(0, "add", pod("web-1", owner="ReplicaSet/web"), lifetime=500),
        at(10, "add", pod("vip", priority=9), lifetime=50),
    )
    assert story(result, "bind", "evict", "gone", "create", "finish") == [
        "0 bind web-1 a",
        "10 evict web-1 a preempted",
        "11 gone web-1 a",
        "11 create web-*",
        "11 bind vip a",
        "61 finish vip a",
        "61 bind web-* a",
        "561 finish web-* a",
    ]


@pytest.mark.parametrize(
    ("owner", "comes_back"),
    [
        ("", []),
        ("StatefulSet/db", ["12 create db-0"]),
        ("Job/sum", ["11 create sum-*"]),
        ("Custom/x", ["11 create x-*"]),
    ],
)
def test_who_comes_back_depends_on_the_controller(owner: str, comes_back: list[str]) -> None:
    result = simulate(
        [make_node("a", cpu="1")], at(0, "add", pod("db-0", owner=owner)), at(10, "add", pod("vip", priority=9))
    )
    assert story(result, "create") == comes_back


def test_victims_take_their_time_to_end_and_no_longer_than_their_grace_period() -> None:
    behaviour = Surroundings(termination=20.0)
    events = [at(0, "add", pod("a1", terminationGracePeriodSeconds=5)), at(10, "add", pod("vip", priority=9))]
    result = simulate([make_node("a", cpu="1")], *events, surroundings=behaviour)
    assert story(result, "gone", "bind")[1:] == ["15 gone a1 a", "15 bind vip a"]


# -- nodes -----------------------------------------------------------------------------------------------------------


def test_pods_of_a_lost_node_come_back_elsewhere() -> None:
    result = simulate(
        [make_node("a", cpu="2"), make_node("b", cpu="2")],
        at(0, "add", pod("web-1", owner="ReplicaSet/web")),
        at(0, "add", pod("bare")),
        at(10, "delete", node("a")),
        at(10, "delete", node("b")),
        at(20, "add", node("c")),
        surroundings=Surroundings(recreate_after=3),
    )
    assert story(result, "lost", "create", "bind") == [
        "0 bind web-1 a",
        "0 bind bare b",
        "10 lost web-1 a",
        "10 lost bare b",
        "13 create web-*",
        "23 bind web-* c",
    ]


def test_pods_leave_a_node_that_failed_after_five_minutes_and_do_not_finish_there() -> None:
    patient = [{"key": "node.kubernetes.io/unreachable", "operator": "Exists", "effect": "NoExecute"}]
    result = simulate(
        [make_node("a", cpu="3")],
        at(0, "add", pod("web-1", owner="ReplicaSet/web")),
        at(0, "add", pod("hasty", tolerations=[{**patient[0], "tolerationSeconds": 60}])),
        at(0, "add", pod("patient", tolerations=patient), lifetime=20),
        at(10, "fail", node("a")),
        at(15, "add", node("b")),
        at(900, "update", node("a", cpu="3")),
    )
    assert story(result, "evict", "finish", "create") == [
        "70 evict hasty a taint",
        "310 evict web-1 a taint",
        "311 create web-*",
        "900 finish patient a",
    ]
    assert story(result, "bind")[-1] == "311 bind web-* b"


def test_a_node_that_recovers_in_time_keeps_its_pods() -> None:
    result = simulate(
        [make_node("a")],
        at(0, "add", pod("p", owner="ReplicaSet/web")),
        at(10, "fail", node("a")),
        at(200, "update", node("a")),
        at(250, "fail", node("a")),
        at(600, "add", pod("late", cpu="0")),
    )
    assert story(result, "evict") == ["550 evict p a taint"]


def test_a_taint_drives_away_who_does_not_tolerate_it() -> None:
    tainted = node("a", cpu="4", taints=[{"key": "gone", "effect": "NoExecute"}])
    tolerant = pod("stays", tolerations=[{"key": "gone", "operator": "Exists"}])
    result = simulate(
        [make_node("a", cpu="4")], at(0, "add", pod("leaves")), at(0, "add", tolerant), at(10, "update", tainted)
    )
    assert story(result, "evict") == ["10 evict leaves a taint"]


def test_a_cordoned_node_keeps_its_pods_and_gets_no_others() -> None:
    result = simulate(
        [make_node("a", cpu="4")],
        at(0, "add", pod("p")),
        at(10, "cordon", node("a")),
        at(20, "add", pod("q")),
        at(90, "uncordon", node("a")),
    )
    assert story(result, "bind", "evict") == ["0 bind p a", "90 bind q a"]


def budget(name: str, app: str, **spec: Any) -> Fields:
    selector = {"matchLabels": {"app": app}}
    metadata = {"name": name, "namespace": "default"}
    status = spec.pop("status", {})
    kind = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget"}
    return {**kind, "metadata": metadata, "spec": {"selector": selector, **spec}, "status": status}


def test_a_drain_waits_for_budgets() -> None:
    events = [
        at(0, "add", budget("web", "web", minAvailable=2)),
        *(at(0, "add", pod(f"web-{number}", owner="ReplicaSet/web")) for number in range(2)),
        at(0, "add", pod("bare")),
        at(0, "add", pod("daemon", owner="DaemonSet/logs", cpu="0")),
        at(0, "add", pod("mirror", annotations={"kubernetes.io/config.mirror": "x"}, cpu="0", nodeName="a")),
        at(0, "add", pod("static", owner="Node/a", cpu="0", nodeName="a")),
        at(10, "drain", node("a", cpu="4")),
        at(11, "add", node("b", cpu="4")),
        at(12, "add", pod("web-2", owner="ReplicaSet/web")),
    ]
    result = simulate([make_node("a", cpu="4")], *events)
    # What the budget does not protect leaves at once, the rest as others take its place; the pods of the node stay.
    assert story(result, "evict", "bind")[4:] == [
        "10 evict bare a drain",
        "12 bind web-2 b",
        "15 evict web-0 a drain",
        "16 bind web-* b",
        "20 evict web-1 a drain",
        "21 bind web-* b",
    ]


def test_a_drain_that_is_blocked_for_good_does_not_go_on_for_ever() -> None:
    events = [at(0, "add", budget("p", "p", maxUnavailable=0)), at(0, "add", pod("p")), at(9, "drain", node("a"))]
    result = simulate([make_node("a")], *events)
    assert story(result, "evict") == []
    assert result.end < 1000
    refusal = "PodDisruptionBudget default/p allows nothing: no controller says how many pods it wants"
    assert result.unfinished_drains == {"a": {"default/p": refusal}}


@pytest.mark.parametrize(("until", "left"), [(14, {"a": {"default/p": NEXT_TRY}}), (15, {})])
def test_a_drain_that_goes_on_after_the_end_is_unfinished(until: float, left: dict[str, dict[str, str]]) -> None:
    protected = [make_node("a"), *load([budget("p", "p", maxUnavailable=0)])]
    events = [at(0, "add", pod("p")), at(10, "drain", node("a")), at(12, "delete", budget("p", "p"))]
    assert simulate(protected, *events, until=until).unfinished_drains == left


def test_a_drain_whose_pods_ended_by_themselves_is_not_unfinished() -> None:
    events = [
        at(0, "add", budget("p", "p", maxUnavailable=0)),
        at(0, "add", pod("p"), lifetime=11),
        at(9, "drain", node("a")),
    ]
    assert simulate([make_node("a")], *events, until=12).unfinished_drains == {}


def test_a_drain_does_not_evict_pods_that_came_later() -> None:
    """The replacement tolerates the cordon and comes back; a blocked pod keeps the drain going."""
    stays = [{"operator": "Exists"}]
    events = [
        at(0, "add", budget("kept", "kept", minAvailable=1)),
        at(0, "add", pod("kept-0", owner="ReplicaSet/kept", nodeName="a")),
        at(0, "add", pod("tol-0", owner="ReplicaSet/tol", nodeName="a", tolerations=stays)),
        at(10, "drain", node("a", cpu="4")),
    ]
    assert story(simulate([make_node("a", cpu="4")], *events), "evict") == ["10 evict tol-0 a drain"]


def test_a_drain_goes_on_once_the_budget_is_gone() -> None:
    protected = [make_node("a"), *load([budget("p", "p", maxUnavailable=0)])]
    events = [
        at(0, "add", pod("p")),
        at(10, "drain", node("a")),
        at(22, "delete", budget("p", "p")),
        at(30, "add", pod("end", cpu="0")),
    ]
    assert story(simulate(protected, *events), "evict") == ["25 evict p a drain"]


SPARED: dict[str, tuple[str, list[Fields], list[str]]] = {
    "two budgets": (
        "ReplicaSet/web",
        [budget("one", "web", minAvailable=0), budget("two", "web", minAvailable=0)],
        [],
    ),
    "the pods of a Job, which has no scale": ("Job/web", [budget("web", "web", maxUnavailable=1)], []),
    "neither a minimum nor a maximum": (
        "ReplicaSet/web",
        [budget("web", "web", status={"disruptionsAllowed": 1})],
        [],
    ),
    "what the pods of an operator leave": (
        "Rollout/web",
        [budget("web", "web", maxUnavailable=1)],
        ["10 evict web-0 a drain", "15 evict web-1 a drain"],
    ),
}


@pytest.mark.parametrize(("owner", "budgets", "evicted"), SPARED.values(), ids=SPARED)
def test_a_drain_asks_budgets_as_the_eviction_api_does(owner: str, budgets: list[Fields], evicted: list[str]) -> None:
    events = [
        *(at(0, "add", each) for each in budgets),
        *(at(0, "add", pod(f"web-{number}", owner=owner)) for number in range(2)),
        at(5, "add", node("b", cpu="4")),
        at(10, "drain", node("a", cpu="4")),
        at(60, "add", pod("end", cpu="0")),
    ]
    assert story(simulate([make_node("a", cpu="4")], *events), "evict") == evicted


def test_a_budget_counts_the_pods_that_their_controller_wants() -> None:
    """Three are wanted and two run, so that none may go until the third runs as well, or two are enough."""
    behaviour = Surroundings(controllers=False)
    events = [
        at(0, "add", workload("ReplicaSet", "web", 3)),
        at(0, "add", budget("web", "web", maxUnavailable=1)),
        *(at(0, "add", pod(f"web-{number}", owner="ReplicaSet/web")) for number in range(2)),
        at(10, "drain", node("a", cpu="4")),
        at(31, "update", workload("ReplicaSet", "web", 2)),
        at(60, "add", pod("end", cpu="0")),
    ]
    result = simulate([make_node("a", cpu="4")], *events, surroundings=behaviour)
    assert story(result, "evict") == ["35 evict web-0 a drain"]


def test_a_pod_that_is_not_ready_does_not_count_for_its_budget() -> None:
    ready = [make_pod(f"web-{n}", node="a", labels={"app": "web"}, owner=WEB_SET, ready=n == 0) for n in range(2)]
    objects = [make_node("a", cpu="4"), *load([budget("web", "web", minAvailable=1)]), *ready]
    events = [at(10, "drain", node("a", cpu="4")), at(30, "add", pod("end", cpu="0"))]
    # The one that is not ready may go, as long as the other one is; there is no other node for a new one.
    assert story(simulate(objects, *events), "evict") == ["10 evict web-1 a drain"]


def test_an_uncordoned_node_has_lost_the_taint_that_a_cluster_gave_it() -> None:
    cordoned = make_node("a", taints=["node.kubernetes.io/unschedulable=:NoSchedule"], unschedulable=True)
    events = [at(0, "add", pod("p")), at(60, "uncordon", node("a"))]
    assert story(simulate([cordoned], *events), "bind") == ["60 bind p a"]


def test_a_drained_pod_of_an_operator_comes_back_elsewhere() -> None:
    events = [
        at(0, "add", pod("web-0", owner="Rollout/web")),
        at(5, "add", node("b", cpu="4")),
        at(10, "drain", node("a", cpu="4")),
    ]
    assert story(simulate([make_node("a", cpu="4")], *events), "evict", "bind")[1:] == [
        "10 evict web-0 a drain",
        "11 bind web-* b",
    ]


def test_preemption_sees_budgets_as_they_are_now() -> None:
    events = [
        at(0, "add", budget("web", "web", minAvailable=1)),
        at(0, "add", pod("web-1", owner="Custom/web")),
        at(0, "add", pod("bare")),
        at(10, "add", pod("vip", priority=9), lifetime=5),
    ]
    nodes = [make_node("a", cpu="1"), make_node("b", cpu="1")]
    assert story(simulate(nodes, *events), "evict") == ["10 evict bare b preempted"]


# -- waiting at Permit -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("verb", "becomes"),
    [
        ("delete", ["20 bind p a", "20 lost p a"]),
        ("drain", ["20 bind p a"]),
        ("fail", ["20 bind p a", "320 evict p a taint"]),
    ],
)
def test_what_happens_to_a_node_concerns_a_pod_only_once_it_is_bound(verb: str, becomes: list[str]) -> None:
    """The pod waits at Permit when its node is taken away, until a second one comes."""
    events = [
        at(0, "add", pod("p")),
        at(10, verb, node("a")),
        at(20, "add", node("b")),
        at(20, "add", pod("second", cpu="0")),
    ]
    result = simulate([make_node("a", cpu="1")], *events, **with_plugins(Pairs))
    assert [line for line in story(result, "wait", "bind", "lost", "evict") if " p " in line] == [
        "0 wait p a",
        *becomes,
    ]


# -- workloads ---------------------------------------------------------------------------------------------------------


def test_a_deployment_is_scaled_up_and_down_and_deleted() -> None:
    result = simulate(
        [make_node("a", cpu="9")],
        at(0, "add", workload("Deployment", "web", 2)),
        at(10, "update", workload("Deployment", "web", 3)),
        at(20, "update", workload("Deployment", "web", 1)),
        at(30, "delete", workload("Deployment", "web", 1)),
    )
    ends = sorted(life.ended for life in result.lives if life.ended is not None)
    assert [life.arrived for life in result.lives] == [0, 0, 10]
    assert ends == [20, 20, 30]


def test_a_job_starts_pods_until_all_are_done() -> None:
    job = workload("Job", "sum", 0, parallelism=2, completions=5, metadata={"annotations": {"podium/lifetime": "10s"}})
    del job["spec"]["replicas"], job["spec"]["selector"]
    result = simulate([make_node("a", cpu="1")], at(0, "add", job))
    assert len(story(result, "finish")) == 5
    assert result.end == 50


def test_a_stateful_set_scales_down_from_the_end() -> None:
    result = simulate(
        [make_node("a", cpu="9")],
        at(0, "add", workload("StatefulSet", "db", 3)),
        at(10, "update", workload("StatefulSet", "db", 1)),
        at(20, "update", workload("StatefulSet", "db", 2)),
    )
    assert [(life.pod, life.ended) for life in result.lives] == [
        ("default/db-0", None),
        ("default/db-1", 10),
        ("default/db-2", 10),
        ("default/db-1", None),
    ]


def test_daemons_come_with_their_nodes_and_go_with_them() -> None:
    daemons = workload("DaemonSet", "logs", 0, cpu="100m")
    del daemons["spec"]["replicas"]
    result = simulate(
        [make_node("a")],
        at(0, "add", daemons),
        at(10, "add", node("b")),
        at(20, "delete", node("a")),
    )
    assert story(result, "bind", "lost") == ["0 bind logs-a a", "10 bind logs-b b", "20 lost logs-a a"]
    assert story(result, "create") == ["0 create logs-a", "10 create logs-b"]


def test_workloads_of_the_cluster_have_their_pods_from_the_beginning() -> None:
    (made,) = [make_object("ReplicaSet", "web", namespace="default", spec=workload("ReplicaSet", "web", 2)["spec"])]
    result = simulate([make_node("a", cpu="9"), made], at(5, "add", node("b")))
    assert story(result, "bind") == ["0 bind web-0 a", "0 bind web-1 a"]


# -- records ---------------------------------------------------------------------------------------------------------


def test_a_record_says_itself_what_controllers_did() -> None:
    record = [
        {"time": "2026-01-01T10:00:00Z", "event": "Add", "resource": node("a", cpu="1")},
        {"time": "2026-01-01T10:00:01.5Z", "event": "Add", "resource": pod("web-1", owner="ReplicaSet/web")},
        {"time": "2026-01-01T10:00:02Z", "event": "Update", "resource": pod("web-1", nodeName="recorded")},
        {"time": "2026-01-01T10:00:10Z", "event": "Add", "resource": pod("vip", priority=9)},
        {"time": "2026-01-01T10:00:20Z", "event": "Delete", "resource": {"kind": "Pod", "metadata": {"name": "vip"}}},
    ]
    result = Timeline((), record, tie_break="first").run()
    assert story(result, "bind", "create", "evict") == [
        "1.5 bind web-1 a",
        "10 evict web-1 a preempted",
        "11 bind vip a",
    ]


# -- samples and determinism -------------------------------------------------------------------------------------------


def test_samples_say_how_deep_the_queue_and_how_full_the_cluster_is() -> None:
    result = simulate(
        [make_node("a", cpu="2")],
        at(5, "add", pod("p"), lifetime=20),
        at(5, "add", pod("q", cpu="2")),
        at(5, "add", pod("gated", schedulingGates=[{"name": "g"}])),
        until=30,
    )
    rows = [(s.time, s.running, s.unschedulable, s.gated, s.queued, s.utilisation("cpu")) for s in result.samples]
    assert rows == [(0, 0, 0, 0, 0, 0.0), (10, 1, 1, 1, 2, 0.5), (20, 1, 1, 1, 2, 0.5), (30, 1, 0, 1, 1, 1.0)]


def test_utilisation_counts_every_second() -> None:
    short = simulate([make_node("a", cpu="10")], at(1, "add", pod("p"), lifetime=4), until=8)
    assert short.utilisation["cpu"] == pytest.approx((0.1 * 4 / 8, 0.1))

    grows = simulate(
        [make_node("a", cpu="2")],
        at(0, "add", pod("p")),
        at(3, "add", node("b", cpu="2")),
        at(6, "delete", node("b")),
        at(7, "add", pod("q")),
        until=10,
    )
    # Half of one node, a quarter of two, half of one, all of it.
    assert grows.utilisation["cpu"] == pytest.approx(((0.5 * 3 + 0.25 * 3 + 0.5 * 1 + 1.0 * 3) / 10, 1.0))
    assert list(grows.utilisation)[:1] == ["cpu"]


def test_utilisation_without_time_is_that_of_the_moment() -> None:
    assert simulate([make_node("a", cpu="2")], at(0, "add", pod("p")), until=0).utilisation["cpu"] == (0.5, 0.5)
    assert simulate([make_node("a", cpu="2")], at(0, "delete", node("a")), until=5).utilisation == {}


def test_utilisation_is_what_the_pods_asked_for_while_they_ran() -> None:
    events = hour_events(3, 9, 150, failing=0, seconds=1200)
    asked = {each["object"]["metadata"]["name"]: pod_cpu(each["object"]) for each in events}
    result = Timeline(hour_nodes(9), events).run()
    used = sum(
        asked[life.pod.partition("/")[2]] * ((result.end if life.ended is None else life.ended) - life.bound)
        for life in result.lives
        if life.bound is not None
    )
    assert result.utilisation["cpu"].mean == pytest.approx(used / (9 * 16 * result.end))


def pod_cpu(manifest: Fields) -> Fraction:
    return parse_quantity(manifest["spec"]["containers"][0]["resources"]["requests"]["cpu"])


def test_writers_give_tables_and_data() -> None:
    result = simulate([make_node("a", cpu="2")], at(0, "add", pod("p"), lifetime=15), at(1, "add", pod("q", cpu="4")))
    assert result.pods_csv().splitlines() == [
        "pod,node,arrived,bound,ended,waited,attempts",
        "default/p,a,0.0,0.0,15.0,0.0,1",
        "default/q,,1.0,,,,0",
    ]
    assert (
        result.samples_csv().splitlines()[0].startswith("time,nodes,running,active,backoff,unschedulable,gated,waiting")
    )
    assert result.samples_csv().splitlines()[2].startswith("10,1,1,0,0,1,0,0,1000,2000,")
    assert result.to_dict()["pods"][1]["waited"] is None
    assert result.log_lines().splitlines()[0] == b'{"time":0,"event":"add","kind":"Pod","name":"default/p"}'


@pytest.mark.parametrize("tie_break", ["random", "first", "round-robin"])
def test_the_same_events_and_seed_give_the_same_log(tie_break: str) -> None:
    def run(seed: int) -> bytes:
        events = hour_events(7, nodes=6, pods=150, failing=0.2, seconds=900)
        return Timeline(hour_nodes(6), events, tie_break=tie_break, seed=seed).run().log_lines()

    assert run(1) == run(1)
    if tie_break == "random":
        assert run(1) != run(2)


def test_running_on_is_the_same_as_running_through() -> None:
    events = hour_events(5, nodes=6, pods=150, failing=0.2, seconds=600)
    through = Timeline(hour_nodes(6), events).run()
    steps = Timeline(hour_nodes(6), events)
    for until in (0.0, 33.3, 200.0, 450.0):
        steps.run(until)
    assert steps.run().log_lines() == through.log_lines()


class Clumsy(FilterPlugin):
    """Raises for pods whose name begins with "bad"."""

    name = "Clumsy"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if pod.name.startswith("bad"):
            raise ValueError("oops")
        return SUCCESS


def test_a_plugin_that_raises_is_a_warning_that_names_it() -> None:
    events = [at(0, "add", pod(name, cpu="100m")) for name in ("good", "bad-1", "bad-2")]
    result = simulate([make_node("a", cpu="1")], *events, until=60, **with_plugins(Clumsy))

    error = "plugin 'Clumsy' failed: ValueError: oops"
    assert result.warnings == (f"Pod default/bad-1 waits because of an error: {error}; 1 more like it",)
    assert result.failed_plugins == {"Clumsy": f"pod default/bad-1: {error}"}
    assert {life.pod for life in result.unplaced} == {"default/bad-1", "default/bad-2"}
