"""Renders one decision, and the answer of why-not: as text and tables, as a document, as CSV."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from podium.config.profiles import check_profile
from podium.engine import Decision, Scheduler
from podium.engine.decision import Scored, lead, not_looked_at, ranking, runner_up, scored, why, why_finished
from podium.framework.suggested_change import Obstacle, RejectedNodes
from podium.model import Pod
from podium.plugins.storage.storage_detail import claims_detail
from podium.present.decision_text import NO_OBSTACLES, WIDTH, explain, obstacle_text, preemption_document, words
from podium.present.text import API_VERSION, Column, Line, Sentence, flowing, styled, table, to_csv, wrapped
from podium.wording import counted

if TYPE_CHECKING:
    from podium.answers import WhyNot


class Explained(NamedTuple):
    """A decision and, for a running pod, its node: the decision is then the one it would get now."""

    decision: Decision
    runs_on: str = ""
    obstacles: Mapping[str, tuple[Obstacle, ...]] = NO_OBSTACLES
    """Per rejected node, the things in the way that can be named."""
    about_claims: str = ""
    """A sentence about the claim that keeps the pod from every node, or about the devices that its claims get."""

    @property
    def details(self) -> dict[str, str]:
        """Per rejected node with obstacles, the obstacles in words."""
        return {node: obstacle_text(obstacles) for node, obstacles in self.obstacles.items()}


def explain_pod(scheduler: Scheduler, pod: Pod, profile: str | None = None, *, preempt: bool = False) -> Explained:
    """Decide a pod as if it were not running yet, by its own profile or another, and explain the decision."""
    if profile is not None:
        check_profile(profile, scheduler.frameworks)
    if pod.finished:
        return Explained(Decision(pod.key, None, error=f"it {why_finished(pod)}"))
    with scheduler.cluster.without(pod) as unbound:
        if profile is not None:
            unbound = replace(unbound, spec=replace(unbound.spec, scheduler_name=profile))
        return _in_detail(scheduler, unbound, pod.spec.node_name, preempt=preempt)


def _in_detail(scheduler: Scheduler, pod: Pod, runs_on: str, *, preempt: bool) -> Explained:
    decision, cluster = scheduler.decide(pod, preempt=preempt), scheduler.cluster
    if decision.error:
        return Explained(decision, runs_on)
    framework = scheduler.framework_of(pod)
    obstacles = framework.obstacles(RejectedNodes(pod, decision.rejected, cluster))
    about_claims = claims_detail(cluster, pod, decision.pre_filter_status) or devices_given(decision.details)
    return Explained(decision, runs_on, obstacles, about_claims)


def to_lines(
    explained: Explained, *, width: int = WIDTH, wide: bool = False, every_node: bool = False, per_node: bool = False
) -> list[Line]:
    """The decision for people; see `podium.present.decision_text.explain` for what is shown."""
    return explain(
        explained.decision,
        notes=notes(explained),
        obstacles=explained.obstacles,
        width=width,
        wide=wide,
        every_node=every_node,
        per_node=per_node,
    )


def notes(explained: Explained) -> list[str]:
    """Sentences to add to the words of the decision."""
    return [*filter(None, [explained.about_claims]), *about_running(explained)]


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


def to_document(explained: Explained) -> dict[str, Any]:
    """The decision as plain data, of kind Explanation."""
    decision, details = explained.decision, explained.details
    return {
        "apiVersion": API_VERSION,
        "kind": "Explanation",
        **outcome_document(explained),
        "devices": dict(decision.details.get("allocations", {})),
        "nodes": node_counts(decision),
        "preemption": preemption_document(decision),
        "ties": list(decision.ties),
        "runnerUp": runner_up_document(decision),
        "feasible": _feasible(decision),
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


def _feasible(decision: Decision) -> list[dict[str, Any]]:
    plugins = scored(decision)
    return [
        {
            "node": node,
            "total": decision.totals.get(node),
            "scores": {one.plugin: _scores(one, node) for one in plugins},
        }
        for node in ranking(decision)
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


def why_not_lines(answer: WhyNot, *, width: int = WIDTH) -> list[Line]:
    """Where the pod goes, what keeps it off the node, and which changes would send it there."""
    lines = flowing(why_not_sentences(answer), width)
    if answer.blockers and not answer.decision.error:
        lines += [Line(""), Line(f"WHAT KEEPS IT OFF {answer.node}", "bold")]
        for status in answer.blockers:
            lines += wrapped(why(status), width, first="  ", then="    ")
            if obstacles := answer.obstacles.get(status.plugin):
                lines += wrapped(obstacle_text(obstacles), width, first="    ", then="      ")
    elif answer.behind_by_plugin:
        lines += [Line(""), *_score_lines(answer)]
    if not answer.goes_there:
        lines += [Line(""), *_suggestion_lines(answer, width)]
    return lines


def why_not_sentences(answer: WhyNot) -> list[Sentence]:
    """Where the pod goes, and whether it fits on the node."""
    first, *others = _words(answer)
    return [Sentence(first, "green" if answer.goes_there else "red"), *map(Sentence, others)]


def _words(answer: WhyNot) -> Iterator[str]:
    decision, node = answer.decision, answer.node
    if answer.goes_there:
        yield f"Pod {answer.pod} goes to {node}: nothing keeps it off."
        return
    if decision.error:
        yield f"Pod {answer.pod} cannot be decided: {decision.error}."
        return
    if decision.node is None:
        yield f"Pod {answer.pod} does not go to {node}: it fits on no node."
        return
    yield f"Pod {answer.pod} goes to {decision.node}, not to {node}."
    if answer.behind is not None:
        place = ranking(decision).index(node) + 1
        if answer.behind:
            points = f"with {counted(decision.totals[node], 'point')}, {answer.behind:,} behind"
            yield f"It fits on {node} too, number {place:,} of {len(decision.feasible):,} {points}."
        else:
            yield f"It fits on {node} too, which has as many points: the tie was broken the other way."


def _score_lines(answer: WhyNot) -> list[Line]:
    """Per plugin, the points of the chosen node and of this node."""
    chosen, plugins = answer.decision.node or "", answer.behind_by_plugin
    scores = {one.plugin: one.weighted for one in answer.decision.scores} | dict(answer.decision.extender_scores)
    columns = [
        Column("PLUGIN", list(plugins), right=False),
        Column(chosen, [str(scores[plugin][chosen]) for plugin in plugins]),
        Column(answer.node, [str(scores[plugin][answer.node]) for plugin in plugins]),
        Column("DIFFERENCE", [f"{-points:+}" for points in plugins.values()]),
    ]
    return styled(table(columns), ["bold", *[""] * len(plugins)])


def _suggestion_lines(answer: WhyNot, width: int) -> Iterator[Line]:
    if not answer.suggestions:
        yield Line("No change was found that sends it there.", "red")
        return
    yield Line("ANY ONE OF THESE SENDS IT THERE", "bold")
    for number, suggestion in enumerate(answer.suggestions, 1):
        first = f"{number:>3}. "
        yield from wrapped(suggestion.text, width, first=first, then=" " * len(first))


def why_not_document(answer: WhyNot) -> dict[str, Any]:
    """The answer as plain data, of kind WhyNot."""
    return {"apiVersion": API_VERSION, "kind": "WhyNot", **answer.to_dict()}


def why_not_rows(answer: WhyNot) -> str:
    """The suggestions as CSV, a row per change."""
    rows = [
        (number, change.kind, " ".join(change.on), change.text)
        for number, suggestion in enumerate(answer.suggestions, 1)
        for change in suggestion.changes
    ]
    return to_csv(("suggestion", "kind", "on", "change"), rows)


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
