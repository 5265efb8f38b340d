"""Where running pods would go now: in words and tables, as a document, as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from podium.answers import Audit, Audited, Finding
from podium.present.decision_text import NAMED, TOP, WIDTH
from podium.present.text import API_VERSION, Column, Line, shortened, styled, table, to_csv, wrapped
from podium.wording import counted, joined, listed

SUMMARY = {
    Finding.DRIFTED: ("would go elsewhere", "would go elsewhere"),
    Finding.UNFIT: ("would no longer fit where it is", "would no longer fit where they are"),
    Finding.UNDECIDED: ("cannot be decided", "cannot be decided"),
    Finding.SKIPPED: ("more has no other node to go to", "more have no other node to go to"),
}
"""What the summary says of one pod, and of several."""


def to_lines(audit: Audit, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """How many pods are where they would go now; those that no longer fit, and why; those that drifted furthest.

    Of many pods ten are shown, or `everything`.
    """
    unfit, drifted, undecided = (audit.of(each) for each in (Finding.UNFIT, Finding.DRIFTED, Finding.UNDECIDED))
    lines = wrapped(_summary(audit), width, style="red" if unfit else "green")
    if unfit:
        lines += [Line(""), *_reason_lines("WOULD NO LONGER FIT WHERE THEY ARE", unfit, width, everything)]
    if drifted:
        lines += [Line(""), *_plugin_lines(drifted), Line(""), *_drift_lines(drifted, width, everything)]
    if undecided:
        lines += [Line(""), *_reason_lines("CANNOT BE DECIDED", undecided, width, everything)]
    return lines


def _summary(audit: Audit) -> str:
    counts = {finding: len(audit.of(finding)) for finding in Finding}
    decided = len(audit.pods) - counts[Finding.SKIPPED] - counts[Finding.UNDECIDED]
    if not decided:
        return "No running pod to decide again."
    others = [f"{counts[finding]:,} {SUMMARY[finding][counts[finding] != 1]}" for finding in SUMMARY if counts[finding]]
    if decided == 1:
        text = f"The only running pod {'is' if counts[Finding.AGREES] else 'is not'} where it would go now"
    else:
        verb = "is where it" if counts[Finding.AGREES] == 1 else "are where they"
        text = f"{counts[Finding.AGREES]:,} of {decided:,} running pods ({audit.agreement:.0%}) {verb} would go now"
    return f"{text}{f'; {joined(others)}' if others else ''}."


def _reason_lines(title: str, pods: Sequence[Audited], width: int, everything: bool) -> Iterator[Line]:
    groups: dict[str, list[str]] = {}
    for pod in pods:
        groups.setdefault(pod.reason, []).append(f"{pod.pod} ({pod.node})")
    yield Line(title, "bold")
    found = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    shown = found if everything else found[:TOP]
    for reason, names in shown:
        first = f"{len(names):>4,}  "
        yield from wrapped(reason, width, first=first, then=" " * len(first))
        text = listed(names, len(names) if everything else NAMED)
        yield from wrapped(text, width, first=" " * len(first), then=" " * len(first), style="dim")
    rest = sum(len(names) for _, names in found[len(shown) :])
    if rest:
        yield Line(f"and {counted(rest, 'more pod')} for other reasons", "dim")


def _plugin_lines(pods: Sequence[Audited]) -> list[Line]:
    """Which plugins would move pods: how many it is the main reason for, and by how many points in all."""
    main, points = Counter[str](), Counter[str]()
    for pod in pods:
        main[next((plugin for plugin, by in pod.plugins.items() if by > 0), "")] += 1
        points.update({plugin: by for plugin, by in pod.plugins.items() if by > 0})
    order = [plugin for plugin, _ in points.most_common()]
    columns = [
        Column("DRAWN ELSEWHERE BY", order, right=False),
        Column("MOSTLY, PODS", [f"{main[plugin]:,}" for plugin in order]),
        Column("POINTS", [f"{points[plugin]:,}" for plugin in order]),
    ]
    return styled(table(columns), ["bold", *[""] * len(order)])


def _drift_lines(pods: Sequence[Audited], width: int, everything: bool) -> Iterator[Line]:
    order = sorted(pods, key=lambda pod: (-pod.points, pod.pod))
    shown = order if everything else order[:TOP]
    columns = [
        Column("FURTHEST DRIFTED", [shortened(pod.pod, width // 3) for pod in shown], right=False),
        Column("IS ON", [shortened(pod.node, width // 5) for pod in shown], right=False),
        Column("PLACE", [f"{pod.place:,}/{pod.feasible:,}" for pod in shown]),
        Column("BEST", [shortened(pod.best or "-", width // 5) for pod in shown], right=False),
        Column("BY", [f"{pod.points:,}" for pod in shown]),
    ]
    yield from styled(table(columns), ["bold", *[""] * len(shown)])
    if len(shown) < len(order):
        yield Line(f"and {counted(len(order) - len(shown), 'more pod')}", "dim")


def to_document(audit: Audit) -> dict[str, Any]:
    """The audit as plain data, of kind Audit."""
    return {"apiVersion": API_VERSION, "kind": "Audit", **audit.to_dict()}


def to_rows(audit: Audit) -> str:
    """Every pod as CSV."""
    header = ("pod", "workload", "node", "finding", "best", "points", "place", "feasible", "plugins", "reason")
    return to_csv(header, map(_row, audit.pods))


def _row(pod: Audited) -> tuple[Any, ...]:
    plugins = "; ".join(f"{plugin} {points:+}" for plugin, points in pod.plugins.items())
    about = (pod.pod, pod.workload, pod.node, pod.finding.value, pod.best)
    return (*about, pod.points, pod.place or None, pod.feasible_shown, plugins, pod.reason)
