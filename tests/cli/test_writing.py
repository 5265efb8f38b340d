"""Files that commands write are there whole or not at all, whatever comes in between."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.cli.output import write_text
from podium.errors import InputError


@pytest.mark.parametrize(
    ("fault", "raised"), [(KeyboardInterrupt(), KeyboardInterrupt), (OSError(28, "No"), InputError)]
)
def test_what_is_interrupted_leaves_the_old_file_and_no_other(
    fault: BaseException, raised: type[BaseException], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise fault

    report = tmp_path / "report.html"
    report.write_text("old")
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(raised):
        write_text(str(report), "new")
    assert report.read_text() == "old"
    assert os.listdir(tmp_path) == ["report.html"]
