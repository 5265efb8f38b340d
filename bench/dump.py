"""A dump of a large cluster as `kubectl get nodes,pods -A -o json` writes it, with all that scheduling does not read.

usage: python -m bench.dump FILE [NODES PODS]
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from itertools import chain
from pathlib import Path
from textwrap import indent
from typing import IO, Any

import msgspec

Fields = dict[str, Any]

NODES, PODS = 5_000, 100_000
APPS, NAMESPACES, TEAMS, IMAGES_PER_NODE = 2_000, 200, 50, 40
WAITING = "ns-0/waiting"
"""The one pod that has no node yet."""
CREATED = "2026-03-02T09:14:07Z"


def write_dump(path: Path, nodes: int = NODES, pods: int = PODS) -> None:
    """Write nodes, pods that run on them evenly, and one pod that waits."""
    running = (_pod(k, f"node-{k % nodes:05d}") for k in range(pods - 1))
    items = chain(map(_node, range(nodes)), running, [_waiting()])
    with path.open("wb") as file:
        write_list(file, items)


def write_list(file: IO[bytes], items: Iterable[Fields]) -> None:
    """Write a list as kubectl does."""
    file.write(b'{\n    "apiVersion": "v1",\n    "items": [\n')
    for place, item in enumerate(items):
        file.write(b",\n" if place else b"")
        file.write(indent(msgspec.json.format(msgspec.json.encode(item), indent=4).decode(), " " * 8).encode())
    file.write(b'\n    ],\n    "kind": "List",\n    "metadata": {\n        "resourceVersion": ""\n    }\n}\n')


def _image(app: int) -> str:
    return f"registry.example.com/shop/app-{app % APPS}:v1.{app % 7}.3"


def _digest(seed: int) -> str:
    return f"sha256:{seed * 2654435761 % (1 << 64):064x}"


def _condition(kind: str, status: str = "True", seen: str = "lastHeartbeatTime") -> Fields:
    return {seen: CREATED, "lastTransitionTime": CREATED, "status": status, "type": kind}


# -- nodes ---------------------------------------------------------------------------------------------------------


def _node(i: int) -> Fields:
    name, zone = f"node-{i:05d}", f"eu-west-1{'abc'[i % 3]}"
    labels = {
        "beta.kubernetes.io/arch": "amd64",
        "beta.kubernetes.io/os": "linux",
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/hostname": name,
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": "m6i.8xlarge",
        "topology.kubernetes.io/region": "eu-west-1",
        "topology.kubernetes.io/zone": zone,
    }
    annotations = {
        "node.alpha.kubernetes.io/ttl": "0",
        "volumes.kubernetes.io/controller-managed-attach-detach": "true",
    }
    meta = {
        "annotations": annotations,
        "creationTimestamp": CREATED,
        "labels": labels,
        "name": name,
        "uid": f"n{i:035x}",
    }
    spec = {"podCIDR": f"10.{i >> 8}.{i & 255}.0/24", "providerID": f"aws:///{zone}/i-{i:017x}"}
    return {"apiVersion": "v1", "kind": "Node", "metadata": meta, "spec": spec, "status": _node_status(i)}


def _node_status(i: int) -> Fields:
    pressures = [_condition(kind, "False") for kind in ("MemoryPressure", "DiskPressure", "PIDPressure")]
    apps = [i * 7 + k for k in range(IMAGES_PER_NODE)]
    return {
        "addresses": [{"address": f"10.0.{i >> 8}.{i & 255}", "type": "InternalIP"}],
        "allocatable": {"cpu": "31850m", "ephemeral-storage": "95Gi", "memory": "125Gi", "pods": "110"},
        "capacity": {"cpu": "32", "ephemeral-storage": "100Gi", "memory": "128Gi", "pods": "110"},
        "conditions": [*pressures, _condition("Ready")],
        "images": [
            {
                "names": [f"registry.example.com/shop/app-{app % APPS}@{_digest(app)}", _image(app)],
                "sizeBytes": 10**8 + app,
            }
            for app in apps
        ],
        "nodeInfo": {
            "architecture": "amd64",
            "containerRuntimeVersion": "containerd://2.1.4",
            "kernelVersion": "6.12.40",
            "kubeletVersion": "v1.36.4",
            "machineID": f"{i:032x}",
            "operatingSystem": "linux",
            "osImage": "Bottlerocket OS 1.50.0",
        },
    }


# -- pods ----------------------------------------------------------------------------------------------------------


def _pod(k: int, node: str) -> Fields:
    app, hash_ = k % APPS, f"{k % APPS * 40503 % (1 << 36):09x}"
    owner = {
        "apiVersion": "apps/v1",
        "blockOwnerDeletion": True,
        "controller": True,
        "kind": "ReplicaSet",
        "name": f"app-{app}-{hash_}",
        "uid": f"r{app:035x}",
    }
    labels = {"app.kubernetes.io/name": f"app-{app}", "pod-template-hash": hash_, "team": f"team-{app % TEAMS}"}
    meta = {
        "annotations": {"kubectl.kubernetes.io/restartedAt": CREATED, "prometheus.io/port": "8080"},
        "creationTimestamp": CREATED,
        "generateName": f"app-{app}-{hash_}-",
        "generation": 1,
        "labels": labels,
        "name": f"app-{app}-{hash_}-{k:05x}",
        "namespace": f"ns-{app % NAMESPACES}",
        "ownerReferences": [owner],
        "resourceVersion": str(10**8 + k),
        "uid": f"p{k:035x}",
    }
    spec = _pod_spec(app, k) | {"nodeName": node}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": meta,
        "spec": spec,
        "status": pod_status(k, _image(app), _resources(app)),
    }


def _waiting() -> Fields:
    namespace, name = WAITING.split("/")
    meta = {
        "creationTimestamp": CREATED,
        "labels": {"app.kubernetes.io/name": "app-0"},
        "name": name,
        "namespace": namespace,
    }
    status = {"phase": "Pending", "qosClass": "Burstable"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": _pod_spec(0, PODS), "status": status}


def _pod_spec(app: int, k: int) -> Fields:
    return {**_placement(app), **template_spec(_image(app), _resources(app), k)}


def template_spec(image: str, resources: Fields, k: int) -> Fields:
    """The spec of pod number `k`, of a container with this image and these requests and limits."""
    # The API server gives the volume of the token another name for every pod.
    token = f"kube-api-access-{k * 40503 % (1 << 20):05x}"
    return {
        "containers": [_container(image, resources, token)],
        "dnsPolicy": "ClusterFirst",
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
        "priority": 0,
        "restartPolicy": "Always",
        "schedulerName": "default-scheduler",
        "securityContext": {},
        "serviceAccount": "default",
        "serviceAccountName": "default",
        "terminationGracePeriodSeconds": 30,
        "tolerations": [
            {"effect": "NoExecute", "key": f"node.kubernetes.io/{why}", "operator": "Exists", "tolerationSeconds": 300}
            for why in ("not-ready", "unreachable")
        ],
        "volumes": [{"name": token, "projected": {"defaultMode": 420, "sources": _token_sources()}}],
    }


def _placement(app: int) -> Fields:
    """One app in three keeps its pods on different nodes if it can, one in three spreads them over zones."""
    selector = {"matchLabels": {"app.kubernetes.io/name": f"app-{app}"}}
    if app % 3 == 0:
        term = {"labelSelector": selector, "topologyKey": "kubernetes.io/hostname"}
        preferred = [{"podAffinityTerm": term, "weight": 100}]
        return {"affinity": {"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": preferred}}}
    if app % 3 == 1:
        zones = {"labelSelector": selector, "maxSkew": 1, "topologyKey": "topology.kubernetes.io/zone"}
        return {"topologySpreadConstraints": [zones | {"whenUnsatisfiable": "ScheduleAnyway"}]}
    return {}


def _token_sources() -> list[Fields]:
    return [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {"configMap": {"items": [{"key": "ca.crt", "path": "ca.crt"}], "name": "kube-root-ca.crt"}},
        {
            "downwardAPI": {
                "items": [{"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}, "path": "ns"}]
            }
        },
    ]


def _resources(app: int) -> Fields:
    return {
        "limits": {"cpu": "1", "memory": "1Gi"},
        "requests": {"cpu": f"{100 + app % 8 * 50}m", "memory": f"{256 << app % 3}Mi"},
    }


def _container(image: str, resources: Fields, token: str) -> Fields:
    probe = {
        "failureThreshold": 3,
        "httpGet": {"path": "/healthz", "port": 8080, "scheme": "HTTP"},
        "periodSeconds": 10,
    }
    return {
        "env": [{"name": f"SETTING_{k}", "value": f"value-{image}-{k}"} for k in range(5)],
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": probe,
        "name": "main",
        "ports": [{"containerPort": 8080, "name": "http", "protocol": "TCP"}],
        "resources": resources,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "volumeMounts": [
            {"mountPath": "/var/run/secrets/kubernetes.io/serviceaccount", "name": token, "readOnly": True}
        ],
    }


def pod_status(k: int, image: str, resources: Fields) -> Fields:
    """The status of a running pod, number `k`, of a container with this image and these requests and limits."""
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    container = {
        "allocatedResources": resources["requests"],
        "containerID": f"containerd://{k * 40503:064x}",
        "image": image,
        "imageID": f"{image.partition(':')[0]}@{_digest(len(image))}",
        "lastState": {},
        "name": "main",
        "ready": True,
        "resources": resources,
        "restartCount": 0,
        "started": True,
        "state": {"running": {"startedAt": CREATED}},
    }
    address = f"10.{k >> 16}.{k >> 8 & 255}.{k & 255}"
    return {
        "conditions": [_condition(kind, seen="lastProbeTime") for kind in kinds],
        "containerStatuses": [container],
        "hostIP": "10.0.0.1",
        "phase": "Running",
        "podIP": address,
        "podIPs": [{"ip": address}],
        "qosClass": "Burstable",
        "startTime": CREATED,
    }


if __name__ == "__main__":
    if len(sys.argv) not in (2, 4):
        raise SystemExit(__doc__)
    write_dump(Path(sys.argv[1]), *map(int, sys.argv[2:]))
