"""The lines with which a plugin explains a score end in that score: in every release, on random clusters."""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from builders import make_node, make_pod
from podium.answers.explanation import best_nodes, explain_pod
from podium.answers.score_formulas import NO_LINES, ScoreFormula
from podium.cluster import Cluster, Nodes
from podium.cluster.columns import Ints
from podium.engine import Scheduler
from podium.framework import CycleState, Registry, ScorePlugin
from podium.model import Pod
from podium.plugins import IN_TREE
from podium.plugins.node_resources_fit import NodeResourcesFit
from podium.recorded import prepare, read_records

NODES = [
    make_node("a", cpu="4", memory="8Gi", images={"app:latest": 500 << 20, "tool:latest": 900 << 20}),
    make_node("b", cpu="8", memory="9Gi"),
]
RUNNING = make_pod("running", node="a", requests={"cpu": "1", "memory": "5Gi"})
POD = make_pod("pod", requests={"cpu": "1", "memory": "1Gi"}, init_containers=[{"name": "first", "image": "tool"}])
GOLDEN = Path(__file__).parents[1] / "golden"
RECORDINGS = ("mixed", "resources", "nodeaffinity", "interpod", "spread", "taints", "volumes", "config")


def formulas_of(scheduler: Scheduler, pod: Pod) -> dict[str, tuple[ScoreFormula, ...]]:
    return dict(explain_pod(scheduler, pod, formulas_on=best_nodes(None)).formulas)


def one_formula(plugin: str, node: str, release: str = "v1.37", registry: Registry = IN_TREE) -> ScoreFormula:
    scheduler = Scheduler(Cluster.from_objects([*NODES, RUNNING, POD]), release=release, registry=registry)
    (one,) = [each for each in formulas_of(scheduler, POD)[node] if each.plugin == plugin]
    return one


def last_number(line: str) -> int:
    found = re.search(r"(?<![\d,])-?[\d,]+$", line)
    assert found is not None, line
    return int(found[0].replace(",", ""))


def check(formula: ScoreFormula) -> None:
    """The plugin's lines end in the raw score, the lines about normalising in the result."""
    place = formula.lines.index(f"raw score {formula.raw:,}")
    assert formula.lines[0] == NO_LINES or last_number(formula.lines[place - 1]) == formula.raw, formula
    for line in formula.lines[place + 1 : -1]:
        assert last_number(line) == formula.normalized, formula
    assert formula.lines[-1] == f"{formula.normalized} * weight {formula.weight} = {formula.weighted:,} points"


def recorded_schedulers(name: str, release: str) -> Iterator[tuple[Scheduler, list[Pod]]]:
    records = list(read_records(str(GOLDEN / f"{name}.jsonl.xz"), release))
    for record in random.Random(name + release).sample(records, 6):
        scheduler, pods = prepare(record.case, release=release)
        with closing(scheduler):
            yield scheduler, pods


@pytest.mark.parametrize("release", ["v1.29", "v1.34", "v1.37"])
@pytest.mark.parametrize("name", RECORDINGS)
def test_lines_end_in_the_score_of_recorded_decisions(name: str, release: str) -> None:
    explained = 0
    for scheduler, pods in recorded_schedulers(name, release):
        for pod in pods[:3]:
            for formulas in formulas_of(scheduler, pod).values():
                for formula in formulas:
                    check(formula)
                    explained += formula.lines[0] != NO_LINES
    assert explained > 10


@pytest.mark.parametrize("release", ["v1.8", "v1.14", "v1.18"])
def test_the_plugins_of_old_releases_have_their_score_and_what_they_share_with_newer_ones(release: str) -> None:
    scheduler = Scheduler(Cluster.from_objects([*NODES, RUNNING, POD]), release=release)
    found = formulas_of(scheduler, POD)["a"]
    assert len(found) > 3
    for formula in found:
        check(formula)


def test_what_is_in_use_and_what_is_asked_for_is_named() -> None:
    assert one_formula("NodeResourcesFit", "a").lines == (
        "cpu: 1 in use + 1 asked for of 4: 50 % stay free",
        "memory: 5Gi in use + 1Gi asked for of 8Gi: 25 % stay free",
        "LeastAllocated: (50 + 25) / 2 = 37",
        "raw score 37",
        "37 * weight 1 = 37 points",
    )


@pytest.mark.parametrize(
    ("release", "images", "most"),
    [("v1.29", ["app:latest"], "1,000 MiB"), ("v1.30", ["tool:latest", "app:latest"], "2,000 MiB")],
)
def test_images_are_those_that_the_release_counts(release: str, images: list[str], most: str) -> None:
    formula = one_formula("ImageLocality", "a", release)
    total = sum({"app:latest": 250 << 20, "tool:latest": 450 << 20}[name] for name in images)

    assert [line.partition(": ")[0] for line in formula.lines[: len(images)]] == images
    told = f"{total:,} bytes, where 23 MiB give 0 and {most} give 100: {formula.raw}"
    assert formula.lines[len(images)] == told


def test_a_plugin_without_lines_has_its_score() -> None:
    class Seven(ScorePlugin):
        name = "ImageLocality"

        def score_node(self, state: object, pod: object, node: object) -> int:
            return 7

    own = Registry(plugin for name, plugin in IN_TREE.items() if name != "ImageLocality")
    registry = Registry((*own.values(), Seven))

    assert one_formula("ImageLocality", "a", registry=registry).lines[:2] == (NO_LINES, "raw score 7")


def test_lines_are_not_inherited_by_a_plugin_that_scores_differently() -> None:
    class Other(NodeResourcesFit):
        def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
            return super().score(state, pod, nodes) // 2

    own = Registry(plugin for name, plugin in IN_TREE.items() if name != "NodeResourcesFit")
    registry = Registry((*own.values(), Other))

    assert one_formula("NodeResourcesFit", "a", registry=registry).lines[0] == NO_LINES


def test_a_users_plugin_explains_itself() -> None:
    class Tall(ScorePlugin):
        name = "ImageLocality"

        def score_node(self, state: object, pod: object, node: object) -> int:
            return 42

        def score_lines(self, state: object, pod: object, node: object) -> list[str]:
            return ["6 * 7 = 42"]

    own = Registry(plugin for name, plugin in IN_TREE.items() if name != "ImageLocality")
    registry = Registry((*own.values(), Tall))

    assert one_formula("ImageLocality", "a", registry=registry).lines[0] == "6 * 7 = 42"


def test_a_node_that_does_not_fit_has_no_formulas() -> None:
    scheduler = Scheduler(Cluster.from_objects([*NODES, make_node("full", cpu="0"), POD]))

    assert sorted(formulas_of(scheduler, POD)) == ["a", "b"]
    assert explain_pod(scheduler, POD, formulas_on=lambda decision: ["full"]).formulas == {}
    assert explain_pod(scheduler, POD).formulas == {}
