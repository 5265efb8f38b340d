"""`podium devices` and the other answers on a cluster with devices."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.running import run
from podium import answers
from podium.answers.capacity import DeviceState, devices
from podium.answers.simulation import simulate
from podium.cluster import Cluster
from podium.example import gpus_text
from podium.manifests import Objects, load
from podium.model import Pod, ResourceClaim
from podium.rules import NEWEST_RULES
from podium.workloads import expand_workloads


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("gpus") / "gpus.yaml"
    path.write_text(gpus_text())
    return path


@pytest.fixture(scope="module")
def objects(file: Path) -> Objects:
    return expand_workloads(load(str(file)))


def named(objects: Objects, name: str) -> Pod:
    return next(pod for pod in objects.of(Pod) if pod.name == name)


def test_devices_are_counted_by_node_and_class(objects: Objects) -> None:
    counts = devices(Cluster.from_objects(objects), NEWEST_RULES).counts()

    assert counts["gpu-b1", "gpu"] == {DeviceState.IN_USE: 5, DeviceState.FREE: 3}
    assert counts["gpu-a2", "gpu"] == {DeviceState.TAINTED: 2, DeviceState.FREE: 2}
    assert counts["gpu-b1", "nic"] == {DeviceState.SHARED: 1}


def test_partitions_in_use_block_those_that_share_their_counters(objects: Objects) -> None:
    cluster = Cluster.from_objects(objects)
    found = devices(simulate(cluster, tie_break="first").cluster, NEWEST_RULES)

    states = {each.id.device: each.state for each in found.devices if each.node == "mig-1"}
    assert states["gpu-0-half-0"] is DeviceState.IN_USE
    assert states["gpu-0"] is DeviceState.BLOCKED


def test_holders_say_how_much_they_have(objects: Objects) -> None:
    found = devices(Cluster.from_objects(objects), NEWEST_RULES)
    (nic,) = (each for each in found.devices if each.id.device == "nic-0")

    (holder,) = nic.holders
    assert (holder.claim, holder.pods, holder.consumed) == ("ml/ingest-nic", ("ingest",), {"bandwidth": "60G"})
    assert nic.left == {"bandwidth": "40G"}


def test_a_pool_that_is_not_whole_is_named(objects: Objects) -> None:
    kept = [obj for obj in objects if obj.name != "mig-1-counters"]

    found = devices(Cluster.from_objects(kept), NEWEST_RULES)

    assert found.problems == ("resource pool gpu.example.com/mig-1 is currently being updated",)
    assert {each.state for each in found.devices if each.node == "mig-1"} == {DeviceState.UNUSABLE}


@pytest.mark.parametrize("output", ["table", "wide", "json", "yaml", "csv"])
def test_the_command_writes_every_format(output: str, file: Path) -> None:
    result = run("devices", "-f", file, "-o", output, "--all")

    assert result.exit_code == 0
    assert "gpu-0-half-0" in result.stdout


def test_the_document_has_every_device(file: Path) -> None:
    document = json.loads(run("devices", "-f", file, "-o", "json").stdout)

    assert document["kind"] == "Devices"
    assert len(document["devices"]) == 31
    assert {"node": "gpu-a1", "class": "gpu", "devices": 4, "inUse": 3, "free": 1}.items() <= document["classes"][
        0
    ].items()


def test_capacity_makes_claims_for_every_pod(objects: Objects) -> None:
    found = answers.capacity(Cluster.from_objects(objects), named(objects, "train"))

    assert found.count == 2


def test_drained_pods_take_their_claims_along() -> None:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": pod_spec()}
    documents = [*base(), deployment(template)]
    cluster = Cluster.from_objects(expand_workloads(load(documents)))
    placed = simulate(cluster, tie_break="first").cluster
    lost = next(node for _, node in placed.placed())

    found = answers.drain(placed, [lost])

    (moved,) = found.cluster.placed()
    assert moved[1] != lost
    claims = [claim for claim in placed.store.of(ResourceClaim) if claim.status.allocation]
    assert len(claims) == 1, "the cluster that was asked about stays as it is"


def base() -> list[dict[str, Any]]:
    slices: list[dict[str, Any]] = [
        {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": name},
            "spec": {
                "driver": "d",
                "nodeName": name,
                "pool": {"name": name, "generation": 1, "resourceSliceCount": 1},
                "devices": [{"name": "gpu-0"}],
            },
        }
        for name in ("a", "b")
    ]
    nodes: list[dict[str, Any]] = [
        {"kind": "Node", "metadata": {"name": name}, "status": {"allocatable": {"cpu": "4", "pods": "10"}}}
        for name in ("a", "b")
    ]
    group = "resource.k8s.io/v1"
    request = {"name": "r", "exactly": {"deviceClassName": "gpu"}}
    template = {"spec": {"devices": {"requests": [request]}}}
    return [
        *nodes,
        *slices,
        {"apiVersion": group, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {}},
        {"apiVersion": group, "kind": "ResourceClaimTemplate", "metadata": {"name": "gpu"}, "spec": template},
    ]


def pod_spec() -> dict[str, Any]:
    return {
        "containers": [{"name": "c", "image": "i"}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }


def deployment(template: dict[str, Any]) -> dict[str, Any]:
    spec = {"replicas": 1, "selector": {"matchLabels": {"a": "b"}}, "template": template}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
