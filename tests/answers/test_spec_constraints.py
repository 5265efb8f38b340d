"""What keeps a pod that lost its node from the others."""

from __future__ import annotations

from typing import Any

import pytest

from answers.losing import failed, nodes, web
from builders import HOSTNAME, ZONE, affinity, make_object, pod_term, spread
from podium.answers import Fate
from podium.model import Object

CLAIM = {"volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]}


def storage() -> list[Object]:
    """A claim whose volume is in zone a."""
    terms = {"nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["a"]}]}]}
    reference = {"namespace": "default", "name": "data"}
    mode = {"accessModes": ["ReadWriteOnce"]}
    size = {"capacity": {"storage": "1Gi"}, "storageClassName": "", "csi": {"driver": "d", "volumeHandle": "h"}}
    volume = {**mode, **size, "nodeAffinity": {"required": terms}, "claimRef": reference}
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


def test_two_pins_hold_a_pod_that_neither_holds_alone() -> None:
    both: dict[str, Any] = {"node_selector": {HOSTNAME: "a1"}, **CLAIM}
    (pod,) = failed(*nodes("a1 b1"), *storage(), web("w", "a1", **both)).of(Fate.PENDING)

    assert [(pin.kind, pin.alone) for pin in pod.constraints] == [("node affinity", False)]
