"""Policy files: `kind: Policy, apiVersion: v1`, as the old releases read them.

A field that a release does not know is refused or ignored, as by that release; ignored fields are noted. What a release
refuses is a ConfigError in the release's words; if the scheduler would exit at once, the message starts with `fatal:`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Protocol

from podium.config.fields import Fields, Problems, quote
from podium.config.parse import read_extender
from podium.config.plugin_args import ResourceSpec, UtilizationShapePoint
from podium.config.types import ExtenderConfig
from podium.errors import ConfigError
from podium.framework import Plugin, Registry, Status
from podium.releases.rules import OldReleaseRules

KIND, API_VERSION = "Policy", "v1"
MAX_WEIGHT = (2**63 - 1) // 10
_NANOSECONDS = 10**9

_EXTENDER_FIELDS = (
    *("urlPrefix", "filterVerb", "prioritizeVerb", "preemptVerb", "bindVerb", "weight", "enableHTTPS", "tlsConfig"),
    *("httpTimeout", "nodeCacheCapable", "managedResources", "ignorable"),
)
_TLS_FIELDS = ("insecure", "serverName", "certFile", "keyFile", "caFile", "certData", "keyData", "caData")
_RESOURCE_FIELDS = ("name", "ignoredByScheduler")


class PolicyProblems(Problems):
    """The problems of a Policy in a release that refuses unknown fields, or ignores them and continues."""

    def __init__(self, rules: OldReleaseRules, *, strict: bool) -> None:
        super().__init__()
        self.rules, self._strict = rules, strict
        self.unknown_fields: list[str] = []
        self.unread: list[str] = []
        """Other things that are ignored, in words."""

    def unknown(self, path: str) -> None:
        if self._strict:
            super().unknown(path)
        else:
            self.unknown_fields.append(path)

    @property
    def warnings(self) -> tuple[str, ...]:
        """The ignored fields: one line for unknown fields, and one for each other thing."""
        release, fields = self.rules.release, ", ".join(map(quote, self.unknown_fields))
        unknown = (f"{release} does not know and passes over {fields}",) if fields else ()
        return *unknown, *(f"{release} passes over {what}" for what in self.unread)

    def lacks(self, field: str) -> bool:
        """Whether the release is older than a field."""
        return field in self.rules.lacks_fields


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
    """A predicate by name; a custom name comes with an argument that defines it."""

    name: str
    has_argument: bool = False
    service_affinity: tuple[str, ...] | None = None
    labels_presence: LabelsPresence | None = None

    @property
    def arguments(self) -> int:
        return sum(argument is not None for argument in (self.service_affinity, self.labels_presence))


@dataclass(frozen=True, kw_only=True)
class PriorityPolicy:
    """A priority by name, with its weight; a custom name comes with an argument that defines it."""

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
    """The contents of a Policy file. None for predicates or priorities means that the list is missing, which differs
    from empty.
    """

    predicates: tuple[PredicatePolicy, ...] | None = None
    priorities: tuple[PriorityPolicy, ...] | None = None
    extenders: tuple[ExtenderConfig, ...] = ()
    hard_pod_affinity_symmetric_weight: int = 0
    always_check_all_predicates: bool = False
    warnings: tuple[str, ...] = ()
    """What the release ignores."""

    @property
    def weight_problems(self) -> list[str]:
        """The priorities whose weight is not positive, or too large."""
        return [
            f"Priority {priority.name} should have a positive weight applied to it or it has overflown"
            for priority in self.priorities or ()
            if not 0 < priority.weight < MAX_WEIGHT
        ]


def is_policy(document: object) -> bool:
    return isinstance(document, Mapping) and document.get("kind") == KIND


def parse_policy(document: object, rules: OldReleaseRules) -> Policy:
    """Read a Policy document as a release does; ConfigError if it cannot be decoded."""
    problems = PolicyProblems(rules, strict=rules.refuses_unknown_fields)
    if not isinstance(document, Mapping) or document.get("kind") != KIND:
        raise ConfigError([f"must be an object of kind {KIND} and apiVersion {API_VERSION}"])
    with Fields(dict(document), "", problems) as fields:
        fields.take("kind")
        api_version = fields.take("apiVersion")
        if api_version != API_VERSION:
            problems.unsupported("apiVersion", api_version, (API_VERSION,))
        lists_predicates, lists_priorities = fields.present("predicates"), fields.present("priorities")
        predicates = tuple(_predicate(item) for item in fields.children("predicates"))
        priorities = tuple(_priority(item, problems) for item in fields.children("priorities"))
        extenders = read_policy_extenders(fields.take("extenders"), problems)
        hard_weight = fields.integer("hardPodAffinitySymmetricWeight")
        check_all = not problems.lacks("alwaysCheckAllPredicates") and fields.boolean("alwaysCheckAllPredicates")
    if problems.errors:
        raise ConfigError(problems.errors)
    return Policy(
        predicates=predicates if lists_predicates else None,
        priorities=priorities if lists_priorities else None,
        extenders=extenders,
        hard_pod_affinity_symmetric_weight=hard_weight,
        always_check_all_predicates=check_all,
        warnings=problems.warnings,
    )


def _predicate(item: Fields) -> PredicatePolicy:
    with item:
        name, argument = item.string("name"), item.optional_child("argument")
    if argument is None:
        return PredicatePolicy(name=name)
    with argument:
        affinity, presence = argument.optional_child("serviceAffinity"), argument.optional_child("labelsPresence")
    return PredicatePolicy(
        name=name,
        has_argument=True,
        service_affinity=None if affinity is None else _labels(affinity),
        labels_presence=None if presence is None else _presence(presence),
    )


def _labels(fields: Fields) -> tuple[str, ...]:
    with fields:
        return tuple(fields.strings("labels"))


def _presence(fields: Fields) -> LabelsPresence:
    with fields:
        return LabelsPresence(labels=tuple(fields.strings("labels")), presence=fields.boolean("presence"))


def _priority(item: Fields, problems: PolicyProblems) -> PriorityPolicy:
    with item:
        name, weight, argument = item.string("name"), item.integer("weight", bits=64), item.optional_child("argument")
    if argument is None:
        return PriorityPolicy(name=name, weight=weight)
    with argument:
        spread, preference = argument.optional_child("serviceAntiAffinity"), argument.optional_child("labelPreference")
        has_ratio = not problems.lacks("requestedToCapacityRatioArguments")
        ratio = argument.optional_child("requestedToCapacityRatioArguments") if has_ratio else None
    return PriorityPolicy(
        name=name,
        weight=weight,
        has_argument=True,
        service_anti_affinity=None if spread is None else _label(spread),
        label_preference=None if preference is None else _preference(preference),
        ratio=None if ratio is None else read_ratio(ratio, problems),
    )


def _label(fields: Fields) -> str:
    with fields:
        return fields.string("label")


def _preference(fields: Fields) -> LabelPreference:
    with fields:
        return LabelPreference(label=fields.string("label"), presence=fields.boolean("presence"))


def read_ratio(fields: Fields, problems: PolicyProblems) -> RatioArguments:
    with fields:
        shape = tuple(_point(item) for item in fields.children("shape"))
        resources = () if problems.lacks("resources") else tuple(map(_resource, fields.children("resources")))
    return RatioArguments(shape=shape, resources=resources)


def _point(fields: Fields) -> UtilizationShapePoint:
    with fields:
        return UtilizationShapePoint(fields.integer("utilization"), fields.integer("score"))


def _resource(fields: Fields) -> ResourceSpec:
    """A missing weight counts as 1."""
    with fields:
        return ResourceSpec(fields.string("name"), fields.integer("weight", bits=64) or 1)


def read_policy_extenders(given: object, problems: PolicyProblems) -> tuple[ExtenderConfig, ...]:
    """Extenders as Policy files write them: names in any case, the timeout in nanoseconds.

    Even a release that is strict elsewhere ignores unknown fields here.
    """
    if given is not None and not isinstance(given, list):
        problems.wrong_type("extenders", "a list")
        return ()
    known = [name for name in _EXTENDER_FIELDS if not problems.lacks(name)]
    found = []
    for index, item in enumerate(given or ()):
        path = f"extenders[{index}]"
        fields = _renamed(item, known, path, problems)
        if isinstance(fields, dict):
            fields["tlsConfig"] = _renamed(fields.get("tlsConfig"), _TLS_FIELDS, f"{path}.tlsConfig", problems)
            fields["managedResources"] = _managed(fields.get("managedResources"), path, problems)
            fields["httpTimeout"] = _timeout(fields.get("httpTimeout"), path, problems)
        found.append(read_extender(Fields(fields, path, problems)))
    return tuple(found)


def _managed(given: object, path: str, problems: PolicyProblems) -> object:
    if not isinstance(given, list):
        return given
    return [
        _renamed(item, _RESOURCE_FIELDS, f"{path}.managedResources[{place}]", problems)
        for place, item in enumerate(given)
    ]


def _timeout(given: object, path: str, problems: PolicyProblems) -> str:
    """The timeout in today's notation."""
    if isinstance(given, float) and given.is_integer():
        given = int(given)
    if given is not None and (not isinstance(given, int) or isinstance(given, bool)):
        problems.wrong_type(f"{path}.httpTimeout", "an integer, of nanoseconds")
        given = None
    return f"{(given or 0) / _NANOSECONDS:.9f}s"


