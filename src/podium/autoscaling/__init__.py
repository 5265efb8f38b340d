"""Autoscaling in simulated time: adds nodes for pods that fit nowhere and removes nodes that are not needed."""

from podium.autoscaling._autoscaler import Autoscaler, scaled
from podium.autoscaling._node_groups import AutoscalingSettings, NodeGroup, NodeGroups
from podium.autoscaling._node_groups_file import read_node_groups

__all__ = ["Autoscaler", "AutoscalingSettings", "NodeGroup", "NodeGroups", "read_node_groups", "scaled"]
