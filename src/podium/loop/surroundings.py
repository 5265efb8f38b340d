"""How the rest of a simulated cluster behaves: controllers, kubelets, and who watches them."""

from __future__ import annotations

from msgspec import Struct

from podium.errors import InputError


class Surroundings(Struct, frozen=True, kw_only=True):
    """What the simulation assumes of everything but the scheduler. Times are in seconds."""

    extenders_bind: bool = False
    """Whether extenders are asked to bind pods. They may do so for good, where the pods are not simulated to them."""
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

    def __post_init__(self) -> None:
        for name in ("recreate_after", "termination", "eviction_after", "drain_retry"):
            if not 0 <= getattr(self, name) < float("inf"):
                raise InputError(f"surroundings: {name} is a number of seconds from 0 on, not {getattr(self, name)}")
        if not 0 < self.sample_every < float("inf"):
            raise InputError(f"surroundings: sample_every is a number of seconds more than 0, not {self.sample_every}")
