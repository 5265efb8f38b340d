"""How a release goes about a decision, beyond which plugins run, and what it is set up with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from podium.config.types import KubeSchedulerConfiguration
from podium.errors import InputError
from podium.extenders import Extender
from podium.framework import Registry
from podium.model.quantity import int64

DEFAULT_PROVIDER, CLUSTER_AUTOSCALER_PROVIDER = "DefaultProvider", "ClusterAutoscalerProvider"
PROVIDERS = (DEFAULT_PROVIDER, CLUSTER_AUTOSCALER_PROVIDER)


class UnscaledExtender(Extender):
    """An extender of a release whose own scores go to 10, as the extender's do."""

    def weighted(self, score: int) -> int:
        """What a raw score adds to the node's total: the score times the extender's weight."""
        return int64(score * self.weight)


class FitError(NamedTuple):
    """The sentence for a pod that fits nowhere: its beginning, and how often each reason was given."""

    head: str = "0/{nodes} nodes are available:"
    reason: str = "{count} {reason}"


FIT_ERROR = FitError()
"""The sentence of all releases since v1.14."""


@dataclass(frozen=True, kw_only=True)
class Conduct:
    """What the engine does differently from release to release."""

    collects_all_reasons: bool = False
    """Every filter looks at every node, rather than only until one rejects it."""
    scores_single_node: bool = False
    """A node is scored even if it is the only feasible one."""
    score_range: tuple[int, int] | None = (0, 100)
    """What scores are held to after normalising; None for nothing."""
    samples_nodes: bool = True
    """Large clusters may be looked at in part, where the user asks for that."""
    tie_break: str = "random"
    """How one of several best nodes is taken, unless the user says."""
    fit_error: FitError = FIT_ERROR
    extender: type[Extender] = Extender


@dataclass(frozen=True, kw_only=True)
class Options:
    """What the command line and the environment of the old schedulers say."""

    provider: str = DEFAULT_PROVIDER
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def packs(self) -> bool:
        """Whether the provider prefers nodes that are full already; InputError for one that is not known."""
        if self.provider not in PROVIDERS:
            raise InputError(f"algorithm provider {self.provider!r} is unknown; use {' or '.join(PROVIDERS)}")
        return self.provider == CLUSTER_AUTOSCALER_PROVIDER


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a scheduler of a release runs with."""

    config: KubeSchedulerConfiguration
    registry: Registry
    conduct: Conduct
    effective: Mapping[str, Any]
    """Predicates (or filters) and priorities (or scores) by name, as configured."""
    warnings: tuple[str, ...] = ()
    """What the configuration says and the release passes over, a line each."""


@dataclass(frozen=True, kw_only=True)
class LegacyConfiguration(KubeSchedulerConfiguration):
    """A configuration of an old release, with what it takes to run it: it can be changed and set up again."""

    release: str
    registry: Registry = field(repr=False, compare=False)
    conduct: Conduct = field(repr=False)
    effective: Mapping[str, Any] = field(repr=False)
