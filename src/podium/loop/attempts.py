"""One attempt to place a pod: the engine's decision, with what the queue and the binding cycle need of it."""

from __future__ import annotations

import re
from collections.abc import Hashable
from typing import NamedTuple

from podium.cluster import PodInfo
from podium.engine.decision import Decision
from podium.engine.scheduler import Scheduler
from podium.errors import ExtenderError, InputError, PluginError
from podium.framework import SUCCESS, Code, CycleState, Status
from podium.loop.queued_pod import NO_PLUGINS
from podium.model import Pod
from podium.plugins.dynamic_resources.pod_claims import claims_key

EXTENDER = "Extender"
"""Stands for all extenders among the plugins that rejected a pod."""

_NARROWED = re.compile(r"node\(s\) didn't satisfy plugin(?:\(s\))? \[?([^\]]+?)\]?(?: simultaneously)?")


class Assumed(NamedTuple):
    """A pod that counts on its node already, though nobody else knows yet."""

    pod: Pod
    node: str
    state: CycleState


class Failure(NamedTuple):
    """Why a pod could not be placed, who rejected it, and what preemption does about it."""

    message: str
    unschedulable_plugins: frozenset[str] = NO_PLUGINS
    pending_plugins: frozenset[str] = NO_PLUGINS
    nominated: str | None = None
    clears_nomination: bool = False
    victims: tuple[str, ...] = ()
    is_error: bool = False
    """Whether something went wrong, rather than the pod fitting nowhere."""

    @classmethod
    def rejected(cls, status: Status) -> Failure:
        """A plugin turned the pod down on the node that had been chosen."""
        if not status.code.rejects:
            return cls(status.message, clears_nomination=True, is_error=True)
        plugins = frozenset((status.plugin,))
        is_pending = status.code is Code.PENDING
        return cls(
            f"0/1 nodes are available: 1 {status.message}.",
            NO_PLUGINS if is_pending else plugins,
            plugins if is_pending else NO_PLUGINS,
            clears_nomination=True,
        )


class CycleScheduler(Scheduler):
    """A scheduler that places pods for the loop: fast where they fit, with all reasons where they do not.

    Until something changes in the cluster, pods of one kind fail alike: that is found out once.
    """

    settles = False
    _failures: dict[tuple[PodInfo, Hashable], Failure]
    _failures_version: tuple[int, ...] = ()
    _nomination_changes = 0

    def attempt(self, pod: Pod) -> Assumed | Failure:
        """Place a pod: Filter, Score, Reserve, and PostFilter where that is to no avail."""
        info = self.cluster.info_of(pod)
        version = self._version()
        if version != self._failures_version:
            self._failures, self._failures_version = {}, version
        kind = info, claims_key(pod, self.cluster.store)
        known = self._failures.get(kind)
        if known is not None and not self.nominations.node_of(pod):
            return known
        try:
            found = self._assume(pod)
        except (InputError, PluginError, ExtenderError) as error:
            found = Failure(str(error), clears_nomination=True, is_error=True)
        if found is not None:
            return found
        failure = self._diagnose(pod)
        if failure.nominated is None and not failure.is_error and not self.nominations.node_of(pod):
            self._failures[kind] = failure
        return failure

    def nominate(self, pod: Pod, node: str) -> None:
        """Nominate a pod to a node, or to none."""
        self.nominations.nominate(pod, node)
        self._nomination_changes += 1

    def forget_nomination(self, pod: Pod) -> None:
        self.nominations.forget(pod)
        self._nomination_changes += 1

    def unreserve(self, assumed: Assumed) -> None:
        """Let the plugins undo what they reserved, in reverse order."""
        for plugin in reversed(self.framework_of(assumed.pod).reserve):
            plugin.unreserve(assumed.state, assumed.pod, assumed.node)

    def bind_by_extender(self, assumed: Assumed) -> Status | None:
        """Let the first extender bind the pod that binds and is interested in it; None if it is up to the plugins."""
        for extender in self._extenders:
            if not (extender.is_binder and extender.is_interested(assumed.pod)):
                continue
            try:
                extender.bind(assumed.pod, assumed.node)
            except ExtenderError as error:
                if extender.ignorable:
                    continue
                return Status.error(str(error))
            return SUCCESS
        return None

    def save(self) -> tuple[object, ...]:
        """What later choices depend on besides the cluster, to be given to `restore`."""
        return self._tie_break.save(), self._sampling.save(), self._preempting.save()

    def restore(self, saved: tuple[object, ...]) -> None:
        tie_break, sampling, preempting = saved
        self._tie_break.restore(tie_break)
        self._sampling.restore(sampling)  # type: ignore[arg-type]  # as saved
        self._preempting.restore(preempting)

    def _assume(self, pod: Pod) -> Assumed | Failure | None:
        """Place the pod on the best node; None if it fits nowhere, and then nothing has changed."""
        sampled = self._sampling.save()
        evaluation, extended = self._evaluate(pod, everywhere=False)
        row = None if evaluation is None else self._select(evaluation, extended)
        if evaluation is None or row is None:
            self._sampling.restore(sampled)
            return None
        node = self.cluster.names[row]
        status = self._put(evaluation, row)
        return Assumed(pod, node, evaluation.state) if status == SUCCESS else Failure.rejected(status)

    def _diagnose(self, pod: Pod) -> Failure:
        """Why the pod fits nowhere, and whether preemption helps."""
        decision, _ = self._explained(pod, preempt=True)
        if decision.error or not decision.node_count:
            return Failure(decision.error or decision.message, clears_nomination=True, is_error=bool(decision.error))
        unschedulable, pending = _rejectors(decision)
        return Failure(
            decision.message, unschedulable, pending, decision.nominated, decision.clears_nomination, decision.victims
        )

    def _version(self) -> tuple[int, ...]:
        cluster = self.cluster
        heads = (log.head for log in cluster.logs.values())
        return (*heads, cluster.store.version, cluster.node_set_version, self._nomination_changes)


def _rejectors(decision: Decision) -> tuple[frozenset[str], frozenset[str]]:
    """The plugins that rejected the pod on some node, and those of them that only asked it to wait."""
    unschedulable, pending = set(), set()
    for status in set(decision.rejected.values()):
        if status.code is Code.PENDING:
            pending.add(status.plugin)
        elif status.code.rejects:
            unschedulable.add(status.plugin or EXTENDER)
    absent = decision.absent
    if absent is not None and absent.plugin:
        unschedulable.add(absent.plugin)
    elif absent is not None:
        unschedulable.update(name for reason in absent.reasons for name in _narrowing(reason))
    return frozenset(unschedulable), frozenset(pending)


def _narrowing(reason: str) -> list[str]:
    """The plugins that left only some nodes to look at, which is said of the other nodes in words alone."""
    found = _NARROWED.fullmatch(reason)
    return found[1].split() if found else []
