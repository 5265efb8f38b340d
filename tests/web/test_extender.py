"""Plugins as an extender: kube-scheduler's requests in, what the plugins say out."""

from __future__ import annotations

import json
from itertools import permutations
from typing import Any

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from builders import make_node, make_pod
from cli.running import run
from podium import SUCCESS, FilterPlugin, ScorePlugin, Status
from podium import extenders as extender
from podium.cluster import Cluster
from podium.config import NodeResourcesFitArgs
from podium.engine import Scheduler
from podium.errors import InputError, PodiumError
from podium.framework import Registry
from podium.model import Node, Pod
from podium.plugins import IN_TREE
from podium.web.extender import ExtenderServer, NameTable, PluginVerbs, extender_application, extender_framework
from web.calling import Caller


class Pools(FilterPlugin, ScorePlugin):
    """Only nodes of the pool that the pod names; the older the disk the better."""

    name = "Pools"

    def filter_node(self, state: Any, pod: Any, node: Any) -> Status:
        if node.labels.get("broken"):
            raise RuntimeError("out of order")
        wanted = pod.metadata.labels.get("pool")
        if node.labels.get("pool") == "closed":
            return Status.unresolvable("node(s) are closed")
        return SUCCESS if wanted in (None, node.labels.get("pool")) else Status.unschedulable("node(s) in another pool")

    def score_node(self, state: Any, pod: Any, node: Any) -> int:
        return int(node.labels.get("age", 0))


REGISTRY = Registry([*IN_TREE.values(), Pools])
NODES = [
    make_node("a", labels={"pool": "x", "age": "100"}),
    make_node("b", labels={"pool": "y", "age": "44"}),
    make_node("c", labels={"pool": "x", "age": "45"}),
    make_node("d", labels={"pool": "closed"}),
]
SCORES = {"a": 100, "b": 44, "c": 45, "d": 0}
RUNNING = [make_pod("big", node="a", requests={"cpu": "3"}), make_pod("small", node="b", requests={"cpu": "1"})]


def served(
    *plugins: str, cluster: Cluster | None = None, document: dict[str, Any] | None = None, **options: Any
) -> Caller:
    framework = extender_framework(REGISTRY, plugins, document)
    server = ExtenderServer(PluginVerbs(framework, **options), cluster)
    return Caller(extender_application(server, most_bytes=1_000_000))


def by_name(pod: Pod, *names: str) -> dict[str, Any]:
    return extender.node_args(pod, names=list(names))


def whole(pod: Pod, *nodes: Node) -> dict[str, Any]:
    raws = [msgspec.Raw(msgspec.json.encode(extender.document(node) | {"extra": node.name})) for node in nodes]
    return extender.node_args(pod, nodes=raws)


def post(caller: Caller, verb: str, args: Any) -> Any:
    answer = caller.post(f"/{verb}", msgspec.json.encode(args))
    assert answer.status == 200, answer.body
    return answer.json


def test_filter_by_name() -> None:
    caller = served("Pools", cluster=Cluster.from_objects(NODES))
    found = post(caller, "filter", by_name(make_pod(labels={"pool": "x"}), "c", "a", "b", "d", "new"))
    assert found == {
        "NodeNames": ["c", "a"],
        "Nodes": None,
        "FailedNodes": {"b": "node(s) in another pool", "new": "the extender does not know this node"},
        "FailedAndUnresolvableNodes": {"d": "node(s) are closed"},
        "Error": "",
    }


def test_filter_by_whole_nodes_gives_them_back_as_they_came() -> None:
    found = post(served("Pools"), "filter", whole(make_pod(labels={"pool": "y"}), *NODES))
    assert [item["extra"] for item in found["Nodes"]["items"]] == ["b"]
    assert found["NodeNames"] is None
    read = extender.read_filter(found, {"a", "b", "c", "d"}, by_name=False)
    assert (read.passed, sorted(read.failed), sorted(read.unresolvable)) == (["b"], ["a", "c"], ["d"])


