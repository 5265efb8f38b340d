from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_pod
from manifests.objects import Fields, doc, names, pod_of, yaml_of
from podium.manifests import Objects, load
from podium.model import Deployment, Job, Pod, PodStatus, ReplicaSet
from podium.workloads import expand_workloads, workload_of
from podium.workloads.owners import recreated

TEMPLATE: Fields = {
    "metadata": {"labels": {"app": "web"}, "annotations": {"note": "x"}},
    "spec": {"containers": [{"resources": {"limits": {"cpu": "1"}}}]},
}


def workload(kind: str, name: str = "web", replicas: int | None = None, **spec: Any) -> Fields:
    replicated = {} if replicas is None else {"replicas": replicas}
    return doc(
        kind, name, spec={"template": TEMPLATE, "selector": {"matchLabels": {"app": "web"}}, **replicated, **spec}
    )


def running(name: str, owner: str, **fields: Any) -> Fields:
    return doc("Pod", name, owner=owner, spec={"nodeName": "n"}, **{"labels": {"app": "web"}, **fields})


def expand(*documents: Fields) -> Objects:
    return expand_workloads(load([doc("Node", "n"), *documents]))


def pending(objects: Objects) -> list[Pod]:
    return [pod for pod in objects.of(Pod) if not pod.spec.node_name]


def test_nothing_to_expand_is_the_same_load() -> None:
    objects = load(doc("Pod", "a"))

    assert expand_workloads(objects) is objects


def test_a_replica_set_gets_its_pods() -> None:
    objects = expand(workload("ReplicaSet", replicas=2), doc("Pod", "last"))

    assert [obj.name for obj in objects] == ["n", "web", "web-0", "web-1", "last"]
    first = objects.of(Pod)[0]
    assert first.key == "default/web-0"
    assert first.metadata.uid == "Pod/default/web-0"
    assert (first.metadata.labels, first.metadata.annotations) == ({"app": "web"}, {"note": "x"})
    assert yaml_of(first.metadata.owner_references) == [
        {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "name": "web",
            "uid": "ReplicaSet/default/web",
            "controller": True,
        }
    ]
    # They are pods like any other: defaulted, and with a priority.
    assert first.spec.containers[0].resources.requests == {"cpu": "1"}
    assert (first.spec.priority, first.status.phase) == (0, "Pending")
    assert objects.warnings == ()


@pytest.mark.parametrize("kind", ["ReplicaSet", "ReplicationController"])
@pytest.mark.parametrize(
    ("replicas", "owner", "existing", "missing"),
    [
        (None, "", [], 1),
        (0, "", [], 0),
        (3, "web", [{}], 2),
        (1, "web", [{}, {}], 0),
        (1, "web", [{"status": {"phase": "Failed"}}], 1),
        (1, "web", [{"deletionTimestamp": "2024-01-01T00:00:00Z"}], 1),
        (1, "other", [{}], 1),
    ],
)
def test_only_missing_replicas_are_added(
    kind: str, replicas: int | None, owner: str, existing: list[Fields], missing: int
) -> None:
    controller = workload(kind, replicas=replicas)
    if kind == "ReplicationController":
        controller["spec"]["selector"] = {"app": "web"}
    pods = [running(f"pod-{number}", f"{kind}/{owner}", **fields) for number, fields in enumerate(existing)]

    assert len(pending(expand(controller, *pods))) == missing


def test_pods_of_another_kind_of_owner_do_not_count() -> None:
    assert len(pending(expand(workload("ReplicaSet"), running("a", "Job/web")))) == 1


def test_a_replication_controller_without_a_template_makes_nothing() -> None:
    assert pending(expand(doc("ReplicationController", "web", spec={"replicas": 2}))) == []


def test_names_that_are_taken_are_left_alone() -> None:
    assert names(expand(workload("ReplicaSet", replicas=2), doc("Pod", "web-0")))[:2] == ["web-1", "web-2"]


def test_what_is_being_deleted_makes_no_pods() -> None:
    deleted = doc("ReplicaSet", "web", deletionTimestamp="2024-01-01T00:00:00Z", spec={"template": TEMPLATE})

    assert pending(expand(deleted)) == []


