"""Renders drains, failures and audits: as text and tables, as a document, as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from podium.answers import Audit, Audited, Disrupted, Disruption, Fate, Finding, SpecConstraint, WorstCase
from podium.answers.disruption import DELETE_EMPTY_DIR_DATA, FORCE, IGNORE_DAEMON_SETS, DrainFlag
from podium.model.objects import REGION, ZONE
from podium.present import API_VERSION, to_csv
from podium.present.explanation import NAMED, TOP, WIDTH
from podium.present.text import Column, Line, Sentence, flowing, styled, table, table_with_text, wrapped
from podium.wording import counted, joined, listed

FEW = 3
"""How many of the pods that need a flag are named."""
VERBS = {
    Fate.MOVES: ("finds another node", "find another node"),
    Fate.PENDING: ("stays pending", "stay pending"),
    Fate.BLOCKED: ("is blocked", "are blocked"),
    Fate.LOST: ("is lost", "are lost"),
    Fate.RETURNS: ("comes back", "come back"),
}
"""The verb for one pod, and for several."""


def to_lines(disruption: Disruption, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """A sentence about the pods; which pods are blocked, lost or pending, and why; where the others go; budgets.

    At most ten workloads and pods are shown, unless `everything`.
    """
    lines = flowing(sentences(disruption), width)
    parts = (
        _group_lines("BLOCKED", disruption.of(Fate.BLOCKED), width, everything),
        _group_lines("LOST", disruption.of(Fate.LOST), width, everything),
        _group_lines("STAY PENDING", disruption.of(Fate.PENDING), width, everything),
        _group_lines("COME BACK, AS THEY TOLERATE THE CORDON", disruption.of(Fate.RETURNS), width, everything),
        _preempted_lines([pod for pod in disruption.pods if pod.preempted_by], width, everything),
        _move_lines(disruption.of(Fate.MOVES), width, everything),
        _budget_lines(disruption, width),
    )
    for part in parts:
        if part:
            lines += [Line(""), *part]
    return lines


def worst_lines(worst: WorstCase, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """The worst loss, whether all were tried, and what happens to the pods."""
    lines = flowing(_search_sentences(worst), width)
    return [*lines, *to_lines(worst.disruption, width=width, everything=everything)]


def sentences(found: Disruption | WorstCase) -> list[Sentence]:
    """What happens to the pods, what `kubectl drain` asks for, and how the worst loss was found."""
    if isinstance(found, WorstCase):
        return [*_search_sentences(found), *sentences(found.disruption)]
    # The summary already says that pods of DaemonSets stay, and nobody drains without this flag.
    flags = [flag for flag in found.flags if flag.flag != IGNORE_DAEMON_SETS]
    summary = Sentence(_summary(found), "green" if found.harmless else "red")
    return [summary, *(Sentence(_flag_text(flag)) for flag in flags)]


def _search_sentences(worst: WorstCase) -> list[Sentence]:
    nodes = worst.disruption.nodes
    what = f"{worst.domain}, {counted(len(nodes), 'node')}" if worst.domain else _named(nodes)
    possible = f"{worst.possible:,} {_sets(worst)}"
    if worst.exhaustive:
        how = f"All {possible} were tried: none is worse."
    else:
        how = f"Of {possible} {worst.tried:,} were tried, the most promising ones: another one may be worse."
    return [Sentence(f"Worst to lose: {what}.", "bold"), Sentence(how)]


def _sets(worst: WorstCase) -> str:
    """The name of what was tried: nodes, sets of nodes or domains."""
    key, number = worst.domain.partition("=")[0], len(worst.disruption.nodes)
    if worst.domain:
        return {ZONE: "zones", REGION: "regions"}.get(key, f"values of {key}")
    return "nodes" if number == 1 else f"sets of {number:,} nodes"


def _named(nodes: Sequence[str]) -> str:
    return joined(nodes) if len(nodes) <= NAMED else listed(nodes, NAMED)


FLAGS = {
    DELETE_EMPTY_DIR_DATA: ("pod loses what is in its emptyDir volumes", "pods lose what is in their emptyDir volumes"),
    FORCE: ("pod has no controller and is gone for good", "pods have no controller and are gone for good"),
}
"""What each flag of `kubectl drain` accepts: for one pod, and for several."""


def _flag_text(flag: DrainFlag) -> str:
    number = len(flag.pods)
    what = f"{number:,} {FLAGS[flag.flag][number != 1]}"
    return f"kubectl drain refuses without {flag.flag}: {what} ({listed(flag.pods, FEW)})."


def _summary(disruption: Disruption) -> str:
    own = [pod for pod in disruption.pods if not pod.preempted_by]
    fates = Counter(pod.fate for pod in own)
    gone = len(own) - fates[Fate.STAYS] - fates[Fate.TERMINATING]
    nodes, one = _named(disruption.nodes), len(disruption.nodes) == 1
    what = f"When {nodes} {'is' if one else 'are'} drained"
    if disruption.kind == "fail":
        what = f"When {nodes} {'fails' if one else 'fail'}"
    if not gone:
        return f"{what}, no pod has to go elsewhere."
    parts = [f"{fates[fate]:,} {VERBS[fate][fates[fate] != 1]}" for fate in VERBS if fates[fate]]
    text = f"of {counted(gone, 'pod')} {joined(parts)}"
    if len(parts) == 1:
        every = {1: "the pod", 2: "both pods"}.get(gone, f"all {gone:,} pods")
        text = f"{every} {next(VERBS[fate][gone != 1] for fate in VERBS if fates[fate])}"
    staying = [pod for pod in own if pod.fate is Fate.STAYS]
    return f"{what}, {text}{_staying(staying, disruption.kind, 'it' if one else 'them') if staying else ''}."


def _staying(pods: Sequence[Disrupted], kind: str, them: str) -> str:
    """What happens to the pods that belong to their nodes."""
    daemons = [pod for pod in pods if pod.workload.startswith("DaemonSet/")]
    what = "static pod" if not daemons else "DaemonSet pod" if len(daemons) == len(pods) else "DaemonSet or static pod"
    verbs = ("goes down with", "go down with") if kind == "fail" else ("stays on", "stay on")
    return f"; {counted(len(pods), what)} {verbs[len(pods) != 1]} {them}"


def _group_lines(title: str, pods: Sequence[Disrupted], width: int, everything: bool) -> list[Line]:
    """The pods of a group; those with the same reason together."""
    groups: dict[tuple[str, tuple[SpecConstraint, ...]], list[str]] = {}
    for pod in pods:
        groups.setdefault((pod.reason, pod.constraints), []).append(f"{pod.pod} ({pod.node})")
    lines = [Line(title, "bold")] if groups else []
    shown = list(groups.items()) if everything else list(groups.items())[:TOP]
    for (reason, constraints), names in shown:
        lines += wrapped(listed(names, len(names) if everything else NAMED), width)
        lines += wrapped(reason, width, first="    ", then="    ", style="red")
        for constraint in constraints:
            lines += wrapped(f"- {constraint_text(constraint)}", width, first="    ", then="      ")
    rest = len(pods) - sum(len(names) for _, names in shown)
    return [*lines, Line(f"and {counted(rest, 'more pod')}", "dim")] if rest else lines


def constraint_text(constraint: SpecConstraint) -> str:
    """A constraint that rules out nodes, in words."""
    nodes = counted(constraint.nodes, "node")
    what = f"{constraint.kind} ({constraint.what})" if constraint.what else constraint.kind
    alone = ": without it, it would fit" if constraint.alone else ""
    return f"{what} rules out {nodes}{alone}"


def _preempted_lines(pods: Sequence[Disrupted], width: int, everything: bool) -> list[Line]:
    shown = pods if everything else pods[:TOP]
    columns = [
        Column("MAKES ROOM", [pod.pod for pod in shown], right=False),
        Column("FOR", [pod.preempted_by for pod in shown], right=False),
        Column("ON", [pod.node for pod in shown], right=False),
        Column("GOES TO", [pod.to or "-" for pod in shown], right=False),
    ]
    lines = styled(table(columns, width), ["bold", *[""] * len(shown)]) if shown else []
    rest = len(pods) - len(shown)
    return [*lines, Line(f"and {counted(rest, 'more pod')}", "dim")] if rest else lines


def _move_lines(pods: Sequence[Disrupted], width: int, everything: bool) -> list[Line]:
    """Where the pods of each workload go."""
    by_workload: dict[str, Counter[str]] = {}
    for pod in pods:
        name = f"{pod.pod.partition('/')[0]} {pod.workload}"
        by_workload.setdefault(name, Counter())[pod.to or ""] += 1
    if not by_workload:
        return []
    found = sorted(by_workload.items(), key=lambda item: (-item[1].total(), item[0]))
    shown = found if everything else found[:TOP]
    columns = [
        Column("WORKLOAD", [name for name, _ in shown], right=False),
        Column("PODS", [f"{nodes.total():,}" for _, nodes in shown]),
    ]
    texts = []
    for _, nodes in shown:
        most_first = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
        names = [node if count == 1 else f"{node} x{count:,}" for node, count in most_first]
        texts.append(listed(names, len(names) if everything else NAMED))
    lines = table_with_text(columns, "GO TO", texts, width)
    rest = sum(nodes.total() for _, nodes in found[len(shown) :])
    return [*lines, Line(f"and {counted(rest, 'more pod')} of other workloads", "dim")] if rest else lines


def _budget_lines(disruption: Disruption, width: int) -> list[Line]:
    budgets = disruption.budgets
    if not budgets:
        return []
    columns = [
        Column("BUDGET", [budget.budget for budget in budgets], right=False),
        Column("NEEDS", [f"{budget.before.desired:,}" for budget in budgets]),
        Column("HEALTHY", [f"{budget.before.healthy:,}" for budget in budgets]),
        Column("AT WORST", [f"{budget.worst.healthy:,}" for budget in budgets]),
        Column("AFTER", [f"{budget.after.healthy:,}" for budget in budgets]),
        Column("", [_verdict(len(budget.blocks), budget.violated) for budget in budgets], right=False),
    ]
    styles = ["red" if budget.violated or budget.blocks else "" for budget in budgets]
    return styled(table(columns, width), ["bold", *styles])


def _verdict(blocks: int, violated: bool) -> str:
    return f"blocks {counted(blocks, 'pod')}" if blocks else "violated" if violated else ""


def to_document(found: Disruption | WorstCase) -> dict[str, Any]:
    """What happens to the pods, as plain data, of kind Drain or Failure."""
    kind = found.disruption.kind if isinstance(found, WorstCase) else found.kind
    return {"apiVersion": API_VERSION, "kind": {"drain": "Drain", "fail": "Failure"}[kind], **found.to_dict()}


def to_rows(disruption: Disruption) -> str:
    """Every pod as CSV."""
    return to_csv(("pod", "workload", "from", "fate", "to", "preempted by", "pinned by", "reason"), _rows(disruption))


def _rows(disruption: Disruption) -> Iterator[tuple[Any, ...]]:
    for pod in disruption.pods:
        pinned = "; ".join(constraint.kind for constraint in pod.constraints)
        yield pod.pod, pod.workload, pod.node, pod.fate.value, pod.to, pod.preempted_by, pinned, pod.reason


FINDINGS = {
    Finding.DRIFTED: ("would go elsewhere", "would go elsewhere"),
    Finding.UNFIT: ("would no longer fit where it is", "would no longer fit where they are"),
    Finding.UNDECIDED: ("cannot be decided", "cannot be decided"),
    Finding.SKIPPED: ("DaemonSet or static pod belongs to its node", "DaemonSet or static pods belong to their nodes"),
}
"""The words of the summary for one pod, and for several."""


def audit_lines(audit: Audit, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """How many pods would stay; the pods that no longer fit, and why; those that drifted furthest.

    At most ten pods are shown, unless `everything`.
    """
    unfit, drifted, undecided = (audit.of(each) for each in (Finding.UNFIT, Finding.DRIFTED, Finding.UNDECIDED))
    lines = flowing(audit_sentences(audit), width)
    if unfit:
        lines += [Line(""), *_reason_lines("WOULD NO LONGER FIT WHERE THEY ARE", unfit, width, everything)]
    if drifted:
        lines += [Line(""), *_plugin_lines(drifted), Line(""), *_drift_lines(drifted, width, everything)]
    if undecided:
        lines += [Line(""), *_reason_lines("CANNOT BE DECIDED", undecided, width, everything)]
    return lines


def audit_sentences(audit: Audit) -> list[Sentence]:
    """How many pods would stay, and what would become of the others."""
    return [Sentence(_audit_summary(audit), "red" if audit.of(Finding.UNFIT) else "green")]


def _audit_summary(audit: Audit) -> str:
    counts = {finding: len(audit.of(finding)) for finding in Finding}
    decided = len(audit.pods) - counts[Finding.SKIPPED] - counts[Finding.UNDECIDED]
    if not decided:
        return "No running pod to decide again."
    others = [
        f"{counts[finding]:,} {FINDINGS[finding][counts[finding] != 1]}" for finding in FINDINGS if counts[finding]
    ]
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
    """The plugins that would move pods: for how many pods each is the main reason, and by how many points in all."""
    main, points = Counter[str](), Counter[str]()
    for pod in pods:
        main[next((plugin for plugin, by in pod.plugins.items() if by > 0), "")] += 1
        points.update({plugin: by for plugin, by in pod.plugins.items() if by > 0})
    order = [plugin for plugin, _ in points.most_common()]
    columns = [
        Column("DRAWN ELSEWHERE, MOSTLY BY", order, right=False),
        Column("PODS", [f"{main[plugin]:,}" for plugin in order]),
        Column("POINTS IN ALL", [f"{points[plugin]:,}" for plugin in order]),
    ]
    return styled(table(columns), ["bold", *[""] * len(order)])


def _drift_lines(pods: Sequence[Audited], width: int, everything: bool) -> Iterator[Line]:
    order = sorted(pods, key=lambda pod: (-pod.points, pod.pod))
    shown = order if everything else order[:TOP]
    columns = [
        Column("FURTHEST DRIFTED", [pod.pod for pod in shown], right=False),
        Column("IS ON", [pod.node for pod in shown], right=False),
        Column("PLACE", [f"{pod.place:,}/{pod.feasible:,}" for pod in shown]),
        Column("BEST", [pod.best or "-" for pod in shown], right=False),
        Column("BY", [f"{pod.points:,}" for pod in shown]),
    ]
    yield from styled(table(columns, width), ["bold", *[""] * len(shown)])
    if len(shown) < len(order):
        yield Line(f"and {counted(len(order) - len(shown), 'more pod')}", "dim")


def audit_document(audit: Audit) -> dict[str, Any]:
    """The audit as plain data, of kind Audit."""
    return {"apiVersion": API_VERSION, "kind": "Audit", **audit.to_dict()}


def audit_rows(audit: Audit) -> str:
    """Every pod as CSV."""
    header = ("pod", "workload", "node", "finding", "best", "points", "place", "feasible", "plugins", "reason")
    return to_csv(header, map(_audit_row, audit.pods))


def _audit_row(pod: Audited) -> tuple[Any, ...]:
    plugins = "; ".join(f"{plugin} {points:+}" for plugin, points in pod.plugins.items())
    about = (pod.pod, pod.workload, pod.node, pod.finding.value, pod.best)
    return (*about, pod.points, pod.place or None, pod.feasible_shown, plugins, pod.reason)
