"""kube-scheduler's scheduling framework: extension points, statuses, registry, profiles."""

from podium.framework.events import Action, ClusterEvent, EventHint, WaitingPod
from podium.framework.obstacle import Obstacle, RejectedNodes
from podium.framework.plugin import (
    EXTENSION_POINTS,
    BindPlugin,
    CycleState,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PodView,
    PostBindPlugin,
    PostFilterPlugin,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
)
from podium.framework.registry import Framework, Registry
from podium.framework.status import SKIP, SUCCESS, WAIT, Code, PostFilterResult, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import Change, RejectedPod

__all__ = [
    "EXTENSION_POINTS", "SKIP", "SUCCESS", "WAIT", "Action", "BindPlugin", "Change", "ClusterEvent", "Code",
    "CycleState", "EventHint", "FilterPlugin", "Framework", "Obstacle", "PermitPlugin", "Plugin", "PodView",
    "PostBindPlugin", "PostFilterPlugin", "PostFilterResult", "PreBindPlugin", "PreEnqueuePlugin",
    "PreFilterPlugin", "PreFilterResult", "PreScorePlugin", "QueueSortPlugin", "Registry", "RejectedNodes",
    "RejectedPod", "ReservePlugin", "ScorePlugin", "Status", "Verdict", "WaitingPod",
]  # fmt: skip
