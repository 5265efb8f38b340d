"""The views of the cluster and of time as HTML reports, made of what they answer as JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from podium.engine import Usage
from podium.present.html.page import SHOWN, Heading, Markup, bar, element, page, scrolling, section, table
from podium.wording import counted

MOST_MOMENTS = 200
"""How many moments of a timeline are shown, evenly chosen."""
MOST_PODS = 500


def what_if_page(document: Mapping[str, Any]) -> str:
    """The changes, what landed where, and every node."""
    steps = document["steps"]
    words = [sentence for step in steps for sentence in step["words"]] or ["The cluster as it is."]
    placements = document["placements"]
    if placements:
        fits, waits = document["placed"], document["pending"]
        words.append(f"{counted(fits, 'pod')} find a node, {waits:,} do not.")
    rows = [(each["pod"], each["node"] or "-", each["message"] or "") for each in placements]
    left_out = document["placed"] + document["pending"] - len(rows)
    note = f"{left_out:,} more are not listed." if left_out else ""
    return page(
        "What if",
        words,
        section("Pods", scrolling(table(["Pod", "Node", "Why not"], rows)), note=note) if rows else None,
        _node_section(document["tiles"]),
        good=document["fits"] if steps else None,
    )


def _node_section(tiles: Mapping[str, Any]) -> Markup:
    """Every node by group, with its pods and how full it is."""
    resources = {each["resource"]: each for each in tiles["resources"]}
    new, cordoned = set(tiles["new"]), set(tiles["unschedulable"])
    rows = []
    for place, name in sorted(enumerate(tiles["nodes"]), key=lambda each: (tiles["groups"][each[0]], each[1])):
        offered, asked = (
            {resource: each[what][place] for resource, each in resources.items()}
            for what in ("allocatable", "requested")
        )
        marks = [word for word, places in (("new", new), ("cordoned", cordoned)) if place in places]
        bars = (bar(Usage(offered, asked, asked), resource) for resource in SHOWN)
        rows.append((name, tiles["groups"][place] or "-", " ".join(marks), tiles["pods"][place], *bars))
    headings = ["Node", tiles["group"].rpartition("/")[2], "", Heading("Pods", right=True), *SHOWN]
    gone = tiles["gone"]
    note = f"Gone: {', '.join(gone)}." if gone else ""
    return section("Nodes", scrolling(table(headings, rows, class_="bars")), note=note)


def timeline_page(document: Mapping[str, Any]) -> str:
    """The queue and how full the cluster is over time, the pods that waited longest, and what came to nothing."""
    return page(
        "Timeline",
        document["words"],
        _moment_section(document["samples"]),
        _pod_section(document["pods"]),
        section("Came to nothing", *(element("p", line) for line in document["warnings"]))
        if document["warnings"]
        else None,
        good=not document["unplaced"],
    )


def _moment_section(samples: Sequence[Mapping[str, Any]]) -> Markup:
    step = max(1, -(-len(samples) // MOST_MOMENTS))
    shown = [*samples[:-1:step], *samples[-1:]]
    rows = []
    for sample in shown:
        usage = Usage(sample["allocatable"], sample["requested"], sample["requested"])
        queued = sum(sample[part] for part in ("active", "backoff", "unschedulable", "gated"))
        numbers = sample["nodes"], sample["running"], queued
        rows.append((_seconds(sample["time"]), *numbers, *(bar(usage, resource) for resource in SHOWN)))
    titles = (Heading("Nodes", right=True), Heading("Running", right=True), Heading("Waiting", right=True))
    note = f"Every {step:,}th moment at which something changed." if step > 1 else ""
    return section("Over time", scrolling(table(["Time", *titles, *SHOWN], rows, class_="bars")), note=note)


def _pod_section(pods: Sequence[Mapping[str, Any]]) -> Markup | None:
    """The pods that are still waiting, then those that waited longest."""
    ordered = sorted(pods, key=lambda each: (each["waited"] is not None, -(each["waited"] or 0.0)))
    if not ordered:
        return None
    rows = [
        (each["pod"], each["node"] or "-", _seconds(each["arrived"]), _seconds(each["waited"]))
        for each in ordered[:MOST_PODS]
    ]
    headings: list[Heading | str] = ["Pod", "Node", Heading("Came", right=True), Heading("Waited", right=True)]
    left_out = len(ordered) - len(rows)
    note = f"{left_out:,} more are not listed." if left_out else ""
    return section("Pods, by how long they waited", scrolling(table(headings, rows)), note=note)


def _seconds(time: float | None) -> str:
    return "-" if time is None else f"{time:,.1f} s"
