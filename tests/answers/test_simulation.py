"""Simulating: pods in queue order, each on what the earlier ones left, the cluster itself untouched."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import affinity, make_config, make_node, make_object, make_pod, pod_term
from podium.answers.simulation import Placement, Simulation, simulate
from podium.cluster import Cluster
from podium.framework import QueueSortPlugin, Registry
from podium.model import Pod
from podium.plugins import IN_TREE


def created(pod: Pod, when: str) -> Pod:
    return replace(pod, metadata=replace(pod.metadata, creation_timestamp=when))


def order(simulation: Simulation) -> list[str]:
    return [placement.pod.name for placement in simulation.placements]


def one_slot(*pods: Pod) -> Simulation:
    """What happens on a node that has room for one pod."""
    return simulate(Cluster.from_objects([make_node("n", pods=1), *pods]))


ORDERS: dict[str, tuple[list[Pod], list[str]]] = {
    "as they came": ([make_pod("b"), make_pod("a")], ["b", "a"]),
    "by priority": ([make_pod("low", priority=1), make_pod("high", priority=7)], ["high", "low"]),
    "older first": (
        [
            created(make_pod("new"), "2026-01-02T00:00:00Z"),
            created(make_pod("old"), "2026-01-01T00:00:00+00:00"),
        ],
        ["old", "new"],
    ),
    "those that exist before those that do not yet": (
        [make_pod("planned"), created(make_pod("there"), "2026-01-02T00:00:00Z")],
        ["there", "planned"],
    ),
    "priority before age": (
        [created(make_pod("old"), "2026-01-01T00:00:00Z"), make_pod("high", priority=1)],
        ["high", "old"],
    ),
}


@pytest.mark.parametrize(("pods", "expected"), ORDERS.values(), ids=ORDERS)
def test_order(pods: list[Pod], expected: list[str]) -> None:
    simulation = one_slot(*pods)

    assert order(simulation) == expected
    assert [placement.node for placement in simulation.placements] == ["n", *[None] * (len(pods) - 1)]


class ByName(QueueSortPlugin):
    name = "ByName"

    def sort_key(self, queued: Any) -> str:
        return str(queued.pod.name)


def test_order_of_a_queue_sort_of_ones_own() -> None:
    sort = {"queueSort": {"disabled": [{"name": "*"}], "enabled": [{"name": "ByName"}]}}
    cluster = Cluster.from_objects([make_node("n"), make_pod("b"), make_pod("a")])

    simulation = simulate(
        cluster, config=make_config({"plugins": sort}), registry=Registry([*IN_TREE.values(), ByName])
    )

    assert order(simulation) == ["a", "b"]


def test_the_cluster_stays_as_it_is() -> None:
    cluster = Cluster.from_objects([make_node("n"), make_pod("a")])

    simulation = simulate(cluster)

    assert list(cluster.placed()) == []
    assert [(pod.name, node) for pod, node in simulation.cluster.placed()] == [("a", "n")]


def test_pods_that_are_given_instead_of_those_pending() -> None:
    cluster = Cluster.from_objects([make_node("n"), make_pod("pending")])

    assert order(simulate(cluster, [make_pod("given")])) == ["given"]


def test_what_does_not_fit_says_why() -> None:
    simulation = one_slot(make_pod("a"), make_pod("b"), make_pod("c", requests={"cpu": "64"}), make_pod("b2"))

    assert not simulation.fits
    assert [placement.pod.name for placement in simulation.placed] == ["a"]
    assert {placement.pod.name: placement.message for placement in simulation.pending} == {
        "b": "0/1 nodes are available: 1 Too many pods.",
        "c": "0/1 nodes are available: 1 Insufficient cpu, 1 Too many pods.",
        "b2": "0/1 nodes are available: 1 Too many pods.",
    }


def test_reasons_follow_what_was_placed_meanwhile() -> None:
    big, small = {"cpu": "3"}, {"cpu": "1"}
    nodes = [make_node("m", cpu="2"), make_node("n", cpu="2", unschedulable=True)]
    pods = [
        make_pod("big-1", requests=big, priority=3),
        make_pod("small", requests=small, priority=2),
        make_pod("big-2", requests=big, priority=1),
    ]

    simulation = simulate(Cluster.from_objects([*nodes, *pods]))

    assert [placement.node for placement in simulation.placements] == [None, "m", None]
    assert simulation.placements[0].message == simulation.placements[2].message
    full = simulate(Cluster.from_objects([make_node("m", cpu="2"), *pods[1:], make_pod("mid", requests={"cpu": "2"})]))
    assert full.placements[-1].message == "0/1 nodes are available: 1 Insufficient cpu."


def test_a_pod_that_cannot_be_decided_stays_pending() -> None:
    simulation = one_slot(make_pod("gated", scheduling_gates=[{"name": "wait"}]), make_pod("other", scheduler_name="x"))

    assert [placement.node for placement in simulation.placements] == [None, None]
    assert "waiting for scheduling gates: [wait]" in simulation.placements[0].message
    assert "no profile for scheduler name 'x'" in simulation.placements[1].message


def test_how_full_nodes_get() -> None:
    running = make_pod("running", node="n", requests={"cpu": "500m", "memory": "1Gi"})
    new = make_pod("new", requests={"cpu": "1", "example.com/gpu": 2})
    cluster = Cluster.from_objects([make_node("n", cpu="2", gpu=4), make_node("m", cpu="0"), running, new])

    simulation = simulate(cluster)

    usage = simulation.nodes["n"]
    assert (usage.allocatable["cpu"], usage.before["cpu"], usage.after["cpu"]) == (2000, 500, 1500)
    assert (usage.before["memory"], usage.after["memory"]) == (1 << 30, 1 << 30)
    assert (usage.before["pods"], usage.after["pods"]) == (1, 2)
    assert (usage.allocatable["example.com/gpu"], usage.after["example.com/gpu"]) == (4, 2)
    assert list(simulation.nodes) == ["m", "n"]
    assert simulation.total.allocatable["pods"] == 220
    assert simulation.total.after["cpu"] == 1500


def test_tells_of_each_decision() -> None:
    told: list[Placement] = []
    cluster = Cluster.from_objects([make_node("n"), make_pod("a"), make_pod("b")])

    simulation = simulate(cluster, on_decided=told.append)

    assert tuple(told) == simulation.placements


def test_the_same_seed_gives_the_same_placements() -> None:
    objects = [*(make_node(f"n{number}") for number in range(9)), *(make_pod(f"p{number}") for number in range(9))]

    one, two, other = (simulate(Cluster.from_objects(objects), seed=seed).placements for seed in (1, 1, 2))

    assert one == two
    assert one != other


def test_placements_know_their_workload() -> None:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "1"}
    simulation = simulate(
        Cluster.from_objects([make_node("n"), make_object("Namespace", "x"), make_pod("db-0", owner=owner)])
    )

    assert simulation.placements[0].workload == "StatefulSet/db"


def test_nothing_pending_fits() -> None:
    simulation = simulate(Cluster.from_objects([make_node("n")]))

    assert simulation.fits
    assert simulation.placements == ()


OWNER = {"kind": "ReplicaSet", "name": "set"}


def full(*more: Pod, **victim: Any) -> Cluster:
    """Two nodes for one pod each, of which the first has a pod of low priority, and pods that wait."""
    running = make_pod("low", node="a", priority=1, **{"owner": OWNER, **victim})
    return Cluster.from_objects([make_node("a", pods=1), make_node("b", pods=1), running, *more])


def whereabouts(simulation: Simulation) -> dict[str, str | None]:
    return {placement.pod.name: placement.node for placement in simulation.placements}


def test_a_pod_of_high_priority_preempts_others() -> None:
    high = make_pod("high", priority=9, node_name="")
    other = make_pod("other", priority=5)

    found = simulate(full(high, other), tie_break="first")

    assert whereabouts(found) == {"high": "b", "other": "a", "low": None}
    (victim,) = found.preempted
    assert (victim.pod.name, victim.preempted_by, victim.old_node, victim.is_lost) == (
        "low",
        "default/other",
        "a",
        False,
    )
    assert not found.fits
    assert [placement.pod.name for placement in found.pending] == ["low"]


def test_a_preempted_pod_goes_elsewhere_if_it_can() -> None:
    pinned = make_pod("high", priority=9, node_selector={"kubernetes.io/hostname": "a"})
    nodes = [make_node(name, pods=1, labels={"kubernetes.io/hostname": name}) for name in ("a", "b")]
    low = make_pod("low", node="a", priority=1, owner=OWNER)

    found = simulate(Cluster.from_objects([*nodes, low, pinned]), tie_break="first")

    assert whereabouts(found) == {"high": "a", "low": "b"}
    assert found.fits


def test_nothing_is_preempted_if_that_is_left_out() -> None:
    found = simulate(full(make_pod("high", priority=9), make_pod("other", priority=5)), preempt=False)

    assert whereabouts(found) == {"high": "b", "other": None}
    assert found.preempted == ()


def test_a_victim_without_a_controller_is_lost() -> None:
    found = simulate(full(make_pod("high", priority=9), make_pod("other", priority=5), owner=None))

    (victim,) = found.preempted
    assert victim.is_lost
    assert victim.message == "no controller makes it again"
    assert not found.fits


def test_a_pod_is_tried_again_after_the_pod_that_it_waits_for() -> None:
    follow = affinity(required=[pod_term("zone", {"app": "leader"})])
    follower = make_pod("follower", priority=9, affinity=follow)
    leader = make_pod("leader", labels={"app": "leader"})
    nodes = [make_node(name, labels={"zone": name}) for name in ("a", "b")]

    found = simulate(Cluster.from_objects([*nodes, follower, leader]), tie_break="first")

    assert whereabouts(found) == {"follower": "a", "leader": "a"}


def test_pods_that_end_make_room() -> None:
    leaving = make_pod("leaving", node="n", deleted=True)

    found = simulate(Cluster.from_objects([make_node("n", pods=1), leaving, make_pod("next")]))

    assert whereabouts(found) == {"next": "n"}
