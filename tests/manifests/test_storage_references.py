from __future__ import annotations

from typing import Any

import pytest

from podium.manifests import load, missing_storage
from podium.model import PersistentVolumeClaim
from podium.workloads import expand_workloads

from .objects import Fields, doc, names

TAIL = "fit on no node, as in a cluster without them"


def using(claim: str, pod: str = "web", **fields: Any) -> Fields:
    return doc("Pod", pod, spec={"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": claim}}]}, **fields)


def claim(name: str, *, volume: str = "", storage_class: str = "") -> Fields:
    return doc("PersistentVolumeClaim", name, spec={"volumeName": volume, "storageClassName": storage_class})


def ephemeral(pod: str = "web", node: str = "") -> Fields:
    template = {"spec": {"storageClassName": "fast"}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    return doc("Pod", pod, spec={"nodeName": node, "volumes": [volume]})


@pytest.mark.parametrize(
    ("case", "documents", "warnings"),
    [
        ("no pod uses a claim", [doc("Pod", "web"), claim("data", volume="v")], []),
        ("all there", [using("data"), claim("data", volume="v"), doc("PersistentVolume", "v")], []),
        ("a finished pod", [using("data", status={"phase": "Succeeded"})], []),
        (
            "no claims",
            [using("one"), using("two", "db"), using("two", "db-2")],
            [
                "no PersistentVolumeClaims in the input: 2 claims missing; pods that use them, such as default/web, "
                + TAIL
            ],
        ),
        (
            "one claim of several",
            [using("one"), using("two", "db"), claim("one")],
            [f"PersistentVolumeClaim default/two not in the input: pods that use them, such as default/db, {TAIL}"],
        ),
        (
            "no volumes",
            [using("one"), using("two", "db"), claim("one", volume="v1"), claim("two", volume="v2")],
            [
                "no PersistentVolumes in the input: 2 bound claims, such as default/one, without a volume; pods that "
                f"use them {TAIL}"
            ],
        ),
        (
            "one volume of several",
            [
                *(using("one"), using("two", "db"), claim("one", volume="v1"), claim("two", volume="v2")),
                doc("PersistentVolume", "v1"),
            ],
            [
                "PersistentVolume v2 not in the input: 1 bound claim, such as default/two, without a volume; pods that "
                f"use them {TAIL}"
            ],
        ),
        (
            "no classes",
            [using("one"), claim("one", storage_class="fast")],
            [
                "no StorageClasses in the input: 1 unbound claim, such as default/one, cannot be bound; pods that use "
                f"them {TAIL}"
            ],
        ),
        (
            "one class of several",
            [using("one"), claim("one", storage_class="fast"), doc("StorageClass", "slow", provisioner="p")],
            [
                "StorageClass fast not in the input: 1 unbound claim, such as default/one, cannot be bound; pods that "
                f"use them {TAIL}"
            ],
        ),
        ("the class of a bound claim", [using("one"), claim("one", volume="v", storage_class="fast")], ["no Pers"]),
        ("claims of ephemeral volumes, which Kubernetes makes", [ephemeral()], []),
    ],
)
def test_says_once_what_storage_is_missing(case: str, documents: list[Fields], warnings: list[str]) -> None:
    objects = load(documents)

    assert [said[: len(expected)] for said, expected in zip(objects.warnings, warnings, strict=True)] == warnings
    assert missing_storage(objects) == list(objects.warnings)


def test_pending_pods_get_the_claims_of_their_ephemeral_volumes() -> None:
    node = doc("Node", "n")

    expanded = expand_workloads(load([node, ephemeral(), ephemeral("running", node="n")]))

    assert names(expanded, PersistentVolumeClaim) == ["web-v"]
    (made,) = expanded.of(PersistentVolumeClaim)
    assert made.metadata.controller is not None
    assert made.metadata.controller.name == "web"
    assert [warning.partition(":")[0] for warning in expanded.warnings] == ["no StorageClasses in the input"]


def test_a_claim_that_is_there_is_not_made_again() -> None:
    objects = load([ephemeral(), claim("web-v")])

    assert expand_workloads(objects) is objects
