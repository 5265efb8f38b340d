"""The changes that may each bring a pod closer to a node; the search tries them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_data

from msgspec.structs import replace

from podium.answers.closest_nodes import rejections
from podium.answers.trial_state import TrialState
from podium.config import KubeSchedulerConfiguration, PluginRef
from podium.engine import Decision
from podium.framework import Code, Status
from podium.framework.suggested_change import (
    LOWER_REQUEST,
    Change,
    ChangeTarget,
    RejectedPod,
    edit_pod,
    evict,
    evictable,
)
from podium.model import Pod
from podium.model.objects import HOSTNAME
from podium.model.selectors import cordoned
from podium.wording import joined

MOST_EVICTED_FOR_SCORE = 4
"""The maximum number of pods evicted one by one to improve a node's score."""
MOST_EVICTED_ALONE = 5
"""The maximum number of pods evicted one by one if no plugin names a pod in the way."""
MOST_CORDONED = 2
MOST_NODES_OF_A_FILTER = 3
"""How many of the closest nodes that one filter rejects are asked for changes, where any node will do."""
HIGHEST_WEIGHT = 100


def rejection(decision: Decision, node: str) -> Status | None:
    """Why the node is rejected; None if it is feasible, or if sampling did not reach it."""
    if decision.error:
        return Status.unresolvable(decision.error)
    if node in decision.feasible:
        return None
    found = decision.rejected.get(node) or decision.absent
    return found if found is not None and found.reasons else None


@dataclass(frozen=True)
class OnNode:
    """The goal that the pod goes to one node, however ties are broken."""

    node: str

    def is_met(self, decision: Decision) -> bool:
        return decision.ties == (self.node,)

    def changes(self, trial: TrialState, decision: Decision) -> list[Change]:
        """Changes that may each bring the pod closer to the goal; only a decision with them can tell."""
        status = rejection(decision, self.node)
        if status is None:
            return list(_score_changes(trial, decision, self.node))
        return _rejection_changes(trial, decision, self.node, status)


@dataclass(frozen=True)
class AnyNode:
    """The goal that the pod fits on some node. Only changes for the closest nodes are looked for."""

    closest: Sequence[str]
    """The nodes that reject the pod, the closest first."""

    def is_met(self, decision: Decision) -> bool:
        return decision.node is not None

    def changes(self, trial: TrialState, decision: Decision) -> list[Change]:
        """Changes that may each bring the pod closer to the goal; only a decision with them can tell."""
        if decision.error or not self.closest:
            return [_remove_gates(trial.pod)] if trial.pod.spec.scheduling_gates else []
        statuses = rejections(decision, self.closest)
        asked: Counter[str] = Counter()
        found: dict[tuple[str, ...], Change] = {}
        for node in (each for each in self.closest if each in statuses):
            status = statuses[node]
            asked[status.plugin] += 1
            if asked[status.plugin] <= MOST_NODES_OF_A_FILTER:
                for change in _rejection_changes(trial, decision, node, status):
                    # Where the pod comes closest, it has to ask for less by the least: other amounts only cost more.
                    same = (change.kind, *change.on) if change.kind == LOWER_REQUEST else (change.text,)
                    found.setdefault(same, change)
        return list(found.values())


Goal = OnNode | AnyNode


def _rejection_changes(trial: TrialState, decision: Decision, node: str, status: Status) -> list[Change]:
    if trial.pod.spec.scheduling_gates:
        return [_remove_gates(trial.pod)]
    return _filter_changes(trial, decision, RejectedPod(trial.pod, node, status, trial.cluster))


def _filter_changes(trial: TrialState, decision: Decision, rejected: RejectedPod) -> list[Change]:
    """The fixes of the plugins that reject the node; without any, evict a pod if the status says that this may help."""
    names = (rejected.status.plugin,) if rejected.status.plugin else decision.narrowed_by
    plugins = trial.framework.plugins
    found = [change for name in names if name in plugins for change in plugins[name].fixes(rejected)]
    if not found and rejected.status.code is Code.UNSCHEDULABLE:
        found = [evict([pod]) for pod in evictable(rejected.cluster, rejected.node)[:MOST_EVICTED_ALONE]]
    return found


