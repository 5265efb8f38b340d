"""What stands between a pod and a node: in words, as a document, as CSV."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podium.answers import WhyNot
from podium.engine.decision import ranking, why
from podium.present.decision_text import WIDTH
from podium.present.text import API_VERSION, Column, Line, styled, table, to_csv, wrapped
from podium.wording import counted


def to_lines(answer: WhyNot, *, width: int = WIDTH) -> list[Line]:
    """Where the pod goes, what keeps it off the node, and what would turn it."""
    sentences = list(_words(answer))
    lines = [line for sentence in sentences for line in wrapped(sentence, width)]
    lines[0] = lines[0]._replace(style="green" if answer.goes_there else "red")
    if answer.blockers:
        lines += [Line(""), Line(f"WHAT KEEPS IT OFF {answer.node}", "bold")]
        for status in answer.blockers:
            lines += wrapped(why(status), width, first="  ", then="    ")
    elif answer.behind_by_plugin:
        lines += [Line(""), *_score_lines(answer)]
    if not answer.goes_there:
        lines += [Line(""), *_suggestion_lines(answer, width)]
    return lines


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


def _score_lines(answer: WhyNot) -> list[Line]:
    """Plugin by plugin, the points of the chosen node and of this one."""
    chosen, plugins = answer.decision.node or "", answer.behind_by_plugin
    scores = {one.plugin: one.weighted for one in answer.decision.scores} | dict(answer.decision.extender_scores)
    columns = [
        Column("PLUGIN", list(plugins), right=False),
        Column(chosen, [str(scores[plugin][chosen]) for plugin in plugins]),
        Column(answer.node, [str(scores[plugin][answer.node]) for plugin in plugins]),
        Column("DIFFERENCE", [f"{-points:+}" for points in plugins.values()]),
    ]
    return styled(table(columns), ["bold", *[""] * len(plugins)])


def _suggestion_lines(answer: WhyNot, width: int) -> Iterator[Line]:
    if not answer.suggestions:
        yield Line("No change was found that sends it there.", "red")
        return
    yield Line("ANY ONE OF THESE SENDS IT THERE", "bold")
    for number, suggestion in enumerate(answer.suggestions, 1):
        first = f"{number:>3}. "
        yield from wrapped(suggestion.text, width, first=first, then=" " * len(first))


def to_document(answer: WhyNot) -> dict[str, Any]:
    """The answer as plain data, of kind WhyNot."""
    return {"apiVersion": API_VERSION, "kind": "WhyNot", **answer.to_dict()}


def to_rows(answer: WhyNot) -> str:
    """The suggestions as CSV, a row per change."""
    rows = [
        (number, change.kind, " ".join(change.on), change.text)
        for number, suggestion in enumerate(answer.suggestions, 1)
        for change in suggestion.changes
    ]
    return to_csv(("suggestion", "kind", "on", "change"), rows)
