"""Parses a KubeSchedulerConfiguration into the configuration kube-scheduler would run, or reports every error in it."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from podium.config.extender_calls import is_http
from podium.config.fields import SECOND, Fields, Problems
from podium.config.profiles import (
    API_VERSIONS,
    V1,
    V1BETA2,
    build_profiles,
    check_percentage,
    check_profiles,
    ignore_in_fit,
    read_profiles,
)
from podium.config.types import (
    DEFAULT_EXTENDER_TIMEOUT,
    ClientConnection,
    ExtenderConfig,
    KnownPlugins,
    KubeSchedulerConfiguration,
    LeaderElection,
    ManagedResource,
    Profile,
    TLSConfig,
)
from podium.errors import ConfigError, InputError
from podium.input_files import read_input
from podium.model.meta import extended_resource_errors
from podium.rules import Rules

_CERTIFICATE = re.compile(rb"^-----BEGIN CERTIFICATE-----\s*$", re.MULTILINE)
_PRIVATE_KEY = re.compile(rb"^-----BEGIN (\w+ )?PRIVATE KEY-----\s*$", re.MULTILINE)


def read_extender(fields: Fields) -> ExtenderConfig:
    with fields:
        tls = fields.optional_child("tlsConfig")
        timeout = fields.duration("httpTimeout")
        if timeout < 0:
            fields.problems.invalid(f"{fields.path}.httpTimeout", f"{timeout / SECOND:g}s", "must not be negative")
        return ExtenderConfig(
            url_prefix=fields.string("urlPrefix"),
            filter_verb=fields.string("filterVerb"),
            prioritize_verb=fields.string("prioritizeVerb"),
            preempt_verb=fields.string("preemptVerb"),
            bind_verb=fields.string("bindVerb"),
            weight=fields.integer("weight", bits=64),
            enable_https=fields.boolean("enableHTTPS"),
            tls_config=None if tls is None else _read_tls(tls),
            http_timeout=timeout / SECOND if timeout else DEFAULT_EXTENDER_TIMEOUT,
            node_cache_capable=fields.boolean("nodeCacheCapable"),
            managed_resources=tuple(_read_managed_resource(item) for item in fields.children("managedResources")),
            ignorable=fields.boolean("ignorable"),
        )


def _read_managed_resource(fields: Fields) -> ManagedResource:
    with fields:
        return ManagedResource(fields.string("name"), fields.boolean("ignoredByScheduler"))


def _read_tls(fields: Fields) -> TLSConfig:
    with fields:
        return TLSConfig(
            insecure=fields.boolean("insecure"),
            server_name=fields.string("serverName"),
            cert_file=fields.string("certFile"),
            key_file=fields.string("keyFile"),
            ca_file=fields.string("caFile"),
            cert_data=fields.base64("certData"),
            key_data=fields.base64("keyData"),
            ca_data=fields.base64("caData"),
        )


def check_extenders(extenders: Sequence[ExtenderConfig], problems: Problems) -> None:
    managed: set[str] = set()
    for index, extender in enumerate(extenders):
        path = f"extenders[{index}]"
        if extender.prioritize_verb and extender.weight <= 0:
            problems.invalid(f"{path}.weight", extender.weight, "an extender that prioritizes needs a positive weight")
        for position, resource in enumerate(extender.managed_resources):
            name_path = f"{path}.managedResources[{position}].name"
            for error in extended_resource_errors(resource.name):
                problems.invalid(name_path, resource.name, error)
            if resource.name in managed:
                problems.invalid(name_path, resource.name, "is managed by an extender already")
            managed.add(resource.name)
        if extender.tls_config is not None:
            _check_tls(extender.tls_config, extender.enable_https, f"{path}.tlsConfig", problems)
    binders = sum(1 for extender in extenders if extender.bind_verb)
    if binders > 1:
        problems.invalid("extenders", f"{binders} extenders with a bindVerb", "only one extender can bind")


def _check_tls(tls: TLSConfig, enable_https: bool, path: str, problems: Problems) -> None:
    """Report what prevents an HTTP client from being created; unused certificates are not checked."""
    has_ca = bool(tls.ca_data or tls.ca_file)
    has_certificate = bool((tls.cert_data or tls.cert_file) and (tls.key_data or tls.key_file))
    insecure = tls.insecure or (enable_https and not has_ca)
    if not (has_ca or has_certificate or insecure or tls.server_name):
        return
    if has_ca and insecure:
        problems.invalid(f"{path}.insecure", True, "cannot be set together with a root certificate")
    ca = _content(tls.ca_data, tls.ca_file, f"{path}.caFile", problems)
    certificate = _content(tls.cert_data, tls.cert_file, f"{path}.certFile", problems)
    key = _content(tls.key_data, tls.key_file, f"{path}.keyFile", problems)
    if ca and not _is_root_certificate(ca):
        problems.add(f"{path}.{'caData' if tls.ca_data else 'caFile'}", "has no valid PEM certificate")
    # A certificate and key that both come from files are read again for each connection, and checked then.
    if has_certificate and (tls.cert_data or tls.key_data):
        if certificate is not None and not _CERTIFICATE.search(certificate):
            problems.add(f"{path}.{'certData' if tls.cert_data else 'certFile'}", "has no PEM certificate")
        if key is not None and not _PRIVATE_KEY.search(key):
            problems.add(f"{path}.{'keyData' if tls.key_data else 'keyFile'}", "has no PEM private key")


def _content(data: bytes, file: str, path: str, problems: Problems) -> bytes | None:
    """The data, else the content of the file; None if the file cannot be read."""
    if data or not file:
        return data
    try:
        return read_input(file)
    except InputError as error:
        problems.add(path, f"cannot read {error}")
        return None
    except OSError as error:
        problems.add(path, f"cannot read {file}: {error.strerror}")
        return None


def _is_root_certificate(pem: bytes) -> bool:
    import ssl  # takes a while to load, and few configurations have certificates

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError):
        return False
    return True


def uncallable(extenders: Sequence[ExtenderConfig]) -> tuple[ExtenderConfig, ...]:
    """The extenders whose urlPrefix names no HTTP server. kube-scheduler accepts them, but every call fails."""
    return tuple(extender for extender in extenders if not is_http(extender.url_prefix))


def in_call_order(extenders: Sequence[ExtenderConfig]) -> tuple[ExtenderConfig, ...]:
    """The extenders in the order of calls: those whose failure is an error first, then the ignorable ones."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def ignored_resources(extenders: Sequence[ExtenderConfig]) -> tuple[str, ...]:
    """The resources that extenders count instead of NodeResourcesFit; invalid names are left out."""
    return tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler and not extended_resource_errors(resource.name)
    )


