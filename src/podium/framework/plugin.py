"""kube-scheduler's extension points as classes to derive from."""

from __future__ import annotations

import traceback
from collections.abc import Hashable, Iterable, Mapping, Sequence, Set
from types import TracebackType
from typing import Any, Final, Protocol, Self

import numpy as np

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes, PodInfo
from podium.cluster.columns import Ints
from podium.cluster.pods import NO_TERMS, HostPort
from podium.config.types import MAX_NODE_SCORE as MAX_NODE_SCORE
from podium.errors import PluginError, PodiumError
from podium.framework.events import EventHint
from podium.framework.obstacle import Obstacle, RejectedNodes, SpecPart
from podium.framework.status import (
    SUCCESS,
    PostFilterResult,
    PreFilterResult,
    Status,
    Verdict,
    checked_number,
    checked_status,
)
from podium.framework.status import ObjectChange as ObjectChange
from podium.framework.suggested_change import Change, RejectedPod
from podium.model import Pod, PodSpec
from podium.model.resources import PodResources
from podium.rules import Rules

MIN_NODE_SCORE = 0
NO_POINTS: Final[frozenset[str]] = frozenset()
"""The extension points of a plugin that a release does not have."""
NOTHING: Final[dict[str, Any]] = {}


class CycleState(dict[str, Any]):
    """Data that plugins pass from one extension point to a later one of the same decision, under keys of their
    choice.
    """

    __slots__ = ("info",)

    def __init__(self, info: PodInfo, items: Mapping[str, Any] = NOTHING) -> None:
        super().__init__(items)
        self.info = info
        """The pod's compiled spec."""


class PodView:
    """The pod as `sign` and `concerns` see it; it records whether anything but the spec was read.

    An answer from the spec alone is computed once for all pods with an equal spec. An answer must not depend on the
    pod's name, uid, annotations or status: pods that differ only in these share it.
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
    def has_terms(self) -> bool:
        """Whether the spec has terms of pod affinity or anti-affinity."""
        return self._info.terms is not NO_TERMS

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
        """The compiled pod: everything that scheduling reads from it."""
        self.reads_metadata = True
        return self._info


class Plugin:
    """The base class of every plugin. `args` comes from the configuration's pluginConfig; None if it has no entry."""

    name: str = ""
    title: str = ""
    """The heading of the plugin's scores in a table, if its name is too long; empty to use the name."""
    reads: Aspect | None = None
    """The aspects of a node that the results depend on; None means all, and no result is kept."""
    constraint: SpecPart | None = None
    """The part of a pod's spec for which the plugin rejects nodes; None if it is not about the spec alone."""
    runs_at: frozenset[str] = frozenset()
    """The extension points at which a profile runs the plugin; empty for a plugin outside a profile."""
    release_rules: Rules
    """The rules of the release that the plugin belongs to; set after `__init__`, which cannot read them yet."""

    def __init__(self, args: object = None) -> None:
        self.args = args

    @classmethod
    def of_release(cls, rules: Rules, args: object = None) -> Self:
        """A plugin that follows the rules of a release."""
        plugin = cls(args)
        plugin.release_rules = rules
        return plugin

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        """The extension points that the plugin serves in a release; empty if the release does not have the plugin."""
        return points_of(cls)

    @property
    def needs(self) -> Set[tuple[str, str]]:
        """Pairs of extension points: the plugin fails for every pod at the first if the profile leaves out the
        second.
        """
        return frozenset()

    def sign(self, pod: PodView) -> Hashable:
        """The part of a pod that the results depend on: pods with equal signatures share results.

        kube-scheduler calls this SignPod. By default it is everything that scheduling reads from a pod: the spec, the
        labels, the namespace and the owners.
        """
        return pod.info.signature

    def varies(self, info: PodInfo, cluster: Cluster) -> bool:
        """Whether the results for pods with this spec depend on more than `reads` and `sign` declare; by default,
        never.

        If they do, no results are kept and the plugin runs for every pod with this spec. The answer may depend on the
        pod's spec, not on its metadata, and on the cluster's objects that are neither nodes nor pods.
        """
        return False

    def events_to_register(self) -> Sequence[EventHint] | None:
        """The events that may make a pod fit that this plugin rejected; None, the default, means every event.

        A waiting pod is tried again after an event that one of its rejecting plugins registered and whose hint returns
        True, or after five minutes. A hint that cannot tell should return True.
        """
        return None

    def obstacles(self, rejected: RejectedNodes) -> Mapping[str, Sequence[Obstacle]]:
        """Per node that the plugin rejected, the things in the way that can be named; shown to users."""
        return {}

    def constraint_of(self, reason: str) -> SpecPart | None:
        """The part of a pod's spec for which the plugin rejects nodes with this reason."""
        return self.constraint

    def fixes(self, rejected: RejectedPod) -> Iterable[Change]:
        """Changes that may each make the plugin pass the node that it rejected; `podium why-not` tries them."""
        return ()