def _score_changes(trial: TrialState, decision: Decision, node: str) -> Iterator[Change]:
    """Changes that may make a feasible node win."""
    pod, cluster = trial.pod, trial.cluster
    yield from _weights(decision, node, pod.spec.scheduler_name)
    for plugin, _ in trial.framework.score:
        yield from plugin.score_fixes(pod, node, cluster)
    for each in evictable(cluster, node)[:MOST_EVICTED_FOR_SCORE]:
        yield evict([each])
    own = decision.totals.get(node, 0)
    rivals = [name for name, total in decision.totals.items() if name != node and total >= own]
    if 0 < len(rivals) <= MOST_CORDONED:
        yield _cordon(rivals)
    labels = cluster.node(node).metadata.labels
    if HOSTNAME in labels:
        yield _select_node(pod, HOSTNAME, labels[HOSTNAME])


def _weights(decision: Decision, node: str, profile: str) -> Iterator[Change]:
    """For each plugin, the weight closest to its own with which the node ranks ahead of all others."""
    for scores in decision.scores:
        weight = _winning_weight(decision.totals, scores.normalized, scores.weight, node)
        if weight is not None:
            yield _set_weight(profile, scores.plugin, scores.weight, weight)


def _winning_weight(totals: Mapping[str, int], scores: Mapping[str, int], weight: int, node: str) -> int | None:
    """The weight that makes one node's total the highest; None if there is none up to the highest sensible weight.

    Another weight adds `(new - old) * score` to every total, so each other node allows an interval of weights.
    """
    lowest, highest = 0, HIGHEST_WEIGHT
    for other, total in totals.items():
        if other == node:
            continue
        ahead, better = total - totals[node], scores[node] - scores[other]
        if better > 0:
            lowest = max(lowest, weight + ahead // better + 1)
        elif better < 0:
            highest = min(highest, weight + _ceil(ahead, better) - 1)
        elif ahead >= 0:
            return None
    if lowest > highest:
        return None
    return min(max(weight, lowest), highest)


def _ceil(number: int, divisor: int) -> int:
    return -(-number // divisor)


def _cordon(nodes: Sequence[str]) -> Change:
    """Cordon nodes that win against the node."""

    def apply(to: ChangeTarget) -> None:
        for node in nodes:
            to.edit_node(node, cordoned)

    return Change("cordon", f"cordon {joined(nodes)}", tuple(f"node/{node}" for node in nodes), 5 * len(nodes), apply)


def _select_node(pod: Pod, key: str, value: str) -> Change:
    """Pin the pod to nodes with a label value."""

    def edit(before: Pod) -> Pod:
        selector = {**(before.spec.node_selector or {}), key: value}
        return replace(before, spec=replace(before.spec, node_selector=selector))

    return edit_pod("pin", f"pin the pod: nodeSelector {key}={value}", pod, 8, edit)


def _remove_gates(pod: Pod) -> Change:
    """Remove the pod's scheduling gates."""
    names = joined([gate.name for gate in pod.spec.scheduling_gates])

    def edit(before: Pod) -> Pod:
        return replace(before, spec=replace(before.spec, scheduling_gates=[]))

    return edit_pod("remove-gate", f"remove the scheduling gate {names} from the pod", pod, 1, edit)


def _set_weight(profile: str, plugin: str, before: int, after: int) -> Change:
    """Change a plugin's weight at Score; 0 disables it there."""

    def edit(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
        def weigh(refs: Sequence[PluginRef]) -> tuple[PluginRef, ...]:
            weighed = [PluginRef(ref.name, after) if ref.name == plugin else ref for ref in refs]
            return tuple(ref for ref in weighed if ref.name != plugin or after)

        profiles = [
            replace_data(each, points={**each.points, "score": weigh(each.points["score"])})
            if each.scheduler_name == profile
            else each
            for each in config.profiles
        ]
        return replace_data(config, profiles=tuple(profiles))

    verb = "raise" if after > before else "lower"
    text = f"{verb} {plugin}'s weight from {before} to {after}" if after else f"disable {plugin} at score"
    size = 3 + min(abs(after - before).bit_length(), 5) + (0 if after else 3)
    return Change("set-weight", text, (f"profile/{profile}",), size, lambda to: to.edit_config(edit))
