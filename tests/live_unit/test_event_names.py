"""What events are called in the metrics: as kube-scheduler v1.37 calls them."""

from __future__ import annotations

import pytest

from builders import make_node, make_object, make_pod
from podium.live.metrics import event_labels
from podium.loop import Event, EventType
from podium.model import Object
from podium.rules import NEWEST_RULES

NODE, POD, BOUND = make_node("a"), make_pod("p"), make_pod("p", node="a")
CLASS = make_object("StorageClass", "fast", provisioner="x")
CASES: dict[str, tuple[EventType, Object, Object | None, list[str]]] = {
    "a node comes": (EventType.ADD, NODE, None, ["NodeAdd"]),
    "a node goes": (EventType.DELETE, NODE, NODE, ["NodeDelete"]),
    "a node grows and gets a label": (
        EventType.UPDATE,
        make_node("a", cpu="9", labels={"disk": "ssd"}),
        NODE,
        ["NodeUpdateNodeAllocatable", "NodeUpdateNodeLabel"],
    ),
    "a node says that it is alive": (EventType.UPDATE, NODE, NODE, []),
    "a pod comes": (EventType.ADD, POD, None, ["UnscheduledPodAdd"]),
    "a pod that waits changes": (
        EventType.UPDATE,
        make_pod("p", labels={"app": "web"}),
        POD,
        ["UnscheduledPodUpdate", "UnscheduledPodUpdatePodLabel"],
    ),
    "a pod is bound": (EventType.UPDATE, BOUND, POD, ["AssignedPodAdd", "UnscheduledPodDelete"]),
    "a pod on a node changes": (EventType.UPDATE, BOUND, BOUND, ["AssignedPodUpdate"]),
    "a pod on a node goes": (EventType.DELETE, BOUND, BOUND, ["AssignedPodDelete"]),
    "a pod that waits goes": (EventType.DELETE, POD, POD, ["UnscheduledPodDelete"]),
    "a storage class comes": (EventType.ADD, CLASS, None, ["storage.k8s.io/StorageClassAdd"]),
    "a storage class changes": (EventType.UPDATE, CLASS, CLASS, ["storage.k8s.io/StorageClassUpdate"]),
    "a service comes": (EventType.ADD, make_object("Service", "s"), None, []),
}


@pytest.mark.parametrize(("type_", "item", "old", "labels"), CASES.values(), ids=CASES)
def test_events_are_called(type_: EventType, item: Object, old: Object | None, labels: list[str]) -> None:
    assert list(event_labels(Event(type_, item), old, NEWEST_RULES)) == labels


@pytest.mark.parametrize(
    ("item", "old", "labels"),
    [(POD, None, []), (POD, POD, []), (BOUND, POD, ["AssignedPodAdd"])],
    ids=["comes", "changes", "is bound"],
)
def test_a_pod_of_another_scheduler_counts_once_it_has_a_node(
    item: Object, old: Object | None, labels: list[str]
) -> None:
    event = Event(EventType.UPDATE if old else EventType.ADD, item)
    assert list(event_labels(event, old, NEWEST_RULES, is_ours=False)) == labels
