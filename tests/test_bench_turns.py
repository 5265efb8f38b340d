"""Two versions take turns, and what is said about them is what they did."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest

from bench.figures import Figure
from bench.measure import ROOT, BrokenError
from bench.turns import FIGURES, Comparison, Half, Round, best, checked_out, choose, compare, find_version, main

SMALL = Figure("basic", nodes=6, pods=45)
ANOTHER = """\
class Cluster:
    @staticmethod
    def from_objects(objects): return objects

class Scheduler:
    def __init__(self, cluster, tie_break): self.nominated = None
    def place(self, pod, preempt): self.nominated = pod["metadata"]["name"]; return self
    def schedule(self, pod): {schedule}

def load(documents): return documents
"""
"""All of a version that the comparison uses."""


def version(folder: Path, schedule: str = 'return "node-000001"') -> Path:
    package = folder / "src" / "podium"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text(ANOTHER.format(schedule=schedule))
    return folder


def compared(shape: str, multiple: float) -> Comparison:
    return Comparison(
        shape=shape, nodes=6, pods=8, other=1000.0, this=1000.0 * multiple, multiple=multiple, halves=[multiple]
    )


# -- measuring -----------------------------------------------------------------------------------------------------


def test_a_version_compared_with_itself_chooses_the_same_nodes() -> None:
    found = compare(SMALL, ROOT, rounds=2)
    assert found.other
    assert found.this
    assert found.multiple == pytest.approx(found.this / found.other)
    assert len(found.halves) == 2
    assert found.pods_on_other_nodes == 0
    assert found.not_decided is None


def test_a_version_without_preemption_in_schedule_places_first(tmp_path: Path) -> None:
    schedule = 'return "node-000001" if self.nominated == pod["metadata"]["name"] else None'
    figure = Figure("preemption", shape="preemption", nodes=4, pods=3, running=16)
    found = compare(figure, version(tmp_path, schedule), rounds=1)
    assert found.not_decided is None
    assert found.halves == [found.multiple]


def test_other_nodes_are_counted(tmp_path: Path) -> None:
    # Podium puts two on each of the six nodes, the other version all on one.
    found = compare(SMALL._replace(pods=12), version(tmp_path), rounds=1)
    assert found.pods_on_other_nodes == 10


@pytest.mark.parametrize(
    ("schedule", "reason"),
    [
        ('raise ValueError("no claims here")', "ValueError: no claims here"),
        ("return None", "0 of 45 pods were placed, not 45"),
        ("import os; os._exit(3)", "the process ended with 3"),
    ],
    ids=["an error", "pods that do not fit", "a process that ends"],
)
def test_what_the_other_version_does_not_decide_is_no_error(tmp_path: Path, schedule: str, reason: str) -> None:
    found = compare(SMALL, version(tmp_path, schedule), rounds=1)
    assert (found.not_decided, found.multiple, found.halves) == (reason, None, [])


def test_what_this_version_does_not_decide_is_an_error() -> None:
    too_many = Figure("antiaffinity", shape="antiaffinity", nodes=2, pods=3)
    with pytest.raises(BrokenError, match="antiaffinity: not decided by this version: 2 of 3 pods were placed, not 3"):
        compare(too_many, ROOT, rounds=1)


def test_the_best_of_each_turn_counts() -> None:
    other = [Round([4.0, 8.0], ["a", "b"]), Round([5.0, 6.0], ["a", "b"])]
    this = [Round([2.0, 9.0], ["a", "c"]), Round([3.0, 3.0], ["a", "c"])]
    assert best(other) == 10.0
    assert Comparison.of(SMALL, [Half(other[:1], this[:1]), Half(other[1:], this[1:])]) == Comparison(
        shape="basic",
        nodes=6,
        pods=45,
        other=4.5,
        this=9.0,
        multiple=2.0,
        halves=[12 / 11, 11 / 6],
        pods_on_other_nodes=1,
    )


@pytest.fixture
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bench.turns.FIGURES", {"basic": SMALL})


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("_small")
def test_the_command_prints_a_table(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(ROOT), "--only", "basic", "--rounds", "2"]) == 0
    shown = capsys.readouterr()
    header, row = shown.out.splitlines()
    assert header.split("  ")[0] == "shape"
    assert f"{ROOT}, pods/s" in header
    assert len(row.split()) == 6
    assert shown.err.startswith("[1/1] basic .. ")
    other = version(tmp_path)
    assert main([str(other), "--rounds", "1"]) == 0
    *_, note = capsys.readouterr().out.splitlines()
    assert note == "basic: 37 of 45 pods are on other nodes"


@pytest.mark.usefixtures("_small")
def test_the_command_prints_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    other = version(tmp_path, "return None")
    assert main([str(other), "--rounds", "1", "--json"]) == 1
    shown = capsys.readouterr()
    assert shown.err.splitlines()[-1] == f"error: {other} decides none of these shapes"
    found = json.loads(shown.out)
    assert (found["other"], found["rounds"]) == (str(other), 1)
    assert [(row["shape"], row["multiple"], row["not_decided"]) for row in found["shapes"]] == [
        ("basic", None, "0 of 45 pods were placed, not 45")
    ]


def test_shapes_below_the_limit_are_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    multiples = {"basic": 0.96, "mixed": 0.98}
    monkeypatch.setattr(
        "bench.turns.compare", lambda figure, other, rounds: compared(figure.name, multiples[figure.name])
    )
    chosen = [str(ROOT), "--only", "basic", "--only", "mixed"]
    assert main([*chosen, "--at-least", "0.97"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == "error: basic is 0.960 times as fast, less than 0.97"
    assert main([*chosen, "--at-least", "0.95"]) == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["no-such-revision"], "error: 'no-such-revision' is neither a git revision with "),
        ([str(ROOT), "--only", "round"], "error: no shape 'round'; there is basic, "),
        ([str(ROOT), "--rounds", "0"], "error: --rounds is 0; there has to be at least 1"),
    ],
    ids=["revision", "shape", "rounds"],
)
def test_wrong_arguments_are_one_line(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(said)


def test_choosing_shapes() -> None:
    assert [figure.name for figure in choose()] == list(FIGURES)
    assert [figure.name for figure in choose(["mixed", "running", "basic"])] == ["basic", "mixed", "running"]


# -- revisions -----------------------------------------------------------------------------------------------------


@pytest.fixture
def _no_repository_around(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a hook, git is told which repository to use."""
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)


def git(repository: Path, *arguments: str) -> str:
    who = ["-c", "user.name=someone", "-c", "user.email=someone@example.com"]
    command = ["git", "-C", str(repository), *who, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


@pytest.mark.usefixtures("_no_repository_around")
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_the_work_tree_of_a_revision_is_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    repository = version(tmp_path / "repository")
    git(repository, "init", "--quiet")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "--message", "first")
    before = git(repository, "worktree", "list")
    commit = find_version("HEAD", repository)
    assert commit == git(repository, "rev-parse", "HEAD").strip()
    with checked_out(commit, repository) as folder:
        assert find_version(str(folder), repository) == folder.resolve()
        assert str(folder) in git(repository, "worktree", "list")
    assert not folder.parent.exists()
    assert git(repository, "worktree", "list") == before

    def interrupted(*_: object) -> Comparison:
        assert git(repository, "worktree", "list") != before
        raise KeyboardInterrupt

    monkeypatch.setattr("bench.turns.compare", interrupted)
    monkeypatch.setattr("bench.turns.ROOT", repository)
    assert main(["HEAD", "--only", "basic"]) == 130
    assert capsys.readouterr().err.splitlines()[-1] == "interrupted"
    assert git(repository, "worktree", "list") == before
