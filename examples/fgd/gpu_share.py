"""Shares of single GPUs: a Filter and Reserve plugin that the policies have in common."""

import numpy as np

from podium import SUCCESS, Aspect, Cluster, CycleState, FilterPlugin, Nodes, PodInfo, ReservePlugin, Status, Verdict

GPU_MILLI = "alibabacloud.com/gpu-milli"  # of a node: thousandths of all its GPUs; of a pod: what it asks for
MODEL = "alibabacloud.com/gpu-card-model"  # label of a node
WHOLE = 1000  # one GPU
MOST = 8  # GPUs of a node


class GpuShare(FilterPlugin, ReservePlugin):
    """A pod that asks for less than a GPU needs that much of one; others need as many GPUs that are entirely free."""

    name = "GpuShare"
    reads = Aspect.RESOURCES | Aspect.PODS

    def __init__(self, args=None):
        super().__init__(args)
        self._left = np.zeros((MOST, 0), dtype=np.int64)
        self._taken = {}
        self._seen = -1

    def requested(self, info: PodInfo):
        """What a pod asks for: milli-cpu and GPU milli."""
        return info.resources.requests.get("cpu", 0), info.resources.requests.get(GPU_MILLI, 0)

    def filter(self, state: CycleState, pod, nodes: Nodes) -> Verdict:
        left, (_, milli) = self.left(nodes), self.requested(state.info)
        fits = (left == WHOLE).sum(0) >= milli // WHOLE if milli >= WHOLE else left.max(0) >= milli
        return Verdict.reject(~fits, "node(s) didn't have enough free GPUs")

    def reserve(self, state: CycleState, pod, node_name: str) -> Status:
        """Choose the GPUs of a pod, which is on its node by now."""
        self.left(self._cluster.nodes)
        return SUCCESS

    def left(self, nodes: Nodes):
        """What is left of each GPU, in milli: GPUs by nodes; nodes with fewer than eight have nothing of the others."""
        self._cluster, log = nodes.cluster, nodes.cluster.logs[Aspect.PODS]
        if self._seen != log.head:
            rows = log.since(self._seen) if self._seen >= 0 else None
            if rows is None or self._left.shape[1] != self._cluster.columns.size:
                self._left, rows = np.zeros((MOST, self._cluster.columns.size), np.int64), self._cluster.nodes.rows
            for row in {*rows.tolist()}:
                self._left[:, row] = self._left_on(self._cluster, row)
            self._seen = log.head
        return nodes.take(self._left)

    def _left_on(self, cluster: Cluster, row: int):
        node, placed = cluster.nodes.of(np.array([row])), {pod.pod.key: pod.info for pod in cluster.placed_on(row)}
        free = np.where(np.arange(MOST) < node.allocatable(GPU_MILLI) // WHOLE, WHOLE, 0)
        taken = {key: known for key, known in self._taken.get(row, {}).items() if key in placed}
        left = free - sum(taken.values())
        if left.min() < 0:  # another node has the row by now
            taken, left = {}, free
        for key in [key for key in placed if key not in taken]:
            taken[key] = self._take(self.requested(placed[key]), left, node)
            left -= taken[key]
        self._taken[row] = taken
        return left

    def _take(self, asked, left, node: Nodes):
        """What a pod takes of each GPU."""
        taken, milli = np.zeros(MOST, dtype=np.int64), asked[1]
        gpus = self.choose(asked, left, node) if 0 < milli < WHOLE else np.flatnonzero(left == WHOLE)[: milli // WHOLE]
        taken[gpus] = min(milli, WHOLE)
        return taken

    def choose(self, asked, left, node: Nodes):
        """The GPU for a share of one: the fullest that it fits on."""
        return np.where(left >= asked[1], left, WHOLE + 1).argmin()