@pytest.mark.parametrize(
    ("highest", "scores"),
    [
        (1, {"a": 1, "b": 0, "c": 0, "new": 0}),
        (10, {"a": 10, "b": 4, "c": 5, "new": 0}),
        (100, {"a": 100, "b": 44, "c": 45, "new": 0}),
        (1000, {"a": 1000, "b": 440, "c": 450, "new": 0}),
    ],
)
def test_prioritize(highest: int, scores: dict[str, int]) -> None:
    caller = served("Pools", cluster=Cluster.from_objects(NODES), highest=highest)
    found = post(caller, "prioritize", by_name(make_pod(), "new", "a", "b", "c"))
    assert extender.read_scores(found, scores) == scores
    if highest == 10:
        assert extender.read_scores(post(served("Pools"), "prioritize", whole(make_pod(), *NODES[:3])), "abc") == {
            "a": 10,
            "b": 4,
            "c": 5,
        }


def test_lists_of_names_are_looked_up_again_when_nodes_come_and_go() -> None:
    cluster = Cluster.from_objects(NODES)
    caller = served("Pools", cluster=cluster, highest=100)
    # More lists than are kept, and each of them twice.
    for names in [*permutations("abc"), "a", "b", "ab", "ba", "ca", "ac", "cb", "bc", "c", "da", "ad"] * 2:
        found = post(caller, "prioritize", by_name(make_pod(), *names))
        assert [(each["Host"], each["Score"]) for each in found] == [(name, SCORES[name]) for name in names]
    assert post(caller, "prioritize", by_name(make_pod())) == []
    cluster.remove(NODES[1])
    cluster.add(make_node("new", labels={"age": "7"}))
    found = post(caller, "prioritize", by_name(make_pod(), "a", "b", "new"))
    assert {each["Host"]: each["Score"] for each in found} == {"a": 100, "b": 0, "new": 7}


@given(
    names=st.lists(st.text("ab-ü", min_size=1, max_size=20), min_size=1, unique=True),
    picked=st.lists(st.integers(0, 1000), min_size=1),
)
def test_all_names_of_a_list_are_found_at_once(names: list[str], picked: list[int]) -> None:
    rows = {name: 7 * number for number, name in enumerate(names)}
    asked = [names[number % len(names)] for number in picked]
    found = NameTable(rows).rows(msgspec.json.encode(asked))
    assert found is not None
    assert found.tolist() == [rows[name] for name in asked]


@pytest.mark.parametrize(
    "listed",
    [
        b"[]",
        b"{}",
        b"null",
        b'["abcdefgh","x"]',
        b'["abcdefg"]',
        b'["abcdefghi"]',
        b'["abcdefghabcdefghabcdefgh"]',
        b'[""]',
        b'["abcdefgh", "b"]',
        b'[["abcdefgh"]]',
        b'["abcdefgh",["b"]]',
        b'{"abcdefgh":"b"}',
        rb'["\u0062"]',
        rb'["b\"","b"]',
    ],
)
def test_a_list_that_is_not_plain_or_has_unknown_names_is_left_to_the_slow_way(listed: bytes) -> None:
    json.loads(listed)
    assert NameTable({"abcdefgh": 0, "b": 1}).rows(listed) is None


def test_preempt_keeps_nodes_that_pass_without_the_victims() -> None:
    cluster = Cluster.from_objects([*NODES, *RUNNING])
    caller = served("NodeResourcesFit", cluster=cluster)
    pod = make_pod(requests={"cpu": "4"})
    victims = {
        "a": extender.Victims([RUNNING[0]], 1),
        "b": extender.Victims([]),
        "gone": extender.Victims([]),
    }
    for by_uid in (True, False):
        found = post(caller, "preempt", extender.preemption_args(pod, victims, by_uid=by_uid))
        read = extender.read_victims(found, {"a": [RUNNING[0]], "b": [RUNNING[1]]})
        assert {node: (each.pods, each.pdb_violations) for node, each in read.items()} == {"a": ([RUNNING[0]], 1)}
    assert {pod.key for pod, _ in cluster.placed()} == {"default/big", "default/small"}


def test_preempt_without_a_cluster_agrees() -> None:
    args = extender.preemption_args(make_pod(), {"a": extender.Victims([RUNNING[0]])}, by_uid=False)
    assert list(post(served("Pools"), "preempt", args)["NodeNameToMetaVictims"]) == ["a"]


