"""The front door: a cluster that is opened once, names as on the command line, and results that show themselves."""

from __future__ import annotations

import doctest
import json
import subprocess
import sys
from importlib.resources import files
from pathlib import Path

import pytest

from cli.running import EXAMPLE, run
from podium import Cluster, InputError, Scheduler, load
from podium.answers.shown_result import ShownResult
from podium.model import Node
from podium.present.results import PRESENTERS

PAGE = Path(__file__).parents[1] / "docs" / "python.md"


@pytest.fixture(scope="module")
def cluster() -> Cluster:
    return Cluster.open(EXAMPLE)


def test_the_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fleet = run("example", "fleet")
    (tmp_path / "fleet.yaml").write_text(fleet.stdout)
    monkeypatch.chdir(tmp_path)

    assert doctest.testfile(str(PAGE), module_relative=False).failed == 0


def test_every_question_shows_itself(cluster: Cluster) -> None:
    results: list[ShownResult] = [
        cluster.explain("shop/web-5f7c9-new"),
        cluster.why_not("ml/train-0"),
        cluster.why_not("ml/train-0", "gpu-b1"),
        cluster.simulate(),
        cluster.capacity("shop/web-5f7c9-new"),
        cluster.drain("web-a1"),
        cluster.fail("zone=eu-a"),
        cluster.audit(),
        cluster.compare(release="v1.30"),
        cluster.upgrade("v1.36", before="v1.30"),
        cluster.consolidate(),
    ]

    assert {type(each) for each in results} == set(PRESENTERS)
    for each in results:
        assert repr(each).startswith(f"<{type(each).__name__}: ")
        assert "iframe" in each._repr_html_() or "<table" in each._repr_html_()
        assert each.to_document()["kind"]
        assert each.to_frame().width > 1


def test_answers_are_those_of_the_command_line(cluster: Cluster) -> None:
    said = json.loads(run("drain", "web-a1", "-f", EXAMPLE, "-o", "json").stdout)
    own = cluster.drain("web-a1").to_document()

    assert own["pods"] == said["pods"]
    assert cluster.drain(cluster.node("web-a1")).to_document() == own


def test_a_cluster_is_still_what_schedulers_take(cluster: Cluster) -> None:
    built = Cluster.from_objects(load(EXAMPLE))

    assert repr(built) == repr(cluster)
    pod = built.pending["shop/web-5f7c9-new"]
    assert Scheduler(built).decide(pod).node == cluster.explain(pod).decision.node


def test_dicts_and_releases(tmp_path: Path) -> None:
    status = {"allocatable": {"cpu": "4", "pods": "10"}, "nodeInfo": {"kubeletVersion": "v1.33.4"}}
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}, "status": status}

    opened = Cluster.open(node)
    assert (opened.options.release, Cluster.open(node, release="v1.30").options.release) == ("v1.33", "v1.30")
    assert [each.name for each in opened.objects.of(Node)] == ["n1"]
    with pytest.raises(InputError, match="no node in"):
        Cluster.open({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})


def test_types_are_shipped(tmp_path: Path) -> None:
    assert (files("podium") / "py.typed").is_file()
    script = tmp_path / "used.py"
    script.write_text("from podium import Cluster\nreveal_type(Cluster.open('x').drain('n1').harmless)\n")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        str(tmp_path),
        str(script),
    ]
    said = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)

    assert 'Revealed type is "' in said.stdout
    assert "bool" in said.stdout
