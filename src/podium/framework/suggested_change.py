"""The changes that a user can make to send a rejected pod to a node."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from dataclasses import replace as replace_data
from typing import Any, NamedTuple, Protocol, TypeVar

from msgspec.structs import replace

from podium.cluster import Cluster
from podium.config.types import KubeSchedulerConfiguration
from podium.framework.status import Status
from podium.model import ContainerImage, Node, Object, Pod, Taint, Toleration
from podium.model.objects import BETA_REGION, BETA_ZONE, HOSTNAME, REGION, ZONE
from podium.model.pod import ends_with_node
from podium.model.resources import CPU
from podium.model.selectors import uncordoned
from podium.wording import joined

T = TypeVar("T", bound=Object)

EACH = 10
"""The fixed cost of every change: two small changes cost more than a large one."""
MOST_EVICTED_TOGETHER = 3
"""The maximum number of pods that one change evicts, where all of them have to go."""
MOST_VALUES = 3
"""How many values of a missing label are suggested."""
LOWER_REQUEST = "lower-request"
"""The kind of a change that lowers the pod's own requests."""
NEVER_EVICTED = 2_000_000_000
"""From this priority on, a pod keeps a node or the cluster running."""


class ChangeTarget(Protocol):
    """A pending pod, a cluster and a configuration to try changes on. Every change can be undone."""

    @property
    def cluster(self) -> Cluster: ...

    def edit_pod(self, edit: Callable[[Pod], Pod]) -> None:
        """Change the pod that is to be placed."""

    def edit_node(self, name: str, edit: Callable[[Node], Node]) -> None:
        """Change a node."""

    def edit_running(self, key: str, edit: Callable[[Pod], Pod]) -> None:
        """Change a pod that is on a node; `key` is its namespace/name."""

    def edit_object(self, item: T, edit: Callable[[T], T]) -> None:
        """Change an object that is neither a node nor a pod; its kind, namespace and name identify it."""

    def evict(self, key: str) -> None:
        """Remove a pod that is on a node."""

    def edit_config(self, edit: Callable[[KubeSchedulerConfiguration], KubeSchedulerConfiguration]) -> None:
        """Change the scheduler's configuration."""


@dataclass(frozen=True, slots=True)
class Change:
    """One change: a sentence that says what to do, and a function that applies it to a `ChangeTarget`."""

    kind: str
    text: str
    on: tuple[str, ...]
    """The objects that change: `node/name`, `pod/namespace/name` or `profile/name`."""
    size: int
    """How large the change is; the search tries smaller ones first."""
    apply: Callable[[ChangeTarget], None] = field(compare=False, repr=False)

    @property
    def cost(self) -> int:
        """The cost by which the search finds the smallest set of changes."""
        return EACH + self.size

    def to_dict(self) -> dict[str, Any]:
        """The change as plain data."""
        return {"kind": self.kind, "on": list(self.on), "text": self.text}


class RejectedPod(NamedTuple):
    """A pod, the node that a plugin rejected for it, and why."""

    pod: Pod
    node: str
    status: Status
    cluster: Cluster

    @property
    def node_object(self) -> Node:
        """The rejected node."""
        return self.cluster.node(self.node)

    @property
    def node_labels(self) -> Mapping[str, str]:
        """The labels of the rejected node."""
        return self.node_object.metadata.labels


def uncordon(node: str) -> Change:
    """Let pods be scheduled on a cordoned node again."""
    return Change("uncordon", f"uncordon {node}", (f"node/{node}",), 0, lambda to: to.edit_node(node, uncordoned))


def remove_taint(node: str, taint: Taint) -> Change:
    """Remove a taint from a node."""

    def edit(before: Node) -> Node:
        return replace(before, spec=replace(before.spec, taints=[each for each in before.spec.taints if each != taint]))

    text = f"remove the taint {taint_text(taint)} from {node}"
    return Change("remove-taint", text, (f"node/{node}",), 1, lambda to: to.edit_node(node, edit))


_MACHINE = ("kubernetes.io/arch", "kubernetes.io/os", "beta.kubernetes.io/arch", "beta.kubernetes.io/os")
FACTS_ABOUT_THE_NODE = frozenset((ZONE, REGION, BETA_ZONE, BETA_REGION, HOSTNAME, *_MACHINE))
"""Labels that say what and where a node is. Nobody sets them by hand: that would move no node."""


