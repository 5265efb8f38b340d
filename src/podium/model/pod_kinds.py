"""What kind of pod one is: bound to the life of its node, or with objects of its own that go by its name."""

from __future__ import annotations

from podium.model.pod import Pod

MIRROR_ANNOTATION = "kubernetes.io/config.mirror"
"""On the API server's copy of a static pod, which the kubelet of its node runs from a file."""


def is_static(pod: Pod) -> bool:
    """Whether the pod is the mirror of a static pod: its node runs it, and deleting the mirror does not end it."""
    owner = pod.metadata.controller
    return MIRROR_ANNOTATION in pod.metadata.annotations or (owner is not None and owner.kind == "Node")


def belongs_to_node(pod: Pod) -> bool:
    """Whether the pod comes and goes with its node: a DaemonSet's pod, or the mirror of a static one.

    A drain leaves it where it is, and nobody makes another one for a different node.
    """
    owner = pod.metadata.controller
    return is_static(pod) or (owner is not None and owner.kind == "DaemonSet")


def has_objects_of_its_own(pod: Pod) -> bool:
    """Whether the pod uses objects made for it alone, which are found by its name.

    These are the claims of generic ephemeral volumes. Two such pods with equal specs need not fit the same nodes.
    """
    return any(volume.ephemeral is not None for volume in pod.spec.volumes)
