"""Queueing hints: which events may help the pods that a plugin rejected, for each plugin as kube-scheduler has it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from podium.cluster.pods import HostPort, Term, affinity_terms, host_ports
from podium.cluster.ports import ANY_IP
from podium.config.plugin_args import SYSTEM_DEFAULTING, NodeAffinityArgs, PodTopologySpreadArgs
from podium.framework.events import Action, ClusterEvent
from podium.framework.plugin import Plugin
from podium.loop.device_hints import DEVICE_HINTS
from podium.loop.registration import Registration, Rejected, always, is_placed, never
from podium.loop.storage_hints import STORAGE_HINTS
from podium.model import Node, Pod, Taint
from podium.model.resources import PODS, node_allocatable, pod_resources
from podium.model.selectors import (
    Selector,
    any_tolerates,
    label_selector,
    node_terms,
    required_node_affinity,
    untolerated,
)
from podium.plugins import IN_TREE
from podium.plugins.default_selector import default_selector
from podium.plugins.node_declared_features import required_features

ADD, DELETE = Action.ADD, Action.DELETE
UNSCHEDULABLE_TAINT = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
DO_NOT_SCHEDULE = "DoNotSchedule"


def about_itself(rejected: Rejected, old: Pod | None, new: Pod) -> bool:
    return rejected.is_same(new)


# -- NodeResourcesFit ------------------------------------------------------------------------------------------------


def frees_resources(rejected: Rejected, old: Pod, new: Pod | None) -> bool:
    """A pod went away, or asks for less of what the waiting one asks for."""
    if new is None:
        return is_placed(old)
    if rejected.is_same(new):
        return True
    if not new.spec.node_name:
        return False
    before, after = pod_resources(old).used, pod_resources(new).used
    wanted = rejected.info.resources.requests
    return any(amount and before.get(name, 0) > after.get(name, 0) for name, amount in wanted.items())


def offers_resources(rejected: Rejected, old: Node | None, new: Node) -> bool:
    """The pod would fit the node if that were empty, and if it was there before, it has more of something now."""
    wanted = {name: amount for name, amount in rejected.info.resources.requests.items() if amount}
    offered = node_allocatable(new)
    if offered[PODS] < 1 or any(amount > offered.get(name, 0) for name, amount in wanted.items()):
        return False
    if old is None:
        return True
    before = node_allocatable(old)
    return any(offered.get(name, 0) > before.get(name, 0) for name in (PODS, *wanted))


# -- nodes: NodeAffinity, NodeUnschedulable, TaintToleration, NodeDeclaredFeatures -------------------------------------


def matches_affinity_now(rejected: Rejected, old: Node | None, new: Node) -> bool:
    added = rejected.plugin.args.added_affinity if isinstance(rejected.plugin.args, NodeAffinityArgs) else None
    if added is not None and added.required is not None:
        terms = node_terms(added.required)
        if not any(term.matches(new.metadata.labels, new.name) for term in terms):
            return False
    wanted = required_node_affinity(rejected.pod)
    if not wanted.matches(new.metadata.labels, new.name):
        return False
    return old is None or not wanted.matches(old.metadata.labels, old.name)


def is_uncordoned(rejected: Rejected, old: Node | None, new: Node) -> bool:
    return not new.spec.unschedulable and (old is None or old.spec.unschedulable)


def tolerates_cordons(rejected: Rejected, old: Pod, new: Pod) -> bool:
    return rejected.is_same(new) and any_tolerates(new.spec.tolerations, UNSCHEDULABLE_TAINT)


def is_tolerated_now(rejected: Rejected, old: Node | None, new: Node) -> bool:
    tolerations = rejected.pod.spec.tolerations
    was_repelled = old is None or untolerated(old.spec.taints, tolerations) is not None
    return was_repelled and untolerated(new.spec.taints, tolerations) is None


def declares_other_features(rejected: Rejected, old: Node | None, new: Node) -> bool:
    return old is None or old.status.declared_features != new.status.declared_features


def needs_other_features(rejected: Rejected, old: Pod, new: Pod) -> bool:
    return rejected.is_same(new) and required_features(old) != required_features(new)


# -- NodePorts -------------------------------------------------------------------------------------------------------


def frees_ports(rejected: Rejected, old: Pod, new: None) -> bool:
    return is_placed(old) and any(
        _conflict(freed, wanted) for freed in host_ports(old) for wanted in rejected.info.ports
    )


def _conflict(one: HostPort, other: HostPort) -> bool:
    same_port = (one.protocol, one.port) == (other.protocol, other.port)
    return same_port and (one.ip == other.ip or ANY_IP in (one.ip, other.ip))


# -- InterPodAffinity ------------------------------------------------------------------------------------------------


def changes_affinity(rejected: Rejected, old: Pod | None, new: Pod | None) -> bool:
    """A pod came that the waiting one wants to be with, or one went that either does not want to be with."""
    if old is not None and rejected.is_same(new):
        return True
    if any(pod is not None and not is_placed(pod) for pod in (old, new)):
        return False
    terms = rejected.info.terms
    if old is not None and new is not None:
        comes = _meets_all(terms.required_affinity, new) and not _meets_all(terms.required_affinity, old)
        leaves = _meets_all(terms.required_anti_affinity, old) and not _meets_all(terms.required_anti_affinity, new)
        return comes or leaves
    if new is not None:
        return _meets_all(terms.required_affinity, new)
    assert old is not None
    if _meets_all(terms.required_anti_affinity, old):
        return True
    return _meets_all(affinity_terms(old).required_anti_affinity, rejected.pod)


def _meets_all(terms: tuple[Term, ...], pod: Pod) -> bool:
    # The scheduler asks without the labels of the pod's namespace here.
    return bool(terms) and all(term.matches(pod.namespace, pod.metadata.labels, {}) for term in terms)


def changes_topology(rejected: Rejected, old: Node | None, new: Node) -> bool:
    """A node joined or moved to another domain of one of the pod's terms."""
    after = new.metadata.labels
    required, anti = rejected.info.terms.required_affinity, rejected.info.terms.required_anti_affinity
    if old is None:
        return bool(anti) or any(term.topology_key in after for term in required)
    before = old.metadata.labels
    joins = any(t.topology_key in after and before.get(t.topology_key) != after[t.topology_key] for t in required)
    return joins or any(t.topology_key in before and before[t.topology_key] != after.get(t.topology_key) for t in anti)


