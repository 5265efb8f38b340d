"""The TLS settings of an extender's client, as client-go makes them from the same configuration."""

from __future__ import annotations

import re
import ssl
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import httpx2

from podium.errors import ConfigError

if TYPE_CHECKING:
    from podium.config.types import ExtenderConfig, TLSConfig

_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def tls_context(config: ExtenderConfig, where: str) -> ssl.SSLContext:
    """The context to call the extender with: verified against the configured CA, or else the system's.

    As in kube-scheduler, `enableHTTPS` without a CA means that the server is not verified; to have an https URL
    verified by the system's CAs, leave `enableHTTPS` out. Half a client certificate is no client certificate.
    """
    tls = config.tls_config
    has_ca = tls is not None and bool(tls.ca_data or tls.ca_file)
    insecure = (tls is not None and tls.insecure) or (config.enable_https and not has_ca)
    if has_ca and insecure:
        raise ConfigError(["tlsConfig.insecure cannot be combined with a CA: remove one of them"], where)
    has_certificate = tls is not None and bool((tls.cert_data or tls.cert_file) and (tls.key_data or tls.key_file))
    if tls is not None and has_ca:
        context = _trusting(tls, where)
    elif insecure:
        context = httpx2.create_ssl_context(verify=False)
    else:
        # The shared context must not show this extender's certificate to others.
        context = httpx2.create_ssl_context() if has_certificate else _system_context()
    if tls is not None and has_certificate:
        _load_client_certificate(context, tls, where)
    return context


@cache
def _system_context() -> ssl.SSLContext:
    """Trusts the system's CAs. Reading them takes tens of milliseconds, so it is done once."""
    return httpx2.create_ssl_context()


def _trusting(tls: TLSConfig, where: str) -> ssl.SSLContext:
    """A context that trusts the configured CA alone, and reads certificates the way Go does."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    # Go takes any certificate in the pool as an anchor, and never reads the host from the subject.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.hostname_checks_common_name = False
    pem = b"\n".join(_CERTIFICATE.findall(_data_or_file(tls.ca_data, tls.ca_file, "tlsConfig.caFile", where)))
    try:
        context.load_verify_locations(cadata=pem.decode("ascii"))
    except (ssl.SSLError, ValueError):
        raise ConfigError(["tlsConfig: the CA has no usable PEM certificate"], where) from None
    return context


def _load_client_certificate(context: ssl.SSLContext, tls: TLSConfig, where: str) -> None:
    certificate = _data_or_file(tls.cert_data, tls.cert_file, "tlsConfig.certFile", where)
    key = _data_or_file(tls.key_data, tls.key_file, "tlsConfig.keyFile", where)
    # OpenSSL reads client certificates from files only: these live for the length of the call, in a private directory.
    with tempfile.TemporaryDirectory(prefix="podium-") as directory:
        certificate_file, key_file = Path(directory, "tls.crt"), Path(directory, "tls.key")
        certificate_file.write_bytes(certificate)
        key_file.write_bytes(key)
        try:
            # A password, though empty, keeps OpenSSL from asking the terminal for one.
            context.load_cert_chain(certificate_file, key_file, password="")
        except (ssl.SSLError, ValueError):
            raise ConfigError(
                ["tlsConfig: the client certificate and key are not a matching, unencrypted PEM pair"], where
            ) from None


def _data_or_file(data: bytes, file: str, field: str, where: str) -> bytes:
    if data:
        return data
    try:
        return Path(file).read_bytes()
    except OSError as error:
        raise ConfigError([f"{field} {file!r} cannot be read: {error.strerror}"], where) from None
