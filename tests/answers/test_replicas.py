"""More pods of a workload, from the command line: each with the name and the claims its controller gives it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.running import node, pod, run, written

Fields = dict[str, Any]
REQUESTS = {"resources": {"requests": {"cpu": "1"}}}


def storage_class(mode: str = "WaitForFirstConsumer", *, default: bool = True) -> Fields:
    annotations = {"storageclass.kubernetes.io/is-default-class": str(default).lower()}
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "StorageClass",
        "metadata": {"name": "ssd", "annotations": annotations},
        "provisioner": "disk.example.com",
        "volumeBindingMode": mode,
    }


def claim_spec(**fields: Any) -> Fields:
    return {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **fields}


def workload(kind: str, name: str, replicas: int | None = None, **spec: Any) -> Fields:
    labels = {"app": name}
    pod_spec = {"containers": [{"name": "c", "image": "i", **REQUESTS}], **spec.pop("pod", {})}
    template = {"metadata": {"labels": labels}, "spec": pod_spec}
    counted = {} if replicas is None else {"replicas": replicas}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {**counted, "selector": {"matchLabels": labels}, "template": template, **spec},
    }


def stateful_set(replicas: int = 2) -> Fields:
    templates = [{"metadata": {"name": "data"}, "spec": claim_spec()}]
    return workload("StatefulSet", "db", replicas, serviceName="db", volumeClaimTemplates=templates)


def running_replica(ordinal: int, on: str) -> list[Fields]:
    """A pod of the StatefulSet with its bound claim and the volume, which is reachable from its node alone."""
    name, volume = f"db-{ordinal}", f"volume-{ordinal}"
    made = pod(
        name,
        nodeName=on,
        phase="Running",
        labels={"app": "db"},
        volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": f"data-{name}"}}],
    )
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "db", "uid": "db", "controller": True}
    made["metadata"]["ownerReferences"] = [owner]
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {
            "name": f"data-{name}",
            "namespace": "default",
            "uid": f"claim-{ordinal}",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"},
        },
        "spec": claim_spec(storageClassName="ssd", volumeName=volume),
    }
    fields = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": [on]}]}]
    made_volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": volume},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": "ssd",
            "claimRef": {"namespace": "default", "name": f"data-{name}", "uid": f"claim-{ordinal}"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": fields}},
        },
    }
    return [made, claim, made_volume]


def capacity(*arguments: str | Path) -> Fields:
    result = run("capacity", *arguments, "-o", "json")
    assert result.exit_code in (0, 1), result.output
    document: Fields = json.loads(result.stdout)
    return document


NODES = (node("n1"), node("n2"))


def test_a_stateful_set_of_a_file_gets_a_claim_for_each_pod(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", *NODES, storage_class())
    release = written(tmp_path / "db.json", stateful_set())

    named = capacity("sts/db", "-f", cluster, "-f", release)
    read = capacity(release, "-f", cluster)

    assert named["count"] == read["count"] == 8
    assert named["stoppedBy"]["pod"] == read["stoppedBy"]["pod"] == "default/db-8"
    assert named["stoppedBy"]["reasons"] == {"Insufficient cpu": 2}


def test_a_claim_of_an_immediate_class_has_to_be_bound_first(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", *NODES, storage_class("Immediate"), stateful_set())

    found = capacity("db", "-f", cluster)

    assert found["count"] == 0
    assert "pod has unbound immediate PersistentVolumeClaims" in found["stoppedBy"]["message"]


@pytest.mark.parametrize("known", [[stateful_set()], []], ids=["with the StatefulSet", "with nothing but its pods"])
def test_a_running_stateful_set_gets_new_claims_not_those_of_others(tmp_path: Path, known: list[Fields]) -> None:
    replicas = [*running_replica(0, "n1"), *running_replica(1, "n1")]
    cluster = written(tmp_path / "cluster.json", *NODES, storage_class(), *known, *replicas)

    found = capacity("sts/db", "-f", cluster)

    # Nothing ties them to n1, where the volumes of the others are.
    assert found["pods"][0]["nodes"] == {"n2": 4, "n1": 2}
    assert found["stoppedBy"]["pod"] == "default/db-8"


def test_a_claim_that_was_left_behind_is_used_again(tmp_path: Path) -> None:
    left = running_replica(1, "n2")[1:]
    cluster = written(
        tmp_path / "cluster.json", *NODES, storage_class(), stateful_set(1), *running_replica(0, "n1"), *left
    )

    found = capacity("db", "--max-limit", "1", "-f", cluster)

    assert found["pods"][0]["nodes"] == {"n2": 1}
    assert found["limit"] == 1


@pytest.mark.parametrize("runs", [False, True], ids=["from a file", "of a running pod"])
def test_ephemeral_volumes_get_a_claim_for_each_pod(tmp_path: Path, runs: bool) -> None:
    volumes = [{"name": "scratch", "ephemeral": {"volumeClaimTemplate": {"spec": claim_spec()}}}]
    objects = [*NODES, storage_class()]
    if runs:
        running = pod("web", nodeName="n1", phase="Running", volumes=volumes)
        found = capacity("web", "-f", written(tmp_path / "cluster.json", *objects, running))
        assert found["count"] == 7
    else:
        cluster = written(tmp_path / "cluster.json", *objects)
        deployment = workload("Deployment", "web", 1, pod={"volumes": volumes})
        found = capacity(written(tmp_path / "web.json", deployment), "-f", cluster)
        assert found["count"] == 8
    assert found["stoppedBy"]["reasons"] == {"Insufficient cpu": 2}


def test_claims_for_devices_are_made_from_a_template_of_the_file(tmp_path: Path) -> None:
    cluster = tmp_path / "gpus.yaml"
    cluster.write_text(run("example", "gpus").stdout)
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "count": 1}}
    template = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": "one", "namespace": "default"},
        "spec": {"spec": {"devices": {"requests": [request]}}},
    }
    claims = [{"name": "gpu", "resourceClaimTemplateName": "one"}]
    wants = {"resourceClaims": claims, "tolerations": [{"operator": "Exists"}]}

    release = written(tmp_path / "new.json", template, workload("Deployment", "web", 1, pod=wants))
    found = capacity(release, "-f", cluster)

    assert found["count"] > 1
    assert "cannot allocate all claims" in found["stoppedBy"]["reasons"]


def test_a_daemon_set_is_tried_on_each_node_it_is_meant_for(tmp_path: Path) -> None:
    full = pod("old", nodeName="n2", phase="Running", requests={"cpu": "4"})
    tainted = node("n3", taints=[{"key": "a", "effect": "NoSchedule"}])
    cluster = written(tmp_path / "cluster.json", *NODES, tainted, node("n4"), full)

    found = capacity(written(tmp_path / "agent.json", workload("DaemonSet", "agent")), "-f", cluster)

    assert found["pods"] == [
        {"pod": "default/agent", "workload": "DaemonSet/agent", "count": 2, "nodes": {"n1": 1, "n4": 1}}
    ]
    assert found["stoppedBy"]["pod"] == "default/agent-n2"


def test_a_daemon_set_that_runs_wants_no_more(tmp_path: Path) -> None:
    running = pod("agent-x", nodeName="n1", phase="Running")
    owner = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "agent", "controller": True}
    running["metadata"]["ownerReferences"] = [owner]
    cluster = written(tmp_path / "cluster.json", node("n1"), workload("DaemonSet", "agent"), running)

    result = run("capacity", "ds/agent", "-f", cluster)

    assert "0 more pods of default/agent fit." in result.stdout
    assert "every node that it is meant for has one" in result.stdout


# -- charts --------------------------------------------------------------------------------------------------------


@pytest.fixture
def chart(tmp_path: Path) -> Path:
    """A directory of workloads, most of which make no pods as they stand."""
    folder = tmp_path / "chart"
    folder.mkdir()
    huge = {
        "containers": [{"name": "c", "image": "i", "resources": {"requests": {"cpu": "5"}}}],
        "restartPolicy": "Never",
    }
    job = {"spec": {"template": {"spec": huge}}}
    cron_job = {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "nightly"},
        "spec": {"suspend": True, "schedule": "0 0 * * *", "jobTemplate": job},
    }
    written(folder / "a.json", workload("Deployment", "web", 0), stateful_set(0), storage_class())
    written(folder / "b.json", workload("DaemonSet", "agent"), cron_job)
    return folder


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    return written(tmp_path / "cluster.json", *NODES)


def test_a_chart_has_a_row_for_every_workload(chart: Path, cluster: Path) -> None:
    result = run("capacity", chart, "-f", cluster)

    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        "1 of 4 workloads has no room for another pod, each counted as if it were the",
        "only one to grow.",
        "",
        "WORKLOAD                 MORE PODS  NODES  WHAT STOPS THE NEXT ONE",
        "default Deployment/web           8      2  Insufficient cpu (2 nodes); 1 cpu",
        "                                           missing (1 asked for, 0 of 4 free)",
        "default StatefulSet/db           8      2  Insufficient cpu (2 nodes); 1 cpu",
        "                                           missing (1 asked for, 0 of 4 free)",
        "default DaemonSet/agent          2      2  every node that it is meant for has",
        "                                           one",
        "default CronJob/nightly          0      0  Insufficient cpu (2 nodes); 5 cpu",
        "                                           asked for, and the whole node has 4",
    ]


def test_a_chart_as_json_and_csv(chart: Path, cluster: Path) -> None:
    workloads = capacity(chart, "-f", cluster)["workloads"]
    rows = run("capacity", chart, "-f", cluster, "-o", "csv").stdout.splitlines()

    assert [(each["workload"], each["count"]) for each in workloads] == [
        ("Deployment/web", 8),
        ("StatefulSet/db", 8),
        ("DaemonSet/agent", 2),
        ("CronJob/nightly", 0),
    ]
    assert workloads[0]["nodes"] == {"n1": 4, "n2": 4}
    assert workloads[1]["stoppedBy"]["pod"] == "default/db-8"
    assert [row.split(",")[:4] for row in rows] == [
        ["namespace", "workload", "count", "nodes"],
        ["default", "Deployment/web", "8", "2"],
        ["default", "StatefulSet/db", "8", "2"],
        ["default", "DaemonSet/agent", "2", "2"],
        ["default", "CronJob/nightly", "0", "0"],
    ]


@pytest.mark.parametrize(("least", "code"), [(8, 0), (9, 1)])
def test_every_workload_has_to_have_room_for_at_least_so_many(
    tmp_path: Path, cluster: Path, least: int, code: int
) -> None:
    both = written(tmp_path / "both.json", workload("Deployment", "web", 1), workload("Deployment", "api", 1))

    assert run("capacity", both, "--at-least", str(least), "-f", cluster).exit_code == code


def test_workloads_of_a_mix_are_counted_together(tmp_path: Path, cluster: Path) -> None:
    both = written(tmp_path / "both.json", workload("Deployment", "web", 1), workload("Deployment", "api", 1))

    found = capacity(both, "--mix", "3:1", "-f", cluster)

    assert (found["count"], [each["count"] for each in found["pods"]]) == (8, [6, 2])


def test_a_chart_as_html(chart: Path, cluster: Path) -> None:
    page = run("capacity", chart, "-f", cluster, "--html", "-").stdout

    assert "StatefulSet/db" in page
    assert "What stops the next one" in page
