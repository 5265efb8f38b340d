"""Which pods belong to their node, which are recreated, and which have objects that go by their name."""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_pod
from podium.model import Pod
from podium.model.pod import (
    belongs_to_node,
    ends_with_node,
    has_objects_of_its_own,
    is_of_daemon_set,
    is_recreated,
    is_reported_ready,
    is_static,
)


def owned_by(kind: str) -> Pod:
    return make_pod(owner={"kind": kind, "name": "owner"})


PODS: dict[str, tuple[Pod, bool, bool, bool]] = {
    "bare": (make_pod(), False, False, False),
    "of a ReplicaSet": (owned_by("ReplicaSet"), False, False, True),
    "of an operator": (owned_by("Rollout"), False, False, True),
    "of a DaemonSet": (owned_by("DaemonSet"), True, False, True),
    "of a Node": (owned_by("Node"), True, True, False),
    "mirror": (make_pod(mirror=True), True, True, False),
}


@pytest.mark.parametrize(("pod", "belongs", "static", "returns"), PODS.values(), ids=PODS)
def test_what_kind_of_pod_it_is(pod: Pod, belongs: bool, static: bool, returns: bool) -> None:
    assert (belongs_to_node(pod), is_static(pod), is_recreated(pod)) == (belongs, static, returns)
    assert is_of_daemon_set(pod) is (belongs and not static)
    assert ends_with_node(pod) is belongs


def test_a_terminating_pod_ends_with_its_node() -> None:
    assert ends_with_node(make_pod(deleted=True))


@pytest.mark.parametrize(("ready", "counts"), [(None, True), (True, True), (False, False)])
def test_a_pod_is_ready_unless_a_condition_says_otherwise(ready: bool | None, counts: bool) -> None:
    assert is_reported_ready(make_pod(ready=ready)) is counts


SPECS: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing": ({}, False),
    "a claim by name": ({"volumes": [{"name": "v", "persistentVolumeClaim": {"claimName": "c"}}]}, False),
    "an ephemeral volume": ({"volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}, True),
    "a resource claim by name": ({"resource_claims": [{"name": "gpu", "resourceClaimName": "shared"}]}, False),
    "a resource claim from a template": (
        {"resource_claims": [{"name": "gpu", "resourceClaimTemplateName": "t"}]},
        False,
    ),
}


@pytest.mark.parametrize(("spec", "expected"), SPECS.values(), ids=SPECS)
def test_objects_of_its_own(spec: dict[str, Any], expected: bool) -> None:
    assert has_objects_of_its_own(make_pod(**spec)) is expected
