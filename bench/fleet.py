"""A generated cluster as a company runs it: pools in three zones, hundreds of workloads, each with labels of its own.

usage: python -m bench.fleet NODES PODS [SEED] > big.json      (then: podium audit -f big.json)

The same numbers give the same file, as kubectl writes it. One pod in 200 waits. A tenth of the nodes are spot, some
have GPUs; both are tainted. A workload in three spreads its pods or keeps them apart, one in ten has a volume for every
pod; half of them have a disruption budget. Three DaemonSets run on every node.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, NamedTuple

from bench.dump import CREATED, Fields, pod_status, template_spec, write_list
from bench.shapes import HOST, PREFERRED, REQUIRED, ZONE

ZONES = ("eu-1a", "eu-1b", "eu-1c")
POOL, GPU, DRIVER, STORAGE_CLASS = "pool", "nvidia.com/gpu", "disk.csi.example.com", "zonal"
MOST_VOLUMES, PODS_PER_WORKLOAD, ONE_WAITS = 26, 45, 200
TEAMS, MOST_ON_GPUS = 40, 60
RELEASE = "v1.37.1"


class NodePool(NamedTuple):
    """Nodes of one size; `share` of 1 is the whole cluster."""

    name: str
    share: float
    cpu: int
    memory: int
    """In GiB."""
    gpus: int = 0
    is_tainted: bool = False


POOLS = (
    NodePool("general", 0.73, 16, 64),
    NodePool("memory", 0.14, 16, 128),
    NodePool("spot", 0.10, 16, 64, is_tainted=True),
    NodePool("gpu", 0.03, 32, 128, gpus=8, is_tainted=True),
)
CPU_SIZES = (50, 100, 150, 200, 250, 300, 400, 500, 600, 750, 1000, 1500, 2000, 3000)
CPU_WEIGHTS = (4, 8, 4, 8, 8, 4, 4, 10, 4, 4, 8, 3, 4, 1)
MEMORY_PER_CPU = (1, 2, 2, 3, 4)
PRIORITIES = {"critical": 100_000, "service": 1_000, "batch": -10}
DAEMONS = (
    ("network", "kube-system", 100, 128),
    ("logs", "observability", 100, 256),
    ("metrics", "observability", 50, 128),
)
ARRANGEMENTS = (
    ("none", 40),
    ("spread-zones", 14),
    ("must-spread-zones", 5),
    ("prefer-apart", 9),
    ("must-be-apart", 4),
    ("near", 4),
    ("prefer-memory", 3),
)


@dataclass(slots=True)
class GeneratedNode:
    """A node and the room that is left on it: millicores and MiB."""

    name: str
    zone: str
    pool: NodePool
    cpu: int
    memory: int
    pods: int = 110
    volumes: int = MOST_VOLUMES
    gpus: int = 0


@dataclass(slots=True)
class Workload:
    """A Deployment or StatefulSet with the pods it has."""

    name: str
    namespace: str
    team: str
    kind: str
    pool: NodePool
    replicas: int
    cpu: int
    memory: int
    priority_class: str
    arrangement: str
    has_volumes: bool
    has_budget: bool
    friend: str
    """The app that a pod with the arrangement `near` prefers to be with."""
    nodes: list[GeneratedNode | None] = field(default_factory=list)
    """Of each pod; None if it waits."""

    @property
    def labels(self) -> dict[str, str]:
        return {"app.kubernetes.io/name": self.name, "app.kubernetes.io/part-of": self.namespace, "team": self.team}

    @property
    def image(self) -> str:
        return f"registry.example.com/{self.namespace}/{self.name}:1.4"

    @property
    def revision(self) -> str:
        return f"{sum(map(ord, self.name)) * 40503 % (1 << 36):09x}"


# -- what there is ---------------------------------------------------------------------------------------------------


def _nodes(count: int) -> list[GeneratedNode]:
    found: list[GeneratedNode] = []
    sizes = {pool: max(len(ZONES), round(count * pool.share)) for pool in POOLS[1:]}
    for pool in POOLS:
        for i in range(sizes.get(pool, count - sum(sizes.values()))):
            zone, reserved = ZONES[len(found) % 3], 110
            size = (pool.cpu * 1000 - reserved, pool.memory * 1024 - 2048)
            found.append(GeneratedNode(f"{pool.name}-{i:05}", zone, pool, *size, gpus=pool.gpus))
    return found


def _workloads(pods: int, chance: random.Random) -> Iterator[Workload]:
    """Workloads with so many pods together; a few are large, most are small."""
    number = max(6, pods // PODS_PER_WORKLOAD)
    weights = [chance.paretovariate(1.3) for _ in range(number)]
    left, most, kinds, shares = pods, max(0.02, 3 / number), *zip(*ARRANGEMENTS, strict=True)
    for place, weight in enumerate(weights):
        room = left - (number - place - 1)
        replicas = room if place == number - 1 else max(1, min(room, round(pods * min(weight / sum(weights), most))))
        left -= replicas
        yield _workload(place, replicas, chance, chance.choices(kinds, shares)[0])


def _workload(place: int, replicas: int, chance: random.Random, arrangement: str) -> Workload:
    general, memory, spot, gpu = POOLS
    pool = chance.choices((general, memory, spot, gpu), (78, 11, 10, 2 if replicas <= MOST_ON_GPUS else 0))[0]
    has_volumes = pool is general and replicas <= 60 and chance.random() < 0.13
    cpu = chance.choices(CPU_SIZES, CPU_WEIGHTS)[0]
    if pool is gpu:
        cpu = 4000
    if arrangement == "must-be-apart" and replicas > 80:
        arrangement = "prefer-apart"
    return Workload(
        f"{'store' if has_volumes else 'app'}-{place:04}",
        f"ns-{place % max(3, TEAMS * 2)}",
        f"team-{place % TEAMS}",
        "StatefulSet" if has_volumes else "Deployment",
        pool,
        replicas,
        cpu,
        max(64, cpu * chance.choice(MEMORY_PER_CPU) * (2 if pool is memory else 1)),
        chance.choices(tuple(PRIORITIES), (1, 8, 2))[0],
        arrangement,
        has_volumes,
        replicas > 1 and chance.random() < 0.5,
        f"app-{chance.randrange(place + 1):04}",
    )


def _place(workload: Workload, nodes: dict[tuple[str, str], list[GeneratedNode]], chance: random.Random) -> None:
    """Give every pod a node with room, zone by zone in turn, the emptier of a few; a few wait where none is found."""
    used: set[str] = set()
    first = chance.randrange(3)
    for number in range(workload.replicas):
        chosen = None
        if chance.randrange(ONE_WAITS):
            candidates = nodes[workload.pool.name, ZONES[(first + number) % 3]]
            for size in (8, 64, len(candidates)):
                some = chance.sample(candidates, min(size, len(candidates)))
                fitting = [node for node in some if _has_room(node, workload) and node.name not in used]
                if fitting:
                    chosen = max(fitting, key=lambda node: (node.cpu * 4 + node.memory, node.name))
                    break
        workload.nodes.append(chosen)
        if chosen is not None:
            chosen.cpu, chosen.memory = chosen.cpu - workload.cpu, chosen.memory - workload.memory
            chosen.pods, chosen.volumes = chosen.pods - 1, chosen.volumes - workload.has_volumes
            chosen.gpus -= bool(workload.pool.gpus)
            if workload.arrangement == "must-be-apart":
                used.add(chosen.name)


def _has_room(node: GeneratedNode, workload: Workload) -> bool:
    return (
        node.cpu >= workload.cpu
        and node.memory >= workload.memory
        and node.pods > 0
        and node.volumes > 0
        and (node.gpus > 0 or not workload.pool.gpus)
    )


# -- as objects ------------------------------------------------------------------------------------------------------


def _object(kind: str, name: str, namespace: str = "", *, api_version: str = "v1", **fields: object) -> Fields:
    metadata: Fields = {"creationTimestamp": CREATED, "name": name, "uid": f"{kind.lower()}-{namespace}-{name}"}
    if namespace:
        metadata["namespace"] = namespace
    given = fields.pop("metadata", {})
    assert isinstance(given, dict)
    return {"apiVersion": api_version, "kind": kind, "metadata": metadata | given, **fields}


def _owner(kind: str, name: str, namespace: str) -> Fields:
    uid = f"{kind.lower()}-{namespace}-{name}"
    return {"apiVersion": "apps/v1", "controller": True, "kind": kind, "name": name, "uid": uid}


def _node_object(node: GeneratedNode) -> Fields:
    pool = node.pool
    labels = {
        HOST: node.name,
        ZONE: node.zone,
        POOL: pool.name,
        "kubernetes.io/arch": "amd64",
        "kubernetes.io/os": "linux",
        "node.kubernetes.io/instance-type": f"{pool.name}-{pool.cpu}",
        "topology.kubernetes.io/region": "eu-1",
    }
    size = {"cpu": f"{pool.cpu * 1000 - 110}m", "memory": f"{pool.memory * 1024 - 2048}Mi", "pods": "110"}
    if pool.gpus:
        size[GPU] = str(pool.gpus)
    taints = {"taints": [{"effect": "NoSchedule", "key": pool.name, "value": "true"}]} if pool.is_tainted else {}
    status = {
        "allocatable": size,
        "capacity": size,
        "conditions": [{"lastTransitionTime": CREATED, "status": "True", "type": "Ready"}],
        "nodeInfo": {"architecture": "amd64", "kubeletVersion": RELEASE, "operatingSystem": "linux"},
    }
    return _object("Node", node.name, metadata={"labels": labels}, spec=taints, status=status)


def _csi_node(node: GeneratedNode) -> Fields:
    driver = {"allocatable": {"count": MOST_VOLUMES}, "name": DRIVER, "nodeID": node.name, "topologyKeys": [ZONE]}
    return _object("CSINode", node.name, api_version="storage.k8s.io/v1", spec={"drivers": [driver]})


def _requests(cpu: int, memory: int, gpus: int = 0) -> Fields:
    device = {GPU: str(gpus)} if gpus else {}
    requests = {"cpu": f"{cpu}m", "memory": f"{memory}Mi", **device}
    return {"limits": {"memory": f"{memory}Mi", **device}, "requests": requests}


def _resources(workload: Workload) -> Fields:
    return _requests(workload.cpu, workload.memory, int(bool(workload.pool.gpus)))


def _arranged(workload: Workload) -> Fields:
    """The part of a pod's spec that says which nodes and neighbours it wants."""
    own = {"matchLabels": {"app.kubernetes.io/name": workload.name}}
    spread = {"labelSelector": own, "maxSkew": 1, "topologyKey": ZONE}
    apart = {"labelSelector": own, "topologyKey": HOST}
    near = {"labelSelector": {"matchLabels": {"app.kubernetes.io/name": workload.friend}}, "topologyKey": ZONE}
    memory = {"matchExpressions": [{"key": POOL, "operator": "In", "values": ["memory"]}]}
    arranged: dict[str, Fields] = {
        "none": {},
        "spread-zones": {"topologySpreadConstraints": [spread | {"whenUnsatisfiable": "ScheduleAnyway"}]},
        "must-spread-zones": {"topologySpreadConstraints": [spread | {"whenUnsatisfiable": "DoNotSchedule"}]},
        "prefer-apart": {"affinity": {"podAntiAffinity": {PREFERRED: [{"podAffinityTerm": apart, "weight": 100}]}}},
        "must-be-apart": {"affinity": {"podAntiAffinity": {REQUIRED: [apart]}}},
        "near": {"affinity": {"podAffinity": {PREFERRED: [{"podAffinityTerm": near, "weight": 50}]}}},
        "prefer-memory": {"affinity": {"nodeAffinity": {PREFERRED: [{"preference": memory, "weight": 20}]}}},
    }
    return arranged[workload.arrangement]


