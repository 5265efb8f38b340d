"""kube-scheduler's extension points as classes to derive from."""

from __future__ import annotations

import traceback
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from types import TracebackType
from typing import Any, Final, NamedTuple, Protocol

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.cluster.pods import HostPort
from podium.errors import PluginError, PodiumError
from podium.framework.status import SUCCESS, Status, Verdict, checked_number, checked_status
from podium.framework.suggested_change import Change, EventHint, Obstacle, RejectedNodes, RejectedPod
from podium.model import Object, Pod, PodSpec
from podium.model.resources import PodResources
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


class PodView:
    """The pod as `sign` sees it; it notes whether anything but the spec was read.

    A signature made from the spec alone is computed once for all pods with an equal spec. A signature must not depend
    on the pod's name, uid, annotations or status: pods that differ in these alone share it.
    """

    __slots__ = ("_info", "ports", "reads_metadata", "resources", "spec")

    def __init__(self, info: PodInfo) -> None:
        self._info = info
        self.spec: PodSpec = info.pod.spec
        self.resources: PodResources = info.resources
        self.ports: tuple[HostPort, ...] = info.ports
        self.reads_metadata = False
        """Whether the labels, the namespace or the compiled pod as a whole were read."""

    @property
    def labels(self) -> Mapping[str, str]:
        """The pod's labels."""
        return self.info.labels

    @property
    def namespace(self) -> str:
        """The pod's namespace."""
        return self.info.namespace

    @property
    def info(self) -> PodInfo:
        """The compiled pod: everything that scheduling reads of it."""
        self.reads_metadata = True
        return self._info


class Plugin:
    """The root of every plugin. `args` is what the configuration's pluginConfig says, None when it says nothing."""

    name: str = ""
    title: str = ""
    """The heading of the plugin's scores in a table, where its name is too long; empty for the name itself."""
    reads: Aspect | None = None
    """The aspects of a node that the results depend on; None stands for all of them, and no result is kept."""
    runs_at: frozenset[str] = frozenset()
    """The extension points at which a profile runs the plugin; none for one outside a profile."""
    release_rules: Rules = NEWEST_RULES
    """How the release decides that the plugin is part of; known once the plugin is made, so not to `__init__`."""

    def __init__(self, args: object = None) -> None:
        self.args = args

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        """The extension points the plugin serves in a release; none where the release does not have the plugin."""
        return points_of(cls)

    @property
    def needs(self) -> Set[tuple[str, str]]:
        """The points at which the plugin fails for every pod, each with the earlier one without which it does."""
        return frozenset()

    def sign(self, pod: PodView) -> Hashable:
        """The part of a pod that the results depend on: pods with equal signatures share results.

        kube-scheduler calls this SignPod. By default it is all that scheduling reads of a pod: the spec, the labels,
        the namespace and the owners.
        """
        return pod.info.signature

    def varies(self, info: PodInfo, cluster: Cluster) -> bool:
        """Whether, for pods of this spec, the results depend on more than `reads` and `sign` say; by default, never.

        Where they do, nothing is kept of them and the plugin is asked for every such pod. Of the pod, the answer may
        depend on the spec, not on its metadata; of the cluster, on the objects that are neither nodes nor pods.
        """
        return False

    def events_to_register(self) -> Sequence[EventHint] | None:
        """The events that may make a pod fit that this plugin rejected; None, the default, stands for every event.

        A waiting pod is tried again after an event that one of the plugins that rejected it registered and whose hint
        returns True, or after five minutes. A hint that cannot tell should return True.
        """
        return None

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        """Per node that the plugin rejected, the things in the way, as far as they have names; for people."""
        return {}

    def fixes(self, rejected: RejectedPod) -> Iterable[Change]:
        """Changes each of which may make the plugin pass the node that it rejected; `podium why-not` tries them."""
        return ()


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

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        raise NotImplementedError(f"{type(self).__name__} must define filter_node or filter")

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        codes = np.zeros(len(nodes), dtype=np.int64)
        statuses: dict[Status, int] = {}
        for place, node in enumerate(nodes):
            status = checked_status(self.name, self.filter_node(state, pod, node))
            if status != SUCCESS:
                codes[place] = statuses.setdefault(status, len(statuses) + 1)
        return Verdict.choose(codes, tuple(statuses))


class ObjectChange(NamedTuple):
    """What a plugin wants of an object in the cluster: that it changes or, with None for `after`, that it goes."""

    before: Object
    after: Object | None


class PostFilterResult(NamedTuple):
    """What PostFilter did about a pod that fits nowhere; its caller makes the changes."""

    status: Status
    nominated_node: str | None = None
    changes: tuple[ObjectChange, ...] = ()


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

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        raise NotImplementedError(f"{type(self).__name__} must define score_node or score")

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        scores = (checked_number(self.name, self.score_node(state, pod, node)) for node in nodes)
        return np.fromiter(scores, np.int64, len(nodes))

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        """Bring the scores of all feasible nodes to 0..100, once they are known. Not called unless overridden."""
        return scores

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterable[Change]:
        """Changes each of which may give the node a better score for the pod; `podium why-not` tries them."""
        return ()

    @property
    def normalizes(self) -> bool:
        """Whether the plugin defines `normalize`."""
        return type(self).normalize is not ScorePlugin.normalize


class ReservePlugin(Plugin):
    """Called when a node is chosen, and again when the pod is not bound to it after all."""

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


class PluginFaults:
    """A context in which any exception that a plugin raises becomes a PluginError that names the plugin."""

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if not isinstance(error, Exception) or isinstance(error, PodiumError):
            return
        running: Plugin | None = None
        for frame, _ in traceback.walk_tb(trace):
            caller = frame.f_locals.get("self")
            running = caller if isinstance(caller, Plugin) else running
        if running is not None:
            raise PluginError(running.name, f"failed: {type(error).__name__}: {error}") from error


PLUGIN_FAULTS = PluginFaults()
