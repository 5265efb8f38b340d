"""Which plugins can be asked about one node at a time without arrays, which takes less time while the nodes are few."""

from __future__ import annotations

from functools import lru_cache

from podium.framework import FilterPlugin, ScorePlugin

FEW_NODES = 16
"""Up to so many are asked about one by one: arrays take their time even when they are short."""


def filters_by_node(plugin: FilterPlugin) -> bool:
    return _has_node_form(type(plugin).__mro__, FilterPlugin, "filter_node", "filter")


def scores_by_node(plugin: ScorePlugin) -> bool:
    return _has_node_form(type(plugin).__mro__, ScorePlugin, "score_node", "score")


@lru_cache
def _has_node_form(lineage: tuple[type, ...], point: type, single: str, array: str) -> bool:
    """Whether the form for one node says what the form with arrays does.

    They were written together, or there is no other one. A class that overrides one form only means that one.
    """
    latest = next(each for each in lineage if single in vars(each) or array in vars(each))
    is_alone = getattr(lineage[0], array) is getattr(point, array)
    return latest is not point and single in vars(latest) and (array in vars(latest) or is_alone)