def _spec(workload: Workload, token: int) -> Fields:
    placing: Fields = {"priorityClassName": workload.priority_class, "priority": PRIORITIES[workload.priority_class]}
    pool = workload.pool
    tolerations = [{"effect": "NoSchedule", "key": pool.name, "operator": "Exists"}] if pool.is_tainted else []
    if pool.name != "general":
        placing["nodeSelector"] = {POOL: pool.name}
    made = template_spec(workload.image, _resources(workload), token)
    made["tolerations"] = [*tolerations, *made["tolerations"]]
    return made | placing | _arranged(workload)


def _pods(workload: Workload, first: int) -> Iterator[Fields]:
    is_set = workload.kind == "StatefulSet"
    parent = workload.name if is_set else f"{workload.name}-{workload.revision}"
    owner = _owner("StatefulSet" if is_set else "ReplicaSet", parent, workload.namespace)
    for number, node in enumerate(workload.nodes):
        name = f"{parent}-{number}" if is_set else f"{parent}-{first + number:05x}"
        own = {"apps.kubernetes.io/pod-index": str(number), "statefulset.kubernetes.io/pod-name": name}
        labels = workload.labels | (own if is_set else {"pod-template-hash": workload.revision})
        spec = _spec(workload, first + number)
        if workload.has_volumes:
            claim = {"claimName": f"data-{name}"}
            spec["volumes"] = [*spec["volumes"], {"name": "data", "persistentVolumeClaim": claim}]
        metadata = {"labels": labels, "ownerReferences": [owner]}
        status: Fields = {"phase": "Pending", "qosClass": "Burstable"}
        if node is not None:
            spec["nodeName"] = node.name
            status = pod_status(first + number, workload.image, _resources(workload))
        yield _object("Pod", name, workload.namespace, metadata=metadata, spec=spec, status=status)
        if workload.has_volumes:
            yield from _claim_and_volume(f"data-{name}", workload.namespace, node)


