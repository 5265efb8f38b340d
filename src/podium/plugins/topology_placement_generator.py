"""TopologyPlacementGenerator: the sets of nodes where a group of pods may go."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from podium.cluster import Cluster
from podium.framework.plugin import NO_POINTS
from podium.framework.pod_group_points import Placement, PlacementGeneratePlugin
from podium.framework.status import Status
from podium.model import PodGroup
from podium.rules import Rules


class TopologyPlacementGenerator(PlacementGeneratePlugin):
    """One placement for each value of the label that the group's topology constraint names; without one, all nodes.

    Nodes without the label are in no placement. If pods of the group run already, only the value of their nodes counts.
    """

    name = "TopologyPlacementGenerator"

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        return frozenset(("placementGenerate",)) if rules.has_placement_points else NO_POINTS

    def generate_placements(self, group: PodGroup, cluster: Cluster) -> Sequence[Placement] | Status:
        key = group.topology_key
        if not key:
            return [Placement("", np.array(sorted(cluster.rows.values()), dtype=np.int64))]
        required = _domain_of_running(group, key, cluster)
        if isinstance(required, Status):
            return required
        domains: dict[str, list[int]] = {}
        for name, row in cluster.rows.items():
            domain = cluster.node(name).metadata.labels.get(key)
            if domain is not None and required in (None, domain):
                domains.setdefault(domain, []).append(row)
        return [Placement(domain, np.array(sorted(rows), dtype=np.int64)) for domain, rows in sorted(domains.items())]


def _domain_of_running(group: PodGroup, key: str, cluster: Cluster) -> str | Status | None:
    """The label's value on the nodes of the pods that run already; None if none does, an error if it differs."""
    found: str | None = None
    for placed in cluster.placed_pods(pod.key for pod in cluster.members.scheduled(group.key)):
        domain = cluster.node(cluster.names[placed.row]).metadata.labels.get(key)
        if domain is None:
            return _undetermined(f"no topology domain found for pod {placed.pod.key}")
        # kube-scheduler takes an empty value for none, and goes on with the next.
        if found and found != domain:
            return _undetermined(f"more than 1 domain found for pod group: {found}, {domain}")
        found = domain
    return found


def _undetermined(why: str) -> Status:
    return Status.error(f"cannot determine domain for already scheduled pods: {why}")
