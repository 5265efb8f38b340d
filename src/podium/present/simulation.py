"""Renders a simulation, at once, rolled out step by step or over time: as text and tables, as a document, as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from podium.answers.rollout import ChangedObject, RolloutStep
from podium.answers.simulation import PlacedClaim, Placement, Simulation, Usage
from podium.model.resources import CPU, EPHEMERAL_STORAGE, MEMORY, PODS
from podium.present import API_VERSION, to_csv
from podium.present.explanation import NAMED, TOP, WIDTH
from podium.present.plot import time_label
from podium.present.text import (
    Column,
    Line,
    Sentence,
    amount,
    fitting,
    flowing,
    share,
    styled,
    table,
    table_with_text,
    wrapped,
)
from podium.timeline.result import Life, TimelineResult
from podium.wording import counted, joined, listed
from podium.workloads.admission import Refusal


class WorkloadPlacement(NamedTuple):
    """The pods of one workload: their number, and how many went to each node."""

    namespace: str
    name: str
    pods: int
    nodes: Mapping[str, int]

    @property
    def placed(self) -> int:
        return sum(self.nodes.values())


def workloads(simulation: Simulation) -> list[WorkloadPlacement]:
    """Every workload that had pending pods, in the order they came up."""
    pods: dict[tuple[str, str], list[Placement]] = {}
    for placement in simulation.placements:
        pods.setdefault((placement.pod.namespace, placement.workload), []).append(placement)
    found = []
    for (namespace, name), placements in pods.items():
        nodes = Counter(placement.node for placement in placements if placement.node is not None)
        most_first = dict(sorted(nodes.items(), key=lambda item: (-item[1], item[0])))
        found.append(WorkloadPlacement(namespace, name, len(placements), most_first))
    return found


def resources(usage: Usage) -> list[str]:
    """The resources to show: cpu, memory, pods, and others that nodes offer and pods request."""
    others = {name for amounts in usage for name, number in amounts.items() if number}
    if not usage.before.get(EPHEMERAL_STORAGE) and not usage.after.get(EPHEMERAL_STORAGE):
        others.discard(EPHEMERAL_STORAGE)
    return [CPU, MEMORY, PODS, *sorted(others - {CPU, MEMORY, PODS})]


# -- for people ----------------------------------------------------------------------------------------------------


def to_lines(simulation: Simulation, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """How many pods fit, then placements by workload, pending pods with their reasons, and how full the nodes get.

    At most ten workloads and nodes are shown, unless `everything`.
    """
    if not simulation.placements:
        return flowing([summary(simulation)], width)
    return [
        *flowing([summary(simulation)], width),
        Line(""),
        *_workload_lines(workloads(simulation), width, everything),
        *_pending_lines(simulation, width, everything),
        *_preempted_lines(simulation, width, everything),
        *_claim_lines(simulation.claims, width, everything),
        Line(""),
        *_total_lines(simulation.total),
        Line(""),
        *_node_lines(simulation, width, everything),
    ]


def summary(simulation: Simulation) -> Sentence:
    """How many of the pending pods fit."""
    if not simulation.placements:
        return Sentence("Nothing is pending: no pod of the input waits for a node.", "green")
    preempted = len(simulation.preempted)
    pods = counted(len(simulation.placements) - preempted, "pending pod")
    if preempted:
        pods += f" and {counted(preempted, 'preempted pod')}"
    if not simulation.is_settled:
        pods += ", which evict each other for ever; at one moment of that"
    if simulation.fits:
        return Sentence(f"{pods}: all fit." if len(simulation.placements) > 1 else f"{pods}: it fits.", "green")
    if not simulation.placed:
        return Sentence(f"{pods}: {'none fits' if len(simulation.placements) > 1 else 'it does not fit'}.", "red")
    fit, do_not = len(simulation.placed), len(simulation.pending)
    verbs = ("fits" if fit == 1 else "fit", "does" if do_not == 1 else "do")
    return Sentence(f"{pods}: {fit:,} {verbs[0]}, {do_not:,} {verbs[1]} not.", "red")


def _workload_lines(found: Sequence[WorkloadPlacement], width: int, everything: bool) -> list[Line]:
    # Workloads that do not fit come first; the sort is stable.
    found = sorted(found, key=lambda workload: workload.placed == workload.pods)
    shown = found if everything else found[:TOP]
    names = [f"{workload.namespace} {workload.name}" for workload in shown]
    columns = [
        Column("WORKLOAD", names, right=False),
        Column("PODS", [f"{workload.pods:,}" for workload in shown]),
        Column("PLACED", [f"{workload.placed:,}" for workload in shown]),
    ]
    places = []
    for workload in shown:
        nodes = [node if count == 1 else f"{node} x{count:,}" for node, count in workload.nodes.items()]
        places.append(listed(nodes, len(nodes) if everything else NAMED) or "-")
    styles = ["" if workload.placed == workload.pods else "red" for workload in shown]
    lines = table_with_text(columns, "ON", places, width, styles)
    if len(shown) < len(found):
        rest = found[len(shown) :]
        pods, placed = sum(workload.pods for workload in rest), sum(workload.placed for workload in rest)
        lines.append(
            Line(f"and {counted(len(rest), 'more workload')}: {placed:,} of {counted(pods, 'pod')} placed", "dim")
        )
    return lines


def _pending_lines(simulation: Simulation, width: int, everything: bool) -> list[Line]:
    """The pods that fit nowhere; those with the same reasons together."""
    if simulation.fits:
        return []
    groups: dict[str, list[str]] = {}
    for placement in simulation.pending:
        groups.setdefault(placement.message, []).append(placement.pod.key)
    lines = [Line(""), Line("STAY PENDING", "bold")]
    shown = list(groups.items()) if everything else list(groups.items())[:TOP]
    for message, keys in shown:
        lines += wrapped(listed(keys, len(keys) if everything else NAMED), width)
        lines += wrapped(message, width, first="    ", then="    ", style="red")
    rest = sum(map(len, groups.values())) - sum(len(keys) for _, keys in shown)
    if rest:
        lines.append(Line(f"and {counted(rest, 'more pod')}", "dim"))
    return lines


def _preempted_lines(simulation: Simulation, width: int, everything: bool) -> list[Line]:
    """The pods that lose their node to a pod of higher priority, and where they go."""
    found = simulation.preempted
    if not found:
        return []
    shown = found if everything else found[:TOP]
    columns = [
        Column("MAKES ROOM", [placement.pod.key for placement in shown], right=False),
        Column("ON", [placement.old_node or "-" for placement in shown], right=False),
        Column("FOR", [placement.preempted_by for placement in shown], right=False),
        Column("GOES TO", [_whereabouts(placement) for placement in shown], right=False),
    ]
    lines = [Line(""), *styled(table(columns, width), ["bold", *[""] * len(shown)])]
    rest = len(found) - len(shown)
    return [*lines, Line(f"and {counted(rest, 'more pod')}", "dim")] if rest else lines


def _whereabouts(placement: Placement) -> str:
    if placement.node is not None:
        return placement.node
    return "gone for good" if placement.is_lost else "stays pending"


def _claim_lines(claims: Sequence[PlacedClaim], width: int, everything: bool) -> list[Line]:
    """The volume of each claim; claims that had one before come last."""
    if not claims:
        return []
    claims = sorted(claims, key=lambda claim: claim.outcome == "bound")
    shown = claims if everything else claims[:TOP]
    columns = [
        Column("CLAIM", [claim.claim for claim in shown], right=False),
        Column("SIZE", [claim.size or "-" for claim in shown]),
        Column("CLASS", [claim.storage_class or "-" for claim in shown], right=False),
    ]
    lines = [Line(""), *table_with_text(columns, "VOLUME", [_volume_of(claim) for claim in shown], width)]
    if len(shown) < len(claims):
        lines.append(Line(f"and {counted(len(claims) - len(shown), 'more claim')}", "dim"))
    return lines


def _volume_of(claim: PlacedClaim) -> str:
    match claim.outcome:
        case "bound":
            return f"{claim.volume}, bound already"
        case "reserved":
            return f"{claim.volume}"
        case "provisioned":
            where = ", ".join(f"{key}={value}" for key, value in claim.topology.items())
            return f"to be provisioned for {claim.node}" + (f" ({where})" if where else "")
        case _:
            return "not decided: no plugin binds volumes"


def _total_lines(usage: Usage) -> list[Line]:
    names = resources(usage)
    of = [usage.allocatable.get(name, 0) for name in names]
    columns = [Column("RESOURCE", names, right=False)]
    for title, amounts in (("BEFORE", usage.before), ("AFTER", usage.after)):
        numbers = [amounts.get(name, 0) for name in names]
        columns.append(Column(title, [amount(name, number) for name, number in zip(names, numbers, strict=True)]))
        columns.append(Column("", [share(number, most) for number, most in zip(numbers, of, strict=True)]))
    columns.append(Column("ALLOCATABLE", [amount(name, most) for name, most in zip(names, of, strict=True)]))
    return styled(table(columns), ["bold", *[""] * len(names)])


def _node_lines(simulation: Simulation, width: int, everything: bool) -> list[Line]:
    """How full each node gets: nodes with the most new pods first."""
    new = Counter(placement.node for placement in simulation.placed)
    order = sorted(simulation.nodes, key=lambda node: (-new[node], node))
    shown = order if everything else order[:TOP]
    fixed = [
        Column("NODE", shown, right=False),
        Column("NEW", [f"{new[node]:,}" for node in shown]),
    ]
    usages = [simulation.nodes[node] for node in shown]
    total = simulation.total
    used = [name for name in resources(total) if total.before.get(name) or total.after.get(name)]
    others = [Column(_short(name), [_change(usage, name) for usage in usages]) for name in used]
    lines: list[Line] = []
    for columns in fitting(fixed, others, width):
        lines += [*([Line("")] if lines else []), *styled(table(columns, width), ["bold", *[""] * len(shown)])]
    if len(shown) < len(order):
        lines.append(Line(f"and {counted(len(order) - len(shown), 'more node')}", "dim"))
    return lines


def _short(resource: str) -> str:
    return resource.rpartition("/")[2].upper()


def _change(usage: Usage, resource: str) -> str:
    of = usage.allocatable.get(resource, 0)
    before, after = usage.before.get(resource, 0), usage.after.get(resource, 0)
    if not of and not before and not after:
        return "-"
    return share(after, of) if before == after else f"{share(before, of)} -> {share(after, of)}"


# -- for programs --------------------------------------------------------------------------------------------------


def to_document(
    simulation: Simulation,
    changes: Sequence[ChangedObject] = (),
    steps: Sequence[RolloutStep] | None = None,
    refused: Sequence[Refusal] = (),
) -> dict[str, Any]:
    """The simulation as plain data, of kind Simulation; amounts are in milli-cpu, bytes or units.

    `changes` are the changes of later files, `steps` those of the rollout, if there was one, and `refused` the pods
    that LimitRanges or ResourceQuotas do not allow.
    """
    new = Counter(placement.node for placement in simulation.placed)
    return {
        "apiVersion": API_VERSION,
        "kind": "Simulation",
        "fits": simulation.fits,
        "pods": {
            "total": len(simulation.placements),
            "placed": len(simulation.placed),
            "pending": len(simulation.pending),
            "preempted": len(simulation.preempted),
        },
        "settled": simulation.is_settled,
        "refused": [each.to_dict() for each in refused],
        "workloads": [
            {
                "namespace": workload.namespace,
                "workload": workload.name,
                "pods": workload.pods,
                "placed": workload.placed,
                "nodes": dict(workload.nodes),
            }
            for workload in workloads(simulation)
        ],
        "placements": [
            {
                "pod": placement.pod.key,
                "workload": placement.workload,
                "node": placement.node,
                "message": placement.message or None,
                "preemptedBy": placement.preempted_by or None,
                "from": placement.old_node,
            }
            for placement in simulation.placements
        ],
        "claims": [_claim(claim) for claim in simulation.claims],
        **changes_document(changes, steps),
        "utilisation": _usage(simulation.total),
        "nodes": [
            {"node": node, "newPods": new[node], "utilisation": _usage(usage)}
            for node, usage in simulation.nodes.items()
        ],
    }


def _claim(claim: PlacedClaim) -> dict[str, Any]:
    return {
        "claim": claim.claim,
        "pod": claim.pod,
        "size": claim.size or None,
        "storageClass": claim.storage_class or None,
        "outcome": claim.outcome,
        "volume": claim.volume,
        "node": claim.node,
        "topology": dict(claim.topology),
    }


def _usage(usage: Usage) -> dict[str, dict[str, int]]:
    names = dict.fromkeys(name for amounts in usage for name, number in amounts.items() if number)
    return {
        name: {
            "allocatable": usage.allocatable.get(name, 0),
            "before": usage.before.get(name, 0),
            "after": usage.after.get(name, 0),
        }
        for name in names
    }


def to_rows(simulation: Simulation) -> str:
    """The placements as CSV, in the order they were decided."""
    rows = [
        (placement.pod.namespace, placement.pod.name, placement.workload, placement.node, placement.message)
        for placement in simulation.placements
    ]
    return to_csv(("namespace", "pod", "workload", "node", "message"), rows)


INDENT = "    "


def refused_lines(refused: Sequence[Refusal], width: int = WIDTH) -> list[Line]:
    """The pods that the API server does not create, and why; nothing if it creates all."""
    if not refused:
        return []
    lines = [line for each in refused for line in wrapped(str(each), width, then=INDENT)]
    return [Line("REFUSED BY THE API SERVER", "bold"), *lines, Line("")]


def change_lines(
    changes: Sequence[ChangedObject],
    steps: Sequence[RolloutStep] | None = None,
    *,
    unchanged: int = 0,
    width: int = WIDTH,
    everything: bool = False,
) -> list[Line]:
    """The changed objects, the pods they replace, where the new pods go, and the steps.

    At most ten objects and steps are shown, unless `everything`. If nothing changes, that is reported if a later file
    repeats objects; `unchanged` is their number.
    """
    if not changes:
        repeated = f"{counted(unchanged, 'object')} as {'it is' if unchanged == 1 else 'they are'}"
        text = f"No object changes: the later files repeat {repeated}."
        return [*wrapped(text, width), Line("")] if unchanged else []
    lines = [Line("WHAT CHANGES", "bold")]
    shown = changes if everything else changes[:TOP]
    for change in shown:
        lines += _about(change, width, everything)
    if len(shown) < len(changes):
        lines.append(Line(f"and {counted(len(changes) - len(shown), 'more object')}", "dim"))
    if steps:
        lines += [Line(""), *_step_lines(steps, width, everything)]
    return [*lines, Line("")]


def _about(change: ChangedObject, width: int, everything: bool) -> Iterator[Line]:
    said = outcome(change)
    yield from wrapped(f"{change.title}: {said}" if said else change.title, width, then=INDENT, style=_style(change))
    paths = change.paths if everything else change.paths[:NAMED]
    more = f" and {len(change.paths) - len(paths):,} more" if len(paths) < len(change.paths) else ""
    if paths:
        yield from wrapped(", ".join(paths) + more, width, first=INDENT, then=INDENT, style="dim")
    nodes = Counter(node for node in (change.new or {}).values() if node is not None)
    if nodes:
        most_first = sorted(nodes.items(), key=lambda item: (-item[1], item[0]))
        names = [node if count == 1 else f"{node} x{count:,}" for node, count in most_first]
        yield from wrapped(f"to {listed(names, len(names) if everything else NAMED)}", width, first=INDENT, then=INDENT)
    for message, pods in _by_message(change).items():
        pending = f"{listed(pods, len(pods) if everything else NAMED)}: {message}"
        yield from wrapped(pending, width, first=INDENT, then=INDENT, style="red")
    if change.note:
        yield from wrapped(change.note, width, first=INDENT, then=INDENT)


def _style(change: ChangedObject) -> str:
    return "red" if change.stuck or change.pending else ""


def _by_message(change: ChangedObject) -> dict[str, list[str]]:
    """The pending pods; those with the same reasons together."""
    groups: dict[str, list[str]] = {}
    for pod, message in (change.messages or {}).items():
        groups.setdefault(message, []).append(pod)
    return groups


def outcome(change: ChangedObject) -> str:
    """What happens to a workload's pods; empty for an object without pods."""
    if change.new is None:
        return ""
    counts = ((change.replaced, "replaced"), (change.added, "added"), (change.removed, "removed"))
    parts = [f"{counted(number, 'pod')} {what}" for number, what in counts if number]
    pods = joined(parts) or "no pod changes"
    pending = len(change.pending)
    waiting = f", {pending:,} of them pending" if pending else ""
    return f"{pods}{waiting}{_progress(change)}"


