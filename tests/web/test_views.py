"""What the page shows: decisions by columns, formulas, other weights, what-ifs, pods, a timeline."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from builders import make_node, make_pod
from podium.answers.explanation import explain_pod
from podium.answers.score_settings import ScoreSettings, with_settings
from podium.config import parse_config
from podium.engine import Scheduler
from podium.manifests import Objects, load
from podium.model import Object
from podium.plugins import IN_TREE
from podium.rules import NEWEST_RULES
from podium.web import _questions as questions
from podium.web._views import Views, placements_of
from podium.web.subject import Subject, served_subject
from storage_objects import make_claim, make_class, make_volume, pod_with, uses
from web.calling import Caller


@pytest.fixture
def views(fleet_documents: list[dict[str, Any]]) -> Views:
    subject = served_subject(load(fleet_documents), None, IN_TREE)
    return Views(subject, placements_of(subject))


def turned(subject: Subject, settings: ScoreSettings) -> dict[str, Any]:
    """The configuration with other settings."""
    return with_settings(subject.document, settings, subject.registry, subject.release)


@pytest.mark.parametrize("pod", ["batch/reindex", "payments/audit", "data/redis-0", "ml/train-xl"])
def test_a_decision_by_columns_says_what_explain_says(pod: str, caller: Caller) -> None:
    table = caller.post("/api/v1/decision", {"pod": pod}).json
    whole = caller.post("/api/v1/explain", {"pod": pod, "tieBreak": "first", "preempt": True}).json
    for field in ("pod", "runsOn", "node", "message", "words", "ties", "preemption"):
        assert table[field] == whole[field]
    assert table["nodes"] == [each["node"] for each in whole["feasible"]]
    for place, each in enumerate(whole["feasible"]):
        assert table["totals"][place] == (each["total"] or 0)
        for column in table["plugins"]:
            scores = each["scores"][column["plugin"]]
            assert (column["raw"][place], column["normalised"][place]) == (scores["raw"], scores["normalised"])
            assert column["weight"] == scores["weight"]
    rejected = {node: (group["plugin"], group["reasons"]) for group in table["rejected"] for node in group["nodes"]}
    assert rejected == {each["node"]: (each["plugin"], each["reasons"]) for each in whole["rejected"]}


def test_formulas_come_to_the_scores(views: Views) -> None:
    """The lines of each plugin end in its raw score."""
    cluster = views.subject.cluster
    seen = set()
    for pod, _ in list(cluster.placed())[::23]:
        decision = views.decision(questions.Decision(pod=pod.key))
        for node in decision["nodes"][:3] if decision["plugins"] else []:
            for each in views.node(questions.NodeDetail(node=node, pod=pod.key))["formulas"]:
                place = decision["nodes"].index(node)
                column = next(one for one in decision["plugins"] if one["plugin"] == each["plugin"])
                assert (each["raw"], each["normalised"]) == (column["raw"][place], column["normalised"][place])
                seen.add(each["plugin"])
                told = each["lines"][each["lines"].index(f"raw score {each['raw']:,}") - 1]
                assert re.split(r"[ =:]", told)[-1].replace(",", "") == str(each["raw"])
    assert {"NodeResourcesFit", "PodTopologySpread", "TaintToleration"} <= seen


@pytest.mark.parametrize(
    "settings",
    [
        ScoreSettings(weights={"NodeResourcesFit": 10}),
        ScoreSettings(weights={"NodeResourcesFit": 0, "NodeResourcesBalancedAllocation": 9}),
        ScoreSettings(strategy="MostAllocated"),
        ScoreSettings(weights={"ImageLocality": 5}, disabled=["TaintToleration"]),
    ],
    ids=["heavier", "zero", "strategy", "switched off"],
)
def test_moved_pods_are_those_that_a_scheduler_with_that_configuration_moves(
    settings: ScoreSettings, views: Views
) -> None:
    while True:
        found = views.moved(questions.Moved(settings=settings))
        if found["lookedAt"] == found["sample"]:
            break
    assert found["sample"] > 200
    today = Scheduler(views.subject.cluster, tie_break="first")
    config = parse_config(turned(views.subject, settings), IN_TREE.points_in(NEWEST_RULES), rules=NEWEST_RULES)
    other = Scheduler(views.subject.cluster, config, tie_break="first")
    named = {move["pod"] for move in found["moves"]}
    for pod, _ in list(views.subject.cluster.placed())[150:400:7]:
        before, after = (explain_pod(each, pod).decision for each in (today, other))
        if before.error or pod.metadata.controller is None or pod.metadata.controller.kind == "DaemonSet":
            continue
        if found["moved"] == len(found["moves"]):
            assert (pod.key in named) == (not set(before.ties) & set(after.ties)), pod.key


def test_a_turned_configuration_is_one_that_can_be_used(fleet_subject: Subject) -> None:
    settings = ScoreSettings(
        weights={"NodeResourcesFit": 7, "ImageLocality": 0},
        strategy="RequestedToCapacityRatio",
        disabled=["PodTopologySpread"],
    )
    config = parse_config(turned(fleet_subject, settings), IN_TREE.points_in(NEWEST_RULES), rules=NEWEST_RULES)
    weights = {ref.name: ref.weight for ref in config.profiles[0].points["score"]}
    assert weights["NodeResourcesFit"] == 7
    assert "ImageLocality" not in weights
    assert "PodTopologySpread" not in {ref.name for refs in config.profiles[0].points.values() for ref in refs}


@pytest.mark.parametrize(
    ("search", "some"),
    [
        ("", "payments/audit-hlrhdd-8klzs"),
        ("pending", "search/index-9"),
        ("insufficient nvidia.com/gpu", "ml/train-xl-6np85"),
        ("SHOP web general-a1", None),
        ("data-a1", "search/index-3"),
    ],
)
def test_pods_are_found_by_what_is_known_of_them(search: str, some: str | None, views: Views) -> None:
    found = views.pods(questions.Pods(search=search, limit=500))
    assert found["complete"]
    names = [f"{each['namespace']}/{each['name']}" for each in found["items"]]
    assert some is None or some in names
    assert found["found"] == len(names)
    waiting = [each["node"] is None for each in found["items"]]
    assert waiting == sorted(waiting, reverse=True)
    assert all(each["reason"] for each in found["items"] if each["node"] is None)


WHAT_IFS: list[tuple[list[dict[str, Any]], str]] = [
    ([{"do": "cordon", "nodes": ["spot-c2"]}], "1 node cordoned: spot-c2."),
    ([{"do": "drain", "nodes": ["spot-c2"]}], "When spot-c2 is drained"),
    ([{"do": "fail", "selector": "zone=eu-1a"}], "and 15 more fail"),
    ([{"do": "add-nodes", "like": "gpu-a1", "count": 3}], "3 nodes like gpu-a1 added"),
    ([{"do": "scale", "workload": "shop/Deployment/web", "replicas": 5}], "goes from 36 pods to 5"),
    (
        [{"do": "apply", "objects": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: [{name: c}]}"}],
        "1 Pod",
    ),
]


@pytest.mark.parametrize(("steps", "said"), WHAT_IFS, ids=[each[0][0]["do"] for each in WHAT_IFS])
def test_what_if(steps: list[dict[str, Any]], said: str, caller: Caller) -> None:
    found = caller.post("/api/v1/what-if", {"steps": steps}).json
    assert said in " ".join(found["steps"][0]["words"])
    assert found["pending"] + found["placed"] == len(found["placements"])
    tiles = found["tiles"]
    assert (
        len(tiles["nodes"]) == len(tiles["groups"]) == len(tiles["pods"]) == len(tiles["resources"][0]["allocatable"])
    )


def test_steps_add_up_and_are_undone_by_leaving_them_out(caller: Caller) -> None:
    cordon, uncordon = ({"do": do, "nodes": ["spot-c2"]} for do in ("cordon", "uncordon"))
    plain = caller.post("/api/v1/what-if", {}).json["tiles"]
    both = caller.post("/api/v1/what-if", {"steps": [cordon, uncordon]}).json["tiles"]
    one = caller.post("/api/v1/what-if", {"steps": [cordon]}).json["tiles"]
    assert both["unschedulable"] == plain["unschedulable"] != one["unschedulable"]


def test_added_nodes_take_pods_that_wait(caller: Caller) -> None:
    steps = [{"do": "add-nodes", "like": "gpu-a1", "count": 2}]
    found = caller.post("/api/v1/what-if", {"steps": steps}).json
    where = {each["pod"]: each["node"] for each in found["placements"]}
    assert {where["ml/train-xl-6np85"], where["ml/train-xl-cvkvh"]} == {"gpu-a1-1", "gpu-a1-2"}


def test_a_timeline_has_what_the_player_shows(caller: Caller) -> None:
    node = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "spot-c2"}}
    found = caller.post(
        "/api/v1/timeline", {"events": [{"time": 5, "event": "drain", "object": node}], "until": 60}
    ).json
    assert found["end"] == 60
    assert {record["event"] for record in found["log"]} >= {"drain", "evict", "bind"}
    assert found["mostPods"] == 11
    assert (found["samples"][0]["time"], found["samples"][-1]["time"]) == (0, 60)
    lines = msgspec.json.encode({"time": 5, "event": "drain", "object": node}).decode()
    assert caller.post("/api/v1/timeline", {"events": lines, "until": 60}).json == found


HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "' OR 1=1 --",
    "\u202egnp.exe",
    "\x1b[31mred\x1b[0m\x07",
    "a" * 10_000,
    "\u0000\ufffe",
    "{{7*7}}${7*7}",
    "../../etc/passwd",
]


@pytest.mark.parametrize("text", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_text_comes_back_as_text(text: str, caller: Caller) -> None:
    """In JSON as it is, in a report escaped, in an error on one printable line."""
    cluster = [
        {
            "kind": "Node",
            "apiVersion": "v1",
            "metadata": {"name": "n", "labels": {"note": text}},
            "status": {"allocatable": {"cpu": "1", "pods": "9"}},
        },
        {
            "kind": "Pod",
            "apiVersion": "v1",
            "metadata": {"name": "p"},
            "spec": {"schedulerName": text, "containers": [{"name": "c"}]},
        },
    ]
    answer = caller.post("/api/v1/explain", {"cluster": cluster, "pod": "p", "output": "html"})
    assert answer.status in (200, 400)
    assert b"<script>alert" not in answer.body
    assert b"<img" not in answer.body
    error = caller.post("/api/v1/explain", {"pod": text[:500]})
    assert error.status == 400
    assert error.error.isprintable()


def test_a_node_without_a_pod_shows_what_is_on_it() -> None:
    objects = [make_node("a", labels={"zone": "x"}), make_pod("p", node="a", requests={"cpu": "1"})]
    documents = [{"apiVersion": "v1", "kind": type(each).__name__, **msgspec.to_builtins(each)} for each in objects]
    views = Views(served_subject(load(documents), None, IN_TREE))
    found = views.node(questions.NodeDetail(node="a"))
    assert [each["pod"] for each in found["pods"]] == ["default/p"]
    assert found["resources"][0] == {"resource": "cpu", "allocatable": 4000, "requested": 1000}
    assert found["formulas"] == []


def formulas_of(views: Views, pod: str, plugin: str) -> list[dict[str, Any]]:
    """What one plugin's scores come from, on each node that the pod fits on."""
    nodes = views.decision(questions.Decision(pod=pod))["nodes"]
    found = [each for node in nodes for each in views.node(questions.NodeDetail(node=node, pod=pod))["formulas"]]
    return [each for each in found if each["plugin"] == plugin]


