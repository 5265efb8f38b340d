"""Renders one decision, the scores and reasons behind it and what preemption considered: as text, document and CSV."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from podium.answers.explanation import NO_FORMULAS, Explained, Formulas
from podium.answers.score_formulas import ScoreFormula
from podium.engine import Decision
from podium.engine.decision import Eviction, Scored, lead, not_looked_at, ranking, runner_up, scored, why
from podium.engine.dry_runs import Candidate
from podium.framework.obstacle import NO_OBSTACLES, Obstacle, Obstacles
from podium.framework.status import Status
from podium.present import API_VERSION, to_csv
from podium.present.text import Column, Line, fitting, styled, table, table_with_text, wrapped
from podium.wording import counted, joined, listed

K = TypeVar("K", bound=Hashable)

TOP = 10
NAMED_VICTIMS = 3


def preemption_words(decision: Decision) -> list[str]:
    """The node where evicting pods makes room, the pods, and why this node; empty if no room can be made."""
    if decision.nominated is None:
        return []
    victims = listed(decision.victims, NAMED_VICTIMS) or "pods that are going already"
    number = counted(len(decision.candidates), "candidate")
    return [
        f"Evicting {victims} makes room on {decision.nominated}.",
        f"It was taken from {number}: {decision.chosen_by}.",
    ]


def preemption_lines(decision: Decision, width: int, *, every_node: bool) -> list[Line]:
    """The candidates of preemption, the winner first."""
    order = sorted(decision.candidates, key=lambda one: (one.node != decision.nominated, one.costs, one.node))
    shown = order if every_node else order[:TOP]
    if not shown:
        return []
    columns = [
        Column("  CANDIDATE", [f"{'*' if one.node == decision.nominated else ' '} {one.node}" for one in shown], False),
        Column("PDBS VIOLATED", [str(one.pdb_violations) for one in shown]),
        Column("HIGHEST", [str(one.victims[0].priority) for one in shown]),
        Column("VICTIMS", [str(len(one.victims)) for one in shown]),
    ]
    styles = ["bold", *("green" if one.node == decision.nominated else "" for one in shown)]
    lines: list[Line] = []
    for row, style, one in zip(table(columns, width), styles, [None, *shown], strict=True):
        lines += styled([row], [style])
        if one is not None:
            names = listed([victim.key for victim in one.victims], NAMED_VICTIMS)
            lines += wrapped(names, width, first="    ", then="    ", style="dim")
    if len(shown) < len(order):
        lines.append(Line(f"  and {counted(len(order) - len(shown), 'more candidate')}", "dim"))
    return lines


def preemption_document(decision: Decision) -> dict[str, object] | None:
    """What preemption considered, as plain data; None if it could not help or did not run."""
    if decision.nominated is None:
        return None
    return {
        "nominated": decision.nominated,
        "victims": list(decision.victims),
        "chosenBy": decision.chosen_by,
        "candidates": [_candidate(one) for one in sorted(decision.candidates, key=lambda one: (one.costs, one.node))],
    }


def _candidate(one: Candidate) -> dict[str, object]:
    victims = [{"pod": victim.key, "priority": victim.priority} for victim in one.victims]
    return {"node": one.node, "pdbViolations": one.pdb_violations, "victims": victims}


WIDTH = 80
"""How many nodes are shown unless all are asked for."""
NAMED = 6
"""How many of the nodes that were rejected for the same reason are named."""

MOST_DIFFERENT = 3
"""How many different obstacles are named for one reason."""


class Rejection(NamedTuple):
    """Nodes that were rejected by the same plugin for the same reasons."""

    why: str
    nodes: tuple[str, ...]


# -- what there is to say ------------------------------------------------------------------------------------------


def rejections(decision: Decision) -> list[Rejection]:
    """The rejected nodes by plugin and reasons, most nodes first."""
    return [Rejection(reason, nodes) for reason, nodes in grouped(decision.rejected, why)]


def grouped(rejected: Mapping[str, Status], by: Callable[[Status], K]) -> list[tuple[K, tuple[str, ...]]]:
    """The rejected nodes in groups, most nodes first, then by plugin and reasons."""
    groups: dict[K, list[str]] = {}
    for node, status in rejected.items():
        groups.setdefault(by(status), []).append(node)
    order = sorted(groups.items(), key=lambda group: (-len(group[1]), why(rejected[group[1][0]])))
    return [(key, tuple(nodes)) for key, nodes in order]


# -- in words ------------------------------------------------------------------------------------------------------


def words(decision: Decision) -> list[str]:
    """The answer in sentences: where the pod goes and why there, or why it fits nowhere."""
    if decision.error:
        return [f"Pod {decision.pod} cannot be decided: {decision.error}."]
    return [*_where(decision), *_about_extenders(decision)]


def _where(decision: Decision) -> list[str]:
    if decision.node is None:
        return list(_why_nowhere(decision))
    if len(decision.feasible) == 1:
        only = (
            "the only node" if decision.node_count == 1 else f"the only one of {decision.node_count:,} nodes that fits"
        )
        found = "the first found to fit" if _ended_early(decision) else only
        return [f"Pod {decision.pod} goes to {decision.node}, {found}, so nothing is scored."]
    return [*_why_there(decision), f"It fits on {len(decision.feasible):,} of {decision.node_count:,} nodes."]


def _why_there(decision: Decision) -> Iterator[str]:
    node, second = decision.node or "", runner_up(decision)
    points, ties = counted(decision.totals[node], "point"), [tie for tie in decision.ties if tie != decision.node]
    goes = f"Pod {decision.pod} goes to {node}"
    others = f"the other is {ties[0]}" if len(ties) == 1 else f"the others are {listed(ties, NAMED)}"
    among = f"chosen from {len(ties) + 1:,} equally good nodes; {others}"
    if not decision.scores and not decision.extender_scores:
        yield f"{goes}: nothing scores, so every node that fits is as good."
    elif second is None:
        yield f"{goes} with {points}, {among}."
    else:
        gap = f"{decision.totals[node] - decision.totals[second]:,} more than"
        if ties:
            yield f"{goes} with {points}, {among}."
            yield f"That is {gap} {second}, the best of the others."
        else:
            yield f"{goes} with {points}, {gap} the second, {second}."
        yield f"Against {second} it {_gains_and_losses(lead(decision, second))}."


def _about_extenders(decision: Decision) -> Iterator[str]:
    """What extenders did that neither scores nor reasons show."""
    last = list(decision.dropped)[-1:]
    # A node that an extender rejects with a reason has a status without a plugin.
    is_silent = not decision.feasible and all(status.plugin for status in decision.rejected.values())
    for name, nodes in decision.dropped.items():
        if is_silent and name in last:
            yield f"Extender {name} passed no node, and gave no reason."
        else:
            yield f"Extender {name} left out {counted(len(nodes), 'node')} without a reason: {listed(nodes, NAMED)}."
    for name, nodes in decision.unasked.items():
        yield (
            f"Extender {name} passed {counted(len(nodes), 'node')} that had been rejected before it was asked: "
            f"{listed(nodes, NAMED)}. kube-scheduler does not notice and takes such nodes to fit."
        )
    if decision.scores:
        for name in decision.scored_as_returned_by:
            yield (
                f"Extender {name} sent Node objects back: they are scored as it sent them and as if no pod ran there, "
                "as kube-scheduler does from v1.33 on."
            )


def _gains_and_losses(points: Mapping[str, int]) -> str:
    gains = [f"{by:,} on {plugin}" for plugin, by in points.items() if by > 0]
    losses = [f"{-by:,} on {plugin}" for plugin, by in points.items() if by < 0]
    return ", and ".join(f"{verb} {joined(parts)}" for verb, parts in (("gains", gains), ("loses", losses)) if parts)


def _why_nowhere(decision: Decision) -> Iterator[str]:
    if not decision.node_count:
        yield f"Pod {decision.pod} fits nowhere: {decision.message}."
        return
    some, one = f"fits on none of the {decision.node_count:,} nodes", "does not fit on the only node"
    yield f"Pod {decision.pod} {one if decision.node_count == 1 else some}."
    yield decision.message
    if decision.nominated is not None:
        yield from preemption_words(decision)
        return
    if "preemption: " in decision.post_filter_message:
        yield "Evicting pods was tried: none of a lower priority makes room."
        return
    if decision.eviction is not None:
        yield from _about_eviction(decision, decision.eviction)


def _about_eviction(decision: Decision, eviction: Eviction) -> Iterator[str]:
    """Whether evicting pods could make room, as known without a dry run."""
    helpful = len(eviction.nodes) + eviction.without_victims
    rest = decision.node_count - len(eviction.nodes)
    if helpful and eviction.nobody_because:
        yield f"No pod is evicted for it: {eviction.nobody_because}."
    elif eviction.nodes and not rest:
        yield "Evicting pods of a lower priority could make room on each of them."
    elif eviction.nodes:
        yield f"Evicting pods of a lower priority could make room on {len(eviction.nodes):,} of them, not on {rest:,}."
    elif helpful:
        where = (
            "there" if helpful == decision.node_count else f"on the {counted(helpful, 'node')} where that could help"
        )
        yield f"No pod {where} has a lower priority, so evicting cannot help."
    elif eviction.lacks_devices:
        yield "The scheduler evicts no pods for devices."
    elif decision.rejected:
        yield "Evicting pods would not help."


# -- as text -------------------------------------------------------------------------------------------------------


def explain(
    decision: Decision,
    *,
    notes: Sequence[str] = (),
    obstacles: Obstacles = NO_OBSTACLES,
    formulas: Formulas = NO_FORMULAS,
    width: int = WIDTH,
    wide: bool = False,
    every_node: bool = False,
    per_node: bool = False,
) -> list[Line]:
    """The decision in words, then the scores of the feasible nodes, then the rejections of the others.

    `notes` are sentences to add to the words, `obstacles` are the things in the way on nodes, `formulas` say how scores
    come about. `wide` shows raw,
    normalised and weighted scores, in lines of any length; otherwise weighted scores only, in lines of at most `width`.
    Only the ten best nodes are shown, unless `every_node`. Rejections are shown by reason, or `per_node`.
    """
    first, *others = (*words(decision), *notes)
    lines = wrapped(first, width, style="red" if decision.node is None else "green")
    lines += (line for sentence in others for line in wrapped(sentence, width))
    if scored(decision):
        lines += [Line(""), *_score_table(decision, width, wide, every_node)]
    for node, of_plugins in formulas.items():
        lines += [Line(""), *_formula_lines(node, of_plugins, width)]
    if decision.candidates:
        lines += [Line(""), *preemption_lines(decision, width, every_node=every_node)]
    if decision.rejected:
        lines.append(Line(""))
        show = _lines_per_node if per_node or every_node else _lines_by_reason
        lines += show(decision, obstacles, width)
    if not_looked_at(decision) and not decision.error:
        lines += [Line(""), *wrapped(_about_the_rest(decision), width)]
    return lines


def _formula_lines(node: str, formulas: Sequence[ScoreFormula], width: int) -> list[Line]:
    """How each plugin comes to its score of a node."""
    lines = [Line(f"{node}: how its scores come about", "bold")]
    for formula in formulas:
        lines.append(Line(f"  {formula.plugin}"))
        lines += (line for text in formula.lines for line in wrapped(text, width, first="    ", then="      "))
    return lines


def _score_table(decision: Decision, width: int, wide: bool, every_node: bool) -> list[Line]:
    order = ranking(decision)
    nodes = order if every_node else order[:TOP]
    names = nodes if wide else _short_names(nodes)
    plugins = scored(decision)
    telling = plugins if wide else [one for one in plugins if any(one.weighted.values())]
    fixed = [
        Column("  NODE", ["  weight", *_marked(nodes, names, decision)], right=False),
        Column("TOTAL", ["", *(str(decision.totals[node]) for node in nodes)]),
    ]
    others = [
        Column(
            one.plugin if wide else one.title or one.plugin,
            ["" if one.weight is None else str(one.weight), *(one.cell(node, wide=wide) for node in nodes)],
        )
        for one in telling
    ]
    styles = ["bold", "dim", *("green" if node == decision.node else "" for node in nodes)]
    lines: list[Line] = []
    for columns in [[*fixed, *others]] if wide else fitting(fixed, others, width):
        lines += [*([Line("")] if lines else []), *styled(table(columns, width), styles)]
    if len(nodes) < len(order):
        lines.append(Line(_about_the_others(decision, order[len(nodes) :]), "dim"))
    legend = "raw/normalised/weighted score of each plugin" if wide else _legend(telling)
    for remark in (legend, "" if wide else silent_plugins(decision)):
        lines += wrapped(remark, width, style="dim")
    return lines


def silent_plugins(decision: Decision) -> str:
    """`A and B: 0 on every node`; empty if every plugin gave some node points."""
    silent = joined([one.plugin for one in scored(decision) if not any(one.weighted.values())])
    return f"{silent}: 0 on every node" if silent else ""


def _marked(nodes: Sequence[str], names: Sequence[str], decision: Decision) -> list[str]:
    """The names with a `*` for the chosen node and a `=` for those that share the highest total."""
    marks = dict.fromkeys(decision.ties, "=") | {decision.node or "": "*"}
    return [f"{marks.get(node, ' ')} {name}" for node, name in zip(nodes, names, strict=True)]


def _short_names(names: Sequence[str]) -> Sequence[str]:
    """The names without the domain they all share."""
    domains = {name.partition(".")[2] for name in names}
    return [name.partition(".")[0] for name in names] if len(domains) == 1 and len(names) > 1 else names


def _legend(telling: Sequence[Scored]) -> str:
    titles = {one.plugin: one.title or one.plugin for one in telling}
    return ", ".join(f"{title}={plugin}" for plugin, title in titles.items() if title != plugin)


def _about_the_others(decision: Decision, nodes: Sequence[str]) -> str:
    best, worst = decision.totals[nodes[0]], decision.totals[nodes[-1]]
    points = counted(best, "point") if best == worst else f"{best:,} to {worst:,} points"
    return f"  and {counted(len(nodes), 'more node')} that fit, with {points}"


def _lines_by_reason(decision: Decision, obstacles: Obstacles, width: int) -> list[Line]:
    lines = [Line("REJECTED  BECAUSE", "bold")]
    groups = rejections(decision)
    for rejection in groups[:TOP]:
        count = f"{len(rejection.nodes):>8,}  "
        lines += wrapped(rejection.why, width, first=count, then=" " * len(count))
        names = listed(rejection.nodes, NAMED)
        lines += wrapped(names, width, first=" " * len(count), then=" " * len(count), style="dim")
        for sentence in summarized(rejection.nodes, obstacles):
            lines += wrapped(sentence, width, first=" " * len(count), then=" " * (len(count) + 2))
    rest = sum(len(rejection.nodes) for rejection in groups[TOP:])
    if rest:
        lines.append(Line(f"{rest:>8,}  for {counted(len(groups) - TOP, 'other reason')}", "dim"))
    return lines


def _lines_per_node(decision: Decision, obstacles: Obstacles, width: int) -> list[Line]:
    reasons = [why(status) for status in decision.rejected.values()]
    remarks = [obstacle_text(obstacles.get(node, ())) for node in decision.rejected]
    nodes = Column("NODE", list(decision.rejected), right=False)
    return table_with_text([nodes], "REJECTED BECAUSE", reasons, width, remarks=remarks)


def obstacle_text(obstacles: Sequence[Obstacle]) -> str:
    """The obstacles on one node."""
    return "; ".join(obstacle.text for obstacle in obstacles)


def obstacle_texts(explained: Explained) -> dict[str, str]:
    """Per rejected node with obstacles, the obstacles in words."""
    return {node: obstacle_text(obstacles) for node, obstacles in explained.obstacles.items()}


def summarized(nodes: Sequence[str], obstacles: Obstacles) -> list[str]:
    """The obstacles on several nodes: the common one, a few different ones, or that of the closest node."""
    by_text: dict[str, list[str]] = {}
    for node in nodes:
        if obstacles.get(node):
            by_text.setdefault(obstacle_text(obstacles[node]), []).append(node)
    order = sorted(by_text, key=lambda text: -len(by_text[text]))
    if order and len(by_text[order[0]]) == len(nodes):
        return order
    if len(order) > MOST_DIFFERENT and all(one.missing for node in nodes for one in obstacles.get(node, ())):
        named = [node for node in nodes if obstacles.get(node)]
        closest = min(named, key=lambda node: [one.missing for one in obstacles[node]])
        return [f"closest is {closest}: {obstacle_text(obstacles[closest])}"]
    shown = order if len(order) == MOST_DIFFERENT + 1 else order[:MOST_DIFFERENT]
    sentences = [f"{_these(by_text[text])}: {text}" for text in shown]
    rest = sum(len(by_text[text]) for text in order[len(shown) :])
    return [*sentences, f"and other things on {counted(rest, 'node')}"] if rest else sentences


def _these(nodes: Sequence[str]) -> str:
    return nodes[0] if len(nodes) == 1 else counted(len(nodes), "node")


def _about_the_rest(decision: Decision) -> str:
    rest = counted(not_looked_at(decision), "node")
    were = "was" if not_looked_at(decision) == 1 else "were"
    if _ended_early(decision) or decision.absent is None:
        return f"{rest} {were} not checked: enough others fit."
    return f"{rest} {were} not checked: {decision.absent.message}."


def _ended_early(decision: Decision) -> bool:
    """Whether sampling left nodes unchecked because enough had been found, as opposed to PreFilter excluding them."""
    return not_looked_at(decision) > 0 and not (decision.absent and decision.absent.reasons)


# -- the output of explain and why-not ---------------------------------------------------------------------------------


def to_lines(
    explained: Explained, *, width: int = WIDTH, wide: bool = False, every_node: bool = False, per_node: bool = False
) -> list[Line]:
    """The decision for people; see `podium.present.explanation.explain` for what is shown."""
    return explain(
        explained.decision,
        notes=notes(explained),
        obstacles=explained.obstacles,
        formulas=explained.formulas,
        width=width,
        wide=wide,
        every_node=every_node,
        per_node=per_node,
    )


def notes(explained: Explained) -> list[str]:
    """Sentences to add to the words of the decision."""
    about_claims = explained.about_claims or devices_given(explained.decision.details)
    about_group = explained.group.sentence if explained.group is not None else ""
    return [*filter(None, [about_group, about_claims]), *about_running(explained)]


def about_running(explained: Explained) -> list[str]:
    """How the decision compares with the pod's current node."""
    decision, node = explained.decision, explained.runs_on
    if not node or decision.error:
        return []
    if node == decision.node:
        return ["It runs there now, and would go there again."]
    if node in decision.totals:
        place = ranking(decision).index(node) + 1
        return [f"It runs on {node} now, which comes {_ordinal(place)} with {counted(decision.totals[node], 'point')}."]
    if node in decision.rejected:
        return [f"It runs on {node} now, which would reject it today: {why(decision.rejected[node])}."]
    for extender, nodes in decision.dropped.items():
        if node in nodes:
            return [f"It runs on {node} now, which extender {extender} left out."]
    if not_looked_at(decision):
        return [f"It runs on {node} now, which was not checked."]
    return [f"It is bound to {node}, which is not in the input."]


