"""NodePorts: host ports that are in use."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from podium.cluster import Aspect, Nodes
from podium.cluster.pods import ANY_IP, HostPort, host_ports
from podium.framework import Action, Change, EventHint, Obstacle, RejectedNodes, RejectedPod, WaitingPod
from podium.framework.events import node_update
from podium.framework.obstacle import SpecPart
from podium.framework.plugin import CycleState, FilterPlugin, PodView, PreFilterPlugin
from podium.framework.status import PASSED, SKIPPED, PreFilterResult, Verdict
from podium.framework.suggested_change import edit_pod, evict_few
from podium.model import Container, Pod
from podium.model.pod import is_placed


class NodePorts(PreFilterPlugin, FilterPlugin):
    """Reject nodes where a host port of the pod is in use."""

    name = "NodePorts"
    needs = frozenset((("filter", "preFilter"),))
    reads = Aspect.PORTS
    constraint = SpecPart.PORT
    REASON = "node(s) didn't have free ports for the requested pod ports"

    def sign(self, pod: PodView) -> Hashable:
        return pod.ports

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PASSED if state.info.ports else SKIPPED

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        return Verdict.reject(nodes.among(nodes.cluster.ports.conflicts(state.info.ports)), self.REASON)

    def events_to_register(self) -> Sequence[EventHint]:
        of_nodes = Action.ADD | node_update(Action(0), self.release_rules)
        return (EventHint("Pod", Action.DELETE, self.frees_port), EventHint("Node", of_nodes))

    def frees_port(self, waiting: WaitingPod, old: Pod, new: None) -> bool:
        """Whether the deleted pod held a host port that the waiting pod wants."""
        return is_placed(old) and any(
            conflicts(freed, wanted) for freed in host_ports(old, self.release_rules) for wanted in waiting.info.ports
        )

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        return port_obstacles(rejected, conflicts)

    def fixes(self, rejected: RejectedPod) -> Iterator[Change]:
        return port_fixes(rejected, conflicts)


def conflicts(one: HostPort, other: HostPort) -> bool:
    """Whether two host ports cannot be on one node: same protocol and number, and the same or any address."""
    same = (one.protocol, one.port) == (other.protocol, other.port)
    return same and (one.ip == other.ip or ANY_IP in (one.ip, other.ip))


def port_obstacles(rejected: RejectedNodes, overlap: Callable[[HostPort, HostPort], bool]) -> dict[str, list[Obstacle]]:
    """The host ports that pods on each node hold; `overlap` tells whether two ports conflict."""
    cluster = rejected.cluster
    wanted = cluster.info_of(rejected.pod).ports
    found = {}
    for node in rejected.statuses:
        holders = {
            mine: pod.key
            for pod in cluster.pods_on(cluster.rows[node])
            for theirs in cluster.info_of(pod).ports
            for mine in wanted
            if overlap(mine, theirs)
        }
        found[node] = [_port_obstacle(mine, holder) for mine, holder in sorted(holders.items())]
    return found


def _port_obstacle(port: HostPort, holder: str) -> Obstacle:
    facts = {"port": port.port, "protocol": port.protocol, "hostIP": port.ip, "pod": holder}
    return Obstacle("port", f"host port {port.port}/{port.protocol} is taken by pod {holder}", facts)


def port_fixes(rejected: RejectedPod, overlap: Callable[[HostPort, HostPort], bool]) -> Iterator[Change]:
    """Evict the pods that hold a host port of the pod, or drop the port; `overlap` tells whether two ports conflict."""
    cluster = rejected.cluster
    wanted = cluster.info_of(rejected.pod).ports
    running = cluster.pods_on(cluster.rows[rejected.node])
    taken_by = [
        (pod, {one.port for one in wanted for other in cluster.info_of(pod).ports if overlap(one, other)})
        for pod in running
    ]
    yield from evict_few([pod for pod, ports in taken_by if ports])
    taken = {port for _, ports in taken_by for port in ports}
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
