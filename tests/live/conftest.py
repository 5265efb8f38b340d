"""What the live tests share: control planes, and the commands under test."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from live.cluster_objects import small_cluster
from live.commands import BIN, Run
from live.control_plane import ControlPlane, control_plane


@pytest.fixture(scope="module")
def plane() -> Iterator[ControlPlane]:
    """An API server with a small cluster that the tests of a module only read."""
    with control_plane() as started:
        small_cluster(started)
        yield started


@pytest.fixture
def fresh_plane() -> Iterator[ControlPlane]:
    """An API server with nothing on it."""
    with control_plane() as started:
        yield started


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """Runs `podium` with these arguments, without any kubeconfig of the user's."""

    def podium(*arguments: str | Path, **variables: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if "PROXY" not in name.upper()}
        environment = kept | {"HOME": str(tmp_path), "KUBECONFIG": ""} | variables
        return subprocess.run(
            [BIN / "podium", *map(str, arguments)],
            check=False,
            capture_output=True,
            text=True,
            timeout=60,
            env=environment,
        )

    return podium