def _ordinal(number: int) -> str:
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number:,}{ending}"


def _group_document(explained: Explained) -> dict[str, Any] | None:
    group = explained.group
    if group is None:
        return None
    outlook = {"name": group.group, "fits": group.fits, "placed": group.placed, "needed": group.needed}
    return {**outlook, "message": group.sentence}


def to_document(explained: Explained) -> dict[str, Any]:
    """The decision as plain data, of kind Explanation."""
    decision, details = explained.decision, obstacle_texts(explained)
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        **outcome_document(explained),
        "podGroup": _group_document(explained),
        "devices": dict(decision.details.get("allocations", {})),
        "nodes": node_counts(decision),
        "preemption": preemption_document(decision),
        "ties": list(decision.ties),
        "runnerUp": runner_up_document(decision),
        "feasible": _feasible(decision, explained.formulas),
        "rejected": [
            {
                "node": node,
                "plugin": status.plugin,
                "code": status.code.value,
                "reasons": list(status.reasons),
                "detail": details.get(node),
                "inTheWay": [obstacle.to_dict() for obstacle in explained.obstacles.get(node, ())],
            }
            for node, status in decision.rejected.items()
        ],
        "notLookedAtBecause": reasons_not_looked_at(decision),
    }


def outcome_document(explained: Explained) -> dict[str, Any]:
    """The pod, the node it gets, and a sentence."""
    decision = explained.decision
    return {
        "pod": decision.pod,
        "runsOn": explained.runs_on or None,
        "node": decision.node,
        "message": decision.message or None,
        "error": decision.error or None,
        "words": [*words(decision), *notes(explained)],
    }


