"""A profile come alive: its plugins, instantiated and in order at every extension point."""

from __future__ import annotations

from typing import NamedTuple, TypeVar, cast

from podium.config.types import Profile
from podium.errors import ConfigError, PodiumError
from podium.framework.plugin import (
    BindPlugin,
    FilterPlugin,
    PermitPlugin,
    Plugin,
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
from podium.framework.registry import Registry
from podium.rules import NEWEST_RULES, Rules

P = TypeVar("P", bound=Plugin)


class Weighted(NamedTuple):
    plugin: ScorePlugin
    weight: int


class Framework:
    """The plugins of one profile, in the order they run."""

    def __init__(self, profile: Profile, registry: Registry, rules: Rules = NEWEST_RULES) -> None:
        self.profile, self.rules = profile, rules
        self._registry = registry
        self.plugins: dict[str, Plugin] = {}
        for refs in profile.points.values():
            for ref in refs:
                self._instantiate(ref.name)
        self.pre_enqueue = self._at("preEnqueue", PreEnqueuePlugin)
        self.queue_sort = self._at("queueSort", QueueSortPlugin)
        self.pre_filter = self._at("preFilter", PreFilterPlugin)
        self.filter = self._at("filter", FilterPlugin)
        self.post_filter = self._at("postFilter", PostFilterPlugin)
        self.pre_score = self._at("preScore", PreScorePlugin)
        self.reserve = self._at("reserve", ReservePlugin)
        self.permit = self._at("permit", PermitPlugin)
        self.pre_bind = self._at("preBind", PreBindPlugin)
        self.bind = self._at("bind", BindPlugin)
        self.post_bind = self._at("postBind", PostBindPlugin)
        scores = self._at("score", ScorePlugin)
        weights = {ref.name: ref.weight for ref in profile.points.get("score", ())}
        self.score = [Weighted(plugin, weights[plugin.name]) for plugin in scores]

    def _instantiate(self, name: str) -> None:
        if name not in self.plugins:
            try:
                plugin = self.plugins[name] = self._registry[name](self.profile.args.get(name))
                plugin.release_rules = self.rules
            except PodiumError:
                raise
            except Exception as error:  # whatever a user's constructor raises, the profile cannot be used
                raise ConfigError([f"plugin {name!r} cannot be set up: {error}"]) from error

    def _at(self, point: str, kind: type[P]) -> list[P]:
        """The plugins of an extension point; the configuration made sure that they serve it."""
        return [cast(P, self.plugins[ref.name]) for ref in self.profile.points.get(point, ())]
