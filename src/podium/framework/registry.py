"""The registry of plugins by name, and the framework of one profile built from it."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from importlib.metadata import entry_points
from typing import NamedTuple, TypeVar

from podium.cluster import Nodes
from podium.cluster.columns import Ints
from podium.config.types import Profile
from podium.errors import ConfigError, InputError, PluginError, PodiumError
from podium.framework import plugin as points
from podium.framework.obstacle import Obstacle, RejectedNodes
from podium.framework.plugin import CycleState, FilterPlugin, Plugin, PreScorePlugin, ReservePlugin, ScorePlugin
from podium.framework.pod_group_points import (
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupPostFilterPlugin,
)
from podium.framework.status import Status, Verdict
from podium.model import Pod
from podium.rules import Rules

ENTRY_POINT_GROUP = "podium.plugins"


class Registry(dict[str, type[Plugin]]):
    """Plugin classes by name; a name can be registered once."""

    def __init__(self, plugins: Iterable[type[Plugin]] = ()) -> None:
        super().__init__()
        self.asked_for: list[str] = []
        """The plugins that a user named explicitly, and so expects to run."""
        for plugin in plugins:
            self.register(plugin)

    def register(self, plugin: type[Plugin]) -> None:
        if not (isinstance(plugin, type) and issubclass(plugin, Plugin)):
            raise InputError(f"{plugin!r} is not a plugin; derive it from podium's FilterPlugin, ScorePlugin ...")
        if not plugin.name:
            raise InputError(f"plugin class {plugin.__name__} has no name; set its class attribute `name`")
        if self.get(plugin.name, plugin) is not plugin:
            raise InputError(f"plugin {plugin.name!r} is registered twice; give one of them another name")
        self[plugin.name] = plugin

    def points_in(self, rules: Rules) -> Mapping[str, frozenset[str]]:
        """The extension points that each plugin serves in a release; plugins that the release lacks are left out."""
        found = {name: plugin.points(rules) for name, plugin in self.items()}
        return {name: points for name, points in found.items() if points}

    def with_installed(self, extra: Iterable[str] = ()) -> Registry:
        """This registry, plus the plugins that installed packages offer and those named as `module:Class`."""
        registry = Registry(self.values())
        for entry in entry_points(group=ENTRY_POINT_GROUP):
            registry.register(_load(entry.value, f"entry point {entry.name!r}"))
        for path in extra:
            plugin = _load(path, "--plugin")
            registry.register(plugin)
            registry.asked_for.append(plugin.name)
        return registry


def _load(path: str, where: str) -> type[Plugin]:
    module_name, _, class_name = path.partition(":")
    if not module_name or not class_name:
        raise InputError(f"plugin {path!r} is not of the form module:Class", where)
    try:
        module = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:  # a user's module may fail in any way; say which and how
        raise InputError(f"plugin module {module_name!r} cannot be imported: {error}", where) from error
    plugin: type[Plugin] | None = getattr(module, class_name, None)
    if plugin is None:
        raise InputError(f"module {module_name!r} has no class {class_name!r}", where)
    return plugin


P = TypeVar("P", bound=Plugin)


class Weighted(NamedTuple):
    plugin: ScorePlugin
    weight: int


def lacks(point: str) -> str:
    """The error of a plugin that runs without its earlier extension point."""
    return f"it needs {point}, where the profile does not run it"


class Unprepared(FilterPlugin, PreScorePlugin, ScorePlugin, ReservePlugin):
    """Replaces a plugin whose earlier extension point is not in the profile: it always fails."""

    def __init__(self, plugin: str, point: str) -> None:
        super().__init__()
        # The plugin itself may run at another point under its own name.
        self.name = f"{plugin} without {point}"
        self._point = point
        self._error = PluginError(plugin, f"failed: {lacks(point)}")

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        raise self._error

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        raise self._error

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        raise self._error

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        return Status.error(lacks(self._point))


class Framework:
    """The plugins of one profile, in the order they run."""

    def __init__(self, profile: Profile, registry: Registry, rules: Rules) -> None:
        self.profile, self.rules = profile, rules
        self._registry = registry
        self.plugins: dict[str, Plugin] = {}
        for refs in profile.points.values():
            for ref in refs:
                self._instantiate(ref.name)
        self.pre_enqueue = self._at("preEnqueue", points.PreEnqueuePlugin)
        self.queue_sort = self._at("queueSort", points.QueueSortPlugin)
        self.pre_filter = self._at("preFilter", points.PreFilterPlugin)
        self.filter: list[FilterPlugin] = [self._prepared(p, "filter") for p in self._at("filter", FilterPlugin)]
        self.post_filter = self._at("postFilter", points.PostFilterPlugin)
        self.pre_score: list[PreScorePlugin] = [
            self._prepared(p, "preScore") for p in self._at("preScore", PreScorePlugin)
        ]
        self.reserve: list[ReservePlugin] = [self._prepared(p, "reserve") for p in self._at("reserve", ReservePlugin)]
        self.permit = self._at("permit", points.PermitPlugin)
        self.pre_bind = self._at("preBind", points.PreBindPlugin)
        self.bind = self._at("bind", points.BindPlugin)
        self.post_bind = self._at("postBind", points.PostBindPlugin)
        self.placement_feasible = [each for each in self.plugins.values() if isinstance(each, PlacementFeasiblePlugin)]
        self.placement_generate = self._at("placementGenerate", PlacementGeneratePlugin)
        scored = {ref.name: ref.weight for ref in profile.points.get("placementScore", ())}
        self.placement_score = [(each, scored[each.name]) for each in self._at("placementScore", PlacementScorePlugin)]
        self.pod_group_post_filter = self._at("podGroupPostFilter", PodGroupPostFilterPlugin)
        scores = self._at("score", ScorePlugin)
        weights = {ref.name: ref.weight for ref in profile.points.get("score", ())}
        self.score = [Weighted(self._prepared(plugin, "score"), weights[plugin.name]) for plugin in scores]

    def obstacles(self, rejected: RejectedNodes) -> dict[str, tuple[Obstacle, ...]]:
        """The things in the way on each rejected node, where they can be named.

        The cluster must be as it was when the pod was decided.
        """
        by_plugin: dict[str, dict[str, Status]] = {}
        for node, status in rejected.statuses.items():
            for name in status.plugins:
                by_plugin.setdefault(name, {})[node] = status
        found: dict[str, tuple[Obstacle, ...]] = {}
        for name, statuses in by_plugin.items():
            if name in self.plugins:
                named = self.plugins[name].obstacles(rejected._replace(statuses=statuses))
                found |= {node: (*found.get(node, ()), *obstacles) for node, obstacles in named.items() if obstacles}
        return found

    def _instantiate(self, name: str) -> None:
        if name not in self.plugins:
            try:
                plugin = self._registry[name].of_release(self.rules, self.profile.args.get(name))
                self.plugins[name] = plugin
                plugin.runs_at = frozenset(
                    point for point, refs in self.profile.points.items() if any(ref.name == name for ref in refs)
                )
            except PodiumError:
                raise
            except Exception as error:  # whatever a user's constructor raises, the profile cannot be used
                raise ConfigError([f"plugin {name!r} cannot be set up: {error}"]) from error

    def _prepared(self, plugin: P, point: str) -> P | Unprepared:
        """The plugin, or an `Unprepared` in its place if the profile leaves out a point that it needs."""
        lacking = next((need for at, need in plugin.needs if at == point and need not in plugin.runs_at), "")
        return Unprepared(plugin.name, lacking) if lacking else plugin

    def _at(self, point: str, kind: type[P]) -> list[P]:
        """The plugins of an extension point, without those that do nothing there in a simulation."""
        listed = [self.plugins[ref.name] for ref in self.profile.points.get(point, ())]
        return [plugin for plugin in listed if isinstance(plugin, kind)]