def read_component(fields: Fields, api_version: str, problems: Problems) -> tuple[ClientConnection, LeaderElection]:
    """Read the fields of the process from `fields`, and report refused values in `problems`."""
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
        # Their names in older releases.
        *("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"),
        *("CheckVolumeBinding", "NoDiskConflict", "NoVolumeNodeConflict", "NoVolumeZoneConflict"),
        *("MaxAzureDiskVolumeCount", "MaxCSIVolumeCountPred", "MaxCinderVolumeCount"),
        *("MaxEBSVolumeCount", "MaxGCEPDVolumeCount"),
    }
)
"""The plugins of all releases that read volumes and claims."""


def ignoring(config: KubeSchedulerConfiguration, plugins: Collection[str]) -> KubeSchedulerConfiguration:
    """The configuration without these plugins at any extension point of any profile."""
    return replace(config, profiles=tuple(_without(profile, plugins) for profile in config.profiles))


def without_post_filter(config: KubeSchedulerConfiguration) -> KubeSchedulerConfiguration:
    """The configuration without PostFilter plugins: nothing is done for a pod that fits nowhere, so none is evicted."""
    profiles = (replace(profile, points={**profile.points, POST_FILTER: ()}) for profile in config.profiles)
    return replace(config, profiles=tuple(profiles))


def _without(profile: Profile, plugins: Collection[str]) -> Profile:
    points = {point: tuple(ref for ref in refs if ref.name not in plugins) for point, refs in profile.points.items()}
    return replace(profile, points=points)


KIND = "KubeSchedulerConfiguration"
POST_FILTER = "postFilter"


def default_config(known_plugins: KnownPlugins, rules: Rules) -> KubeSchedulerConfiguration:
    """The configuration that kube-scheduler runs with if it is given none; see `parse_config` about `known_plugins`."""
    return parse_config({"apiVersion": V1, "kind": KIND}, known_plugins, rules=rules)


def parse_config(
    document: object, known_plugins: KnownPlugins, where: str = "", *, rules: Rules
) -> KubeSchedulerConfiguration:
    """Read, default and validate a configuration of version v1, v1beta3 or v1beta2 as a release does.

    `known_plugins` are the available plugins and the extension points they implement. A plugin that the document
    enables must be one of them; a default plugin that is not is left out. Raises `ConfigError` with all problems: first
    those of fields and types, and if there are none those of values.
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


def outdated_version(document: Mapping[str, Any]) -> list[str]:
    """The warning for a configuration in a version that Podium reads, but no release since v1.29 does."""
    version = document.get("apiVersion")
    return [] if version == V1 else [f"apiVersion: no release since v1.29 reads {version}: write {V1}"]


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
