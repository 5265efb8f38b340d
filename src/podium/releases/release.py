"""The releases Podium can be: each is a set of plugins, a way to configure them, and how to go about a decision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from podium.config import KubeSchedulerConfiguration, default_config, parse_config
from podium.errors import ConfigError, InputError
from podium.framework import Registry
from podium.plugins import IN_TREE
from podium.releases.algorithms import Catalog, configure, v1_8_catalog, v1_14_catalog
from podium.releases.conduct import Conduct, FitError, LegacyConfiguration, Options, Setup, UnscaledExtender
from podium.releases.framework_v118 import V1ALPHA2, configure_v1alpha2
from podium.releases.policy import is_policy, parse_policy
from podium.releases.policy_v118 import configure_policy
from podium.releases.rules import V1_8, V1_14, V1_18, Rules

Document = KubeSchedulerConfiguration | Mapping[str, Any] | None
Configure = Callable[[Document, Conduct, Options, Registry], Setup]


@dataclass(frozen=True, kw_only=True)
class Release:
    """A generation of kube-scheduler."""

    name: str
    version: str
    """The very release whose decisions were recorded to compare with."""
    reads: str
    """The kind of object that configures it."""
    conduct: Conduct
    configure: Configure

    def knows(self, document: object) -> bool:
        """Whether a configuration found among objects is meant for this release, right or wrong."""
        if self.name == CURRENT or is_policy(document):
            return True
        return self.name == V1_18.release and isinstance(document, Mapping) and document.get("apiVersion") == V1ALPHA2

    def set_up(
        self, document: Document = None, *, options: Options | None = None, registry: Registry = IN_TREE
    ) -> Setup:
        """What a scheduler of this release runs with; `registry` may have plugins of the user's besides Podium's.

        A configuration that was set up before is taken as it is.
        """
        if isinstance(document, LegacyConfiguration):
            return self._set_up_again(document)
        setup = self.configure(document, self.conduct, options or Options(), registry)
        if self.name == CURRENT:
            return setup
        config = LegacyConfiguration(
            **vars(setup.config),
            release=self.name,
            registry=setup.registry,
            conduct=setup.conduct,
            effective=setup.effective,
        )
        return replace(setup, config=config)

    def _set_up_again(self, config: LegacyConfiguration) -> Setup:
        if config.release != self.name:
            raise ConfigError([f"is a configuration of {config.release}, not of {self.name}"])
        return Setup(config=config, registry=config.registry, conduct=config.conduct, effective=config.effective)


def own_plugins(registry: Registry) -> Registry:
    """The plugins of a registry that are not Podium's."""
    return Registry(plugin for name, plugin in registry.items() if IN_TREE.get(name) is not plugin)


def _current(document: Document, conduct: Conduct, options: Options, registry: Registry) -> Setup:
    if document is None:
        config = default_config(registry.points)
    elif isinstance(document, KubeSchedulerConfiguration):
        config = document
    else:
        config = parse_config(document, registry.points)
    effective = {
        profile.scheduler_name: {
            "predicates": [ref.name for ref in profile.points["filter"]],
            "priorities": {ref.name: ref.weight for ref in sorted(profile.points["score"])},
        }
        for profile in config.profiles
    }
    return Setup(config=config, registry=registry, conduct=conduct, effective=effective)


def _v1_18(document: Document, conduct: Conduct, options: Options, registry: Registry) -> Setup:
    own = own_plugins(registry)
    if is_policy(document):
        return configure_policy(parse_policy(document, V1_18), conduct, options, own)
    return configure_v1alpha2(document, conduct, options, own)


def _algorithms(rules: Rules, catalog: Callable[[Mapping[str, bool]], Catalog]) -> Configure:
    def read(document: Document, conduct: Conduct, options: Options, registry: Registry) -> Setup:
        if document is not None and not is_policy(document):
            raise ConfigError([f"{rules.release} reads an object of kind Policy and apiVersion v1"])
        policy = None if document is None else parse_policy(document, rules)
        return configure(catalog(options.feature_gates), conduct, policy, options, own_plugins(registry))

    return read


V1_8_FIT_ERROR = FitError("No nodes are available that match all of the predicates:", "{reason} ({count})")

RELEASES: dict[str, Release] = {
    release.name: release
    for release in (
        Release(
            name="v1.8",
            version="v1.8.15",
            reads="Policy",
            conduct=Conduct(
                collects_all_reasons=True,
                scores_single_node=True,
                score_range=None,
                samples_nodes=False,
                tie_break="round-robin-descending",
                fit_error=V1_8_FIT_ERROR,
                extender=UnscaledExtender,
            ),
            configure=_algorithms(V1_8, v1_8_catalog),
        ),
        Release(
            name="v1.14",
            version="v1.14.10",
            reads="Policy",
            conduct=Conduct(score_range=None, tie_break="round-robin", extender=UnscaledExtender),
            configure=_algorithms(V1_14, v1_14_catalog),
        ),
        Release(
            name="v1.18",
            version="v1.18.20",
            reads="Policy or KubeSchedulerConfiguration",
            conduct=Conduct(),
            configure=_v1_18,
        ),
        Release(
            name="v1.36",
            version="v1.36.4",
            reads="KubeSchedulerConfiguration",
            conduct=Conduct(),
            configure=_current,
        ),
    )
}
CURRENT = "v1.36"


def release_of(name: str) -> Release:
    """The release of that name."""
    found = RELEASES.get(name)
    if found is None:
        raise InputError(f"release {name!r} is unknown; use one of {', '.join(RELEASES)}")
    return found
