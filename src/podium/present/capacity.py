"""Renders capacity, nodes needed and devices: as text and tables, as a document, as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from fractions import Fraction
from typing import Any

import msgspec

from podium.answers import Capacity, Fits, NodeMix, NodesNeeded
from podium.answers.capacity import Devices, DeviceState, DeviceStatus
from podium.model import Pod
from podium.model.quantity import format_quantity, parse_quantity, value
from podium.model.resources import CPU, MEMORY, is_scalar_resource
from podium.present import API_VERSION, to_csv
from podium.present.explanation import NAMED, TOP, WIDTH, rejections, summarized
from podium.present.text import (
    Column,
    Line,
    Sentence,
    amount,
    fitting,
    flowing,
    styled,
    table,
    table_with_text,
    wrapped,
)
from podium.wording import counted, joined, listed

GPU = "nvdia.com/gpu"
"""Spelled as in cluster-capacity, which writes 0 whatever a pod requests."""
MOST_LISTED_DEVICES = 20
"""The maximum number of devices listed, unless all are asked for."""


def to_review(answer: Capacity) -> dict[str, Any]:
    """The review as plain data; without a creation time, so that the same input gives the same output."""
    return {
        "spec": {
            "templates": [_template(fits.template) for fits in answer.fits],
            "replicas": answer.limit,
            "podRequirements": [_requirements(fits.template) for fits in answer.fits],
        },
        "status": {
            "creationTimestamp": None,
            "replicas": answer.count,
            "failReason": _fail_reason(answer),
            "pods": [_result(fits) for fits in answer.fits],
        },
    }


def _template(pod: Pod) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", **msgspec.to_builtins(pod)}


def _requirements(pod: Pod) -> dict[str, Any]:
    amounts: dict[str, Fraction] = {}
    for container in pod.spec.containers:
        for name, quantity in container.resources.requests.items():
            amounts[name] = amounts.get(name, Fraction(0)) + parse_quantity(quantity)
    scalars = {name: value(amount) for name, amount in amounts.items() if is_scalar_resource(name)}
    primary = {
        CPU: format_quantity(amounts.get(CPU, Fraction(0))),
        MEMORY: format_quantity(amounts.get(MEMORY, Fraction(0)), binary=True),
        GPU: "0",
    }
    return {
        "podName": pod.name,
        "resources": {"primaryResources": primary, "scalarResources": scalars or None},
        "nodeSelectors": pod.spec.node_selector or None,
    }


def _fail_reason(answer: Capacity) -> dict[str, str]:
    if answer.stopped_by is None:
        return {"failType": "LimitReached", "failMessage": f"Maximum number of pods simulated: {answer.limit}"}
    return {"failType": "Unschedulable", "failMessage": answer.message}


def _result(fits: Fits) -> dict[str, Any]:
    nodes = [{"nodeName": node, "replicas": count} for node, count in fits.nodes.items()]
    return {"podName": fits.template.name, "replicasOnNodes": nodes, "failSummary": None}


def to_lines(answer: Capacity, *, at_least: int = 1, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """How many pods fit, why the next one does not, and where they go. At most ten nodes are shown, unless
    `everything`.
    """
    lines = flowing(sentences(answer, at_least), width)
    if answer.stopped_by is not None:
        lines += [Line(""), *_why_stopped(answer, width)]
    if answer.count:
        lines += [Line(""), *_node_lines(answer, width, everything)]
    return lines


def sentences(answer: Capacity, at_least: int = 1) -> list[Sentence]:
    """How many pods fit, and why no more were tried if there was a limit."""
    found = [Sentence(_summary(answer, at_least), "green" if answer.count >= at_least else "red")]
    return found if answer.stopped_by is not None else [*found, Sentence(f"More were not tried: {answer.message}.")]


def _summary(answer: Capacity, at_least: int) -> str:
    parts = [f"{counted(fits.count, 'more pod')} of {fits.template.key}" for fits in answer.fits]
    on = len({node for fits in answer.fits for node in fits.nodes})
    verb = "fits" if answer.count == 1 else "fit"
    nodes = answer.cluster.node_count
    where = "" if not answer.count else " on the only node" if nodes == 1 else f" on {on:,} of {nodes:,} nodes"
    short = at_least - answer.count
    asked = f" {at_least:,} were asked for: {f'{short:,} too few' if short > 0 else 'enough'}." if at_least > 1 else ""
    return f"{joined(parts)} {verb}{where}.{asked}"


def _why_stopped(answer: Capacity, width: int) -> Iterator[Line]:
    decision = answer.stopped_by
    assert decision is not None
    yield Line(f"WHAT STOPS THE NEXT ONE, {decision.pod}", "bold")
    if decision.error or not decision.rejected:
        yield from wrapped(answer.message, width)
        return
    groups = rejections(decision)
    for rejection in groups[:TOP]:
        first = f"{counted(len(rejection.nodes), 'node'):>9}  "
        yield from wrapped(rejection.why, width, first=first, then=" " * len(first))
        names = listed(rejection.nodes, NAMED)
        yield from wrapped(names, width, first=" " * len(first), then=" " * len(first), style="dim")
        for sentence in summarized(rejection.nodes, answer.obstacles):
            yield from wrapped(sentence, width, first=" " * len(first), then=" " * (len(first) + 2))
    if len(groups) > TOP:
        rest = sum(len(rejection.nodes) for rejection in groups[TOP:])
        yield Line(f"and {counted(rest, 'more node')} for {counted(len(groups) - TOP, 'other reason')}", "dim")


def _node_lines(answer: Capacity, width: int, everything: bool) -> Iterator[Line]:
    totals = _totals(answer)
    order = sorted(totals, key=lambda node: (-totals[node], node))
    shown = order if everything else order[:TOP]
    fixed = [Column("NODE", shown, right=False)]
    others = [Column("PODS" if len(answer.fits) == 1 else "TOTAL", [f"{totals[node]:,}" for node in shown])]
    if len(answer.fits) > 1:
        for fits in answer.fits:
            cells = [f"{fits.nodes.get(node, 0):,}" for node in shown]
            others.append(Column(fits.template.name, cells))
    for name in _asked_for(answer):
        cells = [amount(name, _free(answer, node, name)) for node in shown]
        others.append(Column(f"{name.rpartition('/')[2].upper()} LEFT", cells))
    for number, columns in enumerate(fitting(fixed, others, width)):
        yield from [Line("")] if number else []
        yield from styled(table(columns, width), ["bold", *[""] * len(shown)])
    if len(shown) < len(order):
        rest = sum(totals[node] for node in order[len(shown) :])
        yield Line(f"and {counted(rest, 'pod')} on {counted(len(order) - len(shown), 'more node')}", "dim")


def _totals(answer: Capacity) -> Counter[str]:
    totals: Counter[str] = Counter()
    for fits in answer.fits:
        totals.update(fits.nodes)
    return totals


def _asked_for(answer: Capacity) -> list[str]:
    """The resources that the templates request: cpu and memory first."""
    names = {name for fits in answer.fits for name in answer.cluster.info_of(fits.template).resources.requests}
    return [*(name for name in (CPU, MEMORY) if name in names), *sorted(names - {CPU, MEMORY})]


def _free(answer: Capacity, node: str, resource: str) -> int:
    columns, row = answer.cluster.columns, answer.cluster.rows[node]
    index = columns.resource(resource)
    return int(columns.allocatable[index, row] - columns.requested[index, row])


def to_document(answer: Capacity | None, needed: NodesNeeded | None = None) -> dict[str, Any]:
    """The answers as plain data, of kind Capacity; questions that were not asked are left out."""
    document = {"apiVersion": API_VERSION, "kind": "Capacity"}
    more = {} if needed is None else {"nodesNeeded": needed.to_dict()}
    return {**document, **({} if answer is None else answer.to_dict()), **more}


def to_rows(answer: Capacity | None, needed: NodesNeeded | None = None) -> str:
    """The number of pods of each template on each node, or the number of nodes needed, as CSV.

    If nodes are needed, the rows are about them: the best mix first, then each template alone.
    """
    if needed is None:
        fits = answer.fits if answer is not None else ()
        rows = [(each.template.key, node, count) for each in fits for node, count in each.nodes.items()]
        return to_csv(("pod", "node", "count"), rows)
    mixes = [("best", needed.best), *(("alone", mix) for mix in needed.alone.values())]
    return to_csv(
        ("mix", "node", "count", "price", "left"),
        [(what, node, count, mix.price, len(mix.left)) for what, mix in mixes for node, count in mix.counts.items()],
    )


# -- workloads, each on its own ------------------------------------------------------------------------------------


def workload_lines(answers: Sequence[Capacity], *, at_least: int = 1, width: int = WIDTH) -> list[Line]:
    """One row per workload: how many more of its pods fit, on how many nodes, and why the next one does not."""
    lines = wrapped(workload_summary(answers, at_least), width)
    style = "green" if all(each.count >= at_least for each in answers) else "red"
    fits = [each.fits[0] for each in answers]
    columns = [
        Column("WORKLOAD", [workload_name(each) for each in fits], right=False),
        Column("MORE PODS", [f"{each.count:,}" for each in fits]),
        Column("NODES", [f"{len(each.nodes):,}" for each in fits]),
    ]
    lines = [line._replace(style=style) for line in lines]
    styles = ["" if each.count >= at_least else "red" for each in answers]
    stops = [stopping(each) for each in answers]
    return [*lines, Line(""), *table_with_text(columns, "WHAT STOPS THE NEXT ONE", stops, width, styles)]


def workload_summary(answers: Sequence[Capacity], at_least: int) -> str:
    """How many workloads have room for the requested number of pods."""
    short, number = sum(each.count < at_least for each in answers), len(answers)
    alone = "counted as if it were the only one to grow"
    if not short:
        more = "more pods" if at_least == 1 else counted(at_least, "more pod")
        return f"Each of the {number:,} workloads has room for {more}, {alone}."
    more = "another pod" if at_least == 1 else counted(at_least, "more pod")
    return f"{short:,} of {number:,} workloads {'has' if short == 1 else 'have'} no room for {more}, each {alone}."


def workload_name(fits: Fits) -> str:
    """`shop Deployment/web`"""
    return f"{fits.template.namespace} {fits.workload}"


def stopping(answer: Capacity) -> str:
    """Why the next pod does not fit, in a few words: the reasons, those of most nodes first.

    For a single reason, also what is in the way; for several, that would be too long for a row.
    """
    stopped_by = answer.stopped_by
    reasons = {} if stopped_by is None or stopped_by.error else stopped_by.reasons()
    if stopped_by is None or not reasons:
        return answer.message
    most_first = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    told = [f"{reason} ({counted(number, 'node')})" for reason, number in most_first]
    things = summarized(tuple(stopped_by.rejected), answer.obstacles) if len(told) == 1 else []
    return "; ".join([", ".join(told), *things])


def workload_document(answers: Sequence[Capacity]) -> dict[str, Any]:
    """The answers as plain data, of kind Capacity, under `workloads`."""
    limit = next((each.limit for each in answers if each.limit), None)
    workloads = [
        {"namespace": each.fits[0].template.namespace, **each.fits[0].to_dict(), "stoppedBy": each.stopped_by_dict()}
        for each in answers
    ]
    return {"apiVersion": API_VERSION, "kind": "Capacity", "limit": limit, "workloads": workloads}


def workload_rows(answers: Sequence[Capacity]) -> str:
    """One row per workload, as CSV."""
    rows = [
        (fits.template.namespace, fits.workload, fits.count, len(fits.nodes), answer.message)
        for answer in answers
        for fits in answer.fits
    ]
    return to_csv(("namespace", "workload", "count", "nodes", "stopped by"), rows)


# -- nodes needed --------------------------------------------------------------------------------------------------


def needed_lines(needed: NodesNeeded, *, width: int = WIDTH, priced: bool = True) -> list[Line]:
    """The cheapest mix of nodes, and the number of nodes needed of each template alone."""
    lines = flowing(needed_sentences(needed, priced=priced), width)
    if not needed.pods:
        return lines
    alone = needed.alone.values()
    columns = [
        Column("NODES OF ONE KIND", [f"{mix.nodes:,} {name}" for name, mix in needed.alone.items()], right=False),
        *([Column("PRICE", [_price(mix.price) for mix in alone])] if priced else []),
        Column("PODS LEFT", [f"{len(mix.left):,}" for mix in alone]),
    ]
    return [*lines, Line(""), *styled(table(columns, width), ["bold", *("" if mix.fits else "red" for mix in alone)])]


def needed_sentences(needed: NodesNeeded, *, priced: bool = True) -> list[Sentence]:
    """The cheapest mix of nodes, and the pods that do not fit even so."""
    if not needed.pods:
        return [Sentence("No nodes needed: every pod fits.", "green")]
    best, price = needed.best, f" for {_price(needed.best.price)}" if priced else ""
    if not best.counts:
        return [Sentence(f"{_rest(needed)} not fit: none of these nodes helps.", "red")]
    verb = "needs" if needed.pods == 1 else "need"
    found = [Sentence(f"{_rest(needed)} not fit {verb} {mix_text(best)}{price}.", "green")]
    if best.left:
        found.append(Sentence(f"Even so {_staying(best)} not fit: {listed(best.left, NAMED)}.", "red"))
    return [*found, Sentence(_proof(needed, priced=priced))]


def _proof(needed: NodesNeeded, *, priced: bool) -> str:
    """What the search covered, in one sentence."""
    search, tried = needed.search, counted(needed.search.tried, "combination")
    if needed.best.left:
        covered = "none leaves fewer pods" if search.complete else "another one may leave fewer pods"
        return f"{tried} tried: {covered}."
    if search.complete:
        small = f", {search.too_small:,} more have too little room" if search.too_small else ""
        return f"{tried} tried{small}: none is {'cheaper' if priced else 'smaller'} and holds all pods."
    least = f"for less than {_price(search.at_least)}" if priced else f"of fewer than {_price(search.at_least)} nodes"
    return f"{tried} tried: another one may be {'cheaper' if priced else 'smaller'}, but none {least} holds all pods."


def _rest(needed: NodesNeeded) -> str:
    return "The pod that does" if needed.pods == 1 else f"The {needed.pods:,} pods that do"


def _staying(mix: NodeMix) -> str:
    return "1 pod does" if len(mix.left) == 1 else f"{len(mix.left):,} pods do"


def mix_text(mix: NodeMix) -> str:
    """The nodes of a mix: `2 large and 1 small`; empty if it has none."""
    return joined([f"{number:,} {name}" for name, number in mix.counts.items()])


def _price(price: float) -> str:
    return f"{price:,.2f}".removesuffix(".00")


def devices_lines(found: Devices, *, width: int = WIDTH, everything: bool = False) -> list[Line]:
    """The number of devices of each class on every node and how many are left; then the devices that are not free.

    With `everything`, all devices are listed.
    """
    if not found.devices:
        return [Line("No devices: the input has no ResourceSlices.")]
    free = sum(device.state in (DeviceState.FREE, DeviceState.SHARED) for device in found.devices)
    lines = wrapped(f"{counted(len(found.devices), 'device')}, {free:,} of them open for claims.", width)
    lines += [Line(line.text, "red") for problem in found.problems for line in wrapped(f"{problem}.", width)]
    lines += [Line(""), *_device_counts(found, width)]
    listed = [each for each in found.devices if everything or each.holders or each.state is not DeviceState.FREE]
    if listed:
        lines += [Line(""), *_device_list(listed if everything else listed[:MOST_LISTED_DEVICES], width)]
    if not everything and len(listed) > MOST_LISTED_DEVICES:
        lines.append(Line(f"and {counted(len(listed) - MOST_LISTED_DEVICES, 'more device')}; --all shows them", "dim"))
    return lines


def _device_counts(found: Devices, width: int) -> list[Line]:
    counts = found.counts()
    states = [state for state in DeviceState if any(each[state] for each in counts.values())]
    columns = [
        Column("NODE", [node or "(no node)" for node, _ in counts], right=False),
        Column("CLASS", [name for _, name in counts], right=False),
        Column("DEVICES", [f"{each.total():,}" for each in counts.values()]),
        *(Column(state.value.upper(), [f"{each[state]:,}" for each in counts.values()]) for state in states),
    ]
    return styled(table(columns, width), ["bold", *[""] * len(counts)])


def _device_list(devices: Sequence[DeviceStatus], width: int) -> list[Line]:
    columns = [
        Column("NODE", [each.node or "(no node)" for each in devices], right=False),
        Column("DEVICE", [_device_name(each) for each in devices], right=False),
        Column("STATE", [each.state.value for each in devices], right=False),
    ]
    return table_with_text(columns, "HELD BY", [_held_by(each) for each in devices], width)


def _device_name(device: DeviceStatus) -> str:
    return device.id.device if device.id.pool == device.node else f"{device.id.pool}/{device.id.device}"


def _held_by(device: DeviceStatus) -> str:
    """The claims that hold a device, and their share; for a free device, its taints."""
    parts = []
    for each in device.holders:
        amounts = ", ".join(f"{amount} {name}" for name, amount in each.consumed.items())
        parts.append(f"{', '.join(each.pods) or 'no pod'} ({each.claim}{f', {amounts}' if amounts else ''})")
    if device.left and device.holders:
        parts.append(f"{', '.join(f'{amount} {name}' for name, amount in device.left.items())} left")
    return "; ".join(parts) or ", ".join(device.taints)


def devices_document(found: Devices) -> dict[str, Any]:
    """The devices as plain data, of kind Devices."""
    return {"apiVersion": API_VERSION, "kind": "Devices", **found.to_dict()}


def devices_rows(found: Devices) -> str:
    """Every device as CSV."""
    header = ("node", "driver", "pool", "device", "classes", "state", "claims", "pods")
    rows = (
        (
            each.node,
            *each.id,
            " ".join(each.classes),
            each.state.value,
            " ".join(holder.claim for holder in each.holders),
            " ".join(pod for holder in each.holders for pod in holder.pods),
        )
        for each in found.devices
    )
    return to_csv(header, rows)