def label_node(node: str, labels: Mapping[str, str | None]) -> Iterator[Change]:
    """Set labels of a node; a value of None removes the label. No change if one of them is a fact about the node."""
    if not FACTS_ABOUT_THE_NODE.isdisjoint(labels):
        return

    def edit(before: Node) -> Node:
        merged = {**before.metadata.labels, **labels}
        kept = {key: value for key, value in merged.items() if value is not None}
        return replace(before, metadata=replace(before.metadata, labels=kept))

    given = [f"{key}={value}" for key, value in labels.items() if value is not None]
    taken = [key for key, value in labels.items() if value is None]
    parts = [
        *([f"label {node} {joined(given)}"] if given else []),
        *([f"remove the label {joined(taken)} from {node}"] if taken else []),
    ]
    yield Change("label-node", joined(parts), (f"node/{node}",), 1 + len(labels), lambda to: to.edit_node(node, edit))


def missing_labels(cluster: Cluster, node: str, keys: Sequence[str]) -> Iterator[Change]:
    """Give a node a label that it lacks, with a few of the values that other nodes have."""
    labels = cluster.node(node).metadata.labels
    for key in dict.fromkeys(keys):
        if key not in labels:
            known = {cluster.node(name).metadata.labels.get(key) for name in cluster.rows} - {None}
            for value in sorted(str(each) for each in known)[:MOST_VALUES]:
                yield from label_node(node, {key: value})


def pull_image(node: str, image: str, size: int) -> Change:
    """Pull an image of `size` bytes on a node."""

    def edit(before: Node) -> Node:
        images = [*before.status.images, ContainerImage(names=[image], size_bytes=size)]
        return replace(before, status=replace(before.status, images=images))

    return Change("pull-image", f"pull {image} on {node}", (f"node/{node}",), 2, lambda to: to.edit_node(node, edit))


def evict(pods: Sequence[Pod]) -> Change:
    """Evict pods from their nodes."""

    def apply(to: ChangeTarget) -> None:
        for pod in pods:
            to.evict(pod.key)

    named = [f"{pod.key} (priority {pod.priority})" for pod in pods]
    return Change("evict", f"evict {joined(named)}", tuple(f"pod/{pod.key}" for pod in pods), 4 * len(pods), apply)


def may_be_evicted(pod: Pod) -> bool:
    """Whether a user may be advised to evict a pod: it neither ends with its node nor keeps the cluster running."""
    return pod.priority < NEVER_EVICTED and not ends_with_node(pod)


def evict_few(pods: Sequence[Pod]) -> Iterator[Change]:
    """Evict all of these pods, if they are few and all of them may be evicted."""
    if 0 < len(pods) <= MOST_EVICTED_TOGETHER and all(map(may_be_evicted, pods)):
        yield evict(sorted(pods, key=lambda pod: (pod.priority, pod.key)))


def evictable(cluster: Cluster, node: str) -> list[Pod]:
    """The pods on a node that may be evicted: lowest priority first, then the largest."""
    found = filter(may_be_evicted, cluster.pods_on(cluster.rows[node]))
    return sorted(found, key=lambda pod: (pod.priority, -cluster.info_of(pod).resources.used.get(CPU, 0), pod.key))


def same_domain(cluster: Cluster, node: str, key: str) -> list[Pod]:
    """The pods on the nodes that have the same value of a label as this node; none if it lacks the label."""
    value = cluster.node(node).metadata.labels.get(key)
    if value is None:
        return []
    return [pod for pod, where in cluster.placed() if cluster.node(where).metadata.labels.get(key) == value]


def edit_running(kind: str, text: str, pod: Pod, edit: Callable[[Pod], Pod]) -> Change:
    """Change a pod that is on a node."""
    return Change(kind, text, (f"pod/{pod.key}",), 4, lambda to: to.edit_running(pod.key, edit))


def edit_pod(kind: str, text: str, pod: Pod, size: int, edit: Callable[[Pod], Pod]) -> Change:
    """Change the pod that is to be placed."""
    return Change(kind, text, (f"pod/{pod.key}",), size, lambda to: to.edit_pod(edit))


def tolerate(pod: Pod, taint: Taint) -> Change:
    """Let the pod tolerate a taint."""
    operator = "Equal" if taint.value else "Exists"
    toleration = Toleration(key=taint.key, operator=operator, value=taint.value, effect=taint.effect)

    def edit(before: Pod) -> Pod:
        return replace(before, spec=replace(before.spec, tolerations=[*before.spec.tolerations, toleration]))

    return edit_pod("tolerate", f"let the pod tolerate the taint {taint_text(taint)}", pod, 2, edit)


def taint_text(taint: Taint) -> str:
    """The taint as kubectl writes it: `key=value:Effect`."""
    return f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"


def set_args(profile: str, plugin: str, text: str, args: object) -> Change:
    """Change the arguments of a plugin in a profile."""

    def edit(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        profiles = [
            replace_data(each, args={**each.args, plugin: args}) if each.scheduler_name == profile else each
            for each in config.profiles
        ]
        return replace_data(config, profiles=tuple(profiles))

    return Change("set-args", text, (f"profile/{profile}",), 6, lambda to: to.edit_config(edit))
