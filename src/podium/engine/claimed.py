"""What becomes of the claims of pods that were placed: which volume each gets, or where one is provisioned for it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from podium.cluster import Cluster
from podium.objects import CSINode, PersistentVolumeClaim, Pod, StorageClass
from podium.plugins.bindable_volumes import BindableVolumes
from podium.plugins.claims import SELECTED_NODE, STORAGE, claim_name, class_of_claim
from podium.plugins.csi_migration import DRIVERS

Outcome = Literal["bound", "reserved", "provisioned", "undecided"]


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claim of a placed pod, and the volume behind it."""

    claim: str
    """namespace/name"""
    pod: str
    """The first pod placed that uses it, as namespace/name."""
    size: str
    """How much it asks for, as the claim writes it; empty if it does not say."""
    storage_class: str
    """Empty for none."""
    outcome: Outcome
    """`bound` before, `reserved` for it now, to be `provisioned`, or `undecided` where no plugin binds volumes."""
    volume: str | None = None
    """None for a volume that does not exist yet."""
    node: str | None = None
    """The node that a volume is provisioned for."""
    topology: Mapping[str, str] = field(default_factory=dict)
    """Where on that account it is provisioned: the node's labels that its driver goes by, as far as a CSINode says."""


def claimed(cluster: Cluster, placed: Iterable[tuple[Pod, str]]) -> tuple[Claimed, ...]:
    """The claims of these pods on their nodes, each once, in the order of the pods."""
    volumes, found = BindableVolumes(), dict[str, Claimed]()
    for pod, node in placed:
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace) if name else None
            if claim is not None and claim.key not in found:
                volumes.catch_up(cluster.store)
                found[claim.key] = _claimed(claim, pod, node, cluster, volumes)
    return tuple(found.values())


def _claimed(claim: PersistentVolumeClaim, pod: Pod, node: str, cluster: Cluster, volumes: BindableVolumes) -> Claimed:
    size = str(claim.spec.resources.requests.get(STORAGE, ""))
    storage_class = class_of_claim(claim)
    about = (claim.key, pod.key, size, storage_class)
    if claim.spec.volume_name:
        return Claimed(*about, "bound", claim.spec.volume_name)
    selected = claim.metadata.annotations.get(SELECTED_NODE)
    if selected is not None:
        return Claimed(*about, "provisioned", None, selected, _topology(storage_class, selected, cluster))
    row = cluster.rows[node]
    for reserved in volumes.reserved_for(claim):
        if row in volumes.rows(reserved.reach, cluster):
            return Claimed(*about, "reserved", reserved.name)
    return Claimed(*about, "undecided")


def _topology(class_name: str, node_name: str, cluster: Cluster) -> dict[str, str]:
    """The labels by which a class's driver tells nodes apart, with the values they have on a node."""
    storage_class, csi_node = cluster.store.of(StorageClass).get(class_name), cluster.store.of(CSINode).get(node_name)
    if storage_class is None or csi_node is None or node_name not in cluster.rows:
        return {}
    name = DRIVERS.get(storage_class.provisioner, storage_class.provisioner)
    labels = cluster.node(node_name).metadata.labels
    keys = [key for driver in csi_node.spec.drivers if driver.name == name for key in driver.topology_keys]
    return {key: labels[key] for key in keys if key in labels}
