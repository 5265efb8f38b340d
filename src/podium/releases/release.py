"""The old releases: the plugins of each, how it is configured, and how it makes a decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from podium.config.types import KubeSchedulerConfiguration
from podium.engine import Decision
from podium.engine.release import Config, FitError, Options, Release, ReleaseBehaviour, Setup
from podium.errors import ConfigError, InputError
from podium.extenders import Extender
from podium.framework import Registry
from podium.plugins import IN_TREE
from podium.releases._algorithms import Catalog, configure, v1_8_catalog, v1_14_catalog
from podium.releases.framework_v118 import V1ALPHA2, configure_policy, configure_v1alpha2, provider_priorities
from podium.releases.policy import API_VERSION, KIND, is_policy, legacy_dict, parse_policy
from podium.releases.rules import OLDEST_RULES, V1_8, V1_14, V1_18, OldReleaseRules


class UnscaledExtender(Extender):
    """An extender of a release whose own scores go to 10, like the extender's."""

    def weighted(self, score: int) -> int:
        """The points that a raw score adds to the node's total: the score times the extender's weight."""
        return (score * self.weight + 2**63) % 2**64 - 2**63


@dataclass(frozen=True, kw_only=True)
class LegacyConfiguration(KubeSchedulerConfiguration):
    """A configuration of an old release with everything needed to run it: it can be changed and set up again."""

    registry: Registry = field(repr=False, compare=False)
    behaviour: ReleaseBehaviour = field(repr=False)
    effective: Mapping[str, Any] = field(repr=False)


Configure = Callable[[Config, ReleaseBehaviour, Options, Registry], Setup]


@dataclass(frozen=True, kw_only=True)
class OldRelease(Release):
    """A release of an older generation."""

    configure: Configure
    gates: frozenset[str]
    """The feature gates that change its decisions."""

    def knows(self, document: object) -> bool:
        if is_policy(document):
            return True
        return self.name == V1_18.release and isinstance(document, Mapping) and document.get("apiVersion") == V1ALPHA2

    def with_feature_gates(self, gates: Mapping[str, bool]) -> OldRelease:
        for name in gates:
            if name not in self.gates:
                known = ", ".join(sorted(self.gates))
                raise InputError(f"feature gate {name} is not one that {self.name} has and Podium models; use {known}")
        return replace(self, feature_gates={**self.feature_gates, **gates})

    def shape(self, decision: Decision) -> dict[str, Any]:
        return legacy_dict(decision)

    def set_up(self, document: Config = None, *, options: Options | None = None, registry: Registry = IN_TREE) -> Setup:
        """Set up a scheduler of this release; a configuration that was set up before is used as it is."""
        if isinstance(document, LegacyConfiguration):
            return self._set_up_again(document)
        options = options or Options()
        options = replace(options, feature_gates={**self.feature_gates, **options.feature_gates})
        setup = self.configure(document, self.behaviour, options, registry)
        ways = {"registry": setup.registry, "behaviour": setup.behaviour, "effective": setup.effective}
        config = LegacyConfiguration(**{**vars(setup.config), "old_release": self.name, **ways})
        return replace(setup, config=config)

    def _set_up_again(self, config: LegacyConfiguration) -> Setup:
        if config.old_release != self.name:
            raise ConfigError([f"is a configuration of {config.old_release}, not of {self.name}"])
        return Setup(
            config=config,
            registry=config.registry,
            rules=self.rules,
            behaviour=config.behaviour,
            effective=config.effective,
        )


def own_plugins(registry: Registry) -> Registry:
    """The plugins of a registry that are not Podium's."""
    return Registry(plugin for name, plugin in registry.items() if IN_TREE.get(name) is not plugin)


def _v1_18(document: Config, behaviour: ReleaseBehaviour, options: Options, registry: Registry) -> Setup:
    own = own_plugins(registry)
    if is_policy(document):
        return configure_policy(parse_policy(document, V1_18), behaviour, options, own)
    return configure_v1alpha2(document, behaviour, options, own)


def _algorithms(rules: OldReleaseRules, catalog: Callable[[Mapping[str, bool]], Catalog]) -> Configure:
    def read(document: Config, behaviour: ReleaseBehaviour, options: Options, registry: Registry) -> Setup:
        if document is not None and not is_policy(document):
            raise ConfigError([f"{rules.release} reads an object of kind Policy and apiVersion v1"])
        policy = None if document is None else parse_policy(document, rules)
        return configure(catalog(options.feature_gates), behaviour, policy, options, own_plugins(registry))

    return read


V1_8_FIT_ERROR = FitError("No nodes are available that match all of the predicates:", "{reason} ({count})")

RELEASES: dict[str, OldRelease] = {
    release.name: release
    for release in (
        OldRelease(
            rules=OLDEST_RULES,
            name="v1.8",
            version="v1.8.15",
            reads="Policy",
            behaviour=ReleaseBehaviour(
                collects_all_reasons=True,
                scores_single_node=True,
                score_range=None,
                samples_nodes=False,
                tie_break="round-robin-descending",
                fit_error=V1_8_FIT_ERROR,
                extender=UnscaledExtender,
            ),
            configure=_algorithms(V1_8, v1_8_catalog),
            gates=frozenset(("PersistentLocalVolumes",)),
        ),
        OldRelease(
            rules=OLDEST_RULES,
            name="v1.14",
            version="v1.14.10",
            reads="Policy",
            behaviour=ReleaseBehaviour(score_range=None, tie_break="round-robin", extender=UnscaledExtender),
            configure=_algorithms(V1_14, v1_14_catalog),
            gates=frozenset(
                (
                    "ResourceLimitsPriorityFunction",
                    "TaintNodesByCondition",
                )
            ),
        ),
        OldRelease(
            rules=OLDEST_RULES,
            name="v1.18",
            version="v1.18.20",
            reads="Policy or KubeSchedulerConfiguration",
            behaviour=ReleaseBehaviour(),
            configure=_v1_18,
            gates=frozenset(("EvenPodsSpread", "ResourceLimitsPriorityFunction")),
        ),
    )
}


def old_release(name: str) -> OldRelease:
    """The old release with this name."""
    return RELEASES[name]


def provider_policy(release: str, options: Options | None = None) -> dict[str, Any]:
    """A Policy with which v1.8, v1.14 or v1.18 decides as with a provider, by default the default provider.

    v1.18 adds the predicates itself: its providers list plugins, which a Policy cannot name.
    """
    options = options or Options()
    policy: dict[str, Any] = {"kind": KIND, "apiVersion": API_VERSION}
    if release == V1_18.release:
        weights = provider_priorities(options)
    else:
        effective = old_release(release).set_up(options=options).effective
        policy["predicates"] = [{"name": name} for name in effective["predicates"]]
        weights = effective["priorities"]
    policy["priorities"] = [{"name": name, "weight": weight} for name, weight in weights.items()]
    return policy
