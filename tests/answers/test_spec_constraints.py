"""What keeps a pod that lost its node from the others."""

from __future__ import annotations

from typing import Any

import pytest

from answers.losing import failed, nodes, web
from builders import HOSTNAME, ZONE, affinity, make_config, make_object, pod_term, spread
from device_objects import gpus, make_claim, make_class, using
from podium.answers import Fate
from podium.cluster import Nodes
from podium.framework import CycleState, PreFilterPlugin, PreFilterResult, Registry
from podium.model import Object, Pod
from podium.plugins import IN_TREE

CLAIM: dict[str, Any] = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def storage(key: str = ZONE, value: str = "a", kind: str = "csi") -> list[Object]:
    """A claim whose volume is in zone a, or where else a label says."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": key, "operator": "In", "values": [value]}]}]}
    reference = {"namespace": "default", "name": "data"}
    mode = {"accessModes": ["ReadWriteOnce"]}
    size = {"capacity": {"storage": "1Gi"}, "storageClassName": ""}
    source = {"csi": {"driver": "d", "volumeHandle": "h"}, "local": {"path": "/data"}}[kind]
    volume = {**mode, **size, kind: source, "nodeAffinity": {"required": terms}, "claimRef": reference}
    claim = {**mode, "volumeName": "v", "storageClassName": "", "resources": {"requests": {"storage": "1Gi"}}}
    bound = {"pv.kubernetes.io/bind-completed": "yes"}
    return [
        make_object("PersistentVolume", "v", spec=volume, status={"phase": "Bound"}),
        make_object("PersistentVolumeClaim", "data", namespace="default", annotations=bound, spec=claim),
    ]


PINNED: dict[str, tuple[dict[str, Any], tuple[str, str, int, bool]]] = {
    "a node selector": ({"node_selector": {HOSTNAME: "a1"}}, ("node affinity", f"{HOSTNAME}=a1", 2, True)),
    "anti-affinity": (
        {"affinity": affinity(required=[pod_term(ZONE, {"app": "web"})], anti=True)},
        ("pod anti-affinity", f"pods with app=web by {ZONE}", 2, True),
    ),
    "affinity": (
        {"affinity": affinity(required=[pod_term(ZONE, {"app": "db"})])},
        ("pod affinity", f"pods with app=db by {ZONE}", 2, True),
    ),
    "spread": (
        {"topology_spread_constraints": [spread(ZONE, {"app": "web"}, minDomains=3)]},
        ("spread", f"at most 1 apart by {ZONE}", 2, True),
    ),
    "a volume": (CLAIM, ("volume", f"{ZONE} In a", 2, True)),
    "a host port": (
        {"ports": [{"containerPort": 80, "hostPort": 80}]},
        ("host port", "80/TCP", 2, True),
    ),
}


@pytest.mark.parametrize(("fields", "expected"), PINNED.values(), ids=PINNED)
def test_what_pins_a_pending_pod(fields: dict[str, Any], expected: tuple[str, str, int, bool]) -> None:
    port = [{"containerPort": 80, "hostPort": 80}]
    others = [web(f"on-{name}", name, ports=port) for name in ("b1", "c1")]
    found = failed(*nodes("a1 b1 c1"), *storage(), *others, web("w", "a1", **fields))

    (pod,) = found.of(Fate.PENDING)
    (pin,) = pod.constraints
    assert (pin.kind, pin.what, pin.nodes, pin.alone) == expected


def test_a_volume_of_the_lost_node_pins_its_pod() -> None:
    found = failed(*nodes("a1 b1 c1"), *storage(HOSTNAME, "a1", "local"), web("w", "a1", **CLAIM))

    (pod,) = found.of(Fate.PENDING)
    assert [(pin.kind, pin.what, pin.nodes, pin.alone) for pin in pod.constraints] == [
        ("volume", f"{HOSTNAME} In a1", 2, True)
    ]


class OnlyHere(PreFilterPlugin):
    """A user's plugin that names the only node to check."""

    name = "OnlyHere"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(node_names=frozenset(("a1",)))


def test_nodes_that_a_plugin_of_ones_own_left_out_are_not_the_specs_doing() -> None:
    config = make_config({"plugins": {"multiPoint": {"enabled": [{"name": "OnlyHere"}]}}})
    registry = Registry((*IN_TREE.values(), OnlyHere))
    (pod,) = failed(*nodes("a1 b1"), web("w", "a1"), config=config, registry=registry).of(Fate.PENDING)

    assert pod.constraints == ()


@pytest.mark.parametrize("kind", ["a node selector", "anti-affinity", "a volume", "a host port"])
def test_an_old_release_names_it_too(kind: str) -> None:
    fields, (named, *_) = PINNED[kind]
    port = [{"containerPort": 80, "hostPort": 80}]
    others = [web(f"on-{name}", name, ports=port) for name in ("b1", "c1")]
    found = failed(*nodes("a1 b1 c1"), *storage(), *others, web("w", "a1", **fields), release="v1.18")

    (pod,) = found.of(Fate.PENDING)
    assert [pin.kind for pin in pod.constraints] == [named]


def test_two_pins_hold_a_pod_that_neither_holds_alone() -> None:
    both: dict[str, Any] = {"node_selector": {HOSTNAME: "a1"}, **CLAIM}
    (pod,) = failed(*nodes("a1 b1"), *storage(), web("w", "a1", **both)).of(Fate.PENDING)

    assert [(pin.kind, pin.alone) for pin in pod.constraints] == [("node affinity", False), ("volume", False)]


def test_a_constraint_is_named_even_if_another_filter_rejects_first() -> None:
    found = failed(*nodes("a1 b1 b2", cpu="4"), *storage(), web("data", "a1", cpu="3", **CLAIM), *full("b1 b2"))

    (pinned,) = [pod for pod in found.pods if pod.pod == "default/data"]
    assert "Insufficient cpu" in pinned.reason
    assert [(each.kind, each.what, each.nodes, each.alone) for each in pinned.constraints] == [
        ("volume", f"{ZONE} In a", 2, False)
    ]


def test_every_constraint_is_named() -> None:
    pinned = web("data", "a1", cpu="3", node_selector={HOSTNAME: "a1"}, **CLAIM)

    found = failed(*nodes("a1 b1 b2", cpu="4"), *storage(), pinned)

    assert {each.kind: each.nodes for each in found.pods[0].constraints} == {"node affinity": 2, "volume": 2}


def full(names: str) -> list[Pod]:
    """Pods of a high priority that leave no room on nodes."""
    return [web(f"full-{name}", name, cpu="4", priority=9) for name in names.split()]


def test_devices_are_named() -> None:
    devices = [make_class(), gpus("a1", 1), make_claim("gpu", namespace="default")]
    pod = web("w", "a1", resource_claims=using("gpu"))

    (found,) = failed(*nodes("a1 b1"), *devices, pod).of(Fate.PENDING)

    assert [(pin.kind, pin.what, pin.nodes, pin.alone) for pin in found.constraints] == [
        ("devices", "claim c0", 1, True)
    ]
