"""`explain` and `why-not` as HTML: the heat map of nodes by plugins, and what rejected the others."""

from __future__ import annotations

from podium.answers import WhyNot
from podium.engine import Decision
from podium.engine.decision import not_looked_at, scored, why
from podium.present import why_not as why_not_text
from podium.present.decision_text import silent_plugins, words
from podium.present.explanation import Explained, notes
from podium.present.html.page import UNLIMITED, Cell, Heading, Markup, element, opening, page, scrolling, section, table
from podium.present.notebook import heat_map, rejection_table
from podium.wording import counted

_LEGEND = "Weighted scores. The darker, the more of a plugin's points; each plugin has its own scale."


def explanation_page(explained: Explained) -> str:
    """A decision: in words, the heat map, preemption where it was asked for, the rejections."""
    decision = explained.decision
    sentences = [*words(decision), *notes(explained)]
    title = f"Where {decision.pod} goes"
    return page(title, sentences, *decision_sections(decision), good=decision.node is not None)


def why_not_page(answer: WhyNot) -> str:
    """What keeps a pod off a node, what would turn it, and the decision as it is."""
    lines = why_not_text.to_lines(answer, width=UNLIMITED)
    return page(
        f"Why {answer.pod} does not go to {answer.node}" if not answer.goes_there else f"{answer.pod} on {answer.node}",
        opening(lines),
        _blockers(answer),
        _behind(answer),
        _suggestions(answer),
        *decision_sections(answer.decision),
        good=answer.goes_there,
    )


def decision_sections(decision: Decision) -> list[Markup | None]:
    """The parts of a report about one decision."""
    fits = f"{len(decision.feasible):,} of {decision.node_count:,} nodes fit"
    rest = not_looked_at(decision)
    unseen = f"No filter looked at {counted(rest, 'more node')}." if rest and not decision.error else ""
    return [
        section(
            f"Scores: {fits}",
            scrolling(heat_map(decision)),
            note=" ".join(filter(None, (_LEGEND, silent_plugins(decision)))),
        )
        if scored(decision)
        else None,
        section("Evicting pods makes room", _candidates(decision)) if decision.candidates else None,
        section(f"Rejected: {counted(len(decision.rejected), 'node')}", rejection_table(decision), note=unseen)
        if decision.rejected
        else None,
    ]


def _candidates(decision: Decision) -> Markup:
    order = sorted(decision.candidates, key=lambda one: (one.node != decision.nominated, one.costs, one.node))
    rows = [
        (
            Cell(one.node, class_="chosen" if one.node == decision.nominated else ""),
            one.pdb_violations,
            one.victims[0].priority,
            ", ".join(pod.key for pod in one.victims),
        )
        for one in order
    ]
    return table(["Node", Heading("Budgets violated", right=True), Heading("Highest", right=True), "Victims"], rows)


def _blockers(answer: WhyNot) -> Markup | None:
    if not answer.blockers:
        return None
    items = [element("li", why(status)) for status in answer.blockers]
    return section(f"What keeps it off {answer.node}", element("ol", *items))


def _behind(answer: WhyNot) -> Markup | None:
    plugins = answer.behind_by_plugin
    if not plugins:
        return None
    scores = {one.plugin: one.weighted for one in scored(answer.decision)}
    chosen = answer.decision.node or ""
    rows = [
        (plugin, scores[plugin][chosen], scores[plugin][answer.node], Cell(f"{-points:+}", class_=_tone(-points)))
        for plugin, points in plugins.items()
    ]
    titles = (chosen, answer.node, "Difference")
    return section("Points compared", table(["Plugin", *(Heading(title, right=True) for title in titles)], rows))


def _tone(points: int) -> str:
    return "bad-cell" if points < 0 else "chosen"


def _suggestions(answer: WhyNot) -> Markup | None:
    if answer.goes_there:
        return None
    items = [element("li", suggestion.text) for suggestion in answer.suggestions]
    content = element("ol", *items) if items else element("p", "No change was found that sends it there.")
    return section("Any one of these sends it there", content)
