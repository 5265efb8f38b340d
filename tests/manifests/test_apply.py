"""A later file over an earlier one, as `kubectl apply` does it: what is stored, what changes, what cannot change."""

from __future__ import annotations

import json
from typing import Any

import pytest

from podium.errors import InputError
from podium.manifests import load
from podium.manifests.apply import LAST_APPLIED
from podium.model import Deployment, Object, Pod
from podium.workloads.scaling import scaled_to_bounds

from .objects import Fields, doc

WEB = {"app": "web"}


def deployment(*containers: Fields, replicas: int | None = 2, pod: Fields | None = None, **fields: Any) -> Fields:
    """A Deployment; `pod` is what else its pods' spec has."""
    template = {"metadata": {"labels": WEB}, "spec": {"containers": list(containers) or [container()], **(pod or {})}}
    spec = {"selector": {"matchLabels": WEB}, "template": template, **fields.pop("spec", {})}
    return doc("Deployment", "web", spec=spec if replicas is None else {"replicas": replicas, **spec}, **fields)


def container(name: str = "main", image: str = "app", **resources: Any) -> Fields:
    return {"name": name, "image": image, "resources": resources}


def stateful_set(**spec: Any) -> Fields:
    template = {"metadata": {"labels": WEB}, "spec": {"containers": [container()]}}
    return doc("StatefulSet", "db", spec={"selector": {"matchLabels": WEB}, "template": template, **spec})


def noted(manifest: Fields, applied: Fields) -> Fields:
    """The object with kubectl's note of what was applied last."""
    annotations = {**manifest["metadata"].get("annotations", {}), LAST_APPLIED: json.dumps(applied)}
    return {**manifest, "metadata": {**manifest["metadata"], "annotations": annotations}}


def stored(before: Fields, after: Fields) -> Object:
    (found,) = load(before, after)
    return found


SELECTOR = {"nodeSelector": {"disk": "ssd"}}
CHANGES: dict[str, tuple[Fields, Fields, tuple[str, ...]]] = {
    "nothing": (deployment(), deployment(), ()),
    "an image": (
        deployment(container(image="a")),
        deployment(container(image="b")),
        ("spec.template.spec.containers[main].image",),
    ),
    "the replicas": (deployment(replicas=2), deployment(replicas=3), ("spec.replicas",)),
    "replicas that it leaves to an autoscaler": (deployment(replicas=2), deployment(replicas=None), ()),
    "replicas that it no longer sets": (
        noted(deployment(replicas=2), deployment(replicas=2)),
        deployment(replicas=None),
        (),
    ),
    "a quantity that is written otherwise": (
        deployment(container(requests={"cpu": "1"})),
        deployment(container(requests={"cpu": "1000m"})),
        (),
    ),
    "a request": (
        deployment(container(requests={"cpu": "1"})),
        deployment(container(requests={"cpu": "1500m"})),
        ("spec.template.spec.containers[main].resources.requests.cpu",),
    ),
    "the order of containers": (
        deployment(container("a"), container("b")),
        deployment(container("b"), container("a")),
        (),
    ),
    "a container more": (
        deployment(container("a")),
        deployment(container("a"), container("b")),
        ("spec.template.spec.containers[b]",),
    ),
    "a label": (deployment(), deployment(labels={"team": "x"}), ("metadata.labels.team",)),
    "what scheduling does not read": (
        deployment(pod={"dnsPolicy": "Default"}),
        deployment(pod={"dnsPolicy": "None"}),
        ("spec.template.spec.dnsPolicy",),
    ),
    "a field that it did not set before": (deployment(pod={"dnsPolicy": "Default"}), deployment(), ()),
    "a field that it no longer sets": (
        noted(deployment(pod={"dnsPolicy": "Default"}), deployment(pod={"dnsPolicy": "Default"})),
        deployment(),
        ("spec.template.spec.dnsPolicy",),
    ),
    "a node selector": (deployment(pod=SELECTOR), deployment(), ("spec.template.spec.nodeSelector",)),
}


@pytest.mark.parametrize("change", CHANGES)
def test_which_fields_a_later_file_changes(change: str) -> None:
    before, after, paths = CHANGES[change]
    objects = load(before, after)
    assert tuple(path for applied in objects.applied for path in applied.paths) == paths
    assert len(objects) == 1


