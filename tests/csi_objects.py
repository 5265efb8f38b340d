"""What a CSI driver tells of itself, for tests: its limits on a node, its capacity, its attachments."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from builders import Fields, make_object
from podium.model import CSIDriver, CSINode, CSIStorageCapacity, VolumeAttachment

DRIVER = "csi.example.com"
MIGRATED_PLUGINS = "storage.alpha.kubernetes.io/migrated-plugins"


def make_csi_node(name: str, limits: Mapping[str, int | None], migrated: Iterable[str] = ()) -> CSINode:
    """A CSINode: how many volumes of each driver the node can attach, None for a driver without limit."""
    drivers = [
        {
            "name": driver,
            "nodeID": name,
            "topologyKeys": [],
            **({} if count is None else {"allocatable": {"count": count}}),
        }
        for driver, count in limits.items()
    ]
    annotations = {"annotations": {MIGRATED_PLUGINS: ",".join(migrated)}} if migrated else {}
    made = make_object("CSINode", name, metadata=annotations, spec={"drivers": drivers})
    assert isinstance(made, CSINode)
    return made


def make_driver(name: str = DRIVER, *, reports_capacity: bool) -> CSIDriver:
    made = make_object("CSIDriver", name, spec={"storageCapacity": reports_capacity})
    assert isinstance(made, CSIDriver)
    return made


def make_capacity(name: str, storage_class: str, topology: Fields | None, **amounts: str) -> CSIStorageCapacity:
    """How much of a class there is for the nodes that `topology`, a label selector, selects."""
    fields: Fields = {"storageClassName": storage_class, **amounts}
    if topology is not None:
        fields["nodeTopology"] = topology
    made = make_object("CSIStorageCapacity", name, namespace="kube-system", **fields)
    assert isinstance(made, CSIStorageCapacity)
    return made


def make_attachment(name: str, node: str, volume: str | None, attacher: str = DRIVER) -> VolumeAttachment:
    source = {} if volume is None else {"persistentVolumeName": volume}
    made = make_object("VolumeAttachment", name, spec={"attacher": attacher, "nodeName": node, "source": source})
    assert isinstance(made, VolumeAttachment)
    return made
