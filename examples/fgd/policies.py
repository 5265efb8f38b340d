"""The six policies of "Beware of Fragmentation" (USENIX ATC 2023); each scores nodes from 0 to 100 by its rule."""

from zlib import crc32

import numpy as np
from gpu_share import GPU_MILLI, MOST, WHOLE, GpuShare
from typical_pods import TypicalPods

from podium import SUCCESS, CycleState, Nodes, PreScorePlugin, ScorePlugin, Status

LARGEST_CPU = 128_000  # milli-cpu of the largest node of the paper
LARGEST_GPU = MOST * WHOLE


def cpu_left(nodes: Nodes):
    return nodes.allocatable("cpu") - nodes.requested("cpu")


class Random(GpuShare, PreScorePlugin, ScorePlugin):
    """Any node, and any GPU: by a seed and the pod's name, so that the same run gives the same choices."""

    name = "Random"
    reads = None

    def pre_score(self, state: CycleState, pod, nodes: Nodes) -> Status:
        state[self.name] = self._any(nodes.rows, crc32(pod.key.encode()))
        return SUCCESS

    def score(self, state: CycleState, pod, nodes: Nodes):
        return np.where(nodes.rows == state[self.name], 100, 0)

    def choose(self, asked, left, node: Nodes):
        return self._any(np.flatnonzero(left >= asked[1]), *node.rows, *left)

    def _any(self, choices, *about):
        return np.random.default_rng([(self.args or {}).get("seed", 0), *about]).choice(choices)


class DotProd(GpuShare, ScorePlugin):
    """The node whose free cpu and GPUs, times what the pod asks for, come to least."""

    name = "DotProd"

    def score(self, state: CycleState, pod, nodes: Nodes):
        cpu, milli = self.requested(state.info)
        product = cpu_left(nodes) / LARGEST_CPU * (cpu / LARGEST_CPU)
        product += self.left(nodes).sum(0) / LARGEST_GPU * (milli / LARGEST_GPU)
        return (100 * (1 - product / 2)).astype(np.int64)


class GpuClustering(GpuShare, ScorePlugin):
    """Nodes with pods that ask for the same number of GPUs, alone if possible; then empty ones; the fullest first."""

    name = "GpuClustering"

    def __init__(self, args=None):
        super().__init__(args)
        self._kinds = {}

    def score(self, state: CycleState, pod, nodes: Nodes):
        _, milli = self.requested(state.info)
        if not milli:
            return np.zeros(len(nodes), dtype=np.int64)
        left, gpus = self.left(nodes).sum(0), self.gpus(state.info)
        kinds = [self._kinds[row] for row in nodes.rows.tolist()]
        same = np.array([gpus in kind for kind in kinds])
        others = np.array([len(kind) for kind in kinds]) - same
        quarter = np.where(same, np.where(others, 2, 3), np.where(others, 0, 1))
        return 25 * quarter + 25 * (LARGEST_GPU - left) // LARGEST_GPU

    def _left_on(self, cluster, row):
        self._kinds[row] = {self.gpus(placed.info) for placed in cluster.placed_on(row)} - {0}
        return super()._left_on(cluster, row)

    def gpus(self, info):
        """How many GPUs a pod asks for; a share of one is a kind of its own."""
        milli = self.requested(info)[1]
        return milli // WHOLE if milli >= WHOLE else min(milli, 1) / 2


class GpuPacking(GpuShare, ScorePlugin):
    """GPUs in use before free ones, and free ones of nodes in use before those of free nodes."""

    name = "GpuPacking"

    def score(self, state: CycleState, pod, nodes: Nodes):
        _, milli = self.requested(state.info)
        if not milli:
            return np.zeros(len(nodes), dtype=np.int64)
        left = self.left(nodes)
        gpus = nodes.allocatable(GPU_MILLI) // WHOLE
        tightest = np.where(left >= min(milli, WHOLE), left, WHOLE).min(0)
        shared = np.maximum(100 - tightest * 100 // WHOLE // 10, 50)
        on_used_node = max(50 - max(milli // WHOLE, 1), 33)
        on_free_node = np.maximum(33 - gpus, gpus)
        is_free = (left == WHOLE).sum(0) == gpus
        return np.where(is_free, on_free_node, np.where(tightest < WHOLE, shared, on_used_node))


class BestFit(GpuShare, ScorePlugin):
    """The node with the least cpu and GPUs left after the pod."""

    name = "BestFit"

    def score(self, state: CycleState, pod, nodes: Nodes):
        cpu, milli = self.requested(state.info)
        left = (cpu_left(nodes) - cpu) / LARGEST_CPU * 0.5 + (self.left(nodes).sum(0) - milli) / LARGEST_GPU * 0.5
        return (100 * (1 - left)).clip(0, 100).astype(np.int64)


class FGD(GpuShare, ScorePlugin):
    """The node, and on it the GPU, of which the pod makes least unusable for the pods that are typical here."""

    name = "FGD"
    _typical = None

    def score(self, state: CycleState, pod, nodes: Nodes):
        return self._scores(self.requested(state.info), self.left(nodes), cpu_left(nodes), nodes).max(0)

    def choose(self, asked, left, node: Nodes):
        # The pod is on the node by now, so its cpu counts as free once more.
        return self._scores(asked, left[:, None], cpu_left(node) + asked[0], node).argmax()

    def _scores(self, asked, left, cpu, nodes: Nodes):
        """By GPU and node: 50 if the pod leaves the fragmentation as it is there, more if it makes it less."""
        if self._typical is None or self._typical.version != nodes.cluster.node_set_version:
            self._typical = TypicalPods(nodes.cluster, self.requested)
        milli, typical = asked[1], self._typical
        left = left.astype(np.int16)  # small numbers, and many of them: kinds by GPUs by nodes
        fits = left >= typical.size
        usable = (left * fits).sum(1, dtype=np.int16, keepdims=True)
        fitting = fits.sum(1, dtype=np.int16, keepdims=True)
        now = typical.unusable(left.sum(0), usable, fitting, cpu, nodes)
        if 0 < milli < WHOLE:
            still = left - milli >= typical.size
            usable, fitting = usable - left * fits + (left - milli) * still, fitting - fits + still
        else:
            usable, fitting = usable - milli, fitting - milli // WHOLE
        then = typical.unusable(left.sum(0) - milli, usable, fitting, cpu - asked[0], nodes)
        gain = np.where(left >= min(milli, WHOLE), now - then, -np.inf)
        return (100 / (1 + np.exp(-np.round(gain, 6) / 1000))).astype(np.int64)