def _renamed(item: object, names: Iterable[str], path: str, problems: PolicyProblems) -> object:
    """An object with the known fields under today's names; unknown fields are ignored."""
    if not isinstance(item, Mapping):
        return item
    by_lower = {name.lower(): name for name in names}
    known: dict[str, object] = {}
    for name, value in item.items():
        if str(name).lower() in by_lower:
            known[by_lower[str(name).lower()]] = value
        else:
            problems.unknown_fields.append(f"{path}.{name}")
    return known


def fatal(message: str) -> ConfigError:
    """The error with which the scheduler would exit at once."""
    return ConfigError([f"fatal: {message}"])


def serving(kind: type[Plugin], own: Registry) -> set[str]:
    """The names of the user's own plugins at an extension point, which a Policy may list."""
    return {name for name, plugin in own.items() if issubclass(plugin, kind)}


def check_arguments(policy: PredicatePolicy | PriorityPolicy, what: str) -> None:
    """Check that an argument, if there is one, defines exactly one thing."""
    if policy.has_argument and policy.arguments != 1:
        title = what.capitalize()
        raise fatal(f"Exactly 1 {what} argument is required, numArgs: {policy.arguments}, {title}: {policy.name}")


def shape_problem(shape: Iterable[UtilizationShapePoint]) -> str:
    """Why a shape is not a valid scoring function; empty if it is."""
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


class _Decision(Protocol):
    @property
    def rejected(self) -> Mapping[str, Status]: ...

    def to_dict(self) -> dict[str, Any]: ...


def legacy_dict(decision: _Decision) -> dict[str, Any]:
    """The decision in the words of the old releases: `failed` has the reasons, `failed_predicates` the predicates."""
    shape = decision.to_dict()
    shape.pop("rejected", None)
    shape.pop("absent", None)
    if decision.rejected and "error" not in shape:
        shape["failed"] = {node: list(status.reasons) for node, status in decision.rejected.items()}
        shape["failed_predicates"] = {
            node: list(status.plugins) for node, status in decision.rejected.items() if status.plugins
        }
    return shape
