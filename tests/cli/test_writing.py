"""Files that commands write are there whole or not at all, whatever comes in between."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from podium.cli.output import check_files, write_text
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


def test_a_file_of_a_directory_that_is_read_is_not_written_over(tmp_path: Path) -> None:
    chart = tmp_path / "chart"
    chart.mkdir()
    (chart / "web.yaml").write_text("kind: List")
    (chart / "report.html").write_text("old")
    read = {"files": [str(chart)]}
    with pytest.raises(InputError, match=r"--html would write over .*web\.yaml, which is read"):
        check_files({**read, "html": str(chart / "web.yaml")})
    check_files({**read, "html": str(chart / "report.html")})
    check_files({**read, "out": str(chart / "new.yaml")})


@pytest.mark.parametrize("name", ["node_groups", "kubeconfig", "events", "config"])
def test_an_input_is_not_written_over(name: str) -> None:
    with pytest.raises(InputError, match="--log would write over x, which is read"):
        check_files({name: "x", "log": "x"})