def _progress(change: ChangedObject) -> str:
    if change.steps is None:
        return ""
    if change.stuck:
        return f"; stuck at step {change.steps:,}"
    return f"; done in {counted(change.steps, 'step')}" if change.steps else ""


def _step_lines(steps: Sequence[RolloutStep], width: int, everything: bool) -> list[Line]:
    shown = steps if everything else steps[:TOP]
    columns = [
        Column("STEP", [f"{step.number:,}" for step in shown]),
        Column("WORKLOAD", [step.workload for step in shown], right=False),
        Column("DELETED", [f"{len(step.deleted):,}" for step in shown]),
        Column("MADE", [f"{len(step.created):,}" for step in shown]),
        Column("PLACED", [f"{len(step.placed):,}" for step in shown]),
        Column("WAITING", [f"{len(step.waiting):,}" for step in shown]),
        Column("OLD", [f"{step.old_ready:,}" for step in shown]),
        Column("NEW", [f"{step.new_ready:,}" for step in shown]),
    ]
    lines = styled(table(columns, width), ["bold", *("red" if step.waiting else "" for step in shown)])
    if len(shown) < len(steps):
        lines.append(Line(f"and {counted(len(steps) - len(shown), 'more step')}", "dim"))
    return lines


def changes_document(changes: Sequence[ChangedObject], steps: Sequence[RolloutStep] | None) -> dict[str, Any]:
    """The additional fields of a Simulation document: `changes`, and `rollout`, which is null unless it was
    asked for.
    """
    rollout = None
    if steps is not None:
        complete = not any(change.stuck for change in changes)
        rollout = {"complete": complete, "steps": [step.to_dict() for step in steps]}
    return {"changes": [change.to_dict() for change in changes], "rollout": rollout}


