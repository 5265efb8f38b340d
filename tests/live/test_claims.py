"""Volumes and devices that a pod claims: `podium run` writes what kube-scheduler writes."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from live.cluster_objects import (
    CLAIMS,
    DRIVER,
    NODES,
    PODS,
    RESOURCE,
    ZONE,
    Fields,
    add_devices,
    create_claim,
    node,
    pod,
    request,
    uses,
)
from live.control_plane import ControlPlane, Process, control_plane
from live.schedulers import COMPARED, SCHEDULERS, KubeScheduler, Podium, configuration, wait_until

PVS, PVCS = "/api/v1/persistentvolumes", "/api/v1/namespaces/default/persistentvolumeclaims"
MERGE = "application/merge-patch+json"
BIND_COMPLETED = "pv.kubernetes.io/bind-completed"


Starters = Mapping[str, Callable[[ControlPlane], Process]]
"""How to start each scheduler, by its name."""


@contextmanager
def scheduled_by(name: str, schedulers: Starters = SCHEDULERS) -> Iterator[ControlPlane]:
    """A control plane whose pods this scheduler places."""
    with control_plane() as plane:
        for number, zone in enumerate(("one", "two", "three")):
            plane.create(NODES, node(f"n{number}", zone=zone))
        process = schedulers[name](plane)
        try:
            yield plane
        except AssertionError:
            print(f"{name}: {process.output[-6000:]}")
            print({each["metadata"]["name"]: told(plane, each["metadata"]["name"]) for each in plane.pods()})
            raise
        process.stop()
        assert "Traceback" not in process.output, process.output[-3000:]
        assert "unexpected" not in process.output, process.output[-3000:]


def same_with_both(live_through: Callable[[ControlPlane], Fields], schedulers: Starters = SCHEDULERS) -> Fields:
    """What comes of living through something; an AssertionError unless it is the same with either scheduler."""
    found = {}
    for name in schedulers:
        with scheduled_by(name, schedulers) as plane:
            found[name] = live_through(plane)
    assert found["podium"] == found["kube-scheduler"]
    return found["podium"]


def names_of(plane: ControlPlane) -> dict[str, str]:
    """The names of pods by their uid, so that what names them can be compared."""
    return {each["metadata"]["uid"]: each["metadata"]["name"] for each in plane.pods()}


def bound(plane: ControlPlane, name: str) -> str:
    found: str = plane.get(f"{PODS}/{name}")["spec"].get("nodeName", "")
    return found


def told(plane: ControlPlane, name: str) -> str:
    """Why a pod is not scheduled; empty if that is not said."""
    conditions = plane.get(f"{PODS}/{name}")["status"].get("conditions", ())
    return next((each.get("message", "") for each in conditions if each["type"] == "PodScheduled"), "")


def create_pod(plane: ControlPlane, name: str, **spec: Any) -> Fields:
    made: Fields = plane.create(PODS, pod(name, schedulerName=COMPARED, **spec))
    return made


# -- devices ---------------------------------------------------------------------------------------------------------


LARGE = f"device.capacity['{DRIVER}'].memory.compareTo(quantity('20Gi')) >= 0"
OWN = {"requests": ["small"], "opaque": {"driver": DRIVER, "parameters": {"level": 3}}}


def claims_of(plane: ControlPlane) -> Fields:
    """What was written into the claims, with the names of pods for their uids and without times."""
    names, found = names_of(plane), {}
    for claim in plane.get(CLAIMS)["items"]:
        status = claim.get("status", {})
        status.get("allocation", {}).pop("allocationTimestamp", None)
        for consumer in status.get("reservedFor", ()):
            consumer["uid"] = names[consumer["uid"]]
        metadata = claim["metadata"]
        name = metadata.get("generateName") or metadata["name"]
        found[name] = [metadata.get("finalizers"), metadata.get("annotations"), claim["spec"], status]
    return found


def live_through_devices(plane: ControlPlane) -> Fields:
    """Claims of one pod and of two, from a template, for an extended resource, and one that cannot be had."""
    add_devices(plane)
    create_claim(plane, "large", request("large", LARGE))
    create_claim(plane, "small", request("small", f"!({LARGE})"), config=[OWN])
    for name, claim in (("alone", "small"), ("first", "large"), ("second", "large")):
        create_pod(plane, name, **uses(claim))
        wait_until(lambda name=name: bool(bound(plane, name)))  # type: ignore[misc]
    templated = [{"name": "gpu", "resourceClaimTemplateName": "any"}]
    made = create_pod(plane, "templated", resourceClaims=templated)
    create_claim(plane, "templated-gpu", request("any"), owner=made)
    status = {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": "templated-gpu"}]}
    code, answer = plane.request("PATCH", f"{PODS}/templated/status", {"status": status}, content_type=MERGE)
    assert code == 200, answer
    wait_until(lambda: bool(bound(plane, "templated")))
    create_claim(plane, "none-left", request("any"))
    create_pod(plane, "waiting", **uses("none-left"))
    wait_until(lambda: bool(told(plane, "waiting")))
    found = {"waiting": told(plane, "waiting"), "claims": claims_of(plane)}
    # Room for it: the only pod of a claim ends, and whoever looks after claims gives up its device.
    release(plane, "alone", "small")
    wait_until(lambda: bool(bound(plane, "waiting")))
    release(plane, "templated", "templated-gpu")
    resources = {"requests": {"example.com/gpu": "1"}, "limits": {"example.com/gpu": "1"}}
    create_pod(plane, "extended", containers=[{"name": "main", "image": "app", "resources": resources}])
    wait_until(lambda: bool(bound(plane, "extended")))
    extended = plane.get(f"{PODS}/extended")["status"]["extendedResourceClaimStatus"]
    assert extended.pop("resourceClaimName").startswith("extended-extended-resources-")
    nodes = {each["metadata"]["name"]: each["spec"].get("nodeName") for each in plane.pods()}
    return found | {"extended": extended, "later": claims_of(plane), "nodes": nodes}


def release(plane: ControlPlane, name: str, claim: str) -> None:
    """Delete a pod, and deallocate and delete its claim, as the controller of claims does."""
    assert plane.request("DELETE", f"{PODS}/{name}", {"gracePeriodSeconds": 0})[0] == 200
    patch = [{"op": "remove", "path": "/status/reservedFor"}, {"op": "remove", "path": "/status/allocation"}]
    kind = "application/json-patch+json"
    assert plane.request("PATCH", f"{CLAIMS}/{claim}/status", patch, content_type=kind)[0] == 200
    assert plane.request("DELETE", f"{CLAIMS}/{claim}")[0] == 200


def test_devices_are_written_as_kube_scheduler_writes_them() -> None:
    found = same_with_both(live_through_devices)

    large = found["claims"]["large"]
    assert [each["uid"] for each in large[-1]["reservedFor"]] == ["first", "second"]
    assert found["claims"]["small"][-1]["allocation"]["devices"]["config"] == [
        {"source": "FromClass", "opaque": {"driver": DRIVER, "parameters": {"mode": "shared"}}},
        {"source": "FromClaim", "opaque": OWN["opaque"]},
    ]


def test_no_device_is_given_twice(fresh_plane: ControlPlane) -> None:
    """Twelve pods with a claim each, all at once, for three devices: three are bound, and the others wait."""
    for number in range(2):
        fresh_plane.create(NODES, node(f"n{number}"))
    add_devices(fresh_plane)
    for number in range(12):
        create_claim(fresh_plane, f"claim-{number}", request("any"))
        fresh_plane.create(PODS, pod(f"pod-{number}", schedulerName="podium", **uses(f"claim-{number}")))
    process = Podium(fresh_plane)
    wait_until(lambda: sum(bool(told(fresh_plane, f"pod-{number}")) for number in range(12)) == 9)
    wait_until(lambda: sum(bool(bound(fresh_plane, f"pod-{number}")) for number in range(12)) == 3)

    given = [
        json.dumps([result["pool"], result["device"]])
        for claim in fresh_plane.get(CLAIMS)["items"]
        for result in claim.get("status", {}).get("allocation", {}).get("devices", {}).get("results", ())
    ]
    assert sorted(given) == ['["n0", "small"]', '["n1", "d0"]', '["n1", "d1"]']
    process.stop()
    assert "Traceback" not in process.output


SLOW_DRIVER = "fabric.example.com"
READY, BROKEN = "example.com/ready", "example.com/broken"
TIMES = [{"name": "DynamicResources", "args": {"bindingTimeout": "8s"}}]
IMPATIENT: dict[str, Callable[[ControlPlane], Process]] = {
    "kube-scheduler": lambda plane: KubeScheduler(plane, impatient(plane)),
    "podium": lambda plane: Podium(plane, config=impatient(plane)),
}


def impatient(plane: ControlPlane) -> Path:
    """A configuration that waits eight seconds for devices."""
    return configuration(plane, COMPARED, profiles=[{"schedulerName": COMPARED, "pluginConfig": TIMES}])


def add_slow_devices(plane: ControlPlane) -> None:
    """Three devices on n0 that have to get ready before a pod may use them."""
    conditions = {"bindingConditions": [READY], "bindingFailureConditions": [BROKEN]}
    devices = [{"name": f"slow-{number}", **conditions} for number in range(3)]
    pool = {"name": "n0", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": SLOW_DRIVER, "pool": pool, "nodeName": "n0", "devices": devices}
    plane.create(f"{RESOURCE}/resourceslices", {"metadata": {"name": "slow"}, "spec": spec})
    selectors = [{"cel": {"expression": f"device.driver == '{SLOW_DRIVER}'"}}]
    plane.create(f"{RESOURCE}/deviceclasses", {"metadata": {"name": "gpu"}, "spec": {"selectors": selectors}})


def report(plane: ControlPlane, claim: str, condition: str) -> None:
    """Do what a driver does whose device got ready, or did not."""
    (result,) = plane.get(f"{CLAIMS}/{claim}")["status"]["allocation"]["devices"]["results"]
    of = {field: result[field] for field in ("driver", "pool", "device")}
    times = {"lastTransitionTime": "2026-01-01T00:00:00Z", "reason": "Tried", "message": "as told"}
    status = {"devices": [{**of, "conditions": [{"type": condition, "status": "True", **times}]}]}
    answer = plane.request("PATCH", f"{CLAIMS}/{claim}/status", {"status": status}, content_type=MERGE)
    assert answer[0] == 200, answer


def is_allocated(plane: ControlPlane, claim: str) -> bool:
    return "allocation" in plane.get(f"{CLAIMS}/{claim}").get("status", {})


def notes_of(plane: ControlPlane, name: str) -> list[tuple[str, str]]:
    """What was told of a pod, without how often."""
    told = {(event["reason"], event["note"]) for event in plane.events() if event["regarding"]["name"] == name}
    return sorted(told)


def is_told(plane: ControlPlane, name: str, reason: str) -> bool:
    return any(reason == each for each, _ in notes_of(plane, name))


def live_through_binding_conditions(plane: ControlPlane) -> Fields:
    """A device that gets ready, one that breaks and then gets ready, and one of which nothing is heard in time."""
    add_slow_devices(plane)
    for name in ("prepared", "repaired", "late"):
        create_claim(plane, name, request("any"))
        create_pod(plane, name, **uses(name))
        wait_until(lambda name=name: is_told(plane, name, "BindingConditionsPending"))  # type: ignore[misc]
        found = plane.get(f"{PODS}/{name}")
        assert (bound(plane, name), found["status"].get("nominatedNodeName")) == ("", "n0")
        if name == "prepared":
            report(plane, name, READY)
            wait_until(lambda: bool(bound(plane, "prepared")))
        elif name == "repaired":
            report(plane, name, BROKEN)
            wait_until(lambda: is_told(plane, "repaired", "FailedScheduling"))
            # The claim is given up, and allocated again.
            wait_until(lambda: is_allocated(plane, "repaired") and "devices" not in status_of(plane, "repaired"))
            time.sleep(1)
            report(plane, name, READY)
            wait_until(lambda: bool(bound(plane, "repaired")))
    wait_until(lambda: any("timeout" in note for _, note in notes_of(plane, "late")))
    timed_out = plane.get(f"{CLAIMS}/late")["metadata"]["uid"]
    wait_until(lambda: len(notes_of(plane, "late")) >= 3)
    wait_until(lambda: is_allocated(plane, "late"))
    time.sleep(1)
    report(plane, "late", READY)
    wait_until(lambda: bool(bound(plane, "late")))
    assert plane.get(f"{CLAIMS}/late")["metadata"]["uid"] == timed_out
    wait_until(lambda: all(is_told(plane, name, "Scheduled") for name in ("prepared", "repaired", "late")))
    notes = {name: notes_of(plane, name) for name in ("prepared", "repaired", "late")}
    return {"notes": notes, "claims": claims_of(plane)}


def status_of(plane: ControlPlane, claim: str) -> Fields:
    found: Fields = plane.get(f"{CLAIMS}/{claim}").get("status", {})
    return found


def test_devices_that_have_to_get_ready_are_waited_for_as_kube_scheduler_does() -> None:
    found = same_with_both(live_through_binding_conditions, IMPATIENT)

    failures = [note for reason, note in found["notes"]["late"] if reason == "FailedScheduling"]
    assert 'running PreBind plugin "DynamicResources": device binding timeout: context deadline exceeded' in failures


def live_through_deallocation(plane: ControlPlane) -> Fields:
    """A claim with a device on a node where its pod cannot be: it is given up, and allocated where the pod goes."""
    add_devices(plane)
    create_claim(plane, "moved", request("any"))
    where = {"nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]}
    result = {"request": "any", "driver": DRIVER, "pool": "n1", "device": "d0"}
    status = {"allocation": {"devices": {"results": [result]}, "nodeSelector": where}}
    answer = plane.request("PATCH", f"{CLAIMS}/moved/status", {"status": status}, content_type=MERGE)
    assert answer[0] == 200, answer
    create_pod(plane, "elsewhere", **uses("moved"), nodeSelector={"kubernetes.io/hostname": "n0"})
    wait_until(lambda: bool(bound(plane, "elsewhere")))
    wait_until(lambda: is_told(plane, "elsewhere", "Scheduled"))
    return {"notes": notes_of(plane, "elsewhere"), "claims": claims_of(plane), "node": bound(plane, "elsewhere")}


def test_a_claim_that_keeps_its_pod_from_every_node_is_deallocated_as_kube_scheduler_does() -> None:
    found = same_with_both(live_through_deallocation)

    assert found["node"] == "n0"
    assert any("deallocation of ResourceClaim completed" in note for _, note in found["notes"])


# -- volumes ---------------------------------------------------------------------------------------------------------


def add_volumes(plane: ControlPlane) -> None:
    """A class of volumes that are there, one of volumes that are made, and a claim of each."""
    classes = {"local": "kubernetes.io/no-provisioner", "made": "csi.example.com"}
    for name, provisioner in classes.items():
        plane.create(
            "/apis/storage.k8s.io/v1/storageclasses",
            {
                "metadata": {"name": name},
                "provisioner": provisioner,
                "volumeBindingMode": "WaitForFirstConsumer",
            },
        )
        resources = {"requests": {"storage": "1Gi"}}
        spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": name, "resources": resources}
        plane.create(PVCS, {"metadata": {"name": name}, "spec": spec})
    add_volume(plane, "larger", "4Gi", "local", "two")
    add_volume(plane, "fitting", "2Gi", "local", "two")


def add_volume(plane: ControlPlane, name: str, size: str, storage_class: str, zone: str) -> None:
    """A volume that can be used in one zone, as whoever looks after volumes leaves it."""
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [zone]}]}
    spec = {
        "capacity": {"storage": size},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": storage_class,
        "local": {"path": "/mnt/disk"},
        "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
    }
    plane.create(PVS, {"metadata": {"name": name}, "spec": spec})
    available = {"status": {"phase": "Available"}}
    assert plane.request("PATCH", f"{PVS}/{name}/status", available, content_type=MERGE)[0] == 200


def mounts(claim: str) -> Fields:
    return {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": claim}}]}


def finish_binding(plane: ControlPlane, claim: str, volume: str) -> None:
    """Do what the controller of volumes does with a claim that has got its volume."""
    patch = {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}, "spec": {"volumeName": volume}}
    assert plane.request("PATCH", f"{PVCS}/{claim}", patch, content_type=MERGE)[0] == 200
    bound_status = {"status": {"phase": "Bound"}}
    assert plane.request("PATCH", f"{PVCS}/{claim}/status", bound_status, content_type=MERGE)[0] == 200


def live_through_volumes(plane: ControlPlane) -> Fields:
    add_volumes(plane)
    create_pod(plane, "static", **mounts("local"))
    wait_until(lambda: "claimRef" in plane.get(f"{PVS}/fitting")["spec"])
    volume = plane.get(f"{PVS}/fitting")
    time.sleep(0.5)
    # It waits for whoever binds claims.
    assert bound(plane, "static") == ""
    finish_binding(plane, "local", "fitting")
    wait_until(lambda: bool(bound(plane, "static")))
    create_pod(plane, "dynamic", **mounts("made"), nodeSelector={ZONE: "three"})
    wait_until(lambda: bool(plane.get(f"{PVCS}/made")["metadata"].get("annotations")))
    claim = plane.get(f"{PVCS}/made")
    time.sleep(0.5)
    assert bound(plane, "dynamic") == ""
    add_volume(plane, "new", "1Gi", "made", "three")
    finish_binding(plane, "made", "new")
    wait_until(lambda: bool(bound(plane, "dynamic")))
    reference = {key: volume["spec"]["claimRef"][key] for key in ("apiVersion", "kind", "namespace", "name")}
    assert volume["spec"]["claimRef"]["uid"] == plane.get(f"{PVCS}/local")["metadata"]["uid"]
    return {
        "reference": reference,
        "volume annotations": volume["metadata"].get("annotations"),
        "claim annotations": claim["metadata"].get("annotations"),
        "other volume": "claimRef" in plane.get(f"{PVS}/larger")["spec"],
        "nodes": {name: bound(plane, name) for name in ("static", "dynamic")},
    }


def test_volumes_are_written_as_kube_scheduler_writes_them() -> None:
    found = same_with_both(live_through_volumes)

    assert found["claim annotations"]["volume.kubernetes.io/selected-node"] == "n2"
    assert found["nodes"] == {"static": "n1", "dynamic": "n2"}
