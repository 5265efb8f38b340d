"""Answers to the questions people have about a cluster, each a function with a typed result."""

from podium.answers.capacity import Capacity, Fits, capacity, pods_of, without_nodes
from podium.answers.nodes_needed import NodeMix, NodesNeeded, NodeTemplate, nodes_needed
from podium.answers.turning import Change, Suggestion
from podium.answers.why_not import WhyNot, why_not

__all__ = [
    "Capacity",
    "Change",
    "Fits",
    "NodeMix",
    "NodeTemplate",
    "NodesNeeded",
    "Suggestion",
    "WhyNot",
    "capacity",
    "nodes_needed",
    "pods_of",
    "why_not",
    "without_nodes",
]
