"""Cases to measure, in the shapes of kube-scheduler's own performance suite.

usage: python -m bench.shapes SHAPE NODES PODS [RUNNING] > case.json      (then: podium bench case.json)

Nodes have 4 cpu, 32Gi and 110 pods, in three zones; pods ask for 100m and 500Mi. RUNNING pods of the same shape are on
the nodes already, spread evenly. The shapes:

basic            plain pods, one class
mixed            random requests and one of 50 app labels: about 1,500 distinct specs
nodeaffinity     required node affinity to two of the three zones
antiaffinity     required anti-affinity to its own label, by hostname
affinity         required affinity to its own label, by zone
prefaffinity     preferred affinity to its own label, by hostname
spread           DoNotSchedule topology spread over zones, maxSkew 5
prefspread       ScheduleAnyway topology spread over zones, maxSkew 5
unschedulable    every second pod asks for 9 cpu and fits nowhere
distinct         no two specs equal: requests, labels, tolerations and node selectors differ; one node in ten is tainted
csipv            every pod has a claim bound to a volume of its own; nodes attach 39 volumes at most
devices          every pod has a claim for a GPU of one model, made from a template; nodes have 8, of two models
preemption       pods of 3 cpu and high priority; the running ones have 900m and low priority, and must go
"""

from __future__ import annotations

import json
import random
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

Fields = dict[str, Any]

ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
NAMESPACE = "sched"
GREEN = {"matchLabels": {"color": "green"}}
DRIVER, MOST_VOLUMES = "ebs.csi.aws.com", 39
DEVICE_API, GPU_DRIVER, MOST_GPUS = "resource.k8s.io/v1", "gpu.example.com", 8
REQUIRED, PREFERRED = (
    "requiredDuringSchedulingIgnoredDuringExecution",
    "preferredDuringSchedulingIgnoredDuringExecution",
)


class Parts(NamedTuple):
    """What sets one pod apart: its requests, its labels, and spec fields other than containers."""

    requests: dict[str, str] = {"cpu": "100m", "memory": "500Mi"}
    labels: dict[str, str] = {"color": "green"}
    spec: Fields = {}


def _basic(k: int, running: bool) -> Parts:
    return Parts()


def _mixed(k: int, running: bool) -> Parts:
    draw = random.Random(k)
    cpu, memory = draw.choice((50, 100, 150, 200, 250, 300)), draw.choice((64, 128, 256, 400, 512))
    return Parts({"cpu": f"{cpu}m", "memory": f"{memory}Mi"}, {"app": f"a{draw.randrange(50)}"})