MOST_UNPLACED = 10
ALWAYS_SHOWN = (CPU, MEMORY, PODS)
"""The resources whose use is shown even if nothing requests them."""


def timeline_lines(result: TimelineResult, *, width: int = WIDTH) -> list[Line]:
    """What happened to the pods, how long they waited, and how full the cluster was."""
    bound = [life for life in result.lives if life.bound is not None]
    lines = [
        Line(
            f"{time_label(result.end)} simulated, {counted(len(result.lives), 'pod')} came, {len(bound):,} got a node",
            "bold",
        ),
    ]
    if bound:
        lines.append(Line(f"waited for a node: {_quantiles([life.waited or 0.0 for life in bound])}"))
    lines += _happened(result)
    lines += _scaling(result)
    lines += [*_fullness(result), *_unplaced(result.unplaced), *drain_lines(result)]
    return [part for line in lines for part in _within(width, line)]


def _within(width: int, line: Line) -> list[Line]:
    """The line, broken into as many lines as needed; the following ones are indented."""
    text = line.text.lstrip()
    indent = line.text.removesuffix(text)
    return wrapped(text, width, first=indent, then=indent + "    ", style=line.style)


def _quantiles(waits: Sequence[float]) -> str:
    ordered = sorted(waits)
    shares = ((0.5, "half"), (0.9, "90%"), (0.99, "99%"), (1.0, "all"))
    return ", ".join(f"{name} at most {_waiting_time(_quantile(ordered, share))}" for share, name in shares)


