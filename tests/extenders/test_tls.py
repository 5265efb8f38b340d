"""Who is trusted, who is refused, and which settings kube-scheduler would not start with.

`tls/extender.crt` is self-signed, for the name extender.test alone; the tests use it as server, as client and as CA.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from podium.config.types import TLSConfig
from podium.errors import ConfigError, ExtenderError
from podium.extenders import Extender, FilterResult
from podium.extenders.transport import tls_context
from podium.model import Pod

from .loopback import Loopback

CRT = str(Path(__file__).parent / "tls" / "extender.crt")
KEY = str(Path(__file__).parent / "tls" / "extender.key")
CRT_DATA = Path(CRT).read_bytes()
KEY_DATA = Path(KEY).read_bytes()
NAME = "extender.test"


def serve(*, client_ca: bool = False) -> Iterator[Loopback]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(CRT, KEY)
    if client_ca:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(CRT)
    server = Loopback(context)
    server.answer("filter", {"NodeNames": []})
    yield server
    server.close()


@pytest.fixture(scope="module")
def server() -> Iterator[Loopback]:
    yield from serve()


@pytest.fixture(scope="module")
def mutual_server() -> Iterator[Loopback]:
    """Lets in only who shows the certificate."""
    yield from serve(client_ca=True)


def call(server: Loopback, tls: TLSConfig | None, **settings: Any) -> FilterResult:
    with Extender(server.config(tls_config=tls, **settings)) as extender:
        return extender.filter(Pod(), [])


TRUSTED: dict[str, tuple[TLSConfig | None, bool]] = {
    "CA file": (TLSConfig(ca_file=CRT, server_name=NAME), True),
    "CA data": (TLSConfig(ca_data=CRT_DATA, server_name=NAME), True),
    "CA data wins over the file": (TLSConfig(ca_data=CRT_DATA, ca_file="/nowhere", server_name=NAME), True),
    "CA among other text": (TLSConfig(ca_data="# für alle\n".encode() + CRT_DATA, server_name=NAME), True),
    "CA, though HTTPS is not enabled": (TLSConfig(ca_file=CRT, server_name=NAME), False),
    "insecure": (TLSConfig(insecure=True), True),
    "insecure, though HTTPS is not enabled": (TLSConfig(insecure=True), False),
    "HTTPS enabled with no CA is insecure": (None, True),
    "HTTPS enabled with no CA but a name is insecure": (TLSConfig(server_name="other.test"), True),
}


@pytest.mark.parametrize(("tls", "enable_https"), TRUSTED.values(), ids=TRUSTED)
def test_trusted(server: Loopback, tls: TLSConfig | None, enable_https: bool) -> None:
    assert call(server, tls, enable_https=enable_https, node_cache_capable=True) == FilterResult([])


REFUSED: dict[str, tuple[TLSConfig | None, bool]] = {
    "an https URL alone is verified": (None, False),
    "the system does not know the CA": (TLSConfig(server_name=NAME), False),
    "the CA is right but the name is not": (TLSConfig(ca_file=CRT), True),
    "the CA is right but the given name is not": (TLSConfig(ca_file=CRT, server_name="other.test"), True),
}


@pytest.mark.parametrize(("tls", "enable_https"), REFUSED.values(), ids=REFUSED)
def test_refused(server: Loopback, tls: TLSConfig | None, enable_https: bool) -> None:
    with pytest.raises(ExtenderError, match=r"filter: cannot connect: .*certificate verify failed"):
        call(server, tls, enable_https=enable_https)


CLIENTS: dict[str, TLSConfig] = {
    "files": TLSConfig(ca_file=CRT, server_name=NAME, cert_file=CRT, key_file=KEY),
    "data": TLSConfig(ca_file=CRT, server_name=NAME, cert_data=CRT_DATA, key_data=KEY_DATA),
    "one of each": TLSConfig(ca_file=CRT, server_name=NAME, cert_file=CRT, key_data=KEY_DATA),
}


@pytest.mark.parametrize("tls", CLIENTS.values(), ids=CLIENTS)
def test_client_certificate(mutual_server: Loopback, tls: TLSConfig) -> None:
    assert call(mutual_server, tls, node_cache_capable=True) == FilterResult([])


@pytest.mark.parametrize("half", [{}, {"cert_file": CRT}, {"key_data": KEY_DATA}], ids=["none", "no key", "no cert"])
def test_without_a_whole_client_certificate(mutual_server: Loopback, half: dict[str, Any]) -> None:
    with pytest.raises(ExtenderError, match="filter: "):
        call(mutual_server, TLSConfig(ca_file=CRT, server_name=NAME, **half))


def test_extenders_share_the_system_trust_but_not_certificates(server: Loopback) -> None:
    plain = tls_context(server.config(), "a")
    certified = tls_context(server.config(tls_config=TLSConfig(cert_file=CRT, key_file=KEY)), "b")
    assert plain is tls_context(server.config(tls_config=TLSConfig(server_name=NAME)), "c")
    assert certified is not plain
    assert all(context.verify_mode is ssl.CERT_REQUIRED and context.check_hostname for context in (plain, certified))


UNUSABLE: dict[str, tuple[TLSConfig, str]] = {
    "CA and insecure": (
        TLSConfig(ca_file=CRT, insecure=True),
        "tlsConfig.insecure cannot be combined with a CA: remove one of them",
    ),
    "missing CA": (
        TLSConfig(ca_file="/nowhere/ca.crt"),
        "tlsConfig.caFile '/nowhere/ca.crt' cannot be read: No such file or directory",
    ),
    "CA without a certificate": (TLSConfig(ca_data=KEY_DATA), "tlsConfig: the CA has no usable PEM certificate"),
    "broken CA": (
        TLSConfig(ca_data=CRT_DATA.replace(b"MII", b"XXX")),
        "tlsConfig: the CA has no usable PEM certificate",
    ),
    "missing key": (
        TLSConfig(insecure=True, cert_file=CRT, key_file="/nowhere/tls.key"),
        "tlsConfig.keyFile '/nowhere/tls.key' cannot be read: No such file or directory",
    ),
    "key that is none": (
        TLSConfig(insecure=True, cert_data=CRT_DATA, key_data=b"s3cret"),
        "tlsConfig: the client certificate and key are not a matching, unencrypted PEM pair",
    ),
}


@pytest.mark.parametrize(("tls", "message"), UNUSABLE.values(), ids=UNUSABLE)
def test_unusable_settings(server: Loopback, tls: TLSConfig, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Extender(server.config(tls_config=tls))
    assert str(caught.value) == f"extender {server.url}: {message}"


def test_the_key_is_nowhere_to_be_seen(server: Loopback) -> None:
    tls = TLSConfig(ca_file=CRT, cert_data=CRT_DATA, key_data=KEY_DATA)
    secret = KEY_DATA.splitlines()[1].decode()
    with Extender(server.config(tls_config=tls)) as extender:
        with pytest.raises(ExtenderError) as caught:
            extender.filter(Pod(), [])
        assert secret not in repr(extender)
        assert secret not in repr(caught.value)
