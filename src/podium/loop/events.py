"""The events and instructions of the loop, and the queueing hints that tell which pods an event may help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from podium.cluster import Cluster, Nodes, PodInfo
from podium.framework import Code, CycleState
from podium.framework.events import Action, ClusterEvent, EventHint, WaitingPod
from podium.framework.plugin import FilterPlugin, Plugin, PreFilterPlugin
from podium.loop.queued_pod import QueuedPod
from podium.manifests.decode import GROUP_OF
from podium.model import Namespace, Node, Object, Pod, PodGroup, StorageClass
from podium.model.pod_groups import Condition
from podium.model.resources import pod_resources
from podium.model.selectors import NO_SCHEDULE, any_tolerates
from podium.plugins import IN_TREE
from podium.plugins.node_affinity import NodeAffinity
from podium.plugins.node_name import NodeName
from podium.plugins.node_ports import NodePorts
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.plugins.pod_topology_spread import PodTopologySpread
from podium.plugins.storage.claims import WAIT_FOR_FIRST_CONSUMER
from podium.rules import Rules, has_hint


def pod_changes(old: Pod, new: Pod, rules: Rules) -> list[ClusterEvent]:
    """The events for an update of a pod; a general one if no known part changed."""
    actions = []
    if old.metadata.labels != new.metadata.labels:
        actions.append(Action.UPDATE_POD_LABEL)
    if _asks_for_less(old, new, rules):
        actions.append(Action.UPDATE_POD_SCALE_DOWN)
    if old.spec.scheduling_gates and not new.spec.scheduling_gates:
        actions.append(Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED)
    if len(old.spec.tolerations) != len(new.spec.tolerations):
        actions.append(Action.UPDATE_POD_TOLERATION)
    if _claims_made(old) != _claims_made(new):
        actions.append(Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM)
    return [ClusterEvent("Pod", action, old, new) for action in actions or [Action.UPDATE]]


def _claims_made(pod: Pod) -> object:
    """The claims created for a pod, if its status names them."""
    return pod.status.resource_claim_statuses, pod.status.extended_resource_claim_status


def node_changes(old: Node, new: Node, rules: Rules) -> list[ClusterEvent]:
    """The events for an update of a node; none if nothing relevant changed."""
    is_uncordoned = old.spec.unschedulable and not new.spec.unschedulable
    changed = {
        Action.UPDATE_NODE_ALLOCATABLE: old.allocatable != new.allocatable,
        Action.UPDATE_NODE_LABEL: old.metadata.labels != new.metadata.labels,
        Action.UPDATE_NODE_TAINT: old.spec.taints != new.spec.taints or is_uncordoned,
        Action.UPDATE_NODE_CONDITION: _conditions(old) != _conditions(new),
        Action.UPDATE_NODE_ANNOTATION: old.metadata.annotations != new.metadata.annotations,
        Action.UPDATE_NODE_DECLARED_FEATURE: old.status.declared_features != new.status.declared_features,
    }
    actions = [action for action, is_changed in changed.items() if is_changed]
    if not rules.node_updates_tell_all_changes:
        told = [action for action in actions if action <= Action.UPDATE_NODE_CONDITION]
        actions = [Action.UPDATE_NODE_TAINT] if is_uncordoned else told[:1]
    return [ClusterEvent("Node", action, old, new) for action in actions]


def object_change(old: Object | None, new: Object | None) -> ClusterEvent:
    """The event for a change of any other object."""
    kind = type(new if old is None else old).__name__
    if old is None:
        return ClusterEvent(kind, Action.ADD, None, new)
    return ClusterEvent(kind, Action.DELETE if new is None else Action.UPDATE, old, new)


def _asks_for_less(old: Pod, new: Pod, rules: Rules) -> bool:
    if old.spec == new.spec and old.status == new.status:
        return False
    before, after = pod_resources(old, rules).used, pod_resources(new, rules).used
    return any(amount > after.get(name, 0) for name, amount in before.items())


def _conditions(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def reaches_waiting_pods(event: ClusterEvent, rules: Rules) -> bool:
    """Whether a release tells waiting pods about this event at all."""
    if isinstance(event.new, StorageClass) and event.old is None:
        return rules.any_storage_class_is_told or event.new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    is_removed_node = isinstance(event.old, Node) and event.new is None
    return rules.removed_nodes_are_told or not is_removed_node


ASSIGNED, TARGET = "AssignedPod", "TargetPod"
"""kube-scheduler's metrics use these names for a pod with a node, and for a pod told of its own change."""


def label_of(event: ClusterEvent, pod: str) -> str:
    """The name of an event in kube-scheduler's metrics; `pod` is the name for the pod if the event is about one."""
    return _label(pod if event.resource == "Pod" else event.resource, event.action)


@lru_cache(None)
def _label(resource: str, action: Action) -> str:
    name = f"{GROUP_OF[resource]}/{resource}" if resource in GROUP_OF else resource
    return name + "".join(word.capitalize() for word in (action.name or "").split("_"))


class EventType(StrEnum):
    ADD = "add"
    UPDATE = "update"
    DELETE = "delete"


class Event(NamedTuple):
    """An object was added, changed or deleted. For a deletion, its kind, namespace and name suffice."""

    type: EventType
    object: Object


class Bind(NamedTuple):
    """Bind the pod to the node. The loop expects an update of the pod, or a call of `bind_failed`."""

    pod: Pod
    node: str
    attempts: int


class Evict(NamedTuple):
    """Delete a pod to make room for another one; the loop expects the event of the deletion."""

    pod: Pod
    by: Pod
    node: str
    group: PodGroup | None = None
    """The group that `by` belongs to, if room is made for a whole group; `node` is empty then."""