# -- PodTopologySpread -----------------------------------------------------------------------------------------------


class _Spread(NamedTuple):
    topology_key: str
    selector: Selector
    honors_taints: bool


def changes_spread(rejected: Rejected, old: Pod | None, new: Pod | None) -> bool:
    """A pod that the waiting one spreads against came, went or changed its labels."""
    pods = [pod for pod in (old, new) if pod is not None]
    if not all(_is_involved(rejected, pod) for pod in pods):
        return False
    constraints = _hard_constraints(rejected)
    if old is None or new is None:
        return any(spread.selector.matches(pods[0].metadata.labels) for spread in constraints)
    gained_toleration = rejected.is_same(new) and old.spec.tolerations != new.spec.tolerations
    if gained_toleration and any(spread.honors_taints for spread in constraints):
        return True
    before, after = old.metadata.labels, new.metadata.labels
    return any(spread.selector.matches(before) != spread.selector.matches(after) for spread in constraints)


def _is_involved(rejected: Rejected, pod: Pod) -> bool:
    return rejected.is_same(pod) or (is_placed(pod) and pod.namespace == rejected.pod.namespace)


def changes_domains(rejected: Rejected, old: Node | None, new: Node | None) -> bool:
    """A node with all of the constraints' labels came, went or changed."""
    constraints = _hard_constraints(rejected)
    keys = [spread.topology_key for spread in constraints]
    counted_before = old is not None and all(key in old.metadata.labels for key in keys)
    counted_after = new is not None and all(key in new.metadata.labels for key in keys)
    if old is None or new is None:
        return counted_before or counted_after
    if counted_before != counted_after:
        return True
    moved = any(old.metadata.labels.get(key) != new.metadata.labels.get(key) for key in keys)
    return counted_after and (moved or old.spec.taints != new.spec.taints)


