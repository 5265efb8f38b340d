"""DefaultBinder: the chosen node becomes the pod's node."""

from __future__ import annotations

from podium.framework import SUCCESS, BindPlugin, CycleState, Status
from podium.model import Pod


class DefaultBinder(BindPlugin):
    """Bind by recording the node: the caller of the framework carries it out."""

    name = "DefaultBinder"

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS
