"""Plugins as users write them: one node at a time or with arrays, with and without saying what they read."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.framework.fast_paths import ForSomePods
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreScorePlugin, ScorePlugin
from podium.framework.status import SKIP, SUCCESS, PreFilterResult, Status, Verdict
from podium.model import Pod, Service


class Crowded(FilterPlugin, ScorePlugin):
    """One node at a time, saying nothing about what it reads."""

    name = "Crowded"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if len(node.pods) > 4:
            return Status.unschedulable("node(s) were crowded")
        return Status.unresolvable("node(s) had r3") if node.labels.get("rack") == "r3" else SUCCESS

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len({other.namespace for other in node.pods}) * 10 + int(pod.metadata.labels.get("color") == "green")

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return 100 - scores


class Labelled(FilterPlugin, ScorePlugin):
    """One node at a time, reading labels."""

    name = "Labelled"
    reads = Aspect.LABELS

    def sign(self, pod: PodView) -> Hashable:
        return pod.labels.get("color", "")

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        unwanted = node.labels.get("rack") == "r2" and pod.metadata.labels.get("color") == "blue"
        return Status.unresolvable("node(s) had r2") if unwanted else SUCCESS

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return len(node.labels) + len(node.name)


class Headroom(PreScorePlugin, ScorePlugin):
    """Arrays, reading resources and labels."""

    name = "Headroom"
    reads = Aspect.RESOURCES | Aspect.LABELS

    def sign(self, pod: PodView) -> Hashable:
        return "app" in pod.labels

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return SUCCESS if "app" in pod.metadata.labels else SKIP

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        free: Ints = np.clip((nodes.allocatable("cpu") - nodes.requested("cpu")) // 100, 0, 90)
        return free + (nodes.codes("rack") >= 0)


class Served(FilterPlugin):
    """Arrays, reading other objects and the nodes' pods."""

    name = "Served"
    reads = Aspect.OBJECTS | Aspect.PODS

    def sign(self, pod: PodView) -> Hashable:
        return pod.namespace

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        is_full = nodes.requested("pods") > 3
        no_service = nodes.cluster.store.of(Service).get("web", pod.namespace) is None
        return Verdict.reject(is_full & no_service, "node(s) had no service")


class Fenced(ForSomePods, PreFilterPlugin, FilterPlugin):
    """Narrows the nodes, by what the cluster looks like at the moment."""

    name = "Fenced"

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        return pod.labels.get("color") == "green"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        if pod.metadata.labels.get("color") != "green":
            return PreFilterResult(SKIP)
        state[self.name] = int(nodes.requested("pods").sum())
        return PreFilterResult(node_names=frozenset(name for name in nodes.names if name and name != "n5"))

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        too_many = state[self.name] > 8 and len(node.pods) > 2
        return Status.unschedulable("node(s) were fenced") if too_many else SUCCESS


class Packed(FilterPlugin, ScorePlugin):
    """Both forms, reading resources alone."""

    name = "Packed"
    reads = Aspect.RESOURCES

    def sign(self, pod: PodView) -> Hashable:
        return len(pod.spec.containers)

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        is_full = node.requested("pods") >= 6
        return Status.unschedulable("node(s) were packed") if is_full else SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.reject(nodes.requested("pods") >= 6, "node(s) were packed")

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return node.requested("pods") * len(pod.spec.containers)

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return nodes.requested("pods") * len(pod.spec.containers)


USER_PLUGINS = (Crowded, Labelled, Headroom, Served, Fenced, Packed)
