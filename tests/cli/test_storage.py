"""Claims and volumes on the command line: what they get, why they keep pods away, and doing without them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from .running import node, pod, run, written

ZONE = "topology.kubernetes.io/zone"


def stored(kind: str, name: str, **fields: Any) -> dict[str, Any]:
    metadata = {"name": name, "labels": fields.pop("labels", {}), "annotations": fields.pop("annotations", {})}
    group = "storage.k8s.io/v1" if kind == "StorageClass" else "v1"
    return {"apiVersion": group, "kind": kind, "metadata": metadata, **fields}


def claim(name: str, volume: str = "", storage_class: str = "") -> dict[str, Any]:
    spec = {
        "volumeName": volume,
        "storageClassName": storage_class,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    done = {"pv.kubernetes.io/bind-completed": "yes"} if volume else {}
    return stored("PersistentVolumeClaim", name, spec=spec, annotations=done)


WEB = pod(volumes=[{"name": "v", "persistentVolumeClaim": {"claimName": "data"}}])
FAST = stored("StorageClass", "fast", provisioner="csi.example.com", volumeBindingMode="WaitForFirstConsumer")
LOST = (node(), WEB, claim("data", volume="gone"))


def test_simulate_shows_the_volume_of_each_claim(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), WEB, claim("data", storage_class="fast"), FAST)

    result = run("simulate", "-f", cluster)

    assert result.exit_code == 0
    assert "\nCLAIM         SIZE  CLASS  VOLUME\ndefault/data   1Gi  fast   to be provisioned for n1\n" in result.stdout


def test_explain_names_the_claim_and_the_volume(tmp_path: Path) -> None:
    volume = stored("PersistentVolume", "pv-3", spec={"capacity": {"storage": "1Gi"}}, labels={ZONE: "b"})
    here = node(labels={ZONE: "a"})
    cluster = written(tmp_path / "c.json", here, WEB, claim("data", volume="pv-3"), volume)
    detail = "claim data (volume pv-3) is in zone b, the node is in a"

    assert detail in run("explain", "web", "-f", cluster).stdout
    assert detail in run("explain", "web", "-f", cluster, "--nodes").stdout
    (rejected,) = json.loads(run("explain", "web", "-f", cluster, "-o", "json").stdout)["rejected"]
    assert rejected["detail"] == detail


def test_a_missing_volume_is_as_in_a_cluster_without_it(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", *LOST)

    result = run("simulate", "-f", cluster)

    assert result.exit_code == 1
    assert '0/1 nodes are available: persistentvolume "gone" not found.' in result.stdout
    assert result.stderr.startswith("warning: no PersistentVolumes in the input: 1 bound claim, such as default/data")
    assert result.stderr.count("\n") == 1
    explained = run("explain", "web", "-f", cluster).stdout
    assert "Claim data is bound to volume gone, which is not in the input." in explained


def test_storage_can_be_ignored(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", *LOST)

    for command in (["simulate"], ["explain", "web"]):
        result = run(*command, "-f", cluster, "--assume-volumes", "-o", "json")

        assert result.exit_code == 0
        assert result.stderr == ""
        assert '"node": "n1"' in result.stdout


def test_storage_can_be_ignored_over_time(tmp_path: Path) -> None:
    cluster, events = written(tmp_path / "c.json", *LOST), tmp_path / "events.jsonl"
    events.write_text(json.dumps({"time": 1, "event": "add", "object": node("n2")}))

    assert run("simulate", "-f", cluster, "--timeline", events).exit_code == 1
    assert run("simulate", "-f", cluster, "--timeline", events, "--assume-volumes").exit_code == 0


def test_only_commands_that_can_ignore_storage_recommend_it(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", *LOST)

    for command, advises in ((("simulate",), True), (("explain", "web"), True), (("drain", "n1"), False)):
        warning = run(*command, "-f", cluster).stderr
        assert "no PersistentVolumes in the input" in warning
        assert ("--assume-volumes" in warning) == advises