def _quantile(ordered: Sequence[float], share: float) -> float:
    return ordered[min(int(share * len(ordered)), len(ordered) - 1)]


def _waiting_time(seconds: float) -> str:
    return f"{seconds:.3g}s" if seconds < 120 else time_label(seconds)


def _happened(result: TimelineResult) -> list[Line]:
    counts = Counter(str(record["event"]) for record in result.log)
    reasons = Counter(str(record["reason"]) for record in result.log if record["event"] == "evict")
    evicted = ", ".join(f"{number} {reason}" for reason, number in sorted(reasons.items()))
    parts = [f"finished: {counts['finish']}", f"lost with their node: {counts['lost']}"]
    parts.append(f"evicted: {counts['evict']}" + (f" ({evicted})" if evicted else ""))
    parts.append(f"created by controllers: {counts['create']}")
    return [Line("; ".join(parts))]


def _scaling(result: TimelineResult) -> list[Line]:
    """The results of an autoscaler, if there was one."""
    if result.scaling is None:
        return []
    total = result.scaling
    lines = [
        Line(
            f"node groups: cost {total['cost']:.2f} for {total['nodeHours']:.1f} node hours, "
            f"{total['added']} added, {total['removed']} removed"
        )
    ]
    for name, group in total["groups"].items():
        lines.append(Line(f"  {name}: cost {group['cost']:.2f}, at most {counted(group['most'], 'node')} at a time"))
    return lines


