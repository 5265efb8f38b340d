"""Extenders in the configuration: types, defaults, limits, and what they take from NodeResourcesFit."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from podium.config import ExtenderConfig, ManagedResource, NodeResourcesFitArgs, TLSConfig

from .documents import document, errors_of, off, parsed, paths_of, the_profile

ROOT_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBjTCCATOgAwIBAgIUEFWCg229+5s5E3RI2iexHXNAzGEwCgYIKoZIzj0EAwIw
GzEZMBcGA1UEAwwQcG9kaXVtIHRlc3Qgcm9vdDAgFw0yNjExMTUyMDQzMTZaGA8y
MTI2MTAyMjIwNDMxNlowGzEZMBcGA1UEAwwQcG9kaXVtIHRlc3Qgcm9vdDBZMBMG
ByqGSM49AgEGCCqGSM49AwEHA0IABAcVpqh4LN3UmDLbdKdhb4ODN91MVsa1cTap
Vk9XC7P1u/ThMVpAHNn8D4kqVVkJitcCoUAdGkz4YP3kL+siZ3qjUzBRMB0GA1Ud
DgQWBBRZ5dwpwkbOOFK+OVflxnAn7NLtEDAfBgNVHSMEGDAWgBRZ5dwpwkbOOFK+
OVflxnAn7NLtEDAPBgNVHRMBAf8EBTADAQH/MAoGCCqGSM49BAMCA0gAMEUCIEx/
khqVkPXfzvbPKDv4ov00mpxSJCHA54Ki+5oHBa4BAiEA9I68j42UEkC/KWq4y1XQ
xm7XfYhsuWYL5Dgq8XZzMIg=
-----END CERTIFICATE-----
"""
KEY = "-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"


def data(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def extenders(*items: dict[str, object], profiles: object = None) -> dict[str, object]:
    return document(extenders=list(items), profiles=profiles)


def managed(name: str, ignored: bool = True) -> dict[str, object]:
    return {"managedResources": [{"name": name, "ignoredByScheduler": ignored}]}


def tls(https: bool = True, /, **fields: object) -> dict[str, object]:
    return extenders({"urlPrefix": "https://x", "enableHTTPS": https, "tlsConfig": fields})


def test_an_extender_has_defaults() -> None:
    (extender,) = parsed(extenders({"urlPrefix": "http://x", "filterVerb": "filter"})).extenders
    assert extender == ExtenderConfig(url_prefix="http://x", filter_verb="filter", http_timeout=5.0)


def test_an_extender_in_full() -> None:
    config = extenders(
        {
            "urlPrefix": "http://x",
            "filterVerb": "f",
            "prioritizeVerb": "p",
            "preemptVerb": "e",
            "bindVerb": "b",
            "weight": 3,
            "enableHTTPS": True,
            "tlsConfig": {"serverName": "s"},
            "httpTimeout": "100ms",
            "nodeCacheCapable": True,
            "managedResources": [{"name": "a.com/b"}, {"name": "a.com/c", "ignoredByScheduler": True}],
            "ignorable": True,
        }
    )
    assert parsed(config).extenders == (
        ExtenderConfig(
            url_prefix="http://x",
            filter_verb="f",
            prioritize_verb="p",
            preempt_verb="e",
            bind_verb="b",
            weight=3,
            enable_https=True,
            tls_config=TLSConfig(server_name="s"),
            http_timeout=0.1,
            node_cache_capable=True,
            managed_resources=(ManagedResource("a.com/b", False), ManagedResource("a.com/c", True)),
            ignorable=True,
        ),
    )


@pytest.mark.parametrize(("text", "seconds"), [("0s", 5.0), ("1m30s", 90.0)])
def test_timeouts(text: str, seconds: float) -> None:
    (extender,) = parsed(extenders({"httpTimeout": text})).extenders
    assert extender.http_timeout == seconds


def test_ignorable_extenders_are_called_last() -> None:
    config = extenders({"urlPrefix": "a", "ignorable": True}, {"urlPrefix": "b"}, {"urlPrefix": "c"})
    assert [extender.url_prefix for extender in parsed(config).extenders] == ["b", "c", "a"]


@pytest.mark.parametrize(
    ("items", "path"),
    [
        ([{"prioritizeVerb": "p"}], "extenders[0].weight"),
        ([{"urlPrefix": "a", "httpTimeout": "-1s"}], "extenders[0].httpTimeout"),
        ([{"prioritizeVerb": "p", "weight": -1}], "extenders[0].weight"),
        ([{"bindVerb": "b"}, {"bindVerb": "b"}], "extenders"),
        ([managed("cpu")], "extenders[0].managedResources[0].name"),
        ([managed("a b/c")], "extenders[0].managedResources[0].name"),
        ([managed("a.com/b"), managed("a.com/b")], "extenders[1].managedResources[0].name"),
    ],
)
def test_refused_extenders(items: list[dict[str, object]], path: str) -> None:
    assert paths_of(extenders(*items)) == [path]


def test_only_prioritizing_needs_a_weight() -> None:
    assert parsed(extenders({"filterVerb": "f", "weight": -1}))


def test_fit_ignores_what_extenders_count_in_every_profile() -> None:
    told = [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["a.com/own"]}}]
    profiles = [{"schedulerName": "a", "pluginConfig": told}, {"schedulerName": "b"}]
    config = parsed(extenders(managed("a.com/b"), managed("a.com/c", ignored=False), profiles=profiles))
    expected = NodeResourcesFitArgs(ignored_resources=("a.com/b",))
    assert [profile.args["NodeResourcesFit"] for profile in config.profiles] == [expected, expected]