def test_a_deployment_makes_a_replica_set_that_makes_pods() -> None:
    objects = expand(workload("Deployment", replicas=2))

    (replica_set,) = objects.of(ReplicaSet)
    number = replica_set.metadata.labels["pod-template-hash"]
    assert replica_set.name == f"web-{number}"
    assert replica_set.spec.selector is not None
    assert replica_set.spec.selector.match_labels == {"app": "web", "pod-template-hash": number}
    assert workload_of(pending(objects)[0]) == "Deployment/web"
    assert names(objects) == [f"web-{number}-0", f"web-{number}-1"]
    assert objects.of(Pod)[0].metadata.labels == {"app": "web", "pod-template-hash": number}
    assert objects.warnings == ()
    assert names(expand(workload("Deployment", replicas=2))) == names(objects)


def test_another_template_has_another_hash() -> None:
    other = workload("Deployment")
    other["spec"]["template"] = {"metadata": {"labels": {"app": "web"}}}

    assert names(expand(workload("Deployment"))) != names(expand(other))


def owned_replica_set(name: str, replicas: int) -> Fields:
    labels = {"app": "web", "pod-template-hash": name}
    template = {**TEMPLATE, "metadata": {"labels": labels}}
    return doc("ReplicaSet", f"web-{name}", owner="Deployment/web", spec={"replicas": replicas, "template": template})


@pytest.mark.parametrize(
    ("case", "replicas", "others", "created"),
    [
        ("its replica set has all its pods", 1, [owned_replica_set("1", 1), running("a", "ReplicaSet/web-1")], []),
        ("its replica set lacks some", 2, [owned_replica_set("1", 2), running("a", "ReplicaSet/web-1")], ["web-1-0"]),
        (
            "of two replica sets one is over",
            2,
            [owned_replica_set("1", 2), owned_replica_set("2", 0)],
            ["web-1-0", "web-1-1"],
        ),
        ("scaled up and not synced yet", 3, [owned_replica_set("1", 1)], ["web-1-0", "web-1-1", "web-1-2"]),
        (
            "in the middle of a rollout",
            2,
            [owned_replica_set("1", 1), owned_replica_set("2", 1), running("a", "ReplicaSet/web-1")],
            ["web-2-0"],
        ),
    ],
)
def test_a_deployment_with_replica_sets(case: str, replicas: int, others: list[Fields], created: list[str]) -> None:
    objects = expand(workload("Deployment", replicas=replicas), *others)

    assert sorted(pod.name for pod in pending(objects)) == created
    assert len(objects.of(ReplicaSet)) == sum(each["kind"] == "ReplicaSet" for each in others)


def test_a_deployment_whose_replica_set_is_not_in_the_input() -> None:
    labels = {"app": "web", "pod-template-hash": "5f6"}
    objects = expand(workload("Deployment", replicas=2), running("web-5f6-x", "ReplicaSet/web-5f6", labels=labels))

    (replica_set,) = objects.of(ReplicaSet)
    assert (replica_set.name, replica_set.metadata.uid) == ("web-5f6", "web-5f6")
    assert [pod.name for pod in pending(objects)] == ["web-5f6-0"]
    assert len(expand(workload("Deployment"), running("web-5f6-x", "ReplicaSet/web-5f6", labels=labels)).of(Pod)) == 1


@pytest.mark.parametrize(
    ("spec", "pods", "created"),
    [
        ({}, [], 1),
        ({"parallelism": 3}, [], 3),
        ({"parallelism": 3, "completions": 2}, [], 2),
        ({"parallelism": 3, "completions": 10}, [running("a", "Job/web")], 2),
        ({"parallelism": 3, "completions": 4}, [running("a", "Job/web", status={"phase": "Succeeded"})], 3),
        ({"parallelism": 3, "completions": 2}, [running("a", "Job/web", status={"phase": "Succeeded"})], 1),
        ({"parallelism": 3}, [running("a", "Job/web", status={"phase": "Succeeded"})], 0),
        ({"parallelism": 0}, [], 0),
        ({"parallelism": 3, "suspend": True}, [], 0),
    ],
)
def test_jobs(spec: Fields, pods: list[Fields], created: int) -> None:
    objects = expand(doc("Job", "web", spec={"template": TEMPLATE, **spec}), *pods)

    assert [pod.name for pod in pending(objects)] == [f"web-{number}" for number in range(created)]
    assert all(pod.metadata.labels["batch.kubernetes.io/job-name"] == "web" for pod in pending(objects))


def test_the_status_of_a_job_counts_pods_that_are_gone() -> None:
    job = doc("Job", "web", spec={"template": TEMPLATE, "completions": 2, "parallelism": 2}, status={"succeeded": 1})

    assert len(pending(expand(job))) == 1


