"""docs/devices.md says the truth: its commands print what stands below them."""

from __future__ import annotations

from pathlib import Path

import pytest

from answers.console import blocks, folder_of, outputs, steps

PAGE = Path(__file__).parents[2] / "docs" / "devices.md"
CONSOLE = blocks(PAGE, "console")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(PAGE, tmp_path_factory)


@pytest.mark.parametrize("block", CONSOLE[1:], ids=[next(steps(block)).command for block in CONSOLE[1:]])
def test_console(block: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    for step, printed in outputs(block):
        assert printed == step.output, step.command
