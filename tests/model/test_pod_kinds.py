"""Which pods belong to their node, and which have objects that go by their name."""

from __future__ import annotations

from typing import Any

import pytest

from builders import make_pod
from podium.model import Pod
from podium.model.pod import belongs_to_node, has_objects_of_its_own, is_static


def owned_by(kind: str) -> Pod:
    return make_pod(owner={"kind": kind, "name": "owner"})


PODS: dict[str, tuple[Pod, bool, bool]] = {
    "bare": (make_pod(), False, False),
    "of a ReplicaSet": (owned_by("ReplicaSet"), False, False),
    "of a DaemonSet": (owned_by("DaemonSet"), True, False),
    "of a Node": (owned_by("Node"), True, True),
    "mirror": (make_pod(mirror=True), True, True),
}


@pytest.mark.parametrize(("pod", "belongs", "static"), PODS.values(), ids=PODS)
def test_belonging_to_a_node(pod: Pod, belongs: bool, static: bool) -> None:
    assert (belongs_to_node(pod), is_static(pod)) == (belongs, static)


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
