"""DefaultBinder: binds a pod to its node."""

from __future__ import annotations

from collections.abc import Callable

from podium.framework import BindPlugin
from podium.framework.plugin import CycleState
from podium.framework.status import SUCCESS, Status
from podium.model import Pod

BINDER = "Binder"
"""The cycle state's key for the Binder that binds pods at an API server; not set in a simulation."""
Binder = Callable[[Pod, str], Status]
"""Binds a pod to the node with this name."""


class DefaultBinder(BindPlugin):
    """Bind the pod at the API server; in a simulation, the caller of the loop puts the pod on its node.

    Derive from it to do something before or after binding.
    """

    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        binder: Binder | None = state.get(BINDER)
        return SUCCESS if binder is None else binder(pod, node_name)
