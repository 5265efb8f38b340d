"""Claims of pods that end: who keeps them, and who gives back the devices."""

from __future__ import annotations

from msgspec.structs import replace

from builders import make_node, make_pod
from device_objects import exactly, make_claim, make_class, make_slice, using
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Pod, ResourceClaim


def world(devices: int = 1) -> tuple[Cluster, Scheduler]:
    gpus = make_slice("n", *(f"gpu-{number}" for number in range(devices)), node="n")
    cluster = Cluster.from_objects([make_node("n"), make_class(), gpus, make_claim("one"), make_claim("two")])
    return cluster, Scheduler(cluster, tie_break="first")


def claim(cluster: Cluster, name: str) -> ResourceClaim:
    found = cluster.store.of(ResourceClaim).get(name, "default")
    assert found is not None
    return found


def pod(name: str, *claims: str) -> Pod:
    return make_pod(name, resource_claims=using(*claims))


def test_a_claim_has_its_devices_for_the_next_pod_too() -> None:
    cluster, scheduler = world()

    assert scheduler.schedule(pod("a", "one")) == "n"
    assert scheduler.schedule(pod("b", "one")) == "n"

    allocation = claim(cluster, "one").status.allocation
    assert allocation is not None
    assert allocation.devices.results[0].device == "gpu-0"
    assert [each.name for each in claim(cluster, "one").status.reserved_for] == ["a", "b"]


def test_devices_are_free_once_the_last_pod_ended() -> None:
    cluster, scheduler = world()
    first, second = pod("a", "one"), pod("b", "one")
    scheduler.schedule(first)
    scheduler.schedule(second)
    other = pod("c", "two")

    cluster.end(first)
    assert scheduler.schedule(other) is None
    cluster.end(second)
    assert claim(cluster, "one").status.allocation is None
    assert scheduler.schedule(other) == "n"


def test_an_end_can_be_undone() -> None:
    cluster, scheduler = world()
    first = pod("a", "one")
    scheduler.schedule(first)
    before = claim(cluster, "one")

    (held,) = cluster.end(first)
    cluster.update(held)

    assert claim(cluster, "one") == before
    assert scheduler.decide(pod("c", "two")).node is None


def test_a_claim_made_for_extended_resources_goes_with_its_pod() -> None:
    gpus = make_slice("n", "gpu-0", node="n")
    asked = make_class("gpu", extendedResourceName="example.com/gpu")
    cluster = Cluster.from_objects([make_node("n"), asked, gpus])
    scheduler = Scheduler(cluster, tie_break="first")
    first = make_pod("a", requests={"example.com/gpu": "1"})

    assert scheduler.schedule(first) == "n"
    (made,) = cluster.store.of(ResourceClaim)
    assert made.name == "a-extended-resources"
    assert made.status.allocation is not None
    assert scheduler.schedule(make_pod("b", requests={"example.com/gpu": "1"})) is None

    cluster.end(first)
    assert not list(cluster.store.of(ResourceClaim))
    assert scheduler.schedule(replace(first, spec=replace(first.spec, node_name=""))) == "n"


def test_a_claim_for_administration_takes_nothing() -> None:
    cluster, scheduler = world()
    cluster.update(make_claim("two", exactly(adminAccess=True)))

    assert scheduler.schedule(pod("watcher", "two")) == "n"
    assert scheduler.schedule(pod("a", "one")) == "n"
