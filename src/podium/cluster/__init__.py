"""A cluster as columns: what the engine reads."""

from podium.cluster.cluster import Cluster
from podium.cluster.columns import Aspect
from podium.cluster.nodes import NodeInfo, Nodes
from podium.cluster.pods import PodInfo

__all__ = ["Aspect", "Cluster", "NodeInfo", "Nodes", "PodInfo"]
