"""`compare` and `tune` as HTML: what differs between two ways to place the same pods."""

from __future__ import annotations

from podium.answers import Comparison, Tuning
from podium.plugins import IN_TREE
from podium.present import comparison as comparison_text
from podium.present import tuning as tuning_text
from podium.present.comparison import MEASURES, because
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
from podium.present.text import to_yaml
from podium.wording import counted

MOST_TRIALS = 20


def comparison_page(comparison: Comparison) -> str:
    """Which pods move and why, the measures before and after, and how full the nodes are both ways."""
    words = opening(comparison_text.to_lines(comparison, width=UNLIMITED))
    title = f"Comparison of {comparison.before.name} and {comparison.after.name}"
    return page(title, words, *comparison_sections(comparison))


def tuning_page(tuning: Tuning) -> str:
    """What was found, the settings, what they change, and the configuration itself."""
    return page(
        f"Tuned for {tuning.objective}",
        list(tuning_text.words(tuning)),
        _settings(tuning) if tuning.improves else None,
        *(comparison_sections(tuning.comparison) if tuning.improves else ()),
        _trials(tuning),
        section("The configuration", element("pre", to_yaml(tuning.document))),
        good=tuning.improves,
    )


def comparison_sections(comparison: Comparison) -> list[Markup | None]:
    """The parts of a report about two ways."""
    return [
        _measures(comparison),
        _spread(comparison) if comparison.spread else None,
        bar_section("How full the nodes are", usages(comparison.before.cluster, comparison.after.cluster)),
        _moves(comparison) if comparison.moves else None,
    ]


def _measures(comparison: Comparison) -> Markup:
    before, after = comparison.before.measures, comparison.after.measures
    rows = []
    for title, show in MEASURES.items():
        dim = "dim" if show(before) == show(after) else ""
        rows.append([Cell(text, class_=dim) for text in (title, show(before), show(after))])
    return section("Measures", table(["Measure", Heading("Before", right=True), Heading("After", right=True)], rows))


def _moves(comparison: Comparison) -> Markup:
    rows = [
        (move.pod, move.workload, move.before or "-", move.after or "-", because(move) + " *" * move.cause.knock_on)
        for move in comparison.moves
    ]
    note = "* only because others went elsewhere first" if any(move.cause.knock_on for move in comparison.moves) else ""
    content = scrolling(table(["Pod", "Workload", "Before", "After", "Because of"], rows))
    return section(f"Go elsewhere: {counted(len(comparison.moves), 'pod')}", content, note=note)


def _spread(comparison: Comparison) -> Markup:
    zones = sorted({zone for change in comparison.spread for zone in (*change.before, *change.after)})
    rows = [
        (
            f"{change.workload.namespace} {change.workload.name}",
            *(_pair(change.before.get(zone, 0), change.after.get(zone, 0)) for zone in zones),
            _pair(change.nodes_before, change.nodes_after),
        )
        for change in comparison.spread
    ]
    numbers = (Heading(title, right=True) for title in (*zones, "Nodes"))
    return section(
        "Spread otherwise", scrolling(table(["Workload", *numbers], rows)), note="Pods per zone, before → after."
    )


def _pair(before: int, after: int) -> Cell:
    return Cell(before, class_="dim") if before == after else Cell(f"{before} → {after}")


def _settings(tuning: Tuning) -> Markup:
    rows = [
        [Cell(text, class_="dim" if before == after else "") for text in (what, before, after)]
        for what, before, after in tuning_text.settings(tuning)
    ]
    return section("Settings", table(["Setting", Heading("Today", right=True), Heading("Tuned", right=True)], rows))


def _trials(tuning: Tuning) -> Markup:
    best = sorted(tuning.trials, key=lambda trial: trial.rank)
    rows = [
        (
            "today" if trial is tuning.today else trial.number,
            tuning_text.number(trial.value),
            len(trial.pending),
            trial.settings.strategy or "-",
            *trial.settings.weights.values(),
        )
        for trial in best[:MOST_TRIALS]
    ]
    numbers = [Heading(name, right=True) for name in ("Value", "Pending")]
    titles = {name: plugin.title for name, plugin in IN_TREE.items()}
    weights = [Heading(titles.get(name) or name, right=True, explained=name) for name in tuning.today.settings.weights]
    content = scrolling(table([Heading("Trial", right=True), *numbers, "Strategy", *weights], rows))
    note = f"The best {len(rows):,} of {len(tuning.trials):,}, with the weights of plugins, whose names are shortened."
    return section("What was tried", content, note=note)
