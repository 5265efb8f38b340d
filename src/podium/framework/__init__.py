"""kube-scheduler's scheduling framework: extension points, statuses, registry, profiles."""

from podium.framework.plugin import (
    EXTENSION_POINTS,
    Action,
    BindPlugin,
    ClusterEvent,
    CycleState,
    EventHint,
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
    WaitingPod,
)
from podium.framework.registry import Framework, Registry
from podium.framework.status import SKIP, SUCCESS, WAIT, Code, PostFilterResult, PreFilterResult, Status, Verdict
from podium.framework.suggested_change import Change, Obstacle, RejectedNodes, RejectedPod

__all__ = [
    "EXTENSION_POINTS", "SKIP", "SUCCESS", "WAIT", "Action", "BindPlugin", "Change", "ClusterEvent", "Code",
    "CycleState", "EventHint", "FilterPlugin", "Framework", "Obstacle", "PermitPlugin", "Plugin", "PodView",
    "PostBindPlugin", "PostFilterPlugin", "PostFilterResult", "PreBindPlugin", "PreEnqueuePlugin",
    "PreFilterPlugin", "PreFilterResult", "PreScorePlugin", "QueueSortPlugin", "Registry", "RejectedNodes",
    "RejectedPod", "ReservePlugin", "ScorePlugin", "Status", "Verdict", "WaitingPod",
]  # fmt: skip
