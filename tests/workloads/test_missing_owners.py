"""Workloads that an answer needs and the input lacks: a line for each kind, an error if input is to be strict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cli.running import node, run, written
from podium.cluster_input import ClusterInput
from podium.errors import InputError
from podium.workloads.missing_owners import BUDGETS, FURTHER_PODS, NEW_NODES, OwnersFor

Fields = dict[str, Any]
LABELS = {"app": "web"}


def named_owner(kind: str, name: str) -> Fields:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": f"{name}-uid", "controller": True}


def owned(name: str, kind: str, owner: str, **metadata: Any) -> Fields:
    reference = {"apiVersion": "apps/v1", "kind": kind, "name": owner, "uid": f"{owner}-uid", "controller": True}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": LABELS,
            "ownerReferences": [reference],
            **metadata,
        },
        "spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]},
        "status": {"phase": "Running"},
    }


def workload(kind: str, name: str, *, uid: str = "", image: str = "i", owner: str = "") -> Fields:
    template = {"metadata": {"labels": LABELS}, "spec": {"containers": [{"name": "c", "image": image}]}}
    replicas = {} if kind == "DaemonSet" else {"replicas": 1}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {
            "name": name,
            "namespace": "default",
            **({"uid": uid} if uid else {}),
            "ownerReferences": [named_owner("Deployment", owner)] if owner else [],
        },
        "spec": {"selector": {"matchLabels": LABELS}, "template": template, **replicas},
    }


def budget(**spec: Any) -> Fields:
    return {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"matchLabels": LABELS}, **spec},
    }


def lines(need: OwnersFor, *documents: Fields) -> list[str]:
    return ClusterInput.read([node("n1"), *documents]).missing_owners(need)


@pytest.mark.parametrize(
    ("need", "kind", "effect"),
    [
        (NEW_NODES, "DaemonSet", "nodes that are added run none of their pods"),
        (FURTHER_PODS, "Job", "no pod of theirs follows one that finishes"),
    ],
)
def test_a_line_says_what_is_missing_and_what_that_changes(need: OwnersFor, kind: str, effect: str) -> None:
    pods = [owned("a-1", kind, "a"), owned("a-2", kind, "a"), owned("web-1", "ReplicaSet", "web")]

    assert lines(need, *pods) == [
        f"{kind} default/a not in the input, only 2 pods of theirs, such as default/a-1: {effect}; get them with "
        f"`podium dump` or `kubectl get {kind.lower()}s`"
    ]


def test_an_owner_in_the_input_is_not_missing() -> None:
    assert lines(NEW_NODES, owned("a-1", "DaemonSet", "a"), workload("DaemonSet", "a", uid="a-uid")) == []


@pytest.mark.parametrize(
    ("spec", "number"),
    [({"maxUnavailable": 1}, 1), ({"minAvailable": "50%"}, 1), ({"minAvailable": 1}, 0)],
)
def test_owners_matter_for_budgets_that_depend_on_the_wanted_pods(spec: Fields, number: int) -> None:
    assert len(lines(BUDGETS, owned("web-1", "ReplicaSet", "web"), budget(**spec))) == number


def test_owners_of_every_kind_matter_for_budgets() -> None:
    pods = [owned("web-1", "ReplicaSet", "web"), owned("db-0", "StatefulSet", "db")]

    assert [line.split()[0] for line in lines(BUDGETS, *pods, budget(maxUnavailable=1))] == [
        "ReplicaSet",
        "StatefulSet",
    ]


def test_strict_input_has_the_owners() -> None:
    given = ClusterInput.read([node("n1"), owned("a-1", "DaemonSet", "a")], strict=True)

    assert given.missing_owners(BUDGETS) == []
    with pytest.raises(InputError, match="DaemonSet default/a not in the input"):
        given.missing_owners(NEW_NODES)


# -- files that are applied to a cluster ---------------------------------------------------------------------------


@pytest.fixture
def release(tmp_path: Path) -> Path:
    return written(tmp_path / "release.json", workload("Deployment", "web", image="new"))


def cluster(path: Path, *workloads: Fields) -> Path:
    pod = owned("web-5f7c9-1", "ReplicaSet", "web-5f7c9", labels={**LABELS, "pod-template-hash": "5f7c9"})
    return written(path, node("n1"), pod, *workloads)


REPLICA_SET = workload("ReplicaSet", "web-5f7c9", uid="web-5f7c9-uid", owner="web")


@pytest.mark.parametrize("workloads", [[], [REPLICA_SET]], ids=["pods", "pods and ReplicaSets"])
def test_a_release_for_a_cluster_without_deployments_is_not_a_green_light(
    workloads: list[Fields], tmp_path: Path, release: Path
) -> None:
    dump = cluster(tmp_path / "dump.json", *workloads)

    result = run("simulate", "-f", dump, "-f", release)
    assert "Deployment default/web not in the input, only 1 pod of theirs" in result.stderr
    assert "they count as pods of the new template, so what the file changes is not seen" in result.stderr
    assert run("simulate", "-f", dump, "-f", release, "--strict").exit_code == 2


def test_a_release_for_a_whole_cluster_is_told_from_it(tmp_path: Path, release: Path) -> None:
    dump = cluster(tmp_path / "dump.json", REPLICA_SET, workload("Deployment", "web", uid="web-uid"))

    result = run("simulate", "-f", dump, "-f", release, "--strict")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "default Deployment/web: 1 pod replaced" in result.stdout
