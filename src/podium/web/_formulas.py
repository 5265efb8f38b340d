"""Explains a node's scores: each plugin's formula with the numbers of this pod and this node."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from msgspec.structs import replace

from podium.cluster import Cluster, Nodes
from podium.config.plugin_args import (
    LEAST_ALLOCATED,
    MOST_ALLOCATED,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    value_on_shape,
)
from podium.engine import Decision, Scheduler
from podium.engine.decision import PluginScores
from podium.framework import SUCCESS, CycleState
from podium.framework.plugin import PreScorePlugin, ScorePlugin
from podium.model import Pod, Taint, Toleration
from podium.model.selectors import requirement_text, untolerated
from podium.plugins import IN_TREE
from podium.plugins.dynamic_resources import DynamicResources
from podium.plugins.image_locality import counted_images
from podium.plugins.node_resources_fit import asked_resources, counted_resources
from podium.plugins.storage.volume_binding import VolumeBinding
from podium.present.text import amount


@dataclass(frozen=True, slots=True)
class ScoredNode:
    """One pod and one node, while the pod is on no node."""

    cluster: Cluster
    pod: Pod
    row: int
    plugin: ScorePlugin
    state: CycleState

    @property
    def nodes(self) -> Nodes:
        """This node alone."""
        return Nodes(self.cluster, np.array([self.row], dtype=np.int64))


def formulas(
    scheduler: Scheduler, pod: Pod, profile: str | None, decision: Decision, node: str
) -> list[dict[str, Any]]:
    """Per plugin that scored the node: its raw, normalised and weighted score, each with its formula."""
    if node not in decision.totals:
        return []
    cluster = scheduler.cluster
    framework = scheduler.frameworks[profile or pod.spec.scheduler_name]
    plugins = {each.plugin.name: each.plugin for each in framework.score}
    with cluster.without(pod) as unbound:
        found = []
        for scores in decision.scores:
            plugin = plugins[scores.plugin]
            state = CycleState(cluster.info_of(unbound))
            feasible = Nodes(
                cluster, np.array(sorted(cluster.rows[name] for name in decision.feasible), dtype=np.int64)
            )
            # The scores of these plugins come from what they found while filtering.
            if (
                isinstance(plugin, VolumeBinding | DynamicResources)
                and plugin.pre_filter(state, unbound, feasible).status == SUCCESS
            ):
                plugin.filter(state, unbound, feasible)
            if isinstance(plugin, PreScorePlugin):
                plugin.pre_score(state, unbound, feasible)
            found.append(_formula(scores, ScoredNode(cluster, unbound, cluster.rows[node], plugin, state), node))
        return found


def _formula(scores: PluginScores, scored: ScoredNode, node: str) -> dict[str, Any]:
    raw, normalised = scores.raw[node], scores.normalized[node]
    # A user's plugin, or one of an old release, may have the same name as an in-tree plugin.
    is_known = type(scored.plugin) is IN_TREE.get(scores.plugin)
    tell = RAW.get(scores.plugin, _unknown) if is_known else _unknown
    return {
        "plugin": scores.plugin,
        "raw": raw,
        "normalised": normalised,
        "weight": scores.weight,
        "weighted": scores.weighted[node],
        "lines": [
            *tell(scored),
            *_normalising(scores, raw, normalised, is_known),
            f"{normalised} * weight {scores.weight} = {scores.weighted[node]:,} points",
        ],
    }


def _unknown(scored: ScoredNode) -> list[str]:
    return ["the plugin's own score"]


# -- raw scores ----------------------------------------------------------------------------------------------------


def _resources_fit(scored: ScoredNode) -> list[str]:
    args = scored.plugin.args if isinstance(scored.plugin.args, NodeResourcesFitArgs) else NodeResourcesFitArgs()
    strategy = args.scoring_strategy
    requests = scored.state.info.resources.score_requests
    amounts = scored.cluster.resource_states.amounts(scored.row)
    lines, parts, weights = [], [], 0
    for name, more, weight in asked_resources(counted_resources(strategy.resources), requests):
        of, used = amounts.allocatable.get(name, 0), amounts.non_zero.get(name, 0)
        if not of:
            continue
        taken = min(used + more, of)
        sum_ = f"{amount(name, used)} in use + {amount(name, more)} asked for"
        share = f"of {amount(name, of)}"
        if strategy.type == LEAST_ALLOCATED:
            score = (of - taken) * 100 // of
            lines.append(f"{name}: {sum_} {share}: {score} % stay free")
        else:
            score = taken * 100 // of
            lines.append(f"{name}: {sum_} {share}: {score} % are in use")
            if strategy.type != MOST_ALLOCATED:
                score = value_on_shape(strategy.shape or (), score)
                lines[-1] += f", for which the shape gives {score}"
                if not score:
                    continue
        parts.append(f"{score}" if weight == 1 else f"{score}*{weight}")
        weights += weight
    mean = f"({' + '.join(parts)}) / {weights}" if len(parts) > 1 or weights > 1 else "".join(parts) or "0"
    return [*lines, f"{strategy.type}: {mean}"]


def _balanced(scored: ScoredNode) -> list[str]:
    args = scored.plugin.args
    if not isinstance(args, NodeResourcesBalancedAllocationArgs):
        args = NodeResourcesBalancedAllocationArgs()
    amounts = scored.cluster.resource_states.amounts(scored.row)
    requests = scored.state.info.resources.balanced_requests
    before, after, lines = [], [], []
    for name, more, _ in asked_resources(counted_resources(args.resources), requests):
        of, used = amounts.allocatable.get(name, 0), amounts.requested.get(name, 0)
        if of:
            before.append(min(used / of, 1.0))
            after.append(min((used + more) / of, 1.0))
            lines.append(f"{name}: {before[-1]:.1%} in use now, {after[-1]:.1%} with the pod")
    now, then = _deviation(before), _deviation(after)
    lines.append(f"standard deviation of the shares: {now:.4f} now, {then:.4f} with the pod")
    if not scored.plugin.release_rules.balanced_allocation_compares_before_and_after:
        return [*lines, f"100 * (1 - the deviation with the pod), rounded down: {int((1 - then) * 100.0)}"]
    return [*lines, f"50 + (50 + {int((1 - then) * 100.0)} - {int((1 - now) * 100.0)}) / 2"]


def _deviation(shares: list[float]) -> float:
    return float(np.std(shares)) if len(shares) > 1 else 0.0


def _taints(scored: ScoredNode) -> list[str]:
    node = scored.cluster.node(scored.cluster.names[scored.row])
    prefer = [taint for taint in node.spec.taints if taint.effect == "PreferNoSchedule"]
    tolerations = [each for each in scored.pod.spec.tolerations if each.effect in ("", "PreferNoSchedule")]
    unwanted = [taint for taint in prefer if _is_untolerated(taint, tolerations)]
    named = ", ".join(f"{taint.key}={taint.value}" for taint in unwanted) or "none"
    return [f"PreferNoSchedule taints that the pod does not tolerate: {named}: {len(unwanted)}"]


def _is_untolerated(taint: Taint, tolerations: list[Toleration]) -> bool:
    # Checked as a NoSchedule taint, since PreferNoSchedule taints never reject a node.
    hard = replace(taint, effect="NoSchedule")
    return untolerated((hard,), [replace(each, effect="") for each in tolerations]) is not None


def _node_affinity(scored: ScoredNode) -> list[str]:
    affinity = scored.pod.spec.affinity and scored.pod.spec.affinity.node_affinity
    lines = []
    for term in affinity.preferred if affinity else ():
        says = " and ".join(map(requirement_text, term.preference.match_expressions)) or "no expression"
        lines.append(f"prefers {says}: weight {term.weight}")
    return [*lines, "the sum of the weights of the preferences that the node meets"]


def _image_locality(scored: ScoredNode) -> list[str]:
    cluster, lines, total = scored.cluster, [], 0
    images = counted_images(scored.pod.spec, scored.plugin.release_rules)
    for name in images.names:
        found = cluster.images.states.get(name)
        if found is None or scored.row not in found.rows:
            lines.append(f"{name}: not on the node")
            continue
        share = len(found.rows) / cluster.node_count
        total += int(found.size * share)
        lines.append(f"{name}: {found.size:,} bytes * {len(found.rows):,} of {cluster.node_count:,} nodes that have it")
    return [*lines, f"{total:,} bytes, from 23 MiB (0) to {1000 * images.expected:,} MiB (100)"]


def _spread(scored: ScoredNode) -> list[str]:
    found = scored.state.get("PodTopologySpread/score")
    if found is None:
        return ["no constraint counts"]
    lines = []
    for each in found.scored:
        key = each.constraint.topology_key
        code = int(scored.nodes.codes(key)[0])
        if code < 0:
            lines.append(f"{key}: the node has no such label")
            continue
        pods = int(each.pods[scored.row] if each.by_row else each.pods[code])
        skew = each.constraint.max_skew
        lines.append(f"{key}: {pods:,} matching pods * {each.weight:.3f} + maxSkew {skew} - 1")
    return [*lines, "the sum, rounded; the fewer the better"]


def _pod_affinity(scored: ScoredNode) -> list[str]:
    found: Mapping[str, Any] = scored.state.get("InterPodAffinity/score") or {}
    lines = []
    for key, scores in found.items():
        code = int(scored.nodes.codes(key)[0])
        points = int(scores[code]) if code >= 0 else 0
        lines.append(f"{key}: preferences that pods in the same domain meet come to {points:,}")
    return lines or ["no preference matters here"]


def _volumes(scored: ScoredNode) -> list[str]:
    assert isinstance(scored.plugin, VolumeBinding)
    parts = scored.plugin.score_parts(scored.state, scored.cluster, scored.row)
    lines = [
        f"{name or 'no class'}: {amount('memory', asked)} of {amount('memory', there)}: {score}"
        for name, asked, there, score in parts
    ]
    return [*lines, "the mean of the classes"] if lines else ["no claim that waits for its volume"]


def _devices(scored: ScoredNode) -> list[str]:
    assert isinstance(scored.plugin, DynamicResources)
    devices = scored.plugin.searched(scored.state)
    ranked = devices.ranked_on(scored.cluster.names[scored.row]) if devices is not None else []
    lines = [f"{claim} gets the alternative {request}: {points}" for claim, request, points in ranked]
    return [*lines, "the sum; 8 for a first alternative, 7 for a second"] if lines else ["no request has alternatives"]


RAW: dict[str, Callable[[ScoredNode], list[str]]] = {
    "NodeResourcesFit": _resources_fit,
    "NodeResourcesBalancedAllocation": _balanced,
    "TaintToleration": _taints,
    "NodeAffinity": _node_affinity,
    "ImageLocality": _image_locality,
    "PodTopologySpread": _spread,
    "InterPodAffinity": _pod_affinity,
    "VolumeBinding": _volumes,
    "DynamicResources": _devices,
}

# -- normalising ---------------------------------------------------------------------------------------------------


def _normalising(scores: PluginScores, raw: int, normalised: int, is_known: bool) -> list[str]:
    least, most = min(scores.raw.values()), max(scores.raw.values())
    first = f"raw score {raw:,}"
    match scores.plugin if is_known else "":
        case "TaintToleration" if most > 0:
            return [first, f"normalised: 100 - 100 * {raw:,} / {most:,} (the highest) = {normalised}"]
        case "NodeAffinity" | "DynamicResources" if most > 0:
            return [first, f"normalised: 100 * {raw:,} / {most:,} (the highest) = {normalised}"]
        case "InterPodAffinity" if most > least:
            return [first, f"normalised: 100 * ({raw:,} - {least:,}) / ({most:,} - {least:,}) = {normalised}"]
        case "PodTopologySpread" if most > 0:
            return [first, f"normalised: 100 * ({most:,} + {least:,} - {raw:,}) / {most:,} = {normalised}"]
        case _ if raw != normalised:
            return [first, f"normalised to {normalised}"]
    return [first]
