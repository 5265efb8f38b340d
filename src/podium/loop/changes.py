"""What an update of a pod or node changed, as far as it may make waiting pods fit."""

from __future__ import annotations

from podium.framework.events import Action, ClusterEvent
from podium.objects import Node, Object, Pod
from podium.resources import pod_resources


def pod_changes(old: Pod, new: Pod) -> list[ClusterEvent]:
    """The events an update of a pod amounts to; a general one if it is nothing in particular."""
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if _asks_for_less(old, new):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    return [ClusterEvent("Pod", action, old, new) for action in actions or [Action.UPDATE]]


def node_changes(old: Node, new: Node) -> list[ClusterEvent]:
    """The events an update of a node amounts to; none if nothing changed that matters."""
    changed = {
        Action.UPDATE_NODE_ALLOCATABLE: old.allocatable != new.allocatable,
        Action.UPDATE_NODE_LABEL: old.metadata.labels != new.metadata.labels,
        Action.UPDATE_NODE_TAINT: old.spec.taints != new.spec.taints
        or (old.spec.unschedulable and not new.spec.unschedulable),
        Action.UPDATE_NODE_CONDITION: _conditions(old) != _conditions(new),
        Action.UPDATE_NODE_ANNOTATION: old.metadata.annotations != new.metadata.annotations,
        Action.UPDATE_NODE_DECLARED_FEATURE: old.status.declared_features != new.status.declared_features,
    }
    return [ClusterEvent("Node", action, old, new) for action, is_changed in changed.items() if is_changed]


def object_change(old: Object | None, new: Object | None) -> ClusterEvent:
    """The event that a change of any other object is."""
    kind = type(new if old is None else old).__name__
    if old is None:
        return ClusterEvent(kind, Action.ADD, None, new)
    return ClusterEvent(kind, Action.DELETE if new is None else Action.UPDATE, old, new)


def _asks_for_less(old: Pod, new: Pod) -> bool:
    if old.spec == new.spec and old.status == new.status:
        return False
    before, after = pod_resources(old).used, pod_resources(new).used
    return any(amount > after.get(name, 0) for name, amount in before.items())


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}
