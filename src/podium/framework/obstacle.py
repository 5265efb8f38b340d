"""What keeps a rejected pod off a node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import Any, NamedTuple

from podium.cluster import Cluster
from podium.framework.status import Status
from podium.model import Pod
from podium.model.selectors import Requirement, condition_text, requirement_text


class SpecPart(StrEnum):
    """A part of a pod's spec that rules out nodes."""

    NODE_AFFINITY = "node affinity"
    AFFINITY = "pod affinity"
    ANTI_AFFINITY = "pod anti-affinity"
    OTHERS = "anti-affinity of others"
    """Required by pods that run already."""
    SPREAD = "spread"
    VOLUME = "volume"
    PORT = "host port"
    DEVICES = "devices"


@dataclass(frozen=True, slots=True)
class Obstacle:
    """The thing that keeps a pod off a node: a taint, a label, a port, an amount that is missing."""

    kind: str
    text: str
    """A description; if possible, the same words for all nodes that have this obstacle."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """The same as plain data."""
    missing: int = 0
    """How much the node lacks, to find the closest of several nodes; 0 if that cannot be measured."""

    def to_dict(self) -> dict[str, Any]:
        """The obstacle as plain data."""
        return {"kind": self.kind, "text": self.text, **self.facts}


Obstacles = Mapping[str, tuple[Obstacle, ...]]
"""Per rejected node, the things in the way."""
NO_OBSTACLES: Obstacles = MappingProxyType({})


class RejectedNodes(NamedTuple):
    """A pod, and the nodes that a plugin rejected for it, each with the reason."""

    pod: Pod
    statuses: Mapping[str, Status]
    cluster: Cluster


def unmet_label(owner: str, requirement: Requirement, labels: Mapping[str, str]) -> Obstacle:
    """A node label that does not meet a requirement of `owner`, for example the pod's nodeSelector."""
    key, has = requirement.key, labels.get(requirement.key)
    wanted = condition_text(requirement)
    is_one_value = requirement.operator == "In" and len(requirement.values) == 1
    wants = f"{key}={next(iter(requirement.values))}" if is_one_value else requirement_text(requirement)
    there = f"has no label {key}" if has is None else f"has {key}={has}"
    return Obstacle("label", f"{owner} wants {wants}, node {there}", {"label": key, "wants": wanted, "has": has})
