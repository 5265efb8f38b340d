"""Node and the parts of its spec and status that scheduling reads."""

from __future__ import annotations

from podium.model.meta import Int64, Object, ResourceList, Struct

HOSTNAME = "kubernetes.io/hostname"
ZONE, REGION = "topology.kubernetes.io/zone", "topology.kubernetes.io/region"
BETA_ZONE, BETA_REGION = "failure-domain.beta.kubernetes.io/zone", "failure-domain.beta.kubernetes.io/region"
"""What zone and region were called before v1.17; volumes and old nodes still have them."""
NODE_GROUP = "podium/node-group"
"""The node group that a node belongs to, where groups grow and shrink."""
PRICE_PER_HOUR = "podium/price-per-hour"
"""What a node costs, as a number."""


class Taint(Struct, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []


class ContainerImage(Struct, frozen=True):
    names: list[str] = []
    size_bytes: Int64 = 0


class NodeCondition(Struct, frozen=True):
    type: str = ""
    status: str = ""


class NodeSystemInfo(Struct, frozen=True):
    kubelet_version: str = ""


class NodeStatus(Struct, frozen=True):
    allocatable: ResourceList | None = None
    capacity: ResourceList = {}
    images: list[ContainerImage] = []
    conditions: list[NodeCondition] = []
    declared_features: list[str] = []
    node_info: NodeSystemInfo = NodeSystemInfo()


class Node(Object, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()

    @property
    def allocatable(self) -> ResourceList:
        """What pods may use; the capacity where the API object does not say."""
        return self.status.capacity if self.status.allocatable is None else self.status.allocatable
