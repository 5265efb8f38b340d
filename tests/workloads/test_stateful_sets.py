from __future__ import annotations

from typing import Any

import pytest

from manifests.objects import Fields, doc, names, yaml_of
from podium.manifests import Objects, load
from podium.model import PersistentVolumeClaim, Pod
from podium.workloads import expand_workloads

DATA = {
    "metadata": {"name": "data", "labels": {"disk": "fast"}},
    "spec": {"storageClassName": "ssd", "resources": {"requests": {"storage": "1Gi"}}},
}


def stateful_set(replicas: int = 2, claims: list[Fields] | None = None, **spec: Any) -> Fields:
    volumes = [{"name": "data", "rbd": {"image": "own"}}, {"name": "tmp"}]
    template = {"metadata": {"labels": {"app": "db"}}, "spec": {"volumes": volumes}}
    selector = {"matchLabels": {"app": "db"}}
    fields = {"replicas": replicas, "template": template, "selector": selector, **spec}
    return doc("StatefulSet", "db", "prod", spec={**fields, "volumeClaimTemplates": claims or []})


def expand(*documents: Fields) -> Objects:
    return expand_workloads(load([doc("Node", "n"), *documents]))


@pytest.mark.parametrize(
    ("documents", "pods"),
    [
        ([stateful_set()], ["db-0", "db-1"]),
        ([stateful_set(ordinals={"start": 5})], ["db-5", "db-6"]),
        ([stateful_set(3), doc("Pod", "db-1", "prod", owner="StatefulSet/db")], ["db-0", "db-2", "db-1"]),
        # The name is in use until the pod is gone.
        ([stateful_set(1), doc("Pod", "db-0", "prod", deletionTimestamp="2024-01-01T00:00:00Z")], ["db-0"]),
        ([stateful_set(0)], []),
    ],
)
def test_pods_are_numbered(documents: list[Fields], pods: list[str]) -> None:
    assert names(expand(*documents)) == pods


def test_labels_say_which_one_it_is() -> None:
    labels = expand(stateful_set()).of(Pod)[1].metadata.labels

    revision = labels.pop("controller-revision-hash")
    assert revision.startswith("db-")
    assert labels == {
        "app": "db",
        "statefulset.kubernetes.io/pod-name": "db-1",
        "apps.kubernetes.io/pod-index": "1",
    }


def test_claims_are_made_and_wired() -> None:
    objects = expand(stateful_set(claims=[DATA]))

    assert [obj.name for obj in objects][2:] == ["data-db-0", "db-0", "data-db-1", "db-1"]
    claim = objects.of(PersistentVolumeClaim)[0]
    assert claim.key == "prod/data-db-0"
    assert claim.metadata.uid == "PersistentVolumeClaim/prod/data-db-0"
    assert claim.metadata.labels == {"disk": "fast", "app": "db"}
    assert (claim.spec.storage_class_name, claim.status.phase) == ("ssd", "Pending")
    assert claim.spec.resources.requests == {"storage": "1Gi"}
    # A claim stands in for the template's own volume of that name; the other one decides nothing.
    assert yaml_of(objects.of(Pod)[1].spec.volumes) == [
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-db-1"}},
    ]


def test_claims_that_are_there_are_used() -> None:
    objects = expand(stateful_set(1, claims=[DATA]), doc("PersistentVolumeClaim", "data-db-0", "prod", uid="u"))

    assert [claim.metadata.uid for claim in objects.of(PersistentVolumeClaim)] == ["u"]


@pytest.mark.parametrize(
    ("classes", "given", "expected"),
    [
        ([], None, None),
        ([("a", "true", "2024-01-01T00:00:00Z")], None, "a"),
        ([("a", "true", "2024-01-01T00:00:00Z")], "ssd", "ssd"),
        ([("a", "true", "2024-01-01T00:00:00Z")], "", ""),
        ([("a", "false", "2024-01-01T00:00:00Z")], None, None),
        ([("a", "true", "2024-01-01T00:00:00Z"), ("b", "true", "2024-02-01T00:00:00Z")], None, "b"),
        ([("b", "true", "2024-01-01T00:00:00Z"), ("a", "true", "2024-01-01T00:00:00Z")], None, "a"),
    ],
)
def test_claims_without_a_class_get_the_default_one(
    classes: list[tuple[str, str, str]], given: str | None, expected: str | None
) -> None:
    documents = []
    for name, default, created in classes:
        annotations = {"storageclass.kubernetes.io/is-default-class": default}
        document = doc("StorageClass", name, annotations=annotations)
        document["metadata"]["creationTimestamp"] = created
        documents.append(document)
    claim = {"metadata": {"name": "data"}, "spec": {"storageClassName": given}}

    (made,) = expand(stateful_set(1, claims=[claim]), *documents).of(PersistentVolumeClaim)

    assert made.spec.storage_class_name == expected


def test_generic_ephemeral_volumes_bring_a_claim_owned_by_the_pod() -> None:
    template = {"metadata": {"labels": {"disk": "fast"}}, "spec": {"storageClassName": "ssd"}}
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}, {"name": "tmp"}]
    replica_set = doc("ReplicaSet", "web", spec={"replicas": 2, "template": {"spec": {"volumes": volumes}}})

    objects = expand(replica_set, doc("PersistentVolumeClaim", "web-1-scratch"))

    made = objects.of(PersistentVolumeClaim)[0]
    assert names(objects, PersistentVolumeClaim) == ["web-0-scratch", "web-1-scratch"]
    assert (made.spec.storage_class_name, made.metadata.labels) == ("ssd", {"disk": "fast"})
    assert yaml_of(made.metadata.owner_references) == [
        {"apiVersion": "v1", "kind": "Pod", "name": "web-0", "uid": "Pod/default/web-0", "controller": True}
    ]
