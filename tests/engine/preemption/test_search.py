"""The search as a whole: how far it goes, and that it finds what trying everything out would find."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from builders import HOSTNAME, ZONE, affinity, make_config, make_node, make_pod, pod_term, spread, with_args
from engine.preempting import (
    APP,
    FREE,
    PORT,
    PROTECTED,
    budget,
    preempt,
    preempted,
    preemptor,
    running,
    scheduler_on,
    small,
    victims_by_node,
)
from podium.cluster import Cluster, Nodes
from podium.engine import Decision, Scheduler
from podium.engine._recheck import Recheck
from podium.engine.dry_runs import GOOD, REJECTED, UNKNOWN, VIOLATING, Window, are_enough
from podium.engine.plan import Plan
from podium.errors import PluginError
from podium.framework import SUCCESS, CycleState, PreEnqueuePlugin, PreFilterPlugin, PreFilterResult, Registry, Status
from podium.model import Object, Pod
from podium.plugins import IN_TREE


def test_the_same_seed_gives_the_same_choice_and_a_tie_is_drawn_at_random() -> None:
    objects = [obj for i in range(8) for obj in (small(f"n{i}"), running(f"low-{i}", f"n{i}", cpu="2"))]

    chosen = [preempt(objects, preemptor(), tie_break="random", seed=seed).nominated for seed in range(12)]

    assert chosen == [preempt(objects, preemptor(), tie_break="random", seed=seed).nominated for seed in range(12)]
    assert len(set(chosen)) > 1


def test_what_was_found_before_does_not_count_once_pods_elsewhere_matter() -> None:
    zone = {"labels": {ZONE: "z"}}
    nodes = [small("a", **zone), small("c", **zone)]
    against = affinity(required=[pod_term(ZONE, APP)], anti=True)
    scheduler = scheduler_on([*nodes, running("low", "a", cpu="2"), running("equal", "c", cpu="1", priority=100)])
    new = preemptor(cpu="2", labels=APP)
    assert scheduler.decide(new, preempt=True).nominated == "a"

    scheduler.cluster.add(running("against", "c", cpu="1", priority=100, affinity=against))

    assert scheduler.decide(new, preempt=True).nominated is None


def test_how_many_nodes_are_tried_is_configured() -> None:
    objects = [obj for i in range(20) for obj in (small(f"n{i}"), running(f"low-{i}", f"n{i}", cpu="2"))]

    def tried(**args: int) -> int:
        return len(preempt(objects, preemptor(), with_args("DefaultPreemption", **args)).candidates)

    assert tried() == 20
    assert tried(minCandidateNodesPercentage=10, minCandidateNodesAbsolute=1) == 2
    assert tried(minCandidateNodesPercentage=10, minCandidateNodesAbsolute=5) == 5
    assert tried(minCandidateNodesPercentage=0, minCandidateNodesAbsolute=7) == 7


def test_the_search_goes_on_until_one_candidate_violates_no_budget() -> None:
    objects: list[Object] = [small("free"), running("free", "free", cpu="2", labels=FREE)]
    for i in range(6):
        objects += [small(f"n{i}"), running(f"low-{i}", f"n{i}", cpu="2", labels=PROTECTED)]
    config = with_args("DefaultPreemption", minCandidateNodesPercentage=0, minCandidateNodesAbsolute=1)

    for seed in range(7):
        decision = preempt([*objects, budget("pdb", PROTECTED)], preemptor(), config, seed=seed)
        assert decision.nominated == "free"


KINDS: dict[str, dict[str, Any]] = {
    "plain": {},
    "labelled": {"labels": APP},
    "port": {"ports": PORT},
    "spread": {"labels": APP, "topology_spread_constraints": [spread(ZONE, APP)]},
    "spread over nodes": {"labels": APP, "topology_spread_constraints": [spread(HOSTNAME, APP, skew=2)]},
    "apart": {"labels": APP, "affinity": affinity(required=[pod_term(HOSTNAME, APP)], anti=True)},
    "away from zones": {"affinity": affinity(required=[pod_term(ZONE, APP)], anti=True)},
    "together": {"labels": APP, "affinity": affinity(required=[pod_term(ZONE, APP)])},
}
placements = st.tuples(
    st.sampled_from(tuple(KINDS)), st.integers(0, 2), st.sampled_from(("500m", "1", "2")), st.integers(0, 3)
)


def by_trying(cluster: Cluster, pod: Pod, decision: Decision) -> dict[str, list[str]]:
    """The victims on every node, found by removing pods from forks and deciding from scratch."""

    def fits(tried: Cluster, node: str) -> bool:
        return node in Scheduler(tried, tie_break="first").decide(pod).feasible

    found = {}
    for node, status in decision.rejected.items():
        lower = [other for other in cluster.pods_on(cluster.rows[node]) if other.priority < pod.priority]
        tried = cluster.fork()
        for other in lower:
            tried.remove(other)
        if status.code.value != "Unschedulable" or not lower or not fits(tried, node):
            continue
        victims = []
        for other in sorted(lower, key=lambda other: -other.priority):
            tried.add(other)
            if not fits(tried, node):
                tried.remove(other)
                victims.append(other.name)
        found[node] = victims
    return found


@settings(max_examples=40)
@given(st.lists(placements, min_size=3, max_size=9), st.sampled_from(tuple(KINDS)), st.sampled_from(("500m", "2", "3")))
def test_victims_are_those_that_trying_it_out_finds(pods: list[tuple[str, int, str, int]], kind: str, cpu: str) -> None:
    nodes = [make_node(f"n{i}", cpu="3", labels={HOSTNAME: f"n{i}", ZONE: "xxy"[i]}) for i in range(3)]
    placed = [
        running(f"p{i}", f"n{node}", cpu=size, priority=priority * 50, **KINDS[name])
        for i, (name, node, size, priority) in enumerate(pods)
    ]
    cluster = Cluster.from_objects([*nodes, *placed])
    scheduler = Scheduler(cluster, tie_break="first")
    pod = preemptor(cpu=cpu, **KINDS[kind])

    decision = scheduler.decide(pod, preempt=True)

    assert victims_by_node(decision) == ({} if decision.node else by_trying(cluster, pod, decision))
    assert decision == Scheduler(Cluster.from_objects([*nodes, *placed]), tie_break="first").decide(pod, preempt=True)
    assert scheduler.decide(pod, preempt=True) == decision


def from_scratch(scheduler: Scheduler) -> Scheduler:
    """A scheduler that knows the cluster and the nominations of another one, and nothing else."""
    fresh = Scheduler(scheduler.cluster.fork(), tie_break="first", equivalence_cache=False)
    for name in scheduler.nominations.nodes():
        for other in scheduler.nominations.on(name):
            fresh.nominations.nominate(other, name)
    return fresh


def test_what_is_remembered_of_nodes_is_forgotten_when_they_change() -> None:
    objects: list[Object] = [make_node(f"n{i}", cpu="3") for i in range(4)]
    objects += [running(f"low-{i}", f"n{i % 4}", priority=i % 3) for i in range(12)]
    scheduler = scheduler_on(objects)

    for round_ in range(6):
        pod = preemptor(f"new-{round_}", cpu="2", priority=100)
        expected = from_scratch(scheduler).decide(pod, preempt=True)

        decision = scheduler.place(pod, preempt=True)

        # Where the search begins is drawn anew for every pod, so candidates may stand in another order.
        assert victims_by_node(decision) == victims_by_node(expected)
        assert decision.to_dict() == expected.to_dict()
        if round_ == 2:
            scheduler.cluster.add(budget("pdb", {"never": "matches"}))
        if round_ == 3:
            scheduler.cluster.remove(make_pod("low-3"))


@pytest.mark.parametrize(
    ("kinds", "enough", "expected"),
    [
        pytest.param([GOOD, GOOD, GOOD], 2, (2, [0, 1]), id="enough good ones"),
        pytest.param([REJECTED, GOOD, UNKNOWN, GOOD, GOOD], 2, (4, [1, 3]), id="rows between them"),
        pytest.param([VIOLATING, VIOLATING, GOOD, GOOD], 1, (3, [0, 1, 2]), id="until one is good"),
        pytest.param([VIOLATING, VIOLATING], 1, (None, [0, 1]), id="none is good"),
        pytest.param([GOOD, REJECTED], 2, (None, [0]), id="not enough"),
        pytest.param([], 1, (None, []), id="no rows"),
    ],
)
def test_how_many_rows_a_search_looks_at(kinds: list[int], enough: int, expected: tuple[int | None, list[int]]) -> None:
    length, candidates = Window.of(bytes(kinds), enough)

    assert (length, candidates.tolist()) == expected
    assert are_enough(bytes(kinds), enough) == (length is not None)


lives = st.lists(
    st.tuples(
        st.sampled_from(("preempt", "preempt", "preempt", "retry", "remove", "budget", "node")),
        st.sampled_from(("plain", "plain", "labelled", "port", "apart")),
        st.sampled_from(("1", "2", "4")),
        st.sampled_from((50, 100)),
        st.integers(0, 20),
    ),
    min_size=4,
    max_size=12,
)
full_nodes = st.lists(
    st.lists(st.tuples(st.sampled_from(("1", "1", "500m")), st.sampled_from((0, 0, 2)), st.booleans()), max_size=3),
    min_size=3,
    max_size=8,
)


def nodes_with_pods(nodes: list[list[tuple[str, int, bool]]]) -> list[Object]:
    objects: list[Object] = [make_node(f"n{i}", cpu="2", labels={HOSTNAME: f"n{i}"}) for i in range(len(nodes))]
    for i, pods in enumerate(nodes):
        for k, (cpu, priority, is_app) in enumerate(pods):
            labels = APP if is_app else FREE
            objects.append(running(f"p{i}-{k}", f"n{i}", cpu=cpu, priority=50 * priority, labels=labels))
    return objects


@settings(max_examples=30)
@given(full_nodes, st.lists(st.tuples(st.sampled_from(tuple(KINDS)), st.sampled_from(("1", "2"))), max_size=10))
def test_schedule_with_preemption_does_what_place_and_another_attempt_do(
    nodes: list[list[tuple[str, int, bool]]], pods: list[tuple[str, str]]
) -> None:
    objects = [*nodes_with_pods(nodes), budget("pdb", APP, allowed=1)]
    fast, slow = scheduler_on(objects), scheduler_on(objects)
    for number, (kind, cpu) in enumerate(pods):
        pod = preemptor(f"new-{number}", cpu=cpu, priority=60, **KINDS[kind])

        node = fast.schedule(pod, preempt=True)

        assert node == place_and_retry(slow, pod)
        assert where(fast.cluster) == where(slow.cluster)
        assert fast.nominations.nodes() == slow.nominations.nodes()


class Crowded(PreFilterPlugin, PreEnqueuePlugin):
    """Lets a pod in only while three pods run; at PreFilter or before the queue, as the profile says."""

    name = "Crowded"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(self.pre_enqueue_in(pod, nodes.cluster))

    def pre_enqueue_in(self, pod: Pod, cluster: Cluster) -> Status:
        return SUCCESS if len(list(cluster.placed())) >= 3 else Status.unschedulable("too quiet")


def with_crowded(point: str) -> dict[str, Any]:
    config = make_config({"plugins": {point: {"enabled": [{"name": "Crowded"}]}}})
    return {"config": config, "registry": Registry([*IN_TREE.values(), Crowded])}


@pytest.mark.parametrize(
    ("settings", "going"),
    [
        pytest.param({}, False, id="nothing in the way"),
        pytest.param(with_crowded("preFilter"), False, id="PreFilter sees the pods gone"),
        pytest.param(with_crowded("preEnqueue"), False, id="PreEnqueue sees the pods gone"),
        pytest.param({}, True, id="a victim is terminating already"),
    ],
)
def test_room_that_was_made_counts_only_if_another_attempt_would_find_it(settings: dict[str, Any], going: bool) -> None:
    pods = [running(f"p{i}", f"n{i}") for i in range(3)]
    if going:
        pods = [preempted(pod) for pod in pods]
    objects = [*map(small, ("n0", "n1", "n2")), *pods]
    fast, slow = scheduler_on(objects, **settings), scheduler_on(objects, **settings)
    for number in range(3):
        pod = preemptor(f"new-{number}", cpu="500m" if number else "2")

        assert attempt(fast.schedule, pod, preempt=True) == attempt(place_and_retry, slow, pod)
        assert where(fast.cluster) == where(slow.cluster)


def place_and_retry(scheduler: Scheduler, pod: Pod) -> str | None:
    """The node that a pod gets at its second attempt, after preemption at the first."""
    decision = scheduler.place(pod, preempt=True)
    return scheduler.schedule(pod) if decision.nominated else decision.node


def attempt(run: Callable[..., str | None], *args: Any, **options: Any) -> str | None:
    """The node; None also where a plugin keeps the pod out."""
    try:
        return run(*args, **options)
    except PluginError:
        return None


def where(cluster: Cluster) -> dict[str, str]:
    return {pod.key: node for pod, node in cluster.placed()}


@settings(max_examples=30)
@given(full_nodes, lives)
@example(  # two nodes that are equally full, of which only one has pods enough that may go
    [[("1", 0, True), ("1", 0, True)], [("1", 0, True), ("1", 2, True)]],
    [("preempt", "plain", "2", 100, 0), ("retry", "plain", "2", 100, 0), ("preempt", "plain", "2", 100, 0)],
)
def test_what_is_kept_gives_what_trying_every_node_anew_gives(
    nodes: list[list[tuple[str, int, bool]]], life: list[tuple[str, str, str, int, int]]
) -> None:
    scheduler, waiting = scheduler_on(nodes_with_pods(nodes)), list[Pod]()
    cluster = scheduler.cluster
    for number, (what, kind, cpu, priority, which) in enumerate(life):
        if what == "remove":
            placed = sorted(pod.key for pod, _ in cluster.placed())
            for pod, _ in [cluster.find_pod(key) or (make_pod(), "") for key in placed[which : which + 1]]:
                cluster.remove(pod)
        elif what == "budget":
            cluster.add(budget(f"pdb-{number}", APP, allowed=which % 3))
        elif what == "node":
            cluster.update(make_node(f"n{which % 9}", cpu="3", labels={HOSTNAME: f"n{which % 9}"}))
        else:
            again = what == "retry" and waiting
            pod = waiting.pop() if again else preemptor(f"new-{number}", cpu=cpu, priority=priority, **KINDS[kind])
            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Recheck, "reads_resources_only", lambda recheck, rows: False)
                patch.setattr(Plan, "rejections", lambda plan, skipped: None)
                expected = from_scratch(scheduler).decide(pod, preempt=True)

            decision = scheduler.place(pod, preempt=True)

            assert victims_by_node(decision) == victims_by_node(expected)
            assert decision.to_dict() == expected.to_dict()
            assert (decision.message, decision.chosen_by) == (expected.message, expected.chosen_by)
            if decision.nominated:
                waiting.append(pod)
