"""A data file must not make Podium call out: extenders are called only if the user names their configuration."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from extenders.loopback import Answer, Loopback

from .running import config, node, pod, run, written


@pytest.fixture
def server() -> Iterator[Loopback]:
    loopback = Loopback()
    yield loopback
    loopback.close()


@pytest.fixture
def elsewhere() -> Iterator[Loopback]:
    loopback = Loopback()
    yield loopback
    loopback.close()


def extenders(server: Loopback, **settings: Any) -> list[dict[str, Any]]:
    url = server.url.replace("http://", "http://me:secret@")
    return [{"urlPrefix": url, "filterVerb": "filter", "weight": 1, "nodeCacheCapable": True, **settings}]


@pytest.fixture
def cluster(tmp_path: Path, server: Loopback) -> Path:
    """A directory whose subdirectory has a configuration with an extender that passes only n2."""
    server.answer("filter", {"NodeNames": ["n2"]})
    folder = tmp_path / "cluster"
    (folder / "deep").mkdir(parents=True)
    written(folder / "objects.json", node("n1"), node("n2"), pod("web"), pod("db", nodeName="n1", phase="Running"))
    written(folder / "deep" / "scheduler.json", config(extenders=extenders(server)))
    return folder


QUESTIONS: dict[str, list[str]] = {
    "explain": ["explain", "web"],
    "simulate": ["simulate"],
    "audit": ["audit"],
    "drain": ["drain", "n1"],
    "fail": ["fail", "n1"],
    "capacity": ["capacity", "web"],
    "upgrade": ["upgrade", "--from", "v1.35", "--to", "v1.36"],
}


@pytest.mark.parametrize("command", QUESTIONS.values(), ids=QUESTIONS)
def test_a_configuration_among_the_files_calls_nobody(command: list[str], cluster: Path, server: Loopback) -> None:
    result = run(*command, "-f", cluster)
    assert result.exit_code in (0, 1), result.output
    assert server.requests == []
    assert f"extenders that came with the data are not called: {server.url}; have them called" in result.stderr
    assert "secret" not in result.output


def test_compare_and_tune_call_nobody_either(cluster: Path, server: Loopback, tmp_path: Path) -> None:
    other = tmp_path / "other.json"
    other.write_text(json.dumps(config()))
    run("compare", "-f", cluster, "--config", other)
    result = run("tune", "-f", cluster)
    assert (result.exit_code, server.requests) == (2, [])
    assert "has extenders, which are not called: name it with --config" in result.stderr


def test_a_named_configuration_calls_its_extenders_and_says_so(cluster: Path, server: Loopback, tmp_path: Path) -> None:
    named = tmp_path / "named.json"
    named.write_text(json.dumps(config(extenders=extenders(server))))
    result = run("explain", "web", "-f", cluster, "--config", named, "-o", "json")
    assert result.exit_code == 0, result.output
    assert f"{named}: pods and nodes are sent to 1 extender: {server.url}" in result.stderr
    assert "secret" not in result.output
    assert json.loads(result.stdout)["node"] == "n2"
    assert server.requests


def test_tls_files_of_a_configuration_among_the_files_are_not_read(
    tmp_path: Path, server: Loopback, cluster: Path
) -> None:
    settings = extenders(server, enableHTTPS=True, tlsConfig={"caFile": str(tmp_path / "missing.pem")})
    written(cluster / "deep" / "scheduler.json", config(extenders=settings))
    result = run("simulate", "-f", cluster)
    assert result.exit_code == 0, result.output
    assert "missing.pem" not in result.output


def test_resources_that_an_extender_manages_stay_ignored(cluster: Path, server: Loopback) -> None:
    managed = [{"name": "example.com/disk", "ignoredByScheduler": True}]
    written(cluster / "deep" / "scheduler.json", config(extenders=extenders(server, managedResources=managed)))
    written(cluster / "objects.json", node("n1"), pod("web", requests={"example.com/disk": "1"}))
    assert run("simulate", "-f", cluster).exit_code == 0
    assert server.requests == []


@pytest.mark.parametrize("release", ["v1.36", "v1.18", "v1.8"])
def test_a_case_calls_nobody(release: str, server: Loopback) -> None:
    settings = extenders(server, tlsConfig={"caFile": "/does/not/exist"}, enableHTTPS=True)
    configured = (
        config(extenders=settings)
        if release == "v1.36"
        else {"apiVersion": "v1", "kind": "Policy", "extenders": settings}
    )
    case = {"name": "c", "objects": [node("n1")], "pods": [pod("web")], "config": configured}
    result = run("decide", "--release", release, stdin=json.dumps(case))
    answer = json.loads(result.stdout)
    assert "error" not in answer, answer
    assert answer["decisions"][0]["node"] == "n1"
    assert any(server.url in warning for warning in answer["warnings"])
    assert server.requests == []


def test_a_case_with_a_wrong_extender_is_refused(server: Loopback) -> None:
    configured = config(extenders=extenders(server, prioritizeVerb="p", weight=-1))
    result = run("decide", stdin=json.dumps({"name": "c", "objects": [node("n1")], "config": configured}))
    assert "positive weight" in json.loads(result.stdout)["error"]


def test_a_redirect_to_another_server_is_not_followed(
    cluster: Path, server: Loopback, elsewhere: Loopback, tmp_path: Path
) -> None:
    server.answers["filter"] = Answer(status=307, headers={"Location": f"{elsewhere.url}/filter"})
    elsewhere.answer("filter", {"NodeNames": ["n1"]})
    named = tmp_path / "named.json"
    named.write_text(json.dumps(config(extenders=extenders(server))))
    result = run("explain", "web", "-f", cluster, "--config", named)
    assert elsewhere.requests == []
    assert "redirects to another server" in result.output
