"""What changes with another release: in words and tables, as a document, as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from podium.answers.upgrade import TOGETHER, Changed, Group, Kind, Upgrade
from podium.present import comparison
from podium.present.decision_text import TOP, WIDTH
from podium.present.text import API_VERSION, Column, Line, shortened, styled, table, to_csv, wrapped
from podium.wording import counted, joined

SAID = {
    Kind.UNFIT: ("no longer fits", "no longer fit"),
    Kind.FITS: ("fits now", "fit now"),
    Kind.MOVES: ("would go elsewhere", "would go elsewhere"),
}
"""What the summary says of one pod, and of several."""


def to_lines(upgrade: Upgrade, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """How many pods change and why, what of the configuration does, and the pods by cause, workload and node pool.

    Of many pods and workloads ten are shown, or `everything`.
    """
    lines = list(summary(upgrade, width))
    lines += _configuration_lines(upgrade, width)
    if upgrade.changed:
        lines += [Line(""), *_cause_lines(upgrade, width)]
        lines += [Line(""), *_group_lines("WORKLOAD", upgrade.by_workload(), width, everything)]
        lines += [Line(""), *_group_lines("NODE POOL", upgrade.by_pool(), width, everything)]
        lines += [Line(""), *_pod_lines(upgrade.changed, width, everything)]
    if upgrade.replay is not None:
        lines += [Line(""), Line("ALL PODS PLACED FROM SCRATCH", "bold")]
        lines += comparison.to_lines(upgrade.replay, width=width, everything=everything)
    return lines


def summary(upgrade: Upgrade, width: int) -> Iterator[Line]:
    """The answer in sentences."""
    counts = {kind: sum(pod.kind is kind for pod in upgrade.changed) for kind in Kind}
    style = "green" if upgrade.is_harmless else "red"
    of = f"From {upgrade.before.name} to {upgrade.after.name}"
    if not upgrade.changed:
        yield from wrapped(f"{of}, none of {counted(upgrade.decided, 'pod')} changes.", width, style=style)
    else:
        parts = [f"{counts[kind]:,} {SAID[kind][counts[kind] != 1]}" for kind in SAID if counts[kind]]
        yield from wrapped(f"{of}, of {counted(upgrade.decided, 'pod')} {joined(parts)}.", width, style=style)
    if upgrade.ties:
        others = f"{counted(upgrade.ties, 'pod')} may go elsewhere by chance: nodes share the highest score."
        yield from wrapped(others, width)


def _configuration_lines(upgrade: Upgrade, width: int) -> Iterator[Line]:
    changes = upgrade.configuration
    titles = (
        (f"REFUSED BY {upgrade.after.name}", changes.refused, "red"),
        (f"REFUSED BY {upgrade.before.name} ALONE", changes.refused_before, ""),
        ("MEANS SOMETHING ELSE", changes.changed, ""),
    )
    for title, problems, style in titles:
        if problems:
            yield Line("")
            yield Line(title, "bold")
            for problem in problems:
                yield from wrapped(problem, width, first="  ", then="    ", style=style)
    if changes.refused:
        text = f"  {upgrade.after.name} decides with its defaults in what follows."
        yield from wrapped(text, width, then="  ", style="dim")


def _cause_lines(upgrade: Upgrade, width: int) -> Iterator[Line]:
    yield Line("BECAUSE", "bold")
    for cause, group in upgrade.by_cause():
        sentence = f"{cause.release}: {cause.sentence}" if cause else TOGETHER
        yield from wrapped(sentence, width, first=f"{group.total:>6,}  ", then=" " * 8)
        if cause:
            gate = f", feature gate {cause.gate}" if cause.gate else ""
            yield from wrapped(f"{cause.name}{gate}", width, first=" " * 8, then=" " * 8, style="dim")


def _group_lines(title: str, groups: Sequence[Group], width: int, everything: bool) -> list[Line]:
    shown = groups if everything else groups[:TOP]
    columns = [
        Column(title, [shortened(group.name, width // 2) for group in shown], right=False),
        Column("ELSEWHERE", [str(group.counts.get(Kind.MOVES, 0)) for group in shown]),
        Column("UNFIT", [str(group.counts.get(Kind.UNFIT, 0)) for group in shown]),
        Column("FIT NOW", [str(group.counts.get(Kind.FITS, 0)) for group in shown]),
    ]
    lines = styled(table(columns), ["bold", *("" for _ in shown)])
    if len(shown) < len(groups):
        lines.append(Line(f"and {len(groups) - len(shown):,} more", "dim"))
    return lines


def _pod_lines(pods: Sequence[Changed], width: int, everything: bool) -> Iterator[Line]:
    order = sorted(pods, key=lambda pod: (pod.kind is not Kind.UNFIT, pod.kind is not Kind.FITS, pod.pod))
    shown = order if everything else order[:TOP]
    columns = [
        Column("POD", [shortened(pod.pod, width // 3) for pod in shown], right=False),
        Column("RUNS ON", [shortened(pod.runs_on or "-", width // 5) for pod in shown], right=False),
        Column("BEFORE", [shortened(places(pod.before), width // 5) for pod in shown], right=False),
        Column("AFTER", [shortened(places(pod.after), width // 5) for pod in shown], right=False),
    ]
    yield from styled(table(columns), ["bold", *("red" if pod.kind is Kind.UNFIT else "" for pod in shown)])
    if len(shown) < len(order):
        yield Line(f"and {counted(len(order) - len(shown), 'more pod')}", "dim")
    for message in dict.fromkeys(pod.message for pod in shown if pod.message):
        yield from wrapped(message, width, style="dim")


def places(nodes: Sequence[str]) -> str:
    """`a`, or `a or 2 more` where several are as good; `-` for nowhere."""
    if not nodes:
        return "-"
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]} or {len(nodes) - 1:,} more"


def to_document(upgrade: Upgrade) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "Upgrade", **upgrade.to_dict()}


def to_rows(upgrade: Upgrade) -> str:
    """A row per pod that changes."""
    rows = [
        (
            *(pod.pod, pod.workload, pod.pool, pod.kind.value, pod.runs_on or ""),
            *(" ".join(pod.before), " ".join(pod.after), " ".join(cause.name for cause in pod.causes)),
        )
        for pod in upgrade.changed
    ]
    return to_csv(("pod", "workload", "pool", "change", "runs_on", "before", "after", "causes"), rows)
