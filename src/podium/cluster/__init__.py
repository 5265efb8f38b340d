"""A cluster as columns: what the engine reads."""

from podium.cluster.change_log import Aspect
from podium.cluster.cluster import Cluster
from podium.cluster.nodes import NodeInfo, Nodes
from podium.cluster.pods import PodInfo

__all__ = ["Aspect", "Cluster", "NodeInfo", "Nodes", "PodInfo"]
