"""A suggested fix as steps of a scenario, so that it can be tried everywhere."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import msgspec

from podium.answers.change_search import Suggestion
from podium.answers.scenario import Apply, Cordon, Evict, Step, Uncordon
from podium.answers.score_settings import ScoreSettings
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.framework.suggested_change import T
from podium.model import Node, Object, Pod

API_VERSIONS = {
    "resource.k8s.io/v1": ("DeviceClass", "DeviceTaintRule", "ResourceClaim", "ResourceClaimTemplate", "ResourceSlice"),
    "storage.k8s.io/v1": ("CSINode", "CSIStorageCapacity", "StorageClass"),
    "policy/v1": ("PodDisruptionBudget",),
    "apps/v1": ("DaemonSet", "Deployment", "ReplicaSet", "StatefulSet"),
}
"""The API versions of kinds that are not in v1."""


@dataclass(frozen=True, slots=True)
class Fix:
    """A suggestion, and how a scenario has it."""

    suggestion: Suggestion
    steps: tuple[Step, ...]
    settings: ScoreSettings | None
    """The weights that it changes; None if it changes none."""

    @property
    def can_be_tried(self) -> bool:
        """Whether a scenario can express it."""
        return bool(self.steps or self.settings)


def fix_of(suggestion: Suggestion, cluster: Cluster, pod: Pod, config: KubeSchedulerConfiguration) -> Fix:
    """The steps that make the changes of a suggestion for a pod."""
    target = _Recording(cluster, pod, config)
    for change in suggestion.changes:
        change.apply(target)
    return Fix(suggestion, tuple(target.steps(suggestion.text)), target.settings())


@dataclass
class _Recording:
    """Notes what changes do to objects, without doing it."""

    cluster: Cluster
    pod: Pod
    config: KubeSchedulerConfiguration
    _changed: dict[tuple[str, str, str], Object] = field(default_factory=dict)
    _evicted: list[str] = field(default_factory=list)
    _config: KubeSchedulerConfiguration | None = None

    def _edit(self, before: T, edit: Callable[[T], T]) -> None:
        known = self._changed.get(before.identity, before)
        assert isinstance(known, type(before))
        self._changed[before.identity] = edit(known)

    def edit_pod(self, edit: Callable[[Pod], Pod]) -> None:
        self._edit(self.pod, edit)

    def edit_node(self, name: str, edit: Callable[[Node], Node]) -> None:
        self._edit(self.cluster.node(name), edit)

    def edit_running(self, key: str, edit: Callable[[Pod], Pod]) -> None:
        found = self.cluster.find_pod(key)
        if found is not None:
            self._edit(found[0], edit)

    def edit_object(self, item: T, edit: Callable[[T], T]) -> None:
        before = self.cluster.store.of(type(item)).get(item.name, item.namespace)
        if before is not None:
            self._edit(before, edit)

    def evict(self, key: str) -> None:
        self._evicted.append(key)

    def edit_config(self, edit: Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration]) -> None:
        self._config = edit(self._config or self.config)

    def steps(self, note: str) -> list[Step]:
        """The steps; changed objects are applied whole, a node that is only cordoned or uncordoned is named."""
        found: list[Step] = []
        objects: list[dict[str, Any]] = []
        for changed in self._changed.values():
            before = self.cluster.node(changed.name) if isinstance(changed, Node) else None
            cordon = _cordons(before, changed) if before is not None and isinstance(changed, Node) else None
            if cordon is not None:
                found.append(cordon)
            else:
                objects.append(_document(changed))
        if objects:
            found.append(Apply(objects, note=note))
        if self._evicted:
            found.append(Evict(self._evicted))
        return found

    def settings(self) -> ScoreSettings | None:
        """The weights that the changes set; None if they set none, or if they change more than weights."""
        if self._config is None:
            return None
        for before, after in zip(self.config.profiles, self._config.profiles, strict=True):
            was, now = ({ref.name: ref.weight for ref in each.points.get("score", ())} for each in (before, after))
            weights = {name: now.get(name, 0) for name in was if now.get(name, 0) != was[name]}
            if weights:
                return ScoreSettings(weights=weights, profile=before.scheduler_name)
        return None


def _cordons(before: Node, after: Node) -> Step | None:
    """The step for a node that differs only in whether it is cordoned, with the taint that belongs to that."""
    from podium.model.selectors import cordoned, uncordoned

    if after == uncordoned(before):
        return Uncordon([after.name])
    return Cordon([after.name]) if after == cordoned(before) else None


def _document(obj: Object) -> dict[str, Any]:
    kind = type(obj).__name__
    version = next((version for version, kinds in API_VERSIONS.items() if kind in kinds), "v1")
    return {**msgspec.to_builtins(obj), "apiVersion": version, "kind": kind}
