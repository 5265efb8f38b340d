"""Placing pods one after the other, with the reason at hand when one fits nowhere."""

from __future__ import annotations

from collections.abc import Iterable

from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.manifests.claim_templates import claims_for
from podium.model import Pod, ResourceClaim, ResourceClaimTemplate


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


def place(scheduler: Scheduler, pod: Pod) -> str | None:
    """Put the pod on its node; None if it fits nowhere or cannot be decided: `Scheduler.message` says why."""
    try:
        return scheduler.schedule(pod)
    except (InputError, PluginError, ExtenderError):
        return None
