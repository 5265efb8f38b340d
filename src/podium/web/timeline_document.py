"""A cluster over simulated time, as the page plays it."""

from __future__ import annotations

from collections import Counter
from contextlib import closing
from typing import Any

import msgspec

from podium.errors import InputError
from podium.model.node import ZONE
from podium.present.text import API_VERSION
from podium.present.timeline import to_lines
from podium.timeline import Timeline, TimelineResult, read_timeline
from podium.web import questions
from podium.web.subject import Subject
from podium.web.what_if import tiles

MOST_RECORDS = 50_000


def timeline_document(question: questions.Timeline, subject: Subject) -> dict[str, Any]:
    """Let time pass, and tell what happened: samples, pods, the log, and the nodes; of kind Timeline."""
    read = read_timeline(_events(question.events))
    timeline = Timeline(subject.objects, read, **subject.options, tie_break="first", seed=question.seed)
    with closing(timeline):
        result = timeline.run(question.until)
    return {
        "apiVersion": API_VERSION,
        "kind": "Timeline",
        **result.to_dict(),
        "words": [line.text for line in to_lines(result) if line.text][:3],
        "unplaced": len(result.unplaced),
        "log": list(result.log[:MOST_RECORDS]),
        "warnings": list(result.warnings),
        "tiles": _tiles(result, subject),
        "mostPods": _most_pods(result),
    }


def _events(given: list[dict[str, Any]] | str) -> list[dict[str, Any]]:
    """The events of a request: a list, or JSON lines."""
    if not isinstance(given, str):
        return given
    events = []
    for number, line in enumerate(given.splitlines(), 1):
        if line.strip():
            try:
                events.append(msgspec.json.decode(line, type=dict[str, Any]))
            except (msgspec.DecodeError, UnicodeError) as error:
                raise InputError(f"is not a JSON object: {error}", f"events line {number}") from None
    return events


def _tiles(result: TimelineResult, subject: Subject) -> dict[str, Any]:
    """The nodes of the cluster, and those that came later."""
    found = tiles(subject.cluster, ZONE)
    later = sorted({life.node for life in result.lives if life.node}.difference(found["nodes"]))
    found["new"] = list(range(len(found["nodes"]), len(found["nodes"]) + len(later)))
    found["nodes"] += later
    found["groups"] += [""] * len(later)
    found["pods"] += [0] * len(later)
    for column in found["resources"]:
        column["allocatable"] += [0] * len(later)
        column["requested"] += [0] * len(later)
    return found


def _most_pods(result: TimelineResult) -> int:
    """The most pods that any node had at any moment."""
    changes = [(life.bound, 1, life.node) for life in result.lives if life.bound is not None]
    changes += [
        (life.ended, -1, life.node) for life in result.lives if life.bound is not None and life.ended is not None
    ]
    counts: Counter[str] = Counter()
    most = 0
    for _, change, node in sorted(changes):
        counts[node] += change
        most = max(most, counts[node])
    return most
