"""The extenders of a configuration: reading and checking them."""

from __future__ import annotations

import re
import ssl
from collections.abc import Sequence
from pathlib import Path

from podium.config.fields import SECOND, Fields, Problems
from podium.config.types import ExtenderConfig, ManagedResource, TLSConfig
from podium.model.names import extended_resource_errors

DEFAULT_TIMEOUT = 5 * SECOND

_HTTP_URL = re.compile(r"https?://[^/?#\s]", re.IGNORECASE)
_CERTIFICATE = re.compile(rb"^-----BEGIN CERTIFICATE-----\s*$", re.MULTILINE)
_PRIVATE_KEY = re.compile(rb"^-----BEGIN (\w+ )?PRIVATE KEY-----\s*$", re.MULTILINE)


def read_extender(fields: Fields) -> ExtenderConfig:
    with fields:
        tls = fields.optional_child("tlsConfig")
        return ExtenderConfig(
            url_prefix=fields.string("urlPrefix"),
            filter_verb=fields.string("filterVerb"),
            prioritize_verb=fields.string("prioritizeVerb"),
            preempt_verb=fields.string("preemptVerb"),
            bind_verb=fields.string("bindVerb"),
            weight=fields.integer("weight", bits=64),
            enable_https=fields.boolean("enableHTTPS"),
            tls_config=None if tls is None else _read_tls(tls),
            http_timeout=(fields.duration("httpTimeout") or DEFAULT_TIMEOUT) / SECOND,
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
    """Report what keeps an HTTP client from being made; certificates that nothing would use are not looked at."""
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
    # A certificate and key that both come from files are read again for each connection, and judged then.
    if has_certificate and (tls.cert_data or tls.key_data):
        if certificate is not None and not _CERTIFICATE.search(certificate):
            problems.add(f"{path}.{'certData' if tls.cert_data else 'certFile'}", "has no PEM certificate")
        if key is not None and not _PRIVATE_KEY.search(key):
            problems.add(f"{path}.{'keyData' if tls.key_data else 'keyFile'}", "has no PEM private key")


def _content(data: bytes, file: str, path: str, problems: Problems) -> bytes | None:
    """The data, else the content of the file; None when the file cannot be read."""
    if data or not file:
        return data
    try:
        return Path(file).read_bytes()
    except OSError as error:
        problems.add(path, f"cannot read {file}: {error.strerror}")
        return None


def _is_root_certificate(pem: bytes) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError):
        return False
    return True


def uncallable(extenders: Sequence[ExtenderConfig]) -> tuple[ExtenderConfig, ...]:
    """The extenders whose urlPrefix names no HTTP server. kube-scheduler accepts them, and fails at every call."""
    return tuple(extender for extender in extenders if not _HTTP_URL.match(extender.url_prefix))


def in_call_order(extenders: Sequence[ExtenderConfig]) -> tuple[ExtenderConfig, ...]:
    """The extenders whose failure is an error first, then the ignorable ones."""
    return tuple(sorted(extenders, key=lambda extender: extender.ignorable))


def ignored_resources(extenders: Sequence[ExtenderConfig]) -> tuple[str, ...]:
    """The resources that extenders count instead of NodeResourcesFit; names that are refused already are left out."""
    return tuple(
        resource.name
        for extender in extenders
        for resource in extender.managed_resources
        if resource.ignored_by_scheduler and not extended_resource_errors(resource.name)
    )