def cron_job(name: str = "nightly", **spec: Any) -> Fields:
    return doc("CronJob", name, spec={"jobTemplate": {"spec": {"template": TEMPLATE, "parallelism": 2}}, **spec})


def test_a_cron_job_is_treated_as_due() -> None:
    objects = expand(cron_job(), cron_job("hourly"))

    assert names(objects, Job) == ["nightly-0", "hourly-0"]
    assert names(objects) == ["nightly-0-0", "nightly-0-1", "hourly-0-0", "hourly-0-1"]
    assert workload_of(objects.of(Pod)[0]) == "Job/nightly-0"
    assert objects.warnings == (
        "CronJobs default/nightly, default/hourly treated as if due now: the pods of one job each added",
    )


def test_a_cron_job_that_is_suspended_or_has_jobs_makes_none() -> None:
    finished = doc("Job", "nightly-1", owner="CronJob/nightly", spec={"completions": 1}, status={"succeeded": 1})

    assert pending(expand(cron_job(suspend=True))) == []
    assert pending(expand(cron_job(), finished)) == []


def test_missing_priority_classes_are_said_once() -> None:
    template = {"spec": {"priorityClassName": "gone"}}
    objects = expand(
        doc("ReplicaSet", "web", spec={"template": template}), doc("Pod", "a", spec={"priorityClassName": "gone"})
    )

    assert objects.warnings == ("PriorityClass gone is not in the input: priority 0 assumed for the pods that name it",)


def test_warnings_count_the_created_pods_and_what_was_known_stays() -> None:
    selecting = {"podAffinityTerm": {"topologyKey": "z", "namespaceSelector": {"matchLabels": {"team": "a"}}}}
    preferred = {"preferredDuringSchedulingIgnoredDuringExecution": [selecting]}
    spec = {"affinity": {"podAffinity": preferred}}
    loaded = load(
        doc("ConfigMap", "c"),
        doc("Pod", "a", spec=spec),
        doc("ReplicaSet", "web", "prod", spec={"template": {"spec": spec}}),
    )

    objects = expand_workloads(loaded)

    assert objects.ignored == {"ConfigMap": 1}
    assert objects.warnings == (
        "Namespace default, prod are not in the input: assumed to have no labels for the namespaceSelector of pods "
        "such as default/a",
    )


@pytest.mark.parametrize(
    ("owner", "labels", "expected"),
    [
        (None, {}, "Pod/web"),
        ("StatefulSet/db", {}, "StatefulSet/db"),
        ("ReplicaSet/web-5f6", {"pod-template-hash": "5f6"}, "Deployment/web"),
        ("ReplicaSet/web-5f6", {}, "ReplicaSet/web-5f6"),
        ("ReplicaSet/web-5f6", {"pod-template-hash": "abc"}, "ReplicaSet/web-5f6"),
        ("DaemonSet/log-5f6", {"pod-template-hash": "5f6"}, "DaemonSet/log-5f6"),
        ("Node/n1", {}, "Node/n1"),
    ],
)
def test_what_a_pod_belongs_to(owner: str | None, labels: dict[str, str], expected: str) -> None:
    owned = {"owner": owner} if owner else {}

    assert workload_of(pod_of({}, labels=labels, **owned)) == expected


def test_deployments_keep_their_place() -> None:
    objects = expand(workload("Deployment", "b"), workload("Deployment", "a"))

    assert [type(obj).__name__ for obj in objects] == ["Node"] + ["Deployment", "ReplicaSet", "Pod"] * 2
    assert names(objects, Deployment) == ["b", "a"]


def test_a_pod_is_recreated_without_what_happened_to_it() -> None:
    old = make_pod("web-1", node="n", labels={"app": "web"}, deleted=True, phase="Running", ready=True)
    old = replace(old, metadata=replace(old.metadata, creation_timestamp="2026-01-01T00:00:00Z"))

    new, again = recreated(old, "web-2", "uid-2"), recreated(old)

    assert (new.name, new.metadata.uid, new.metadata.labels) == ("web-2", "uid-2", {"app": "web"})
    assert (again.name, again.metadata.uid) == (old.name, old.metadata.uid)
    for pod in (new, again):
        assert (pod.metadata.creation_timestamp, pod.metadata.deletion_timestamp) == (None, None)
        assert (pod.spec, pod.status) == (replace(old.spec, node_name=""), PodStatus(phase="Pending"))
