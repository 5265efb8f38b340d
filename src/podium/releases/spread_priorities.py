"""SelectorSpreadPriority and ServiceSpreadingPriority, and v1.18's DefaultPodTopologySpread."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from podium.cluster import Nodes
from podium.cluster.columns import Interned, Ints
from podium.framework import CycleState, ScorePlugin
from podium.model import Pod
from podium.model.node import BETA_REGION, BETA_ZONE, REGION, ZONE
from podium.releases.rules import OfRelease, Rules
from podium.releases.service_affinity import pod_selectors, sibling_tally

ZONE_WEIGHT = 2.0 / 3.0
"""How much of the score the zone makes, where nodes have zones."""

_SMALLEST = np.iinfo(np.int64).min

Floats = NDArray[np.float64]


class SelectorSpread(OfRelease, ScorePlugin):
    """Spread the pods of a service, controller or set over nodes, and two thirds of it over zones."""

    name = "SelectorSpread"
    SERVICES_ONLY = False

    def _has_own_constraints(self, pod: Pod) -> bool:
        """Whether another plugin spreads the pod."""
        return False

    def _services_only(self) -> bool:
        return self.SERVICES_ONLY and not self.rules.service_spreading_is_selector_spread

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        """How many siblings are on each node."""
        selectors = pod_selectors(pod, nodes.cluster, self.rules, services_only=self._services_only())
        state[self.name] = bool(selectors)
        if self._has_own_constraints(pod):
            return np.zeros(len(nodes), dtype=np.int64)
        tally = sibling_tally(pod, selectors, nodes.cluster, match_any=self.rules.spread_matches_any)
        return nodes.take(tally.per_row()).copy()

    def normalize(self, state: CycleState, pod: Pod, scores: Ints, nodes: Nodes) -> Ints:
        if self._has_own_constraints(pod):
            return scores
        rules, most = self.rules, int(scores.max())
        total: Floats = np.full(len(nodes), float(rules.max_score))
        if most > 0:
            total = float(rules.max_score) * ((most - scores) / float(most))
        zones = zone_codes(nodes, rules)
        # Without selectors v1.8 does not look at zones at all; the others find no pods in them.
        if not (zones >= 0).any() or (rules.spread_zone_divides_by_zero and not state[self.name]):
            return total.astype(np.int64)
        in_zone = np.where(zones >= 0, _zone_scores(zones, scores, rules), 0.0)
        with_zone = (total * (1.0 - ZONE_WEIGHT)) + (ZONE_WEIGHT * in_zone)
        return truncated(np.where(zones >= 0, with_zone, total))


def _zone_scores(zones: Ints, scores: Ints, rules: Rules) -> Floats:
    counts: Floats = np.bincount(zones[zones >= 0], weights=scores[zones >= 0]).astype(np.float64)
    most = float(counts.max())
    found: Floats = np.full(len(counts), np.nan if rules.spread_zone_divides_by_zero else float(rules.max_score))
    if most > 0:
        found = float(rules.max_score) * ((most - counts) / most)
    return found[zones]


def truncated(numbers: Floats) -> Ints:
    """The integers Go makes of floats on amd64: without their fraction, and the smallest int64 of not a number."""
    return np.where(np.isnan(numbers), _SMALLEST, np.nan_to_num(numbers).astype(np.int64))


def zone_codes(nodes: Nodes, rules: Rules) -> Ints:
    """A number per node, the same for nodes of the same region and zone; -1 for a node that says neither."""
    known: Interned[str] = Interned()
    known.code("")
    region = _label_codes(nodes, (BETA_REGION, REGION), known, rules)
    zone = _label_codes(nodes, (BETA_ZONE, ZONE), known, rules)
    pairs = region * len(known) + zone
    codes: Ints = np.unique(pairs, return_inverse=True)[1].astype(np.int64)
    return np.where(pairs == 0, -1, codes)


def _label_codes(nodes: Nodes, labels: tuple[str, str], known: Interned[str], rules: Rules) -> Ints:
    """The code in `known` of each node's beta label or, where the release reads that, of its stable one."""

    def read(label: str) -> Ints:
        values = nodes.cluster.columns.label(label).values.values
        return np.array([*map(known.code, values), 0], dtype=np.int64)[nodes.codes(label)]

    beta, stable = labels
    codes = read(beta)
    return np.where(nodes.codes(beta) >= 0, codes, read(stable)) if rules.zone_has_stable_label else codes


class SelectorSpreadPriority(SelectorSpread):
    name = "SelectorSpreadPriority"


class ServiceSpreadingPriority(SelectorSpread):
    """Spread the pods of a service."""

    name = "ServiceSpreadingPriority"
    SERVICES_ONLY = True


class DefaultPodTopologySpread(SelectorSpread):
    """Spread pods that do not say themselves how to be spread."""

    name = "DefaultPodTopologySpread"

    def _has_own_constraints(self, pod: Pod) -> bool:
        return bool(pod.spec.topology_spread_constraints)
