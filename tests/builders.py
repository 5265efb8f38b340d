"""Small clusters and pods for tests, in few words.

Fields of a spec are keyword arguments with Kubernetes' names snake_cased; what is inside them is written as in YAML.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.manifests import load
from podium.model import Node, Object, Pod

Fields = dict[str, Any]

ZONE = "topology.kubernetes.io/zone"
HOSTNAME = "kubernetes.io/hostname"
MEBI = 1024 * 1024


GROUPS = {
    **dict.fromkeys(("Deployment", "ReplicaSet", "StatefulSet"), "apps/v1"),
    **dict.fromkeys(
        ("StorageClass", "CSINode", "CSIDriver", "CSIStorageCapacity", "VolumeAttachment"), "storage.k8s.io/v1"
    ),
}
"""The apiVersion of a kind that is not in `v1`."""


def make_object(kind: str, name: str, *, metadata: Mapping[str, Any] | None = None, **fields: Any) -> Object:
    """Any object, as the API server would store it; `namespace`, `labels`, `owner` and such go into its metadata."""
    within: Fields = {field: fields.pop(field) for field in ("namespace", "labels", "annotations") if field in fields}
    if owner := fields.pop("owner", None):
        within["ownerReferences"] = [{"controller": True, **owner}]
    document: Fields = {
        "apiVersion": GROUPS.get(kind, "v1"),
        "kind": kind,
        "metadata": {"name": name, **within, **(metadata or {})},
        **_camel(fields),
    }
    (made,) = load(document)
    return made


def make_node(
    name: str = "node",
    *,
    cpu: str = "4",
    memory: str = "8Gi",
    pods: int | str = 110,
    labels: Mapping[str, str] | None = None,
    taints: Iterable[str] = (),
    images: Mapping[str, int] | None = None,
    unschedulable: bool = False,
    **resources: str | int,
) -> Node:
    """A node. Taints are written `key=value:Effect`; other resources with `_` for what their name has there."""
    allocatable = {"cpu": cpu, "memory": memory, "pods": str(pods), **_resource_names(resources)}
    made = make_object(
        "Node",
        name,
        labels=dict(labels or {}),
        spec={"unschedulable": unschedulable, "taints": [make_taint(text) for text in taints]},
        status={
            "allocatable": allocatable,
            "images": [{"names": [image], "sizeBytes": size} for image, size in (images or {}).items()],
        },
    )
    assert isinstance(made, Node)
    return made


def make_taint(text: str) -> Fields:
    pair, _, effect = text.rpartition(":")
    key, _, value = pair.partition("=")
    return {"key": key, "value": value, "effect": effect}


def make_pod(
    name: str = "pod",
    *,
    namespace: str = "default",
    labels: Mapping[str, str] | None = None,
    node: str = "",
    requests: Mapping[str, str | int] | None = None,
    image: str = "app",
    ports: Iterable[Fields] = (),
    owner: Fields | None = None,
    mirror: bool = False,
    deleted: bool = False,
    phase: str = "",
    ready: bool | None = None,
    **spec: Any,
) -> Pod:
    """A pod of one container, on `node` if that is given; `mirror` is what the kubelet makes for a static pod.

    Its Ready condition says `ready`; it has no condition if that is None.
    """
    conditions = [] if ready is None else [{"type": "Ready", "status": str(ready)}]
    metadata: Fields = {"name": name, "namespace": namespace, "labels": dict(labels or {})}
    if mirror:
        metadata["annotations"] = {"kubernetes.io/config.mirror": "x"}
    if owner:
        metadata["ownerReferences"] = [{"controller": True, **owner}]
    if deleted:
        metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    container = {"name": "main", "image": image, "ports": list(ports), "resources": {"requests": dict(requests or {})}}
    document: Fields = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": [container], **_camel(spec)},
        "status": {"phase": phase, "conditions": conditions},
    }
    (made,) = load(document)
    assert isinstance(made, Pod)
    return made


def pod_term(key: str, labels: Mapping[str, str] | None = None, **fields: Any) -> Fields:
    """A pod affinity term for pods with these labels; None for a term without a selector."""
    selector = {} if labels is None else {"labelSelector": {"matchLabels": dict(labels)}}
    return {"topologyKey": key, **selector, **_camel(fields)}


def affinity(
    *, required: Iterable[Fields] = (), preferred: Iterable[tuple[int, Fields]] = (), anti: bool = False
) -> Fields:
    """A pod's `affinity` to (or with `anti`, against) other pods; preferred terms come with their weights."""
    rules = {
        "requiredDuringSchedulingIgnoredDuringExecution": list(required),
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "podAffinityTerm": term} for weight, term in preferred
        ],
    }
    return {"podAntiAffinity" if anti else "podAffinity": rules}


def node_affinity(*, required: Iterable[Fields] | None = None, preferred: Iterable[tuple[int, Fields]] = ()) -> Fields:
    """A pod's `affinity` to nodes: terms, any of which suffices, and preferred terms with their weights."""
    rules: Fields = {
        "preferredDuringSchedulingIgnoredDuringExecution": [
            {"weight": weight, "preference": term} for weight, term in preferred
        ]
    }
    if required is not None:
        rules["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": list(required)}
    return {"nodeAffinity": rules}


def expression(key: str, operator: str, *values: str) -> Fields:
    return {"key": key, "operator": operator, "values": list(values)}


def spread(key: str, labels: Mapping[str, str] | None, *, skew: int = 1, hard: bool = True, **fields: Any) -> Fields:
    """A topology spread constraint over pods with these labels; None for one without a selector."""
    selector = {} if labels is None else {"labelSelector": {"matchLabels": dict(labels)}}
    action = "DoNotSchedule" if hard else "ScheduleAnyway"
    return {"topologyKey": key, "maxSkew": skew, "whenUnsatisfiable": action, **selector, **_camel(fields)}


def make_config(*profiles: Fields, **fields: Any) -> Fields:
    """A KubeSchedulerConfiguration with these profiles."""
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": list(profiles) or [{}],
        **fields,
    }


def with_args(plugin: str, **args: Any) -> Fields:
    """A configuration of one profile that gives a plugin arguments; those are written as in YAML."""
    return make_config({"pluginConfig": [{"name": plugin, "args": args}]})


def decide(objects: Iterable[Object], pod: Pod, config: Fields | None = None, **scheduler: Any) -> Decision:
    """What a scheduler decides about a pod on a cluster of these objects; the smallest name wins a tie."""
    return Scheduler(Cluster.from_objects(objects), config, **{"tie_break": "first", **scheduler}).decide(pod)


def scores(decision: Decision, plugin: str) -> dict[str, int] | None:
    """A plugin's normalised scores per node, before its weight; None if it did not score."""
    return next((dict(found.normalized) for found in decision.scores if found.plugin == plugin), None)


def rejections(decision: Decision) -> dict[str, tuple[str, str, tuple[str, ...]]]:
    """Plugin, code and reasons per rejected node."""
    return {node: (status.plugin, status.code.value, status.reasons) for node, status in decision.rejected.items()}


def _camel(fields: Mapping[str, Any]) -> Fields:
    return {_camel_name(name): value for name, value in fields.items()}


def _camel_name(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(part.capitalize() for part in rest)


def _resource_names(resources: Mapping[str, str | int]) -> Fields:
    known = {"gpu": "example.com/gpu", "ephemeral_storage": "ephemeral-storage", "hugepages": "hugepages-2Mi"}
    return {known[name]: str(amount) for name, amount in resources.items()}
