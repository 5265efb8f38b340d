"""Optional declarations of a plugin that save time. No plugin needs them, and `check_plugin` verifies them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster import Cluster, Nodes
from podium.cluster.columns import Ints, highest
from podium.framework.plugin import MAX_NODE_SCORE, CycleState, Plugin, PodView, ScorePlugin
from podium.model import Pod


class ForSomePods(Plugin):
    """A plugin without `reads` that does not concern many pods, and can tell from the spec which ones.

    For the other pods its PreFilter, Filter, PreScore and Reserve are not called, nor is its Score if it has a
    PreScore. If they were called, they would have to skip, pass every node and do nothing.
    """

    def concerns(self, pod: PodView, cluster: Cluster) -> bool:
        """Whether the plugin concerns a pod. An answer from the spec alone holds for all pods with an equal spec.

        The answer may depend on the pod's spec, labels and namespace, on the objects of the cluster that are neither
        nodes nor pods, and on whether any pod has affinity terms (`cluster.census.with_terms`).
        """
        raise NotImplementedError(f"{type(self).__name__} must define concerns")

    @property
    def scores_other_pods(self) -> bool:
        """Whether the other pods score 0 on every node, as opposed to having no score."""
        return False


class ByNodeLabels(Plugin):
    """A plugin without `reads` whose answer for a node depends only on the values of a few of the node's labels.

    It evaluates one node for each combination of these values.
    """

    def filter_labels(self, state: CycleState) -> tuple[str, ...] | None:
        """The labels that determine `filter`'s answer for this pod; None if it depends on more than labels."""
        return None

    def score_labels(self, state: CycleState) -> tuple[str, ...] | None:
        """The labels that determine a node's score for this pod; None if it depends on more than labels.

        `normalize` must then give equal scores the same result, however many nodes have them.
        """
        return None


class NormalizesByMax(ScorePlugin):
    """A score plugin whose highest score is scaled to 100 or, with `reverse`, whose score of 0 is.

    Nodes with equal scores get equal results, however many there are. If all raw scores are equal, the plugin does not
    change the order of the nodes, and is left out until its numbers are asked for.
    """

    reverse = False

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        most = max(highest(scores), 0)
        if most == 0:
            return np.full_like(scores, MAX_NODE_SCORE) if self.reverse else scores
        scaled = MAX_NODE_SCORE * scores // most
        return MAX_NODE_SCORE - scaled if self.reverse else scaled

    def normalize_lines(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes, place: int) -> Sequence[str]:
        most, score = max(highest(scores), 0), int(scores[place])
        if most == 0:
            return ["no node has more than 0, so each gets 100"] if self.reverse else [f"no node has more than {score}"]
        scaled = MAX_NODE_SCORE * score // most
        if self.reverse:
            return [f"100 - 100 * {score:,} / {most:,} (the highest) = {MAX_NODE_SCORE - scaled}"]
        return [f"100 * {score:,} / {most:,} (the highest) = {scaled}"]
