"""How each result of a question looks: the text, the document, the rows and the page that its command writes."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable
from html import escape
from typing import TYPE_CHECKING, Any, NamedTuple

from podium import answers
from podium.answers.consolidation import Consolidation
from podium.answers.explanation import Explained
from podium.answers.simulation import Simulation
from podium.errors import PodiumError
from podium.present import (
    capacity,
    comparison,
    disruption,
    explanation,
    html_reports,
    plan,
    simulation,
    upgrade,
    why_not,
)
from podium.present.text import Line

if TYPE_CHECKING:
    import polars

FRAME_HEIGHT = 520
"""The height of a report in a notebook, in pixels."""


class Presenter(NamedTuple):
    """How one kind of result is rendered."""

    lines: Callable[[Any], Iterable[Line]]
    document: Callable[[Any], dict[str, Any]]
    rows: Callable[[Any], str]
    page: Callable[[Any], str]


PRESENTERS: dict[type, Presenter] = {
    Explained: Presenter(
        explanation.to_lines, explanation.to_document, explanation.to_rows, html_reports.explanation_page
    ),
    answers.WhyNot: Presenter(
        why_not.why_not_lines, why_not.why_not_document, why_not.why_not_rows, html_reports.why_not_page
    ),
    answers.WhyNowhere: Presenter(
        why_not.why_nowhere_lines, why_not.why_not_document, why_not.why_not_rows, html_reports.why_nowhere_page
    ),
    Simulation: Presenter(
        simulation.to_lines, simulation.to_document, simulation.to_rows, html_reports.simulation_page
    ),
    answers.Capacity: Presenter(
        capacity.to_lines,
        capacity.to_document,
        capacity.to_rows,
        lambda found: html_reports.capacity_page(found, None),
    ),
    answers.Disruption: Presenter(
        disruption.to_lines, disruption.to_document, disruption.to_rows, html_reports.disruption_page
    ),
    answers.Audit: Presenter(
        disruption.audit_lines, disruption.audit_document, disruption.audit_rows, html_reports.audit_page
    ),
    answers.Comparison: Presenter(
        comparison.to_lines, comparison.to_document, comparison.to_rows, html_reports.comparison_page
    ),
    answers.Upgrade: Presenter(upgrade.to_lines, upgrade.to_document, upgrade.to_rows, html_reports.upgrade_page),
    Consolidation: Presenter(
        plan.consolidation_lines, plan.consolidation_document, plan.consolidation_rows, html_reports.consolidation_page
    ),
}


def text_of(result: object) -> str:
    """A result for people, without colours."""
    return "\n".join(line.text for line in PRESENTERS[type(result)].lines(result))


def document_of(result: object) -> dict[str, Any]:
    """A result as plain data."""
    return PRESENTERS[type(result)].document(result)


def notebook_html(result: object) -> str:
    """The report of a result in a frame of its own, so that its style does not touch the notebook's."""
    page = escape(PRESENTERS[type(result)].page(result), quote=True)
    return f'<iframe srcdoc="{page}" style="width: 100%; height: {FRAME_HEIGHT}px; border: 0"></iframe>'


def frame_of(result: object) -> polars.DataFrame:
    """The rows of a result as a data frame."""
    try:
        import polars
    except ImportError:
        raise PodiumError("data frames need polars: pip install 'podium[frames]'") from None

    return polars.read_csv(io.StringIO(PRESENTERS[type(result)].rows(result)), infer_schema_length=None)
