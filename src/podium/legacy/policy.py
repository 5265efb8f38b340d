"""Policy files: `kind: Policy, apiVersion: v1`, as the old releases read them.

Fields a release does not know are passed over, as those releases do. What a release refuses is a ConfigError in the
release's words; where the scheduler would exit at once, the words start with `fatal:`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from podium.config.args import ResourceSpec, UtilizationShapePoint
from podium.config.extenders import read_extender
from podium.config.fields import Fields, Problems
from podium.config.types import ExtenderConfig
from podium.errors import ConfigError

KIND, API_VERSION = "Policy", "v1"
_NANOSECONDS = 10**9

_EXTENDER_FIELDS = (
    *("urlPrefix", "filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb", "weight", "enableHTTPS", "tlsConfig"),
    *("httpTimeout", "nodeCacheCapable", "managedResources", "ignorable"),
)
_TLS_FIELDS = ("insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData")


@dataclass(frozen=True, kw_only=True)
class LabelsPresence:
    labels: tuple[str, ...]
    presence: bool


@dataclass(frozen=True, kw_only=True)
class LabelPreference:
    label: str
    presence: bool


@dataclass(frozen=True, kw_only=True)
class RatioArguments:
    shape: tuple[UtilizationShapePoint, ...]
    resources: tuple[ResourceSpec, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PredicatePolicy:
    """A predicate by name; a name of one's own comes with an argument that says what it is."""

    name: str
    has_argument: bool = False
    service_affinity: tuple[str, ...] | None = None
    labels_presence: LabelsPresence | None = None

    @property
    def arguments(self) -> int:
        return sum(argument is not None for argument in (self.service_affinity, self.labels_presence))


@dataclass(frozen=True, kw_only=True)
class PriorityPolicy:
    """A priority by name, with its weight; a name of one's own comes with an argument that says what it is."""

    name: str
    weight: int = 0
    has_argument: bool = False
    service_anti_affinity: str | None = None
    label_preference: LabelPreference | None = None
    ratio: RatioArguments | None = None

    @property
    def arguments(self) -> int:
        given = (self.service_anti_affinity, self.label_preference, self.ratio)
        return sum(argument is not None for argument in given)


@dataclass(frozen=True, kw_only=True)
class Policy:
    """What a Policy file says. None for predicates or priorities means that it does not list any, not even none."""

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[ExtenderConfig, ...] = ()
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False


def is_policy(document: object) -> bool:
    return isinstance(document, Mapping) and document.get("kind") == KIND


def parse_policy(document: object) -> Policy:
    """Read a Policy document; ConfigError for what cannot be decoded."""
    problems = Problems()
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise ConfigError([f"must be an object of kind {KIND} and apiVersion {API_VERSION}"])
    if document.get("apiVersion") != API_VERSION:
        problems.unsupported("apiVersion", document.get("apiVersion"), (API_VERSION,))
    fields = Fields(dict(document), "", problems)
    lists_predicates, lists_priorities = fields.present("predicates"), fields.present("priorities")
    predicates = tuple(_predicate(item) for item in fields.children("predicates"))
    priorities = tuple(_priority(item) for item in fields.children("priorities"))
    policy = Policy(
        predicates=predicates if lists_predicates else None,
        priorities=priorities if lists_priorities else None,
        extenders=read_policy_extenders(fields.take("extenders"), problems),
        hard_pod_affinity_symmetric_weight=fields.integer("hardPodAffinitySymmetricWeight"),
        always_check_all_predicates=fields.boolean("alwaysCheckAllPredicates"),
    )
    if problems.errors:
        raise ConfigError(problems.errors)
    return policy


def _predicate(item: Fields) -> PredicatePolicy:
    name, argument = item.string("name"), item.optional_child("argument")
    if argument is None:
        return PredicatePolicy(name=name)
    affinity, presence = argument.optional_child("serviceAffinity"), argument.optional_child("labelsPresence")
    return PredicatePolicy(
        name=name,
        has_argument=True,
        service_affinity=None if affinity is None else tuple(affinity.strings("labels")),
        labels_presence=None
        if presence is None
        else LabelsPresence(labels=tuple(presence.strings("labels")), presence=presence.boolean("presence")),
    )


