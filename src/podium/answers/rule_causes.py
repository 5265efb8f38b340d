"""Which difference between two releases changes a decision: single rules of one release, tried in the other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from podium.engine import Scheduler
from podium.engine.release import Release
from podium.errors import ExtenderError, InputError, PluginError
from podium.model import Pod
from podium.rules import Difference, differences, with_rule
from podium.rules.table import MESSAGES


def telling_differences(one: Release, other: Release) -> list[Difference]:
    """The differences that may change where a pod goes; words alone cannot."""
    return [each for each in differences(one.rules, other.rules) if each.area != MESSAGES]


def with_one_rule(release: Release, of: Release, difference: Difference) -> Release:
    """A release with one rule of another."""
    rules = with_rule(release.rules, difference.name, getattr(of.rules, difference.name))
    return replace(release, rules=rules)


class RuleTrials:
    """Asks what a release would decide if one of its rules were that of another release."""

    def __init__(self, scheduler: Scheduler, release: Release, of: Release) -> None:
        """`scheduler` is one of `release`: its cluster, configuration and tie-break are used."""
        self._scheduler, self._release, self._of = scheduler, release, of
        self._differences = telling_differences(release, of)
        self._made: dict[str, Scheduler] = {}

    def causes(self, pod: Pod, node: str | None) -> Iterator[Difference]:
        """The differences each of which alone sends the pod to another node than this, on the cluster as it is."""
        for difference in self._differences:
            if _node_of(self._with(difference), pod) != node:
                yield difference

    def _with(self, difference: Difference) -> Scheduler:
        made = self._made.get(difference.name)
        if made is None:
            options = replace(self._scheduler.options, release=with_one_rule(self._release, self._of, difference))
            made = self._made[difference.name] = Scheduler(self._scheduler.cluster, options)
        return made

    def close(self) -> None:
        """Close connections to extenders."""
        for made in self._made.values():
            made.close()


def _node_of(scheduler: Scheduler, pod: Pod) -> str | None:
    try:
        return scheduler.attempt(pod).node
    except (InputError, PluginError, ExtenderError):
        return None
