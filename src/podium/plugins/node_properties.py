"""Plugins for properties of the node: NodeName, NodeUnschedulable, NodePorts, NodeDeclaredFeatures, TaintToleration and
ImageLocality.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence, Set
from typing import NamedTuple

import numpy as np
from msgspec.structs import replace

from podium.cluster import Aspect, Cluster, Nodes
from podium.cluster.columns import Ints, Mask
from podium.cluster.pods import ANY_IP, HostPort, host_ports
from podium.framework import Action, Change, EventHint, Obstacle, RejectedNodes, RejectedPod, WaitingPod
from podium.framework.fast_paths import NormalizesByMax
from podium.framework.plugin import (
    MAX_NODE_SCORE,
    CycleState,
    FilterPlugin,
    PodView,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
    is_about_itself,
    node_update,
)
from podium.framework.status import PASSED, SKIPPED, SUCCESS, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import (
    SpecPart,
    edit_pod,
    evict_few,
    pull_image,
    remove_taint,
    taint_text,
    tolerate,
    uncordon,
)
from podium.model import Container, Node, Pod, PodSpec, Taint
from podium.model.pod import is_placed
from podium.model.selectors import CORDONED, PREFER_NO_SCHEDULE, any_tolerates, repels, untolerated
from podium.rules import Rules


class NodeName(PreFilterPlugin, FilterPlugin):
    """Pass only the node that the pod names; pass all nodes if it names none."""

    name = "NodeName"
    reads = Aspect.LABELS
    REASON = "node(s) didn't match the requested node name"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) if rules.node_name_narrows else frozenset(("filter",))

    def sign(self, pod: PodView) -> Hashable:
        return pod.spec.node_name

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        wanted = pod.spec.node_name
        return PreFilterResult(node_names=frozenset((wanted,))) if wanted else PASSED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        # Unresolvable: evicting pods cannot rename a node.
        return Verdict.unresolvable(not_named_by(pod, nodes), self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Node", Action.ADD | node_update(Action(0), self.release_rules)),)

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return node_name_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return node_name_fixes(rejected)


def not_named_by(pod: Pod, nodes: Nodes) -> Mask:
    """Whether each node is another than the one that the pod names; false everywhere if it names none."""
    if not pod.spec.node_name:
        return np.zeros(len(nodes), dtype=np.bool_)
    row = nodes.cluster.rows.get(pod.spec.node_name)
    return ~nodes.among([] if row is None else [row])


def node_name_obstacles(rejected: RejectedNodes) -> dict[str, list[Obstacle]]:
    """The node that the pod names."""
    named = rejected.pod.spec.node_name
    text = f"the pod wants node {named} and no other (spec.nodeName)"
    return {
        node: [Obstacle("name", text, {"nodeName": named})] for node in rejected.statuses if named not in ("", node)
    }


def node_name_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Clear the pod's nodeName."""

    def edit(before: Pod) -> Pod:
        return replace(before, spec=replace(before.spec, node_name=""))

    yield edit_pod("clear-node-name", "clear the pod's nodeName", rejected.pod, 2, edit)


class PassesPreFilter(PreFilterPlugin):
    """A plugin that later releases also allow at preFilter, where it passes every node."""

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules)
        return points if rules.more_plugins_pre_filter else points - {"preFilter"}

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PASSED


