"""From a KubeSchedulerConfiguration document to what kube-scheduler would run with, or every reason against it."""

from __future__ import annotations

from podium.config.component import read_component
from podium.config.default_plugins import API_VERSIONS, V1
from podium.config.extenders import check_extenders, ignored_resources, in_call_order, read_extender
from podium.config.fields import Fields, Problems
from podium.config.profiles import build_profiles, check_percentage, check_profiles, ignore_in_fit, read_profiles
from podium.config.types import KnownPlugins, KubeSchedulerConfiguration
from podium.errors import ConfigError
from podium.rules import NEWEST_RULES, Rules

KIND = "KubeSchedulerConfiguration"


def default_config(known_plugins: KnownPlugins, rules: Rules = NEWEST_RULES) -> KubeSchedulerConfiguration:
    """What kube-scheduler runs with when it is told nothing; see `parse_config` about `known_plugins`."""
    return parse_config({"apiVersion": V1, "kind": KIND}, known_plugins, rules=rules)


def parse_config(
    document: object, known_plugins: KnownPlugins, where: str = "", *, rules: Rules = NEWEST_RULES
) -> KubeSchedulerConfiguration:
    """Read, default and validate a configuration of version v1, v1beta3 or v1beta2 as a release does.

    `known_plugins` says which plugins there are and what they implement. A plugin that the document enables has to be
    one of them; a default plugin that is not one of them is left out. Raises `ConfigError` with all problems: first
    those of fields and types, and when there are none those of values.
    """
    api_version = _api_version(document, where)
    shape, values = Problems(), Problems()
    with Fields(document, "", shape) as fields:
        fields.take("apiVersion")
        fields.take("kind")
        parallelism = fields.integer("parallelism", 16)
        percentage = fields.integer("percentageOfNodesToScore", 0)
        initial_backoff = fields.integer("podInitialBackoffSeconds", 1, bits=64)
        max_backoff = fields.integer("podMaxBackoffSeconds", 10, bits=64)
        read_component(fields, api_version, values)
        profiles = read_profiles(fields.children("profiles"), api_version, known_plugins, rules)
        extenders = [read_extender(item) for item in fields.children("extenders")]
    _raise_any(shape, where)

    if parallelism <= 0:
        values.invalid("parallelism", parallelism, "should be an integer value greater than zero")
    check_percentage(percentage, "percentageOfNodesToScore", values)
    if initial_backoff <= 0:
        values.invalid("podInitialBackoffSeconds", initial_backoff, "must be greater than 0")
    if max_backoff < initial_backoff:
        values.invalid("podMaxBackoffSeconds", max_backoff, "must not be less than podInitialBackoffSeconds")
    check_profiles(profiles, api_version, values, rules)
    check_extenders(extenders, values)
    profiles = ignore_in_fit(profiles, ignored_resources(extenders), values)
    built = build_profiles(profiles, known_plugins, values, rules)
    _raise_any(values, where)
    return KubeSchedulerConfiguration(
        profiles=built,
        percentage_of_nodes_to_score=percentage,
        parallelism=parallelism,
        pod_initial_backoff_seconds=initial_backoff,
        pod_max_backoff_seconds=max_backoff,
        extenders=in_call_order(extenders),
    )


def _api_version(document: object, where: str) -> str:
    if not isinstance(document, dict):
        raise ConfigError([f"must be an object of kind {KIND}"], where)
    problems = Problems()
    api_version = document.get("apiVersion")
    if not isinstance(api_version, str) or api_version not in API_VERSIONS:
        problems.unsupported("apiVersion", api_version, API_VERSIONS)
    if document.get("kind") != KIND:
        problems.unsupported("kind", document.get("kind"), (KIND,))
    _raise_any(problems, where)
    return str(api_version)


def _raise_any(problems: Problems, where: str) -> None:
    if problems.errors:
        raise ConfigError(list(dict.fromkeys(problems.errors)), where)
