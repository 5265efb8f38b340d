"""Podium decides where a Kubernetes pod goes, exactly as kube-scheduler would, and shows why."""

from __future__ import annotations

from importlib import import_module

__version__ = "0.1.0"

TYPE_CHECKING = False

if TYPE_CHECKING:
    from podium.answers.simulation import Placement as Placement
    from podium.answers.simulation import Simulation as Simulation
    from podium.answers.simulation import Usage as Usage
    from podium.answers.simulation import simulate as simulate
    from podium.cluster import Aspect as Aspect
    from podium.cluster import Cluster as Cluster
    from podium.cluster import NodeInfo as NodeInfo
    from podium.cluster import Nodes as Nodes
    from podium.cluster import PodInfo as PodInfo
    from podium.engine import Decision as Decision
    from podium.engine import PluginScores as PluginScores
    from podium.engine import Scheduler as Scheduler
    from podium.errors import ConfigError as ConfigError
    from podium.errors import ExtenderError as ExtenderError
    from podium.errors import InputError as InputError
    from podium.errors import PluginError as PluginError
    from podium.errors import PodiumError as PodiumError
    from podium.errors import QuantityError as QuantityError
    from podium.errors import SelectorError as SelectorError
    from podium.framework import SKIP as SKIP
    from podium.framework import SUCCESS as SUCCESS
    from podium.framework import WAIT as WAIT
    from podium.framework import Action as Action
    from podium.framework import BindPlugin as BindPlugin
    from podium.framework import ClusterEvent as ClusterEvent
    from podium.framework import Code as Code
    from podium.framework import CycleState as CycleState
    from podium.framework import EventHint as EventHint
    from podium.framework import FilterPlugin as FilterPlugin
    from podium.framework import PermitPlugin as PermitPlugin
    from podium.framework import Plugin as Plugin
    from podium.framework import PodView as PodView
    from podium.framework import PostBindPlugin as PostBindPlugin
    from podium.framework import PostFilterPlugin as PostFilterPlugin
    from podium.framework import PostFilterResult as PostFilterResult
    from podium.framework import PreBindPlugin as PreBindPlugin
    from podium.framework import PreEnqueuePlugin as PreEnqueuePlugin
    from podium.framework import PreFilterPlugin as PreFilterPlugin
    from podium.framework import PreFilterResult as PreFilterResult
    from podium.framework import PreScorePlugin as PreScorePlugin
    from podium.framework import QueueSortPlugin as QueueSortPlugin
    from podium.framework import Registry as Registry
    from podium.framework import ReservePlugin as ReservePlugin
    from podium.framework import ScorePlugin as ScorePlugin
    from podium.framework import Status as Status
    from podium.framework import Verdict as Verdict
    from podium.framework import WaitingPod as WaitingPod
    from podium.loop import SchedulerLoop as SchedulerLoop
    from podium.manifests import Objects as Objects
    from podium.manifests import load as load
    from podium.plugins import IN_TREE as IN_TREE
    from podium.testing import check_plugin as check_plugin
    from podium.timeline import Surroundings as Surroundings
    from podium.timeline import Timeline as Timeline
    from podium.timeline import TimelineResult as TimelineResult
    from podium.timeline import read_timeline as read_timeline
    from podium.workloads import expand_workloads as expand_workloads

_NAMES = {
    "podium.answers.simulation": ("Placement", "Simulation", "Usage", "simulate"),
    "podium.cluster": ("Aspect", "Cluster", "NodeInfo", "Nodes", "PodInfo"),
    "podium.engine": ("Decision", "PluginScores", "Scheduler"),
    "podium.errors": (
        *("ConfigError", "ExtenderError", "InputError", "PluginError", "PodiumError", "QuantityError"),
        "SelectorError",
    ),
    "podium.framework": (
        *("SKIP", "SUCCESS", "WAIT", "Action", "BindPlugin", "ClusterEvent", "Code", "CycleState", "EventHint"),
        *("FilterPlugin", "PermitPlugin", "Plugin", "PodView", "PostBindPlugin", "PostFilterPlugin"),
        *("PostFilterResult", "PreBindPlugin", "PreEnqueuePlugin", "PreFilterPlugin", "PreFilterResult"),
        *("PreScorePlugin", "QueueSortPlugin", "Registry", "ReservePlugin", "ScorePlugin", "Status", "Verdict"),
        "WaitingPod",
    ),
    "podium.manifests": ("Objects", "load"),
    "podium.workloads": ("expand_workloads",),
    "podium.loop": ("SchedulerLoop",),
    "podium.timeline": ("Surroundings", "Timeline", "TimelineResult", "read_timeline"),
    "podium.plugins": ("IN_TREE",),
    "podium.testing": ("check_plugin",),
}
"""The module of each public name. They are imported on first use, so that `podium --help` does not wait for NumPy."""

_HOMES = {name: module for module, names in _NAMES.items() for name in names}

__all__ = [
    "IN_TREE",
    "SKIP",
    "SUCCESS",
    "WAIT",
    "Action",
    "Aspect",
    "BindPlugin",
    "Cluster",
    "ClusterEvent",
    "Code",
    "ConfigError",
    "CycleState",
    "Decision",
    "EventHint",
    "ExtenderError",
    "FilterPlugin",
    "InputError",
    "NodeInfo",
    "Nodes",
    "Objects",
    "PermitPlugin",
    "Placement",
    "Plugin",
    "PluginError",
    "PluginScores",
    "PodInfo",
    "PodView",
    "PodiumError",
    "PostBindPlugin",
    "PostFilterPlugin",
    "PostFilterResult",
    "PreBindPlugin",
    "PreEnqueuePlugin",
    "PreFilterPlugin",
    "PreFilterResult",
    "PreScorePlugin",
    "QuantityError",
    "QueueSortPlugin",
    "Registry",
    "ReservePlugin",
    "Scheduler",
    "SchedulerLoop",
    "ScorePlugin",
    "SelectorError",
    "Simulation",
    "Status",
    "Surroundings",
    "Timeline",
    "TimelineResult",
    "Usage",
    "Verdict",
    "WaitingPod",
    "__version__",
    "check_plugin",
    "expand_workloads",
    "load",
    "read_timeline",
    "simulate",
]


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value: object = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