def node_counts(decision: Decision) -> dict[str, int]:
    """How many nodes there are, and how many of them fit the pod."""
    return {
        "total": decision.node_count,
        "feasible": len(decision.feasible),
        "rejected": len(decision.rejected),
        "notLookedAt": not_looked_at(decision),
    }


def reasons_not_looked_at(decision: Decision) -> list[str]:
    """Why nodes were not checked; empty if all were."""
    return list(decision.absent.reasons) if decision.absent and not_looked_at(decision) else []


def runner_up_document(decision: Decision) -> dict[str, Any] | None:
    """The second best node, and by how many points it is behind; None if there is none."""
    second = runner_up(decision) if decision.node is not None else None
    if second is None:
        return None
    total = decision.totals[second]
    gap = decision.totals[decision.node or ""] - total
    return {"node": second, "total": total, "lead": gap, "leadByPlugin": lead(decision, second)}


def _feasible(decision: Decision, formulas: Formulas) -> list[dict[str, Any]]:
    plugins = scored(decision)
    return [
        {
            "node": node,
            "total": decision.totals.get(node),
            "scores": {one.plugin: _scores(one, node) for one in plugins},
            **({"formulas": formulas_document(formulas[node])} if node in formulas else {}),
        }
        for node in ranking(decision)
    ]


