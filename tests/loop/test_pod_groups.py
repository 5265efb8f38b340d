"""Groups of pods in the loop: held back, placed together or not at all, tried again, preempting and preempted."""

from __future__ import annotations

import pytest

from builders import make_node, make_pod
from loop.driving import Driver
from pod_group_objects import RELEASE, WITH_PLACEMENTS, make_group, make_member
from podium.errors import InputError
from podium.loop.snapshot import take_snapshot

NO_VICTIMS = "pod group preemption: No preemption victims found for incoming preemptor"


def test_a_gang_waits_until_it_has_enough_pods() -> None:
    driver = Driver([make_node("a"), make_group("g", 2)], release=RELEASE)
    assert driver.add(make_member("g-0")).work() == []
    assert driver.add(make_member("g-1")).work() == ["g is Scheduled: ", "bind g-0 to a", "bind g-1 to a"]


def test_a_gang_that_does_not_fit_gets_no_node() -> None:
    driver = Driver([make_node("a", cpu="1"), make_group("g", 2)], release=RELEASE)
    said = driver.add(make_member("g-0"), make_member("g-1")).work()
    few = f"minCount (2) cannot be satisfied: 1 scheduled, 0 remaining, {NO_VICTIMS}"
    assert said == [
        f"g-0 failed: pod group is unschedulable, {few}",
        "g-1 failed: NodeResourcesFit",
        f"g is Unschedulable: {few}",
    ]
    # No event wakes it, only the end of its backoff.
    assert driver.add(make_node("b")).work(at=1.0) == []
    assert driver.work(at=2.0) == ["g is Scheduled: ", "bind g-0 to b", "bind g-1 to b"]


def test_a_basic_group_places_what_fits() -> None:
    driver = Driver([make_node("a", cpu="1"), make_group("g")], release=RELEASE)
    said = driver.add(make_member("g-0"), make_member("g-1")).work()
    assert said[:3] == ["g-1 failed: NodeResourcesFit", "g is Scheduled: ", "bind g-0 to a"]


def test_pods_wait_for_their_group_to_exist() -> None:
    driver = Driver([make_node("a")], release=RELEASE)
    assert driver.add(make_member("g-0")).work() == []
    assert driver.loop.queue.groups.part_of(driver.pod("g-0")) == "incomplete"
    assert driver.add(make_group("g", 1)).work() == ["g is Scheduled: ", "bind g-0 to a"]


def test_one_gated_pod_holds_the_group() -> None:
    gated = make_member("g-1", schedulingGates=[{"name": "example.com/hold"}])
    driver = Driver([make_node("a"), make_group("g", 1)], release=RELEASE)
    assert driver.add(gated, make_member("g-0")).work() == []
    assert driver.update(make_member("g-1")).work() == ["g is Scheduled: ", "bind g-0 to a", "bind g-1 to a"]


def test_with_the_gate_off_pods_are_placed_alone() -> None:
    driver = Driver([make_node("a", cpu="1"), make_group("g", 2)], release="v1.37")
    assert driver.add(make_member("g-0")).work() == ["bind g-0 to a"]


def test_a_group_preempts_for_all_its_pods() -> None:
    running = [make_pod(name, node="a", requests={"cpu": "1"}, priority=1) for name in ("x", "y", "z")]
    driver = Driver([make_node("a", cpu="3"), *running, make_group("g", 2, priority=5)], release=RELEASE)
    said = driver.add(make_member("g-0", priority=5), make_member("g-1", priority=5)).work()
    assert [each for each in said if each.startswith("evict")] == ["evict y for g-0", "evict z for g-0"]
    assert driver.work(at=2.0)[-2:] == ["bind g-0 to a", "bind g-1 to a"]


def test_a_group_that_is_disrupted_as_a_whole_goes_as_a_whole() -> None:
    running = [make_member(f"low-{node}", "low", node=node) for node in ("a", "b")]
    low = make_group("low", 2, disruptionMode={"all": {}})
    driver = Driver([make_node("a", cpu="1"), make_node("b", cpu="1"), low, *running], release=RELEASE)
    said = driver.add(make_pod("high", requests={"cpu": "1"}, priority=5)).work()
    assert [each for each in said if each.startswith("evict")] == ["evict low-a for high", "evict low-b for high"]


def test_a_group_with_a_topology_constraint_stays_in_one_domain() -> None:
    nodes = [make_node(f"{rack}-{n}", cpu="1", labels={"rack": rack}) for rack in ("r1", "r2") for n in "ab"]
    constraint = {"topology": [{"key": "rack"}]}
    group = make_group("g", 2, schedulingConstraints=constraint)
    taken = make_pod("taken", node="r1-a", requests={"cpu": "1"})
    driver = Driver([*nodes, taken, group], release=WITH_PLACEMENTS)
    said = driver.add(make_member("g-0"), make_member("g-1")).work()
    assert said == ["g is Scheduled: ", "bind g-0 to r2-a", "bind g-1 to r2-b"]


def test_a_snapshot_of_waiting_groups_is_refused() -> None:
    driver = Driver([make_node("a"), make_group("g", 2)], release=RELEASE)
    driver.add(make_member("g-0")).work()
    with pytest.raises(InputError, match="pods of PodGroups that wait, as default/g-0 does"):
        take_snapshot(driver.loop)
