from __future__ import annotations

from typing import Any

import pytest

from manifests.objects import Fields, doc, names, yaml_of
from podium.manifests import Objects, load
from podium.model import Pod, PodSpec, Toleration
from podium.workloads import expand_workloads
from podium.workloads.daemon_sets import daemon_tolerations

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def node(name: str, *taints: str, **labels: str) -> Fields:
    """A node with taints written `key:Effect`."""
    split = [taint.split(":") for taint in taints]
    return doc("Node", name, labels=labels, spec={"taints": [{"key": key, "effect": effect} for key, effect in split]})


def daemon_set(**spec: Any) -> Fields:
    return doc("DaemonSet", "log", spec={"template": {"metadata": {"labels": {"app": "log"}}, "spec": spec}})


def expand(*documents: Fields) -> Objects:
    return expand_workloads(load(list(documents)))


def on_name(*values: str) -> Fields:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": list(values)}]}


def required(*terms: Fields) -> Fields:
    return {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}}


@pytest.mark.parametrize(
    ("case", "spec", "nodes", "served"),
    [
        ("every node", {}, [node("a"), node("b")], ["a", "b"]),
        ("not a tainted one", {}, [node("a", "spot:NoSchedule"), node("b", "spot:NoExecute"), node("c")], ["c"]),
        ("a less liked one", {}, [node("a", "spot:PreferNoSchedule")], ["a"]),
        (
            "a tolerated taint",
            {"tolerations": [{"key": "spot", "operator": "Exists"}]},
            [node("a", "spot:NoSchedule")],
            ["a"],
        ),
        ("by nodeSelector", {"nodeSelector": {"disk": "ssd"}}, [node("a", disk="ssd"), node("b", disk="hdd")], ["a"]),
        (
            "by node affinity",
            {"affinity": required({"matchExpressions": [{"key": "disk", "operator": "Exists"}]}, on_name("c"))},
            [node("a", disk="ssd"), node("b"), node("c")],
            ["a", "c"],
        ),
        ("by node name", {"nodeName": "b"}, [node("a"), node("b")], ["b"]),
        (
            "in spite of the node's condition",
            {},
            [
                node("a", "node.kubernetes.io/not-ready:NoExecute"),
                node("b", "node.kubernetes.io/unreachable:NoExecute"),
                node("c", "node.kubernetes.io/disk-pressure:NoSchedule"),
                node("d", "node.kubernetes.io/memory-pressure:NoSchedule"),
                node("e", "node.kubernetes.io/pid-pressure:NoSchedule"),
                node("f", "node.kubernetes.io/unschedulable:NoSchedule"),
                node("g", "node.kubernetes.io/network-unavailable:NoSchedule"),
                node("h", "node.kubernetes.io/not-ready:NoSchedule"),
            ],
            ["a", "b", "c", "d", "e", "f"],
        ),
        (
            "without network on the host's network",
            {"hostNetwork": True},
            [node("a", "node.kubernetes.io/network-unavailable:NoSchedule")],
            ["a"],
        ),
    ],
)
def test_which_nodes_get_a_pod(case: str, spec: Fields, nodes: list[Fields], served: list[str]) -> None:
    assert names(expand(*nodes, daemon_set(**spec))) == [f"log-{name}" for name in served]


@pytest.mark.parametrize(
    ("case", "fields"),
    [
        ("running", {"spec": {"nodeName": "a"}}),
        ("pending", {"spec": {"affinity": required(on_name("a"))}}),
        ("on its way out", {"spec": {"nodeName": "a"}, "deletionTimestamp": "2024-01-01T00:00:00Z"}),
    ],
)
def test_nodes_that_have_a_pod_get_none(case: str, fields: Fields) -> None:
    objects = expand(node("a"), node("b"), daemon_set(), doc("Pod", "there", owner="DaemonSet/log", **fields))

    assert names(objects) == ["log-b", "there"]


def test_failed_pods_are_replaced() -> None:
    failed = doc("Pod", "log-a", owner="DaemonSet/log", spec={"nodeName": "a"}, status={"phase": "Failed"})

    assert names(expand(node("a"), daemon_set(), failed)) == ["log-a-0", "log-a"]


def test_the_pod_is_bound_for_its_node() -> None:
    preferred = [{"weight": 1, "preference": on_name("b")}]
    affinity = {
        "nodeAffinity": {**required(on_name("a"))["nodeAffinity"], PREFERRED: preferred},
        "podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]},
    }

    (pod,) = expand(node("a"), node("b"), daemon_set(affinity=affinity)).of(Pod)

    assert pod.spec.node_name == ""
    assert yaml_of(pod.spec.affinity) == {
        "nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [on_name("a")]}, PREFERRED: preferred},
        "podAntiAffinity": {REQUIRED: [{"topologyKey": "zone"}]},
    }


def test_labels() -> None:
    document = daemon_set()
    document["metadata"]["annotations"] = {"deprecated.daemonset.template.generation": "3"}

    (pod,) = expand(node("a"), document).of(Pod)

    assert pod.metadata.labels.keys() == {"app", "controller-revision-hash", "pod-template-generation"}
    assert pod.metadata.labels["pod-template-generation"] == "3"
    assert pod.metadata.owner_references[0].kind == "DaemonSet"


def test_standard_tolerations_take_the_place_of_short_ones() -> None:
    short = Toleration(key="node.kubernetes.io/not-ready", operator="Exists", effect="NoExecute", toleration_seconds=5)
    other = Toleration(key="gpu", operator="Exists")

    tolerations = daemon_tolerations(PodSpec(tolerations=[short, other], host_network=True))

    assert [(each.key.rpartition("/")[2], each.effect, each.toleration_seconds) for each in tolerations] == [
        ("not-ready", "NoExecute", None),
        ("gpu", "", None),
        ("unreachable", "NoExecute", None),
        ("disk-pressure", "NoSchedule", None),
        ("memory-pressure", "NoSchedule", None),
        ("pid-pressure", "NoSchedule", None),
        ("unschedulable", "NoSchedule", None),
        ("network-unavailable", "NoSchedule", None),
    ]
