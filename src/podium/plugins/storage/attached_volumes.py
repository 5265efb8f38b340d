"""The volumes that are attached to each node, by CSI driver."""

from __future__ import annotations

import re
from collections.abc import Hashable, Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple, TypeVar

import numpy as np

from podium.cluster import Aspect, Cluster
from podium.cluster.cluster import ChangedRows
from podium.cluster.columns import Ints, Mask
from podium.cluster.store import Store
from podium.framework import Status
from podium.model import CSINode, Object, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass, VolumeAttachment
from podium.model.objects import storage_class_of
from podium.model.pod import claim_name
from podium.model.resources import ATTACHABLE_VOLUMES, csi_limit_key, node_allocatable
from podium.plugins.storage.claims import claim_not_found, not_owned
from podium.plugins.storage.csi_translation import (
    DRIVERS,
    NEVER_COUNTED,
    PORTWORX,
    AttachedVolume,
    TranslationError,
    in_tree_plugin,
    inline_volume,
    migrated_plugins,
    persistent_volume,
)
from podium.rules import Rules

NO_LIMIT = np.iinfo(np.int64).max

ClaimKey = tuple[str, str]
K = TypeVar("K", bound=Hashable)


Migrated = frozenset[str | None]
"""In-tree plugins that CSI drivers replaced."""


def migrated_on(node: CSINode | None, rules: Rules) -> Migrated:
    """The in-tree plugins that CSI drivers replaced on a node, for counting volumes."""
    if node is None:
        return frozenset()
    annotated = PORTWORX in migrated_plugins(node)
    if rules.migrates_portworx and (annotated or rules.migrates_portworx_without_annotation):
        return frozenset(DRIVERS)
    return frozenset(DRIVERS) - {PORTWORX}


class UncountableError(Exception):
    """A pod's volumes cannot be counted; `status` says why."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.message)
        self.status = status


class _Claimed(NamedTuple):
    """The parts of a claim that counting needs."""

    claim: PersistentVolumeClaim
    volume: AttachedVolume | None
    """The claim's volume; None if it does not count."""
    plugin: str = ""
    """The in-tree plugin of the volume, which counts only where a CSI driver replaced it; empty if there is none."""


class _Volume(NamedTuple):
    """The parts of a PersistentVolume that counting needs."""

    counted: AttachedVolume | None
    """None if it does not count."""
    plugin: str
    """The in-tree plugin that the volume belongs to; empty if there is none."""
    csi_handle: str | None
    """None for an in-tree volume, whose attachments do not count."""


class _Row(NamedTuple):
    """The volumes counted on one row."""

    claims: frozenset[ClaimKey] = frozenset()
    volumes: frozenset[AttachedVolume] = frozenset()
    """The volumes of pods."""
    drivers: Mapping[str, int] = MappingProxyType({})
    """The number of volumes per driver, including those of VolumeAttachments."""


_EMPTY_ROW = _Row()


