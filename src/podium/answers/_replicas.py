"""Creates and places the pods that an answer needs: more replicas of a workload, and replacements of lost pods."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from podium.answers.simulation import in_queue_order
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.model.objects import (
    BIND_COMPLETED,
    PersistentVolumeClaim,
)
from podium.model.pod import Pod, belongs_to_node, claim_name, is_recreated
from podium.workloads.claims import with_claims
from podium.workloads.owners import recreated


def place(scheduler: Scheduler, pod: Pod) -> str | None:
    """Put the pod on its node; None if it fits nowhere or cannot be decided: `Scheduler.message` says why."""
    try:
        return scheduler.schedule(pod)
    except (InputError, PluginError, ExtenderError):
        return None


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
