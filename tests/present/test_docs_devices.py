"""docs/devices.md says the truth: its commands print what stands below them."""

from __future__ import annotations

from pathlib import Path

import pytest

from answers.console import blocks, outputs, steps

PAGE = Path(__file__).parents[2] / "docs" / "devices.md"
CONSOLE = blocks(PAGE, "console")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the cluster that the first block writes and all others read."""
    path = tmp_path_factory.mktemp("devices")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        assert [output for _, output in outputs(CONSOLE[0])] == [""]
    return path


@pytest.mark.parametrize("block", CONSOLE[1:], ids=[next(steps(block)).command for block in CONSOLE[1:]])
def test_console(block: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    for step, printed in outputs(block):
        assert printed == step.output, step.command
