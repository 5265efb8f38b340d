"""A release of kube-scheduler for the engine: its rules, its configuration, and the objects that crash it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from podium.config import KubeSchedulerConfiguration, default_config, parse_config
from podium.config.parse import outdated_version
from podium.config.plugin_args import NodeResourcesBalancedAllocationArgs
from podium.errors import ConfigError, InputError
from podium.extenders import Extender
from podium.framework import Registry
from podium.model import CSIStorageCapacity, DeviceClass, Node, Object, PersistentVolumeClaim
from podium.model.objects import BETA_STORAGE_CLASS
from podium.plugins import IN_TREE
from podium.plugins.dynamic_resources.extended_resources import backed_by
from podium.rules import Rules, rules_of
from podium.rules.gates import NEWEST, RELEASE_NAMES, VERSIONS, release_order, short_name

if TYPE_CHECKING:
    from podium.engine.decision import Decision

CURRENT = NEWEST
"""The release that is used by default."""
OLD_RELEASES = ("v1.8", "v1.14", "v1.18")
_OLD_RELEASES_HOME = "podium.releases.release"

DEFAULT_PROVIDER, CLUSTER_AUTOSCALER_PROVIDER = "DefaultProvider", "ClusterAutoscalerProvider"
PROVIDERS = (DEFAULT_PROVIDER, CLUSTER_AUTOSCALER_PROVIDER)

Config = KubeSchedulerConfiguration | Mapping[str, Any] | None
"""A configuration, the dict from a configuration file, or None for the release's defaults."""


class FitError(NamedTuple):
    """How a release words that a pod fits nowhere: the beginning, and the count of each reason."""

    head: str = "0/{nodes} nodes are available:"
    reason: str = "{count} {reason}"


FIT_ERROR = FitError()
"""The wording of all releases since v1.14."""


@dataclass(frozen=True, kw_only=True)
class ReleaseBehaviour:
    """How the engine behaves for a release; the defaults are those of the current releases."""

    collects_all_reasons: bool = False
    """Every filter checks every node; otherwise a node is done once one filter rejects it."""
    scores_single_node: bool = False
    """A node is scored even if it is the only feasible node."""
    score_range: tuple[int, int] | None = (0, 100)
    """The allowed range of normalised scores; None if the release does not check them."""
    samples_nodes: bool = True
    """Whether the user can ask for sampling, which evaluates only part of a large cluster."""
    tie_break: str = "random"
    """How to choose among several best nodes, unless the user says."""
    fit_error: FitError = FIT_ERROR
    extender: type[Extender] = Extender


@dataclass(frozen=True, kw_only=True)
class Options:
    """The command line and environment of a scheduler; for current releases, the feature gates only."""

    provider: str = DEFAULT_PROVIDER
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)

    @property
    def packs(self) -> bool:
        """Whether the provider prefers nodes that are already full; InputError for an unknown provider."""
        if self.provider not in PROVIDERS:
            raise InputError(f"algorithm provider {self.provider!r} is unknown; use {' or '.join(PROVIDERS)}")
        return self.provider == CLUSTER_AUTOSCALER_PROVIDER


@dataclass(frozen=True, kw_only=True)
class Setup:
    """What a scheduler of a release runs with."""

    config: KubeSchedulerConfiguration
    registry: Registry
    rules: Rules
    behaviour: ReleaseBehaviour
    effective: Mapping[str, Any]
    """The configured predicates (or filters) and priorities (or scores), by name."""
    warnings: tuple[str, ...] = ()
    """One line for each setting that the release ignores or would refuse."""


@dataclass(frozen=True, kw_only=True)
class Release:
    """A release of kube-scheduler, perhaps with feature gates switched."""

    name: str
    version: str
    """The patch release whose recorded decisions Podium is compared with."""
    reads: str = "KubeSchedulerConfiguration"
    """The kind of object that configures the release."""
    rules: Rules
    behaviour: ReleaseBehaviour = ReleaseBehaviour()
    feature_gates: Mapping[str, bool] = field(default_factory=dict)

    @property
    def is_old(self) -> bool:
        """Whether the release is older than v1.29."""
        return self.name in OLD_RELEASES

    def knows(self, document: object) -> bool:
        """Whether a configuration found among objects is meant for this release, valid or not."""
        return True

    def with_feature_gates(self, gates: Mapping[str, bool]) -> Release:
        """The same release with feature gates switched; InputError for a gate that it does not have or locks."""
        if not gates:
            return self
        asked = {**self.feature_gates, **gates}
        return replace(self, rules=rules_of(self.name, asked), feature_gates=asked)

    def shape(self, decision: Decision) -> dict[str, Any]:
        """The decision as plain data, in the words of the release."""
        return decision.to_dict()

    def set_up(self, document: Config = None, *, options: Options | None = None, registry: Registry = IN_TREE) -> Setup:
        """Set up what a scheduler of this release runs with; `registry` may contain the user's plugins besides
        Podium's.
        """
        if options is not None and options.feature_gates:
            return self.with_feature_gates(options.feature_gates).set_up(document, registry=registry)
        known = registry.points_in(self.rules)
        warnings: list[str] = []
        if document is None:
            config = default_config(known, self.rules)
        elif isinstance(document, KubeSchedulerConfiguration):
            if document.old_release:
                raise ConfigError([f"is a configuration of {document.old_release}, not of {self.name}"])
            config = document
        else:
            config = parse_config(document, known, rules=self.rules)
            warnings = outdated_version(document)
        effective = {
            profile.scheduler_name: {
                "predicates": [ref.name for ref in profile.points["filter"]],
                "priorities": {ref.name: ref.weight for ref in sorted(profile.points["score"])},
            }
            for profile in config.profiles
        }
        return Setup(
            config=config,
            registry=registry,
            rules=self.rules,
            behaviour=self.behaviour,
            effective=effective,
            warnings=tuple(warnings),
        )


