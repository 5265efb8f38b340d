"""Creates and places the pods that an answer needs: more replicas of a workload, and replacements of lost pods."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import count

from msgspec.structs import replace

from podium.answers.simulation import in_queue_order
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.manifests.workloads import (
    Expansion,
    claims_for,
    default_storage_class,
    ephemeral_claims,
    expand_daemon_set,
    ordinal_labels,
    recreated,
    stateful_claims,
    with_claims_as_volumes,
)
from podium.model.devices import ResourceClaimTemplate
from podium.model.objects import DaemonSet, PersistentVolumeClaim, StatefulSet, StorageClass
from podium.model.pod import Pod, belongs_to_node, is_of_daemon_set, is_recreated
from podium.plugins.storage.claims import BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE, claim_name

_OF_BINDING = (BIND_COMPLETED, BOUND_BY_CONTROLLER, SELECTED_NODE)


def with_claims(pod: Pod, cluster: Cluster) -> Pod:
    """Create a new pod's claims from templates, add them to the cluster, and return the pod with their names.

    An existing claim of an ephemeral volume is left alone.
    """
    if pod.spec.resource_claims:
        pod, claims = claims_for(pod, cluster.store.of(ResourceClaimTemplate).get)
        for claim in claims:
            cluster.update(claim)
    if any(volume.ephemeral is not None for volume in pod.spec.volumes):
        known = cluster.store.of(PersistentVolumeClaim)
        for ephemeral in ephemeral_claims(pod, default_storage_class(cluster.store.of(StorageClass))):
            if known.get(ephemeral.name, ephemeral.namespace) is None:
                cluster.update(ephemeral)
    return pod


def place(scheduler: Scheduler, pod: Pod) -> str | None:
    """Put the pod on its node; None if it fits nowhere or cannot be decided: `Scheduler.message` says why."""
    try:
        return scheduler.schedule(pod)
    except (InputError, PluginError, ExtenderError):
        return None


def pods_of(templates: Sequence[Pod], mix: Sequence[int], cluster: Cluster) -> Iterator[tuple[int, Pod]]:
    """Pods of the templates in turn, each with the index of its template; no name is used twice.

    The iterator is infinite, unless a DaemonSet is among the templates and every eligible node has its pod. The claims
    of a pod are added to the cluster when it is created.
    """
    makers = [_replicas(recreated(template), cluster) for template in templates]
    while True:
        for place, number in enumerate(mix):
            for _ in range(number):
                pod = next(makers[place], None)
                if pod is None:
                    return
                yield place, pod


def _replicas(template: Pod, cluster: Cluster) -> Iterator[Pod]:
    owner = template.metadata.controller
    if owner is not None and owner.kind == "StatefulSet":
        return _ordinals(template, owner.name, cluster)
    if owner is not None and is_of_daemon_set(template):
        daemon_set = cluster.store.of(DaemonSet).get(owner.name, template.namespace)
        if daemon_set is not None:
            return _daemons(template, daemon_set, cluster)
    return _numbered(template, cluster)


def _numbered(template: Pod, cluster: Cluster) -> Iterator[Pod]:
    metadata, prefix = template.metadata, f"{template.key}-"
    for number in count():
        # A pod of the cluster may already have this name.
        if cluster.find_pod(f"{prefix}{number}") is None:
            name = f"{metadata.name}-{number}"
            numbered = replace(template, metadata=replace(metadata, name=name, uid=f"{metadata.uid}-{number}"))
            yield with_claims(numbered, cluster)


def _ordinals(template: Pod, set_name: str, cluster: Cluster) -> Iterator[Pod]:
    """The pods of a StatefulSet with free ordinals; existing claims are used, as they outlive pods."""
    known = cluster.store.of(StatefulSet).get(set_name, template.namespace) or StatefulSet()
    claimed = _claims_by_volume(template, set_name)
    default = default_storage_class(cluster.store.of(StorageClass))
    for ordinal in count(known.spec.ordinals.start):
        name = f"{set_name}-{ordinal}"
        if cluster.find_pod(f"{template.namespace}/{name}") is not None:
            continue
        made = stateful_claims(known, name, default) or _like(claimed, name, template.namespace, cluster)
        for claim in made:
            if cluster.store.of(PersistentVolumeClaim).get(claim.name, claim.namespace) is None:
                cluster.update(claim)
        metadata = replace(
            template.metadata,
            name=name,
            uid=f"{template.metadata.uid}-{ordinal}",
            labels={**template.metadata.labels, **ordinal_labels(name, ordinal)},
        )
        volumes = with_claims_as_volumes(template.spec.volumes, {volume: f"{volume}-{name}" for volume in claimed})
        yield with_claims(replace(template, metadata=metadata, spec=replace(template.spec, volumes=volumes)), cluster)


def _claims_by_volume(template: Pod, set_name: str) -> dict[str, str]:
    """The own claims of a StatefulSet's pod, by volume: they are named after the volume and the pod."""
    found = {}
    for volume in template.spec.volumes:
        source = volume.persistent_volume_claim
        if source is not None and re.fullmatch(rf"{re.escape(f'{volume.name}-{set_name}')}-\d+", source.claim_name):
            found[volume.name] = source.claim_name
    return found


