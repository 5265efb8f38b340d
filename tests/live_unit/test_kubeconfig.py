"""Kubeconfig files: merged as kubectl merges them, and nothing secret in what is said of them."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from podium.errors import InputError
from podium.live.client import (
    Access,
    ClusterEntry,
    Credentials,
    Kubeconfig,
    UserEntry,
    find_access,
    without_password,
)


def kubeconfig(path: Path, name: str, *, current: str = "", server: str = "", token: str = "", **user: str) -> Path:
    context = {"cluster": name, "user": name, "namespace": f"{name}-space"}
    cluster = {"server": server or f"https://{name}"}
    path.write_text(
        json.dumps(
            {
                "current-context": current,
                "clusters": [{"name": name, "cluster": cluster | {"certificate-authority": "ca.crt"}}],
                "users": [{"name": name, "user": {"token": token, **user}}],
                "contexts": [{"name": name, "context": context}],
            }
        )
    )
    return path


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """KUBECONFIG names two files and one that is not there."""
    (tmp_path / "b").mkdir()
    paths = [kubeconfig(tmp_path / "one", "one"), kubeconfig(tmp_path / "b" / "two", "two", current="two")]
    monkeypatch.setenv("KUBECONFIG", f"{paths[0]}:{tmp_path}/gone:{paths[1]}")
    return paths


def test_the_first_current_context_counts(two: list[Path]) -> None:
    access = find_access()

    assert (access.context, access.cluster.server, access.namespace) == ("two", "https://two", "two-space")
    assert access.cluster.certificate_authority == str(two[1].parent / "ca.crt")


def test_a_context_may_be_of_any_file(two: list[Path]) -> None:
    assert find_access(context="one").cluster.server == "https://one"


def test_of_entries_with_one_name_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = kubeconfig(tmp_path / "1", "same", current="same", server="https://first")
    monkeypatch.setenv("KUBECONFIG", f"{first}:{kubeconfig(tmp_path / '2', 'same', server='https://second')}")

    assert find_access().cluster.server == "https://first"


def test_a_file_that_is_named_is_the_only_one(two: list[Path]) -> None:
    with pytest.raises(InputError, match=r"one: no current-context; say which with --context: one"):
        find_access(str(two[0]))


def test_a_pod_asks_its_own_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "gone"))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "fd00::1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "6443")
    (tmp_path / "namespace").write_text("podium-system\n")

    access = find_access(service_account=str(tmp_path))

    assert (access.context, access.namespace) == ("in-cluster", "podium-system")
    assert access.cluster.server == "https://[fd00::1]:6443"
    assert access.user.token_file == str(tmp_path / "token")


def test_no_secret_is_in_a_repr(tmp_path: Path) -> None:
    access = find_access(str(kubeconfig(tmp_path / "k", "k", current="k", token="secret", password="secret")))

    assert "secret" not in repr(access) + repr(access.user) + str(access)


PROBLEMS = {
    "cluster": ({"contexts": [{"name": "a", "context": {"cluster": "x"}}]}, "cluster 'x', which has no server"),
    "user": (
        {
            "contexts": [{"name": "a", "context": {"cluster": "x", "user": "y"}}],
            "clusters": [{"name": "x", "cluster": {"server": "https://x"}}],
        },
        "user 'y', who does not exist",
    ),
    "context": ({"contexts": []}, "no context 'a'; there is none"),
}


@pytest.mark.parametrize(("document", "problem"), PROBLEMS.values(), ids=PROBLEMS)
def test_what_is_missing_is_named(document: dict[str, object], problem: str, tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text(json.dumps(document | {"current-context": "a"}))

    with pytest.raises(InputError, match=problem):
        find_access(str(path))


def access_with(server: str, **user: Any) -> Access:
    return Access("test", ClusterEntry(server=server), UserEntry(**user), "default")


@pytest.mark.parametrize("user", [{"token": "t"}, {"token_file": "f"}, {"username": "u", "password": "p"}])
def test_credentials_do_not_leave_this_machine_over_plain_http(user: dict[str, str]) -> None:
    with pytest.raises(InputError, match="is plain http: credentials are sent over https only"):
        Credentials(access_with("http://cluster.example", **user))
    Credentials(access_with("http://127.0.0.1:8001", **user))
    Credentials(access_with("http://cluster.example"))


def test_a_password_in_the_address_is_not_shown() -> None:
    assert without_password("https://user:pa@ss@cluster.example:6443/a@b") == "https://cluster.example:6443/a@b"
    with pytest.raises(InputError) as refused:
        Credentials(access_with("http://user:secret@cluster.example"))
    assert "secret" not in str(refused.value)


def test_extra_fields_of_an_impersonated_user_are_sent() -> None:
    user = {"as_user": "jane", "as_user_extra": {"example.org/Team": ["a", "b"]}}
    headers = asyncio.run(Credentials(access_with("https://cluster.example", **user)).headers())
    assert headers[1:] == [("Impersonate-Extra-example.org%2Fteam", "a"), ("Impersonate-Extra-example.org%2Fteam", "b")]
    with pytest.raises(InputError, match="need the user to be impersonated"):
        Credentials(access_with("https://cluster.example", as_user_extra={"a": ["b"]}))


def test_a_kubeconfig_that_is_nested_too_deeply_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("x: " + "[" * 30_000 + "]" * 30_000)
    with pytest.raises(InputError, match="is nested more than 100 levels deep"):
        Kubeconfig([path])
