"""NodeDeclaredFeatures: which pods need a declared feature, and where they then fit."""

from __future__ import annotations

from typing import Any

import pytest

from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.manifests import load
from podium.model import Pod

NEEDS_RESTART_ALL = {"restartPolicyRules": [{"action": "RestartAllContainers"}]}
RESTART_ALL, USER_NAMESPACES = "RestartAllContainersOnContainerExits", "UserNamespacesHostNetworkSupport"


def node(name: str, *features: str) -> dict[str, Any]:
    status = {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}, "declaredFeatures": list(features)}
    return {"apiVersion": "v1", "kind": "Node", "metadata": {"name": name}, "status": status}


def pod(spec: dict[str, Any], container: dict[str, Any]) -> dict[str, Any]:
    containers = [{"name": "c", "image": "i", **container}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {**spec, "containers": containers}}


@pytest.mark.parametrize(
    ("spec", "container", "feasible"),
    [
        pytest.param({}, {}, ("all", "none", "restart"), id="a plain pod goes anywhere"),
        pytest.param({}, NEEDS_RESTART_ALL, ("all", "restart"), id="restarting all containers must be declared"),
        pytest.param({"hostNetwork": True}, {}, ("all", "none", "restart"), id="the host network alone needs nothing"),
        pytest.param({"hostNetwork": True, "hostUsers": False}, {}, ("all",), id="with user namespaces it does"),
        pytest.param({"hostNetwork": True, "hostUsers": False}, NEEDS_RESTART_ALL, ("all",), id="both features"),
    ],
)
def test_nodes_must_declare_what_a_pod_needs(
    spec: dict[str, Any], container: dict[str, Any], feasible: tuple[str, ...]
) -> None:
    nodes = [node("none"), node("restart", RESTART_ALL), node("all", RESTART_ALL, USER_NAMESPACES)]
    decision = Scheduler(Cluster.from_objects(load(nodes))).decide(load(pod(spec, container)).of(Pod)[0])
    assert decision.feasible == feasible
    assert {status.plugin for status in decision.rejected.values()} <= {"NodeDeclaredFeatures"}
