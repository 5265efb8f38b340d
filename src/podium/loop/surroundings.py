"""How the rest of a simulated cluster behaves: controllers, kubelets, and who watches them."""

from __future__ import annotations

from msgspec import Struct


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the simulation assumes of everything but the scheduler. Times are in seconds."""

    controllers: bool = True
    """Whether workloads are turned into pods, and pods that are lost or evicted come back."""
    recreate_after: float = 1.0
    """How long a controller takes to make a new pod."""
    termination: float = 1.0
    """How long a pod takes to end when it is told to, unless its grace period is shorter."""
    eviction_after: float = 300.0
    """How long pods stay on a node that failed, unless their tolerations say otherwise."""
    drain_retry: float = 5.0
    """How long a drain waits before it tries again to evict pods that a budget protects."""
    sample_every: float = 10.0
    """How often the state of the cluster is sampled."""