def _fullness(result: TimelineResult) -> list[Line]:
    if not result.samples:
        return []
    deepest = max(result.samples, key=lambda sample: sample.queued)
    lines = []
    if result.lives:
        lines.append(Line(f"queue: at most {counted(deepest.queued, 'pod')}, at {time_label(deepest.time)}"))
    for name, (mean, most) in result.utilisation.items():
        if most or name in ALWAYS_SHOWN:
            lines.append(Line(f"{name} requested: {mean:.1%} on average, at most {most:.1%}"))
    return lines


def _unplaced(lives: Sequence[Life]) -> list[Line]:
    if not lives:
        return []
    names = ", ".join(life.pod for life in lives[:MOST_UNPLACED])
    more = f" and {len(lives) - MOST_UNPLACED} more" if len(lives) > MOST_UNPLACED else ""
    return [Line(f"still waiting: {counted(len(lives), 'pod')}: {names}{more}", "yellow")]


def drain_lines(result: TimelineResult) -> list[Line]:
    """The nodes that were still being drained at the end, the pods left there, and why."""
    lines = []
    for node, pods in list(result.unfinished_drains.items())[:MOST_UNPLACED]:
        groups: dict[str, list[str]] = {}
        for pod, reason in pods.items():
            groups.setdefault(reason, []).append(pod)
        why = "; ".join(f"{listed(names, NAMED)}: {reason}" for reason, names in groups.items())
        lines.append(Line(f"still being drained: node {node}, {counted(len(pods), 'pod')} left: {why}", "yellow"))
    rest = len(result.unfinished_drains) - len(lines)
    return [*lines, *([Line(f"and {counted(rest, 'more node')} still being drained", "yellow")] if rest else [])]
