"""Packing, imbalance, spread and fragmentation, each by hand on clusters small enough to see."""

from __future__ import annotations

from typing import Any

import pytest

from builders import ZONE, make_node, make_pod
from podium.answers.measures import (
    NODE,
    evenness,
    fragmentation,
    imbalance,
    largest_fit,
    mean_utilisation,
    measure,
    nodes_in_use,
    rows_in_use,
    spread,
    stranded,
)
from podium.cluster import Cluster
from podium.model import Object, Pod

GIBI = 1024**3
DAEMON = {"kind": "DaemonSet", "name": "agent"}


def web(name: str, node: str, cpu: str = "1", memory: str = "1Gi", **fields: Any) -> Pod:
    fields.setdefault("owner", {"kind": "StatefulSet", "name": "web"})
    return make_pod(name, node=node, requests={"cpu": cpu, "memory": memory}, **fields)


def cluster(*pods: Object, nodes: str = "a1 a2 b1 b2") -> Cluster:
    """Nodes of 4 cpu and 8Gi; the first letter is the zone."""
    return Cluster.from_objects([*(make_node(name, labels={ZONE: name[0]}) for name in nodes.split()), *pods])


def test_a_node_is_in_use_once_it_has_more_than_what_goes_with_it() -> None:
    daemon = make_pod("agent-x", node="a1", owner=DAEMON)
    mirror = make_pod("proxy-a2", namespace="kube-system", node="a2", mirror=True)

    assert nodes_in_use(cluster(daemon, mirror)) == 0
    assert nodes_in_use(cluster(daemon, web("w", "a1"))) == 1
    assert nodes_in_use(cluster(daemon, mirror, web("w", "a1"), make_pod("bare", node="b1"))) == 2


def test_packing_is_the_mean_utilisation_of_nodes_in_use() -> None:
    packed = cluster(web("x", "a1", cpu="4"), web("y", "b1", cpu="1"))

    assert mean_utilisation(packed, "cpu", rows_in_use(packed)) == pytest.approx((1 + 0.25) / 2)
    assert mean_utilisation(cluster(), "cpu", rows_in_use(cluster())) == 0


def test_imbalance_is_the_standard_deviation_over_all_nodes() -> None:
    assert imbalance(cluster(web("x", "a1", cpu="4"), nodes="a1 a2"), "cpu") == pytest.approx(0.5)
    assert imbalance(cluster(web("x", "a1"), web("y", "a2"), nodes="a1 a2"), "cpu") == 0


EVENNESS: dict[str, tuple[list[int], int, float]] = {
    "all in one of two": ([4], 2, 0.0),
    "as even as can be": ([2, 2], 2, 1.0),
    "an odd one cannot be even": ([2, 1], 2, 1.0),
    "half way": ([3, 1], 2, 0.5),
    "one domain only": ([5], 1, 1.0),
    "fewer pods than domains": ([1, 1], 9, 1.0),
    "two in one of many": ([2], 9, 0.0),
    "no pod": ([], 3, 1.0),
}


@pytest.mark.parametrize(("counts", "domains", "expected"), EVENNESS.values(), ids=EVENNESS)
def test_evenness_goes_by_the_fullest_domain(counts: list[int], domains: int, expected: float) -> None:
    assert evenness(counts, domains) == pytest.approx(expected)


def test_spread_is_the_mean_evenness_of_workloads() -> None:
    even = [web("w-0", "a1"), web("w-1", "b1")]
    db = {"kind": "StatefulSet", "name": "db"}
    together = [web("d-0", "a1", owner=db), web("d-1", "a2", owner=db)]
    alone = make_pod("bare", node="a1")

    assert spread(cluster(*even, alone), ZONE) == 1
    assert spread(cluster(*even, *together), ZONE) == pytest.approx(0.5)
    assert spread(cluster(*even, *together), NODE) == 1
    assert spread(cluster(alone), ZONE) == 1


def test_stranded_is_what_the_other_resource_is_lacking_for() -> None:
    full_of_cpu = cluster(web("x", "a1", cpu="4", memory="2Gi"), nodes="a1 a2")

    assert stranded(full_of_cpu) == (0, 6 * GIBI)
    assert fragmentation(full_of_cpu) == pytest.approx(6 / (4 / 4 * 8 + 6 + 8))
    assert fragmentation(cluster(web("x", "a1", cpu="2", memory="4Gi"), nodes="a1 a2")) == 0


def test_largest_fit_is_a_plain_pod_in_the_proportions_of_the_cluster() -> None:
    nodes = [make_node("a"), make_node("tainted", taints=["x=y:NoSchedule"]), make_node("off", unschedulable=True)]

    assert largest_fit(Cluster.from_objects([*nodes, web("w", "a", cpu="1", memory="4Gi")])) == (2000, 4 * GIBI)
    assert largest_fit(Cluster.from_objects(nodes[1:])) == (0, 0)
    full = Cluster.from_objects([make_node("a", pods=1), web("w", "a")])
    assert largest_fit(full) == (0, 0)


def test_measure_has_it_all() -> None:
    found = measure(cluster(web("x", "a1"), make_pod("waiting")))

    assert (found.pods, found.pending, found.nodes, found.nodes_in_use) == (1, 1, 4, 1)
    assert found.cpu_utilisation == pytest.approx(0.25)
    assert found.to_dict()["nodesInUse"] == 1
    assert measure(Cluster.from_objects([])).fragmentation == 0
