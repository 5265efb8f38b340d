"""What controllers make when pods end, are lost, or a workload changes; and how long pods stay with taints."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_node, make_object, make_pod
from podium.cluster import Cluster
from podium.model import DaemonSet, Object, Pod, StatefulSet
from podium.model.selectors import NOT_READY, UNREACHABLE
from podium.timeline.taint_eviction import seconds_tolerated
from podium.workloads.controllers import Controllers

Fields = dict[str, Any]
NOW = datetime(2026, 1, 1, 12, tzinfo=UTC).timestamp()
TEMPLATE: Fields = {
    "metadata": {"labels": {"app": "web"}},
    "spec": {"containers": [{"name": "main", "image": "app"}]},
}
SELECTOR = {"matchLabels": {"app": "web"}}


def workload(kind: str, **spec: Any) -> Object:
    return make_object(kind, "web", namespace="default", spec={"selector": SELECTOR, "template": TEMPLATE, **spec})


def owned(name: str, kind: str, **fields: Any) -> Pod:
    return make_pod(name, labels={"app": "web"}, owner={"kind": kind, "name": "web"}, **fields)


def controllers(*pods: Pod, objects: tuple[Object, ...] = ()) -> Controllers:
    return Controllers(Cluster.from_objects([make_node("n"), *objects]), {pod.key: pod for pod in pods})


# -- pods come back ------------------------------------------------------------------------------------------------


def test_a_replica_comes_back_under_another_name_and_without_a_node() -> None:
    lost = owned("web-abc", "ReplicaSet", node="n", phase="Running")

    found = controllers(lost).replacement(lost)

    assert found is not None
    assert found.name.startswith("web-")
    assert found.name != "web-abc"
    assert (found.spec.node_name, found.status.phase) == ("", "Pending")
    assert found.metadata.uid != lost.metadata.uid


def test_a_pod_of_a_stateful_set_keeps_its_name() -> None:
    lost = owned("web-1", "StatefulSet", node="n")

    found = controllers(lost).replacement(lost)

    assert found is not None
    assert (found.name, found.spec.node_name) == ("web-1", "")


def test_nobody_makes_pods_without_a_controller_and_mirror_pods_again() -> None:
    alone, static = make_pod("alone", node="n"), owned("web-n", "Node", node="n")

    assert [controllers(pod).replacement(pod) for pod in (alone, static)] == [None, None]


def test_a_stateful_set_with_a_pod_of_a_strange_name_is_scaled_down() -> None:
    """What looks like a digit is not one: the StatefulSet ignores this pod."""
    pods = [owned(name, "StatefulSet", node="n") for name in ("web-0", "web-²", "web-1")]
    spec = {"replicas": 1, "selector": {"matchLabels": {"app": "web"}}}
    workload = make_object("StatefulSet", "web", namespace="default", spec=spec)

    assert [pod.name for pod in controllers(*pods).scale(workload, NOW).surplus] == ["web-1"]


def test_an_operator_makes_its_pods_again() -> None:
    lost = owned("web-n", "Rollout", node="n")

    found = controllers(lost).replacement(lost)

    assert found is not None
    assert found.name.startswith("web-")
    assert found.spec.node_name == ""


JOBS: dict[str, tuple[Fields, int, int, bool]] = {
    "more to do": ({"completions": 3, "parallelism": 2}, 0, 1, True),
    "enough are running": ({"completions": 5, "parallelism": 2}, 2, 1, False),
    "the running ones will do": ({"completions": 2, "parallelism": 2}, 1, 1, False),
    "done": ({"completions": 2, "parallelism": 2}, 0, 2, False),
    "suspended": ({"completions": 3, "parallelism": 2, "suspend": True}, 0, 1, False),
    "any number": ({"parallelism": 2}, 0, 1, False),
}


@pytest.mark.parametrize(("spec", "running", "finished", "goes_on"), JOBS.values(), ids=JOBS)
def test_a_job_goes_on_until_it_is_complete(spec: Fields, running: int, finished: int, goes_on: bool) -> None:
    job = make_object("Job", "web", namespace="default", api_version="batch/v1", spec={"template": TEMPLATE, **spec})
    pods = [owned(f"web-{number}", "Job", node="n") for number in range(running)]
    found = controllers(*pods, objects=(job,))

    for number in range(finished):
        following = found.next_of_job(owned(f"web-done-{number}", "Job", node="n", phase="Succeeded"))

    assert (following is not None) == goes_on


def test_a_pod_of_no_job_is_followed_by_none() -> None:
    assert controllers().next_of_job(owned("web-a", "ReplicaSet")) is None


# -- workloads -----------------------------------------------------------------------------------------------------


def test_a_workload_gets_the_replicas_it_lacks() -> None:
    there = owned("web-0", "StatefulSet", node="n")

    found = controllers(there).scale(workload("StatefulSet", replicas=3, serviceName="web"), NOW)

    assert [pod.name for pod in found.missing if isinstance(pod, Pod)] == ["web-1", "web-2"]
    assert found.surplus == []


def test_the_highest_ordinals_of_a_stateful_set_go_first() -> None:
    pods = [owned(f"web-{number}", "StatefulSet", node="" if number == 0 else "n") for number in (2, 0, 1)]

    found = controllers(*pods).scale(workload("StatefulSet", replicas=1, serviceName="web"), NOW)

    assert found.missing == []
    assert [pod.name for pod in found.surplus] == ["web-2", "web-1"]


def test_a_replica_set_deletes_waiting_pods_crowded_pods_and_young_pods_first() -> None:
    def replica(name: str, node: str, started: str | None) -> Pod:
        pod = owned(name, "ReplicaSet", node=node, phase="Running")
        return replace(pod, status=replace(pod.status, start_time=started))

    pods = [
        replica("waiting", "", None),
        replica("crowded", "n", "2026-01-01T00:00:00Z"),
        replica("crowded-and-young", "n", "2026-01-01T11:00:00Z"),
        replica("young", "m", "2026-01-01T11:59:00Z"),
        replica("old", "o", "2026-01-01T00:00:00Z"),
    ]
    found = [controllers(*pods).scale(workload("ReplicaSet", replicas=size), NOW).surplus for size in (4, 3, 2, 1)]

    order = ["waiting", "crowded-and-young", "crowded", "young"]
    assert [[pod.name for pod in surplus] for surplus in found] == [order[:number] for number in (1, 2, 3, 4)]


def test_a_daemon_set_gets_a_pod_on_every_node() -> None:
    daemons = workload("DaemonSet")
    assert isinstance(daemons, DaemonSet)
    found = controllers(objects=(make_node("m"), daemons))

    assert len(found.scale(daemons, NOW).missing) == 2
    assert len(found.daemons_for(make_node("new"))) == 1
    assert controllers().daemons_for(make_node("new")) == []


def test_a_name_is_not_given_away_twice() -> None:
    first = owned("web-a", "ReplicaSet", node="n")
    found = controllers(first)

    names = set()
    for _ in range(20):
        made = found.replacement(first)
        assert made is not None
        found.note(made)
        names.add(made.name)
    assert len(names) == 20

    other = controllers(first)
    other.restore(found.save())
    following = found.replacement(first), other.replacement(first)
    assert following[0] == following[1]
    assert following[0] is not None
    assert following[0].name not in names


def test_a_pod_that_is_gone_is_not_owned_any_more() -> None:
    pods = {pod.key: pod for pod in (owned("web-0", "StatefulSet"), owned("web-1", "StatefulSet"))}
    found = Controllers(Cluster.from_objects([make_node("n")]), pods)
    stateful = workload("StatefulSet", replicas=2, serviceName="web")
    assert isinstance(stateful, StatefulSet)

    found.forget(pods["default/web-0"])

    assert [pod.name for pod in found.owned_by(stateful)] == ["web-1"]


# -- taints --------------------------------------------------------------------------------------------------------


def tolerating(**fields: Any) -> Pod:
    return make_pod(tolerations=[{"effect": "NoExecute", **fields}])


STAYS: dict[str, tuple[Pod, str, float | None]] = {
    "a taint that only keeps others off": (make_pod(), "k=v:NoSchedule", None),
    "not tolerated": (make_pod(), "k=v:NoExecute", 0.0),
    "tolerated": (tolerating(key="k", operator="Exists"), "k=v:NoExecute", None),
    "tolerated for a while": (tolerating(key="k", operator="Exists", tolerationSeconds=7), "k=v:NoExecute", 7.0),
    "for less than no time": (tolerating(key="k", operator="Exists", tolerationSeconds=-7), "k=v:NoExecute", 0.0),
    "out of reach": (make_pod(), f"{UNREACHABLE}=:NoExecute", 300.0),
    "not ready": (make_pod(), f"{NOT_READY}=:NoExecute", 300.0),
    "out of reach, as the pod says": (
        tolerating(key=UNREACHABLE, operator="Exists", tolerationSeconds=5),
        f"{UNREACHABLE}=:NoExecute",
        5.0,
    ),
}


@pytest.mark.parametrize(("pod", "taint", "seconds"), STAYS.values(), ids=STAYS)
def test_how_long_a_pod_stays_with_a_taint(pod: Pod, taint: str, seconds: float | None) -> None:
    taints = make_node("n", taints=[taint]).spec.taints

    assert seconds_tolerated(pod.spec.tolerations, taints, 300.0) == seconds


def test_the_shortest_patience_counts() -> None:
    taints = make_node("n", taints=["a=:NoExecute", "b=:NoExecute"]).spec.taints
    pod = make_pod(
        tolerations=[
            {"key": "a", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 9},
            {"key": "b", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 4},
        ]
    )

    assert seconds_tolerated(pod.spec.tolerations, taints, 300.0) == 4.0