class PreEnqueuePlugin(Plugin):
    """Decides whether a pod may enter the queue."""

    def pre_enqueue(self, pod: Pod) -> Status:
        raise NotImplementedError(f"{type(self).__name__} must define pre_enqueue")

    def pre_enqueue_in(self, pod: Pod, cluster: Cluster) -> Status:
        """The same as `pre_enqueue`, for a plugin that needs the cluster to decide."""
        return self.pre_enqueue(pod)


class QueuedPod(Protocol):
    """The fields of a queued pod that queue sorting needs."""

    @property
    def pod(self) -> Pod: ...

    @property
    def timestamp(self) -> float: ...


class QueueSortPlugin(Plugin):
    """Orders the queue: the pod with the smallest key is next."""

    def sort_key(self, queued: QueuedPod) -> Any:
        raise NotImplementedError(f"{type(self).__name__} must define sort_key")


class PreFilterPlugin(Plugin):
    """Runs before nodes are filtered; may skip its own Filter, narrow the nodes or reject the pod."""

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        raise NotImplementedError(f"{type(self).__name__} must define pre_filter")

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        """Update `state` after a pod was added to a node; state read from the cluster needs no update."""
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        """Update `state` after a pod was removed from a node."""
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


class PostFilterPlugin(Plugin):
    """Tries to make room for a pod that fits nowhere; `statuses` has the status of each rejected node."""

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
        raise NotImplementedError(f"{type(self).__name__} must define post_filter")


class PreScorePlugin(Plugin):
    """Runs on the feasible nodes before scoring; returning SKIP leaves out the plugin's Score."""

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
        """Bring the scores of all feasible nodes to 0..100. Called only if overridden."""
        return scores

    def score_lines(self, state: CycleState, pod: Pod, node: NodeInfo) -> Sequence[str]:
        """How the node's score comes about, with this node's numbers; the last line ends in the score.

        Called when somebody asks for it, after PreFilter, Filter and PreScore. By default there is nothing to say.
        """
        return ()

    def normalize_lines(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes, place: int) -> Sequence[str]:
        """How `normalize` comes to the result of the node at a place of `nodes`, the feasible nodes; the last line ends
        in the result. By default there is nothing to say.
        """
        return ()

    def score_fixes(self, pod: Pod, node: str, cluster: Cluster) -> Iterable[Change]:
        """Changes that may each give the node a better score for the pod; `podium why-not` tries them."""
        return ()

    @property
    def normalizes(self) -> bool:
        """Whether the plugin defines `normalize`."""
        return type(self).normalize is not ScorePlugin.normalize


def explains_score(plugin: ScorePlugin) -> bool:
    """Whether `score_lines` is about the plugin's score, and not about that of a class which it changed."""
    return _is_defined_with(plugin, "score_lines", ("score", "score_node"))


def explains_normalizing(plugin: ScorePlugin) -> bool:
    """Whether `normalize_lines` is about the plugin's `normalize`."""
    return _is_defined_with(plugin, "normalize_lines", ("normalize",))


def _is_defined_with(plugin: ScorePlugin, lines: str, methods: Sequence[str]) -> bool:
    """Whether no class that changed one of the methods has left the lines as they were."""

    def depth(name: str) -> int:
        return next(place for place, kind in enumerate(type(plugin).__mro__) if name in vars(kind))

    return depth(lines) <= min(map(depth, methods))


class ReservePlugin(Plugin):
    """Runs when a node is chosen, and again if the pod is not bound to it after all."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Undo `reserve`; called in reverse order, even if `reserve` was not reached."""

    def settle(self, state: CycleState, pod: Pod, node_name: str) -> None:
        """Make a reservation permanent; called instead of PreBind where a placed pod counts as bound."""

    def details(self, state: CycleState, pod: Pod, node_name: str) -> Mapping[str, Any]:
        """The plugin's reservation on a node, as plain data to show with the decision."""
        return NOTHING


class PermitPlugin(Plugin):
    """May delay binding: returns a status and, for WAIT, the maximum seconds to wait."""

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
    """Called after the pod is bound."""

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
    """A context that turns any exception of a plugin into a PluginError that names the plugin."""

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
