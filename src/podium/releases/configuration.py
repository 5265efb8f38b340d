"""A configuration of an old release, and its extenders."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from podium.config.types import KubeSchedulerConfiguration
from podium.engine.release import Conduct
from podium.extenders import Extender
from podium.framework import Registry


class UnscaledExtender(Extender):
    """An extender of a release whose own scores go to 10, as the extender's do."""

    def weighted(self, score: int) -> int:
        """What a raw score adds to the node's total: the score times the extender's weight."""
        return (score * self.weight + 2**63) % 2**64 - 2**63


@dataclass(frozen=True, kw_only=True)
class LegacyConfiguration(KubeSchedulerConfiguration):
    """A configuration of an old release, with what it takes to run it: it can be changed and set up again."""

    registry: Registry = field(repr=False, compare=False)
    conduct: Conduct = field(repr=False)
    effective: Mapping[str, Any] = field(repr=False)
