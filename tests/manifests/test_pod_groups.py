from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium.errors import InputError
from podium.manifests import load
from podium.model import PodGroup


def document(version: str = "v1beta1", **spec: Any) -> dict[str, Any]:
    spec = {"schedulingPolicy": {"basic": {}}, **spec}
    return {
        "apiVersion": f"scheduling.k8s.io/{version}",
        "kind": "PodGroup",
        "metadata": {"name": "g"},
        "spec": spec,
    }


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"schedulingPolicy": {"gang": {"minCount": 0}}}, r"gang.minCount: must be 1 or more, got 0"),
        ({"schedulingPolicy": {}}, "exactly one of basic and gang must be set"),
        ({"schedulingPolicy": {"basic": {}, "gang": {"minCount": 1}}}, "exactly one of basic and gang must be set"),
        ({"disruptionMode": {}}, "exactly one of single and all must be set"),
        ({"schedulingConstraints": {"topology": [{"key": "a"}, {"key": "b"}]}}, "at most 1 entry"),
        ({"schedulingConstraints": {"topology": [{"key": "a b"}]}}, r"topology\[0\].key: name part must consist"),
        ({"priority": 1_000_000_001}, "must be 1000000000 or less"),
        ({"preemptionPolicy": "Sometimes"}, "must be PreemptLowerPriority or Never"),
        ({"resourceClaims": [{"name": str(n)} for n in range(5)]}, "at most 4 entries"),
    ],
)
def test_what_the_api_server_refuses(spec: dict[str, Any], problem: str, tmp_path: Path) -> None:
    file = tmp_path / "group.json"
    file.write_text(json.dumps(document(**spec)), encoding="utf-8")
    with pytest.raises(InputError, match=problem):
        load(str(file))


def test_the_priority_is_that_of_the_class() -> None:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    (group,) = load([kind, document(priorityClassName="high")]).of(PodGroup)
    assert group.priority == 7


def test_the_shape_of_an_older_version() -> None:
    (group,) = load([document("v1alpha2", disruptionMode="PodGroup")]).of(PodGroup)
    assert group.is_disrupted_together


def test_warnings() -> None:
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p", "namespace": "other"},
        "spec": {"schedulingGroup": {"podGroupName": "g"}, "containers": [{"name": "c", "image": "i"}]},
    }
    queue = {"apiVersion": "kueue.x-k8s.io/v1beta2", "kind": "ClusterQueue", "metadata": {"name": "q"}}
    composite = {
        "apiVersion": "scheduling.k8s.io/v1alpha3",
        "kind": "CompositePodGroup",
        "metadata": {"name": "c"},
    }
    assert load([document(), pod, queue, composite]).warnings == (
        "input: CompositePodGroup default/c: groups of groups are not modelled; left out",
        "objects of kueue.x-k8s.io are not read: Kueue admits workloads by quota before the scheduler sees them, which "
        "is not modelled",
        "PodGroup other/g not in the input: with GenericWorkload on, 1 pod, such as other/p, would wait for it",
    )
