"""The nodes and pods that a user names: what is found, and what is said if nothing is, or too much."""

from __future__ import annotations

from typing import Any

import pytest

from builders import HOSTNAME, ZONE, make_node
from podium.cluster import Cluster
from podium.errors import InputError
from podium.lookup import (
    added_objects,
    find_node,
    find_nodes,
    find_pod,
    nodes_matching,
    pods_of_workload,
    with_added_objects,
    with_priority_and_profile,
)
from podium.manifests import Objects, load
from podium.workloads.first_pods import first_pods, named_after

Fields = dict[str, Any]
LABELS = {"gpu-1.eu": "a", "gpu-2.eu": "a", "web-1.eu": "b"}
CLUSTER = Cluster.from_objects(make_node(name, labels={ZONE: zone, HOSTNAME: name}) for name, zone in LABELS.items())
POD_SPEC: Fields = {"containers": [{"name": "main", "image": "app"}]}


def pod(name: str, namespace: str = "shop", owner: str = "", node: str = "", **spec: Any) -> Fields:
    """A pod; `owner` is the kind and name of its controller."""
    kind, _, owned_by = owner.partition("/")
    group = "apps/v1" if kind in ("ReplicaSet", "StatefulSet", "DaemonSet") else "v1"
    reference = {"apiVersion": group, "kind": kind, "name": owned_by, "uid": f"uid-{owned_by}", "controller": True}
    metadata = {"name": name, "namespace": namespace, **({"ownerReferences": [reference]} if owner else {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {**POD_SPEC, "nodeName": node, **spec}}


def workload(kind: str, name: str, namespace: str = "shop", **spec: Any) -> Fields:
    labels = {"app": name}
    template = {"metadata": {"labels": labels}, "spec": {**POD_SPEC, **({} if kind != "Job" else NEVER)}}
    selector = {} if kind == "Job" else {"selector": {"matchLabels": labels}}
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**selector, "template": template, **spec},
    }


NEVER = {"restartPolicy": "Never"}


def objects(*documents: Fields) -> Objects:
    return load(list(documents))


# -- nodes ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "found"), [("gpu-1.eu", "gpu-1.eu"), ("gpu-1", "gpu-1.eu"), ("w", "web-1.eu")])
def test_a_node_by_its_name_or_the_beginning_of_it(name: str, found: str) -> None:
    assert find_node(CLUSTER, name) == found


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("gpu", "node 'gpu' may be gpu-1.eu, gpu-2.eu; say which"),
        ("", "node '' is not in the cluster"),
        ("gpv-1", "node 'gpv-1' is not in the cluster; did you mean gpu-1.eu"),
        ("eb-1", "node 'eb-1' is not in the cluster; did you mean web-1.eu?"),
        ("zzz", "node 'zzz' is not in the cluster"),
    ],
)
def test_a_node_that_cannot_be_found(name: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        find_node(CLUSTER, name)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        ("zone=a", ["gpu-1.eu", "gpu-2.eu"]),
        (f"{ZONE}=b", ["web-1.eu"]),
        ("zone==a", ["gpu-1.eu", "gpu-2.eu"]),
        ("zone=a,hostname=gpu-2.eu", ["gpu-2.eu"]),
        ("node=web-1.eu", ["web-1.eu"]),
        (" zone = b ", ["web-1.eu"]),
    ],
)
def test_nodes_by_their_labels(selector: str, found: list[str]) -> None:
    assert nodes_matching(CLUSTER, selector) == found


@pytest.mark.parametrize(
    ("selector", "problem"),
    [
        ("zone=c", f"no node with zone=c; {ZONE} is one of a, b"),
        ("rack=r1", "no node with rack=r1; no node has the label rack"),
        ("zone=a,hostname=web-1.eu", "no node with zone=a,hostname=web-1.eu"),
        ("zone", "cannot read 'zone'; write a label as key=value, such as zone=eu-1a or node=NAME"),
        ("zone!=a", "cannot read 'zone!=a'"),
        ("zone=", "cannot read 'zone='"),
        ("=a", "cannot read '=a'"),
        ("zone=a,", "cannot read 'zone=a,'"),
    ],
)
def test_labels_that_no_node_has(selector: str, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        nodes_matching(CLUSTER, selector)
    assert str(caught.value).startswith(problem)


def test_names_and_labels_together_name_each_node_once() -> None:
    assert find_nodes(CLUSTER, ["web", "zone=a", "gpu-1"], ["zone=b"]) == ["web-1.eu", "gpu-1.eu", "gpu-2.eu"]


# -- pods ----------------------------------------------------------------------------------------------------------

INPUT = objects(
    pod("web-1", owner="ReplicaSet/web", node="n1"),
    pod("web-2", owner="ReplicaSet/web"),
    pod("alone"),
    pod("twice", "shop"),
    pod("twice", "other"),
    pod("job", "other"),
    workload("ReplicaSet", "web", replicas=2),
    workload("Deployment", "api", replicas=3),
    workload("Deployment", "asleep", replicas=0),
    workload("StatefulSet", "db", replicas=1),
    workload("Job", "job"),
)


@pytest.mark.parametrize(
    ("name", "namespace", "key"),
    [
        ("alone", None, "shop/alone"),
        ("shop/alone", None, "shop/alone"),
        ("pod/alone", None, "shop/alone"),
        ("twice", "other", "other/twice"),
        ("other/twice", "other", "other/twice"),
        # Of a workload, the first pod that waits.
        ("web", None, "shop/web-2"),
        ("rs/web", None, "shop/web-2"),
        ("replicaset.apps/web", None, "shop/web-2"),
        ("statefulset/db", None, "shop/db-0"),
        # A pod of this name comes before the workload.
        ("other/job", None, "other/job"),
    ],
)
def test_a_pod_by_its_name_or_its_workload(name: str, namespace: str | None, key: str) -> None:
    found = find_pod(INPUT, name, namespace)

    assert (found.pod.key, found.is_wanted) == (key, True)
    assert found.pod in found.objects


def test_a_kind_chooses_between_a_pod_and_a_workload_of_the_same_name() -> None:
    assert find_pod(INPUT, "pod/job", None).pod.key == "other/job"
    assert find_pod(INPUT, "job/job", None).pod.key.startswith("shop/job-")


def test_the_jobs_of_a_cron_job_are_one_workload() -> None:
    reference = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "report", "uid": "r", "controller": True}
    jobs = [workload("Job", f"report-{number}", completions=1) for number in (1, 2)]
    for job in jobs:
        job["metadata"]["ownerReferences"] = [reference]
    pods = [
        pod(f"report-{number}-x", owner=f"Job/report-{number}", node="n" if number == 1 else "") for number in (1, 2)
    ]

    assert find_pod(objects(*jobs, *pods), "cronjob/report", "shop").pod.name == "report-2-x"


