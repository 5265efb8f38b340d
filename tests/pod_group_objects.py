"""Builders of PodGroups and their pods."""

from __future__ import annotations

from typing import Any

from builders import make_pod
from podium.engine.release import release_of
from podium.manifests import load
from podium.model import Pod, PodGroup

RELEASE = release_of("v1.37").with_feature_gates({"GenericWorkload": True})
"""v1.37 with groups of pods."""
WITH_PLACEMENTS = RELEASE.with_feature_gates({"TopologyAwareWorkloadScheduling": True})


def make_group(name: str = "g", min_count: int | None = None, **spec: Any) -> PodGroup:
    """A gang that needs so many pods; a basic group without a number."""
    policy = {"basic": {}} if min_count is None else {"gang": {"minCount": min_count}}
    document = {
        "apiVersion": "scheduling.k8s.io/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": name, "namespace": "default", "generation": 1},
        "spec": {"schedulingPolicy": policy, **spec},
    }
    (group,) = load([document]).of(PodGroup)
    return group


def make_member(name: str, group: str = "g", **fields: Any) -> Pod:
    """A pod of a group that asks for one cpu."""
    asked = {"requests": {"cpu": "1"}, **fields}
    return make_pod(name, schedulingGroup={"podGroupName": group}, **asked)
