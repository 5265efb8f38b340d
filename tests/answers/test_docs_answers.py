"""docs/answers.md, docs/devices.md and docs/plans.md say the truth: their commands print what stands below them."""

from __future__ import annotations

import doctest
from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from .console import blocks, folder_of, outputs, steps

DOCS = Path(__file__).parents[2] / "docs"
ANSWERS, DEVICES, PLANS = DOCS / "answers.md", DOCS / "devices.md", DOCS / "plans.md"
CONSOLE = [(page, block) for page in (ANSWERS, DEVICES, PLANS) for block in blocks(page, "console")[1:]]

FolderOf = Callable[[Path], Path]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> FolderOf:
    return cache(lambda page: folder_of(page, tmp_path_factory))


@pytest.mark.parametrize(("page", "block"), CONSOLE, ids=[next(steps(block)).command for _, block in CONSOLE])
def test_console(page: Path, block: str, folder: FolderOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder(page))

    for step, printed in outputs(block):
        same = doctest.OutputChecker().check_output(step.output, printed, doctest.ELLIPSIS)
        assert same, f"{step.command}\n{printed}"


@pytest.mark.parametrize("block", blocks(ANSWERS, "pycon"))
def test_python(block: str, folder: FolderOf, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder(ANSWERS))
    examples = doctest.DocTestParser().get_doctest(block, {}, "docs/answers.md", None, None)
    said: list[str] = []

    result = doctest.DocTestRunner(verbose=False).run(examples, out=said.append)

    assert result.attempted > 5
    assert result.failed == 0, "".join(said)
