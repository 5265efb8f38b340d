"""Answers to the questions people have about a cluster, each a function with a typed result."""

from podium.answers.capacity import Capacity, Fits, capacity
from podium.answers.nodes_needed import NodeMix, NodesNeeded, NodeTemplate, nodes_needed

__all__ = [
    "Capacity",
    "Fits",
    "NodeMix",
    "NodeTemplate",
    "NodesNeeded",
    "capacity",
    "nodes_needed",
]
