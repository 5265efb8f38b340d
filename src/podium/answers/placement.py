"""Placing pods one after the other, with the reason at hand when one fits nowhere."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from podium.cluster import Cluster, PodInfo
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.manifests.claim_templates import claims_for
from podium.model import Pod, ResourceClaim, ResourceClaimTemplate
from podium.plugins.dynamic_resources.pod_claims import claims_key


def put_back(cluster: Cluster, pod: Pod, node: str, held: Iterable[ResourceClaim] = ()) -> None:
    """Put a pod back on the node it was on, whether it says so itself or was only placed there.

    `held` are the claims that its end changed, as they were before.
    """
    if pod.spec.node_name:
        cluster.add(pod)
    else:
        cluster.assume(pod, node)
    for claim in held:
        cluster.update(claim)


def with_claims(pod: Pod, cluster: Cluster) -> Pod:
    """A new pod with the claims that are made from templates for it; they are in the cluster from now on."""
    if not pod.spec.resource_claims:
        return pod
    pod, claims = claims_for(pod, cluster.store.of(ResourceClaimTemplate).get)
    for claim in claims:
        cluster.update(claim)
    return pod


class Placing:
    """Places pods and remembers which kinds do not fit: until a pod is placed or leaves, equal ones fail alike."""

    def __init__(self, scheduler: Scheduler) -> None:
        self.scheduler = scheduler
        self.changes = 0
        """Counts the pods that were placed or left."""
        self._failed: dict[tuple[PodInfo, str, Hashable], str | None] = {}
        """The kinds that do not fit, and why, as far as somebody asked."""

    def place(self, pod: Pod) -> str | None:
        """Put the pod on its node; None if it fits nowhere or cannot be decided."""
        kind = self._kind(pod)
        if kind in self._failed:
            return None
        try:
            node = self.scheduler.schedule(pod)
        except (InputError, PluginError, ExtenderError) as error:
            self._failed[kind] = str(error)
            return None
        if node is None:
            self._failed[kind] = None
        else:
            self.something_changed()
        return node

    def why(self, pod: Pod) -> str:
        """Why the pod, which was just not placed, fits nowhere."""
        kind = self._kind(pod)
        known = self._failed.get(kind)
        if known is None:
            decision = self.scheduler.decide(pod)
            known = self._failed[kind] = decision.error or decision.message
        return known

    def something_changed(self) -> None:
        """Pods came or left: nothing that was learned about those that did not fit holds any more."""
        self.changes += 1
        self._failed.clear()

    def _kind(self, pod: Pod) -> tuple[PodInfo, str, Hashable]:
        cluster = self.scheduler.cluster
        return cluster.info_of(pod), pod.spec.scheduler_name, claims_key(pod, cluster.store)