def _claim_and_volume(name: str, namespace: str, node: GeneratedNode | None) -> Iterator[Fields]:
    """The claim of a pod; if the pod has a node, the volume it is bound to, in the zone of the node."""
    size, modes = {"storage": "100Gi"}, ["ReadWriteOnce"]
    spec: Fields = {"accessModes": modes, "resources": {"requests": size}, "storageClassName": STORAGE_CLASS}
    if node is None:
        yield _object("PersistentVolumeClaim", name, namespace, spec=spec, status={"phase": "Pending"})
        return
    volume = f"pv-{namespace}-{name}"
    bound = {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}
    spec["volumeName"] = volume
    claim = _object("PersistentVolumeClaim", name, namespace, metadata=bound, spec=spec, status={"phase": "Bound"})
    yield claim
    term = {"matchExpressions": [{"key": ZONE, "operator": "In", "values": [node.zone]}]}
    yield _object(
        "PersistentVolume",
        volume,
        spec={
            "accessModes": modes,
            "capacity": size,
            "claimRef": {"name": name, "namespace": namespace, "uid": claim["metadata"]["uid"]},
            "csi": {"driver": DRIVER, "volumeHandle": volume},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            "persistentVolumeReclaimPolicy": "Delete",
            "storageClassName": STORAGE_CLASS,
        },
        status={"phase": "Bound"},
    )