def formulas_document(formulas: Sequence[ScoreFormula]) -> list[dict[str, Any]]:
    """How each plugin comes to its score of a node, as plain data."""
    return [
        {
            "plugin": each.plugin,
            "raw": each.raw,
            "normalised": each.normalized,
            "weight": each.weight,
            "weighted": each.weighted,
            "lines": list(each.lines),
        }
        for each in formulas
    ]


def _scores(one: Scored, node: str) -> dict[str, int]:
    """The parts of a score; an extender's score has none but the weighted one."""
    weighted = {"weighted": one.weighted[node]}
    if one.raw is None or one.normalized is None or one.weight is None:
        return weighted
    return {"raw": one.raw[node], "normalised": one.normalized[node], "weight": one.weight, **weighted}


def to_rows(explained: Explained) -> str:
    """The decision as CSV: one row per node, best first, then the rejected nodes."""
    decision, plugins = explained.decision, scored(explained.decision)
    parts = [f"{one.plugin} {part}" for one in plugins for part in ("raw", "normalised", "weighted")]
    results = dict.fromkeys(decision.ties, "tied") | {decision.node: "chosen"}
    rows: list[Sequence[Any]] = []
    for node in ranking(decision):
        scores = [_scores(one, node).get(part, "") for one in plugins for part in ("raw", "normalised", "weighted")]
        rows.append((node, results.get(node, "feasible"), decision.totals.get(node), *scores, "", "", ""))
    blank = [""] * len(parts)
    for node, status in decision.rejected.items():
        rows.append((node, "rejected", "", *blank, status.plugin, status.code.value, "; ".join(status.reasons)))
    return to_csv(("node", "result", "total", *parts, "rejected by", "code", "reasons"), rows)


def devices_given(details: Mapping[str, Any]) -> str:
    """A sentence about the devices that a pod gets on its node; empty if it gets none."""
    parts = []
    for claim, results in (details.get("allocations") or {}).items():
        by_request: dict[str, list[str]] = {}
        for result in results:
            text = f"{result['pool']}/{result['device']}"
            if result.get("consumedCapacity"):
                text += f" ({', '.join(f'{amount} {name}' for name, amount in result['consumedCapacity'].items())})"
            elif result.get("adminAccess"):
                text += " (for administration)"
            by_request.setdefault(result["request"], []).append(text)
        got = "; ".join(f"{', '.join(devices)} for {request}" for request, devices in by_request.items())
        if got:
            parts.append(f"claim {claim} gets {got}")
    return f"{'. '.join(part[:1].upper() + part[1:] for part in parts)}." if parts else ""
