from __future__ import annotations

import datetime
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from podium.errors import InputError
from podium.manifests import load
from podium.manifests.decode import QUOTED, decode, entries
from podium.manifests.files import Document
from podium.model import KINDS, Node, Object, Pod

POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a", "namespace": "prod"}}
NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def documents(value: Any) -> list[Document]:
    """The value as it comes from YAML, and as it comes from JSON."""
    return [Document("a", "a", value), Document("a", "a", msgspec.Raw(json.dumps(value).encode()))]


def without_kind(value: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": value["metadata"]}


@pytest.mark.parametrize(
    ("value", "kinds"),
    [
        (POD, ["Pod"]),
        ({"metadata": {"name": "a"}, "kind": "Pod"}, ["Pod"]),
        ([POD, NODE], ["Pod", "Node"]),
        ({"apiVersion": "v1", "kind": "List", "items": [POD, NODE]}, ["Pod", "Node"]),
        ({"kind": "List", "apiVersion": "v1", "items": [POD, NODE]}, ["Pod", "Node"]),
        ({"kind": "List", "items": [{"kind": "List", "items": [POD]}, NODE]}, ["Pod", "Node"]),
        ({"kind": "List", "items": []}, []),
        ({"kind": "List", "items": None}, []),
        ({"apiVersion": "v1", "kind": "PodList", "items": [without_kind(POD), without_kind(POD)]}, ["Pod", "Pod"]),
        ({"apiVersion": "v1", "kind": "NodeList", "items": [NODE]}, ["Node"]),
        (
            {
                "pods": [without_kind(POD)],
                "nodes": [without_kind(NODE)],
                "pvs": None,
                "schedulerConfig": {"profiles": []},
            },
            ["Node", "Pod", "KubeSchedulerConfiguration"],
        ),
        ({"pods": [], "nodes": [NODE], "schedulerConfig": None}, ["Node"]),
    ],
)
def test_unpacks(value: object, kinds: list[str]) -> None:
    for document in documents(value):
        assert [entry.kind for entry in entries(document)] == kinds


@pytest.mark.parametrize(
    ("item", "kind", "api_version"),
    [
        ({"apiVersion": "apps/v1", "kind": "Deployment"}, "Deployment", "apps/v1"),
        ({"kind": "Deployment", "apiVersion": "apps/v1"}, "Deployment", "apps/v1"),
        ({"kind": "Deployment", "metadata": {}, "apiVersion": "apps/v1"}, "Deployment", "apps/v1"),
        ({"apiVersion": "", "kind": "Deployment"}, "Deployment", "v1"),
        ({"apiVersion": "apps/v1", "kind": ""}, "Pod", "apps/v1"),
        ({"metadata": {"apiVersion": "apps/v1", "kind": "Deployment"}}, "Pod", "v1"),
    ],
)
def test_items_say_what_they_are_wherever_they_say_it(item: dict[str, Any], kind: str, api_version: str) -> None:
    for document in documents({"apiVersion": "v1", "kind": "PodList", "items": [item]}):
        (entry,) = entries(document)
        assert (entry.kind, entry.api_version) == (kind, api_version)


def test_items_of_typed_lists_have_the_version_of_the_list() -> None:
    for document in documents({"apiVersion": "apps/v1", "kind": "DeploymentList", "items": [without_kind(POD)]}):
        (entry,) = entries(document)

        assert (entry.kind, entry.api_version, entry.where) == ("Deployment", "apps/v1", "a item 1")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"a": 1}, "a: has no kind; is it a Kubernetes object?"),
        ({"kind": 5}, "a: kind: expected str | null, got int"),
        ({"kind": "List", "items": 5}, "a: items: expected array | null, got int"),
        (["text"], "a item 1: expected "),
        ({"kind": "List", "items": [POD, 5]}, "a item 2: expected "),
    ],
)
def test_refuses_what_is_not_an_object(value: object, message: str) -> None:
    for document in documents(value):
        with pytest.raises(InputError) as error:
            list(entries(document))
        assert str(error.value).startswith(message)


def typed(value: dict[str, Any]) -> list[Object]:
    return [decode(entry, KINDS[entry.kind]) for document in documents(value) for entry in entries(document)]


def test_decodes_to_types() -> None:
    for obj in typed(POD):
        assert isinstance(obj, Pod)
        assert obj.key == "prod/a"


def test_null_is_unset() -> None:
    spec = {
        "schedulerName": None,
        "containers": [{"name": None, "resources": {"limits": None, "requests": {"cpu": None}}, "ports": None}, None],
        "nodeSelector": None,
        "volumes": None,
    }
    for pod in typed({**POD, "metadata": {"name": "a", "labels": {"x": None}, "ownerReferences": None}, "spec": spec}):
        assert isinstance(pod, Pod)
        assert pod.spec.scheduler_name == "default-scheduler"
        assert pod.spec.containers[0].resources.requests == {"cpu": 0}
        assert len(pod.spec.containers) == 2
        # In a map, Go makes null the empty value.
        assert pod.metadata.labels == {"x": ""}


def test_dates_of_other_yaml_readers_are_text() -> None:
    day = datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC)
    (entry,) = entries(Document("a", "a", {**NODE, "metadata": {"name": "n", "creationTimestamp": day}}))

    node = decode(entry, Node)

    assert node.metadata.creation_timestamp == "2024-01-01T00:00:00+00:00"


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        (
            {"spec": {"containers": [{"ports": [{"hostPort": "80"}]}]}},
            "spec.containers[0].ports[0].hostPort: expected int, got str",
        ),
        ({"spec": "text"}, "spec: expected object, got str"),
        (
            {"spec": {"nodeSelector": {"a": "b", "gpu": True}}},
            f"spec.nodeSelector['gpu']: expected str, got bool{QUOTED['bool']}",
        ),
        (
            {"spec": {"containers": [{}, {"resources": {"limits": {"cpu": []}}}]}},
            "spec.containers[1].resources.limits['cpu']: expected int | float | str, got array",
        ),
        ({"spec": {"priority": 1.5}}, "spec.priority: expected int | null, got float"),
    ],
)
def test_names_the_field_that_does_not_fit(fields: dict[str, Any], problem: str) -> None:
    for document in documents({**POD, **fields}):
        (entry,) = entries(document)
        with pytest.raises(InputError) as error:
            decode(entry, Pod)
        assert str(error.value) == f"a: Pod prod/a: {problem}"


def test_a_name_that_yaml_reads_as_a_boolean_has_to_be_quoted(tmp_path: Path) -> None:
    file = tmp_path / "nodes.yaml"
    file.write_text("kind: Node\nmetadata: {name: a}\n---\nkind: Node\nmetadata: {name: no}\n")
    with pytest.raises(InputError) as error:
        load(str(file))
    assert str(error.value) == (
        f"{file} document 2: Node named false: metadata.name: expected str, got bool; write it in quotes, as YAML "
        "reads n, no, off, on, y and yes as true or false"
    )


def test_names_an_object_without_a_name() -> None:
    for document in documents({"kind": "Pod", "spec": 1}):
        (entry,) = entries(document)
        with pytest.raises(InputError, match=r"^a: Pod without a name: spec: expected object, got int$"):
            decode(entry, Pod)


def test_refuses_what_is_not_utf_8() -> None:
    raw = msgspec.Raw(b'{"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "\xff"}}')
    (entry,) = entries(Document("a", "a", raw))

    with pytest.raises(InputError, match=r"^a: is not UTF-8 text: invalid start byte$"):
        decode(entry, Pod)
