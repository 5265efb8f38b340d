"""NodePorts: a host port can be taken once per node."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence

from msgspec.structs import replace

from podium.cluster import Aspect, Nodes
from podium.cluster.pods import ANY_IP, HostPort, host_ports
from podium.framework.events import Action, EventHint, WaitingPod, is_placed
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin, PreFilterResult
from podium.framework.status import SKIP, Verdict
from podium.framework.suggested_change import MOST_EVICTED, Change, RejectedPod, edit_pod, evict
from podium.model import Container, Pod


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

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return port_fixes(rejected, conflicts)


def conflicts(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports cannot be on one node: same protocol and number, and the same or any address."""
    same = (one.protocol, one.port) == (other.protocol, other.port)
    return same and (one.ip == other.ip or ANY_IP in (one.ip, other.ip))


def port_fixes(rejected: RejectedPod, overlap: Callable[[HostPort, HostPort], bool]) -> Iterator[Change]:
    """Evict the pods that hold a host port of the pod, or drop the port; `overlap` says which ports exclude another."""
    wanted = host_ports(rejected.pod)
    running = rejected.cluster.pods_on(rejected.cluster.rows[rejected.node])
    holders = [pod for pod in running if any(overlap(one, other) for one in wanted for other in host_ports(pod))]
    if 0 < len(holders) <= MOST_EVICTED:
        yield evict(holders)
    taken = {one.port for one in wanted for pod in holders for other in host_ports(pod) if overlap(one, other)}
    if taken:
        text = f"drop the pod's host port {', '.join(map(str, sorted(taken)))}"
        yield edit_pod("drop-host-port", text, rejected.pod, 3, _without_ports(taken))


def _without_ports(taken: set[int]) -> Callable[[Pod], Pod]:
    def freed(containers: list[Container]) -> list[Container]:
        return [
            replace(each, ports=[port for port in each.ports if port.host_port not in taken]) for each in containers
        ]

    def edit(before: Pod) -> Pod:
        spec = before.spec
        containers, init_containers = freed(spec.containers), freed(spec.init_containers)
        return replace(before, spec=replace(spec, containers=containers, init_containers=init_containers))

    return edit