def _controllers(workload: Workload) -> Iterator[Fields]:
    selector = {"matchLabels": {"app.kubernetes.io/name": workload.name}}
    template = {"metadata": {"labels": workload.labels}, "spec": _spec(workload, 0)}
    body: Fields = {"replicas": workload.replicas, "selector": selector, "template": template}
    own: Fields = {"metadata": {"labels": workload.labels}}
    if workload.kind == "StatefulSet":
        size = {"resources": {"requests": {"storage": "100Gi"}}, "accessModes": ["ReadWriteOnce"]}
        claim = {"metadata": {"name": "data"}, "spec": size | {"storageClassName": STORAGE_CLASS}}
        body |= {"serviceName": workload.name, "volumeClaimTemplates": [claim]}
        yield _object("StatefulSet", workload.name, workload.namespace, api_version="apps/v1", **own, spec=body)
    else:
        yield _object("Deployment", workload.name, workload.namespace, api_version="apps/v1", **own, spec=body)
        hashed = {"pod-template-hash": workload.revision}
        revised: Fields = {"metadata": {"labels": workload.labels | hashed}, "spec": template["spec"]}
        yield _object(
            "ReplicaSet",
            f"{workload.name}-{workload.revision}",
            workload.namespace,
            api_version="apps/v1",
            metadata={
                "labels": workload.labels | hashed,
                "ownerReferences": [_owner("Deployment", workload.name, workload.namespace)],
            },
            spec=body | {"selector": {"matchLabels": selector["matchLabels"] | hashed}, "template": revised},
        )
    if workload.has_budget:
        budget = {"maxUnavailable": "10%" if workload.replicas > 10 else 1, "selector": selector}
        yield _object("PodDisruptionBudget", workload.name, workload.namespace, api_version="policy/v1", spec=budget)


