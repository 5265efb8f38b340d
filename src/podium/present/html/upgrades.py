"""`upgrade` as HTML: what changes with another release."""

from __future__ import annotations

from collections.abc import Sequence

from podium.answers.upgrade import TOGETHER, Group, Kind, Upgrade
from podium.present.html.comparisons import comparison_sections
from podium.present.html.page import UNLIMITED, Cell, Heading, Markup, opening, page, scrolling, section, table
from podium.present.upgrade import places, to_lines
from podium.wording import counted


def upgrade_page(upgrade: Upgrade) -> str:
    """The pods that change by cause, workload and node pool, and what of the configuration does."""
    return page(
        f"Upgrade from {upgrade.before.name} to {upgrade.after.name}",
        opening(to_lines(upgrade, width=UNLIMITED)),
        _configuration(upgrade),
        _causes(upgrade) if upgrade.changed else None,
        _groups("Workloads", upgrade.by_workload()) if upgrade.changed else None,
        _groups("Node pools", upgrade.by_pool()) if upgrade.changed else None,
        _pods(upgrade) if upgrade.changed else None,
        *(comparison_sections(upgrade.replay) if upgrade.replay is not None else ()),
        _differences(upgrade),
        good=upgrade.is_harmless,
    )


def _configuration(upgrade: Upgrade) -> Markup | None:
    changes = upgrade.configuration
    rows = [
        *((Cell(f"refused by {upgrade.after.name}", class_="bad-cell"), text) for text in changes.refused),
        *((f"refused by {upgrade.before.name} alone", text) for text in changes.refused_before),
        *(("means something else", text) for text in changes.changed),
    ]
    return section("Configuration", table(["", "What"], rows)) if rows else None


def _causes(upgrade: Upgrade) -> Markup:
    rows = [
        (*_numbers(group), cause.release if cause else "", cause.sentence if cause else TOGETHER)
        for cause, group in upgrade.by_cause()
    ]
    return section("Because", table([*NUMBERS, "Release", "Difference"], rows))


NUMBERS = tuple(Heading(title, right=True) for title in ("Elsewhere", "Unfit", "Fit now"))


def _numbers(group: Group) -> tuple[str, str, str]:
    elsewhere, unfit, fits = (str(group.counts.get(kind, 0)) for kind in (Kind.MOVES, Kind.UNFIT, Kind.FITS))
    return elsewhere, unfit, fits


def _groups(title: str, groups: Sequence[Group]) -> Markup:
    rows = [(group.name, *_numbers(group)) for group in groups]
    return section(title, scrolling(table(["", *NUMBERS], rows)))


def _pods(upgrade: Upgrade) -> Markup:
    rows = [
        (
            pod.pod,
            pod.workload,
            Cell(pod.kind.value, class_="bad-cell" if pod.kind is Kind.UNFIT else ""),
            pod.runs_on or "-",
            places(pod.before),
            places(pod.after),
            ", ".join(cause.name for cause in pod.causes) or TOGETHER,
        )
        for pod in upgrade.changed
    ]
    titles = ["Pod", "Workload", "Change", "Runs on", "Before", "After", "Because of"]
    return section(f"Change: {counted(len(upgrade.changed), 'pod')}", scrolling(table(titles, rows)))


def _differences(upgrade: Upgrade) -> Markup:
    rows = [(each.release, each.area, each.sentence) for each in upgrade.differences]
    return section(
        "All differences between the two releases", scrolling(table(["Release", "Area", "Difference"], rows))
    )
