"""Decisions in words and tables: everything that was decided, within the width that was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from podium.engine import Decision, PluginScores
from podium.engine.decision import Eviction, lead, not_looked_at, ranking, runner_up
from podium.framework import Status
from podium.plugins import IN_TREE
from podium.present.explanation import explain, rejections, words

FULL = Status.unschedulable("Insufficient cpu")._replace(plugin="NodeResourcesFit")
SMALL = Status.unresolvable("Insufficient cpu")._replace(plugin="NodeResourcesFit")
TAINTED = Status.unresolvable("node(s) had untolerated taint(s)")._replace(plugin="TaintToleration")

SCORING = (
    "TaintToleration",
    "NodeAffinity",
    "NodeResourcesFit",
    "PodTopologySpread",
    "InterPodAffinity",
    "NodeResourcesBalancedAllocation",
    "ImageLocality",
)


def title_of(plugin: str) -> str:
    return IN_TREE[plugin].title if plugin in IN_TREE else ""


def placed(points: dict[str, dict[str, int]], node: str, **fields: Any) -> Decision:
    """A pod on `node`; points are per plugin and node, with a weight of 1."""
    nodes = sorted(next(iter(points.values())))
    totals = {name: sum(scores[name] for scores in points.values()) for name in nodes}
    best = max(totals.values())
    return Decision(
        "shop/web",
        node,
        feasible=tuple(nodes),
        scores=tuple(PluginScores(name, 1, scores, scores, title_of(name)) for name, scores in points.items()),
        totals=totals,
        ties=tuple(name for name in nodes if totals[name] == best),
        node_count=len(nodes) + len(fields.get("rejected", {})),
        **fields,
    )


def stuck(rejected: dict[str, Status], **fields: Any) -> Decision:
    return Decision("shop/web", None, rejected=rejected, node_count=len(rejected), **fields)


WORDS: dict[str, tuple[Decision, list[str]]] = {
    "a clear winner": (
        placed({"Fit": {"a": 30, "b": 20, "c": 0}, "Image": {"a": 1, "b": 5, "c": 9}}, "a"),
        [
            "Pod shop/web goes to a with 31 points, 6 more than the second, b.",
            "Against b it gains 10 on Fit, and loses 4 on Image.",
            "It fits on 3 of 3 nodes.",
        ],
    ),
    "two share the highest total": (
        placed({"Fit": {"a": 30, "b": 30, "c": 10}}, "b", rejected={"d": FULL}),
        [
            "Pod shop/web goes to b with 30 points, chosen from 2 equally good nodes; the other is a.",
            "That is 20 more than c, the best of the others.",
            "Against c it gains 20 on Fit.",
            "It fits on 3 of 4 nodes.",
        ],
    ),
    "all share it": (
        placed({"Fit": {"a": 30, "b": 30}}, "a"),
        [
            "Pod shop/web goes to a with 30 points, chosen from 2 equally good nodes; the other is b.",
            "It fits on 2 of 2 nodes.",
        ],
    ),
    "one node fits": (
        Decision("shop/web", "a", feasible=("a",), ties=("a",), rejected={"b": FULL}, node_count=2),
        ["Pod shop/web goes to a, the only one of 2 nodes that fits, so nothing is scored."],
    ),
    "the first that fits is enough": (
        Decision("shop/web", "a", feasible=("a",), ties=("a",), absent=Status.unresolvable(), node_count=2),
        ["Pod shop/web goes to a, the first found to fit, so nothing is scored."],
    ),
    "one node fits of those PreFilter left": (
        Decision("shop/web", "a", feasible=("a",), ties=("a",), absent=Status.unresolvable("not named"), node_count=2),
        ["Pod shop/web goes to a, the only one of 2 nodes that fits, so nothing is scored."],
    ),
    "nothing scores": (
        Decision("shop/web", "a", feasible=("a", "b"), ties=("a", "b"), totals={"a": 1, "b": 1}, node_count=2),
        [
            "Pod shop/web goes to a: nothing scores, so every node that fits is as good.",
            "It fits on 2 of 2 nodes.",
        ],
    ),
    "an extender decides": (
        Decision(
            "shop/web",
            "a",
            feasible=("a", "b"),
            ties=("a",),
            totals={"a": 50, "b": 10},
            extender_scores={"http://extender": {"a": 50, "b": 10}},
            node_count=2,
        ),
        [
            "Pod shop/web goes to a with 50 points, 40 more than the second, b.",
            "Against b it gains 40 on http://extender.",
            "It fits on 2 of 2 nodes.",
        ],
    ),
    "nothing fits, evicting could help on some": (
        stuck({"a": FULL, "b": TAINTED, "c": SMALL}, eviction=Eviction(("a",), 0)),
        [
            "Pod shop/web fits on none of the 3 nodes.",
            "0/3 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu.",
            "Evicting pods of a lower priority could make room on 1 of them, not on 2.",
        ],
    ),
    "nothing fits, evicting could help everywhere": (
        stuck({"a": FULL, "b": FULL}, eviction=Eviction(("a", "b"), 0)),
        [
            "Pod shop/web fits on none of the 2 nodes.",
            "0/2 nodes are available: 2 Insufficient cpu.",
            "Evicting pods of a lower priority could make room on each of them.",
        ],
    ),
    "nobody has a lower priority": (
        stuck({"a": FULL, "b": FULL}, eviction=Eviction((), 2)),
        [
            "Pod shop/web fits on none of the 2 nodes.",
            "0/2 nodes are available: 2 Insufficient cpu.",
            "No pod there has a lower priority, so evicting cannot help.",
        ],
    ),
    "nobody has a lower priority where that could help": (
        stuck({"a": FULL, "b": TAINTED}, eviction=Eviction((), 1)),
        [
            "Pod shop/web fits on none of the 2 nodes.",
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) had untolerated taint(s).",
            "No pod on the 1 node where that could help has a lower priority, so evicting cannot help.",
        ],
    ),
    "it may not preempt": (
        stuck({"a": FULL}, eviction=Eviction((), 1, "its preemptionPolicy is Never")),
        [
            "Pod shop/web does not fit on the only node.",
            "0/1 nodes are available: 1 Insufficient cpu.",
            "No pod is evicted for it: its preemptionPolicy is Never.",
        ],
    ),
    "nobody asked about evicting": (
        stuck({"a": FULL}),
        ["Pod shop/web does not fit on the only node.", "0/1 nodes are available: 1 Insufficient cpu."],
    ),
    "the only node does not fit": (
        stuck({"a": TAINTED}, eviction=Eviction((), 0)),
        [
            "Pod shop/web does not fit on the only node.",
            "0/1 nodes are available: 1 node(s) had untolerated taint(s).",
            "Evicting pods would not help.",
        ],
    ),
    "no nodes": (
        Decision("shop/web", None),
        ["Pod shop/web fits nowhere: no nodes available to schedule pods."],
    ),
    "an error": (
        Decision("shop/web", None, error="it waits for a gate", node_count=3),
        ["Pod shop/web cannot be decided: it waits for a gate."],
    ),
}


@pytest.mark.parametrize(("decision", "sentences"), WORDS.values(), ids=WORDS)
def test_says_in_words(decision: Decision, sentences: list[str]) -> None:
    assert words(decision) == sentences


def test_the_text_has_words_scores_and_rejections() -> None:
    points = {"NodeResourcesFit": {"a": 30, "b": 20}, "Mine": {"a": 1, "b": 5}, "ImageLocality": {"a": 0, "b": 0}}
    decision = placed(points, "a", rejected={"c": FULL, "d": SMALL, "e": TAINTED})

    assert decision.explain().splitlines() == [
        "Pod shop/web goes to a with 31 points, 6 more than the second, b.",
        "Against b it gains 10 on NodeResourcesFit, and loses 4 on Mine.",
        "It fits on 2 of 5 nodes.",
        "",
        "  NODE    TOTAL  Fit  Mine",
        "  weight           1     1",
        "* a          31   30     1",
        "  b          25   20     5",
        "Fit=NodeResourcesFit",
        "ImageLocality: 0 on every node",
        "",
        "REJECTED  BECAUSE",
        "       2  NodeResourcesFit: Insufficient cpu",
        "          c, d",
        "       1  TaintToleration: node(s) had untolerated taint(s)",
        "          e",
    ]


def test_wide_text_has_raw_normalised_and_weighted_scores() -> None:
    decision = Decision(
        "shop/web",
        "a",
        feasible=("a", "b"),
        scores=(PluginScores("TaintToleration", 3, {"a": 0, "b": 2}, {"a": 100, "b": 0}),),
        extender_scores={"http://extender": {"a": 7, "b": 8}},
        totals={"a": 307, "b": 8},
        ties=("a",),
        node_count=2,
    )

    assert decision.explain(wide=True).splitlines()[-5:] == [
        "  NODE    TOTAL  TaintToleration  http://extender",
        "  weight                       3",
        "* a         307        0/100/300                7",
        "  b           8            2/0/0                8",
        "raw/normalised/weighted score of each plugin",
    ]


def test_rejections_node_by_node() -> None:
    decision = stuck({"a": FULL, "b": TAINTED})

    assert decision.explain(per_node=True).splitlines()[-3:] == [
        "NODE  REJECTED BECAUSE",
        "a     NodeResourcesFit: Insufficient cpu",
        "b     TaintToleration: node(s) had untolerated taint(s)",
    ]


ABSENT: dict[str, tuple[Status | None, str]] = {
    "PreFilter excluded them": (Status.unresolvable("not named"), "4 nodes were not checked: not named."),
    "enough others were found": (Status.unresolvable(), "4 nodes were not checked: enough others fit."),
}


@pytest.mark.parametrize(("absent", "sentence"), ABSENT.values(), ids=ABSENT)
def test_says_what_was_not_looked_at(absent: Status | None, sentence: str) -> None:
    decision = Decision("shop/web", "a", feasible=("a",), ties=("a",), absent=absent, node_count=5)

    assert not_looked_at(decision) == 4
    assert decision.explain().splitlines()[-1] == sentence


LONG = "ip-10-0-12-{number}.eu-central-1.compute.internal"
WIDTHS: dict[str, tuple[str, tuple[str, ...], int]] = {
    "short names": ("node-{number}", SCORING, 80),
    "names of a cloud": (LONG, SCORING, 80),
    "long names without a domain": ("a-node-of-a-pool-with-a-name-without-an-end-{number}", SCORING, 80),
    "many plugins": ("node-{number}", (*SCORING, *(f"SomePluginOfOurOwn{number}" for number in range(9))), 80),
    "a narrow terminal": (LONG, SCORING, 40),
}


@pytest.mark.parametrize(("name", "plugins", "width"), WIDTHS.values(), ids=WIDTHS)
def test_fits_the_width(name: str, plugins: tuple[str, ...], width: int) -> None:
    nodes = [name.format(number=number) for number in range(5)]
    reason = "node(s) didn't match pod topology spread constraints (missing required label)"
    rejected = {f"{node}-x": Status.unresolvable(reason)._replace(plugin="PodTopologySpread") for node in nodes}
    scores = {plugin: {node: 100 - number for number, node in enumerate(nodes)} for plugin in plugins}
    decision = placed(scores, nodes[0], rejected=rejected)

    for per_node in (False, True):
        lines = decision.explain(width=width, per_node=per_node).splitlines()
        assert all(len(line) <= width or len(line.split()) <= 2 for line in lines), "only a word or name may stick out"
        assert sum(line.startswith("* ") for line in lines) >= 1


def test_names_that_share_a_domain_go_without_it() -> None:
    nodes = [LONG.format(number=number) for number in range(2)]

    text = placed({"Fit": {nodes[0]: 2, nodes[1]: 1}}, nodes[0]).explain()

    assert "* ip-10-0-12-0  " in text
    assert "  ip-10-0-12-1  " in text


def test_of_many_nodes_the_best_ten_are_shown() -> None:
    nodes = {f"node-{number:04}": 5000 - number for number in range(5000)}
    rejected = {f"full-{number:04}": FULL for number in range(2000)}
    decision = placed({"Fit": nodes}, "node-0000", rejected=rejected)

    lines = decision.explain().splitlines()

    assert len(lines) < 25
    assert "  and 4,990 more nodes that fit, with 4,990 to 1 points" in lines
    assert "   2,000  NodeResourcesFit: Insufficient cpu" in lines
    assert "          full-0000, full-0001, full-0002, full-0003, full-0004, full-0005 and" in lines
    everything = decision.explain(every_node=True)
    assert all(node in everything for node in (*nodes, *rejected))


def test_of_many_reasons_ten_are_shown() -> None:
    rejected = {f"node-{number:02}": Status.unschedulable(f"reason {number:02}") for number in range(13)}

    lines = stuck(rejected).explain().splitlines()

    assert lines[-1] == "       3  for 3 other reasons"


def test_the_parts_an_explanation_is_made_of() -> None:
    decision = placed({"Fit": {"a": 3, "b": 3, "c": 1}, "Image": {"a": 0, "b": 0, "c": 1}}, "b", rejected={"d": FULL})

    assert ranking(decision) == ["b", "a", "c"]
    assert runner_up(decision) == "c"
    assert lead(decision, "c") == {"Fit": 2, "Image": -1}
    assert [tuple(found) for found in rejections(decision)] == [("NodeResourcesFit: Insufficient cpu", ("d",))]


def test_the_first_line_shows_how_it_went() -> None:
    assert explain(placed({"Fit": {"a": 3, "b": 1}}, "a"))[0].style == "green"
    assert explain(stuck({"a": FULL}))[0].style == "red"
    assert {line.style for line in explain(stuck({"a": FULL}), width=20)[:2]} == {"red"}