@pytest.mark.parametrize(
    "plugins",
    [
        ("NodeResourcesFit",),
        ("TaintToleration", "NodeAffinity"),
        ("NodeResourcesFit", "NodeResourcesBalancedAllocation"),
    ],
)
def test_what_the_extender_says_is_what_the_plugins_say_in_the_scheduler(plugins: tuple[str, ...]) -> None:
    nodes = [make_node(f"n{number}", cpu=str(number + 2), memory=f"{9 - number}Gi") for number in range(7)]
    cluster = Cluster.from_objects(
        [*nodes, *(make_pod(f"p{n}", node=f"n{n}", requests={"cpu": "1"}) for n in range(4))]
    )
    pod = make_pod(requests={"cpu": "3", "memory": "3Gi"})
    weights = {"TaintToleration": 3, "NodeAffinity": 2}
    enabled = [{"name": name, "weight": weights.get(name, 1)} for name in ("PrioritySort", "DefaultBinder", *plugins)]
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"plugins": {"multiPoint": {"disabled": [{"name": "*"}], "enabled": enabled}}}],
    }
    decision = Scheduler(cluster, config).decide(pod)
    caller = served(*plugins, cluster=cluster, highest=100)
    filtered = post(caller, "filter", by_name(pod, *(node.name for node in nodes)))
    assert sorted(filtered["NodeNames"]) == list(decision.feasible)
    scored = {each["Host"]: each["Score"] for each in post(caller, "prioritize", by_name(pod, *decision.feasible))}
    for node, total in decision.totals.items():
        assert abs(scored[node] - total / sum(weights.get(name, 1) for name in plugins)) <= 0.5


def test_a_plugin_that_fails_is_named_and_counted() -> None:
    caller = served("Pools", cluster=Cluster.from_objects([make_node("a", labels={"broken": "yes", "age": "101"})]))
    found = post(caller, "filter", by_name(make_pod(), "a"))
    assert "'Pools'" in found["Error"]
    assert "out of order" in found["Error"]
    too_high = caller.post("/prioritize", msgspec.json.encode(by_name(make_pod(), "a")))
    assert (too_high.status, "scored outside 0..100" in too_high.json["Error"]) == (500, True)
    text = caller.get("/metrics").body.decode()
    assert 'podium_extender_plugin_failures_total{verb="filter"} 1' in text
    assert 'podium_extender_requests_total{verb="prioritize",code="500"} 1' in text
    assert 'podium_extender_seconds_count{verb="filter"} 1' in text
    assert caller.get("/livez").status == caller.get("/readyz").status == 200


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"Nodes": 1}', b'{"Pod": {"spec": []}}', b"\xff"])
def test_what_kube_scheduler_does_not_send_is_refused(body: bytes) -> None:
    for verb in ("filter", "prioritize", "preempt"):
        answer = served("Pools").post(f"/{verb}", body)
        assert answer.status == 400
        assert "is not what kube-scheduler sends" in answer.json["Error"]


def test_names_need_a_cluster() -> None:
    answer = served("Pools").post("/filter", msgspec.json.encode(by_name(make_pod(), "a")))
    assert (answer.status, "nodeCacheCapable: false" in answer.json["Error"]) == (400, True)


def test_weights_and_arguments_come_from_the_configuration() -> None:
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [
            {
                "plugins": {"multiPoint": {"enabled": [{"name": "Pools", "weight": 3}]}},
                "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": {"type": "MostAllocated"}}}],
            }
        ],
    }
    framework = extender_framework(REGISTRY, ["Pools", "NodeResourcesFit"], document)
    assert {each.plugin.name: each.weight for each in framework.score} == {"Pools": 3, "NodeResourcesFit": 1}
    args = framework.profile.args["NodeResourcesFit"]
    assert isinstance(args, NodeResourcesFitArgs)
    assert args.scoring_strategy.type == "MostAllocated"


def test_plugins_of_an_old_release_can_be_served() -> None:
    policy = {
        "kind": "Policy",
        "apiVersion": "v1",
        "predicates": [{"name": "PodFitsResources"}],
        "priorities": [{"name": "MostRequestedPriority", "weight": 1}],
    }
    framework = extender_framework(IN_TREE, [], policy, release="v1.14")
    cluster = Cluster.from_objects([*NODES[:2], *RUNNING])
    server = ExtenderServer(PluginVerbs(framework), cluster)
    caller = Caller(extender_application(server, most_bytes=1_000_000))
    found = post(caller, "filter", by_name(make_pod(requests={"cpu": "2"}), "a", "b"))
    assert (found["NodeNames"], list(found["FailedNodes"])) == (["b"], ["a"])


def sidecar(port: int) -> dict[str, Any]:
    ports = [{"hostPort": port, "containerPort": port}]
    return {"name": "side", "image": "x", "restartPolicy": "Always", "ports": ports}


