"""NodePorts: a host port can be taken once per node."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

from podium.cluster import Aspect, Nodes
from podium.cluster.pods import ANY_IP, HostPort, host_ports
from podium.framework.events import Action, EventHint, WaitingPod, is_placed
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreFilterResult
from podium.framework.status import SKIP, Verdict
from podium.model import Pod


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Reject nodes where a host port of the pod is in use."""

    name = "NodePorts"
    reads = Aspect.PORTS
    REASON = "node(s) didn't have free ports for the requested pod ports"

    def sign(self, pod: PodView) -> Hashable:
        return pod.ports

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult() if state.info.ports else PreFilterResult(SKIP)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.reject(nodes.among(nodes.cluster.ports.conflicts(state.info.ports)), self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        return (EventHint("Pod", Action.DELETE, self.frees_port), EventHint("Node", Action.ADD))

    def frees_port(self, waiting: WaitingPod, old: Pod, new: None) -> bool:
        """Whether the deleted pod held a host port that the waiting pod wants."""
        return is_placed(old) and any(
            conflicts(freed, wanted) for freed in host_ports(old) for wanted in waiting.info.ports
        )


def conflicts(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports cannot be on one node: same protocol and number, and the same or any address."""
    same = (one.protocol, one.port) == (other.protocol, other.port)
    return same and (one.ip == other.ip or ANY_IP in (one.ip, other.ip))
