"""From a KubeSchedulerConfiguration document to what kube-scheduler would run with, or every reason against it."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from podium.config.extenders import check_extenders, ignored_resources, in_call_order, read_extender
from podium.config.fields import SECOND, Fields, Problems
from podium.config.plugin_sets import API_VERSIONS, V1, V1BETA2
from podium.config.profiles import build_profiles, check_percentage, check_profiles, ignore_in_fit, read_profiles
from podium.config.types import ClientConnection, KnownPlugins, KubeSchedulerConfiguration, LeaderElection, Profile
from podium.errors import ConfigError
from podium.rules import NEWEST_RULES, Rules


def read_component(fields: Fields, api_version: str, problems: Problems) -> tuple[ClientConnection, LeaderElection]:
    """Take the fields of the process from `fields`, and report in `problems` the values that are refused."""
    election = _read_leader_election(fields.child("leaderElection"), problems)
    connection = _read_client_connection(fields.child("clientConnection"), problems)
    fields.optional_boolean("enableProfiling")
    fields.optional_boolean("enableContentionProfiling")
    if api_version == V1:
        fields.boolean("delayCacheUntilActive")
    if api_version == V1BETA2:
        fields.optional_string("healthzBindAddress")
        fields.optional_string("metricsBindAddress")
    return connection, election


def _read_client_connection(fields: Fields, problems: Problems) -> ClientConnection:
    usual = ClientConnection()
    with fields:
        kubeconfig = fields.string("kubeconfig")
        for name in ("acceptContentTypes", "contentType"):
            fields.string(name)
        qps = fields.number("qps")
        burst = fields.integer("burst")
        if burst < 0:
            problems.invalid(f"{fields.path}.burst", burst, "must be non-negative")
    return ClientConnection(kubeconfig, qps or usual.qps, burst or usual.burst)


def _read_leader_election(fields: Fields, problems: Problems) -> LeaderElection:
    with fields:
        elect = fields.optional_boolean("leaderElect")
        durations = {
            "leaseDuration": fields.duration("leaseDuration") or 15 * SECOND,
            "renewDeadline": fields.duration("renewDeadline") or 10 * SECOND,
            "retryPeriod": fields.duration("retryPeriod") or 2 * SECOND,
        }
        lock = fields.string("resourceLock") or "leases"
        name, namespace = fields.string("resourceName"), fields.string("resourceNamespace")
    lease, renew, retry = (each / SECOND for each in durations.values())
    election = LeaderElection(elect is not False, lease, renew, retry, name, namespace)
    if elect is False:
        return election
    for field, duration in durations.items():
        if duration <= 0:
            problems.add(f"{fields.path}.{field}", "must be greater than zero")
    if durations["leaseDuration"] <= durations["renewDeadline"]:
        problems.add(f"{fields.path}.leaseDuration", "must be greater than renewDeadline")
    if lock != "leases":
        problems.invalid(f"{fields.path}.resourceLock", lock, 'must be "leases"')
    return election


STORAGE_PLUGINS = frozenset(
    {
        *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
        # What older releases call them.
        *("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"),
        *("CheckVolumeBinding", "NoDiskConflict", "NoVolumeNodeConflict", "NoVolumeZoneConflict"),
        *("MaxAzureDiskVolumeCount", "MaxCSIVolumeCountPred", "MaxCinderVolumeCount"),
        *("MaxEBSVolumeCount", "MaxGCEPDVolumeCount"),
    }
)
"""The plugins that look at volumes and claims, of all releases."""


def ignoring(config: KubeSchedulerConfiguration, plugins: Collection[str]) -> KubeSchedulerConfiguration:
    """The configuration with these plugins at no extension point of any profile."""
    return replace(config, profiles=tuple(_without(profile, plugins) for profile in config.profiles))


def _without(profile: Profile, plugins: Collection[str]) -> Profile:
    points = {point: tuple(ref for ref in refs if ref.name not in plugins) for point, refs in profile.points.items()}
    return replace(profile, points=points)


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
        connection, election = read_component(fields, api_version, values)
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
        client_connection=connection,
        leader_election=election,
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
