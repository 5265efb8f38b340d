"""One plugin's scores of one pod, and the range they have to be in."""

from __future__ import annotations

from typing import NamedTuple

from podium.cluster.columns import Ints
from podium.cluster.extremes import highest, lowest
from podium.cluster.groups import Groups
from podium.errors import PluginError


class RowScores(NamedTuple):
    """One plugin's scores: of every feasible row, or of every group of nodes that share some labels."""

    plugin: str
    weight: int
    raw: Ints
    normalized: Ints
    groups: Groups | None = None

    def of(self, rows: Ints | None) -> RowScores:
        """The same scores of every one of the feasible rows, None for all there are."""
        if self.groups is None:
            return self
        places = self.groups.of_row if rows is None else self.groups.of_row[rows]
        return RowScores(self.plugin, self.weight, self.raw[places], self.normalized[places])


def check_scores(plugin: str, scores: Ints, bounds: tuple[int, int] | None) -> None:
    """Raise unless all scores are within the bounds, as kube-scheduler demands after normalising."""
    if len(scores) and bounds is not None:
        for score in (lowest(scores), highest(scores)):
            if not bounds[0] <= score <= bounds[1]:
                raise PluginError(
                    plugin,
                    f"returns an invalid score {score}, it should in the range of "
                    f"[{bounds[0]}, {bounds[1]}] after normalizing",
                )
