"""`drain`, `fail` and `audit` as HTML: what becomes of running pods."""

from __future__ import annotations

from collections.abc import Sequence

from podium.answers import Audit, Audited, Disrupted, Disruption, Finding, SpecConstraint, WorstCase
from podium.present import audit as audit_text
from podium.present import disruption as disruption_text
from podium.present.html.page import (
    UNLIMITED,
    Cell,
    Heading,
    Markup,
    bar_section,
    element,
    opening,
    page,
    scrolling,
    section,
    table,
    usages,
)
from podium.wording import counted


def disruption_page(found: Disruption | WorstCase) -> str:
    """What becomes of the pods of nodes that go, the budgets, and how full the other nodes get."""
    if isinstance(found, WorstCase):
        disruption, lines = found.disruption, disruption_text.worst_lines(found, width=UNLIMITED)
    else:
        disruption, lines = found, disruption_text.to_lines(found, width=UNLIMITED)
    verb = {"drain": "Draining", "fail": "Losing"}[disruption.kind]
    return page(
        f"{verb} {', '.join(disruption.nodes)}",
        opening(lines),
        _budgets(disruption) if disruption.budgets else None,
        section("What becomes of the pods", scrolling(_fates(disruption.pods))) if disruption.pods else None,
        bar_section("How full the nodes are afterwards", usages(None, disruption.cluster)),
        good=disruption.harmless,
    )


def _budgets(disruption: Disruption) -> Markup:
    rows = []
    for budget in disruption.budgets:
        verdict = f"blocks {len(budget.blocks):,}" if budget.blocks else "violated" if budget.violated else ""
        healthy = (budget.before.desired, budget.before.healthy, budget.worst.healthy, budget.after.healthy)
        rows.append((budget.budget, *healthy, Cell(verdict, class_="bad-cell")))
    titles = ("Needs", "Healthy", "At worst", "Afterwards")
    return section("Budgets", table(["Budget", *(Heading(title, right=True) for title in titles), ""], rows))


def _fates(pods: Sequence[Disrupted]) -> Markup:
    """Those with trouble first; the sort is stable."""
    trouble = ("pending", "blocked", "lost", "returns")
    rows = []
    for pod in sorted(pods, key=lambda pod: pod.fate.value not in trouble):
        fate = Cell(pod.fate.value, class_="bad-cell" if pod.fate.value in trouble else "")
        reasons = [
            pod.reason,
            *map(_constraint, pod.constraints),
            f"makes room for {pod.preempted_by}" if pod.preempted_by else "",
        ]
        rows.append((pod.pod, pod.workload, pod.node, fate, pod.to or "-", _lines(reasons)))
    return table(["Pod", "Workload", "Was on", "Fate", "Goes to", "Because"], rows)


def _constraint(constraint: SpecConstraint) -> str:
    return disruption_text.constraint_text(constraint).removeprefix("- ")


def _lines(texts: Sequence[str]) -> Markup:
    return element("span", *(element("span", text, element("br")) for text in texts if text))


def audit_page(audit: Audit) -> str:
    """Which running pods would no longer fit, which would go elsewhere, and which cannot be decided."""
    unfit, drifted, undecided = (audit.of(each) for each in (Finding.UNFIT, Finding.DRIFTED, Finding.UNDECIDED))
    return page(
        "Audit of running pods",
        opening(audit_text.to_lines(audit, width=UNLIMITED)),
        section(f"No longer fit: {counted(len(unfit), 'pod')}", scrolling(_reasons(unfit))) if unfit else None,
        section(f"Would go elsewhere: {counted(len(drifted), 'pod')}", scrolling(_drifted(drifted)))
        if drifted
        else None,
        section(f"Cannot be decided: {counted(len(undecided), 'pod')}", scrolling(_reasons(undecided)))
        if undecided
        else None,
        good=not unfit,
    )


def _reasons(pods: Sequence[Audited]) -> Markup:
    rows = [(pod.pod, pod.workload, pod.node, pod.best or "-", pod.reason) for pod in pods]
    return table(["Pod", "Workload", "Is on", "Would go to", "Because"], rows)


def _drifted(pods: Sequence[Audited]) -> Markup:
    rows = []
    for pod in sorted(pods, key=lambda pod: (-pod.points, pod.pod)):
        plugins = ", ".join(f"{plugin} {points:+,}" for plugin, points in pod.plugins.items())
        rows.append((pod.pod, pod.node, f"{pod.place:,}/{pod.feasible:,}", pod.best or "-", f"{pod.points:,}", plugins))
    place, by = (Heading(title, right=True) for title in ("Place", "By"))
    return table(["Pod", "Is on", place, "Best", by, "Points by plugin"], rows)
