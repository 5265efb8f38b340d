"""The changes that may send a pod to a node: what the plugins suggest, and what any user can do."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace as replace_data

from msgspec.structs import replace

from podium.answers.why_not.situation import Situation
from podium.config import KubeSchedulerConfiguration, PluginRef
from podium.engine import Decision
from podium.framework import Code, Status
from podium.framework.suggested_change import Change, RejectedPod, Trial, edit_pod, evict, evictable
from podium.model import Node, Pod
from podium.model.node import HOSTNAME
from podium.wording import joined

MOST_EVICTED = 4
"""How many pods are tried one by one to make a node score better."""
MOST_SINGLE = 5
"""How many pods are tried one by one where no plugin says which pod is in the way."""
MOST_CORDONED = 2
HIGHEST_WEIGHT = 100


def wins(decision: Decision, node: str) -> bool:
    """Whether the pod goes to the node however ties are broken."""
    return decision.ties == (node,)


def rejection(decision: Decision, node: str) -> Status | None:
    """Why the node is rejected; None if it is feasible, or was not looked at because enough other nodes were."""
    if decision.error:
        return Status.unresolvable(decision.error)
    if node in decision.feasible:
        return None
    found = decision.rejected.get(node) or decision.absent
    return found if found is not None and found.reasons else None


def candidate_changes(situation: Situation, decision: Decision, node: str) -> list[Change]:
    """Changes each of which may bring the pod nearer to the node; only a decision with them can tell."""
    status = rejection(decision, node)
    if status is None:
        return list(_score_changes(situation, decision, node))
    if situation.pod.spec.scheduling_gates:
        return [_remove_gates(situation.pod)]
    return _filter_changes(situation, decision, RejectedPod(situation.pod, node, status, situation.cluster))


def _filter_changes(situation: Situation, decision: Decision, rejected: RejectedPod) -> list[Change]:
    """What the plugins that reject the node suggest; else evict a pod, where the status says that this may help."""
    names = (rejected.status.plugin,) if rejected.status.plugin else decision.narrowed_by
    plugins = situation.framework.plugins
    found = [change for name in names if name in plugins for change in plugins[name].fixes(rejected)]
    if not found and rejected.status.code is Code.UNSCHEDULABLE:
        found = [evict([pod]) for pod in evictable(rejected.cluster, rejected.node)[:MOST_SINGLE]]
    return found


def _score_changes(situation: Situation, decision: Decision, node: str) -> Iterator[Change]:
    """Changes that may make a feasible node win."""
    pod, cluster = situation.pod, situation.cluster
    yield from _weights(decision, node, pod.spec.scheduler_name)
    for plugin, _ in situation.framework.score:
        yield from plugin.score_fixes(pod, node, cluster)
    for each in evictable(cluster, node)[:MOST_EVICTED]:
        yield evict([each])
    own = decision.totals.get(node, 0)
    rivals = [name for name, total in decision.totals.items() if name != node and total >= own]
    if 0 < len(rivals) <= MOST_CORDONED:
        yield _cordon(rivals)
    labels = cluster.node(node).metadata.labels
    if HOSTNAME in labels:
        yield _select_node(pod, HOSTNAME, labels[HOSTNAME])


def _weights(decision: Decision, node: str, profile: str) -> Iterator[Change]:
    """For each plugin the weight nearest to its own with which the node comes out ahead of all others."""
    for scores in decision.scores:
        weight = _winning_weight(decision.totals, scores.normalized, scores.weight, node)
        if weight is not None:
            yield _set_weight(profile, scores.plugin, scores.weight, weight)


def _winning_weight(totals: Mapping[str, int], scores: Mapping[str, int], weight: int, node: str) -> int | None:
    """The weight that makes one node's total the highest; None if there is none up to the highest sensible one.

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

    def edit(before: Node) -> Node:
        return replace(before, spec=replace(before.spec, unschedulable=True))

    def apply(to: Trial) -> None:
        for node in nodes:
            to.edit_node(node, edit)

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
    """Give a plugin another weight at Score; 0 disables it there."""

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
