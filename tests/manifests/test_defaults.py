from __future__ import annotations

from typing import Any

import pytest

from podium.manifests import load
from podium.manifests.defaults import default_object, generated_suffix
from podium.model import (
    CSIDriver,
    Deployment,
    Job,
    Namespace,
    Node,
    Object,
    PersistentVolume,
    PersistentVolumeClaim,
    ReplicationController,
    StorageClass,
)

from .objects import Fields, doc


def loaded(kind: str, **fields: Any) -> Object:
    return load(doc(kind, "x", **fields))[0]


@pytest.mark.parametrize(
    ("kind", "namespace", "uid"),
    [
        ("Pod", "default", "Pod/default/x"),
        ("PersistentVolumeClaim", "default", "PersistentVolumeClaim/default/x"),
        ("CSIStorageCapacity", "default", "CSIStorageCapacity/default/x"),
        ("Deployment", "default", "Deployment/default/x"),
        ("Node", "", "Node/x"),
        ("Namespace", "", "Namespace/x"),
        ("PersistentVolume", "", "PersistentVolume/x"),
        ("StorageClass", "", "StorageClass/x"),
        ("PriorityClass", "", "PriorityClass/x"),
        ("CSINode", "", "CSINode/x"),
    ],
)
def test_namespace_and_uid(kind: str, namespace: str, uid: str) -> None:
    obj = loaded(kind)

    assert (obj.namespace, obj.metadata.uid) == (namespace, uid)
    assert loaded(kind, uid="u").metadata.uid == "u"


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    assert load(doc("Node", "n", "default"))[0].key == "n"


@pytest.mark.parametrize(
    ("status", "allocatable"),
    [
        ({}, {}),
        ({"capacity": {"cpu": "4"}}, {"cpu": "4"}),
        ({"capacity": {"cpu": "4"}, "allocatable": {"cpu": "3"}}, {"cpu": "3"}),
        ({"capacity": {"cpu": "4"}, "allocatable": {}}, {}),
        ({"capacity": {"cpu": "4"}, "allocatable": None}, {"cpu": "4"}),
        ({"capacity": {"cpu": "0.0001"}}, {"cpu": "1m"}),
    ],
)
def test_node_allocatable(status: Fields, allocatable: Fields) -> None:
    node = loaded("Node", status=status)

    assert isinstance(node, Node)
    assert node.status.allocatable == allocatable


def test_namespaces_are_labelled_with_their_name() -> None:
    namespace = loaded("Namespace", labels={"team": "a", "kubernetes.io/metadata.name": "wrong"})

    assert isinstance(namespace, Namespace)
    assert namespace.metadata.labels == {"team": "a", "kubernetes.io/metadata.name": "x"}


def test_storage() -> None:
    volume, claim = loaded("PersistentVolume"), loaded("PersistentVolumeClaim")
    storage_class, driver = loaded("StorageClass"), loaded("CSIDriver")

    assert isinstance(volume, PersistentVolume)
    assert (volume.spec.volume_mode, volume.status.phase) == ("Filesystem", "Pending")
    assert isinstance(claim, PersistentVolumeClaim)
    assert (claim.spec.volume_mode, claim.status.phase) == ("Filesystem", "Pending")
    assert isinstance(storage_class, StorageClass)
    assert storage_class.volume_binding_mode == "Immediate"
    assert isinstance(driver, CSIDriver)
    assert (driver.spec.attach_required, driver.spec.storage_capacity) == (True, False)


def test_storage_amounts_are_rounded_up_to_thousandths() -> None:
    volume = loaded("PersistentVolume", spec={"capacity": {"storage": "1.0001"}})
    claim = loaded("PersistentVolumeClaim", spec={"resources": {"requests": {"storage": "1.0001"}}})

    assert isinstance(volume, PersistentVolume)
    assert volume.spec.capacity == {"storage": "1001m"}
    assert isinstance(claim, PersistentVolumeClaim)
    assert claim.spec.resources.requests == {"storage": "1001m"}


def test_workloads() -> None:
    template = {"template": {"metadata": {"labels": {"app": "web"}}}}
    deployment = loaded("Deployment", spec=template)
    controller = loaded("ReplicationController", spec=template)
    job = loaded("Job", spec=template)

    assert isinstance(deployment, Deployment)
    assert deployment.spec.replicas == 1
    assert isinstance(controller, ReplicationController)
    assert controller.spec.selector == controller.metadata.labels == {"app": "web"}
    assert isinstance(job, Job)
    assert job.metadata.labels == {"app": "web"}


@pytest.mark.parametrize(
    "document",
    [
        doc("Node", "n", status={"capacity": {"cpu": "4"}}),
        doc("Namespace", "n"),
        doc("PersistentVolume", "v", spec={"capacity": {"storage": "1Gi"}}),
        doc("PersistentVolumeClaim", "c", spec={"resources": {"requests": {"storage": "1Gi"}}}),
        doc("ReplicationController", "r", spec={"template": {"metadata": {"labels": {"a": "b"}}}}),
        doc("Job", "j", spec={"template": {"metadata": {"labels": {"a": "b"}}}}),
        doc("Service", "s"),
    ],
)
def test_an_object_that_says_everything_stays_the_same_object(document: Fields) -> None:
    obj = load(document)[0]

    assert default_object(obj) is obj


def test_generated_letters_depend_on_their_parts_alone() -> None:
    assert generated_suffix("a", 1) == generated_suffix("a", 1) != generated_suffix("a", 2)
    assert len(generated_suffix("a", length=8)) == 8
