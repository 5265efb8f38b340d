"""Groups in `simulate`, and groups that the loop and `simulate` decide alike, with and without kept results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from builders import make_node, make_pod
from loop.driving import Driver
from pod_group_objects import RELEASE, WITH_PLACEMENTS, make_group, make_member
from podium.answers.simulation import place_in_order, simulate
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import InputError
from podium.model import Object, Pod


def placed(objects: list[Object], **options: Any) -> dict[str, str | None]:
    simulation = place_in_order(Cluster.from_objects(objects), tie_break="first", **options)
    return {placement.pod.name: placement.node for placement in simulation.placements}


def test_a_gang_is_placed_as_a_whole_or_not_at_all() -> None:
    objects = [make_node("a", cpu="2"), make_group("g", 3), *[make_member(f"g-{n}") for n in range(3)]]
    assert placed(objects, release=RELEASE) == {"g-0": None, "g-1": None, "g-2": None}
    assert placed([*objects, make_node("b", cpu="1")], release=RELEASE) == {"g-0": "a", "g-1": "a", "g-2": "b"}


def test_a_group_without_enough_pods_is_not_tried() -> None:
    cluster = Cluster.from_objects([make_node("a"), make_group("g", 2), make_member("g-0")])
    (placement,) = simulate(cluster, release=RELEASE).placements
    assert "waiting for minCount pods from a gang" in placement.message


def test_a_pod_of_a_group_is_not_decided_alone() -> None:
    cluster = Cluster.from_objects([make_node("a"), make_group("g", 1), make_member("g-0")])
    scheduler = Scheduler(cluster, release=RELEASE)
    with pytest.raises(InputError, match="decides it with its PodGroup default/g, not alone"):
        scheduler.schedule(cluster.pending["default/g-0"])


AMOUNTS = st.sampled_from(["1", "2"])


@st.composite
def clusters(draw: st.DrawFn) -> list[Object]:
    """Nodes on two racks, groups with and without a minimum or a rack, and pods in no group."""
    nodes = [
        make_node(f"n{n}", cpu=draw(AMOUNTS), labels={"rack": draw(st.sampled_from(["r1", "r2"]))})
        for n in range(draw(st.integers(1, 5)))
    ]
    objects: list[Object] = [*nodes]
    for number in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 4))
        least = draw(st.none() | st.integers(1, size))
        constraint = {"schedulingConstraints": {"topology": [{"key": "rack"}]}} if draw(st.booleans()) else {}
        objects.append(make_group(f"g{number}", least, **constraint))
        asked = [draw(AMOUNTS) for _ in range(size)]
        objects += [make_member(f"g{number}-{n}", f"g{number}", requests={"cpu": cpu}) for n, cpu in enumerate(asked)]
    objects += [make_pod(f"p{n}", requests={"cpu": draw(AMOUNTS)}) for n in range(draw(st.integers(0, 2)))]
    return objects


@settings(max_examples=40)
@given(clusters(), st.sampled_from([RELEASE, WITH_PLACEMENTS]))
def test_the_loop_and_simulate_agree_with_and_without_kept_results(objects: list[Object], release: Any) -> None:
    expected = placed(objects, release=release)
    at_rest = simulate(Cluster.from_objects(objects), tie_break="first", release=release)
    assert {placement.pod.name: placement.node for placement in at_rest.placements} == expected
    assert placed(objects, release=release, equivalence_cache=False) == expected
    others = [item for item in objects if not isinstance(item, Pod)]
    for equivalence_cache in (True, False):
        driver = Driver(others, release=release, equivalence_cache=equivalence_cache)
        # All pods come before the first is tried, as in `simulate`.
        driver.add(*[item for item in objects if isinstance(item, Pod)]).work()
        assert {pod.name: pod.spec.node_name or None for pod in driver.loop.pods.values()} == expected
