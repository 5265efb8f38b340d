from __future__ import annotations

import pytest

from podium.manifests import load
from podium.model import Pod

from .objects import Fields, doc

HIGH = doc("PriorityClass", "high", value=1000, preemptionPolicy="Never")
LOW = doc("PriorityClass", "low", value=10)
DEFAULT = doc("PriorityClass", "usual", value=5, globalDefault=True)
LOWER_DEFAULT = doc("PriorityClass", "less", value=3, globalDefault=True, preemptionPolicy="Never")

LOWER = "PreemptLowerPriority"


@pytest.mark.parametrize(
    ("spec", "classes", "expected"),
    [
        ({}, [], (0, LOWER, "")),
        ({}, [HIGH], (0, LOWER, "")),
        ({"priorityClassName": "high"}, [HIGH, LOW], (1000, "Never", "high")),
        ({"priorityClassName": "low"}, [HIGH, LOW], (10, LOWER, "low")),
        ({"priorityClassName": "low"}, [LOW, DEFAULT], (10, LOWER, "low")),
        ({}, [LOW, DEFAULT], (5, LOWER, "usual")),
        ({}, [DEFAULT, LOWER_DEFAULT], (3, "Never", "less")),
        ({"priorityClassName": "system-cluster-critical"}, [], (2_000_000_000, LOWER, "system-cluster-critical")),
        ({"priorityClassName": "system-node-critical"}, [], (2_000_001_000, LOWER, "system-node-critical")),
        # A pod that has a priority came through admission already.
        ({"priority": 7, "priorityClassName": "high"}, [HIGH], (7, None, "high")),
        ({"priority": 0}, [DEFAULT], (0, None, "")),
        ({"preemptionPolicy": "Never"}, [], (0, "Never", "")),
    ],
)
def test_pods_get_the_priority_of_their_class(
    spec: Fields, classes: list[Fields], expected: tuple[int, str | None, str]
) -> None:
    # The order of the input does not matter.
    for documents in ([doc("Pod", "web", spec=spec), *classes], [*classes, doc("Pod", "web", spec=spec)]):
        objects = load(documents)
        (pod,) = objects.of(Pod)

        assert (pod.spec.priority, pod.spec.preemption_policy, pod.spec.priority_class_name) == expected
        assert objects.warnings == ()


def test_a_missing_class_is_said_once() -> None:
    objects = load([doc("Pod", name, spec={"priorityClassName": "gone"}) for name in ("a", "b")])

    assert [pod.spec.priority for pod in objects.of(Pod)] == [0, 0]
    assert objects.warnings == ("PriorityClass gone is not in the input: priority 0 assumed for the pods that name it",)


def test_a_missing_class_does_not_matter_to_a_pod_that_has_a_priority() -> None:
    assert load(doc("Pod", "a", spec={"priorityClassName": "gone", "priority": 7})).warnings == ()
