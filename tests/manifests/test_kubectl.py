"""The kubectl command: every kind that any answer reads, the same wherever it is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from cli.running import run
from podium.live.reading import RESOURCES
from podium.manifests.kubectl import KUBECTL_COMMAND, KUBECTL_NAMES, NOT_SERVED_BY_DEFAULT
from podium.model import KINDS

ROOT = Path(__file__).parents[2]


def test_every_kind_is_in_the_command_or_not_served_by_default() -> None:
    assert {*KUBECTL_NAMES} | NOT_SERVED_BY_DEFAULT == {*KINDS}
    assert {*KUBECTL_NAMES}.isdisjoint(NOT_SERVED_BY_DEFAULT)


def test_a_live_cluster_is_read_for_the_same_kinds() -> None:
    assert {*RESOURCES} == {*KINDS}
    short = {"hpa", "limits", "pdb", "pv", "pvc", "quota"}
    assert {name for kind, name in KUBECTL_NAMES.items() if name != RESOURCES[kind].plural} <= short


@pytest.mark.parametrize("file", ["README.md", "README.zh.md"])
def test_the_readme_has_the_command(file: str) -> None:
    assert f"    {KUBECTL_COMMAND}\n" in (ROOT / file).read_text()


def test_the_demo_has_the_command() -> None:
    assert f"  {KUBECTL_COMMAND}\n" in run("demo").stdout