def _hard_constraints(rejected: Rejected) -> list[_Spread]:
    pod, args = rejected.pod, rejected.plugin.args
    own = pod.spec.topology_spread_constraints
    if own:
        return [
            _Spread(raw.topology_key, label_selector(raw.label_selector), raw.node_taints_policy == "Honor")
            for raw in own
            if raw.when_unsatisfiable == DO_NOT_SCHEDULE
        ]
    # The system's own defaults are all soft.
    listed = isinstance(args, PodTopologySpreadArgs) and args.defaulting_type != SYSTEM_DEFAULTING
    defaults = args.default_constraints if isinstance(args, PodTopologySpreadArgs) and listed else ()
    hard = [raw for raw in defaults if raw.when_unsatisfiable == DO_NOT_SCHEDULE]
    selector = default_selector(pod, rejected.cluster) if hard else Selector()
    return [] if selector.empty else [_Spread(raw.topology_key, selector, False) for raw in hard]


HINTS: dict[str, tuple[Registration, ...]] = {
    "DefaultPreemption": (Registration("Pod", DELETE, never),),
    "InterPodAffinity": (
        Registration("Pod", ADD | Action.UPDATE_POD_LABEL | DELETE, changes_affinity),
        Registration("Node", ADD | Action.UPDATE_NODE_LABEL, changes_topology),
    ),
    "NodeAffinity": (Registration("Node", ADD | Action.UPDATE_NODE_LABEL, matches_affinity_now),),
    "NodeDeclaredFeatures": (
        Registration("Node", ADD | Action.UPDATE_NODE_DECLARED_FEATURE, declares_other_features),
        Registration("Pod", Action.UPDATE, needs_other_features),
    ),
    "NodeName": (Registration("Node", ADD),),
    "NodePorts": (Registration("Pod", DELETE, frees_ports), Registration("Node", ADD)),
    "NodeResourcesFit": (
        Registration("Pod", DELETE | Action.UPDATE_POD_SCALE_DOWN, frees_resources),
        Registration("Node", ADD | Action.UPDATE_NODE_ALLOCATABLE, offers_resources),
    ),
    "NodeUnschedulable": (
        Registration("Node", ADD | Action.UPDATE_NODE_TAINT, is_uncordoned),
        Registration("Pod", Action.UPDATE_POD_TOLERATION, tolerates_cordons),
    ),
    "PodTopologySpread": (
        Registration("Pod", ADD | Action.UPDATE_POD_LABEL | Action.UPDATE_POD_TOLERATION | DELETE, changes_spread),
        Registration("Node", ADD | DELETE | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT, changes_domains),
    ),
    "SchedulingGates": (Registration("Pod", Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, about_itself),),
    "TaintToleration": (
        Registration("Node", ADD | Action.UPDATE_NODE_TAINT, is_tolerated_now),
        Registration("Pod", Action.UPDATE_POD_TOLERATION, about_itself),
    ),
    **STORAGE_HINTS,
    **DEVICE_HINTS,
}
"""Per in-tree plugin, the events that may help the pods it rejected."""


class PluginHints:
    """The hints of one plugin of a profile; any event may help the pods of a plugin that does not say otherwise."""

    def __init__(self, plugin: Plugin) -> None:
        self.plugin = plugin
        says_itself = type(plugin).is_schedulable_after is not Plugin.is_schedulable_after
        is_in_tree = IN_TREE.get(plugin.name) is type(plugin)
        has_hints = is_in_tree and not says_itself
        self.goes_by_spec = has_hints and plugin.name not in DEVICE_HINTS
        """Whether pods with the same spec get the same answer; claims are a pod's own."""
        self._registrations = with_taints(HINTS.get(plugin.name, ())) if has_hints else None

    def is_interested(self, event: ClusterEvent) -> bool:
        if self._registrations is None:
            return True
        return any(registration.matches(event) for registration in self._registrations)

    def may_help(self, rejected: Rejected, event: ClusterEvent) -> bool:
        """Whether an event may make a pod fit that the plugin rejected."""
        if self._registrations is None:
            return self.plugin.is_schedulable_after(rejected.pod, event)
        matching = (each for each in self._registrations if each.matches(event))
        return any(each.hint(rejected, event.old, event.new) for each in matching)


def with_taints(registrations: Iterable[Registration]) -> tuple[Registration, ...]:
    """Who waits for nodes to be added waits for their taints to change too, as kube-scheduler makes sure."""
    found = tuple(registrations)
    of_nodes = [each.actions for each in found if each.resource == "Node"]
    if any(actions & ADD for actions in of_nodes) and not any(a & Action.UPDATE_NODE_TAINT for a in of_nodes):
        return (*found, Registration("Node", Action.UPDATE_NODE_TAINT, always))
    return found
