"""Renders the answers of why-not: what keeps a pod off a node, or off all of them, and the changes that help."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from podium.answers import WhyNot, WhyNowhere
from podium.engine.decision import ranking, why
from podium.present import API_VERSION, to_csv
from podium.present.explanation import WIDTH, obstacle_text
from podium.present.text import Column, Line, Sentence, flowing, styled, table, wrapped
from podium.wording import counted


def why_not_lines(answer: WhyNot, *, width: int = WIDTH) -> list[Line]:
    """Where the pod goes, what keeps it off the node, and which changes would send it there."""
    lines = flowing(why_not_sentences(answer), width)
    if answer.blockers and not answer.decision.error:
        lines += [Line(""), Line(f"WHAT KEEPS IT OFF {answer.node}", "bold")]
        for status in answer.blockers:
            lines += wrapped(why(status), width, first="  ", then="    ")
            if obstacles := answer.obstacles.get(status.plugin):
                lines += wrapped(obstacle_text(obstacles), width, first="    ", then="      ")
    elif answer.behind_by_plugin:
        lines += [Line(""), *_compared_score_lines(answer)]
    if not answer.goes_there:
        title, none = "ANY ONE OF THESE SENDS IT THERE", "No change was found that sends it there."
        texts = [suggestion.text for suggestion in answer.suggestions]
        lines += [Line(""), *_suggestion_lines(texts, title, none, width)]
    return lines


def why_not_sentences(answer: WhyNot) -> list[Sentence]:
    """Where the pod goes, and whether it fits on the node."""
    first, *others = _words(answer)
    return [Sentence(first, "green" if answer.goes_there else "red"), *map(Sentence, others)]


def _words(answer: WhyNot) -> Iterator[str]:
    decision, node = answer.decision, answer.node
    if answer.goes_there:
        yield f"Pod {answer.pod} goes to {node}: nothing keeps it off."
        return
    if decision.error:
        yield f"Pod {answer.pod} cannot be decided: {decision.error}."
        return
    if decision.node is None:
        yield f"Pod {answer.pod} does not go to {node}: it fits on no node."
        return
    yield f"Pod {answer.pod} goes to {decision.node}, not to {node}."
    if answer.behind is not None:
        place = ranking(decision).index(node) + 1
        if answer.behind:
            points = f"with {counted(decision.totals[node], 'point')}, {answer.behind:,} behind"
            yield f"It fits on {node} too, number {place:,} of {len(decision.feasible):,} {points}."
        else:
            yield f"It fits on {node} too, which has as many points: the tie was broken the other way."


def _compared_score_lines(answer: WhyNot) -> list[Line]:
    """Per plugin, the points of the chosen node and of this node."""
    chosen, plugins = answer.decision.node or "", answer.behind_by_plugin
    scores = {one.plugin: one.weighted for one in answer.decision.scores} | dict(answer.decision.extender_scores)
    columns = [
        Column("PLUGIN", list(plugins), right=False),
        Column(chosen, [str(scores[plugin][chosen]) for plugin in plugins]),
        Column(answer.node, [str(scores[plugin][answer.node]) for plugin in plugins]),
        Column("DIFFERENCE", [f"{-points:+}" for points in plugins.values()]),
    ]
    return styled(table(columns), ["bold", *[""] * len(plugins)])


def _suggestion_lines(suggestions: Sequence[str], title: str, none: str, width: int) -> Iterator[Line]:
    if not suggestions:
        yield Line(none, "red")
        return
    yield Line(title, "bold")
    for number, text in enumerate(suggestions, 1):
        first = f"{number:>3}. "
        yield from wrapped(text, width, first=first, then=" " * len(first))


def why_nowhere_lines(answer: WhyNowhere, *, width: int = WIDTH) -> list[Line]:
    """That the pod fits nowhere, the nodes it comes closest to, and the changes that let it run."""
    lines = flowing(why_nowhere_sentences(answer), width)
    if answer.closest:
        lines += [Line(""), Line("THE CLOSEST NODES", "bold")]
    for each in answer.closest:
        for status in each.blockers:
            lines += wrapped(f"{each.node}: {why(status)}", width, first="  ", then="    ")
            if obstacles := each.obstacles.get(status.plugin):
                lines += wrapped(obstacle_text(obstacles), width, first="    ", then="      ")
    if not answer.runs:
        title, none = "ANY ONE OF THESE LETS IT RUN", "No change was found that lets it run."
        lines += [Line(""), *_suggestion_lines(texts_with_nodes(answer), title, none, width)]
    return lines


def why_nowhere_sentences(answer: WhyNowhere) -> list[Sentence]:
    """Where the pod goes, or that it fits on no node."""
    decision = answer.decision
    if decision.node is not None:
        return [Sentence(f"Pod {answer.pod} goes to {decision.node}: nothing keeps it from running.", "green")]
    if decision.error:
        return [Sentence(f"Pod {answer.pod} cannot be decided: {decision.error}.", "red")]
    return [Sentence(f"Pod {answer.pod} fits on none of the {counted(decision.node_count, 'node')}.", "red")]


def texts_with_nodes(answer: WhyNowhere) -> list[str]:
    """Each suggestion with the node that the pod goes to then."""
    return [f"{each.text}: it goes to {each.decision.node}" for each in answer.suggestions]


def why_not_document(answer: WhyNot | WhyNowhere) -> dict[str, Any]:
    """The answer as plain data, of kind WhyNot."""
    return {"apiVersion": API_VERSION, "kind": "WhyNot", **answer.to_dict()}


def why_not_rows(answer: WhyNot | WhyNowhere) -> str:
    """The suggestions as CSV, a row per change."""
    rows = [
        (number, change.kind, " ".join(change.on), change.text)
        for number, suggestion in enumerate(answer.suggestions, 1)
        for change in suggestion.changes
    ]
    return to_csv(("suggestion", "kind", "on", "change"), rows)
