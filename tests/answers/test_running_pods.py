"""Every answer about a running pod decides it as if it were not running, and gives its devices back for that."""

from __future__ import annotations

from contextlib import closing

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from answers.test_device_answers import holding
from builders import make_node, make_pod
from cluster.facts import facts
from device_objects import gpus, make_class
from podium import answers
from podium.answers.explanation import explain_pod
from podium.answers.moved_pods import ScoredPods
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.model import Object, ResourceClaim

RELEASES = ("v1.33", "v1.37")
"""The first does not look at claims, the second does."""


@st.composite
def clusters(draw: st.DrawFn) -> Cluster:
    """Nodes with GPUs, some cordoned, and running pods that hold some of them."""
    objects: list[Object] = [make_class()]
    for name in ("a", "b", "c"):
        number = draw(st.integers(0, 2))
        objects += [make_node(name, unschedulable=draw(st.booleans())), gpus(name, number)]
        for device in range(number):
            if draw(st.booleans()):
                objects += holding(f"on-{name}-{device}", name, f"gpu-{device}")
    return Cluster.from_objects(objects)


def explained(cluster: Cluster, release: str) -> dict[str, Decision]:
    """The decision of `explain` about every running pod."""
    with closing(Scheduler(cluster, release=release, tie_break="first")) as scheduler:
        return {pod.key: explain_pod(scheduler, pod).decision for pod, _ in list(cluster.placed())}


@settings(max_examples=40, deadline=None)
@given(clusters())
def test_explain_audit_and_upgrade_agree(cluster: Cluster) -> None:
    before, after = (explained(cluster, release) for release in RELEASES)
    found = answers.upgrade(cluster, before=RELEASES[0], after=RELEASES[1])
    ties = {key: (before[key].ties, after[key].ties) for key in before}

    assert {each.pod: (each.before, each.after) for each in found.changed} == {
        key: (old, new) for key, (old, new) in ties.items() if (old or new) and not set(old) & set(new)
    }
    assert not answers.upgrade(cluster, before=RELEASES[1], after=RELEASES[1]).changed
    for each in answers.audit(cluster, release=RELEASES[1]).pods:
        decision = after[each.pod]
        assert each.best == (each.node if each.node in decision.ties else decision.node)


def moved(cluster: Cluster) -> dict[str, tuple[str, ...]]:
    """Per pod that holds a GPU, the nodes it could go to in v1.37, as `upgrade` tells it."""
    return {each.pod: each.after for each in answers.upgrade(cluster, before="v1.33", after="v1.37").changed}


def test_an_upgrade_gives_the_devices_of_a_running_pod_back() -> None:
    # Only b has another GPU; c would be as good in v1.33, and a has room but is cordoned.
    nodes = [make_node("a", unschedulable=True), make_node("b", cpu="1"), make_node("c", cpu="8")]
    pods = [*holding("p", "a", "gpu-0"), make_pod("busy", node="b", requests={"cpu": "500m"})]
    cluster = Cluster.from_objects([make_class(), *nodes, gpus("a", 1), gpus("b", 1), *pods])

    assert moved(cluster) == {"default/p": ("b",)}


@pytest.mark.parametrize("bound", [True, False], ids=["bound", "only placed"])
def test_a_cluster_without_a_pod_is_afterwards_as_before(bound: bool) -> None:
    held = holding("p", "a", "gpu-0")
    cluster = Cluster.from_objects([make_class(), make_node("a"), gpus("a", 1), *held])
    (pod, _), *_ = cluster.placed()
    if not bound:
        cluster.remove(pod)
        pod = replace(pod, spec=replace(pod.spec, node_name=""))
        cluster.assume(pod, "a")
    before = facts(cluster)

    with cluster.without(pod) as unbound:
        (claim,) = cluster.store.of(ResourceClaim)
        assert (unbound.spec.node_name, claim.status.allocation, cluster.find_pod(pod.key)) == ("", None, None)

    assert facts(cluster) == before
    assert cluster.store.of(ResourceClaim).get("of-p", "default") is held[1]


def test_nothing_changes_for_a_pod_without_a_node() -> None:
    # Its claim has a device already, as after a failed binding: kube-scheduler keeps to that.
    _, claim = holding("p", "a", "gpu-0")
    waiting = make_pod("p", resource_claims=[{"name": "c0", "resourceClaimName": "of-p"}])
    objects = [make_class(), make_node("a"), make_node("b"), gpus("a", 1), gpus("b", 1), waiting, claim]
    cluster = Cluster.from_objects(objects)

    with cluster.without(waiting) as unbound:
        assert unbound is waiting
        assert cluster.store.of(ResourceClaim).get("of-p", "default") is claim
    with closing(Scheduler(cluster, tie_break="first")) as scheduler:
        assert explain_pod(scheduler, waiting).decision.feasible == scheduler.decide(waiting).feasible == ("a",)


def test_a_pod_bound_to_a_node_that_is_not_there() -> None:
    cluster = Cluster.from_objects([make_node("a"), make_pod("p", node="gone")])
    (pod,) = cluster.stranded

    with cluster.without(pod) as unbound:
        assert (unbound.spec.node_name, cluster.stranded) == ("", [])

    assert cluster.stranded == [pod]


def test_the_page_scores_a_pod_without_the_devices_it_has() -> None:
    cluster = Cluster.from_objects([make_class(), make_node("a"), gpus("a", 1), *holding("p", "a", "gpu-0")])
    with closing(Scheduler(cluster)) as scheduler:
        scored = ScoredPods(scheduler, [pod for pod, _ in cluster.placed()], 1)
        scored.decide_more(0.0, 1)

    assert [cluster.names[row] for row in scored.scores[0].best.tolist()] == ["a"]