def test_the_pod_that_a_workload_would_make() -> None:
    api, asleep = find_pod(INPUT, "deploy/api", None), find_pod(INPUT, "asleep", None)

    assert (api.pod.namespace, api.is_wanted) == ("shop", True)
    assert (asleep.pod.namespace, asleep.is_wanted) == ("shop", False)
    assert asleep.pod.name.startswith("asleep-")


@pytest.mark.parametrize(
    ("name", "namespace", "problem"),
    [
        ("twice", None, "pod 'twice' is in several namespaces: shop/twice, other/twice; say which with -n"),
        ("shop/alone", "other", "pod 'shop/alone' is not in namespace 'other'; leave one of the two out"),
        ("aloen", None, "pod 'aloen' is not in the input; did you mean shop/alone?"),
        ("deploy/web", None, "Deployment 'web' is not in the input"),
        ("sts/bd", "shop", "StatefulSet 'shop/bd' is not in the input"),
        ("alone", "other", "pod 'other/alone' is not in the input; did you mean shop/alone?"),
    ],
)
def test_a_pod_that_cannot_be_found(name: str, namespace: str | None, problem: str) -> None:
    with pytest.raises(InputError) as caught:
        find_pod(INPUT, name, namespace)
    assert str(caught.value).startswith(problem)


def test_an_input_without_pods_says_so() -> None:
    with pytest.raises(InputError, match="pod 'web' is not in the input, which has no pods at all"):
        find_pod(load(NODE), "web", None)


NODE: Fields = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}


def test_the_pods_of_a_workload() -> None:
    pods = pods_of_workload(INPUT, find_pod(INPUT, "web", None).pod, "web")

    assert [each.name for each in pods] == ["web-1", "web-2"]


# -- pods of a file ------------------------------------------------------------------------------------------------


def test_the_first_pod_of_every_workload_of_a_file() -> None:
    file = objects(
        workload("Deployment", "asleep", replicas=0), workload("DaemonSet", "agent"), pod("alone"), workload("Job", "j")
    )

    keys = [each.key for each in first_pods(file, "chart.yaml")]

    assert keys == ["shop/asleep", "shop/agent", "shop/alone", "shop/j"]


def test_a_file_that_makes_no_pods_is_refused() -> None:
    with pytest.raises(InputError, match="no pod and no workload that makes pods in it"):
        first_pods(load(NODE), "chart.yaml")


def test_a_pod_named_after_its_workload() -> None:
    assert named_after(find_pod(INPUT, "web", None).pod, "web").key == "shop/web"


def test_a_file_adds_everything_but_pods_nodes_and_claims_that_are_there() -> None:
    claim: Fields = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "shop"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    service: Fields = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}}
    there, file = objects(claim, pod("alone"), service), objects(claim, pod("new"), NODE, service)

    assert [type(each).__name__ for each in added_objects(there, file)] == ["Service"]
    assert len(with_added_objects(there, file)) == 3


@pytest.mark.parametrize(("profile", "scheduler"), [(None, "default-scheduler"), ("packing", "packing")])
def test_a_new_pod_gets_the_priority_of_its_class_and_the_profile(profile: str | None, scheduler: str) -> None:
    urgent: Fields = {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "urgent"},
        "value": 1000,
    }
    (new,) = first_pods(objects(pod("new", priorityClassName="urgent")), "new.yaml")
    found = with_priority_and_profile(new, objects(urgent, pod("alone")), profile)

    assert (found.spec.priority, found.spec.scheduler_name) == (1000, scheduler)
