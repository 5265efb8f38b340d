"""kube-scheduler's extension points as classes to derive from.

A plugin derives from the classes of the points it serves and gives itself a `name`. Points that look at nodes may be
written for one node at a time (`filter_node`, `score_node`) or for all nodes at once with arrays (`filter`, `score`).

Speed is opt-in: a plugin whose results for a node depend only on some aspects of that node says so in `reads`, and on
which part of the pod in `key`; the engine then re-evaluates only nodes that changed. Without `reads` every decision
evaluates the plugin in full: slow is allowed, wrong is not.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from typing import Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.framework import return_values as returned
from podium.framework.events import ClusterEvent
from podium.framework.status import SUCCESS, Status, Verdict
from podium.model import Pod
from podium.rules import NEWEST_RULES, Rules

MAX_NODE_SCORE = 100
MIN_NODE_SCORE = 0
NOTHING: Final[dict[str, Any]] = {}


class CycleState(dict[str, Any]):
    """What plugins keep from one extension point to a later one of the same decision, under keys of their choice."""

    __slots__ = ("info",)

    def __init__(self, info: PodInfo, items: Mapping[str, Any] = NOTHING) -> None:
        super().__init__(items)
        self.info = info
        """The pod's compiled spec."""


Key = TypeVar("Key", bound=Callable[..., Hashable])


def of_spec(key: Key) -> Key:
    """Marks a `key` that looks at nothing but the pod's spec: it is asked once for all pods with an equal one."""
    vars(key)["is_of_spec"] = True
    return key


def keys_by_spec(plugin: Plugin) -> bool:
    """Whether the plugin's `key` is marked with `of_spec`."""
    return hasattr(plugin.key, "is_of_spec")


class Plugin:
    """The root of every plugin. `args` is what the configuration's pluginConfig says, None when it says nothing."""

    name: str = ""
    reads: Aspect | None = None
    """What of a node the results depend on; None means anything, so nothing is reused."""
    release_rules: Rules = NEWEST_RULES
    """How the release decides that the plugin is part of; known once the plugin is made, so not to `__init__`."""

    def __init__(self, args: object = None) -> None:
        self.args = args

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        """The extension points the plugin serves in a release; none where the release does not have the plugin."""
        return points_of(cls)

    def key(self, info: PodInfo) -> Hashable:
        """What of a pod the results depend on: pods with equal keys share results. By default, the whole spec."""
        return info.signature

    def concerns(self, info: PodInfo, cluster: Cluster) -> bool:
        """Whether the plugin has anything to do with pods of this spec; by default, it has.

        Of the cluster, the answer may depend on the objects that are neither nodes nor pods, and on whether any pod has
        affinity terms.
        With others its PreFilter, Filter, PreScore and Reserve are not called, which saves time: they must skip, pass
        and do nothing there. Nor is its Score, if it has a PreScore. A plugin that says what it `reads` is asked once
        for all pods that are the same to it, and needs no such answer.
        """
        return True

    def varies(self, info: PodInfo, cluster: Cluster) -> bool:
        """Whether, for pods of this spec, the results depend on more than `reads` and `key` say; by default, never.

        Where they do, nothing is kept of them and the plugin is asked for every such pod. Of the cluster, the answer
        may depend on the objects that are neither nodes nor pods.
        """
        return False

    def is_schedulable_after(self, pod: Pod, event: ClusterEvent) -> bool:
        """Whether an event may make a pod fit that this plugin rejected; by default, any event may.

        A pod that waits is tried again only after an event that one of the plugins that rejected it says yes to, or
        after five minutes. Say yes when in doubt.
        """
        return True


class PreEnqueuePlugin(Plugin):
    """Decides whether a pod may enter the queue at all."""

    def pre_enqueue(self, pod: Pod) -> Status:
        raise NotImplementedError(f"{type(self).__name__} must define pre_enqueue")

    def pre_enqueue_in(self, pod: Pod, cluster: Cluster) -> Status:
        """What `pre_enqueue` says; for a plugin that has to look at the cluster for it."""
        return self.pre_enqueue(pod)


class QueuedPod(Protocol):
    """A pod in the queue, as far as ordering it goes."""

    @property
    def pod(self) -> Pod: ...

    @property
    def timestamp(self) -> float: ...


class QueueSortPlugin(Plugin):
    """Orders the queue: the pod with the smallest key is next."""

    def sort_key(self, queued: QueuedPod) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define sort_key")


class PreFilterResult(NamedTuple):
    """What PreFilter found out: a status, and the only nodes worth looking at (None for all)."""

    status: Status = SUCCESS
    node_names: frozenset[str] | None = None


