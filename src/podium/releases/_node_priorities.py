"""Priorities about the node itself: labels, taints, images, and the controllers whose pods a node wants to avoid."""

from __future__ import annotations

from collections.abc import Hashable, Iterator

import msgspec
import numpy as np

from podium.cluster import Aspect, Cluster, Nodes
from podium.cluster.columns import Ints
from podium.errors import PluginError, SelectorError
from podium.framework import CycleState, ScorePlugin
from podium.framework.fast_paths import NormalizesByMax
from podium.framework.plugin import PodView
from podium.framework.suggested_change import Change
from podium.model import Node, NodeSelectorTerm, Pod
from podium.model.selectors import node_term
from podium.plugins.image_locality import LEAST, MOST_PER_CONTAINER, image_fixes, normalized_image_name
from podium.plugins.node_affinity import preference_fixes
from podium.plugins.node_filters import TaintToleration, preferred_taint_fixes
from podium.releases._predicates import NodeLabelArgs, has_labels
from podium.releases.rules import OfRelease, OldReleaseRules

PREFER_AVOID_PODS = "scheduler.alpha.kubernetes.io/preferAvoidPods"


def normalize_scores(scores: Ints, rules: OldReleaseRules, *, reverse: bool = False) -> Ints:
    """Scale so that the highest score becomes the best or, with `reverse`, so that zero does."""
    highest, best = int(scores.max(initial=0)), rules.max_score
    if highest == 0:
        return np.full_like(scores, best if reverse else 0)
    if not rules.normalizes_in_floats:
        scaled = best * scores // highest
        return best - scaled if reverse else scaled
    share = scores / float(highest)
    return (((1.0 - share) if reverse else share) * float(best)).astype(np.int64)


class EqualPriority(OfRelease, ScorePlugin):
    """One point for every node."""

    name = "EqualPriority"
    reads = Aspect.LABELS

    def sign(self, pod: PodView) -> Hashable:
        return None

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.ones(len(nodes), dtype=np.int64)


class NodeAffinityPriority(OfRelease, NormalizesByMax):
    """Prefer nodes that meet the pod's preferences; matchFields and empty preferences do not count."""

    name = "NodeAffinityPriority"
    title = "NodeAff"
    reads = Aspect.LABELS

    def sign(self, pod: PodView) -> Hashable:
        affinity = pod.spec.affinity
        return msgspec.json.encode(affinity.node_affinity if affinity else None)

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
        total = np.zeros(len(nodes), dtype=np.int64)
        for preferred in affinity.preferred if affinity else ():
            try:
                term = node_term(NodeSelectorTerm(match_expressions=preferred.preference.match_expressions))
            except SelectorError as error:
                raise PluginError(self.name, f"failed: {error}") from error
            if term is not None and preferred.weight:
                total += preferred.weight * nodes.matching_term(term)
        return total

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return normalize_scores(scores, self.rules)

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return preference_fixes(pod, node, cluster)


class TaintTolerationPriority(OfRelease, NormalizesByMax):
    """Prefer nodes with fewer PreferNoSchedule taints that the pod does not tolerate."""

    name = "TaintTolerationPriority"
    title = "Taint"
    reads = Aspect.TAINTS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._counting = TaintToleration()

    def sign(self, pod: PodView) -> Hashable:
        return self._counting.sign(pod)

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return self._counting.score(state, pod, nodes)

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        return normalize_scores(scores, self.rules, reverse=True)

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return preferred_taint_fixes(pod, node, cluster)


class ImageLocalityPriority(OfRelease, ScorePlugin):
    """Prefer nodes that have the images of the pod's containers, by the size of those images."""

    name = "ImageLocalityPriority"
    title = "Image"
    reads = Aspect.IMAGES

    def sign(self, pod: PodView) -> Hashable:
        return tuple(sorted(container.image for container in pod.spec.containers))

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        total, size_of = np.zeros(len(nodes), dtype=np.int64), _scaled if self.rules.images_are_scaled else _sizes
        for container in pod.spec.containers:
            total += size_of(container.image, nodes)
        best, most = self.rules.max_score, MOST_PER_CONTAINER
        if self.rules.images_are_scaled:
            return best * (np.clip(total, LEAST, most) - LEAST) // (most - LEAST)
        bucket = best * (total - LEAST) // (most - LEAST) + 1
        return np.where(total < LEAST, 0, np.where(total >= most, best, bucket))

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterator[Change]:
        return image_fixes(pod, node, cluster)


