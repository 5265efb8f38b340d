"""Autoscaling in simulated time: node groups grow for pods that fit nowhere, and shrink when they are not needed."""

from podium.autoscaling._autoscaler import Autoscaler, scaled
from podium.autoscaling._groups import AutoscalingSettings, NodeGroup, NodeGroups, read_node_groups

__all__ = ["Autoscaler", "AutoscalingSettings", "NodeGroup", "NodeGroups", "read_node_groups", "scaled"]
