"""Autoscaling in simulated time: node groups grow for pods that fit nowhere, and shrink when they are not needed."""

from podium.autoscaling.autoscaler import Autoscaler, scaled
from podium.autoscaling.groups import NodeGroup, NodeGroups, Settings, read_node_groups

__all__ = ["Autoscaler", "NodeGroup", "NodeGroups", "Settings", "read_node_groups", "scaled"]