def _nodeaffinity(k: int, running: bool) -> Parts:
    match = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["zone1", "zone2"]}]}
    return Parts(spec={"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [match]}}}})


def _term(topology_key: str) -> Fields:
    return {"labelSelector": GREEN, "namespaces": [NAMESPACE], "topologyKey": topology_key}


def _antiaffinity(k: int, running: bool) -> Parts:
    return Parts(spec={"affinity": {"podAntiAffinity": {REQUIRED: [_term(HOST)]}}})


def _affinity(k: int, running: bool) -> Parts:
    return Parts(spec={"affinity": {"podAffinity": {REQUIRED: [_term(ZONE)]}}})


def _prefaffinity(k: int, running: bool) -> Parts:
    return Parts(spec={"affinity": {"podAffinity": {PREFERRED: [{"weight": 1, "podAffinityTerm": _term(HOST)}]}}})


def _spreading(when: str) -> Parts:
    constraint = {"maxSkew": 5, "topologyKey": ZONE, "whenUnsatisfiable": when, "labelSelector": GREEN}
    return Parts(spec={"topologySpreadConstraints": [constraint]})


def _spread(k: int, running: bool) -> Parts:
    return _spreading("DoNotSchedule")


def _prefspread(k: int, running: bool) -> Parts:
    return _spreading("ScheduleAnyway")


def _unschedulable(k: int, running: bool) -> Parts:
    return Parts({"cpu": "9", "memory": "500Mi"}) if k % 2 and not running else Parts()


def _distinct(k: int, running: bool) -> Parts:
    draw = random.Random(k)
    # The memory alone makes every spec another one; the rest makes them differ for every plugin.
    requests = {"cpu": f"{draw.randrange(10, 400)}m", "memory": f"{64 * 1024 + k}Ki"}
    labels = {"app": f"a{draw.randrange(2000)}", "team": f"t{draw.randrange(40)}"}
    spec: Fields = {}
    if draw.random() < 0.5:
        spec["tolerations"] = [{"key": "dedicated", "value": f"d{draw.randrange(20)}", "effect": "NoSchedule"}]
    if draw.random() < 0.5:
        spec["nodeSelector"] = draw.choice(({ZONE: f"zone{k % 3}"}, {"pool": f"p{k % 7}"}))
    return Parts(requests, labels, spec)


def _csipv(k: int, running: bool) -> Parts:
    claim = {"claimName": _claim_name(k, running)}
    return Parts(spec={"volumes": [{"name": "data", "persistentVolumeClaim": claim}]})


def _devices(k: int, running: bool) -> Parts:
    if running:
        return Parts()
    return Parts(spec={"resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]})


def _preemption(k: int, running: bool) -> Parts:
    cpu, priority = ("900m", 0) if running else ("3", 10)
    return Parts({"cpu": cpu, "memory": "500Mi"}, spec={"priority": priority})


SHAPES: dict[str, Callable[[int, bool], Parts]] = {
    "basic": _basic,
    "mixed": _mixed,
    "nodeaffinity": _nodeaffinity,
    "antiaffinity": _antiaffinity,
    "affinity": _affinity,
    "prefaffinity": _prefaffinity,
    "spread": _spread,
    "prefspread": _prefspread,
    "unschedulable": _unschedulable,
    "distinct": _distinct,
    "csipv": _csipv,
    "devices": _devices,
    "preemption": _preemption,
}


# -- objects -------------------------------------------------------------------------------------------------------


def _object(kind: str, name: str, *, api_version: str = "v1", **fields: Any) -> Fields:
    return {"apiVersion": api_version, "kind": kind, "metadata": {"name": name, **fields.pop("metadata", {})}, **fields}


def _node_name(i: int) -> str:
    return f"node-{i:06d}"


def _pod_name(k: int, running: bool) -> str:
    return f"{'running' if running else 'pod'}-{k:07d}"


def _claim_name(k: int, running: bool) -> str:
    return f"claim-{_pod_name(k, running)}"


def node(i: int, shape: str) -> Fields:
    size = {"cpu": "4", "memory": "32Gi", "pods": "110"}
    labels, spec = {HOST: _node_name(i), ZONE: f"zone{i % 3}"}, {}
    if shape == "distinct":
        labels["pool"] = f"p{i % 7}"
        if i % 10 == 0:
            spec["taints"] = [{"key": "dedicated", "value": f"d{i // 10 % 20}", "effect": "NoSchedule"}]
    status = {"allocatable": size, "capacity": size}
    return _object("Node", _node_name(i), metadata={"labels": labels}, spec=spec, status=status)


def pod(k: int, shape: str, on: str = "") -> Fields:
    """Pod number `k`: pending, or running on a node."""
    requests, labels, spec = SHAPES[shape](k, bool(on))
    resources = {"requests": requests, "limits": requests}
    containers = [{"name": "pause", "image": "registry.k8s.io/pause:3.10", "resources": resources}]
    bound = {"nodeName": on} if on else {}
    return _object(
        "Pod",
        _pod_name(k, bool(on)),
        metadata={"namespace": NAMESPACE, "labels": labels},
        spec={**spec, **bound, "containers": containers},
        status=_claimed(k) if "resourceClaims" in spec else {},
    )


def _csi_node(i: int) -> Fields:
    driver = {"name": DRIVER, "nodeID": _node_name(i), "allocatable": {"count": MOST_VOLUMES}}
    return _object("CSINode", _node_name(i), api_version="storage.k8s.io/v1", spec={"drivers": [driver]})


def _claim_and_volume(k: int, running: bool) -> list[Fields]:
    """A claim and the volume it is bound to."""
    claim, volume = _claim_name(k, running), f"volume-{_pod_name(k, running)}"
    size, modes = {"storage": "1Gi"}, ["ReadOnlyMany"]
    bound = {"pv.kubernetes.io/bind-completed": "true"}
    return [
        _object(
            "PersistentVolumeClaim",
            claim,
            metadata={"namespace": NAMESPACE, "annotations": bound, "uid": claim},
            spec={"accessModes": modes, "resources": {"requests": size}, "volumeName": volume, "storageClassName": ""},
            status={"phase": "Bound"},
        ),
        _object(
            "PersistentVolume",
            volume,
            spec={
                "accessModes": modes,
                "capacity": size,
                "claimRef": {"namespace": NAMESPACE, "name": claim, "uid": claim},
                "csi": {"driver": DRIVER, "volumeHandle": volume},
                "persistentVolumeReclaimPolicy": "Retain",
            },
            status={"phase": "Bound"},
        ),
    ]


def _claimed(k: int) -> Fields:
    """The status of a pod that a claim was made for."""
    return {"resourceClaimStatuses": [{"name": "gpu", "resourceClaimName": _claim_name(k, False)}]}


def _device_class() -> Fields:
    spec = {"selectors": [{"cel": {"expression": f'device.driver == "{GPU_DRIVER}"'}}]}
    return _object("DeviceClass", "gpu", api_version=DEVICE_API, spec=spec)


def _device_slice(i: int) -> Fields:
    name = _node_name(i)
    models = ("h100" if (i + n) % 4 else "a100" for n in range(MOST_GPUS))
    devices = [{"name": f"gpu-{n}", "attributes": {"model": {"string": model}}} for n, model in enumerate(models)]
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": GPU_DRIVER, "nodeName": name, "pool": pool, "devices": devices}
    return _object("ResourceSlice", name, api_version=DEVICE_API, spec=spec)


def _device_claim(k: int) -> Fields:
    """The claim that was made for a pod."""
    selector = {"cel": {"expression": f'device.attributes["{GPU_DRIVER}"].model == "h100"'}}
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu", "selectors": [selector]}}
    name = _pod_name(k, False)
    owner = {"apiVersion": "v1", "kind": "Pod", "name": name, "uid": f"Pod/{NAMESPACE}/{name}", "controller": True}
    return _object(
        "ResourceClaim",
        _claim_name(k, False),
        api_version=DEVICE_API,
        metadata={"namespace": NAMESPACE, "ownerReferences": [owner]},
        spec={"devices": {"requests": [request]}},
    )


def case(shape: str, nodes: int, pods: int, running: int = 0) -> Fields:
    """A cluster as `objects`, with running pods on it, and the `pods` to schedule one after the other."""
    if shape not in SHAPES:
        raise ValueError(f"no shape {shape!r}; there is {', '.join(SHAPES)}")
    objects = [node(i, shape) for i in range(nodes)]
    if shape == "csipv":
        objects += map(_csi_node, range(nodes))
        for k, is_running in [*((k, True) for k in range(running)), *((k, False) for k in range(pods))]:
            objects += _claim_and_volume(k, is_running)
    if shape == "devices":
        objects += [_device_class(), *map(_device_slice, range(nodes)), *map(_device_claim, range(pods))]
    objects += (pod(k, shape, on=_node_name(k % nodes)) for k in range(running))
    return {"name": f"{shape}-{nodes}-{pods}", "objects": objects, "pods": [pod(k, shape) for k in range(pods)]}


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5) or sys.argv[1] not in SHAPES:
        raise SystemExit(__doc__)
    json.dump(case(sys.argv[1], *map(int, sys.argv[2:])), sys.stdout)
