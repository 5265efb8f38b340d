"""Anonymised objects: no name is left, and every recorded case is decided the same up to the names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.live.reading import anonymize, documents
from podium.manifests import load
from podium.model import Pod
from podium.recorded import Case, read_records

GOLDEN = Path(__file__).parents[1] / "golden"
FAMILIES = (
    *("interpod", "mixed", "nodeaffinity", "owners", "ports", "preempt", "preempt-affinity"),
    *("resources", "rollout", "spread", "taints", "volumes", "new-in-v1.37", "devices/dra", "devices/dra-full"),
)
EVERY = 3
"""Every third case is enough to see every rule at work, and keeps the test quick."""


def decisions(items: list[dict[str, Any]], pods: int, preempt: bool) -> list[Decision]:
    """What is decided of the last so many of the items, each put on its node before the next."""
    pending = list(load(*items))[len(items) - pods :]
    scheduler = Scheduler(Cluster.from_objects(load(*items[: len(items) - pods])), tie_break="first")
    return [scheduler.place(pod, preempt=preempt) for pod in pending if isinstance(pod, Pod)]


def gist(decision: Decision, names: dict[str, str]) -> tuple[object, ...]:
    """What a decision says, with its names translated."""

    def named(name: str | None) -> str | None:
        return names.get(name, name) if name else name

    def key(pod: str) -> str:
        return "/".join(str(named(part)) for part in pod.split("/"))

    statuses = ((named(node), status) for node, status in decision.rejected.items())
    return (
        named(decision.node),
        sorted(map(str, map(named, decision.feasible))),
        sorted((node, status.code, status.plugin, len(status.reasons)) for node, status in statuses),
        [sorted((named(node), score) for node, score in each.normalized.items()) for each in decision.scores],
        sorted((named(node), total) for node, total in decision.totals.items()),
        sorted(map(str, map(named, decision.ties))),
        named(decision.nominated),
        [key(victim) for victim in decision.victims],
        bool(decision.error),
    )


def renamed(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> dict[str, str]:
    pairs = [(item["metadata"], other["metadata"]) for item, other in zip(before, after, strict=True)]
    return {old[field]: new[field] for old, new in pairs for field in ("name", "namespace") if field in old}


def cases(family: str) -> list[Case]:
    (path,) = GOLDEN.glob(f"{family}.jsonl.*")
    records = [record.case for record in read_records(str(path))]
    return [case for case in records[::EVERY] if case.config is None]


@pytest.mark.parametrize("family", FAMILIES)
def test_decisions_are_the_same_up_to_the_names(family: str) -> None:
    for case in cases(family):
        before = documents(load(*case.objects, *case.pods))
        after = anonymize(before)
        names = renamed(before, after)

        expected = [gist(each, names) for each in decisions(before, len(case.pods), case.preempt)]

        assert [gist(each, {}) for each in decisions(after, len(case.pods), case.preempt)] == expected, case.name
