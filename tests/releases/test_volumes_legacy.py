"""Volumes in the old releases: conflicts, zones, limits and binding."""

from __future__ import annotations

from typing import Any

import pytest

from builders import decide, make_node, make_object, make_pod
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Object, PersistentVolume, PersistentVolumeClaim, Pod
from releases.releasing import BETA_ZONE, decide_as, failures

Fields = dict[str, Any]

BOUND = {"pv.kubernetes.io/bind-completed": "yes"}
OLD = ("v1.8", "v1.14", "v1.18")


def claim(name: str, volume: str = "", storage_class: str | None = None, size: str = "1Gi") -> Object:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "volumeName": volume,
        "storageClassName": storage_class,
        "resources": {"requests": {"storage": size}},
    }
    return make_object(
        "PersistentVolumeClaim", name, namespace="default", annotations=BOUND if volume else {}, spec=spec
    )


def volume(name: str, *, zone: str = "", phase: str = "Bound", size: str = "1Gi", **spec: Any) -> Object:
    labels = {BETA_ZONE: zone} if zone else {}
    document = {"capacity": {"storage": size}, "accessModes": ["ReadWriteOnce"], **spec}
    return make_object("PersistentVolume", name, labels=labels, spec=document, status={"phase": phase})


def late(name: str = "late", provisioner: str = "kubernetes.io/no-provisioner", **fields: Any) -> Object:
    return make_object(
        "StorageClass", name, provisioner=provisioner, volume_binding_mode="WaitForFirstConsumer", **fields
    )


def claiming(*names: str, name: str = "pod", node: str = "") -> Pod:
    volumes = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in names]
    return make_pod(name, node=node, volumes=volumes)


def with_disk(name: str, kind: str, node: str = "", **disk: Any) -> Pod:
    return make_pod(name, node=node, volumes=[{"name": "disk", kind: disk}])


# -- the same disk twice ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", OLD)
@pytest.mark.parametrize(
    ("kind", "mounted", "wanted", "conflicts"),
    [
        ("gcePersistentDisk", {"pdName": "d"}, {"pdName": "d"}, True),
        ("gcePersistentDisk", {"pdName": "d", "readOnly": True}, {"pdName": "d", "readOnly": True}, False),
        ("awsElasticBlockStore", {"volumeID": "d", "readOnly": True}, {"volumeID": "d", "readOnly": True}, True),
        ("iscsi", {"iqn": "d", "targetPortal": "x"}, {"iqn": "d", "targetPortal": "y"}, True),
        ("rbd", {"image": "d", "monitors": ["a", "b"]}, {"image": "d", "monitors": ["b"]}, True),
        ("rbd", {"image": "d", "monitors": ["a"]}, {"image": "d", "monitors": ["b"]}, False),
    ],
)
def test_disk_conflicts(release: str, kind: str, mounted: Fields, wanted: Fields, conflicts: bool) -> None:
    objects = [make_node("a"), with_disk("there", kind, "a", **mounted)]

    assert (decide_as(release, objects, with_disk("new", kind, **wanted)).node is None) is conflicts


# -- zones -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", OLD)
def test_a_volume_keeps_its_pod_in_its_zones(release: str) -> None:
    nodes = [make_node(name, labels={BETA_ZONE: name}) for name in ("a", "b", "c")]
    objects = [*nodes, make_node("zoneless"), claim("data", "pv"), volume("pv", zone="a__b")]

    assert decide_as(release, objects, claiming("data")).feasible == ("a", "b", "zoneless")


def test_an_unbound_claim_is_an_error_in_v1_8_and_waits_for_its_pod_later() -> None:
    objects = [make_node("a", labels={BETA_ZONE: "a"}), claim("data", storage_class="late")]
    objects += [late(provisioner="example.com/disk")]

    assert "is not bound" in decide_as("v1.8", objects, claiming("data")).error
    assert decide_as("v1.14", objects, claiming("data")).node == "a"


@pytest.mark.parametrize("release", ["v1.14", "v1.18"])
def test_a_missing_claim_fails_the_pod_at_once(release: str) -> None:
    decision = decide_as(release, [make_node("a", unschedulable=True)], claiming("missing"))

    assert 'persistentvolumeclaim "missing" not found' in decision.error


# -- limits ----------------------------------------------------------------------------------------------------------


def crowded(count: int, **node: Any) -> list[Object]:
    disks = [with_disk(f"p{number}", "awsElasticBlockStore", "a", volumeID=f"v{number}") for number in range(count)]
    return [make_node("a", **node), *disks]


NEW_DISK = with_disk("new", "awsElasticBlockStore", volumeID="new")


@pytest.mark.parametrize("release", OLD)
def test_as_many_disks_as_the_environment_says(release: str) -> None:
    env = {"KUBE_MAX_PD_VOLS": "3"}

    assert decide_as(release, crowded(2), NEW_DISK, env=env).node == "a"
    assert decide_as(release, crowded(3), NEW_DISK, env=env).node is None
    again = with_disk("again", "gcePersistentDisk", pdName="v0")
    assert decide_as(release, crowded(3), again, env=env).node == "a"


@pytest.mark.parametrize("setting", ["", "many", "0", "-4"])
def test_a_setting_that_is_no_positive_number_is_ignored(setting: str) -> None:
    assert decide_as("v1.14", crowded(30), NEW_DISK, env={"KUBE_MAX_PD_VOLS": setting}).node == "a"


@pytest.mark.parametrize(("release", "fits"), [("v1.8", True), ("v1.14", False), ("v1.18", False)])
def test_nitro_instances_take_25(release: str, fits: bool) -> None:
    nitro = crowded(25, labels={"beta.kubernetes.io/instance-type": "m5.large"})

    assert (decide_as(release, nitro, NEW_DISK).node is not None) is fits


