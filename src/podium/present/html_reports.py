"""The HTML report of each command: explain, why-not, simulate, capacity, drain, fail, audit, compare, tune and
upgrade.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from podium.answers import ClosestNode, WhyNot, WhyNowhere
from podium.answers.audit import Audit, Audited, Finding
from podium.answers.capacity import Capacity
from podium.answers.compare import Comparison
from podium.answers.consolidation import Consolidation
from podium.answers.disruption import Disrupted, Disruption, WorstCase
from podium.answers.explanation import Explained, Formulas
from podium.answers.node_mixes import NodesNeeded
from podium.answers.rollout import ChangedObject
from podium.answers.simulation import Simulation
from podium.answers.tune import TimelineTuning, Tuning
from podium.answers.upgrade import TOGETHER, ChangeGroup, ChangeKind, Upgrade
from podium.engine import Decision
from podium.engine.decision import not_looked_at, scored, why
from podium.framework.obstacle import NO_OBSTACLES, Obstacles
from podium.model.resources import PODS
from podium.plugins import IN_TREE
from podium.present import capacity as capacity_text
from podium.present import comparison as comparison_text
from podium.present import disruption as disruption_text
from podium.present import simulation as simulation_text
from podium.present import to_yaml
from podium.present import tuning as tuning_text
from podium.present.comparison import because, measures_shown
from podium.present.explanation import notes, obstacle_text, silent_plugins, words
from podium.present.html import (
    Cell,
    Heading,
    Markup,
    bar_section,
    element,
    heat_map,
    page,
    pending_table,
    rejection_table,
    scrolling,
    section,
    table,
    usages,
    workload_table,
)
from podium.present.plan import consolidation_sentences, destinations, kept_by_reason
from podium.present.simulation import outcome
from podium.present.text import Sentence, amount, share
from podium.present.upgrade import counts_by_kind, places
from podium.present.upgrade import sentences as upgrade_sentences
from podium.present.why_not import texts_with_nodes, why_not_sentences, why_nowhere_sentences
from podium.wording import counted, listed

_LEGEND = "Weighted scores. The darker, the more of a plugin's points; each plugin has its own scale."


def _alone(sentences: Iterable[Sentence]) -> list[str]:
    return [each.alone for each in sentences]


def explanation_page(explained: Explained) -> str:
    """A decision: in words, the heat map, preemption if it was asked for, the rejections."""
    decision = explained.decision
    sentences = [*words(decision), *notes(explained)]
    title = f"Where {decision.pod} goes"
    sections = [*decision_sections(decision, explained.obstacles), *_formula_sections(explained.formulas)]
    return page(title, sentences, *sections, good=decision.node is not None)


def _formula_sections(formulas: Formulas) -> list[Markup]:
    """A section for each node: how its scores come about."""
    return [
        section(
            f"{node}: how its scores come about",
            table(
                ["Plugin", "How its points come about"],
                [(each.plugin, _one_below_the_other(each.lines)) for each in of_plugins],
            ),
        )
        for node, of_plugins in formulas.items()
    ]


def _one_below_the_other(lines: Sequence[str]) -> Markup:
    return element("div", *(element("div", line) for line in lines))


def why_not_page(answer: WhyNot) -> str:
    """What keeps a pod off a node, which changes would send it there, and the current decision."""
    texts = [each.text for each in answer.suggestions]
    return page(
        f"Why {answer.pod} does not go to {answer.node}" if not answer.goes_there else f"{answer.pod} on {answer.node}",
        _alone(why_not_sentences(answer)),
        _blockers(answer),
        _behind(answer),
        None if answer.goes_there else _suggestions("Any one of these sends it there", texts),
        *decision_sections(answer.decision),
        good=answer.goes_there,
    )


def why_nowhere_page(answer: WhyNowhere) -> str:
    """That a pod fits nowhere, the nodes it comes closest to, which changes would let it run, and the decision."""
    return page(
        f"Why {answer.pod} does not run" if not answer.runs else f"{answer.pod} runs",
        _alone(why_nowhere_sentences(answer)),
        _closest(answer.closest),
        None if answer.runs else _suggestions("Any one of these lets it run", texts_with_nodes(answer)),
        *decision_sections(answer.decision),
        good=answer.runs,
    )


def _closest(nodes: Sequence[ClosestNode]) -> Markup | None:
    if not nodes:
        return None
    rows = [
        (each.node, why(status), obstacle_text(each.obstacles.get(status.plugin, ())))
        for each in nodes
        for status in each.blockers
    ]
    return section("The closest nodes", table(["Node", "Rejected by", "In the way"], rows))


def decision_sections(decision: Decision, obstacles: Obstacles = NO_OBSTACLES) -> list[Markup | None]:
    """The sections of a report about one decision."""
    verb = "fits" if len(decision.feasible) == 1 else "fit"
    fits = f"{len(decision.feasible):,} of {counted(decision.node_count, 'node')} {verb}"
    rest = not_looked_at(decision)
    were = "was" if rest == 1 else "were"
    unseen = f"{counted(rest, 'more node')} {were} not checked." if rest and not decision.error else ""
    return [
        section(
            f"Scores: {fits}",
            scrolling(heat_map(decision)),
            note=" ".join(filter(None, (_LEGEND, silent_plugins(decision)))),
        )
        if scored(decision)
        else None,
        section("Evicting pods makes room", _candidates(decision)) if decision.candidates else None,
        section(
            f"Rejected: {counted(len(decision.rejected), 'node')}",
            rejection_table(decision, obstacles=obstacles),
            note=unseen,
        )
        if decision.rejected
        else None,
    ]


def _candidates(decision: Decision) -> Markup:
    order = sorted(decision.candidates, key=lambda one: (one.node != decision.nominated, one.costs, one.node))
    rows = [
        (
            Cell(one.node, class_="chosen" if one.node == decision.nominated else ""),
            one.pdb_violations,
            one.victims[0].priority,
            ", ".join(pod.key for pod in one.victims),
        )
        for one in order
    ]
    return table(["Node", Heading("Budgets violated", right=True), Heading("Highest", right=True), "Victims"], rows)


def _blockers(answer: WhyNot) -> Markup | None:
    if not answer.blockers:
        return None
    words = [(why(status), obstacle_text(answer.obstacles.get(status.plugin, ()))) for status in answer.blockers]
    items = [element("li", ": ".join(filter(None, said))) for said in words]
    return section(f"What keeps it off {answer.node}", element("ol", *items))


def _behind(answer: WhyNot) -> Markup | None:
    plugins = answer.behind_by_plugin
    if not plugins:
        return None
    scores = {one.plugin: one.weighted for one in scored(answer.decision)}
    chosen = answer.decision.node or ""
    rows = [
        (plugin, scores[plugin][chosen], scores[plugin][answer.node], Cell(f"{-points:+}", class_=_tone(-points)))
        for plugin, points in plugins.items()
    ]
    titles = (chosen, answer.node, "Difference")
    return section("Points compared", table(["Plugin", *(Heading(title, right=True) for title in titles)], rows))


def _tone(points: int) -> str:
    return "bad-cell" if points < 0 else "chosen"


def _suggestions(title: str, texts: Sequence[str]) -> Markup:
    items = [element("li", text) for text in texts]
    return section(title, element("ol", *items) if items else element("p", "No change was found."))


def simulation_page(simulation: Simulation, changes: Sequence[ChangedObject] = ()) -> str:
    """What later files change, where everything pending goes, what stays pending, and how full the nodes get."""
    sentences = [simulation_text.summary(simulation).alone]
    changed = _changes(changes) if changes else None
    if not simulation.placements:
        return page("Simulation", sentences, changed, good=True)
    resources = [name for name in simulation_text.resources(simulation.total) if name != PODS]
    return page(
        "Simulation",
        sentences,
        changed,
        section("Stay pending", pending_table(simulation)) if simulation.pending else None,
        section("Placements", workload_table(simulation)),
        section("All nodes together", _totals(simulation)),
        bar_section("How full the nodes get", simulation.nodes, resources),
        good=simulation.fits,
    )


def _changes(changes: Sequence[ChangedObject]) -> Markup:
    rows = [(change.title, outcome(change), ", ".join(change.paths)) for change in changes]
    return section("What changes", table(["Object", "Pods", "Fields"], rows))


def _totals(simulation: Simulation) -> Markup:
    usage = simulation.total
    rows = []
    for name in simulation_text.resources(usage):
        of, before, after = (amounts.get(name, 0) for amounts in (usage.allocatable, usage.before, usage.after))
        numbers = (amount(name, before), share(before, of), amount(name, after), share(after, of), amount(name, of))
        rows.append((name, *numbers))
    titles = ("Before", "", "After", "", "Allocatable")
    return table(["Resource", *(Heading(title, right=True) for title in titles)], rows)


def capacity_page(answer: Capacity | None, needed: NodesNeeded | None, *, at_least: int = 1) -> str:
    """How many more pods fit, where, why the next one does not, and how many nodes the others need."""
    fits = answer.count >= at_least if answer is not None else needed is not None and not needed.pods
    found = capacity_text.sentences(answer, at_least) if answer is not None else []
    more = capacity_text.needed_sentences(needed) if needed is not None else []
    return page(
        "Capacity",
        _alone([*found, *more]),
        _needed(needed) if needed is not None and needed.pods else None,
        _stopped(answer) if answer is not None else None,
        _where(answer) if answer is not None else None,
        bar_section("How full the nodes get", usages(None, answer.cluster)) if answer is not None else None,
        good=fits,
    )


def workload_capacity_page(answers: Sequence[Capacity], *, at_least: int = 1) -> str:
    """One row per workload: how many more of its pods fit, and why the next one does not."""
    rows = [
        (capacity_text.workload_name(fits), f"{fits.count:,}", f"{len(fits.nodes):,}", capacity_text.stopping(answer))
        for answer in answers
        for fits in answer.fits
    ]
    numbers = (Heading(title, right=True) for title in ("More pods", "Nodes"))
    return page(
        "Capacity",
        [capacity_text.workload_summary(answers, at_least)],
        section("Workloads", table(["Workload", *numbers, "What stops the next one"], rows)),
        good=all(answer.count >= at_least for answer in answers),
    )


def _stopped(answer: Capacity) -> Markup:
    stopped_by = answer.stopped_by
    details = (
        [rejection_table(stopped_by, obstacles=answer.obstacles)]
        if stopped_by is not None and stopped_by.rejected
        else []
    )
    return section("What stops the next one", element("p", answer.message), *details)


def _where(answer: Capacity) -> Markup:
    counts = {each.template.key: Counter(each.nodes) for each in answer.fits}
    totals: Counter[str] = Counter()
    for each in counts.values():
        totals.update(each)
    # For a single template, the total is all there is.
    shown = {"Pods": totals, **(counts if len(counts) > 1 else {})}
    rows = [(node, *(f"{each[node]:,}" for each in shown.values())) for node, _ in totals.most_common()]
    return section("Where they fit", table(["Node", *(Heading(name, right=True) for name in shown)], rows))


def _needed(needed: NodesNeeded) -> Markup:
    mixes = [("best", needed.best), *((f"{name} alone", mix) for name, mix in needed.alone.items())]
    rows = [
        (what, capacity_text.mix_text(mix) or "none helps", f"{mix.price:,.2f}", f"{len(mix.left):,}")
        for what, mix in mixes
    ]
    numbers = (Heading(title, right=True) for title in ("Price", "Pods left"))
    return section("Nodes needed", table(["Mix", "Nodes", *numbers], rows))


def disruption_page(found: Disruption | WorstCase) -> str:
    """What happens to the pods of lost nodes, the budgets, and how full the other nodes get."""
    disruption = found.disruption if isinstance(found, WorstCase) else found
    verb = {"drain": "Draining", "fail": "Losing"}[disruption.kind]
    return page(
        f"{verb} {listed(disruption.nodes, IN_TITLE)}",
        _alone(disruption_text.sentences(found)),
        _budgets(disruption) if disruption.budgets else None,
        section("What becomes of the pods", scrolling(_fates(disruption.pods))) if disruption.pods else None,
        bar_section("How full the nodes are afterwards", usages(None, disruption.cluster)),
        good=disruption.harmless,
    )


def consolidation_page(plan: Consolidation, problems: Sequence[str] = ()) -> str:
    """What the plan gains, its steps, the nodes that stay and why, and how full they get."""
    titles = (Heading("Step", right=True), "Drain", Heading("Pods", right=True), Heading("Saves", right=True))
    steps = [
        (number, step.node, len(step.moves), f"{step.price:,.2f}", destinations(step.moves))
        for number, step in enumerate(plan.steps, 1)
    ]
    kept = [(", ".join(nodes), reason) for reason, nodes in kept_by_reason(plan).items()]
    return page(
        "Which nodes can go",
        _alone(consolidation_sentences(plan, problems)),
        section("The steps", scrolling(table([*titles, "They go to"], steps))) if steps else None,
        section("Nodes that stay", scrolling(table(["Nodes", "Because"], kept))) if kept else None,
        bar_section("How full the nodes are afterwards", usages(None, plan.cluster)),
        good=bool(plan.steps) and not problems,
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
    """The pods; those with problems first (the sort is stable)."""
    trouble = ("pending", "blocked", "lost", "returns")
    rows = []
    for pod in sorted(pods, key=lambda pod: pod.fate.value not in trouble):
        fate = Cell(pod.fate.value, class_="bad-cell" if pod.fate.value in trouble else "")
        reasons = [
            pod.reason,
            *map(disruption_text.constraint_text, pod.constraints),
            f"makes room for {pod.preempted_by}" if pod.preempted_by else "",
        ]
        rows.append((pod.pod, pod.workload, pod.node, fate, pod.to or "-", _lines(reasons)))
    return table(["Pod", "Workload", "Was on", "Fate", "Goes to", "Because"], rows)


def _lines(texts: Sequence[str]) -> Markup:
    return element("span", *(element("span", text, element("br")) for text in texts if text))


def audit_page(audit: Audit) -> str:
    """Which running pods would no longer fit, which would go elsewhere, and which cannot be decided."""
    unfit, drifted, undecided = (audit.of(each) for each in (Finding.UNFIT, Finding.DRIFTED, Finding.UNDECIDED))
    return page(
        "Audit of running pods",
        _alone(disruption_text.audit_sentences(audit)),
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


MOST_TRIALS = 20
IN_TITLE = 3
"""How many nodes a title names."""


def comparison_page(comparison: Comparison) -> str:
    """Which pods move and why, the measures before and after, and how full the nodes are both ways."""
    title = f"Comparison of {comparison.before.name} and {comparison.after.name}"
    return page(title, _alone(comparison_text.sentences(comparison)), *comparison_sections(comparison))


def tuning_page(tuning: Tuning | TimelineTuning) -> str:
    """The result, the settings, what they change, and the configuration itself."""
    changes = (
        comparison_sections(tuning.comparison)
        if isinstance(tuning, Tuning)
        else [_before_and_after(comparison_text.timeline_measures(tuning.comparison))]
    )
    return page(
        f"Tuned for {tuning.objective}",
        list(tuning_text.words(tuning)),
        _settings(tuning) if tuning.improves else None,
        *(changes if tuning.improves else ()),
        _trials(tuning),
        section("The configuration", element("pre", to_yaml(tuning.document))),
        good=tuning.improves,
    )


def comparison_sections(comparison: Comparison) -> list[Markup | None]:
    """The sections of a report about two ways."""
    return [
        _measures(comparison),
        _spread(comparison) if comparison.spread else None,
        bar_section("How full the nodes are", usages(comparison.before.cluster, comparison.after.cluster)),
        _moves(comparison) if comparison.moves else None,
    ]


def _measures(comparison: Comparison) -> Markup:
    before, after = comparison.before.measures, comparison.after.measures
    shown = measures_shown(before, after).items()
    return _before_and_after([(title, show(before), show(after)) for title, show in shown])


def _before_and_after(measures: Sequence[tuple[str, str, str]]) -> Markup:
    rows = [
        [Cell(text, class_="dim" if before == after else "") for text in (title, before, after)]
        for title, before, after in measures
    ]
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
    return section("Spread", scrolling(table(["Workload", *numbers], rows)), note="Pods per zone, before → after.")


def _pair(before: int, after: int) -> Cell:
    return Cell(before, class_="dim") if before == after else Cell(f"{before} → {after}")


def _settings(tuning: Tuning | TimelineTuning) -> Markup:
    rows = [
        [Cell(text, class_="dim" if before == after else "") for text in (what, before, after)]
        for what, before, after in tuning_text.settings(tuning)
    ]
    return section("Settings", table(["Setting", Heading("Today", right=True), Heading("Tuned", right=True)], rows))


def _trials(tuning: Tuning | TimelineTuning) -> Markup:
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


def upgrade_page(upgrade: Upgrade) -> str:
    """The pods that change by cause, workload and node pool, and what changes in the configuration."""
    return page(
        f"Upgrade from {upgrade.before.name} to {upgrade.after.name}",
        _alone(upgrade_sentences(upgrade)),
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
        *((release, "decides with its defaults here") for release in changes.unread_by),
        *(("means something else", text) for text in changes.changed),
    ]
    return section("Configuration", table(["", "What"], rows)) if rows else None


def _causes(upgrade: Upgrade) -> Markup:
    causes = upgrade.by_cause()
    kinds = counts_by_kind([group for _, group in causes])
    said = [(cause.release, upgrade.said(cause)) if cause else ("", TOGETHER) for cause, _ in causes]
    numbers = zip(*kinds.values(), strict=True)
    rows = [(*counts, *words) for counts, words in zip(numbers, said, strict=True)]
    return section("Because", table([*_numbers(kinds), "Release", "Difference"], rows))


def _numbers(titles: Iterable[str]) -> list[Heading]:
    return [Heading(title, right=True) for title in titles]


def _groups(title: str, groups: Sequence[ChangeGroup]) -> Markup:
    kinds = counts_by_kind(groups)
    rows = zip((group.name for group in groups), *kinds.values(), strict=True)
    return section(title, scrolling(table([title.removesuffix("s"), *_numbers(kinds)], rows)))


def _pods(upgrade: Upgrade) -> Markup:
    rows = [
        (
            pod.pod,
            pod.workload,
            Cell(pod.kind.value, class_="bad-cell" if pod.kind is ChangeKind.UNFIT else ""),
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
