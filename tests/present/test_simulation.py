"""Simulations for people and for programs."""

from __future__ import annotations

import csv
import io
from dataclasses import replace

import pytest

from builders import make_node, make_pod
from podium.answers.simulation import PlacedClaim, Simulation, simulate
from podium.cluster import Cluster
from podium.model import Object, Pod
from podium.present.simulation import to_document, to_lines, to_rows, workloads
from storage_objects import bound, make_claim, make_class, make_volume, pod_with, uses


def simulated(*objects: Object) -> Simulation:
    return simulate(Cluster.from_objects(objects), tie_break="first")


def owned(workload: str, number: int, **fields: object) -> Pod:
    owner = {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": workload, "uid": workload}
    return make_pod(f"{workload}-{number}", namespace="shop", owner=owner, **fields)  # type: ignore[arg-type]


def text(simulation: Simulation, **options: bool) -> list[str]:
    return [line.text for line in to_lines(simulation, **options)]


def shop() -> Simulation:
    gpu = {"example.com/gpu": 1}
    return simulated(
        make_node("a", cpu="2", memory="4Gi", gpu=2),
        make_node("b", cpu="2", memory="4Gi"),
        make_pod("running", node="a", requests={"cpu": "500m"}),
        *(owned("web", number, requests={"cpu": "1", "memory": "1Gi"}) for number in range(3)),
        *(owned("train", number, requests=gpu) for number in range(3)),
    )


def test_the_text() -> None:
    assert text(shop()) == [
        "6 pending pods: 5 fit, 1 does not.",
        "",
        "WORKLOAD                PODS  PLACED  ON",
        "shop StatefulSet/train     3       2  a x2",
        "shop StatefulSet/web       3       3  b x2, a",
        "",
        "STAY PENDING",
        "shop/train-2",
        "    0/2 nodes are available: 2 Insufficient example.com/gpu.",
        "",
        "RESOURCE         BEFORE       AFTER        ALLOCATABLE",
        "cpu                 0.5  12%    3.5   88%            4",
        "memory                0   0%    3Gi   38%          8Gi",
        "pods                  1   0%      6    3%          220",
        "example.com/gpu       0   0%      2  100%            2",
        "",
        "NODE  NEW         CPU     MEMORY      PODS         GPU",
        "a       3  25% -> 75%  0% -> 25%  1% -> 4%  0% -> 100%",
        "b       2  0% -> 100%  0% -> 50%  0% -> 2%           -",
    ]


SUMMARIES: dict[str, tuple[list[Object], str]] = {
    "nothing pending": ([], "Nothing is pending: no pod of the input waits for a node."),
    "one fits": ([make_pod("p")], "1 pending pod: it fits."),
    "all fit": ([make_pod("p"), make_pod("q")], "2 pending pods: all fit."),
}


@pytest.mark.parametrize(("pods", "sentence"), SUMMARIES.values(), ids=SUMMARIES)
def test_the_first_line(pods: list[Object], sentence: str) -> None:
    lines = text(simulated(make_node("a"), *pods))

    assert lines[0] == sentence
    assert "STAY PENDING" not in lines


def many() -> Simulation:
    nodes = [make_node(f"a-node-with-quite-a-long-name-{number:02}", pods=2) for number in range(20)]
    pods = [owned(f"workload-{number:02}", 0) for number in range(60)]
    return simulated(*nodes, *pods)


def test_of_many_ten_are_shown() -> None:
    lines = text(many())

    assert "and 50 more workloads: 40 of 50 pods placed" in lines
    assert "and 10 more nodes" in lines
    assert len(lines) < 40
    assert max(map(len, lines)) <= 80


def test_everything_is_shown_when_asked_for() -> None:
    lines = text(many(), everything=True)

    assert all(any(f"workload-{number:02}" in line for line in lines) for number in range(60))
    assert max(map(len, lines)) <= 80


def test_workloads_name_the_nodes_with_most_pods_first() -> None:
    found = {workload.name: workload for workload in workloads(shop())}

    assert list(found["StatefulSet/web"].nodes.items()) == [("b", 2), ("a", 1)]
    assert (found["StatefulSet/train"].pods, found["StatefulSet/train"].placed) == (3, 2)


def test_the_document() -> None:
    document = to_document(shop())

    assert (document["apiVersion"], document["kind"]) == ("podium/v1", "Simulation")
    assert document["fits"] is False
    assert document["pods"] == {"total": 6, "placed": 5, "pending": 1, "preempted": 0}
    assert document["workloads"][0] == {
        "namespace": "shop",
        "workload": "StatefulSet/web",
        "pods": 3,
        "placed": 3,
        "nodes": {"b": 2, "a": 1},
    }
    assert document["placements"][-1] == {
        "pod": "shop/train-2",
        "workload": "StatefulSet/train",
        "node": None,
        "message": "0/2 nodes are available: 2 Insufficient example.com/gpu.",
        "preemptedBy": None,
        "from": None,
    }
    assert document["utilisation"]["cpu"] == {"allocatable": 4000, "before": 500, "after": 3500}
    assert [(node["node"], node["newPods"]) for node in document["nodes"]] == [("a", 3), ("b", 2)]
    assert document["nodes"][0]["utilisation"]["example.com/gpu"] == {"allocatable": 2, "before": 0, "after": 2}


def storage() -> Simulation:
    return simulated(
        make_node("a"),
        make_class("fast"),
        make_class("local", "kubernetes.io/no-provisioner"),
        *bound("old"),
        make_claim("new", "5Gi", storage_class="fast"),
        make_claim("kept", storage_class="local"),
        make_volume("pv-1", storage_class="local"),
        pod_with(uses("old", "new", "kept")),
    )


def test_claims_are_shown_with_their_volumes() -> None:
    lines = text(storage())
    start = lines.index("CLAIM         SIZE  CLASS  VOLUME")

    assert lines[start + 1 : start + 5] == [
        "default/new    5Gi  fast   to be provisioned for a",
        "default/kept   1Gi  local  pv-1",
        "default/old    1Gi  -      old-volume, bound already",
        "",
    ]


def test_where_a_volume_is_provisioned_is_shown() -> None:
    made = PlacedClaim("default/new", "default/pod", "", "fast", "provisioned", None, "a", {"zone": "z"})
    undecided = PlacedClaim("default/other", "default/pod", "1Gi", "", "undecided")

    lines = text(replace(storage(), claims=(made, undecided)))

    assert "default/new       -  fast   to be provisioned for a (zone=z)" in lines
    assert "default/other   1Gi  -      not decided: no plugin binds volumes" in lines


def test_of_many_claims_ten_are_shown() -> None:
    claims = tuple(
        PlacedClaim(f"shop/{'long-name' * 9}-{number}", "shop/pod", "1Gi", "", "undecided") for number in range(12)
    )
    simulation = replace(storage(), claims=claims)

    assert "and 2 more claims" in text(simulation)
    # No name is cut: one that leaves no room for the rest of its row has a line of its own.
    assert claims[0].claim in text(simulation)
    assert max(len(line) for line in text(simulation) if not line.startswith("shop/long-name")) <= 80
    assert len(text(simulation, everything=True)) == len(text(simulation)) + 3


def test_the_document_has_claims() -> None:
    assert to_document(storage())["claims"][1] == {
        "claim": "default/new",
        "pod": "default/pod",
        "size": "5Gi",
        "storageClass": "fast",
        "outcome": "provisioned",
        "volume": None,
        "node": "a",
        "topology": {},
    }


def test_csv_has_a_row_per_pod() -> None:
    rows = list(csv.DictReader(io.StringIO(to_rows(shop()))))

    assert [row["pod"] for row in rows] == ["web-0", "web-1", "web-2", "train-0", "train-1", "train-2"]
    assert rows[0]["node"] == "b"
    assert rows[-1] == {
        "namespace": "shop",
        "pod": "train-2",
        "workload": "StatefulSet/train",
        "node": "",
        "message": "0/2 nodes are available: 2 Insufficient example.com/gpu.",
    }
