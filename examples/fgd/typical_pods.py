"""What the pods of a cluster typically ask for, and how much of the free GPUs they could not use."""

from collections import Counter

import numpy as np
from gpu_share import WHOLE

from podium import Cluster, Nodes
from podium.model.selectors import required_node_affinity

COVERED = 0.95  # share of all pods that the typical ones make up
COUNT = "podium/count"  # annotation: how many pods a pod stands for here, if not for itself


def models(pod) -> str:
    """The GPU models that a pod of the trace accepts, such as `T4|P100`; nothing for any."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    terms = affinity.required.node_selector_terms if affinity and affinity.required else ()
    return "|".join(value for term in terms for each in term.match_expressions for value in each.values)


class TypicalPods:
    """The most frequent kinds of pods, pending or not: what they ask for, how often, and on which nodes."""

    def __init__(self, cluster: Cluster, requested) -> None:
        """`requested` says what a pod asks for: milli-cpu and GPU milli."""
        self.version = cluster.node_set_version
        counts, affinities = Counter(), {}
        for pod in [*cluster.pending.values(), *(pod for pod, _ in cluster.placed())]:
            asked = *requested(cluster.info_of(pod)), models(pod)
            counts[asked] += int(pod.metadata.annotations.get(COUNT, 1))
            affinities[asked] = required_node_affinity(pod)
        most = sorted(counts.items(), key=lambda item: (item[1], item[0]), reverse=True)
        before = np.cumsum([0, *(count for _, count in most)])
        typical = most[: np.searchsorted(before, COVERED * before[-1])]
        cpu, milli, _ = zip(*(asked for asked, _ in typical), strict=True)
        counted = np.array([count for _, count in typical])
        self._frequency, self._cpu = (counted / counted.sum())[:, None], np.array(cpu)[:, None]
        rows = cluster.nodes.of(np.arange(cluster.columns.size))
        self._allowed = np.array([rows.matching(affinities[asked]) for asked, _ in typical])
        # Pods that ask for the same GPUs are worked out together.
        kinds = sorted({*milli} - {0})
        self._is_of_kind = np.equal.outer(kinds, milli).astype(float)
        self.size = np.minimum(kinds, WHOLE).astype(np.int16)[:, None, None]
        self._number = np.maximum(np.array(kinds) // WHOLE, 1).astype(np.int16)[:, None, None]

    def unusable(self, left, usable, fitting, cpu, nodes: Nodes):
        """GPU milli of nodes that a typical pod cannot use, on average.

        Of what is `left`, a kind of pod can use what is `usable`, if that is on enough `fitting` GPUs and there is cpu.
        """
        chance = self._is_of_kind @ (self._frequency * nodes.take(self._allowed) * (self._cpu <= cpu))
        return left - (chance[:, None] * usable * (fitting >= self._number)).sum(0)
