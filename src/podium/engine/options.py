"""What a scheduler is set up with: one value that simulations, timelines and answers pass on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypedDict, Unpack

from podium.config import KubeSchedulerConfiguration
from podium.engine.release import CURRENT, AnyRelease, Options
from podium.engine.select import TieBreak
from podium.framework import Registry
from podium.plugins import IN_TREE

Config = KubeSchedulerConfiguration | Mapping[str, Any] | None
"""A configuration, the dict that a file of one holds, or None for the release's defaults."""


class SchedulerKeywords(TypedDict, total=False):
    """The keyword arguments of everything that makes a scheduler; `SchedulerOptions` says what each means."""

    registry: Registry
    release: AnyRelease
    options: Options | None
    tie_break: TieBreak | str | None
    seed: int
    sampling: Literal["all", "upstream"]
    equivalence_cache: bool
    assume_volumes: bool


@dataclass(frozen=True, kw_only=True)
class SchedulerOptions:
    """A configuration, a release, and how to decide where both leave it open."""

    config: Config = None
    registry: Registry = field(default_factory=lambda: IN_TREE)
    """The plugins that the configuration may name."""
    release: AnyRelease = CURRENT
    options: Options | None = None
    """The command line and environment of an old release's scheduler."""
    tie_break: TieBreak | str | None = None
    """How one of several best nodes is taken: random, first, round-robin ...; None for what the release does."""
    seed: int = 0
    """Of everything that is drawn at random."""
    sampling: Literal["all", "upstream"] = "all"
    """`upstream` looks at part of the nodes of a large cluster, as kube-scheduler does; `all` at every node."""
    equivalence_cache: bool = True
    """Whether results are kept from pod to pod. Without, every pod is decided from scratch: the same, but slower."""
    assume_volumes: bool = False
    """Whether storage is ignored: every volume is taken to be there and usable everywhere."""

    @classmethod
    def of(cls, config: Config | SchedulerOptions, **keywords: Unpack[SchedulerKeywords]) -> SchedulerOptions:
        """The options that a configuration and keyword arguments come to; keywords override given options."""
        if isinstance(config, SchedulerOptions):
            return replace(config, **keywords) if keywords else config
        return cls(config=config, **keywords)