class AttachedVolumes:
    """The volumes of the pods on each row plus those of VolumeAttachments, each counted once per row.

    It belongs to one cluster, and is as of the last `catch_up`.
    """

    def __init__(self) -> None:
        self._rules: Rules
        """The rules of the last `catch_up`."""
        self._changed_rows = ChangedRows(Aspect.PODS)
        self._version = -1
        self._claims: dict[ClaimKey, _Claimed | None] = {}
        self._volumes: dict[str, _Volume | None] = {}
        self._attachments: dict[str, dict[str, VolumeAttachment]] = {}
        self._rows: dict[int, _Row] = {}
        self._claim_rows: dict[ClaimKey, set[int]] = {}
        self._volume_rows: dict[AttachedVolume, set[int]] = {}
        self._csi_nodes: dict[int, CSINode] = {}
        self._attached: dict[str, Ints] = {}
        self._limits: dict[str, Ints] = {}
        self.limited: Mask = np.zeros(0, dtype=np.bool_)
        """Whether each row has a limit for some driver."""
        self._migrations: list[Migrated] = [frozenset()]
        self.migration: Ints = np.zeros(0, dtype=np.int64)
        """Per row, the index in `migrations` of the in-tree plugins that CSI drivers replaced there."""
        self._migrated_rows: list[tuple[Migrated, Mask]] | None = None
        """The result of `migrations`, kept until a row changes."""
        self.uncountable: dict[int, Status] = {}
        """The rows with a pod whose volumes cannot be counted, and why."""

    def attached(self, driver: str) -> Ints:
        """The number of a driver's volumes on each row."""
        found = self._attached.get(driver)
        return np.zeros(len(self.limited), dtype=np.int64) if found is None else found

    def limits(self, driver: str) -> Ints | None:
        """The maximum number of a driver's volumes on each row; None if no row has a limit."""
        return self._limits.get(csi_limit_key(driver))

    def rows_with(self, volume: AttachedVolume) -> set[int]:
        """The rows where a pod already uses a volume."""
        return self._volume_rows.get(volume, set())

    def migrations(self) -> Sequence[tuple[Migrated, Mask]]:
        """The rows, grouped by the in-tree plugins that CSI drivers replaced there."""
        if self._migrated_rows is None:
            by_place = [(migrated, self.migration == place) for place, migrated in enumerate(self._migrations)]
            self._migrated_rows = [(migrated, rows) for migrated, rows in by_place if rows.any()]
        return self._migrated_rows

    def of_pod(self, pod: Pod, store: Store, *, is_new: bool, migrated: Migrated) -> tuple[AttachedVolume, ...]:
        """The volumes that must be attached for a pod, in order and without repetition.

        They include in-tree volumes of `migrated` plugins, which CSI drivers replaced.

        Raises UncountableError where the scheduler gives up. A missing claim matters for a new pod only.
        """
        found: dict[AttachedVolume | None, None] = {}
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume)
            if name is None:
                try:
                    found[inline_volume(volume) if in_tree_plugin(volume) in migrated else None] = None
                except TranslationError as error:
                    message = f"converting volume({volume.name}) from inline to csi: {error}"
                    raise UncountableError(Status.error(message)) from error
                continue
            if not name:
                raise UncountableError(Status.error("PersistentVolumeClaim had no name"))
            claimed = self._claim((pod.namespace, name), store)
            if claimed is None:
                if is_new:
                    message = f"looking up PVC {pod.namespace}/{name}: {claim_not_found(name)}"
                    status = Status.unresolvable if self._rules.missing_claim_is_unresolvable else Status.error
                    raise UncountableError(status(message))
                continue
            if volume.ephemeral is not None and volume.persistent_volume_claim is None:
                problem = not_owned(claimed.claim, pod)
                if problem:
                    raise UncountableError(Status.error(problem))
            if not claimed.plugin or claimed.plugin in migrated:
                found[claimed.volume] = None
        return tuple([volume for volume in found if volume is not None])

    def catch_up(self, cluster: Cluster) -> None:
        self._rules = cluster.rules
        dirty = set(self._changed_rows.take(cluster))
        if self._version != cluster.store.version:
            changed = cluster.store.since(self._version)
            self._version = cluster.store.version
            if changed is None or not self._follow(changed, cluster, dirty):
                self._start_over(cluster.store)
                dirty = set(range(cluster.columns.size))
        self._grow(cluster.columns.size)
        for row in dirty:
            self._count_row(row, cluster)

    def _start_over(self, store: Store) -> None:
        self._claims.clear()
        self._volumes.clear()
        self._attachments = _attachments_by_node(store)

    def _follow(self, changed: list[Object], cluster: Cluster, dirty: set[int]) -> bool:
        """Add the rows affected by changed objects to `dirty`; False if starting over is simpler."""
        store = cluster.store
        for item in changed:
            if isinstance(item, PersistentVolumeClaim):
                key = (item.namespace, item.name)
                if key in self._claims:
                    before, after = self._claims.pop(key), self._claim(key, store)
                    if before is None or after is None or not _same(before, after):
                        dirty.update(self._claim_rows.get(key, ()))
            elif isinstance(item, PersistentVolume):
                if item.name in self._volumes and self._volumes.pop(item.name) != self._volume(item.name, store):
                    return False
            elif isinstance(item, CSINode) and item.name in cluster.rows:
                dirty.add(cluster.rows[item.name])
            elif isinstance(item, StorageClass):
                return False
        if any(isinstance(item, VolumeAttachment) for item in changed):
            self._follow_attachments(cluster, dirty)
        return True

    def _follow_attachments(self, cluster: Cluster, dirty: set[int]) -> None:
        before, self._attachments = self._attachments, _attachments_by_node(cluster.store)
        for name in before.keys() | self._attachments.keys():
            if name in cluster.rows and before.get(name) != self._attachments.get(name):
                dirty.add(cluster.rows[name])

    def _claim(self, key: ClaimKey, store: Store) -> _Claimed | None:
        if key not in self._claims:
            claim = store.of(PersistentVolumeClaim).get(key[1], key[0])
            self._claims[key] = None if claim is None else self._behind(claim, store)
        return self._claims[key]

    def _behind(self, claim: PersistentVolumeClaim, store: Store) -> _Claimed:
        """A claim with its volume, or with the volume that its class will provision."""
        volume = self._volume(claim.spec.volume_name, store) if claim.spec.volume_name else None
        if volume is not None:
            return _Claimed(claim, volume.counted, volume.plugin)
        storage_class = store.of(StorageClass).get(storage_class_of(claim))
        if storage_class is None or not storage_class.provisioner or storage_class.provisioner in NEVER_COUNTED:
            return _Claimed(claim, None)
        plugin = storage_class.provisioner if storage_class.provisioner in DRIVERS else ""
        driver = DRIVERS.get(plugin, storage_class.provisioner)
        # A handle that no volume has yet: pods that share the claim will share the volume.
        return _Claimed(claim, AttachedVolume(driver, f"claimed by {claim.key}"), plugin)

    def _volume(self, name: str, store: Store) -> _Volume | None:
        """A volume, recorded so that its changes are noticed; None if it does not exist."""
        if name not in self._volumes:
            volume = store.of(PersistentVolume).get(name)
            self._volumes[name] = None if volume is None else _volume(volume)
        return self._volumes[name]

    def _grow(self, size: int) -> None:
        missing = size - len(self.limited)
        if missing > 0:
            nothing, none = np.zeros(missing, dtype=np.int64), np.zeros(missing, dtype=np.bool_)
            self._attached = {driver: np.append(counts, nothing) for driver, counts in self._attached.items()}
            self._limits = {driver: np.append(limits, nothing + NO_LIMIT) for driver, limits in self._limits.items()}
            self.limited, self.migration = np.append(self.limited, none), np.append(self.migration, nothing)
            self._migrated_rows = None

    def _count_row(self, row: int, cluster: Cluster) -> None:
        store, name = cluster.store, cluster.names[row]
        self._set_limits(row, store.of(CSINode).get(name), cluster)
        pods = [placed.pod for placed in cluster.placed_on(row) if placed.info.pod.spec.volumes]
        attachments = self._attachments.get(name) if self._rules.counts_volume_attachments else None
        if not pods and not attachments and row not in self._rows:
            return
        claims: set[ClaimKey] = set()
        volumes: set[AttachedVolume] = set()
        self.uncountable.pop(row, None)
        for pod in pods:
            claims.update((pod.namespace, claim_name(pod, volume) or "") for volume in pod.spec.volumes)
            try:
                volumes.update(self.of_pod(pod, store, is_new=False, migrated=self._migrations[self.migration[row]]))
            except UncountableError as error:
                self.uncountable.setdefault(row, error.status)
        everything = volumes | self._attached_to(attachments, store) if attachments else volumes
        drivers: dict[str, int] = {}
        for volume in everything:
            drivers[volume.driver] = drivers.get(volume.driver, 0) + 1
        self._replace_row(row, _Row(frozenset(claims), frozenset(volumes), drivers))

    def _attached_to(self, attachments: dict[str, VolumeAttachment], store: Store) -> set[AttachedVolume]:
        """The CSI volumes that VolumeAttachments list as attached, whether or not a pod uses them."""
        found = set()
        for attachment in attachments.values():
            driver, name = attachment.spec.attacher, attachment.spec.source.persistent_volume_name
            volume = self._volume(name, store) if driver and name is not None else None
            if volume is not None and volume.csi_handle is not None:
                found.add(AttachedVolume(driver, volume.csi_handle))
        return found

    def _replace_row(self, row: int, new: _Row) -> None:
        old = self._rows.get(row, _EMPTY_ROW)
        self._rows[row] = new
        _move(self._claim_rows, row, old.claims, new.claims)
        _move(self._volume_rows, row, old.volumes, new.volumes)
        for driver in old.drivers.keys() | new.drivers.keys():
            counts = self._attached.get(driver)
            if counts is None:
                counts = self._attached[driver] = np.zeros(len(self.limited), dtype=np.int64)
            counts[row] = new.drivers.get(driver, 0)

    def _set_limits(self, row: int, node: CSINode | None, cluster: Cluster) -> None:
        alone = self._rules.limits_from_csi_node_alone
        if alone and self._csi_nodes.get(row) is node:
            return
        self._csi_nodes.pop(row, None)
        for limits in self._limits.values():
            limits[row] = NO_LIMIT
        migrated = migrated_on(node, self._rules)
        if migrated not in self._migrations:
            self._migrations.append(migrated)
        self.limited[row], self.migration[row] = False, self._migrations.index(migrated)
        self._migrated_rows = None
        if not alone and cluster.names[row]:
            for name, amount in node_allocatable(cluster.node(cluster.names[row])).items():
                if name.startswith(ATTACHABLE_VOLUMES):
                    self._limit(row, name, amount)
        if node is None:
            return
        self._csi_nodes[row] = node
        for driver in node.spec.drivers:
            if driver.allocatable is not None and driver.allocatable.count is not None:
                self._limit(row, csi_limit_key(driver.name), driver.allocatable.count)

    def _limit(self, row: int, key: str, most: int) -> None:
        found = self._limits.get(key)
        if found is None:
            found = self._limits[key] = np.full(len(self.limited), NO_LIMIT, dtype=np.int64)
        found[row] = most
        self.limited[row] = True


