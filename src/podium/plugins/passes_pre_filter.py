"""Plugins that later releases also list at PreFilter, where they pass every node."""

from __future__ import annotations

from podium.cluster import Nodes
from podium.framework.plugin import CycleState, PreFilterPlugin
from podium.framework.status import PASSED, PreFilterResult
from podium.model import Pod
from podium.rules import Rules


class PassesPreFilter(PreFilterPlugin):
    """A plugin that later releases also allow at preFilter, where it passes every node."""

    @classmethod
    def points(cls, rules: Rules) -> frozenset[str]:
        points = super().points(rules)
        return points if rules.more_plugins_pre_filter else points - {"preFilter"}

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PASSED