def _scaled(image: str, nodes: Nodes) -> Ints:
    """The image's size on nodes that have it, times the share of nodes that have it, so as not to overload a
    few nodes.
    """
    found = nodes.cluster.images.states.get(normalized_image_name(image))
    if found is None:
        return np.zeros(len(nodes), dtype=np.int64)
    share = len(found.rows) / nodes.cluster.node_count
    return nodes.among(found.rows) * int(found.size * share)


def _sizes(image: str, nodes: Nodes) -> Ints:
    """The size of the image with exactly this name, as each node reports it."""
    cluster = nodes.cluster
    sizes = np.zeros(cluster.columns.size, dtype=np.int64)
    found = cluster.images.states.get(image)
    for row in found.rows if found else ():
        node: Node = cluster.node(cluster.names[row])
        sizes[row] = next(each.size_bytes for each in node.status.images if image in each.names)
    return nodes.take(sizes)


class _Controller(msgspec.Struct, frozen=True):
    kind: str = ""
    uid: str = ""


class _PodSignature(msgspec.Struct, frozen=True, rename="camel"):
    pod_controller: _Controller | None = None


class _PreferAvoidPods(msgspec.Struct, frozen=True, rename="camel"):
    pod_signature: _PodSignature | None = None


class _AvoidPods(msgspec.Struct, frozen=True, rename="camel"):
    prefer_avoid_pods: list[_PreferAvoidPods] | None = None


def avoided_controllers(node: Node) -> frozenset[tuple[str, str]]:
    """Kind and uid of the controllers whose pods the node wants to avoid; empty if the annotation is invalid."""
    text = node.metadata.annotations.get(PREFER_AVOID_PODS, "")
    try:
        avoided = msgspec.json.decode(text, type=_AvoidPods) if text else _AvoidPods()
    except msgspec.DecodeError:
        return frozenset()
    signatures = (entry.pod_signature or _PodSignature() for entry in avoided.prefer_avoid_pods or ())
    controllers = (signature.pod_controller or _Controller() for signature in signatures)
    return frozenset((controller.kind, controller.uid) for controller in controllers)


class NodePreferAvoidPodsPriority(OfRelease, ScorePlugin):
    """No points for nodes that want to avoid pods of the pod's controller; full points for all others."""

    name = "NodePreferAvoidPodsPriority"
    reads = Aspect.LABELS
    KINDS = ("ReplicationController", "ReplicaSet")

    def sign(self, pod: PodView) -> Hashable:
        return self._controller(pod.info.pod)

    def _controller(self, pod: Pod) -> tuple[str, str] | None:
        """The kind and uid of the pod's controller; None if nodes cannot avoid its kind."""
        owner = pod.metadata.controller
        return (owner.kind, owner.uid) if owner is not None and owner.kind in self.KINDS else None

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        controller = self._controller(pod)
        avoided = np.zeros(len(nodes), dtype=np.bool_)
        if controller is not None:
            listed = (controller in avoided_controllers(node.node) for node in nodes)
            avoided = np.fromiter(listed, np.bool_, len(nodes))
        return np.where(avoided, 0, self.rules.max_score)


class NodeLabelPriority(OfRelease, ScorePlugin):
    """Prefer nodes that have, or lack, some labels, whatever their values."""

    name = "NodeLabelPriority"
    reads = Aspect.LABELS

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self._labels = args if isinstance(args, NodeLabelArgs) else NodeLabelArgs()

    def sign(self, pod: PodView) -> Hashable:
        return None

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        liked = has_labels(nodes, self._labels.present_labels_preference)
        liked += [~has for has in has_labels(nodes, self._labels.absent_labels_preference)]
        count: Ints = np.sum(liked, axis=0)
        return self.rules.max_score * count // len(liked)