def _same(before: _Claimed, after: _Claimed) -> bool:
    return before[1:] == after[1:] and before.claim.metadata.controller == after.claim.metadata.controller


def _volume(volume: PersistentVolume) -> _Volume:
    try:
        found = persistent_volume(volume)
    except TranslationError:
        found = None
    counted = found if found is not None and found.driver and found.handle else None
    plugin = "" if volume.spec.csi is not None else in_tree_plugin(volume.spec) or ""
    return _Volume(counted, plugin, None if volume.spec.csi is None else volume.spec.csi.volume_handle)


def _attachments_by_node(store: Store) -> dict[str, dict[str, VolumeAttachment]]:
    by_node: dict[str, dict[str, VolumeAttachment]] = {}
    for attachment in store.of(VolumeAttachment):
        by_node.setdefault(attachment.spec.node_name, {})[attachment.name] = attachment
    return by_node


def _move(index: dict[K, set[int]], row: int, old: frozenset[K], new: frozenset[K]) -> None:
    """Move a row in the index from its old keys to its new keys."""
    for key in old - new:
        index[key].discard(row)
        if not index[key]:
            del index[key]
    for key in new - old:
        index.setdefault(key, set()).add(row)


NITRO, NITRO_LIMIT = re.compile(r"^[cmr]5.*|t3|z1d"), 25
INSTANCE_TYPE, STABLE_INSTANCE_TYPE = "beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"