def test_what_the_node_says_wins_since_v1_14() -> None:
    node = make_object(
        "Node",
        "a",
        status={"allocatable": {"pods": "9", "cpu": "1", "memory": "1Gi", "attachable-volumes-aws-ebs": "1"}},
    )
    objects = [node, with_disk("there", "awsElasticBlockStore", "a", volumeID="v")]
    env = {"KUBE_MAX_PD_VOLS": "9"}

    assert decide_as("v1.8", objects, NEW_DISK, env=env).node == "a"
    assert failures(decide_as("v1.14", objects, NEW_DISK, env=env)) == {"a": {"node(s) exceed max volume count"}}


def test_csi_limits_come_from_the_csi_node_in_v1_18() -> None:
    csi = {"driver": "d.example.com", "volumeHandle": "h1"}
    other = {"driver": "d.example.com", "volumeHandle": "h2"}
    csi_node = make_object("CSINode", "a", spec={"drivers": [{"name": "d.example.com", "allocatable": {"count": 1}}]})
    objects = [make_node("a"), csi_node, claim("one", "pv1"), claim("two", "pv2")]
    objects += [volume("pv1", csi=csi), volume("pv2", csi=other), claiming("one", name="there", node="a")]

    assert decide_as("v1.14", objects, claiming("two")).node == "a"
    assert decide_as("v1.18", objects, claiming("two")).node is None
    assert decide_as("v1.18", objects, claiming("one")).node == "a"


# -- local volumes ---------------------------------------------------------------------------------------------------

ON_A = {"required": {"nodeSelectorTerms": [{"matchExpressions": [{"key": "host", "operator": "In", "values": ["a"]}]}]}}
HOSTS = [make_node(name, labels={"host": name}) for name in ("a", "b")]


def test_a_bound_volume_is_reached_from_its_nodes_only() -> None:
    objects = [*HOSTS, claim("data", "pv"), volume("pv", nodeAffinity=ON_A)]

    decision = decide_as("v1.14", objects, claiming("data"))

    assert failures(decision) == {"b": {"node(s) had volume node affinity conflict"}}


def test_v1_8_reads_the_annotation_and_only_with_its_feature() -> None:
    terms = '{"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchExpressions": '
    terms += '[{"key": "host", "operator": "In", "values": ["a"]}]}]}}'
    annotated = make_object(
        "PersistentVolume", "pv", annotations={"volume.alpha.kubernetes.io/node-affinity": terms}, spec={}
    )
    objects = [*HOSTS, claim("data", "pv"), annotated]

    assert decide_as("v1.8", objects, claiming("data")).feasible == ("a", "b")
    gates = {"PersistentLocalVolumes": True}
    assert failures(decide_as("v1.8", objects, claiming("data"), gates=gates)) == {"b": {"NoVolumeNodeConflict"}}


def available(name: str, size: str = "1Gi", **spec: Any) -> Object:
    return volume(name, phase="Available", size=size, storageClassName="late", **spec)


@pytest.mark.parametrize("release", ["v1.14", "v1.18"])
def test_a_waiting_claim_goes_where_a_volume_is(release: str) -> None:
    objects = [*HOSTS, late(), claim("data", storage_class="late"), available("pv", nodeAffinity=ON_A)]

    decision = decide_as(release, objects, claiming("data"))

    assert decision.feasible == ("a",)
    assert decision.rejected["b"].reasons == ("node(s) didn't find available persistent volumes to bind",)


@pytest.mark.parametrize("release", ["v1.14", "v1.18"])
def test_a_volume_is_taken_once(release: str) -> None:
    objects = [*HOSTS, late(), available("small"), available("large", size="5Gi")]
    objects += [claim(name, storage_class="late") for name in ("one", "two", "three")]
    cluster = Cluster.from_objects(objects)
    scheduler = Scheduler(cluster, release=release, tie_break="first")

    placed = [scheduler.place(claiming(name, name=name)).node for name in ("one", "two", "three")]

    assert [node is None for node in placed] == [False, False, True]
    taken = {item.name: item.spec.claim_ref.name for item in cluster.store.of(PersistentVolume) if item.spec.claim_ref}
    # The smallest that will do goes first.
    assert taken == {"small": "one", "large": "two"}


def test_a_claim_that_gets_a_new_volume_stays_with_its_node() -> None:
    objects = [*HOSTS, late(provisioner="example.com/disk"), claim("data", storage_class="late")]
    cluster = Cluster.from_objects(objects)
    scheduler = Scheduler(cluster, release="v1.14", tie_break="first")

    assert scheduler.place(claiming("data", name="first")).node == "a"
    found = cluster.store.of(PersistentVolumeClaim).get("data", "default")
    assert found is not None
    assert found.metadata.annotations["volume.kubernetes.io/selected-node"] == "a"
    assert scheduler.decide(claiming("data", name="second")).feasible == ("a",)


def test_an_immediate_claim_that_nobody_bound() -> None:
    objects = [make_node("a"), make_object("StorageClass", "now", provisioner="x"), claim("data", storage_class="now")]

    assert "unbound immediate PersistentVolumeClaims" in decide_as("v1.14", objects, claiming("data")).error
    decision = decide_as("v1.18", objects, claiming("data"))
    assert failures(decision) == {"a": {"pod has unbound immediate PersistentVolumeClaims"}}


def test_deciding_reserves_nothing() -> None:
    objects = [*HOSTS, late(), available("pv"), claim("data", storage_class="late")]
    pod = claiming("data")

    assert decide(objects, pod, release="v1.14").node == "a"
    cluster = Cluster.from_objects(objects)
    Scheduler(cluster, release="v1.14").decide(pod)
    (found,) = cluster.store.of(PersistentVolume)
    assert found.spec.claim_ref is None
