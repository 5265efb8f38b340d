"""The deploy manifests under real RBAC: their ServiceAccount can do what a scheduler does, and nothing else."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
import yaml

from live.cluster_objects import EXTENDED, NODES, PODS, add_devices, create_claim, node, pod, request, uses
from live.commands import Run
from live.control_plane import NOBODY, ControlPlane
from live.kubelets import Kubelets
from live.schedulers import Podium, configuration, wait_until

MANIFESTS = Path(__file__).parents[2] / "deploy" / "podium.yaml"
PATHS = {
    "Namespace": "/api/v1/namespaces",
    "ServiceAccount": "/api/v1/namespaces/podium-system/serviceaccounts",
    "ClusterRole": "/apis/rbac.authorization.k8s.io/v1/clusterroles",
    "ClusterRoleBinding": "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
    "Role": "/apis/rbac.authorization.k8s.io/v1/namespaces/podium-system/roles",
    "RoleBinding": "/apis/rbac.authorization.k8s.io/v1/namespaces/podium-system/rolebindings",
    "ConfigMap": "/api/v1/namespaces/podium-system/configmaps",
    "NetworkPolicy": "/apis/networking.k8s.io/v1/namespaces/podium-system/networkpolicies",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/podium-system/poddisruptionbudgets",
    "Deployment": "/apis/apps/v1/namespaces/podium-system/deployments",
}
ONLY = {"schedulerName": "podium"}
FORBIDDEN = {
    "delete a node": ("DELETE", f"{NODES}/a"),
    "read secrets": ("GET", "/api/v1/secrets"),
    "read a config map": ("GET", "/api/v1/namespaces/podium-system/configmaps/podium"),
    "create a pod": ("POST", PODS),
    "change a node": ("PATCH", f"{NODES}/a"),
    "change roles": ("GET", PATHS["ClusterRole"]),
}


@pytest.fixture
def token(fresh_plane: ControlPlane) -> str:
    """A token of the ServiceAccount, once all the manifests are there."""
    for document in yaml.safe_load_all(MANIFESTS.read_text()):
        fresh_plane.create(PATHS[document["kind"]], document)
    request = {"spec": {"expirationSeconds": 3600}}
    answer = fresh_plane.create(f"{PATHS['ServiceAccount']}/podium/token", request)
    found: str = answer["status"]["token"]
    return found


def told(plane: ControlPlane) -> set[tuple[str, str]]:
    """Which events there are, by pod and reason."""
    return {(event["regarding"].get("name", ""), event["reason"]) for event in plane.events()}


def test_a_run_is_never_forbidden(fresh_plane: ControlPlane, token: str) -> None:
    fresh_plane.create(NODES, node("a", cpu="4"))
    fresh_plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    election = {"leaderElect": True, "resourceName": "podium", "resourceNamespace": "podium-system"}
    config = configuration(fresh_plane, "podium", leaderElection=election)

    add_devices(fresh_plane)
    create_claim(fresh_plane, "gpu", request("any"))
    extended = {"name": "main", "image": "app", "resources": {"limits": {EXTENDED: "1"}}}

    with Kubelets(fresh_plane):
        process = Podium(fresh_plane, "-v", config=config, token=token)
        process.wait_until_ready()
        fresh_plane.create(PODS, pod("low", cpu="3", schedulerName="podium"))
        wait_until(lambda: bool(fresh_plane.pods()[0]["spec"].get("nodeName")))
        fresh_plane.create(PODS, pod("big", cpu="30", schedulerName="podium"))
        fresh_plane.create(PODS, pod("important", cpu="3", schedulerName="podium", priorityClassName="high"))
        wait_until(lambda: ("important", "Scheduled") in told(fresh_plane))
        wait_until(lambda: {("big", "FailedScheduling"), ("low", "Preempted")} <= told(fresh_plane))
        fresh_plane.create(NODES, node("n1"))  # with two devices
        fresh_plane.create(PODS, pod("claims", schedulerName="podium", **uses("gpu")))
        fresh_plane.create(PODS, pod("extended", schedulerName="podium") | {"spec": ONLY | {"containers": [extended]}})
        wait_until(lambda: {("claims", "Scheduled"), ("extended", "Scheduled")} <= told(fresh_plane))
        process.stop()

    assert "forbidden" not in process.output.lower()
    assert "may not be listed" not in process.output
    assert "cannot" not in process.output


@pytest.mark.parametrize(("method", "path"), FORBIDDEN.values(), ids=FORBIDDEN)
def test_it_cannot(method: str, path: str, fresh_plane: ControlPlane, token: str) -> None:
    status, _ = fresh_plane.request(method, path, {} if method in ("POST", "PATCH") else None, token=token)

    assert status == 403


def test_check_says_which_rights_are_missing(fresh_plane: ControlPlane, token: str, run: Run) -> None:
    election = {"leaderElect": True, "resourceName": "podium", "resourceNamespace": "podium-system"}
    config = configuration(fresh_plane, "podium", leaderElection=election)

    def check(user: str, *more: str) -> subprocess.CompletedProcess[str]:
        kubeconfig = fresh_plane.kubeconfig(f"check-{user[:6]}", token=user)
        return run("run", "--config", config, "--kubeconfig", kubeconfig, *more)

    everything = check(token, "--check")
    assert everything.returncode == 0, everything.stdout
    assert "NO" not in everything.stdout
    nothing = check(NOBODY, "--check")
    assert nothing.returncode == 1
    assert "NO   create pods/binding" in nothing.stdout
    refused = check(NOBODY)
    assert refused.returncode == 2
    assert refused.stderr.startswith("podium: these credentials may not list nodes, watch nodes, list pods")
    assert refused.stderr.count("\n") == 1


def test_without_the_right_to_evict_preemption_is_off(fresh_plane: ControlPlane, token: str) -> None:
    role = f"{PATHS['ClusterRole']}/podium-scheduler"
    rules = [each for each in fresh_plane.get(role)["rules"] if "delete" not in each["verbs"]]
    patched, _ = fresh_plane.request("PATCH", role, {"rules": rules}, content_type="application/merge-patch+json")
    assert patched == 200
    fresh_plane.create(NODES, node("a", cpu="4"))
    fresh_plane.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": "high"}, "value": 1000})
    process = Podium(fresh_plane, token=token)
    process.wait_until_ready()
    fresh_plane.create(PODS, pod("low", cpu="3", schedulerName="podium"))
    wait_until(lambda: bool(fresh_plane.pods()[0]["spec"].get("nodeName")))
    fresh_plane.create(PODS, pod("important", cpu="3", schedulerName="podium", priorityClassName="high"))
    wait_until(lambda: ("important", "FailedScheduling") in told(fresh_plane))
    process.stop()
    assert "preemption is off: these credentials may not delete pods" in process.output
    assert {each["metadata"]["name"] for each in fresh_plane.pods()} == {"low", "important"}