class NodeUnschedulable(PassesPreFilter, FilterPlugin):
    """Reject nodes with spec.unschedulable, unless the pod tolerates the taint that goes with it."""

    name = "NodeUnschedulable"
    reads = Aspect.TAINTS
    REASON = "node(s) were unschedulable"

    def sign(self, pod: PodView) -> Hashable:
        tolerations = pod.spec.tolerations
        return bool(tolerations) and any_tolerates(tolerations, CORDONED)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        cordoned = nodes.unschedulable & (not any_tolerates(pod.spec.tolerations, CORDONED))
        return Verdict.unresolvable(cordoned, self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        rules, changes = self.release_rules, Action.UPDATE_NODE_TAINT
        if rules.cordons_wait_for_any_update:
            changes = node_update(changes, rules)
        of_nodes = EventHint("Node", Action.ADD | changes, self.is_uncordoned)
        of_pods = EventHint("Pod", Action.UPDATE_POD_TOLERATION, self.tolerates_cordon)
        return (of_nodes, of_pods) if rules.own_changes_help_spreading else (of_nodes,)

    def is_uncordoned(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the node is schedulable, and was new or cordoned before."""
        before = old if self.release_rules.hints_compare_nodes else None
        return not new.spec.unschedulable and (before is None or before.spec.unschedulable)

    def tolerates_cordon(self, waiting: WaitingPod, old: Pod, new: Pod) -> bool:
        """Whether the waiting pod itself tolerates cordoned nodes now."""
        return waiting.is_same(new) and any_tolerates(new.spec.tolerations, CORDONED)

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return cordon_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return cordon_fixes(rejected)


def cordon_obstacles(rejected: RejectedNodes) -> dict[str, list[Obstacle]]:
    """For each node, that it is cordoned."""
    cordoned = Obstacle("cordon", "the node is cordoned (spec.unschedulable)", {"field": "spec.unschedulable"})
    return {node: [cordoned] for node in rejected.statuses if rejected.cluster.node(node).spec.unschedulable}


def cordon_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Uncordon the node, or let the pod tolerate that it is cordoned."""
    yield uncordon(rejected.node)
    yield tolerate(rejected.pod, CORDONED)


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Reject nodes where a host port of the pod is in use."""

    name = "NodePorts"
    needs = frozenset((("filter", "preFilter"),))
    reads = Aspect.PORTS
    constraint = SpecPart.PORT
    REASON = "node(s) didn't have free ports for the requested pod ports"

    def sign(self, pod: PodView) -> Hashable:
        return pod.ports

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PASSED if state.info.ports else SKIPPED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.reject(nodes.among(nodes.cluster.ports.conflicts(state.info.ports)), self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        of_nodes = Action.ADD | node_update(Action(0), self.release_rules)
        return (EventHint("Pod", Action.DELETE, self.frees_port), EventHint("Node", of_nodes))

    def frees_port(self, waiting: WaitingPod, old: Pod, new: None) -> bool:
        """Whether the deleted pod held a host port that the waiting pod wants."""
        return is_placed(old) and any(
            conflicts(freed, wanted) for freed in host_ports(old) for wanted in waiting.info.ports
        )

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return port_obstacles(rejected, conflicts)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return port_fixes(rejected, conflicts)


def conflicts(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports cannot be on one node: same protocol and number, and the same or any address."""
    same = (one.protocol, one.port) == (other.protocol, other.port)
    return same and (one.ip == other.ip or ANY_IP in (one.ip, other.ip))


def port_obstacles(rejected: RejectedNodes, overlap: Callable[[HostPort, HostPort], bool]) -> dict[str, list[Obstacle]]:
    """The host ports that pods on each node hold; `overlap` tells whether two ports conflict."""
    wanted, cluster = host_ports(rejected.pod), rejected.cluster
    found = {}
    for node in rejected.statuses:
        holders = {
            mine: pod.key
            for pod in cluster.pods_on(cluster.rows[node])
            for theirs in host_ports(pod)
            for mine in wanted
            if overlap(mine, theirs)
        }
        found[node] = [_port_obstacle(mine, holder) for mine, holder in sorted(holders.items())]
    return found


def _port_obstacle(port: HostPort, holder: str) -> Obstacle:
    facts = {"port": port.port, "protocol": port.protocol, "hostIP": port.ip, "pod": holder}
    return Obstacle("port", f"host port {port.port}/{port.protocol} is taken by pod {holder}", facts)


def port_fixes(rejected: RejectedPod, overlap: Callable[[HostPort, HostPort], bool]) -> Iterator[Change]:
    """Evict the pods that hold a host port of the pod, or drop the port; `overlap` tells whether two ports conflict."""
    wanted = host_ports(rejected.pod)
    running = rejected.cluster.pods_on(rejected.cluster.rows[rejected.node])
    holders = [pod for pod in running if any(overlap(one, other) for one in wanted for other in host_ports(pod))]
    yield from evict_few(holders)
    taken = {one.port for one in wanted for pod in holders for other in host_ports(pod) if overlap(one, other)}
    if taken:
        text = f"drop the pod's host port {', '.join(map(str, sorted(taken)))}"
        yield edit_pod("drop-host-port", text, rejected.pod, 3, _without_ports(taken))


def _without_ports(taken: set[int]) -> Callable[[Pod], Pod]:
    def freed(containers: list[Container]) -> list[Container]:
        return [
            replace(each, ports=[port for port in each.ports if port.host_port not in taken]) for each in containers
        ]

    def edit(before: Pod) -> Pod:
        spec = before.spec
        containers, init_containers = freed(spec.containers), freed(spec.init_containers)
        return replace(before, spec=replace(spec, containers=containers, init_containers=init_containers))

    return edit


NO_FEATURES: frozenset[str] = frozenset()


def required_features(spec: PodSpec) -> frozenset[str]:
    """The features a node must declare to run a pod with this spec."""
    needed = NO_FEATURES
    rules = [rule for each in (*spec.containers, *spec.init_containers) for rule in each.restart_policy_rules]
    if rules and any(rule.action == "RestartAllContainers" for rule in rules):
        needed |= {"RestartAllContainersOnContainerExits"}
    if spec.host_network and spec.host_users is False:
        needed |= {"UserNamespacesHostNetworkSupport"}
    return needed


class NodeDeclaredFeatures(PreFilterPlugin, FilterPlugin):
    """Reject nodes that do not declare every feature the pod needs."""

    name = "NodeDeclaredFeatures"
    reads = Aspect.LABELS
    REASON = "node(s) didn't match Pod's required features"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return super().points(rules) if rules.has_node_declared_features else frozenset()

    @property
    def needs(self) -> Set[tuple[str, str]]:
        return frozenset((("filter", "preFilter"),)) if self.release_rules.node_declared_features else frozenset()

    def sign(self, pod: PodView) -> Hashable:
        return required_features(pod.spec)

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PASSED if required_features(pod.spec) else SKIPPED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        needed = required_features(pod.spec)
        lacking = (not needed.issubset(node.node.status.declared_features) for node in nodes)
        return Verdict.unresolvable(np.fromiter(lacking, np.bool_, len(nodes)), self.REASON)

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        needed, cluster = required_features(rejected.pod.spec), rejected.cluster
        lacking = {node: needed.difference(cluster.node(node).status.declared_features) for node in rejected.statuses}
        return {
            node: [
                Obstacle("feature", f"the node does not declare {name}", {"feature": name}) for name in sorted(names)
            ]
            for node, names in lacking.items()
        }

    def events_to_register(self) -> Sequence[EventHint]:
        return (
            EventHint("Node", Action.ADD | Action.UPDATE_NODE_DECLARED_FEATURE, self.declares_other_features),
            EventHint("Pod", Action.UPDATE, self.needs_other_features),
        )

    def declares_other_features(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the node is new or declares other features than before."""
        return old is None or old.status.declared_features != new.status.declared_features

    def needs_other_features(self, waiting: WaitingPod, old: Pod, new: Pod) -> bool:
        """Whether the waiting pod itself needs other features than before."""
        return waiting.is_same(new) and required_features(old.spec) != required_features(new.spec)


class TaintToleration(PassesPreFilter, FilterPlugin, PreScorePlugin, NormalizesByMax):
    """Reject nodes with an untolerated NoSchedule or NoExecute taint; prefer those with fewer PreferNoSchedule ones."""

    name = "TaintToleration"
    needs = frozenset((("score", "preScore"),))
    title = "Taint"
    reads = Aspect.TAINTS
    reverse = True
    REASON = "node(s) had untolerated taint(s)"
    REASON_NAMING = "node(s) had untolerated taint {{{key}: {value}}}"

    def sign(self, pod: PodView) -> Hashable:
        return tuple(pod.spec.tolerations)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        reasons: dict[str, int] = {}

        def reason(taints: tuple[Taint, ...]) -> int:
            """0 if the pod tolerates the taints, else the position of the reason, counted from 1."""
            taint = untolerated(taints, pod.spec.tolerations)
            return 0 if taint is None else reasons.setdefault(self._reason(taint), len(reasons) + 1)

        codes = nodes.by_taints(reason)
        return Verdict.choose(codes, tuple([Status.unresolvable(text) for text in reasons]))

    def _reason(self, taint: Taint) -> str:
        if self.release_rules.taints_are_not_named:
            return self.REASON
        return self.REASON_NAMING.format(key=taint.key, value=taint.value)

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SUCCESS

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """How many PreferNoSchedule taints the pod does not tolerate."""
        tolerations = [t for t in pod.spec.tolerations if t.effect in ("", PREFER_NO_SCHEDULE)]

        def intolerable(taints: tuple[Taint, ...]) -> int:
            return sum(t.effect == PREFER_NO_SCHEDULE and not any_tolerates(tolerations, t) for t in taints)

        return nodes.by_taints(intolerable)

    def events_to_register(self) -> Sequence[EventHint]:
        rules = self.release_rules
        of_nodes = EventHint("Node", Action.ADD | node_update(Action.UPDATE_NODE_TAINT, rules), self.is_tolerated_now)
        of_pods = EventHint("Pod", Action.UPDATE_POD_TOLERATION, is_about_itself)
        return (of_nodes, of_pods) if rules.own_updates_ask_hints else (of_nodes,)

    def is_tolerated_now(self, waiting: WaitingPod, old: Node | None, new: Node) -> bool:
        """Whether the waiting pod tolerates the node's taints, and did not before."""
        tolerations = waiting.pod.spec.tolerations
        was_repelled = old is None or untolerated(old.spec.taints, tolerations) is not None
        return was_repelled and untolerated(new.spec.taints, tolerations) is None

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return taint_obstacles(rejected)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return taint_fixes(rejected)

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return preferred_taint_fixes(pod, node, cluster)


def taint_obstacles(
    rejected: RejectedNodes, is_repelling: Callable[[Taint], bool] = repels
) -> dict[str, list[Obstacle]]:
    """The first taint of each node that the pod does not tolerate, which is the one that kube-scheduler reports."""
    found = {}
    for node in rejected.statuses:
        taint = untolerated(rejected.cluster.node(node).spec.taints, rejected.pod.spec.tolerations, is_repelling)
        if taint is not None:
            text = taint_text(taint)
            found[node] = [Obstacle("taint", f"untolerated taint {text}", {"taint": text})]
    return found


def taint_fixes(rejected: RejectedPod) -> Iterator[Change]:
    """Remove the taint that the pod does not tolerate from the node, or let the pod tolerate it."""
    node = rejected.node_object
    taint = untolerated(node.spec.taints, rejected.pod.spec.tolerations)
    if taint is not None:
        is_cordon = taint.key == CORDONED.key and node.spec.unschedulable
        yield uncordon(rejected.node) if is_cordon else remove_taint(rejected.node, taint)
        yield tolerate(rejected.pod, taint)


def preferred_taint_fixes(pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
    """Remove a PreferNoSchedule taint that the pod does not tolerate, or let the pod tolerate it."""
    for taint in cluster.node(node).spec.taints:
        if taint.effect == PREFER_NO_SCHEDULE and not any_tolerates(pod.spec.tolerations, taint):
            yield remove_taint(node, taint)
            yield tolerate(pod, taint)


# -- ImageLocality -----------------------------------------------------------------------------------------------------


MEBI = 1024 * 1024
LEAST = 23 * MEBI
MOST_PER_CONTAINER = 1000 * MEBI


def normalized_image_name(name: str) -> str:
    """The image name with a tag; `:latest` if it has none."""
    return name if name.rfind(":") > name.rfind("/") else f"{name}:latest"


class CountedImages(NamedTuple):
    """The images of a pod that count, and the number of images that sets the largest size that counts."""

    names: tuple[str, ...]
    expected: int


def counted_images(spec: PodSpec, rules: Rules) -> CountedImages:
    """The images of a pod that a release counts."""
    first = spec.init_containers if rules.image_locality_counts_init_containers else []
    names = [each.image for each in (*first, *spec.containers)]
    mounted = [volume.image.reference for volume in spec.volumes if volume.image is not None]
    expected = len(names) + (len(mounted) if rules.image_locality_expects_volumes else 0)
    if rules.image_locality_counts_volumes:
        names += mounted
    return CountedImages(tuple([normalized_image_name(name) for name in names]), expected)


class ImageLocality(ScorePlugin):
    """Score by the bytes of images a node has, each scaled by the share of nodes that have it, so as not to
    heat one node.
    """

    name = "ImageLocality"
    title = "Image"
    reads = Aspect.IMAGES

    def sign(self, pod: PodView) -> Hashable:
        # The names as written: finding out which images count would take longer than it saves.
        first, others, volumes = pod.spec.init_containers, pod.spec.containers, pod.spec.volumes
        mounted = [volume.image.reference for volume in volumes if volume.image is not None]
        return tuple([each.image for each in first]), tuple([each.image for each in others]), tuple(mounted)

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        cluster, images = nodes.cluster, counted_images(pod.spec, self.release_rules)
        total = np.zeros(len(nodes), dtype=np.int64)
        for image in images.names:
            found = cluster.images.states.get(image)
            if found is not None:
                share = len(found.rows) / cluster.node_count
                total += nodes.among(found.rows) * int(found.size * share)
        most = MOST_PER_CONTAINER * images.expected
        bounded = np.where(total < LEAST, LEAST, np.minimum(total, most))
        return MAX_NODE_SCORE * (bounded - LEAST) // (most - LEAST)

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return image_fixes(pod, node, cluster)


def image_fixes(pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
    """Pull an image of the pod that other nodes have and this node lacks."""
    have = {name for image in cluster.node(node).status.images for name in image.names}
    sizes: dict[str, int] = {}
    for other in cluster.rows:
        for image in cluster.node(other).status.images:
            sizes.update(dict.fromkeys(image.names, image.size_bytes))
    for name in dict.fromkeys(container.image for container in (*pod.spec.containers, *pod.spec.init_containers)):
        if name in sizes and name not in have:
            yield pull_image(node, name, sizes[name])
