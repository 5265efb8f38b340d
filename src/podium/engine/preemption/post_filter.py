"""PostFilter: what the plugins of a profile do about a pod that fits nowhere."""

from __future__ import annotations

from collections.abc import Mapping

from podium.framework import Code, CycleState, Framework, PostFilterResult, Status
from podium.objects import Pod


def run_post_filter(
    framework: Framework, state: CycleState, pod: Pod, statuses: Mapping[str, Status]
) -> PostFilterResult:
    """Ask the plugins in order until one succeeds, fails, or says that nothing can help; otherwise join their words.

    The result's nominated node is a name, "" to take a nomination back, or None to leave it as it is.
    """
    reasons: list[str] = []
    nominated: str | None = None
    for plugin in framework.post_filter:
        result = plugin.post_filter(state, pod, statuses)
        code = result.status.code
        if code in (Code.SUCCESS, Code.UNSCHEDULABLE_AND_UNRESOLVABLE):
            return result
        if not code.rejects:
            return PostFilterResult(Status.error(*result.status.reasons))
        if result.nominated_node is not None:
            nominated = result.nominated_node
        reasons += result.status.reasons
    return PostFilterResult(Status.unschedulable(*reasons), nominated)
