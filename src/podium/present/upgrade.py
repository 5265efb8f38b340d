"""Renders the supported releases, and what an upgrade changes: as text and tables, as a document, as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from podium.answers.upgrade import TOGETHER, Changed, ChangeGroup, ChangeKind, Upgrade
from podium.engine.release import OLD_RELEASES, release_of
from podium.errors import InputError
from podium.present import API_VERSION, comparison, to_csv
from podium.present.explanation import TOP, WIDTH
from podium.present.text import Column, Line, Sentence, flowing, styled, table, wrapped
from podium.rules import DIFFERENCES, Difference
from podium.rules.gates import RELEASE_NAMES, gates_of
from podium.wording import counted, joined

SAID = {
    ChangeKind.UNFIT: ("no longer fits", "no longer fit"),
    ChangeKind.FITS: ("fits now", "fit now"),
    ChangeKind.MOVES: ("would go elsewhere", "would go elsewhere"),
}
"""The words of the summary for one pod, and for several."""


def to_lines(upgrade: Upgrade, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """How many pods change and why, what changes in the configuration, and the pods by cause, workload and node pool.

    At most ten pods and workloads are shown, unless `everything`.
    """
    lines = flowing(sentences(upgrade), width)
    lines += _configuration_lines(upgrade, width)
    if upgrade.changed:
        lines += [Line(""), *_cause_lines(upgrade, width)]
        lines += [Line(""), *_group_lines("WORKLOAD", upgrade.by_workload(), width, everything)]
        lines += [Line(""), *_group_lines("NODE POOL", upgrade.by_pool(), width, everything)]
        lines += [Line(""), *_pod_lines(upgrade, width, everything)]
    if upgrade.replay is not None:
        lines += [Line(""), Line("ALL PODS PLACED FROM SCRATCH", "bold")]
        lines += comparison.to_lines(upgrade.replay, width=width, everything=everything)
    return lines


def sentences(upgrade: Upgrade) -> Iterator[Sentence]:
    """How many pods change, how many may go elsewhere by chance, and how many could not be compared."""
    counts = {kind: sum(pod.kind is kind for pod in upgrade.changed) for kind in ChangeKind}
    style = "green" if upgrade.is_harmless else "red"
    of = f"From {upgrade.before.name} to {upgrade.after.name}"
    if not upgrade.changed:
        yield Sentence(f"{of}, none of {counted(upgrade.decided, 'pod')} changes.", style)
    else:
        parts = [f"{counts[kind]:,} {SAID[kind][counts[kind] != 1]}" for kind in SAID if counts[kind]]
        yield Sentence(f"{of}, of {counted(upgrade.decided, 'pod')} {joined(parts)}.", style)
    if upgrade.ties:
        yield Sentence(f"{counted(upgrade.ties, 'pod')} may go elsewhere by chance: nodes share the highest score.")
    if upgrade.undecided:
        first = upgrade.undecided[0]
        them = "it" if len(upgrade.undecided) == 1 else "them"
        pods = f"Of these, {counted(len(upgrade.undecided), 'running pod')} could not be compared"
        why = f"neither release finds a node for {them}; `podium explain {first}` says why"
        yield Sentence(f"{pods}: {why}.", "yellow")


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
    for release in changes.unread_by:
        text = f"  {release} decides with its defaults below."
        yield from wrapped(text, width, then="  ", style="dim")


def _cause_lines(upgrade: Upgrade, width: int) -> Iterator[Line]:
    yield Line("BECAUSE", "bold")
    for cause, group in upgrade.by_cause():
        since = f"{cause.release}: " if cause and cause.release else ""
        sentence = f"{since}{upgrade.said(cause)}" if cause else TOGETHER
        yield from wrapped(sentence, width, first=f"{group.total:>6,}  ", then=" " * 8)
        if cause:
            gate = f", feature gate {cause.gate}" if cause.gate else ""
            yield from wrapped(f"{cause.name}{gate}", width, first=" " * 8, then=" " * 8, style="dim")


KINDS = {"Elsewhere": ChangeKind.MOVES, "Unfit": ChangeKind.UNFIT, "Fit now": ChangeKind.FITS}
"""The heading for each kind of change."""


def counts_by_kind(groups: Sequence[ChangeGroup]) -> dict[str, list[str]]:
    """The number of pods of each group by kind of change; kinds without pods are left out."""
    kinds = {title: kind for title, kind in KINDS.items() if any(group.counts.get(kind) for group in groups)}
    return {title: [f"{group.counts.get(kind, 0):,}" for group in groups] for title, kind in kinds.items()}


def _group_lines(title: str, groups: Sequence[ChangeGroup], width: int, everything: bool) -> list[Line]:
    shown = groups if everything else groups[:TOP]
    columns = [
        Column(title, [group.name for group in shown], right=False),
        *(Column(kind.upper(), counts[: len(shown)]) for kind, counts in counts_by_kind(groups).items()),
    ]
    lines = styled(table(columns, width), ["bold", *("" for _ in shown)])
    if len(shown) < len(groups):
        lines.append(Line(f"and {len(groups) - len(shown):,} more", "dim"))
    return lines


def _pod_lines(upgrade: Upgrade, width: int, everything: bool) -> Iterator[Line]:
    order = sorted(
        upgrade.changed, key=lambda pod: (pod.kind is not ChangeKind.UNFIT, pod.kind is not ChangeKind.FITS, pod.pod)
    )
    shown = order if everything else order[:TOP]
    columns = [
        Column("POD", [pod.pod for pod in shown], right=False),
        Column("RUNS ON", [pod.runs_on or "-" for pod in shown], right=False),
        Column("BEFORE", [places(pod.before) for pod in shown], right=False),
        Column("AFTER", [places(pod.after) for pod in shown], right=False),
    ]
    yield from styled(
        table(columns, width), ["bold", *("red" if pod.kind is ChangeKind.UNFIT else "" for pod in shown)]
    )
    if len(shown) < len(order):
        yield Line(f"and {counted(len(order) - len(shown), 'more pod')}", "dim")
    yield from _message_lines(upgrade, shown, width)


def _message_lines(upgrade: Upgrade, pods: Sequence[Changed], width: int) -> Iterator[Line]:
    """Why pods fit nowhere in one of the releases, each reason once."""
    by_message: dict[tuple[ChangeKind, str], list[str]] = {}
    for pod in pods:
        if pod.message:
            by_message.setdefault((pod.kind, pod.message), []).append(pod.pod)
    for place, ((kind, message), names) in enumerate(by_message.items()):
        if not place:
            yield Line("")
        release = upgrade.after if kind is ChangeKind.UNFIT else upgrade.before
        who = names[0] if len(names) == 1 else f"{names[0]} and {counted(len(names) - 1, 'other')}"
        yield from wrapped(f"{who} in {release.name}: {message}", width, then="  ", style="dim")


def places(nodes: Sequence[str]) -> str:
    """`a`, or `a or 2 more` if several nodes are equally good; `-` for nowhere."""
    if not nodes:
        return "-"
    return nodes[0] if len(nodes) == 1 else f"{nodes[0]} or {len(nodes) - 1:,} more"


def to_document(upgrade: Upgrade) -> dict[str, Any]:
    return {"apiVersion": API_VERSION, "kind": "Upgrade", **upgrade.to_dict()}


def to_rows(upgrade: Upgrade) -> str:
    """One row per pod that changes."""
    rows = [
        (
            *(pod.pod, pod.workload, pod.pool, pod.kind.value, pod.runs_on or ""),
            *(" ".join(pod.before), " ".join(pod.after), " ".join(cause.name for cause in pod.causes)),
        )
        for pod in upgrade.changed
    ]
    return to_csv(("pod", "workload", "pool", "change", "runs_on", "before", "after", "causes"), rows)


RECORDED = {
    "v1.8": 1_376,
    "v1.14": 1_798,
    "v1.18": 1_770,
    "v1.29": 3_247,
    "v1.30": 3_236,
    "v1.31": 3_244,
    "v1.32": 3_244,
    "v1.33": 3_244,
    "v1.34": 3_236,
    "v1.35": 3_236,
    "v1.36": 7_685,
    "v1.37": 8_154,
}
"""The number of recorded decisions of the real release, on all of which Podium agrees."""


class ListedRelease(NamedTuple):
    """A release and what it brought."""

    name: str
    version: str
    decisions: int
    differences: tuple[Difference, ...]


def listed_releases(release: str | None = None) -> list[ListedRelease]:
    """All releases, or one."""
    names = (*OLD_RELEASES, *RELEASE_NAMES) if release is None else (release_of(release).name,)
    return [
        ListedRelease(
            name, release_of(name).version, RECORDED[name], tuple(d for d in DIFFERENCES if d.release == name)
        )
        for name in names
    ]


def release_lines(release: str | None = None, *, width: int = WIDTH) -> list[Line]:
    """The releases with their changes; for a single release, also its feature gates."""
    found = listed_releases(release)
    columns = [
        Column("RELEASE", [each.name for each in found], right=False),
        Column("RECORDED FROM", [each.version for each in found], right=False),
        Column("DECISIONS", [f"{each.decisions:,}" for each in found]),
        Column("AGREE", ["100%" for _ in found]),
    ]
    lines = styled(table(columns, width), ["bold", *("" for _ in found)])
    for each in reversed(found):
        if each.differences and each.name != RELEASE_NAMES[0]:
            lines += [Line(""), Line(f"Since {each.name}", "bold"), *_difference_lines(each.differences, width)]
    if release is not None and found[0].name in RELEASE_NAMES:
        lines += [Line(""), *_gate_lines(found[0].name)]
    return lines


def _difference_lines(differences: tuple[Difference, ...], width: int) -> Iterator[Line]:
    for each in differences:
        gate = f" ({each.gate})" if each.gate else ""
        yield from wrapped(f"{each.sentence}{gate}", width, first="  ", then="    ")


def _gate_lines(release: str) -> list[Line]:
    gates = gates_of(release)
    columns = [
        Column("FEATURE GATE", list(gates), right=False),
        Column("DEFAULT", ["on" if stage.default else "off" for stage in gates.values()], right=False),
        Column("STAGE", [stage.maturity for stage in gates.values()], right=False),
        Column("", ["locked" if stage.locked else "" for stage in gates.values()], right=False),
    ]
    return styled(table(columns), ["bold", *("" for _ in gates)])


def release_document(release: str | None = None) -> dict[str, Any]:
    """The releases as plain data."""
    items = [
        {
            "name": each.name,
            "version": each.version,
            "recordedDecisions": each.decisions,
            "agree": each.decisions,
            "differences": [_difference(one) for one in each.differences],
            "featureGates": _gates(each.name),
        }
        for each in listed_releases(release)
    ]
    return {"apiVersion": API_VERSION, "kind": "ReleaseList", "items": items}


def _difference(one: Difference) -> dict[str, Any]:
    return {"name": one.name, "area": one.area, "sentence": one.sentence, "featureGate": one.gate or None}


def _gates(release: str) -> dict[str, Any]:
    if release not in RELEASE_NAMES:
        return {}
    return {
        name: {"default": stage.default, "stage": stage.maturity, "locked": stage.locked}
        for name, stage in gates_of(release).items()
    }


def release_rows(release: str | None = None) -> str:
    """One row per difference."""
    rows = [
        (each.name, one.area, one.name, one.sentence) for each in listed_releases(release) for one in each.differences
    ]
    if not rows:
        raise InputError(f"{release} has no list of differences; only v1.29 and later have one")
    return to_csv(("release", "area", "name", "sentence"), rows)
