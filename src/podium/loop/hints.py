"""Which events may help a waiting pod: the queueing hints of the plugins of a profile."""

from __future__ import annotations

from collections.abc import Sequence

from podium.framework.events import Action, ClusterEvent, EventHint, WaitingPod
from podium.framework.plugin import Plugin
from podium.plugins import IN_TREE


class PluginHints:
    """The events that one plugin of a profile registered; any event may help where it registered none."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        events = plugin.events_to_register()
        self._events = None if events is None else with_node_taints(events)
        self.goes_by_spec = IN_TREE.get(plugin.name) is type(plugin)
        """Whether pods with equal specs get the same answer: in-tree plugins look at nothing else of a pod."""

    def is_interested(self, event: ClusterEvent) -> bool:
        """Whether the plugin registered for such an event."""
        return self._events is None or any(each.matches(event) for each in self._events)

    def may_help(self, waiting: WaitingPod, event: ClusterEvent) -> bool:
        """Whether the event, which the plugin registered for, may make a pod fit that it rejected."""
        if self._events is None or not self.plugin.release_rules.queueing_hints:
            return True
        matching = (each for each in self._events if each.matches(event))
        return any(each.hint(waiting, event.old, event.new) for each in matching)


def with_node_taints(events: Sequence[EventHint]) -> tuple[EventHint, ...]:
    """The events, and changes of node taints where nodes that are added count; kube-scheduler adds these, too."""
    of_nodes = [each.actions for each in events if each.resource == "Node"]
    if any(actions & Action.ADD for actions in of_nodes) and not any(a & Action.UPDATE_NODE_TAINT for a in of_nodes):
        return (*events, EventHint("Node", Action.UPDATE_NODE_TAINT))
    return tuple(events)