@pytest.mark.parametrize(
    ("path", "changes"), [("image", True), ("replicas", False)], ids=["of the template", "of the number"]
)
def test_whether_pods_are_of_another_template(path: str, changes: bool) -> None:
    after = deployment(container(image="b")) if path == "image" else deployment(replicas=3)
    (applied,) = load(deployment(), after).applied
    assert (applied.kind, applied.changes_template) == ("Deployment", changes)


def test_replicas_that_the_later_file_does_not_say_stay() -> None:
    found = stored(deployment(replicas=7), deployment(replicas=None))
    assert isinstance(found, Deployment)
    assert found.spec.replicas == 7


def test_the_node_priority_and_status_of_a_pod_stay() -> None:
    running = {"nodeName": "n", "priority": 5, "containers": [container()]}
    before = doc("Pod", "web", uid="u", spec=running, status={"phase": "Running"})
    found = stored(before, doc("Pod", "web", spec={"containers": [container(image="b")]}))
    assert isinstance(found, Pod)
    assert (found.spec.node_name, found.spec.priority) == ("n", 5)
    assert (found.status.phase, found.metadata.uid, found.spec.containers[0].image) == ("Running", "u", "b")


@pytest.mark.parametrize(
    ("last", "labels"),
    [
        ({}, {"by": "hand", "team": "x", "new": "y"}),
        ({"labels": {"team": "x"}}, {"by": "hand", "new": "y"}),
    ],
    ids=["set by others", "set by the last apply"],
)
def test_labels_stay_unless_the_last_apply_set_them(last: Fields, labels: Fields) -> None:
    before = noted(deployment(labels={"by": "hand", "team": "x"}), {"metadata": last})
    assert stored(before, deployment(labels={"new": "y"})).metadata.labels == labels


def test_a_note_of_the_last_apply_that_is_no_json_is_passed_over() -> None:
    before = deployment(labels={"team": "x"}, annotations={LAST_APPLIED: "{"})
    assert stored(before, deployment()).metadata.labels == {"team": "x"}


CLAIMS = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]


@pytest.mark.parametrize(
    ("before", "after", "field"),
    [
        (deployment(), deployment(spec={"selector": {"matchLabels": {}}}), "spec.selector.matchLabels.app"),
        (stateful_set(), stateful_set(serviceName="db"), "spec.serviceName"),
        (stateful_set(), stateful_set(podManagementPolicy="Parallel"), "spec.podManagementPolicy"),
        (stateful_set(), stateful_set(volumeClaimTemplates=CLAIMS), "spec.volumeClaimTemplates"),
    ],
)
def test_what_the_api_server_does_not_let_change_is_refused(before: Fields, after: Fields, field: str) -> None:
    with pytest.raises(InputError, match="cannot be changed, as the API server refuses it: delete the ") as error:
        load(before, after)
    assert field in str(error.value)


# -- autoscalers -----------------------------------------------------------------------------------------------------


def autoscaler(least: int | None, most: int, name: str = "web") -> Fields:
    spec = {"maxReplicas": most, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name}}
    return doc("HorizontalPodAutoscaler", "hpa", spec=spec if least is None else {"minReplicas": least, **spec})


@pytest.mark.parametrize(
    ("now", "target", "bound", "replicas"),
    [
        (3, autoscaler(2, 8), "max", 8),
        (3, autoscaler(2, 8), "min", 2),
        (3, autoscaler(None, 8), "min", 1),
        (8, autoscaler(2, 8), "max", None),
        (0, autoscaler(2, 8), "max", None),
        (3, autoscaler(2, 8, "other"), "max", None),
    ],
    ids=["most", "least", "one if it does not say", "there already", "switched off", "of another workload"],
)
def test_workloads_at_the_bounds_of_their_autoscalers(
    now: int, target: Fields, bound: str, replicas: int | None
) -> None:
    found = scaled_to_bounds(load(deployment(replicas=now), target), bound)
    scaled = {name: obj.spec.replicas for (_, _, name), obj in found.items() if isinstance(obj, Deployment)}
    assert scaled == ({} if replicas is None else {"web": replicas})
