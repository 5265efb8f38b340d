"""Objects that crash the scheduler of a release: Podium decides as other releases do, and says so."""

from __future__ import annotations

from collections.abc import Iterable

from podium.model import CSIStorageCapacity, Object, PersistentVolumeClaim
from podium.plugins.storage.claims import BETA_STORAGE_CLASS
from podium.rules import Rules


def known_crashes(objects: Iterable[Object], rules: Rules) -> list[str]:
    """A sentence for each object that may make the scheduler of a release end."""
    if not rules.scores_storage_capacity:
        return []
    found = []
    for item in objects:
        if isinstance(item, CSIStorageCapacity) and item.capacity is None and item.maximum_volume_size is not None:
            found.append(_said(f"CSIStorageCapacity {item.key} has a maximumVolumeSize and no capacity", rules))
        if isinstance(item, PersistentVolumeClaim) and named_by_annotation(item) and not item.spec.volume_name:
            found.append(_said(f"claim {item.key} names its class by the annotation {BETA_STORAGE_CLASS} alone", rules))
    return found


def named_by_annotation(claim: PersistentVolumeClaim) -> bool:
    """Whether only the old annotation says of which storage class a claim is."""
    return claim.spec.storage_class_name is None and BETA_STORAGE_CLASS in claim.metadata.annotations


def _said(problem: str, rules: Rules) -> str:
    return f"{problem}: {rules.release} may crash when it scores nodes for it; decided as by other releases"