def _priority(item: Fields) -> PriorityPolicy:
    name, weight, argument = item.string("name"), item.integer("weight", bits=64), item.optional_child("argument")
    if argument is None:
        return PriorityPolicy(name=name, weight=weight)
    spread, preference = argument.optional_child("serviceAntiAffinity"), argument.optional_child("labelPreference")
    ratio = argument.optional_child("requestedToCapacityRatioArguments")
    return PriorityPolicy(
        name=name,
        weight=weight,
        has_argument=True,
        service_anti_affinity=None if spread is None else spread.string("label"),
        label_preference=None
        if preference is None
        else LabelPreference(label=preference.string("label"), presence=preference.boolean("presence")),
        ratio=None if ratio is None else read_ratio(ratio),
    )


def read_ratio(fields: Fields) -> RatioArguments:
    shape = fields.children("shape")
    resources = fields.children("resources")
    return RatioArguments(
        shape=tuple(UtilizationShapePoint(each.integer("utilization"), each.integer("score")) for each in shape),
        # A weight that is left out counts as 1.
        resources=tuple(ResourceSpec(each.string("name"), each.integer("weight", bits=64) or 1) for each in resources),
    )


def read_policy_extenders(given: object, problems: Problems) -> tuple[ExtenderConfig, ...]:
    """Extenders as Policy files write them: names in any case, the timeout in nanoseconds."""
    if given is not None and not isinstance(given, list):
        problems.wrong_type("extenders", "a list")
        return ()
    found = []
    for index, item in enumerate(given or ()):
        known = _renamed(item, _EXTENDER_FIELDS)
        if "tlsConfig" in known:
            known["tlsConfig"] = _renamed(known["tlsConfig"], _TLS_FIELDS)
        timeout = known.get("httpTimeout")
        if isinstance(timeout, int) and not isinstance(timeout, bool):
            known["httpTimeout"] = f"{timeout / _NANOSECONDS:.9f}s"
        found.append(read_extender(Fields(known, f"extenders[{index}]", problems)))
    return tuple(found)


def _renamed(item: object, names: Iterable[str]) -> dict[str, Any]:
    """The fields that are known, under their names of today; others are passed over."""
    by_lower = {name.lower(): name for name in names}
    fields = item.items() if isinstance(item, Mapping) else ()
    return {by_lower[str(name).lower()]: value for name, value in fields if str(name).lower() in by_lower}


def fatal(message: str) -> ConfigError:
    """The scheduler would exit at once."""
    return ConfigError([f"fatal: {message}"])


def check_arguments(policy: PredicatePolicy | PriorityPolicy, what: str) -> None:
    """An argument, where there is one, says exactly one thing."""
    if policy.has_argument and policy.arguments != 1:
        title = what.capitalize()
        raise fatal(f"Exactly 1 {what} argument is required, numArgs: {policy.arguments}, {title}: {policy.name}")


MAX_WEIGHT = (2**63 - 1) // 10


def weight_problems(policy: Policy) -> list[str]:
    """The priorities whose weight is not positive, or too large."""
    return [
        f"Priority {priority.name} should have a positive weight applied to it or it has overflown"
        for priority in policy.priorities or ()
        if not 0 < priority.weight < MAX_WEIGHT
    ]


def shape_problem(shape: Iterable[UtilizationShapePoint]) -> str:
    """What keeps a shape from being a scoring function; empty when nothing does."""
    points = tuple(shape)
    if not points:
        return "at least one point must be specified"
    for place, (one, two) in enumerate(pairwise(points), 1):
        if one.utilization >= two.utilization:
            return (
                f"utilization values must be sorted. Utilization[{place - 1}]=={one.utilization} >= "
                f"Utilization[{place}]=={two.utilization}"
            )
    for place, (utilization, score) in enumerate(points):
        if not 0 <= utilization <= 100:
            return f"utilization values must be between 0 and 100. Utilization[{place}]=={utilization}"
        if not 0 <= score <= 10:
            return f"score values must be between 0 and 10. Score[{place}]=={score}"
    return ""
