"""The cluster as columns, which the engine and the plugins read."""

from podium.cluster.cluster import Cluster
from podium.cluster.columns import Aspect
from podium.cluster.nodes import NodeInfo, Nodes
from podium.cluster.pods import PodInfo

__all__ = ["Aspect", "Cluster", "NodeInfo", "Nodes", "PodInfo"]
