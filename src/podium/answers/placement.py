"""Placing pods one after the other, with the reason at hand when one fits nowhere."""

from __future__ import annotations

from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.model import Pod


def put_back(cluster: Cluster, pod: Pod, node: str) -> None:
    """Put a pod back on the node it was on, whether it says so itself or was only placed there."""
    if pod.spec.node_name:
        cluster.add(pod)
    else:
        cluster.assume(pod, node)


def place(scheduler: Scheduler, pod: Pod) -> str | None:
    """Put the pod on its node; None if it fits nowhere or cannot be decided: `Scheduler.message` says why."""
    try:
        return scheduler.schedule(pod)
    except (InputError, PluginError, ExtenderError):
        return None
