"""The contract of a strategy: which pods it adds and keeps nodes for, and which nodes it removes.

To add a strategy, write one class here beside `cluster_autoscaler.py` and `karpenter.py`, and name it in `STRATEGIES`
of `_node_groups_file.py`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import TYPE_CHECKING, ClassVar, Self

from podium.manifests.located import Section
from podium.model import Node, Pod
from podium.workloads.disruptions import Disruptions

if TYPE_CHECKING:
    from podium.autoscaling._cloud_provider import CloudProvider
    from podium.autoscaling.trial_cluster import TrialCluster


class Strategy(ABC):
    """The rules and the settings of one autoscaler."""

    name: ClassVar[str]
    """As `strategy` in the file of node groups names it."""
    default_expander: ClassVar[str]
    fields: ClassVar[tuple[str, ...]]
    """The settings in the file that only this strategy reads."""

    @classmethod
    @abstractmethod
    def read(cls, top: Section, scan_interval: float) -> Self:
        """Read the strategy's own settings from the file of node groups."""

    def is_expendable(self, pod: Pod) -> bool:
        """Whether no node is added or kept for a pod."""
        return False

    def is_ignored(self, pod: Pod) -> bool:
        """Whether a pod's requests are left out of the utilization of its node."""
        return False

    @abstractmethod
    def allows_eviction(self, pod: Pod, disruptions: Disruptions) -> bool:
        """Whether a pod that its budgets let go may be evicted so that its node can be removed."""

    @abstractmethod
    def allows_removal(self, node: Node) -> bool:
        """Whether a node's annotations let it be removed."""

    @abstractmethod
    def removals(self, cloud: CloudProvider) -> Removals:
        """What removes the nodes of one timeline."""


class Removals(ABC):
    """Removes nodes of one timeline. The autoscaler calls `update` in each scan, and `act` if it added no nodes."""

    @abstractmethod
    def timers(self) -> Iterator[float]:
        """The times at which a node may become due."""

    @abstractmethod
    def update(self, tried: TrialCluster) -> None:
        """Note which nodes could go. `tried` is the cluster with the waiting pods placed where they fit."""

    @abstractmethod
    def act(self) -> bool:
        """Remove the nodes that are due; returns whether there were any."""
