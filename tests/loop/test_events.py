"""What an update amounts to for those who wait, which releases tell them, and what metrics call it."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_node, make_object, make_pod
from podium.framework import Action, ClusterEvent, EventHint
from podium.loop.events import (
    ASSIGNED,
    label_of,
    node_changes,
    object_change,
    pod_changes,
    reaches_waiting_pods,
    with_node_taints,
)
from podium.model import Node, Pod
from podium.rules import NEWEST_RULES, rules_of

POD = make_pod("p", labels={"app": "web"}, requests={"cpu": "2"})
GATED = make_pod("p", labels={"app": "web"}, requests={"cpu": "2"}, scheduling_gates=[{"name": "g"}])
TOLERANT = [{"key": "k", "operator": "Exists"}]

PODS: dict[str, tuple[Pod, Pod, Action]] = {
    "labels": (POD, make_pod("p", labels={"app": "db"}, requests={"cpu": "2"}), Action.UPDATE_POD_LABEL),
    "less cpu": (POD, make_pod("p", labels={"app": "web"}, requests={"cpu": "1"}), Action.UPDATE_POD_SCALE_DOWN),
    "more cpu": (POD, make_pod("p", labels={"app": "web"}, requests={"cpu": "3"}), Action.UPDATE),
    "a gate less": (GATED, POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),
    "a gate more": (POD, GATED, Action.UPDATE),
    "a toleration": (
        POD,
        make_pod("p", labels={"app": "web"}, requests={"cpu": "2"}, tolerations=TOLERANT),
        Action.UPDATE_POD_TOLERATION,
    ),
    "nothing": (POD, POD, Action.UPDATE),
}


@pytest.mark.parametrize(("old", "new", "action"), PODS.values(), ids=PODS)
def test_an_update_of_a_pod_names_what_changed(old: Pod, new: Pod, action: Action) -> None:
    assert pod_changes(old, new, NEWEST_RULES) == [ClusterEvent("Pod", action, old, new)]


def test_an_update_of_a_pod_may_be_several_events() -> None:
    changed = make_pod("p", requests={"cpu": "1"})

    assert [event.action for event in pod_changes(POD, changed, NEWEST_RULES)] == [
        Action.UPDATE_POD_LABEL,
        Action.UPDATE_POD_SCALE_DOWN,
    ]


NODE = make_node("n", cpu="4", labels={"zone": "a"})


def ready(node: Node) -> Node:
    made = make_object("Node", "x", status={"conditions": [{"type": "Ready", "status": "True"}]})
    assert isinstance(made, Node)
    return replace(node, status=replace(node.status, conditions=made.status.conditions))


CORDONED = make_node("n", cpu="4", labels={"zone": "a"}, unschedulable=True)
TAINTED = make_node("n", cpu="4", labels={"zone": "a"}, taints=["k=v:NoSchedule"])
NODES: dict[str, tuple[Node, Node, list[Action]]] = {
    "allocatable": (NODE, make_node("n", cpu="8", labels={"zone": "a"}), [Action.UPDATE_NODE_ALLOCATABLE]),
    "labels": (NODE, make_node("n", cpu="4"), [Action.UPDATE_NODE_LABEL]),
    "taints": (NODE, TAINTED, [Action.UPDATE_NODE_TAINT]),
    "conditions": (NODE, ready(NODE), [Action.UPDATE_NODE_CONDITION]),
    "uncordoned": (CORDONED, NODE, [Action.UPDATE_NODE_TAINT]),
    "cordoned": (NODE, CORDONED, []),
    "nothing": (NODE, NODE, []),
}


@pytest.mark.parametrize(("old", "new", "actions"), NODES.values(), ids=NODES)
@pytest.mark.parametrize("release", ["v1.29", "v1.37"])
def test_an_update_of_a_node_names_what_changed(old: Node, new: Node, actions: list[Action], release: str) -> None:
    assert [event.action for event in node_changes(old, new, rules_of(release))] == actions


def test_older_releases_name_one_change_of_a_node() -> None:
    changed = make_node("n", cpu="8", taints=["k=v:NoSchedule"])
    uncordoned = make_node("n", cpu="8")

    assert [event.action for event in node_changes(NODE, changed, NEWEST_RULES)] == [
        Action.UPDATE_NODE_ALLOCATABLE,
        Action.UPDATE_NODE_LABEL,
        Action.UPDATE_NODE_TAINT,
    ]
    older = rules_of("v1.29")
    assert [event.action for event in node_changes(NODE, changed, older)] == [Action.UPDATE_NODE_ALLOCATABLE]
    assert [event.action for event in node_changes(CORDONED, uncordoned, older)] == [Action.UPDATE_NODE_TAINT]


SERVICE, OTHER = make_object("Service", "s", namespace="default"), make_object("Service", "s", namespace="other")


def test_other_objects_come_change_and_go() -> None:
    assert object_change(None, SERVICE) == ClusterEvent("Service", Action.ADD, None, SERVICE)
    assert object_change(SERVICE, OTHER) == ClusterEvent("Service", Action.UPDATE, SERVICE, OTHER)
    assert object_change(SERVICE, None) == ClusterEvent("Service", Action.DELETE, SERVICE, None)


def storage_class(mode: str) -> ClusterEvent:
    made = make_object("StorageClass", "fast", volume_binding_mode=mode, provisioner="csi.example.com")
    return object_change(None, made)


TOLD: dict[str, tuple[ClusterEvent, str, bool]] = {
    "a removed node, earlier": (object_change(NODE, None), "v1.31", False),
    "a removed node": (object_change(NODE, None), "v1.32", True),
    "a new node, earlier": (object_change(None, NODE), "v1.31", True),
    "a class that waits": (storage_class("WaitForFirstConsumer"), "v1.29", True),
    "a class that does not wait": (storage_class("Immediate"), "v1.29", False),
}


@pytest.mark.parametrize(("event", "release", "is_heard"), TOLD.values(), ids=TOLD)
def test_releases_differ_in_what_they_tell(event: ClusterEvent, release: str, is_heard: bool) -> None:
    assert reaches_waiting_pods(event, rules_of(release)) == is_heard


LABELS: dict[str, tuple[Any, Any, str]] = {
    "AssignedPodUpdatePodLabel": (POD, make_pod("p", requests={"cpu": "2"}), ASSIGNED),
    "UnscheduledPodUpdate": (POD, POD, "UnscheduledPod"),
}


@pytest.mark.parametrize(("label", "case"), LABELS.items(), ids=LABELS)
def test_metrics_call_a_pod_what_it_is(label: str, case: tuple[Pod, Pod, str]) -> None:
    old, new, pod = case
    (event,) = pod_changes(old, new, NEWEST_RULES)
    assert label_of(event, pod) == label


def test_metrics_name_other_kinds_as_they_are() -> None:
    assert label_of(object_change(None, NODE), ASSIGNED) == "NodeAdd"
    assert label_of(storage_class("Immediate"), ASSIGNED) == "storage.k8s.io/StorageClassAdd"


def test_who_hears_of_new_nodes_hears_of_their_taints() -> None:
    added, labelled = EventHint("Node", Action.ADD), EventHint("Node", Action.UPDATE_NODE_LABEL)
    taints = EventHint("Node", Action.UPDATE_NODE_TAINT)

    assert with_node_taints([added]) == (added, taints)
    assert with_node_taints([added, taints]) == (added, taints)
    assert with_node_taints([labelled]) == (labelled,)
