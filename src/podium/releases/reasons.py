"""Why a node does not fit, in the words of each release, and verdicts made of such reasons."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import NamedTuple

import numpy as np

from podium.cluster import NodeInfo, Nodes
from podium.cluster.columns import Mask
from podium.framework import SUCCESS, CycleState, FilterPlugin, Status, Verdict
from podium.framework.fast_paths import ForSomePods
from podium.model import Pod
from podium.releases.rules import OfRelease, Rules


class Reason(NamedTuple):
    """A failure: its name, its sentence, and whether evicting pods from the node might help."""

    name: str
    sentence: str
    resolvable: bool = False

    def text(self, rules: Rules) -> str:
        return self.name if rules.bare_reasons else self.sentence


DISK_CONFLICT = Reason("NoDiskConflict", "node(s) had no available disk", True)
VOLUME_ZONE = Reason("NoVolumeZoneConflict", "node(s) had no available volume zone")
NODE_SELECTOR = Reason("MatchNodeSelector", "node(s) didn't match node selector")
POD_AFFINITY = Reason("MatchInterPodAffinity", "node(s) didn't match pod affinity/anti-affinity", True)
AFFINITY_RULES = Reason("PodAffinityRulesNotMatch", "node(s) didn't match pod affinity rules")
ANTI_AFFINITY_RULES = Reason("PodAntiAffinityRulesNotMatch", "node(s) didn't match pod anti-affinity rules", True)
EXISTING_ANTI_AFFINITY = Reason(
    "ExistingPodsAntiAffinityRulesNotMatch", "node(s) didn't satisfy existing pods anti-affinity rules", True
)
TAINTS = Reason("PodToleratesNodeTaints", "node(s) had taints that the pod didn't tolerate")
HOST_NAME = Reason("HostName", "node(s) didn't match the requested hostname")
HOST_PORTS = Reason("PodFitsHostPorts", "node(s) didn't have free ports for the requested pod ports", True)
LABEL_PRESENCE = Reason("CheckNodeLabelPresence", "node(s) didn't have the requested labels")
SERVICE_AFFINITY = Reason("CheckServiceAffinity", "node(s) didn't match service affinity", True)
MAX_VOLUMES = Reason("MaxVolumeCount", "node(s) exceed max volume count", True)
MEMORY_PRESSURE = Reason("NodeUnderMemoryPressure", "node(s) had memory pressure")
DISK_PRESSURE = Reason("NodeUnderDiskPressure", "node(s) had disk pressure")
PID_PRESSURE = Reason("NodeUnderPIDPressure", "node(s) had pid pressure")
OUT_OF_DISK = Reason("NodeOutOfDisk", "node(s) were out of disk space")
NOT_READY = Reason("NodeNotReady", "node(s) were not ready")
NETWORK = Reason("NodeNetworkUnavailable", "node(s) had unavailable network")
UNSCHEDULABLE = Reason("NodeUnschedulable", "node(s) were unschedulable")
VOLUME_NODE = Reason("NoVolumeNodeConflict", "node(s) had volume node affinity conflict")
VOLUME_BINDING = Reason("VolumeBindingNoMatch", "node(s) didn't find available persistent volumes to bind")
VOLUME_MISSING = Reason("PVNotExist", "pvc(s) bound to non-existent pv(s)")
UNBOUND_CLAIMS = Reason("UnboundImmediatePVC", "pod has unbound immediate PersistentVolumeClaims")


def insufficient(resource: str) -> Reason:
    return Reason(f"Insufficient {resource}", f"Insufficient {resource}", True)


class Failure(NamedTuple):
    """Which nodes fail for a reason."""

    nodes: Mask
    reason: Reason


class Predicate(OfRelease, FilterPlugin):
    """A filter that gives all its reasons. Define `failures`: the same reasons in the same order for every call."""

    def failures(self, state: CycleState, pod: Pod, nodes: Nodes) -> list[Failure]:
        raise NotImplementedError(f"{type(self).__name__} must define failures")

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        found = self.failures(state, pod, nodes)
        codes = np.zeros(len(nodes), dtype=np.int64)
        for place, failure in enumerate(found):
            codes |= failure.nodes.astype(np.int64) << place
        return Verdict(codes, partial(_status, [failure.reason for failure in found], self.rules))


def _status(reasons: Sequence[Reason], rules: Rules, code: int) -> Status:
    """The status of a code with one bit per reason."""
    return rejection([reason for place, reason in enumerate(reasons) if code & (1 << place)], rules)


def rejection(reasons: Sequence[Reason], rules: Rules) -> Status:
    """A node does not fit for these reasons; evicting pods helps if it helps against all of them."""
    texts = tuple(reason.text(rules) for reason in reasons)
    resolvable = all(reason.resolvable for reason in reasons)
    return Status.unschedulable(*texts) if resolvable else Status.unresolvable(*texts)


class NodePredicate(OfRelease, ForSomePods, FilterPlugin):
    """A filter that looks at one node at a time. Define `check`; None means that the pod fits."""

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        raise NotImplementedError(f"{type(self).__name__} must define check")

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return (self.check(pod, node) or SUCCESS) if self.concerns(state.info, node.cluster) else SUCCESS

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        if not self.concerns(state.info, nodes.cluster):
            return Verdict.choose(np.zeros(len(nodes), dtype=np.int64), ())
        return super().filter(state, pod, nodes)
