"""One HTTP client per extender: posts a body, returns the body of a 200, raises ExtenderError otherwise."""

from __future__ import annotations

import ipaddress
import re
import ssl
import tempfile
import time
from functools import cache
from http.cookiejar import CookieJar, DefaultCookiePolicy
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import httpx2

from podium.config.extender_calls import password_of, public_url
from podium.config.types import DEFAULT_EXTENDER_TIMEOUT
from podium.errors import ConfigError, ExtenderError, InputError
from podium.input_files import read_input
from podium.wording import one_line

if TYPE_CHECKING:
    from podium.config.types import ExtenderConfig, TLSConfig


_CERTIFICATE = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)


def tls_context(config: ExtenderConfig, where: str) -> ssl.SSLContext:
    """The TLS context for calls to the extender: verified against the configured CA, or else the system's.

    As in kube-scheduler, `enableHTTPS` without a CA means that the server is not verified; to verify an https URL by
    the system's CAs, leave out `enableHTTPS`. A client certificate without its key, or a key without its certificate,
    is ignored.
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
    # Go accepts any certificate in the pool as an anchor, and never reads the host from the subject.
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
        return read_input(file)
    except InputError as error:
        raise ConfigError([f"{field} {error}"], where) from None
    except OSError as error:
        raise ConfigError([f"{field} {file!r} cannot be read: {error.strerror}"], where) from None


MAX_BODY = 64 << 20
"""The maximum size of an answer in bytes."""

_IDLE_SECONDS = 90.0
_MAX_REDIRECTS = 10


class Transport:
    """Posts to one extender. The timeout covers the whole call, from connecting to the last byte."""

    def __init__(self, config: ExtenderConfig, name: str) -> None:
        self._name = name
        self._prefix = config.url_prefix.rstrip("/")
        self._secrets = _userinfo(config.url_prefix)
        # As in Go: zero means the default, less than zero means no limit.
        timeout = config.http_timeout or DEFAULT_EXTENDER_TIMEOUT
        self._timeout = timeout if timeout > 0 else None
        server_name = config.tls_config.server_name if config.tls_config is not None else ""
        self._extensions: dict[str, Any] = {"sni_hostname": server_name} if server_name else {}
        self._client = httpx2.Client(
            verify=tls_context(config, where=f"extender {name}"),
            timeout=self._timeout,
            headers={"Content-Type": "application/json", "User-Agent": "podium"},
            cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
            follow_redirects=True,
            event_hooks={"response": [self._check_redirect]},
            max_redirects=_MAX_REDIRECTS,
            limits=httpx2.Limits(keepalive_expiry=_IDLE_SECONDS),
            trust_env=not _is_loopback(config.url_prefix),
        )

    def post(self, verb: str, body: bytes) -> bytes:
        """The answer to `POST <urlPrefix>/<verb>`."""
        if self._client.is_closed:
            raise ExtenderError(self._name, f"{verb}: the extender was closed")
        try:
            return self._exchange(verb, body)
        except httpx2.TimeoutException as error:
            raise self._late(verb) from error
        except httpx2.ConnectError as error:
            raise self.error(verb, f"cannot connect: {error}") from error
        except httpx2.RequestError as error:
            raise self.error(verb, str(error) or type(error).__name__) from error
        except httpx2.InvalidURL:
            # Its message may quote the part of the URL that holds a password.
            raise self.error(verb, "urlPrefix is not a valid URL") from None

    def close(self) -> None:
        self._client.close()

    def _exchange(self, verb: str, body: bytes) -> bytes:
        deadline = None if self._timeout is None else time.monotonic() + self._timeout
        url = f"{self._prefix}/{verb}"
        received = bytearray()
        with self._client.stream("POST", url, content=body, extensions=self._extensions) as response:
            for chunk in response.iter_bytes():
                received += chunk
                if len(received) > MAX_BODY:
                    raise self.error(verb, f"answers with more than {MAX_BODY >> 20} MiB")
                # The client's own limit is per read: a server that sends slowly would never reach it.
                if deadline is not None and time.monotonic() > deadline:
                    raise self._late(verb)
                if response.status_code != httpx2.codes.OK:
                    break
        if response.status_code != httpx2.codes.OK:
            said = one_line(received.decode("utf-8", "replace"), 120)
            raise self.error(verb, f"answered {response.status_code}" + (f": {said}" if said else ""))
        return bytes(received)

    def _check_redirect(self, response: httpx2.Response) -> None:
        """Refuse a redirect to another server: the user named this one, and the body holds whole pods and nodes."""
        if not response.has_redirect_location:
            return
        here, there = response.url, response.url.join(response.headers["location"])
        is_upgrade = (here.scheme, there.scheme, here.port, there.port) == ("http", "https", None, None)
        if here.host != there.host or not (is_upgrade or (here.scheme, here.port) == (there.scheme, there.port)):
            verb = here.path.rpartition("/")[2]
            raise self.error(verb, f"redirects to another server, {public_url(str(there))}, which is not called")

    def _late(self, verb: str) -> ExtenderError:
        return ExtenderError(self._name, f"{verb}: no answer within {self._timeout:g} s")

    def error(self, verb: str, message: str) -> ExtenderError:
        """The error to raise for a call that failed, on one line and without the URL's password."""
        for secret in self._secrets:
            message = message.replace(secret, "***")
        return ExtenderError(self._name, f"{verb}: {one_line(message, 300)}")


def _userinfo(url: str) -> tuple[str, ...]:
    """The password in the URL, as written and as sent; empty if there is none."""
    password = password_of(url)
    return tuple(dict.fromkeys((password, unquote(password)))) if password else ()


def _is_loopback(url: str) -> bool:
    """Whether the URL names this machine: Go never sends these calls through a proxy, whatever the environment says."""
    try:
        host = httpx2.URL(url).host
    except httpx2.InvalidURL:
        return False
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