def _daemon_set(name: str, namespace: str, cpu: int, memory: int) -> Fields:
    labels = {"app.kubernetes.io/name": name}
    template = {"metadata": {"labels": labels}, "spec": _daemon_spec(name, cpu, memory, 0)}
    body = {"selector": {"matchLabels": labels}, "template": template}
    return _object("DaemonSet", name, namespace, api_version="apps/v1", spec=body)


def _daemon_spec(name: str, cpu: int, memory: int, token: int) -> Fields:
    spec = template_spec(f"system/{name}:3", _requests(cpu, memory), token)
    name_of_class = {"priorityClassName": "system-node-critical", "priority": 2_000_001_000}
    return spec | name_of_class | {"tolerations": [{"operator": "Exists"}]}


def _daemon_pod(place: int, node: GeneratedNode, token: int) -> Fields:
    name, namespace, cpu, memory = DAEMONS[place]
    spec = _daemon_spec(name, cpu, memory, token)
    term = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node.name]}]}
    spec["affinity"] = {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [term]}}}
    spec["nodeName"] = node.name
    metadata = {"labels": {"app.kubernetes.io/name": name}, "ownerReferences": [_owner("DaemonSet", name, namespace)]}
    status = pod_status(token, f"system/{name}:3", _requests(cpu, memory))
    return _object("Pod", f"{name}-{token:06x}", namespace, metadata=metadata, spec=spec, status=status)


def _cluster_objects() -> Iterator[Fields]:
    for name, value in (*PRIORITIES.items(), ("system-node-critical", 2_000_001_000)):
        yield _object("PriorityClass", name, api_version="scheduling.k8s.io/v1", value=value)
    fields: Fields = {"provisioner": DRIVER, "volumeBindingMode": "WaitForFirstConsumer", "reclaimPolicy": "Delete"}
    yield _object("StorageClass", STORAGE_CLASS, api_version="storage.k8s.io/v1", **fields)


def fleet(nodes: int, pods: int, seed: int = 0) -> Iterator[Fields]:
    """The objects of a cluster with so many nodes and pods, three of them on each node being of DaemonSets."""
    chance = random.Random(seed)
    made = _nodes(nodes)
    by_place: dict[tuple[str, str], list[GeneratedNode]] = {}
    for node in made:
        by_place.setdefault((node.pool.name, node.zone), []).append(node)
        for _, _, cpu, memory in DAEMONS:
            node.cpu, node.memory, node.pods = node.cpu - cpu, node.memory - memory, node.pods - 1
    workloads = list(_workloads(pods - len(DAEMONS) * nodes, chance))
    for workload in workloads:
        _place(workload, by_place, chance)
    yield from _cluster_objects()
    yield from map(_node_object, made)
    yield from map(_csi_node, made)
    yield from (_daemon_set(*each) for each in DAEMONS)
    token = 0
    for place in range(len(DAEMONS)):
        for node in made:
            yield _daemon_pod(place, node, token)
            token += 1
    for workload in workloads:
        yield from _controllers(workload)
        yield from _pods(workload, token)
        token += workload.replicas


def write_fleet(file: IO[bytes], nodes: int, pods: int, seed: int = 0) -> None:
    write_list(file, fleet(nodes, pods, seed))


if __name__ == "__main__":
    try:
        counts = list(map(int, sys.argv[1:]))
        if len(counts) not in (2, 3) or counts[0] < 12 or counts[1] < 4 * counts[0]:
            raise ValueError("at least 12 nodes and four pods for each node")
    except ValueError as error:
        raise SystemExit(f"{__doc__}\n{error}") from None
    write_fleet(sys.stdout.buffer, *counts)
