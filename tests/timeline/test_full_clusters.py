"""On clusters with too little room, failures that are remembered give the same history as attempts made in full."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from builders import make_node
from podium.loop.queue import SchedulingQueue
from podium.loop.queued_pod import PodGroup
from podium.timeline import Timeline, TimelineResult
from timeline.test_timeline import at, node, pod

ZONE = "topology.kubernetes.io/zone"
SPECS: tuple[dict[str, Any], ...] = (
    {"cpu": "1"},
    {"cpu": "2"},
    {"cpu": "1500m"},
    {"cpu": "1", "priority": 5},
    {"cpu": "2", "priority": 9, "preemptionPolicy": "Never"},
    {"cpu": "9"},
    {"cpu": "0", "nodeSelector": {"disk": "ssd"}},
    {"cpu": "1", "volumes": [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]},
    {
        "cpu": "1",
        "topologySpreadConstraints": [
            {
                "maxSkew": 1,
                "topologyKey": ZONE,
                "whenUnsatisfiable": "DoNotSchedule",
                "labelSelector": {"matchLabels": {"app": "web"}},
            }
        ],
        "owner": "ReplicaSet/web",
    },
    {
        "cpu": "1",
        "affinity": {
            "podAntiAffinity": {
                "requiredDuringSchedulingIgnoredDuringExecution": [
                    {"topologyKey": ZONE, "labelSelector": {"matchLabels": {"app": "shy"}}}
                ]
            }
        },
    },
)
APPS = ("batch", "shy", "other")
"""The labels of pods without an owner; only the last of `SPECS` selects one of them."""
arrivals = st.lists(
    st.tuples(
        st.integers(0, 60), st.sampled_from(SPECS), st.sampled_from([5, 20, 60]), st.sampled_from(("batch", *APPS))
    ),
    min_size=5,
    max_size=30,
)
happenings = st.lists(st.tuples(st.integers(0, 90), st.sampled_from(["drain", "fail", "uncordon", "add", "remove"])))


def history(result: TimelineResult) -> bytes:
    """Everything a simulation says, as it is written."""
    return msgspec.json.encode([list(result.log), result.to_dict()])


Arrival = tuple[int, dict[str, Any], int, str]
"""When a pod comes, its spec, how long it runs, and its app."""


def labelled(item: dict[str, Any], app: str) -> dict[str, Any]:
    """The pod with the label of its app, unless an owner gives it labels."""
    if not item["metadata"]["ownerReferences"]:
        item["metadata"]["labels"] = {"app": app}
    return item


def events(pods: list[Arrival], others: list[tuple[int, str]]) -> list[dict[str, Any]]:
    found = [
        at(time, "add", labelled(pod(f"p{number}", **spec), app), lifetime=lifetime)
        for number, (time, spec, lifetime, app) in enumerate(pods)
    ]
    for number, (time, event) in enumerate(others):
        if event == "add":
            found.append(at(time, "add", node(f"extra{number}", cpu="2")))
        elif event == "remove":
            found.append(at(61 + time, "delete", pod(f"p{number % len(pods)}")))
        else:
            found.append(at(time, event, node("n0", cpu="3")))
    return sorted(found, key=lambda each: each["time"])


def run(happens: list[dict[str, Any]], node_count: int, **options: Any) -> bytes:
    nodes = [make_node(f"n{number}", cpu="3", pods=4, labels={ZONE: "ab"[number % 2]}) for number in range(node_count)]
    return history(Timeline(nodes, happens, **options).run(until=600))


def one_by_one(happens: list[dict[str, Any]], node_count: int) -> bytes:
    """The history with every waiting pod in the queue by itself, and nothing remembered."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SchedulingQueue, "try_groups", lambda queue: None)
        return run(happens, node_count, equivalence_cache=False)


@settings(max_examples=settings().max_examples // 4, phases=(Phase.explicit, Phase.reuse, Phase.generate))
@given(arrivals, happenings, st.integers(1, 4))
def test_the_same_history_as_with_nothing_remembered(
    pods: list[Arrival], others: list[tuple[int, str]], node_count: int
) -> None:
    happens = events(pods, others)

    assert run(happens, node_count) == one_by_one(happens, node_count)


@pytest.mark.parametrize("seed", range(2))
def test_a_full_day_of_few_kinds(seed: int) -> None:
    pods = [(number * 7 % 60, SPECS[(number * (seed + 3)) % 4], 20 + number % 40, "batch") for number in range(40)]
    happens = events(pods, [])

    assert run(happens, 3) == one_by_one(happens, 3)


def test_pods_of_few_kinds_are_tried_where_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    rejected: list[int] = []
    reject = PodGroup.reject

    def counting(group: PodGroup, *given: Any) -> list[Any]:
        before = group.woken_count
        found = reject(group, *given)
        rejected.append(before - group.woken_count)
        return found

    monkeypatch.setattr(PodGroup, "reject", counting)
    pods = [(number, SPECS[number % 3], 100, "batch") for number in range(60)]
    run(events(pods, []), 2)

    assert max(rejected) > 10


@pytest.fixture
def groups(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many groups of woken pods there were, each time they were looked for."""
    found: list[int] = []
    woken = SchedulingQueue.woken_groups

    def counting(queue: SchedulingQueue) -> list[PodGroup]:
        found.append(len(woken(queue)))
        return woken(queue)

    monkeypatch.setattr(SchedulingQueue, "woken_groups", counting)
    return found


def test_labels_that_nothing_selects_make_no_other_kind(groups: list[int]) -> None:
    pods = [(number, SPECS[number % 3], 100, f"app-{number}") for number in range(60)]
    run(events(pods, []), 2)

    assert max(groups) <= 3


def test_a_selector_that_comes_later_tells_kinds_apart() -> None:
    guard = {**SPECS[-1], "cpu": "0", "nodeSelector": {ZONE: "a"}}
    running = [(0, {"cpu": "1", "nodeSelector": {ZONE: zone}}, 20 if zone == "a" else 90, "") for zone in "aaabbb"]
    waiting = [(5 + number, SPECS[0], 60, app) for number, app in enumerate(("shy", "batch", "batch", "shy"))]
    happens = events([*running, *waiting, (10, guard, 90, "guard")], [])

    assert run(happens, 2) == one_by_one(happens, 2)
