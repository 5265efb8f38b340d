"""docs/answers.md says the truth: its commands print what stands below them."""

from __future__ import annotations

import doctest
from pathlib import Path

import pytest

from .console import blocks, folder_of, outputs, steps

PAGE = Path(__file__).parents[2] / "docs" / "answers.md"
CONSOLE = blocks(PAGE, "console")
ELLIPSIS = doctest.ELLIPSIS


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return folder_of(PAGE, tmp_path_factory)


@pytest.mark.parametrize("block", CONSOLE[1:], ids=[next(steps(block)).command for block in CONSOLE[1:]])
def test_console(block: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)

    for step, printed in outputs(block):
        same = doctest.OutputChecker().check_output(step.output, printed, ELLIPSIS)
        assert same, f"{step.command}\n{printed}"


@pytest.mark.parametrize("block", blocks(PAGE, "pycon"))
def test_python(block: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    examples = doctest.DocTestParser().get_doctest(block, {}, "docs/answers.md", None, None)
    said: list[str] = []

    result = doctest.DocTestRunner(verbose=False).run(examples, out=said.append)

    assert result.attempted > 5
    assert result.failed == 0, "".join(said)
