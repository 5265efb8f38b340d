"""Trials: pods come and go for a while, and everything the cluster says goes along and comes back."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import HOSTNAME, ZONE, make_node
from cluster.facts import facts
from pod_kinds import POD_KINDS, pod_of
from podium.cluster import Cluster
from podium.cluster.cluster import PodTrial

KINDS = [kind for kind in POD_KINDS if kind != "on n3"]


def full_cluster() -> Cluster:
    """Two nodes with one pod of every kind each."""
    nodes = [make_node(name, cpu="64", labels={HOSTNAME: name, ZONE: name}) for name in ("n0", "n1")]
    pods = [pod_of(kind, f"{place}-{node}", node=node) for node in ("n0", "n1") for place, kind in enumerate(KINDS)]
    return Cluster.from_objects([*nodes, *pods])


def empty_n0(cluster: Cluster, trial: PodTrial) -> None:
    for placed in cluster.placed_on(cluster.rows["n0"]):
        trial.take_off(placed)


def empty_n0_and_bring_back_half(cluster: Cluster, trial: PodTrial) -> None:
    pods = cluster.placed_on(cluster.rows["n0"])
    empty_n0(cluster, trial)
    for placed in pods[::2]:
        trial.put_back(placed)


def crowd_n1(cluster: Cluster, trial: PodTrial) -> None:
    for place, kind in enumerate(KINDS):
        pod = pod_of(kind, f"guest-{place}")
        trial.place(pod, cluster.rows["n1"], cluster.info_of(pod))


CHANGES: dict[str, Callable[[Cluster, PodTrial], None]] = {
    "taking pods off": empty_n0,
    "and bringing some back": empty_n0_and_bring_back_half,
    "new pods": crowd_n1,
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_afterwards_the_cluster_is_as_it_was(change: Callable[[Cluster, PodTrial], None]) -> None:
    cluster = full_cluster()
    before, order = facts(cluster), [pod.key for pod in cluster.pods_on(0)]

    with PodTrial(cluster) as trial:
        change(cluster, trial)
        assert facts(cluster) != before

    assert facts(cluster) == before
    assert [pod.key for pod in cluster.pods_on(0)] == order


def test_meanwhile_the_cluster_is_as_if_the_pods_were_gone_for_good() -> None:
    cluster, expected = full_cluster(), full_cluster()
    for pod in expected.pods_on(expected.rows["n0"]):
        expected.remove(pod)

    with PodTrial(cluster) as trial:
        empty_n0(cluster, trial)
        found = facts(cluster)

    assert found | {"pods": None} == facts(expected) | {"pods": None}


def test_an_error_takes_the_trial_back_too() -> None:
    cluster = full_cluster()
    before = facts(cluster)

    def fail() -> None:
        with PodTrial(cluster) as trial:
            empty_n0(cluster, trial)
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()

    assert facts(cluster) == before
