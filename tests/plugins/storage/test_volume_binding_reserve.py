"""VolumeBinding's Reserve and Unreserve: what the next pod sees."""

from __future__ import annotations

from builders import HOSTNAME, make_node
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.framework import CycleState
from podium.model import Object, PersistentVolume, PersistentVolumeClaim
from podium.model.objects import SELECTED_NODE, ObjectReference
from podium.plugins.storage.volume_binding import VolumeBinding
from podium.rules import NEWEST_RULES
from storage_objects import bound, make_claim, make_class, make_volume, on_label, pod_with, uses

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
NODES = [make_node(name, labels={HOSTNAME: name}) for name in ("a", "b")]
STATIC = make_class("static", "kubernetes.io/no-provisioner")


def scheduler_of(*objects: Object) -> Scheduler:
    return Scheduler(Cluster.from_objects([*NODES, *objects]), tie_break="first")


def volume_of(scheduler: Scheduler, name: str) -> PersistentVolume:
    found = scheduler.cluster.store.of(PersistentVolume).get(name)
    assert found is not None
    return found


def test_a_volume_goes_to_one_claim_only() -> None:
    claims = [make_claim(name, storage_class="static") for name in ("first", "second", "third")]
    volumes = [make_volume(f"of-{n}", storage_class="static", nodes=on_label(HOSTNAME, n)) for n in ("a", "b")]
    scheduler = scheduler_of(STATIC, *claims, *volumes)

    taken = [scheduler.place(pod_with(uses(claim.name), f"pod-{claim.name}")).node for claim in claims]

    assert taken == ["a", "b", None]
    assert volume_of(scheduler, "of-a").spec.claim_ref == ObjectReference(
        namespace="default", name="first", uid=claims[0].metadata.uid
    )
    assert volume_of(scheduler, "of-a").metadata.annotations == {BOUND_BY_CONTROLLER: "yes"}


def test_the_smallest_volume_is_taken() -> None:
    volumes = [make_volume(name, size, storage_class="static") for name, size in (("large", "5Gi"), ("small", "2Gi"))]
    scheduler = scheduler_of(STATIC, make_claim("data", storage_class="static"), *volumes)

    scheduler.place(pod_with(uses("data")))

    assert volume_of(scheduler, "small").spec.claim_ref is not None
    assert volume_of(scheduler, "large").spec.claim_ref is None


def test_a_second_pod_of_the_same_claim_goes_where_its_volume_is() -> None:
    volume = make_volume("v", storage_class="static", nodes=on_label(HOSTNAME, "b"))
    free = make_volume("w", "2Gi", storage_class="static")
    scheduler = scheduler_of(STATIC, make_claim("data", storage_class="static"), volume, free)
    scheduler.cluster.update(make_node("a", labels={HOSTNAME: "a"}, unschedulable=True))

    assert scheduler.place(pod_with(uses("data"), "first")).node == "b"
    scheduler.cluster.update(NODES[0])

    assert scheduler.decide(pod_with(uses("data"), "second")).feasible == ("b",)


def test_a_claim_to_be_provisioned_keeps_its_pods_on_one_node() -> None:
    scheduler = scheduler_of(make_class("c"), make_claim("data", storage_class="c"))

    assert scheduler.decide(pod_with(uses("data"), "first")).feasible == ("a", "b")
    assert scheduler.schedule(pod_with(uses("data"), "first")) == "a"

    assert scheduler.decide(pod_with(uses("data"), "second")).feasible == ("a",)
    claim = scheduler.cluster.store.of(PersistentVolumeClaim).get("data", "default")
    assert claim is not None
    assert claim.metadata.annotations == {SELECTED_NODE: "a"}


def test_deciding_changes_nothing() -> None:
    scheduler = scheduler_of(make_class("c"), make_claim("data", storage_class="c"))
    version = scheduler.cluster.store.version

    scheduler.decide(pod_with(uses("data")))

    assert scheduler.cluster.store.version == version


def test_bound_claims_leave_nothing_to_reserve() -> None:
    scheduler = scheduler_of(*bound())
    version = scheduler.cluster.store.version

    scheduler.place(pod_with(uses("data")))

    assert scheduler.cluster.store.version == version


def test_a_volume_reserved_by_name_gets_the_claims_uid_and_no_mark() -> None:
    reserved = make_volume("v", storage_class="static", claim={"namespace": "default", "name": "data"})
    scheduler = scheduler_of(STATIC, make_claim("data", storage_class="static"), reserved)

    scheduler.place(pod_with(uses("data")))

    reference = volume_of(scheduler, "v").spec.claim_ref
    assert reference is not None
    assert reference.uid == "uid of data"
    assert volume_of(scheduler, "v").metadata.annotations == {}


def reserved_on_a(*objects: Object) -> tuple[VolumeBinding, CycleState, Cluster]:
    """A plugin that reserved the volumes of a pod with claims `data` and `more` on node a."""
    cluster, pod = Cluster.from_objects([*NODES, *objects]), pod_with(uses("data", "more"))
    plugin, state = VolumeBinding.of_release(NEWEST_RULES), CycleState(cluster.infos.of(pod))
    plugin.pre_filter(state, pod, cluster.nodes)
    assert plugin.filter(state, pod, cluster.nodes).codes.tolist() == [0, 0]
    plugin.reserve(state, pod, "a")
    return plugin, state, cluster


def waiting() -> tuple[Object, ...]:
    return (
        *(STATIC, make_class("c"), make_volume("v", storage_class="static")),
        *(make_claim("data", storage_class="static"), make_claim("more", storage_class="c")),
    )


def test_unreserve_gives_everything_back() -> None:
    plugin, state, cluster = reserved_on_a(*waiting())
    volume, claim = cluster.store.of(PersistentVolume).get("v"), cluster.store.of(PersistentVolumeClaim)
    assert volume is not None
    assert volume.spec.claim_ref is not None

    plugin.unreserve(state, pod_with(uses("data", "more")), "a")

    assert cluster.store.of(PersistentVolume).get("v") == waiting()[2]
    assert claim.get("more", "default") == waiting()[4]


def test_unreserve_leaves_alone_what_changed_since() -> None:
    plugin, state, cluster = reserved_on_a(*waiting())
    newer = make_volume("v", "7Gi", storage_class="static")
    cluster.update(newer)

    plugin.unreserve(state, pod_with(uses("data", "more")), "a")

    assert cluster.store.of(PersistentVolume).get("v") is newer


def test_unreserve_twice_is_harmless() -> None:
    plugin, state, cluster = reserved_on_a(*waiting())
    plugin.unreserve(state, pod_with(uses("data", "more")), "a")
    version = cluster.store.version

    plugin.unreserve(state, pod_with(uses("data", "more")), "a")

    assert cluster.store.version == version


def test_there_is_nothing_to_unreserve_before_reserve() -> None:
    cluster, pod = Cluster.from_objects([*NODES, *waiting()]), pod_with([])

    VolumeBinding.of_release(NEWEST_RULES).unreserve(CycleState(cluster.infos.of(pod)), pod, "a")

    assert cluster.store.of(PersistentVolume).get("v") == waiting()[2]
