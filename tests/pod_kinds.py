"""Pods that between them ask every question a v1.36 plugin can be asked."""

from __future__ import annotations

from typing import Any

from builders import HOSTNAME, ZONE, affinity, expression, make_pod, node_affinity, pod_term, spread
from podium.model import Pod

_GREEN, _BLUE = {"color": "green"}, {"color": "blue"}
_REPLICA_SET = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "rs"}

POD_KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "small": {"requests": {"cpu": "250m", "memory": "256Mi"}, "labels": _GREEN},
    "large": {"requests": {"cpu": "1500m", "memory": "3Gi"}, "labels": _BLUE},
    "gpu": {"requests": {"cpu": "100m", "example.com/gpu": 1}},
    "licence": {"requests": {"vendor.io/licence": 1, "memory": "64Mi"}},
    "huge pages": {"requests": {"cpu": "1", "memory": "1Gi", "hugepages-2Mi": "128Mi", "ephemeral-storage": "2Gi"}},
    "port": {"ports": [{"containerPort": 80, "hostPort": 8080}], "labels": _GREEN},
    "port of an address": {"ports": [{"containerPort": 80, "hostPort": 8080, "hostIP": "10.0.0.1"}]},
    "tolerates all": {"tolerations": [{"operator": "Exists"}]},
    "tolerates team": {"tolerations": [{"key": "team", "value": "a", "operator": "Equal", "effect": "NoSchedule"}]},
    "tolerates spot": {"tolerations": [{"key": "spot", "operator": "Exists", "effect": "PreferNoSchedule"}]},
    "node selector": {"node_selector": {"disk": "ssd"}},
    "node affinity": {
        "affinity": node_affinity(
            required=[
                {"matchExpressions": [expression(ZONE, "In", "a", "b"), expression("disk", "NotIn", "hdd")]},
                {"matchExpressions": [expression("cores", "Gt", "4")]},
            ],
            preferred=[
                (10, {"matchExpressions": [expression("disk", "Exists")]}),
                (30, {"matchExpressions": [expression("cores", "Lt", "9")]}),
            ],
        )
    },
    "named nodes": {
        "affinity": node_affinity(
            required=[{"matchFields": [expression("metadata.name", "In", name)]} for name in ("n1", "n2", "n4")]
        )
    },
    "not on n1": {"affinity": node_affinity(required=[{"matchFields": [expression("metadata.name", "NotIn", "n1")]}])},
    "on n3": {"node": "n3"},
    "images": {"image": "big", "init_containers": [{"name": "init", "image": "tool:v1"}], "labels": _GREEN},
    "with green": {"affinity": affinity(required=[pod_term(ZONE, _GREEN)]), "labels": _BLUE},
    "with its like": {"affinity": affinity(required=[pod_term(ZONE, {"app": "db"})]), "labels": {"app": "db"}},
    "two terms": {
        "affinity": affinity(required=[pod_term(ZONE, _GREEN), pod_term(HOSTNAME, _GREEN)]),
        "labels": _GREEN,
    },
    "alone on its node": {
        "affinity": affinity(required=[pod_term(HOSTNAME, {"app": "solo"})], anti=True),
        "labels": {"app": "solo"},
    },
    "away from blue": {"affinity": affinity(required=[pod_term(ZONE, _BLUE)], anti=True), "labels": _GREEN},
    "likes green": {
        "affinity": affinity(preferred=[(7, pod_term(ZONE, _GREEN)), (3, pod_term(HOSTNAME, _BLUE))]),
        "labels": _BLUE,
    },
    "dislikes blue": {"affinity": affinity(preferred=[(50, pod_term(ZONE, _BLUE))], anti=True), "labels": _BLUE},
    "with a friendly namespace": {
        "affinity": affinity(required=[pod_term(ZONE, {}, namespace_selector={"matchLabels": {"friendly": "yes"}})]),
    },
    "away from any namespace": {
        "affinity": affinity(required=[pod_term(HOSTNAME, _GREEN, namespace_selector={})], anti=True),
    },
    "of team": {
        "namespace": "team",
        "labels": _GREEN,
        "affinity": affinity(preferred=[(9, pod_term(ZONE, _GREEN, namespaces=["team", "default"]))]),
    },
    "spread over zones": {
        "topology_spread_constraints": [spread(ZONE, _GREEN)],
        "labels": _GREEN,
    },
    "spread over three zones": {
        "topology_spread_constraints": [
            spread(ZONE, {"app": "db"}, skew=2, min_domains=3, node_taints_policy="Honor"),
            spread(HOSTNAME, {"app": "db"}, hard=False),
        ],
        "labels": {"app": "db"},
    },
    "spread, any node": {
        "topology_spread_constraints": [
            spread(ZONE, _BLUE, node_affinity_policy="Ignore"),
            spread("rack", None, hard=False),
        ],
        "node_selector": {"disk": "ssd"},
        "labels": _BLUE,
    },
    "softly spread": {
        "topology_spread_constraints": [
            spread(ZONE, _GREEN, hard=False),
            spread(HOSTNAME, _GREEN, skew=2, hard=False),
            spread("rack", {}, hard=False, node_taints_policy="Honor"),
        ],
        "labels": _GREEN,
    },
    "of a service": {"labels": {"app": "web"}},
    "of a replica set": {"labels": {"app": "web", "tier": "front"}, "owner": _REPLICA_SET},
    "being deleted": {"labels": _GREEN, "deleted": True, "requests": {"cpu": "500m"}},
    "with a sidecar": {
        "requests": {"cpu": "200m"},
        "init_containers": [
            {
                "name": "proxy",
                "restartPolicy": "Always",
                "ports": [{"containerPort": 90, "hostPort": 9090}],
                "resources": {"requests": {"cpu": "100m", "memory": "32Mi"}},
            }
        ],
        "overhead": {"cpu": "50m"},
    },
}


def pod_of(kind: str, name: str, *, node: str = "", scheduler: str = "default-scheduler") -> Pod:
    """A pod of a kind, on a node or to be scheduled by the profile of that name."""
    fields = dict(POD_KINDS[kind])
    return make_pod(name, **{**fields, "node": node or fields.get("node", ""), "scheduler_name": scheduler})