def test_fit_keeps_what_it_was_told_to_ignore_when_extenders_say_nothing() -> None:
    told = [{"name": "NodeResourcesFit", "args": {"ignoredResources": ["a.com/own"]}}]
    profile = the_profile(extenders(managed("a.com/b", ignored=False), profiles=[{"pluginConfig": told}]))
    assert profile.args["NodeResourcesFit"] == NodeResourcesFitArgs(ignored_resources=("a.com/own",))


def test_resources_cannot_be_ignored_without_fit() -> None:
    profiles = [{"plugins": {"multiPoint": off("NodeResourcesFit")}}]
    assert paths_of(extenders(managed("a.com/b"), profiles=profiles)) == ["profiles[0]"]
    assert parsed(extenders(managed("a.com/b", ignored=False), profiles=profiles))


def test_tls_in_full() -> None:
    config = tls(certData=data(ROOT_CERTIFICATE), keyData=data(KEY), caData=data(ROOT_CERTIFICATE), serverName="x")
    (extender,) = parsed(config).extenders
    assert extender.tls_config == TLSConfig(
        cert_data=ROOT_CERTIFICATE.encode(),
        key_data=KEY.encode(),
        ca_data=ROOT_CERTIFICATE.encode(),
        server_name="x",
    )


def test_keys_are_never_shown() -> None:
    (extender,) = parsed(tls(certData=data(ROOT_CERTIFICATE), keyData=data(KEY))).extenders
    assert "PRIVATE" not in repr(extender)
    assert "CERTIFICATE" not in repr(extender)
    assert "c2VjcmV0" not in repr(extender)


@pytest.mark.parametrize("key", ["c2VjcmV0!", ["c2VjcmV0"], 1234567])
def test_a_key_in_the_wrong_form_is_not_repeated(key: object) -> None:
    (error,) = errors_of(tls(keyData=key))
    assert error.startswith("extenders[0].tlsConfig.keyData: must be ")
    assert "c2Vj" not in error
    assert "1234567" not in error


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"insecure": True, "caData": data(ROOT_CERTIFICATE)}, "insecure"),
        ({"caData": data("not a certificate")}, "caData"),
        ({"caData": data("\xff")}, "caData"),
        ({"caFile": "/nonexistent/ca.crt"}, "caFile"),
        ({"certFile": "/nonexistent/tls.crt", "keyData": data(KEY)}, "certFile"),
        ({"certData": data(ROOT_CERTIFICATE), "keyFile": "/nonexistent/tls.key"}, "keyFile"),
        ({"certData": data("x"), "keyData": data(KEY)}, "certData"),
        ({"certData": data(ROOT_CERTIFICATE), "keyData": data("x")}, "keyData"),
    ],
)
def test_refused_tls(fields: dict[str, object], path: str) -> None:
    assert paths_of(tls(**fields)) == [f"extenders[0].tlsConfig.{path}"]


def test_certificates_from_files(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text(ROOT_CERTIFICATE)
    assert parsed(tls(caFile=str(tmp_path / "ca.crt")))
    (tmp_path / "ca.crt").write_text("nothing")
    assert paths_of(tls(caFile=str(tmp_path / "ca.crt"))) == ["extenders[0].tlsConfig.caFile"]


def test_a_certificate_without_key_is_not_used_and_not_read() -> None:
    assert parsed(tls(False, certFile="/nonexistent/tls.crt"))
