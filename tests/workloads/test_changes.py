"""What becomes of the pods of a workload that a later file changes: who goes first, and how ReplicaSets share pods."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_pod
from manifests.objects import Fields, doc
from manifests.test_apply import autoscaler, container, deployment, stateful_set
from podium.manifests import load
from podium.model import Deployment, Pod, ReplicaSet
from podium.model.pod import PodCondition
from podium.workloads import scaled_by_autoscalers
from podium.workloads.deployments import scaled_sizes
from podium.workloads.owners import ordinal_of
from podium.workloads.rolling_updates import kept_on_purpose
from podium.workloads.scaling import first_to_go, is_ready, newest_time

DAY = "2026-01-01T00:00:"
NOW = 1767225660.0
"""A minute after the beginning of that day."""


def running(name: str, node: str = "n", **fields: Any) -> Pod:
    """A ready pod that was created at the beginning of the day, or at the second `created`."""
    status = {"phase": fields.pop("phase", "Running")}
    created = f"{DAY}{fields.pop('created', 0):02}Z"
    pod = make_pod(name, node=node, **fields)
    ready = [PodCondition(type="Ready", status="True")]
    metadata = replace(pod.metadata, uid=name, creation_timestamp=created)
    return replace(pod, metadata=metadata, status=replace(pod.status, conditions=ready, **status))


def unready(pod: Pod) -> Pod:
    return replace(pod, status=replace(pod.status, conditions=[PodCondition(type="Ready", status="False")]))


def costing(pod: Pod, cost: str) -> Pod:
    annotations = {"controller.kubernetes.io/pod-deletion-cost": cost}
    return replace(pod, metadata=replace(pod.metadata, annotations=annotations))


# -- which pods go first ---------------------------------------------------------------------------------------------


FIRST: dict[str, tuple[Pod, Pod]] = {
    "without a node": (running("b", node=""), running("a")),
    "not running yet": (running("b", phase="Pending"), running("a")),
    "not ready": (unready(running("b")), running("a")),
    "of a lower deletion cost": (running("b"), costing(running("a"), "5")),
    "of a cost below none": (costing(running("b"), "-5"), running("a")),
    "the younger one": (running("b", created=58), running("a", created=0)),
    "of a smaller uid where ages are alike": (running("a", created=1), running("b", created=0)),
    "without a node, though it costs more": (costing(running("b", node=""), "9"), running("a")),
    "not ready, though it is older": (unready(running("b")), running("a", created=58)),
    "a cost that is no number counts as none": (costing(running("b", created=58), "much"), running("a")),
}


@pytest.mark.parametrize("case", FIRST)
def test_who_goes_first(case: str) -> None:
    first, second = FIRST[case]
    for pods in ([first, second], [second, first]):
        assert first_to_go(pods, pods, 1, NOW) == [first]


def test_a_pod_goes_first_from_the_node_with_most_of_its_kin() -> None:
    crowded, alone, related = running("b", "x"), running("a", "y"), running("c", "x")
    assert first_to_go([alone, crowded], [alone, crowded, related], 1, NOW) == [crowded]


@pytest.mark.parametrize(("number", "gone"), [(-1, ""), (0, ""), (2, "cb"), (3, "abc"), (9, "abc")])
def test_as_many_go_as_there_are_too_many(number: int, gone: str) -> None:
    pods = [running("a"), running("b", created=50), running("c", created=59)]
    assert "".join(pod.name for pod in first_to_go(pods, pods, number, NOW)) == gone


def test_a_pod_with_a_node_is_ready_unless_it_says_otherwise() -> None:
    assert is_ready(running("a"))
    assert is_ready(make_pod("a", node="n"))
    assert not is_ready(unready(running("a")))
    assert not is_ready(running("a", node=""))


def test_the_input_was_taken_when_its_last_pod_came_or_started() -> None:
    assert newest_time([]) == 0.0
    assert newest_time([running("a"), running("b", created=59), make_pod("c")]) == NOW - 1


@pytest.mark.parametrize(
    ("name", "number"), [("db-0", 0), ("db-12", 12), ("db", -1), ("db-x", -1), ("db-٣", -1), ("db-1234567890", -1)]
)
def test_the_ordinal_of_a_stateful_sets_pod(name: str, number: int) -> None:
    pod = make_pod("any")
    assert ordinal_of(replace(pod, metadata=replace(pod.metadata, name=name))) == number


# -- ReplicaSets in the middle of a rolling update ---------------------------------------------------------------------


def sizes(wanted: int, *replicas: int, surge: int | str | None = None, strategy: str = "RollingUpdate") -> Any:
    """How many pods ReplicaSets of these sizes, the oldest first, have after scaling; those of none are left out."""
    rolling = {"rollingUpdate": {"maxSurge": surge}} if surge is not None else {}
    (scaled,) = load(deployment(replicas=wanted, spec={"strategy": {"type": strategy, **rolling}}))
    assert isinstance(scaled, Deployment)
    spec = deployment()["spec"]
    sets = load([doc("ReplicaSet", str(place), spec={**spec, "replicas": size}) for place, size in enumerate(replicas)])
    return scaled_sizes(scaled, sets.of(ReplicaSet))


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (sizes(5, 2), {"0": 5}),
        (sizes(5, 0, 2), {"1": 5}),
        (sizes(20, 5, 5, surge=0), {"0": 10, "1": 10}),
        (sizes(20, 8, 3, surge=4), {"0": 17, "1": 7}),
        (sizes(4, 5, 5, surge=0), {"0": 2, "1": 2}),
        (sizes(11, 5, 5, surge=0), {"0": 5, "1": 6}),
        (sizes(9, 5, 5, surge=0), {"0": 4, "1": 5}),
        (sizes(0, 5, 5, surge=2), {"0": 0, "1": 0}),
        (sizes(8, 2, 2), {"0": 5, "1": 5}),
        (sizes(9, 5, 5, strategy="Recreate"), {}),
    ],
    ids=[
        "one alone gets all",
        "those without pods get none",
        "they grow in proportion",
        "with the surge",
        "they shrink in proportion",
        "the newer grows first",
        "the older shrinks first",
        "to nothing",
        "a quarter more where it does not say",
        "not where all pods go first",
    ],
)
def test_replica_sets_share_the_pods_of_a_deployment(found: dict[str, int], expected: dict[str, int]) -> None:
    assert found == expected


# -- pods that stay on purpose -----------------------------------------------------------------------------------------


def kept(before: Fields, after: Fields) -> str:
    (applied,) = load(before, after).applied
    return kept_on_purpose(applied)


NEW_IMAGE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [container(image="new")]}}
PARTITION = {"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}}


@pytest.mark.parametrize(
    ("before", "after", "note"),
    [
        (deployment(), deployment(container(image="new")), ""),
        (deployment(), deployment(container(image="new"), spec={"paused": True}), "it is paused: pods of the old "),
        (
            stateful_set(),
            stateful_set(template=NEW_IMAGE, updateStrategy={"type": "OnDelete"}),
            "its update strategy is OnDelete: pods of the old template stay until somebody deletes them",
        ),
        (
            stateful_set(replicas=3),
            stateful_set(replicas=3, template=NEW_IMAGE, **PARTITION),
            "the partition keeps 2 pods of the old template",
        ),
        (
            stateful_set(replicas=1),
            stateful_set(replicas=1, template=NEW_IMAGE, **PARTITION),
            "the partition keeps 1 pod of the old template",
        ),
        (stateful_set(replicas=3), stateful_set(replicas=4, **PARTITION), ""),
    ],
    ids=["none", "paused", "OnDelete", "a partition", "a partition beyond all pods", "the same template"],
)
def test_why_pods_of_an_old_template_stay(before: Fields, after: Fields, note: str) -> None:
    found = kept(before, after)
    assert found.startswith(note)
    assert bool(found) == bool(note)


def test_autoscalers_add_to_what_a_later_file_changes() -> None:
    objects = load([deployment(replicas=2), autoscaler(1, 8)], deployment(container(image="new"), replicas=3))
    (applied,) = scaled_by_autoscalers(objects, "max").applied
    assert set(applied.paths) == {"spec.template.spec.containers[main].image", "spec.replicas"}
    assert isinstance(applied.before, Deployment)
    assert isinstance(applied.after, Deployment)
    assert (applied.before.spec.replicas, applied.after.spec.replicas) == (2, 8)