class Nominate(NamedTuple):
    """Write to the pod's status that it waits for room on a node; an empty name clears that."""

    pod: Pod
    node: str


class Unschedulable(NamedTuple):
    """Write to the pod's status that it was tried, and why it could not be placed."""

    pod: Pod
    message: str
    plugins: tuple[str, ...]
    """The plugins that rejected it, sorted; empty if there was an error instead."""
    is_error: bool
    failed_plugin: str = ""
    """The plugin behind the error; empty if it was not a plugin."""


class ChangeObject(NamedTuple):
    """Change an object, or delete it if `after` is None, so that the pod may fit next time; the loop expects
    the event.
    """

    pod: Pod
    before: Object
    after: Object | None


class Wait(NamedTuple):
    """The pod has a node, but waits at Permit: nothing to do. `until` is the latest time in seconds."""

    pod: Pod
    node: str
    plugins: tuple[str, ...]
    until: float


class SetCondition(NamedTuple):
    """Write a condition to the status of a PodGroup; the loop expects the event of the update."""

    pod: Pod
    """The first pod of the group."""
    group: PodGroup
    condition: Condition


Instruction = Bind | ChangeObject | Evict | Nominate | SetCondition | Unschedulable | Wait


class PluginHints:
    """The events that one plugin of a profile registered; if it registered none, any event may help."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        self.goes_by_spec = IN_TREE.get(plugin.name) is type(plugin)
        """Whether pods with equal specs get the same answer: in-tree plugins read nothing else of a pod."""
        events = plugin.events_to_register()
        self._events = None if events is None else self._of_release(events)

    def _of_release(self, events: Sequence[EventHint]) -> Sequence[EventHint]:
        """The events and hints as the plugin's release registers them."""
        name, rules = self.plugin.name, self.plugin.release_rules
        if self.goes_by_spec:
            events = [each if has_hint(name, each.resource, rules) else each.without_hint for each in events]
        adds_taints = rules.taints_stand_for_added_nodes and not rules.node_events_are_as_registered
        return with_node_taints(events) if adds_taints else events

    def is_interested(self, event: ClusterEvent) -> bool:
        """Whether the plugin registered for this event."""
        return self._events is None or any(each.matches(event) for each in self._events)

    def may_help(self, waiting: WaitingPod, event: ClusterEvent) -> bool:
        """Whether the event, for which the plugin registered, may make a pod fit that it rejected."""
        if self._events is None or not self.plugin.release_rules.queueing_hints:
            return True
        matching = (each for each in self._events if each.matches(event))
        return any(each.hint(waiting, event.old, event.new) for each in matching)


def with_node_taints(events: Sequence[EventHint]) -> tuple[EventHint, ...]:
    """The events, plus changes of node taints if added nodes are among them, as in kube-scheduler."""
    of_nodes = [each.actions for each in events if each.resource == "Node"]
    if any(actions & Action.ADD for actions in of_nodes) and not any(a & Action.UPDATE_NODE_TAINT for a in of_nodes):
        return (*events, EventHint("Node", Action.UPDATE_NODE_TAINT))
    return tuple(events)


# -- whom a release asks -------------------------------------------------------------------------------------------

RequeueFilter = Callable[[QueuedPod], bool]
"""Whether a waiting pod is told about an event."""

CHECKED: tuple[type[FilterPlugin], ...] = (NodeResourcesFit, NodeAffinity, NodeName, NodePorts)
"""Without hints, a node must pass the filters of these plugins before a pod is told about it."""


def pods_to_requeue_for_node(node: Node, cluster: Cluster, rules: Rules) -> RequeueFilter | None:
    """Which waiting pods are told about a new or changed node: all (None) or, before hints, those that might fit it."""
    if rules.queueing_hints and rules.node_updates_name_their_part:
        return None
    plugins = [plugin.of_release(rules) for plugin in CHECKED]
    nodes = Nodes(cluster, np.array([cluster.rows[node.name]]))
    known: dict[PodInfo, bool] = {}

    def passes(queued: QueuedPod) -> bool:
        if queued.info not in known:
            known[queued.info] = _fits(queued, plugins, nodes) and not any(
                taint.effect == NO_SCHEDULE and not any_tolerates(queued.pod.spec.tolerations, taint)
                for taint in node.spec.taints
            )
        return known[queued.info]

    return passes


def _fits(queued: QueuedPod, plugins: Sequence[FilterPlugin], nodes: Nodes) -> bool:
    state = CycleState(queued.info)
    for plugin in plugins:
        if isinstance(plugin, PreFilterPlugin):
            found = plugin.pre_filter(state, queued.pod, nodes)
            if found.status.code is Code.SKIP:
                continue
        if plugin.filter(state, queued.pod, nodes).codes.any():
            return False
    return True


def pods_to_requeue_for_pod(pod: Pod, cluster: Cluster, rules: Rules) -> RequeueFilter | None:
    """Which waiting pods are told about a new or changed pod on a node: all (None), or those with affinity to it."""
    if rules.added_pods_may_help_anyone:
        return None
    namespace = cluster.store.of(Namespace).get(pod.namespace)
    of_namespace = namespace.metadata.labels if namespace else {}

    def is_related(queued: QueuedPod) -> bool:
        spreads = rules.added_pods_help_spreading and PodTopologySpread.name in queued.unschedulable_plugins
        if spreads and queued.pod.namespace == pod.namespace:
            return True
        terms = queued.info.terms.required_affinity
        return any(term.matches(pod.namespace, pod.metadata.labels, of_namespace) for term in terms)

    return is_related