AnyRelease = str | Release
"""A release by its name (`v1.36` or `1.36`), or as `release_of` gives it."""


@lru_cache(maxsize=len(RELEASE_NAMES))
def _current(name: str) -> Release:
    return Release(name=name, version=VERSIONS[name], rules=rules_of(name))


class FoundRelease(NamedTuple):
    """The release of the nodes, and a sentence about how it was found."""

    release: str
    said: str


def release_of_nodes(nodes: Iterable[Node]) -> FoundRelease:
    """The newest release among the kubelets: the scheduler is never older than a kubelet.

    InputError if no kubelet states its version, or if it is older than all current releases.
    """
    versions = Counter(name for node in nodes if (name := short_name(node.status.node_info.kubelet_version)))
    if not versions:
        raise InputError("no node has a kubelet version: name the release with --release (for an upgrade, with --from)")
    count = versions.total()
    newest = max(versions, key=release_order)
    said = f"the newest kubelet version of {count} nodes is {newest}, on {versions[newest]} of them"
    if count == 1:
        said = f"the kubelet version of the only node is {newest}"
    if newest in RELEASE_NAMES:
        return FoundRelease(newest, f"release {newest}: {said}")
    if release_order(newest) > release_order(NEWEST):
        return FoundRelease(NEWEST, f"release {NEWEST}, the newest that Podium knows: {said}")
    raise InputError(f"{said}; Podium decides as v1.29 or later, or {', '.join(OLD_RELEASES)}: name one with --release")


def known_release_of_nodes(nodes: Iterable[Node]) -> FoundRelease | None:
    """The newest release among the kubelets; None if none states a version, or Podium has nothing as old."""
    versions = {short_name(node.status.node_info.kubelet_version) for node in nodes} - {None, ""}
    newest = max((name for name in versions if name), key=release_order, default=None)
    is_known = newest in RELEASE_NAMES or (newest is not None and release_order(newest) > release_order(NEWEST))
    return release_of_nodes(nodes) if is_known else None


def release_of(release: AnyRelease) -> Release:
    """The release with this name; InputError for a release that Podium does not support."""
    if isinstance(release, Release):
        return release
    name = short_name(release) or release
    if name in RELEASE_NAMES:
        return _current(name)
    if name in OLD_RELEASES:
        found: Callable[[str], Release] = import_module(_OLD_RELEASES_HOME).old_release
        return found(name)
    known = ", ".join((*OLD_RELEASES, *RELEASE_NAMES))
    raise InputError(f"release {release!r} is unknown; use one of {known}")


def known_crashes(objects: Iterable[Object], rules: Rules) -> list[str]:
    """One sentence for each object that may crash the scheduler of a release."""
    if not rules.scores_storage_capacity:
        return []
    found = []
    for item in objects:
        if isinstance(item, CSIStorageCapacity) and item.capacity is None and item.maximum_volume_size is not None:
            found.append(_said(f"CSIStorageCapacity {item.key} has a maximumVolumeSize and no capacity", rules))
        if isinstance(item, PersistentVolumeClaim) and named_by_annotation(item) and not item.spec.volume_name:
            found.append(_said(f"claim {item.key} names its class by the annotation {BETA_STORAGE_CLASS} alone", rules))
    return found


def crashing_resources(objects: Iterable[Object], config: KubeSchedulerConfiguration, rules: Rules) -> list[str]:
    """One sentence for each resource in NodeResourcesBalancedAllocation's arguments that crashes the scheduler.

    The plugin lacks what it needs to evaluate the expressions of a device class.
    """
    if not rules.device_extended_resources:
        return []
    args = [profile.args.get("NodeResourcesBalancedAllocation") for profile in config.profiles]
    names = {
        each.name for one in args if isinstance(one, NodeResourcesBalancedAllocationArgs) for each in one.resources
    }
    classes = backed_by(item for item in objects if isinstance(item, DeviceClass))
    return [
        _said(
            f"NodeResourcesBalancedAllocation counts {name} and DeviceClass {classes[name].name} has selectors", rules
        )
        for name in sorted(names & classes.keys())
        if classes[name].spec.selectors
    ]


def named_by_annotation(claim: PersistentVolumeClaim) -> bool:
    """Whether only the old annotation names the claim's storage class."""
    return claim.spec.storage_class_name is None and BETA_STORAGE_CLASS in claim.metadata.annotations


def _said(problem: str, rules: Rules) -> str:
    return f"{problem}: {rules.release} may crash when it scores nodes for it; decided as by other releases"