@pytest.mark.parametrize(("release", "passed"), [("v1.32", ["a", "b"]), ("v1.33", ["b"]), ("v1.37", ["b"])])
def test_pods_are_counted_as_the_release_does(release: str, passed: list[str]) -> None:
    """Host ports of sidecars count from v1.33 on."""
    framework = extender_framework(IN_TREE, ["NodePorts"], release=release)
    cluster = Cluster.from_objects([*NODES[:2], make_pod("runs", node="a", init_containers=[sidecar(8080)])])
    caller = Caller(extender_application(ExtenderServer(PluginVerbs(framework), cluster), most_bytes=1_000_000))
    asked = make_pod(ports=[{"hostPort": 8080, "containerPort": 8080}])
    assert post(caller, "filter", by_name(asked, "a", "b"))["NodeNames"] == passed


@pytest.mark.parametrize(
    ("release", "message"),
    [("v1.33", "node(s) had untolerated taint {team: ml}"), ("v1.34", "node(s) had untolerated taint(s)")],
)
def test_plugins_follow_the_release(release: str, message: str) -> None:
    framework = extender_framework(IN_TREE, ["TaintToleration"], release=release)
    cluster = Cluster.from_objects([make_node("a", taints=["team=ml:NoSchedule"])])
    caller = Caller(extender_application(ExtenderServer(PluginVerbs(framework), cluster), most_bytes=1_000_000))
    found = post(caller, "filter", by_name(make_pod(), "a"))
    assert found["FailedAndUnresolvableNodes"] == {"a": message}


@pytest.mark.parametrize(
    ("wanted", "document", "release", "said"),
    [
        ([], None, "v1.37", "no plugin to serve"),
        (["Pools"], None, "v1.14", "--plugin cannot be used with v1.14"),
    ],
)
def test_without_a_plugin_there_is_nothing_to_serve(wanted: list[str], document: Any, release: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        extender_framework(REGISTRY, wanted, document, release=release)


def test_print_config_is_what_kube_scheduler_reads() -> None:
    printed = run("extender", "--plugin", "ImageLocality", "--port", "9999", "--print-config")
    assert printed.exit_code == 0
    (entry,) = yaml.safe_load(printed.stdout)["extenders"]
    assert entry == {
        "urlPrefix": "http://127.0.0.1:9999",
        "prioritizeVerb": "prioritize",
        "weight": 1,
        "httpTimeout": "5s",
        "nodeCacheCapable": False,
        "ignorable": True,
    }
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [entry],
    }
    Scheduler(Cluster(), config).close()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--plugin", "Nosuch"], "plugin 'Nosuch' is unknown"),
        ([], "no plugin to serve"),
        (["--plugin", "PrioritySort"], "no plugin that filters or scores"),
        (["--plugin", "ImageLocality", "--address", "0.0.0.0"], "needs --client-ca and --tls-cert and --tls-key"),
    ],
)
def test_bad_arguments_are_one_line(arguments: list[str], said: str) -> None:
    result = run("extender", *arguments)
    assert (result.exit_code, result.stderr.count("\n")) == (2, 1)
    assert said in result.stderr


def binding(node: str) -> dict[str, str]:
    return {"PodName": "web", "PodNamespace": "shop", "PodUID": "u1", "Node": node}


def test_bind_binds_and_says_why_not() -> None:
    framework = extender_framework(REGISTRY, ["Pools"], None)
    server, bound = ExtenderServer(PluginVerbs(framework)), []

    async def bind(pod: Pod, node: str) -> None:
        if node == "full":
            raise PodiumError("the node is full")
        bound.append((pod.key, pod.metadata.uid, node))

    caller = Caller(extender_application(server, most_bytes=1_000_000))
    assert "start it with --bind" in caller.post("/bind", binding("a")).json["Error"]
    server.bind_with(bind)
    assert caller.post("/bind", binding("a")).json == {"Error": ""}
    refused = caller.post("/bind", binding("full"))
    assert (refused.status, refused.json) == (200, {"Error": "the node is full"})
    assert bound == [("shop/web", "u1", "a")]


def test_binding_takes_a_live_cluster() -> None:
    result = run("extender", "--plugin", "ImageLocality", "--bind")
    assert result.exit_code == 2
    assert "--bind takes a live cluster" in result.stderr
