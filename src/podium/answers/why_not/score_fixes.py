"""What would make a feasible node win: another weight, a better score, or fewer rivals."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from podium.answers.why_not.filter_fixes import value_for
from podium.answers.why_not.resource_fixes import evictable
from podium.answers.why_not.suggested_change import (
    Change,
    Situation,
    cordon,
    evict,
    label_node,
    pull_image,
    remove_taint,
    select_node,
    set_weight,
    tolerate,
)
from podium.engine import Decision
from podium.model import Pod
from podium.model.node import HOSTNAME
from podium.model.selectors import PREFER_NO_SCHEDULE, any_tolerates, node_term

MOST_EVICTED = 4
"""How many pods are tried one by one."""
MOST_CORDONED = 2
HIGHEST_WEIGHT = 100


def wins(decision: Decision, node: str) -> bool:
    """Whether the pod goes to the node whatever breaks ties."""
    return decision.ties == (node,)


def levers(situation: Situation, decision: Decision, node: str) -> Iterator[Change]:
    """Changes each of which may make the feasible node win; whether they do is for the decision to say."""
    pod = situation.pod
    yield from _weights(decision, node, pod.spec.scheduler_name)
    yield from _preferred_taints(situation, node)
    yield from _preferred_labels(situation, node)
    yield from _images(situation, node)
    for each in evictable(situation, node)[:MOST_EVICTED]:
        yield evict([each])
    own = decision.totals.get(node, 0)
    rivals = [name for name, total in decision.totals.items() if name != node and total >= own]
    if 0 < len(rivals) <= MOST_CORDONED:
        yield cordon(rivals)
    labels = situation.cluster.node(node).metadata.labels
    if HOSTNAME in labels:
        yield select_node(pod, HOSTNAME, labels[HOSTNAME])


# -- weights -------------------------------------------------------------------------------------------------------


def _weights(decision: Decision, node: str, profile: str) -> Iterator[Change]:
    """For each plugin the weight nearest to its own with which the node comes out ahead of all others."""
    for scores in decision.scores:
        weight = _winning_weight(decision.totals, scores.normalized, scores.weight, node)
        if weight is not None:
            yield set_weight(profile, scores.plugin, scores.weight, weight)


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


# -- scores --------------------------------------------------------------------------------------------------------


def _preferred_taints(situation: Situation, node: str) -> Iterator[Change]:
    for taint in situation.cluster.node(node).spec.taints:
        if taint.effect == PREFER_NO_SCHEDULE and not any_tolerates(situation.pod.spec.tolerations, taint):
            yield remove_taint(node, taint)
            yield tolerate(situation.pod, taint)


def _preferred_labels(situation: Situation, node: str) -> Iterator[Change]:
    """The labels that the node lacks for what the pod prefers, the heaviest preference first."""
    pod, labels = situation.pod, situation.cluster.node(node).metadata.labels
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    preferred = sorted(affinity.preferred, key=lambda each: -each.weight) if affinity else []
    for each in preferred:
        term = node_term(each.preference)
        unmet = [requirement for requirement in (term.labels if term else ()) if not requirement.matches(labels)]
        if unmet:
            yield label_node(node, {requirement.key: value_for(requirement) for requirement in unmet})


def _images(situation: Situation, node: str) -> Iterator[Change]:
    """Images of the pod that other nodes have and this one lacks."""
    cluster = situation.cluster
    have = {name for image in cluster.node(node).status.images for name in image.names}
    sizes: dict[str, int] = {}
    for other in cluster.rows:
        for image in cluster.node(other).status.images:
            sizes.update(dict.fromkeys(image.names, image.size_bytes))
    for name in _image_names(situation.pod):
        if name in sizes and name not in have:
            yield pull_image(node, name, sizes[name])


def _image_names(pod: Pod) -> Sequence[str]:
    return list(dict.fromkeys(container.image for container in (*pod.spec.containers, *pod.spec.init_containers)))
