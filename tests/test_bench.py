"""The benchmark measures what it says, and notices what got slower."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.dump import WAITING, write_dump
from bench.figures import BY_NAME, GROWTH, Figure, growth_name
from bench.fleet import fleet, write_fleet
from bench.measure import BrokenError, samples
from bench.plot import plot
from bench.reference import Sample
from bench.report import BEGIN, END, markdown, promises, summary, write_docs
from bench.results import Baseline, Machine, Result, Results, read_results, write
from bench.run import choose, main
from bench.shapes import SHAPES, case
from podium.answers import audit
from podium.answers.audit import Finding
from podium.cluster import Cluster
from podium.manifests import load
from podium.model import Node, Pod

MACHINE = Machine("a processor", 2, "3.11", "2.0")


def small(shape: str, nodes: int = 16, pods: int = 8) -> Figure:
    running = 4 * nodes if shape == "preemption" else 0
    return Figure(shape, shape=shape, nodes=nodes, pods=pods, running=running, repetitions=1)


def result(name: str, *, ratio: float = 100.0, cpu: float = 0.05) -> Result:
    return Result(name, BY_NAME[name].units, cpu, cpu, ratio, 50_000_000)


def results(*found: Result) -> Results:
    return Results(MACHINE).updated(found)


# -- cases ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("shape", SHAPES)
def test_every_shape_is_loaded_and_scheduled(shape: str) -> None:
    (sample,) = samples(small(shape))
    assert sample.peak > 1_000_000


def test_pods_that_do_not_fit_are_noticed() -> None:
    too_many = small("antiaffinity", nodes=6, pods=7)
    with pytest.raises(BrokenError, match="6 of 7 pods were scheduled, not 7"):
        list(samples(too_many))


def test_distinct_pods_are_all_different() -> None:
    pods = case("distinct", 1, 2_000)["pods"]
    assert len({json.dumps([pod["spec"], pod["metadata"]["labels"]]) for pod in pods}) == 2_000
    assert len({json.dumps(pod["spec"]["containers"]) for pod in pods}) == 2_000


def test_running_pods_are_spread_evenly() -> None:
    made = load(case("basic", 4, 3, running=8)["objects"])
    nodes = [node.name for node in made.of(Node)]
    assert [pod.spec.node_name for pod in made.of(Pod)] == nodes * 2


def test_an_unknown_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"no shape 'round'; there is basic, "):
        case("round", 1, 1)


def test_the_dump_is_what_kubectl_writes(tmp_path: Path) -> None:
    path = tmp_path / "dump.json"
    write_dump(path, nodes=3, pods=7)
    document = json.loads(path.read_bytes())
    assert document["kind"] == "List"
    made = load(path)
    assert made.warnings == ()
    assert len(made.of(Node)) == 3
    assert [pod.key for pod in made.of(Pod) if not pod.spec.node_name] == [WAITING]
    for kind in ("load", "build"):
        (sample,) = samples(Figure(kind, kind, repetitions=1), path)
        assert sample.peak > 1_000_000


# -- comparing -----------------------------------------------------------------------------------------------------


def test_the_fleet_is_a_cluster_that_could_run(tmp_path: Path) -> None:
    path = tmp_path / "fleet.json"
    with path.open("wb") as file:
        write_fleet(file, 60, 900)
    objects = load(path)
    pods = objects.of(Pod)
    assert (len(objects.of(Node)), len(pods)) == (60, 900)
    assert 0 < sum(not pod.spec.node_name for pod in pods) < 120
    found = audit(Cluster.from_objects(objects), release="v1.37")
    assert not found.of(Finding.UNFIT)
    assert not found.of(Finding.UNDECIDED)


def test_the_same_numbers_give_the_same_fleet() -> None:
    assert list(fleet(12, 100, 7)) == list(fleet(12, 100, 7)) != list(fleet(12, 100, 8))


def test_a_result_has_the_best_times_and_the_median_ratio() -> None:
    taken = [Sample(3.0, 2.0, 0.04, 7), Sample(5.0, 1.0, 0.03, 9), Sample(4.0, 4.0, 0.04, 8)]
    assert Result.of(BY_NAME["basic"], taken) == Result("basic", 1_000, 3.0, 1.0, 20.0, 9)


@pytest.mark.parametrize(
    ("name", "ratio", "dropped"),
    [("basic", 76.0, False), ("basic", 74.0, True), ("basic", 200.0, False), ("mixed", 1.0, False)],
    ids=["a little slower", "much slower", "faster", "not in the baseline"],
)
def test_a_drop_of_a_quarter_counts(name: str, ratio: float, dropped: bool) -> None:
    assert Baseline({"basic": 100.0}).has_dropped(result(name, ratio=ratio)) is dropped


def test_a_partial_run_keeps_the_other_figures() -> None:
    before = results(result("mixed", ratio=5.0), result("basic", ratio=5.0))
    after = before.updated([result("mixed", ratio=6.0)])
    assert {name: found.ratio for name, found in after.results.items()} == {"basic": 5.0, "mixed": 6.0}
    assert Baseline({"basic": 5.0}).updated([result("mixed", ratio=6.00001)]).ratios == {"basic": 5.0, "mixed": 6.0}


def test_results_are_read_as_they_were_written(tmp_path: Path) -> None:
    path, found = tmp_path / "results.json", results(result("basic"))
    write(found, path)
    assert read_results(path) == found
    assert read_results(tmp_path / "none.json") == Results(Machine.this())
    path.write_text('{"results": {}}')
    with pytest.raises(ValueError, match=r"results.json: .* remove it, it will be written anew"):
        read_results(path)


def test_a_run_fails_for_what_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    slow = [Sample(1.0, 1.0, 0.05, 1)]
    monkeypatch.setattr("bench.run.RESULTS", tmp_path / "results.json")
    monkeypatch.setattr("bench.run.read_results", results)
    monkeypatch.setattr("bench.run.read_baseline", lambda: Baseline({"spread": 100.0, "affinity": 50.0}))
    monkeypatch.setattr("bench.run.measure", lambda figure, dump: slow)
    assert main(["--only", "spread", "--only", "affinity"]) == 1
    shown = capsys.readouterr()
    assert shown.err.splitlines()[-1] == "error: spread dropped to 50% of the baseline"
    assert "error: affinity" not in shown.err
    assert "once more" in shown.err
    assert json.loads((tmp_path / "results.json").read_bytes())["results"].keys() == {"affinity", "spread"}


def test_choosing_figures() -> None:
    everything = {figure.name for figure in choose()}
    assert everything == {name for name in BY_NAME if not name.startswith("million-")}
    assert [figure.name for figure in choose(["million-mixed"])] == ["million-mixed"]
    assert {figure.name for figure in choose(["mixed"])} == {growth_name("mixed", nodes) for nodes in GROWTH}
    assert {figure.name for figure in choose(quick=True)} < everything
    assert [figure.name for figure in choose(["large"], quick=True)] == ["large"]
    assert main(["--only", "round"]) == 2


# -- reporting -----------------------------------------------------------------------------------------------------


def test_promises_say_what_was_measured() -> None:
    found = results(
        result("basic", cpu=0.04, ratio=900.0),
        result("mixed", cpu=0.2),
        result("running", ratio=500.0),
        result("basic-1000", ratio=900.0),
        result("basic-100000", ratio=90.0),
    )
    assert {(promise.text, promise.measured, promise.is_kept) for promise in promises(found)} == {
        ("basic: at least 20,000 pods/s", "25,000", True),
        ("mixed: at least 10,000 pods/s", "5,000", False),
        ("running: at most 1.5 times the cost on an empty cluster", "1.80 times", False),
        ("basic: 100 times the nodes cost at most 100 times as much a pod", "10.0 times", True),
    }


def test_the_summary_compares_with_the_baseline() -> None:
    text = summary([result("basic", ratio=90.0), result("help", cpu=0.1)], Baseline({"basic": 100.0})).text()
    header, basic, helped = (line.split() for line in text.splitlines())
    assert header[-3:] == ["ratio", "baseline", "change"]
    assert basic == ["basic", "5,000", "1,000", "20,000", "50", "0.05", "50", "MB", "90", "100", "-10%"]
    assert helped == ["help", "-", "-", "-", "-", "0.1", "50", "MB", "100", "-", "-"]


def test_the_docs_get_the_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text(f"# Speed\n{BEGIN}\nold\n{END}\nThe end.\n", encoding="utf-8")
    found = results(result("basic", cpu=0.0232), result("help"))
    write_docs(found, page)
    once = page.read_text(encoding="utf-8")
    assert "| `basic` | 43,103 | 20,000 | 667 | 70 | 65 | 616 |" in once
    assert once == f"# Speed\n{BEGIN}\n\n{markdown(found)}\n\n{END}\nThe end.\n"
    write_docs(found, page)
    assert page.read_text(encoding="utf-8") == once
    page.write_text("no markers", encoding="utf-8")
    with pytest.raises(ValueError, match="no <!-- bench: begin -->"):
        write_docs(found, page)


def test_the_plot_is_svg_with_a_point_for_every_size() -> None:
    found = results(*(result(growth_name("basic", nodes), cpu=nodes / 1e4) for nodes in GROWTH))
    drawing = ElementTree.fromstring(plot(found))
    texts = {element.text for element in drawing.iter() if element.text and element.text.strip()}
    assert {"1,000", "100,000", "100 µs", "10 ms", "basic", "time a pod"} <= texts
    assert sum(element.tag.endswith("circle") for element in drawing.iter()) == len(GROWTH)
    with pytest.raises(ValueError, match="nothing to plot"):
        plot(results(result("help")))
