"""LimitRanges and ResourceQuotas: what new pods get, and which are refused, in the API server's words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from builders import make_object, make_pod
from cli.running import node, run, written
from podium.cluster_input import ClusterInput
from podium.model import Object, Pod
from podium.workloads.admission import Admission

Fields = dict[str, Any]


def limits(*items: Fields) -> Object:
    return make_object("LimitRange", "bounds", namespace="default", spec={"limits": list(items)})


def quota(hard: Fields, used: Fields | None = None, **spec: Any) -> Object:
    fields = {"spec": {"hard": hard, **spec}, **({"status": {"used": used}} if used else {})}
    return make_object("ResourceQuota", "compute", namespace="default", **fields)


def asking(requests: Fields | None = None, bounds: Fields | None = None, name: str = "new", **spec: Any) -> Pod:
    resources = {"requests": requests or {}, "limits": bounds or {}}
    return make_pod(name, containers=[{"name": "c", "image": "i", "resources": resources}], **spec)


# -- LimitRanges ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("item", "requests", "bounds"),
    [
        ({"default": {"cpu": "2"}}, {"cpu": "2"}, {"cpu": "2"}),
        ({"default": {"cpu": "2"}, "defaultRequest": {"cpu": "1"}}, {"cpu": "1"}, {"cpu": "2"}),
        ({"max": {"cpu": "4"}}, {"cpu": "4"}, {"cpu": "4"}),
        ({"min": {"cpu": "1"}}, {"cpu": "1"}, {}),
    ],
    ids=["default", "defaultRequest", "max", "min"],
)
def test_defaults_of_containers_that_ask_for_nothing(item: Fields, requests: Fields, bounds: Fields) -> None:
    pod = Admission([limits({"type": "Container", **item})]).with_defaults(asking())

    assert (pod.spec.containers[0].resources.requests, pod.spec.containers[0].resources.limits) == (requests, bounds)


def test_what_a_container_asks_for_stays() -> None:
    item = {"type": "Container", "default": {"cpu": "2", "memory": "1Gi"}}
    pod = Admission([limits(item)]).with_defaults(asking({"cpu": "1"}, {"cpu": "3"}))

    assert pod.spec.containers[0].resources.requests == {"cpu": "1", "memory": "1Gi"}
    assert pod.spec.containers[0].resources.limits == {"cpu": "3", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("item", "pod", "reason"),
    [
        ({"min": {"cpu": "1"}}, asking({"cpu": "500m"}), "minimum cpu usage per Container is 1, but request is 500m"),
        ({"min": {"cpu": "1"}}, asking(), "minimum cpu usage per Container is 1.  No request is specified"),
        (
            {"max": {"memory": "1Gi"}},
            asking(bounds={"memory": "2Gi"}),
            "maximum memory usage per Container is 1Gi, but limit is 2Gi",
        ),
        ({"max": {"cpu": "1"}}, asking({"cpu": "1"}), "maximum cpu usage per Container is 1.  No limit is specified"),
        (
            {"maxLimitRequestRatio": {"cpu": "2"}},
            asking({"cpu": "1"}, {"cpu": "3"}),
            "cpu max limit to request ratio per Container is 2, but provided ratio is 3.000000",
        ),
        ({"max": {"cpu": "1"}}, asking({"cpu": "1"}, {"cpu": "1"}), ""),
    ],
)
def test_bounds_of_containers(item: Fields, pod: Pod, reason: str) -> None:
    refusal = Admission([limits({"type": "Container", **item})]).refusal(pod)

    assert refusal == (f"{reason} (LimitRange bounds)" if reason else "")


def test_bounds_of_pods_count_all_containers_and_the_largest_step_of_initialisation() -> None:
    def container(name: str, cpu: str) -> Fields:
        return {"name": name, "image": "i", "resources": {"limits": {"cpu": cpu}, "requests": {"cpu": cpu}}}

    bounds = Admission([limits({"type": "Pod", "max": {"cpu": "3"}})])
    two = [container("a", "1"), container("b", "2")]
    assert bounds.refusal(make_pod(containers=two)) == ""
    refusal = bounds.refusal(make_pod(containers=two, init_containers=[container("i", "4")]))
    assert refusal == "maximum cpu usage per Pod is 3, but limit is 4 (LimitRange bounds)"


# -- ResourceQuotas ------------------------------------------------------------------------------------------------


def test_a_quota_counts_the_pods_that_are_not_finished() -> None:
    pods = [make_pod("a"), make_pod("b", phase="Succeeded"), make_pod("c", namespace="other")]

    assert Admission([quota({"pods": "2"}), *pods]).refusal(make_pod("new")) == ""
    refusal = Admission([quota({"pods": "2", "count/pods": "2"}), *pods]).refusal(make_pod("new"))
    assert refusal == "exceeded quota: compute, requested: count/pods=1, used: count/pods=2, limited: count/pods=2"


def test_a_quota_counts_requests_and_limits() -> None:
    hard = {"requests.cpu": "2", "limits.memory": "2Gi", "requests.example.com/gpu": "1"}
    running = asking(
        {"cpu": "1500m", "example.com/gpu": "1"}, {"memory": "1Gi", "example.com/gpu": "1"}, name="running"
    )
    admission = Admission([quota(hard), running])

    assert admission.refusal(asking({"cpu": "500m"}, {"memory": "1Gi"})) == ""
    assert admission.refusal(asking({"cpu": "1"}, {"memory": "2Gi"})) == (
        "exceeded quota: compute, requested: limits.memory=2Gi,requests.cpu=1, "
        "used: limits.memory=1Gi,requests.cpu=1500m, limited: limits.memory=2Gi,requests.cpu=2"
    )
    gpu = {"example.com/gpu": "1"}
    assert "requests.example.com/gpu=1" in admission.refusal(asking({"cpu": "0", **gpu}, {"memory": "0", **gpu}))


def test_quotas_of_cpu_and_memory_want_them_specified() -> None:
    refusal = Admission([quota({"requests.cpu": "1", "limits.memory": "1Gi", "pods": "9"})]).refusal(asking())

    assert refusal == "failed quota: compute: must specify limits.memory for: c; requests.cpu for: c"


def test_what_the_status_reports_beyond_the_input_is_used() -> None:
    hidden = Admission([quota({"pods": "5"}, {"pods": "5"}), make_pod("a")])
    assert hidden.refusal(make_pod("new")).endswith("used: pods=5, limited: pods=5")
    hidden.forget(make_pod("a"))
    assert hidden.refusal(make_pod("new")) == ""
    assert Admission([quota({"pods": "1"}, {"pods": "0"}), make_pod("a")]).refusal(make_pod("new"))


@pytest.mark.parametrize(
    ("spec", "covered"),
    [
        ({"scopes": ["BestEffort"]}, {"nothing", "deadline", "important"}),
        ({"scopes": ["NotBestEffort"]}, {"cpu"}),
        ({"scopes": ["Terminating"]}, {"deadline"}),
        ({"scopes": ["NotTerminating", "BestEffort"]}, {"nothing", "important"}),
        ({"scopes": ["PriorityClass"]}, {"important"}),
        ({"scopes": ["CrossNamespacePodAffinity"]}, set()),
        (
            {
                "scopeSelector": {
                    "matchExpressions": [{"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}]
                }
            },
            {"important"},
        ),
        (
            {"scopeSelector": {"matchExpressions": [{"scopeName": "PriorityClass", "operator": "DoesNotExist"}]}},
            {"nothing", "deadline", "cpu"},
        ),
    ],
)
def test_scopes(spec: Fields, covered: set[str]) -> None:
    pods = [
        asking(name="nothing"),
        asking({"cpu": "1"}, name="cpu"),
        asking(name="deadline", active_deadline_seconds=60),
        asking(name="important", priority_class_name="high", priority=5),
    ]
    admission = Admission([quota({"pods": "0"}, **spec)])

    assert {pod.name for pod in pods if admission.refusal(pod)} == covered


# -- where pods are created ----------------------------------------------------------------------------------------


def deployment(replicas: int, image: str = "one") -> Fields:
    labels = {"app": "web"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [{"name": "c", "image": image}]}}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


def quota_of(pods: int) -> Fields:
    metadata = {"name": "three", "namespace": "default"}
    return {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": metadata, "spec": {"hard": {"pods": str(pods)}}}


RANGE = {
    "apiVersion": "v1",
    "kind": "LimitRange",
    "metadata": {"name": "usual", "namespace": "default"},
    "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "2"}}]},
}


def test_pods_beyond_the_quota_are_refused_and_listed(tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), deployment(200), quota_of(3))
    result = run("simulate", "-f", cluster)

    assert result.exit_code == 1
    assert "REFUSED BY THE API SERVER" in result.stdout
    assert "default Deployment/web: 197 pods are refused: exceeded quota: three" in result.stdout
    (refusal,) = ClusterInput.read(str(cluster)).refused
    assert refusal.to_dict() == {
        "workload": "Deployment/web",
        "namespace": "default",
        "count": 197,
        "reason": "exceeded quota: three, requested: pods=1, used: pods=3, limited: pods=3",
    }


def test_new_pods_have_the_defaults_of_their_namespace(tmp_path: Path) -> None:
    """Two pods of 2 cpu fill the node of 4."""
    cluster = written(tmp_path / "c.json", node(), deployment(3), RANGE)
    result = run("simulate", "-f", cluster, "-o", "json")

    assert '"placed": 2' in result.stdout
    assert '"pending": 1' in result.stdout


@pytest.mark.parametrize(("documents", "count"), [([quota_of(3)], "3"), ([RANGE], "2")], ids=["quota", "defaults"])
def test_capacity_ends_with_the_quota(documents: list[Fields], count: str, tmp_path: Path) -> None:
    cluster = written(tmp_path / "c.json", node(), deployment(0), *documents)
    result = run("capacity", "deployment/web", "-f", cluster, "-o", "json")

    assert f'"count": {count}' in result.stdout
    assert ("exceeded quota: three" in result.stdout) == (documents != [RANGE])


@pytest.mark.parametrize(("number", "code"), [(3, 1), (4, 0)])
def test_a_rollout_without_room_in_the_quota_is_stuck(number: int, code: int, tmp_path: Path) -> None:
    """The surge needs one pod more than before, as no pod may be missing."""
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    before, after = deployment(3), deployment(3, image="two")
    for each in (before, after):
        each["spec"]["strategy"] = strategy
    pods = ClusterInput.read([node(), before]).expanded
    files = [written(tmp_path / "c.json", node(), before, quota_of(number)), written(tmp_path / "new.json", after)]
    assert len(pods.of(Pod)) == 3

    result = run("simulate", "-f", files[0], "-f", files[1], "--rollout")
    assert result.exit_code == code
    assert ("exceeded quota: three" in result.stdout) == bool(code)
