"""Claims, volumes and storage classes that pods need and the input does not have."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import NamedTuple

from podium.load.phrases import count, some
from podium.objects import Object, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass

_BETA_CLASS = "volume.beta.kubernetes.io/storage-class"
_ADVICE = "as in a cluster without them; --assume-volumes ignores storage"


def missing_storage(objects: Iterable[Object]) -> list[str]:
    """One line for each kind that is missing: how much depends on it, and how that is treated."""
    objects = list(objects)
    users = _claims_of_pods(objects)
    if not users.named and not users.ephemeral:
        return []
    claims = {obj.key: obj for obj in objects if type(obj) is PersistentVolumeClaim}
    used = [claims[key] for key in {**users.named, **users.ephemeral} if key in claims]
    return [
        *_missing_claims(users.named, claims),
        *_missing_volumes(used, {obj.name for obj in objects if type(obj) is PersistentVolume}),
        *_missing_classes(used, {obj.name for obj in objects if type(obj) is StorageClass}),
    ]


class _Users(NamedTuple):
    """The claims that pods use, as namespace/name, each with the first pod that does."""

    named: dict[str, Pod]
    ephemeral: dict[str, Pod]
    """Claims of ephemeral volumes. They may well be missing: Kubernetes makes them for the pods that need them."""


def _claims_of_pods(objects: list[Object]) -> _Users:
    users = _Users({}, {})
    for pod in objects:
        if type(pod) is Pod and pod.spec.volumes and not pod.finished:
            for volume in pod.spec.volumes:
                if volume.persistent_volume_claim is not None:
                    users.named.setdefault(f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}", pod)
                elif volume.ephemeral is not None:
                    users.ephemeral.setdefault(f"{pod.key}-{volume.name}", pod)
    return users


def _missing_claims(users: dict[str, Pod], known: Collection[str]) -> Iterator[str]:
    missing = [key for key in users if key not in known]
    if missing:
        such = f"pods that use them, such as {users[missing[0]].key}, fit on no node, {_ADVICE}"
        if not known:
            yield f"no PersistentVolumeClaims in the input: {count(len(missing), 'claim')} missing; {such}"
        else:
            yield f"PersistentVolumeClaim {some(missing)} not in the input: {such}"


def _missing_volumes(used: list[PersistentVolumeClaim], known: Collection[str]) -> Iterator[str]:
    lost = [claim for claim in used if claim.spec.volume_name and claim.spec.volume_name not in known]
    if lost:
        such = (
            f"{count(len(lost), 'bound claim')}, such as {lost[0].key}, without a volume; pods that use them fit on "
            f"no node, {_ADVICE}"
        )
        if not known:
            yield f"no PersistentVolumes in the input: {such}"
        else:
            names = dict.fromkeys(claim.spec.volume_name for claim in lost)
            yield f"PersistentVolume {some(names)} not in the input: {such}"


def _missing_classes(used: list[PersistentVolumeClaim], known: Collection[str]) -> Iterator[str]:
    """Only claims that are not bound yet ask their class what to do."""
    lost = [claim for claim in used if not claim.spec.volume_name and _class(claim) and _class(claim) not in known]
    if lost:
        such = (
            f"{count(len(lost), 'unbound claim')}, such as {lost[0].key}, cannot be bound; pods that use them fit on "
            f"no node, {_ADVICE}"
        )
        if not known:
            yield f"no StorageClasses in the input: {such}"
        else:
            yield f"StorageClass {some(dict.fromkeys(map(_class, lost)))} not in the input: {such}"


def _class(claim: PersistentVolumeClaim) -> str:
    return claim.metadata.annotations.get(_BETA_CLASS, claim.spec.storage_class_name or "")
