"""The volumes that the claims of placed pods get in a simulation."""

from __future__ import annotations

from msgspec.structs import replace

from builders import ZONE, make_node
from csi_objects import DRIVER, make_csi_node
from podium.answers.simulation import PlacedClaim, simulate
from podium.cluster import Cluster
from podium.model import CSINode, Object
from storage_objects import bound, ephemeral, make_claim, make_class, make_volume, on_label, pod_with, uses

A, B = make_node("a", labels={ZONE: "za"}), make_node("b", labels={ZONE: "zb"})
LOCAL, FAST = make_class("local", "kubernetes.io/no-provisioner"), make_class("fast")


def claims(*objects: Object, assume_volumes: bool = False) -> tuple[PlacedClaim, ...]:
    cluster = Cluster.from_objects([A, B, *objects])
    return simulate(cluster, tie_break="first", assume_volumes=assume_volumes).claims


def serving(node: str, *keys: str) -> CSINode:
    """A CSINode whose driver tells nodes apart by these labels."""
    made = make_csi_node(node, {DRIVER: None})
    drivers = [replace(driver, topology_keys=list(keys)) for driver in made.spec.drivers]
    return replace(made, spec=replace(made.spec, drivers=drivers))


def test_a_bound_claim_keeps_its_volume() -> None:
    assert claims(*bound("data"), pod_with(uses("data"))) == (
        PlacedClaim("default/data", "default/pod", "1Gi", "", "bound", "data-volume"),
    )


def test_a_waiting_claim_gets_the_smallest_volume_that_fits_its_node() -> None:
    volumes = [make_volume(f"v{size}", f"{size}Gi", storage_class="local") for size in (1, 3, 2)]
    claim = make_claim("data", "2Gi", storage_class="local")

    assert claims(LOCAL, claim, *volumes, pod_with(uses("data"))) == (
        PlacedClaim("default/data", "default/pod", "2Gi", "local", "reserved", "v2"),
    )


def test_a_claim_waits_for_the_volume_that_is_reserved_for_it() -> None:
    claim = make_claim("data", storage_class="local")
    volumes = [
        make_volume(f"in-{zone}", storage_class="local", claim=claim, nodes=on_label(ZONE, zone))
        for zone in ("gone", "zb")
    ]
    # Of several the first is the only one it may have, and that one is out of reach.
    assert [one.volume for one in claims(LOCAL, claim, volumes[1], pod_with(uses("data")))] == ["in-zb"]
    assert claims(LOCAL, claim, *volumes, pod_with(uses("data"))) == ()


def test_other_claims_are_provisioned_for_the_node() -> None:
    claim = make_claim("data", "5Gi", storage_class="fast")

    assert claims(FAST, claim, serving("a", ZONE, "rack"), pod_with(uses("data"))) == (
        PlacedClaim("default/data", "default/pod", "5Gi", "fast", "provisioned", None, "a", {ZONE: "za"}),
    )
    assert [one.topology for one in claims(FAST, claim, pod_with(uses("data")))] == [{}]


def test_each_pod_sees_what_earlier_ones_took() -> None:
    named = [make_claim(name, storage_class="local") for name in ("one", "two")]
    pods = [pod_with(uses(claim.name), f"uses-{claim.name}") for claim in named]
    volumes = [make_volume(name, storage_class="local") for name in ("v1", "v2")]

    assert [(one.claim, one.volume) for one in claims(LOCAL, *named, *volumes, *pods)] == [
        ("default/one", "v1"),
        ("default/two", "v2"),
    ]


def test_a_shared_claim_stands_once_with_the_first_pod() -> None:
    found = claims(*bound("data"), pod_with(uses("data"), "first"), pod_with(uses("data"), "second"))

    assert [one.pod for one in found] == ["default/first"]


def test_pods_that_go_nowhere_have_no_claims() -> None:
    assert claims(*bound("data", labels={ZONE: "c"}), pod_with(uses("data"))) == ()


def test_nothing_is_decided_where_storage_is_ignored() -> None:
    claim = make_claim("data", storage_class="gone")

    found = claims(claim, pod_with(uses("data")), pod_with(uses("not-there"), "other"), assume_volumes=True)

    assert [(one.claim, one.outcome) for one in found] == [("default/data", "undecided")]


def test_pods_with_ephemeral_volumes_fail_for_themselves() -> None:
    """Their specs are equal, but each has a claim of its own."""
    pods = [pod_with(ephemeral("data"), name) for name in ("without", "with")]
    claim = make_claim("with-data", storage_class="fast", owner=pods[1])

    result = simulate(Cluster.from_objects([A, FAST, claim, *pods]))

    assert [placement.node for placement in result.placements] == [None, "a"]