def _like(claimed: dict[str, str], pod: str, namespace: str, cluster: Cluster) -> list[PersistentVolumeClaim]:
    """New claims copied from those of another pod, for a StatefulSet that is not in the input itself."""
    made = []
    for volume, name in claimed.items():
        claim = cluster.store.of(PersistentVolumeClaim).get(name, namespace)
        if claim is not None:
            annotations = {key: text for key, text in claim.metadata.annotations.items() if key not in _OF_BINDING}
            own = f"{volume}-{pod}"
            metadata = replace(claim.metadata, name=own, uid=f"{claim.metadata.uid}/{own}", annotations=annotations)
            made.append(PersistentVolumeClaim(metadata=metadata, spec=replace(claim.spec, volume_name="")))
    return made


def _daemons(template: Pod, daemon_set: DaemonSet, cluster: Cluster) -> Iterator[Pod]:
    """A pod for each eligible node that has none, with the template's priority."""
    nodes = [cluster.node(name) for name in cluster.rows]
    running = [pod for pod, _ in cluster.placed() if is_of_daemon_set(pod)]
    expansion = Expansion([*nodes, daemon_set, *running, *cluster.pending.values()])
    spec = template.spec
    for made in expand_daemon_set(daemon_set, expansion):
        if isinstance(made, Pod):
            own = replace(
                made.spec,
                priority=spec.priority,
                preemption_policy=spec.preemption_policy,
                scheduler_name=spec.scheduler_name,
            )
            yield with_claims(replace(made, spec=own), cluster)


@dataclass(slots=True)
class Recreated:
    """A pod that was recreated under its old name, and its new node."""

    pod: Pod
    old_node: str
    node: str | None = None
    message: str = ""
    """Why it stays pending, if it does."""
    preempted_by: str = ""
    """The pod that preempted it, if that is why it lost its node."""
    tried_at: tuple[int, ...] = ()
    """The version of the cluster when it was last tried."""


class Recreation:
    """Recreates pods and places them, with preemption if wanted; pods that fit nowhere are tried again later."""

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        preempt: bool,
        on_gone: Callable[[Pod], object],
        on_decided: Callable[[], object] = lambda: None,
        explain: bool = True,
    ) -> None:
        """`on_gone` is called for each pod that has left its node and is not recreated yet, `on_decided` once it is.

        Without `explain`, it does not determine why pods stay pending, which takes time.
        """
        self.scheduler, self._preempt, self._explain = scheduler, preempt, explain
        self._on_gone, self._on_decided = on_gone, on_decided
        self.found: dict[str, Recreated] = {}
        self.lost: dict[str, Recreated] = {}
        """Pods that are not recreated, or only for the same node."""

    def recreate(self, pods: Iterable[tuple[Pod, str]], preempted_by: str = "") -> None:
        """Remove pods from the cluster, if they are still there, and place their replacements in queue order."""
        new, pods = [], list(pods)
        for pod, _ in pods:
            self.scheduler.cluster.end(pod)
        for pod, node in pods:
            self._on_gone(pod)
            if not is_recreated(pod) or belongs_to_node(pod):
                self.lost[pod.key] = Recreated(pod, node, preempted_by=preempted_by)
                continue
            twin, known = self._anew(pod), self.found.get(pod.key)
            # A pod that loses its node again keeps its first node as the old one.
            self.found[pod.key] = Recreated(twin, known.old_node if known else node, preempted_by=preempted_by)
            new.append(twin)
        for pod in in_queue_order(new, self.scheduler):
            self._place(self.found[pod.key])
            self._on_decided()

    def retry(self) -> bool:
        """Try pending pods again until no further pod is placed; returns whether any was."""
        placed, cluster = False, self.scheduler.cluster
        while waiting := [each.pod for each in self.pending() if each.tried_at != cluster.version]:
            for pod in in_queue_order(waiting, self.scheduler):
                self._place(self.found[pod.key])
            if all(self.found[pod.key].node is None for pod in waiting):
                break
            placed = True
        return placed

    def pending(self) -> Iterator[Recreated]:
        return (each for each in self.found.values() if each.node is None)

    def _place(self, entry: Recreated) -> None:
        pod = entry.pod
        entry.node = place(self.scheduler, pod)
        if entry.node is None and self._preempt and not pod.spec.scheduling_gates:
            self._make_room(entry)
        entry.message = self.scheduler.message(pod) if entry.node is None and self._explain else ""
        entry.tried_at = self.scheduler.cluster.version

    def _make_room(self, entry: Recreated) -> None:
        pod = entry.pod
        decision = self.scheduler.place(pod, preempt=True)
        if decision.nominated is None:
            return
        victims = next(each.victims for each in decision.candidates if each.node == decision.nominated)
        entry.node = place(self.scheduler, pod)
        self.recreate([(victim, decision.nominated) for victim in victims if not victim.terminating], pod.key)

    def _anew(self, pod: Pod) -> Pod:
        """The pod as its controller creates it again. Its own claims, for ephemeral volumes, are new as well."""
        store = self.scheduler.cluster.store
        for volume in pod.spec.volumes:
            name = claim_name(pod, volume) if volume.ephemeral is not None else None
            claim = store.of(PersistentVolumeClaim).get(name, pod.namespace) if name else None
            if claim is not None:
                annotations = {key: value for key, value in claim.metadata.annotations.items() if key != BIND_COMPLETED}
                metadata = replace(claim.metadata, annotations=annotations)
                self.scheduler.cluster.update(
                    PersistentVolumeClaim(metadata=metadata, spec=replace(claim.spec, volume_name=""))
                )
        return with_claims(recreated(pod), self.scheduler.cluster)
