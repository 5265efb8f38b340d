"""kube-scheduler's scheduling framework: extension points, statuses, registry, profiles."""

from podium.framework.check import check_plugin
from podium.framework.events import Action, ClusterEvent
from podium.framework.framework import Framework
from podium.framework.plugin import (
    EXTENSION_POINTS,
    BindPlugin,
    CycleState,
    FilterPlugin,
    PermitPlugin,
    Plugin,
    PostBindPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreEnqueuePlugin,
    PreFilterPlugin,
    PreFilterResult,
    PreScorePlugin,
    QueueSortPlugin,
    ReservePlugin,
    ScorePlugin,
    of_spec,
)
from podium.framework.registry import Registry
from podium.framework.status import SKIP, SUCCESS, WAIT, Code, Status, Verdict

__all__ = [
    "EXTENSION_POINTS",
    "SKIP",
    "SUCCESS",
    "WAIT",
    "Action",
    "BindPlugin",
    "ClusterEvent",
    "Code",
    "CycleState",
    "FilterPlugin",
    "Framework",
    "PermitPlugin",
    "Plugin",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QueueSortPlugin",
    "Registry",
    "ReservePlugin",
    "ScorePlugin",
    "Status",
    "Verdict",
    "check_plugin",
    "of_spec",
]
