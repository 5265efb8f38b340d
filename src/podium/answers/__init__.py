"""Answers to questions about a cluster; each answer is a function with a typed result."""

from podium.answers._why_not import WhyNot, why_not
from podium.answers.audit import Audit, Audited, Finding, audit
from podium.answers.capacity import (
    Capacity,
    CapacityQuestion,
    Fits,
    capacity,
    without_nodes,
)
from podium.answers.change_search import Suggestion
from podium.answers.closest_nodes import ClosestNode
from podium.answers.compare import Cause, Comparison, Move, SpreadChange, Way, check_ways, compare
from podium.answers.disruption import (
    BudgetImpact,
    Disrupted,
    Disruption,
    DisruptionSettings,
    Fate,
    WorstCase,
    drain,
    fail,
    worst_case,
    worst_domain,
    worst_nodes,
)
from podium.answers.measures import Condition, Measures, measure
from podium.answers.node_mixes import MixSearch, NodeMix, NodesNeeded, NodeTemplate, nodes_needed
from podium.answers.rollout import ChangedObject, Rollout, RolloutStep, changed_objects, rollout
from podium.answers.spec_constraints import SpecConstraint
from podium.answers.trials import OBJECTIVES, TIMELINE_OBJECTIVES
from podium.answers.tune import TimelineTuning, Trial, Tuning, tune, tune_timeline
from podium.answers.upgrade import Changed, Upgrade, upgrade
from podium.answers.why_nowhere import WhyNowhere, why_nowhere
from podium.framework.suggested_change import Change
from podium.lookup import find_node, find_nodes, nodes_matching
from podium.workloads.replicas import pods_of

__all__ = [
    "OBJECTIVES",
    "TIMELINE_OBJECTIVES",
    "Audit",
    "Audited",
    "BudgetImpact",
    "Capacity",
    "CapacityQuestion",
    "Cause",
    "Change",
    "Changed",
    "ChangedObject",
    "ClosestNode",
    "Comparison",
    "Condition",
    "Disrupted",
    "Disruption",
    "DisruptionSettings",
    "Fate",
    "Finding",
    "Fits",
    "Measures",
    "MixSearch",
    "Move",
    "NodeMix",
    "NodeTemplate",
    "NodesNeeded",
    "Rollout",
    "RolloutStep",
    "SpecConstraint",
    "SpreadChange",
    "Suggestion",
    "TimelineTuning",
    "Trial",
    "Tuning",
    "Upgrade",
    "Way",
    "WhyNot",
    "WhyNowhere",
    "WorstCase",
    "audit",
    "capacity",
    "changed_objects",
    "check_ways",
    "compare",
    "drain",
    "fail",
    "find_node",
    "find_nodes",
    "measure",
    "nodes_matching",
    "nodes_needed",
    "pods_of",
    "rollout",
    "tune",
    "tune_timeline",
    "upgrade",
    "why_not",
    "why_nowhere",
    "without_nodes",
    "worst_case",
    "worst_domain",
    "worst_nodes",
]