def as_document(item: Object) -> dict[str, Any]:
    return {**msgspec.to_builtins(item), "apiVersion": "v1", "kind": type(item).__name__}


def test_points_of_devices_are_those_of_the_alternatives() -> None:
    resource: dict[str, Any] = {"apiVersion": "resource.k8s.io/v1"}
    documents: list[dict[str, Any]] = []
    for node, made in (("m", "small"), ("n", "large")):
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        device = {"name": "d", "attributes": {"size": {"string": made}}}
        spec: dict[str, Any] = {"driver": "gpu.example.com", "pool": pool, "nodeName": node, "devices": [device]}
        slice_ = {**resource, "kind": "ResourceSlice", "metadata": {"name": node}, "spec": spec}
        expression = f"device.attributes['gpu.example.com'].size == '{made}'"
        selectors = [{"cel": {"expression": expression}}]
        kind = {**resource, "kind": "DeviceClass", "metadata": {"name": made}, "spec": {"selectors": selectors}}
        documents += [as_document(make_node(node)), slice_, kind]
    alternatives = [{"name": size, "deviceClassName": size} for size in ("large", "small")]
    spec = {"devices": {"requests": [{"name": "gpu", "firstAvailable": alternatives}]}}
    claim = {**resource, "kind": "ResourceClaim", "metadata": {"name": "c", "namespace": "default"}, "spec": spec}
    pod = make_pod("web", resource_claims=[{"name": "gpu", "resourceClaimName": "c"}])
    views = Views(served_subject(load([*documents, claim, as_document(pod)]), None, IN_TREE))

    found = formulas_of(views, "default/web", "DynamicResources")

    assert sorted((each["raw"], each["lines"][0]) for each in found) == [
        (7, "c gets the alternative gpu/small: 7"),
        (8, "c gets the alternative gpu/large: 8"),
    ]


def test_points_of_volumes_are_the_mean_of_their_classes() -> None:
    shape = [{"utilization": 0, "score": 0}, {"utilization": 100, "score": 10}]
    args: dict[str, Any] = {"kind": "VolumeBindingArgs", "apiVersion": "kubescheduler.config.k8s.io/v1", "shape": shape}
    kind = {"apiVersion": args["apiVersion"], "kind": "KubeSchedulerConfiguration"}
    config = {**kind, "profiles": [{"pluginConfig": [{"name": "VolumeBinding", "args": args}]}]}
    objects = [
        make_node("m"),
        make_node("n"),
        pod_with(uses("data"), name="web"),
        make_claim("data", storage_class="local"),
        make_volume("pv", "4Gi", storage_class="local", local={"path": "/data"}),
        make_class("local", "kubernetes.io/no-provisioner"),
    ]
    views = Views(served_subject(Objects(objects), config, IN_TREE))

    (first, _) = formulas_of(views, "default/web", "VolumeBinding")

    assert (first["raw"], first["lines"][:2]) == (25, ["local: 1Gi of 4Gi: 25", "the mean of the classes: 25"])
