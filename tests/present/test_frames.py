"""Decisions and simulations as data frames, and as notebooks show them."""

from __future__ import annotations

import sys
from html.parser import HTMLParser

import pytest

from builders import make_node, make_pod
from podium.answers.simulation import Simulation, simulate
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.errors import InputError
from podium.present.html import Shades


def cluster(*, nodes: int = 3) -> Cluster:
    running = make_pod("busy", node="n0", requests={"cpu": "2"})
    full = make_pod("full", node="n1", requests={"cpu": "4"})
    return Cluster.from_objects([*(make_node(f"n{number}", cpu="4") for number in range(nodes)), running, full])


def decided(**spec: object) -> Decision:
    return Scheduler(cluster(), tie_break="first").decide(make_pod("web", requests={"cpu": "1"}, **spec))  # type: ignore[arg-type]


def simulated() -> Simulation:
    pods = [make_pod("web", requests={"cpu": "3"}, priority=7), make_pod("big", requests={"cpu": "64"})]
    return simulate(cluster(), pods, tie_break="first")


# -- frames --------------------------------------------------------------------------------------------------------


def test_a_decision_has_a_row_per_node_the_best_first() -> None:
    decision = decided()

    frame = decision.to_frame()

    assert frame.columns[:5] == ["node", "status", "plugin", "reasons", "total"]
    assert frame.columns[5:] == [scores.plugin for scores in decision.scores]
    assert frame.select("node", "status", "plugin").rows() == [
        ("n2", "chosen", None),
        ("n0", "feasible", None),
        ("n1", "rejected", "NodeResourcesFit"),
    ]
    assert frame["reasons"].to_list() == [None, None, ["Insufficient cpu"]]


def test_the_scores_of_a_row_add_up() -> None:
    frame = decided().to_frame()

    sums = [sum(score or 0 for score in row) for row in frame[:, 5:].rows()]
    assert sums == [total or 0 for total in frame["total"].to_list()]
    assert sums[0] > sums[1] > sums[2] == 0


def test_a_decision_without_scores_has_no_totals() -> None:
    frame = Scheduler(cluster()).decide(make_pod("big", requests={"cpu": "64"})).to_frame()

    assert frame.shape == (3, 5)
    assert frame["total"].to_list() == [None, None, None]


def test_a_simulation_has_a_row_per_pod() -> None:
    assert simulated().to_frame().rows() == [
        ("default", "web", "Pod/web", 7, "n2", None),
        ("default", "big", "Pod/big", 0, None, "0/3 nodes are available: 3 Insufficient cpu."),
    ]


def test_nothing_is_an_empty_frame() -> None:
    assert simulate(cluster(), []).to_frame().shape == (0, 6)
    assert Decision("default/web", None).to_frame().shape == (0, 5)


def test_without_polars_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "polars", None)

    with pytest.raises(InputError, match=r"data frames need polars: pip install 'podium\[frames\]'"):
        decided().to_frame()


# -- notebooks -----------------------------------------------------------------------------------------------------


class Cells(HTMLParser):
    """The text of every cell, and whether every element is closed."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.cells: list[str] = []
        self.feed(html)
        assert not self.open

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.open.append(tag)
        if tag in ("td", "th"):
            self.cells.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open and self.open[-1] in ("td", "th"):
            self.cells[-1] += data


def test_a_decision_shows_scores_and_rejections() -> None:
    decision = decided()
    cells = Cells(decision._repr_html_()).cells

    assert {"Fit", f"{decision.totals['n2']}", "NodeResourcesFit: Insufficient cpu"} <= {*cells}


def test_a_simulation_shows_where_pods_go_and_why_others_wait() -> None:
    html = simulated()._repr_html_()

    assert "2 pending pods: 1 placed, 1 still pending." in html
    assert {"Pod/web", "n2", "0/3 nodes are available: 3 Insufficient cpu."} <= {*Cells(html).cells}


def test_names_cannot_be_markup() -> None:
    decision = Decision("<b>", "<script>alert(1)</script>", ("<script>alert(1)</script>",), error="<i>&")

    assert "<script>" not in decision._repr_html_()
    assert "&lt;i&gt;&amp;" in decision._repr_html_()


SHADES = {
    "the fewest are white": (0, (0, 5, 10), "background: rgba(37, 99, 175, 0.00)"),
    "some are in between": (5, (0, 5, 10), "background: rgba(37, 99, 175, 0.47)"),
    "the most are dark": (10, (0, 5, 10), "background: rgba(37, 99, 175, 0.95); color: #fff"),
    "all alike say nothing": (7, (7, 7), ""),
}


@pytest.mark.parametrize(("number", "among", "style"), SHADES.values(), ids=SHADES)
def test_shades(number: int, among: tuple[int, ...], style: str) -> None:
    assert Shades(among).style(number) == style
