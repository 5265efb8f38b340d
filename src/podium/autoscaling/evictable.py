"""Which pods may be moved so that their node can go, by cluster-autoscaler's rules."""

from __future__ import annotations

from collections.abc import Callable

from podium.autoscaling.groups import Settings
from podium.model import Node, Pod

SAFE_TO_EVICT = "cluster-autoscaler.kubernetes.io/safe-to-evict"
DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
SCALE_DOWN_DISABLED = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
MIRROR = "kubernetes.io/config.mirror"
SYSTEM = "kube-system"
MEMORY_MEDIUM = "Memory"


def goes_along(pod: Pod) -> bool:
    """Whether a pod goes with its node and nobody minds: of a DaemonSet, a mirror pod, or one that ends anyway."""
    owner = pod.metadata.controller
    return pod.terminating or MIRROR in pod.metadata.annotations or (owner is not None and owner.kind == "DaemonSet")


def may_move(pod: Pod, settings: Settings, may_evict: Callable[[Pod], bool]) -> bool:
    """Whether a pod may be evicted so that its node can go; `may_evict` asks the PodDisruptionBudgets."""
    annotations = pod.metadata.annotations
    if annotations.get(SAFE_TO_EVICT) == "false" or annotations.get(DO_NOT_DISRUPT) == "true":
        return False
    if not may_evict(pod):
        return False
    if annotations.get(SAFE_TO_EVICT) == "true":
        return True
    if pod.metadata.controller is None:
        # Nobody would make it anew.
        return False
    if settings.skip_nodes_with_system_pods and pod.namespace == SYSTEM:
        return False
    return not (settings.skip_nodes_with_local_storage and _has_local_storage(pod))


def may_go(node: Node) -> bool:
    """Whether a node lets itself be removed."""
    annotations = node.metadata.annotations
    return annotations.get(SCALE_DOWN_DISABLED) != "true" and annotations.get(DO_NOT_DISRUPT) != "true"


def _has_local_storage(pod: Pod) -> bool:
    return any(
        volume.host_path is not None or (volume.empty_dir is not None and volume.empty_dir.medium != MEMORY_MEDIUM)
        for volume in pod.spec.volumes
    )
