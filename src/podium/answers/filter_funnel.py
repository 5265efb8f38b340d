"""How many nodes each filter leaves for a pod, in the order in which the filters run."""

from __future__ import annotations

from typing import NamedTuple

from podium.engine import Decision
from podium.engine.decision import not_looked_at
from podium.framework import Framework


class FunnelStage(NamedTuple):
    """One filter: how many of the nodes that reached it it rejects, and how many it leaves."""

    plugin: str
    rejected: int
    left: int


def filter_funnel(decision: Decision, framework: Framework) -> tuple[FunnelStage, ...]:
    """The filters that reject nodes, in their order.

    Nodes that PreFilter leaves out come first, under the plugin that narrows the choice.
    """
    counts: dict[str, int] = {}
    absent = not_looked_at(decision)
    if absent and decision.absent is not None:
        narrowing = decision.absent.plugin or ", ".join(decision.narrowed_by)
        counts[narrowing] = absent
    order = {plugin.name: place for place, plugin in enumerate(framework.filter)}
    rejecting = sorted(
        {status.plugin for status in decision.rejected.values()}, key=lambda name: (order.get(name, len(order)), name)
    )
    for plugin in rejecting:
        counts[plugin] = counts.get(plugin, 0) + sum(status.plugin == plugin for status in decision.rejected.values())
    stages, left = [], decision.node_count
    for plugin, rejected in counts.items():
        left -= rejected
        stages.append(FunnelStage(plugin, rejected, left))
    return tuple(stages)
