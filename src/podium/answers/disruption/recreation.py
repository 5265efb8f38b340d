"""What happens to pods that lose their node: their controllers make them anew, and the scheduler places them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from msgspec.structs import replace

from podium.answers.capacity import as_template
from podium.answers.placement import place, with_claims
from podium.engine import Scheduler
from podium.engine.simulation import in_queue_order
from podium.model import PersistentVolumeClaim, Pod
from podium.model.pod_kinds import belongs_to_node
from podium.plugins.storage.claims import BIND_COMPLETED, claim_name


@dataclass(slots=True)
class Recreated:
    """A pod that was made anew under its old name, and where it got to."""

    pod: Pod
    old_node: str
    node: str | None = None
    message: str = ""
    """Why it stays pending, if it does."""
    preempted_by: str = ""
    """The pod it had to make room for, if that is why it lost its node."""
    tried_at: tuple[int, ...] = ()
    """The version of the cluster when it was tried last."""


class Recreation:
    """Makes pods anew and places them, with preemption if wanted; those that fit nowhere are tried again later."""

    def __init__(
        self,
        scheduler: Scheduler,
        *,
        preempt: bool,
        on_gone: Callable[[Pod], object],
        on_decided: Callable[[], object] = lambda: None,
        explain: bool = True,
    ) -> None:
        """`on_gone` is called for each pod that has left its node and is not made anew yet, `on_decided` once it is.

        Unless it has to `explain`, nobody finds out why pods stay pending, which takes time.
        """
        self.scheduler, self._preempt, self._explain = scheduler, preempt, explain
        self._on_gone, self._on_decided = on_gone, on_decided
        self.found: dict[str, Recreated] = {}
        self.lost: dict[str, Recreated] = {}
        """Pods that are not made anew, or only for the same node."""

    def recreate(self, pods: Iterable[tuple[Pod, str]], preempted_by: str = "") -> None:
        """Take pods off the cluster, as far as they are still there, and place new ones for them in queue order."""
        new, pods = [], list(pods)
        for pod, _ in pods:
            self.scheduler.cluster.end(pod)
        for pod, node in pods:
            self._on_gone(pod)
            if pod.metadata.controller is None or belongs_to_node(pod):
                self.lost[pod.key] = Recreated(pod, node, preempted_by=preempted_by)
                continue
            twin, known = self._anew(pod), self.found.get(pod.key)
            # One that loses its node a second time still comes from where it was at first.
            self.found[pod.key] = Recreated(twin, known.old_node if known else node, preempted_by=preempted_by)
            new.append(twin)
        for pod in in_queue_order(new, self.scheduler):
            self._place(self.found[pod.key])
            self._on_decided()

    def retry(self) -> bool:
        """Try those again that are pending for as long as that places one; whether it did."""
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

    def _place(self, recreated: Recreated) -> None:
        pod = recreated.pod
        recreated.node = place(self.scheduler, pod)
        if recreated.node is None and self._preempt and not pod.spec.scheduling_gates:
            self._make_room(recreated)
        recreated.message = self.scheduler.message(pod) if recreated.node is None and self._explain else ""
        recreated.tried_at = self.scheduler.cluster.version

    def _make_room(self, recreated: Recreated) -> None:
        pod = recreated.pod
        decision = self.scheduler.place(pod, preempt=True)
        if decision.nominated is None:
            return
        victims = next(each.victims for each in decision.candidates if each.node == decision.nominated)
        recreated.node = place(self.scheduler, pod)
        self.recreate([(victim, decision.nominated) for victim in victims if not victim.terminating], pod.key)

    def _anew(self, pod: Pod) -> Pod:
        """The pod as its controller makes it again. Claims of its own, for ephemeral volumes, are new with it."""
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
        return with_claims(as_template(pod), self.scheduler.cluster)