class PreFilterPlugin(Plugin):
    """Looks at the pod before nodes are filtered; may skip its own Filter, narrow the nodes or reject the pod."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        raise NotImplementedError(f"{type(self).__name__} must define pre_filter")

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        """Update `state` for a pod that was put on a node since; state read from the cluster needs no update."""
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        """Update `state` for a pod that was taken off a node since."""
        return SUCCESS


class FilterPlugin(Plugin):
    """Rejects nodes. Define `filter_node` or, faster, `filter`."""

    def filter_labels(self, state: CycleState) -> tuple[str, ...] | None:
        """The node labels that alone decide what `filter` says this time; None if it is more than labels."""
        return None

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        raise NotImplementedError(f"{type(self).__name__} must define filter_node or filter")

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        codes = np.zeros(len(nodes), dtype=np.int64)
        statuses: dict[Status, int] = {}
        for place, node in enumerate(nodes):
            status = returned.status(self.name, self.filter_node(state, pod, node))
            if status != SUCCESS:
                codes[place] = statuses.setdefault(status, len(statuses) + 1)
        return Verdict.choose(codes, tuple(statuses))


class PostFilterResult(NamedTuple):
    """What PostFilter did about a pod that fits nowhere."""

    status: Status
    nominated_node: str | None = None


class PostFilterPlugin(Plugin):
    """Tries to make room for a pod that fits nowhere; `statuses` says why each node was rejected."""

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
        raise NotImplementedError(f"{type(self).__name__} must define post_filter")


class PreScorePlugin(Plugin):
    """Looks at the feasible nodes before scoring; returning SKIP leaves the plugin's Score out."""

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        raise NotImplementedError(f"{type(self).__name__} must define pre_score")


class ScorePlugin(Plugin):
    """Ranks feasible nodes. Define `score_node` or, faster, `score`; scores must be 0..100 after normalising."""

    normalizes_by_max = False
    """Whether `normalize` gives equal scores one and the same result, however many nodes have them."""

    @property
    def scores_unconcerned_pods(self) -> bool:
        """Whether pods that the plugin has nothing to do with (`concerns`) have 0 on every node, not no score."""
        return False

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define score_node or score")

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        scores = (returned.number(self.name, self.score_node(state, pod, node)) for node in nodes)
        return np.fromiter(scores, np.int64, len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        """Bring the scores of all feasible nodes to 0..100, once they are known. Not called unless overridden."""
        return scores

    def score_labels(self, state: CycleState) -> tuple[str, ...] | None:
        """The node labels that alone decide a node's score this time; None if it is more than labels.

        A plugin that gives some also promises that `normalize` does not mind how many nodes have a score.
        """
        return None

    @property
    def normalizes(self) -> bool:
        return type(self).normalize is not ScorePlugin.normalize


class ReservePlugin(Plugin):
    """Told when a node is chosen, and again when that comes to nothing."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo `reserve`; called in reverse order, also when `reserve` was not reached."""

    def settle(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Make what was reserved lasting: called instead of PreBind where a pod counts as bound once it is placed."""

    def details(self, state: CycleState, pod: Pod, node_name: str) -> Mapping[str, Any]:
        """What the plugin would reserve on a node, as plain data to be shown with the decision."""
        return NOTHING


class PermitPlugin(Plugin):
    """May let the pod wait before binding: returns a status and, for WAIT, how many seconds at most."""

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> tuple[Status, float]:
        raise NotImplementedError(f"{type(self).__name__} must define permit")


class PreBindPlugin(Plugin):
    """Prepares what the pod needs on its node."""

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        raise NotImplementedError(f"{type(self).__name__} must define pre_bind")


class BindPlugin(Plugin):
    """Binds the pod; SKIP hands it to the next bind plugin."""

    def bind(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        raise NotImplementedError(f"{type(self).__name__} must define bind")


class PostBindPlugin(Plugin):
    """Told when the pod is bound."""

    def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        raise NotImplementedError(f"{type(self).__name__} must define post_bind")


EXTENSION_POINTS: dict[str, type[Plugin]] = {
    "preEnqueue": PreEnqueuePlugin,
    "queueSort": QueueSortPlugin,
    "preFilter": PreFilterPlugin,
    "filter": FilterPlugin,
    "postFilter": PostFilterPlugin,
    "preScore": PreScorePlugin,
    "score": ScorePlugin,
    "reserve": ReservePlugin,
    "permit": PermitPlugin,
    "preBind": PreBindPlugin,
    "bind": BindPlugin,
    "postBind": PostBindPlugin,
}
"""The names the configuration uses for the extension points."""


def points_of(plugin: type[Plugin]) -> frozenset[str]:
    """The extension points a plugin serves."""
    return frozenset(point for point, kind in EXTENSION_POINTS.items() if issubclass(plugin, kind))
