"""Listening: what is safe, what is refused, and that it runs."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from cli.running import EXAMPLE, run
from podium.errors import InputError
from podium.web.serving import Listening


@pytest.fixture
def token_file(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text("0123456789abcdef0123456789abcdef\n")
    return str(file)


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_nothing(address: str) -> None:
    Listening(address=address).check()


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.1", "podium.example"])
def test_another_address_needs_a_token_and_tls_or_says_aloud_that_it_does_not(address: str, token_file: str) -> None:
    with pytest.raises(InputError, match="needs --token-file and --tls-cert and --tls-key; or say --insecure"):
        Listening(address=address).check()
    with pytest.raises(InputError, match="needs --tls-cert and --tls-key"):
        Listening(address=address, token_file=token_file).check()
    Listening(address=address, insecure=True).check()


BAD: list[tuple[dict[str, Any], str]] = [
    ({"certificate": "a.pem"}, "belong together"),
    ({"certificate": "nosuch.pem", "key": "nosuch.key"}, "nosuch.pem: cannot be used"),
    ({"token_file": "nosuch"}, "nosuch: cannot be read"),
]


@pytest.mark.parametrize(("options", "said"), BAD)
def test_what_cannot_be_used_is_said_at_the_start(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        Listening(**options).check()


def test_a_short_token_is_refused(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("secret\n")
    with pytest.raises(InputError, match="16 characters at least"):
        Listening(token_file=str(tmp_path / "token")).check()


@pytest.mark.parametrize(
    ("options", "hosts"),
    [
        ({}, {"localhost", "127.0.0.1", "[::1]"}),
        ({"address": "192.0.2.1"}, {"localhost", "127.0.0.1", "[::1]", "192.0.2.1"}),
        (
            {"address": "2001:db8::1", "allowed_hosts": ("a.example",)},
            {"localhost", "127.0.0.1", "[::1]", "[2001:db8::1]", "a.example"},
        ),
    ],
)
def test_names_that_are_answered(options: dict[str, Any], hosts: set[str]) -> None:
    assert set(Listening(**options).hosts()) == hosts


def test_the_command_refuses_to_listen_to_everybody() -> None:
    result = run("serve", "-f", EXAMPLE, "--address", "0.0.0.0")
    assert result.exit_code == 2
    assert "--insecure" in result.stderr


def refusal(url: str) -> tuple[int, str | None, bytes]:
    """Status, kind and text of what a server answers to a request that it refuses."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(url, timeout=30)
    with refused.value as answer:
        return answer.code, answer.headers["content-type"], answer.read()


def test_serve_answers_until_it_is_interrupted() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-c", "from podium.cli import main; main()", "serve", "-f", EXAMPLE, "--port", str(port)]
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                urllib.request.urlopen(f"{url}/livez", timeout=5).close()
                break
            except OSError:
                time.sleep(0.1)
        with urllib.request.urlopen(f"{url}/api/v1/explain?pod=shop/web-5f7c9-new", timeout=30) as response:
            assert response.status == 200
        assert refusal(f"{url}/api/v1/explain?pod={'x' * 70_000}") == (
            400,
            "application/json",
            b'{"error":"the request cannot be read: it is not HTTP, or its address is longer than 65,535 bytes"}',
        )
        taken = subprocess.run([*command], capture_output=True, text=True, timeout=60, check=False)
        assert (taken.returncode, "is it taken?" in taken.stderr) == (2, True)
    finally:
        os.kill(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert process.returncode in (0, 130)
    assert "Traceback" not in said
