"""The same pods placed in two ways: which move, who is responsible, and what the command makes of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from builders import HOSTNAME, ZONE, make_config, make_node, make_pod, node_affinity, with_args
from cli.running import config, node, pod, run, written
from podium.answers import Comparison, Way, compare
from podium.answers.compare import COMPARISON_NAMES, check_ways
from podium.cluster import Cluster
from podium.errors import InputError
from podium.model import Object

PACKED = with_args(
    "NodeResourcesFit", scoringStrategy={"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
)
NO_TAINTS = make_config({"plugins": {"filter": {"disabled": [{"name": "TaintToleration"}]}}})
WEB = {"kind": "ReplicaSet", "name": "web-1"}


def two_ways(objects: list[Object], after: dict[str, Any] | None, **options: Any) -> Comparison:
    """The default configuration, and another one."""
    cluster = Cluster.from_objects(objects)
    return compare(Way(cluster=cluster, name="one"), Way(cluster=cluster, config=after, name="other"), **options)


def half_full() -> list[Object]:
    return [make_node("empty"), make_node("used"), make_pod("old", node="used", requests={"cpu": "1"})]


def test_nothing_moves_when_nothing_differs() -> None:
    found = two_ways([*half_full(), make_pod("new", requests={"cpu": "1"})], None)

    assert found.moves == ()
    assert found.spread == ()
    assert found.before.measures == found.after.measures


def test_the_plugin_whose_scores_shift_most_is_responsible() -> None:
    (move,) = two_ways([*half_full(), make_pod("new", requests={"cpu": "1"})], PACKED).moves

    assert (move.pod, move.before, move.after) == ("default/new", "empty", "used")
    assert move.cause.plugin == "NodeResourcesFit"
    assert move.cause.points["NodeResourcesFit"] == max(move.cause.points.values())
    assert not move.cause.knock_on


def test_a_filter_that_rejects_is_responsible() -> None:
    liked = node_affinity(preferred=[(100, {"matchExpressions": [{"key": "liked", "operator": "Exists"}]})])
    objects = [
        make_node("a"),
        make_node("b", taints=["x=y:NoSchedule"], labels={"liked": ""}),
        make_pod("new", affinity=liked),
    ]

    (move,) = two_ways(objects, NO_TAINTS).moves

    assert (move.before, move.after, move.cause.plugin) == ("a", "b", "TaintToleration")
    assert move.cause.reason == "b is rejected before: node(s) had untolerated taint(s)"


def test_a_pod_that_fits_one_way_only_moves_too() -> None:
    found = two_ways([make_node("a", taints=["x=y:NoSchedule"]), make_pod("new")], NO_TAINTS)

    (move,) = found.moves
    assert (move.before, move.after, move.cause.plugin) == (None, "a", "TaintToleration")
    assert found.before.messages == {"default/new": "0/1 nodes are available: 1 node(s) had untolerated taint(s)."}
    assert (found.before.measures.pending, found.after.measures.pending) == (1, 0)


def test_a_move_that_only_follows_from_an_earlier_one_is_a_knock_on() -> None:
    # The big one takes the room of the small one, which is decided alike in the same situation.
    objects = [
        *half_full(),
        make_pod("big", requests={"cpu": "3"}, priority=9),
        make_pod("small", requests={"cpu": "2"}, node_selector={"pick": "me"}),
    ]
    objects[1] = make_node("used", labels={"pick": "me"})
    found = {move.pod: move for move in two_ways(objects, PACKED).moves}

    assert not found["default/big"].cause.knock_on
    small = found["default/small"]
    assert (small.before, small.after, small.cause.knock_on) == ("used", None, True)
    assert small.cause.plugin == "NodeResourcesFit"


def test_replay_places_running_pods_anew_but_not_those_that_go_with_their_node() -> None:
    daemon = make_pod("agent", node="empty", owner={"kind": "DaemonSet", "name": "agent"}, requests={"cpu": "1"})
    objects = [*half_full(), daemon, make_pod("other", node="empty", requests={"cpu": "1"})]

    assert two_ways(objects, PACKED).after.nodes == {}
    assert set(two_ways(objects, PACKED, replay=True).after.nodes) == {"default/old", "default/other"}
    # Nothing of this happened to the cluster itself.
    cluster = Cluster.from_objects(objects)
    compare(Way(cluster=cluster), Way(cluster=cluster, config=PACKED), replay=True)
    assert {pod.name: node for pod, node in cluster.placed()} == {
        "old": "used",
        "agent": "empty",
        "other": "empty",
    }


def test_workloads_that_are_spread_otherwise() -> None:
    nodes = [make_node(name, labels={ZONE: name[0], HOSTNAME: name}) for name in ("a1", "b1")]
    pods = [make_pod(f"web-{number}", owner=WEB, labels={"app": "web"}, requests={"cpu": "1"}) for number in range(2)]

    (change,) = two_ways([*nodes, *pods], PACKED).spread

    assert change.workload == ("default", "ReplicaSet/web-1")
    assert (change.before, change.after) == ({"a": 1, "b": 1}, {"a": 2})
    assert (change.nodes_before, change.nodes_after) == (2, 1)


def test_two_clusters_have_pods_of_their_own() -> None:
    one = Cluster.from_objects([make_node("a"), make_pod("both"), make_pod("first")])
    other = Cluster.from_objects([make_node("b"), make_pod("both"), make_pod("second")])

    found = compare(Way(cluster=one), Way(cluster=other))

    assert [(move.pod, move.before, move.after) for move in found.moves] == [("default/both", "a", "b")]
    assert (found.only_before, found.only_after) == (("default/first",), ("default/second",))


def test_two_releases() -> None:
    spread = {"maxSkew": 1, "topologyKey": ZONE, "whenUnsatisfiable": "DoNotSchedule"}
    constraint = {**spread, "labelSelector": {"matchLabels": {"app": "web"}}}
    nodes = [make_node(name, labels={ZONE: name}, cpu=cpu) for name, cpu in (("a", "64"), ("b", "2"))]
    web: dict[str, Any] = {"labels": {"app": "web"}, "requests": {"cpu": "1"}}
    web["topology_spread_constraints"] = [constraint]
    cluster = Cluster.from_objects([*nodes, make_pod("old", node="a", **web), make_pod("new", **web)])

    (move,) = compare(Way(cluster=cluster), Way(cluster=cluster, release="v1.14")).moves

    assert (move.before, move.after, move.cause.plugin) == ("b", "a", "PodTopologySpread")


def test_values_are_those_that_conditions_may_name() -> None:
    found = two_ways([make_node("a", taints=["x=y:NoSchedule"]), make_pod("new")], NO_TAINTS)

    assert tuple(found.values) == COMPARISON_NAMES
    assert (found.values["pending"], found.values["before.pending"], found.values["moved"]) == (0, 1, 1)


def test_the_same_again() -> None:
    objects = [*half_full(), *(make_pod(f"p{number}", requests={"cpu": "500m"}) for number in range(6))]

    once, again = (two_ways(objects, PACKED, tie_break="random", seed=3).to_dict() for _ in range(2))

    assert once == again


def test_every_decision_is_counted() -> None:
    calls: list[None] = []
    two_ways([*half_full(), make_pod("new", requests={"cpu": "1"})], PACKED, on_decided=lambda: calls.append(None))

    # One for each way, and once more as the pod moves.
    assert len(calls) == 4


def test_an_unknown_release_is_bad_input() -> None:
    cluster = Cluster.from_objects([make_node("a")])

    with pytest.raises(InputError, match="release 'v9' is unknown"):
        compare(Way(cluster=cluster), Way(cluster=cluster, release="v9"))


# -- the command ---------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    old = pod("old", nodeName="used", phase="Running")
    packed = tmp_path / "packed.json"
    packed.write_text(json.dumps(PACKED))
    plain = tmp_path / "plain.json"
    plain.write_text(json.dumps(config()))
    cluster = written(tmp_path / "cluster.json", node("empty"), node("used"), old, pod("new"))
    return {"cluster": cluster, "packed": packed, "plain": plain}


def test_command_compares_two_configurations(files: dict[str, Path]) -> None:
    result = run("compare", "-f", files["cluster"], "--config", files["plain"], "--config", files["packed"])

    assert result.exit_code == 0
    text = " ".join(result.stdout.split())
    # A long path is broken wherever the line ends.
    assert f"1of1podgoeselsewherewith{files['packed']}thanwith{files['plain']}." in text.replace(" ", "")
    assert "default/new empty used NodeResourcesFit +" in text
    assert "nodes in use 2 1" in text


def test_command_compares_one_configuration_with_the_default(files: dict[str, Path]) -> None:
    result = run("compare", "-f", files["cluster"], "--config", files["packed"], "-o", "json")

    document = json.loads(result.stdout)
    assert document["kind"] == "Comparison"
    assert [document[way]["name"] for way in ("before", "after")] == ["the default configuration", str(files["packed"])]
    assert document["moves"][0]["plugin"] == "NodeResourcesFit"


def test_command_writes_csv(files: dict[str, Path]) -> None:
    header, row = run("compare", "-f", files["cluster"], "--config", files["packed"], "-o", "csv").stdout.splitlines()

    assert header == "pod,workload,before,after,plugin,points,knock-on,reason"
    assert row.startswith("default/new,Pod/new,empty,used,NodeResourcesFit,")


def test_command_compares_two_clusters_with_what_both_have(tmp_path: Path) -> None:
    one, other = written(tmp_path / "1.json", node("a")), written(tmp_path / "2.json", node("b"))
    shared = written(tmp_path / "app.json", pod("new"))

    result = run("compare", "--cluster", one, "--cluster", other, "-f", shared, "-o", "csv")

    assert result.stdout.splitlines()[1].startswith("default/new,Pod/new,a,b,")


@pytest.mark.parametrize(
    ("condition", "code"), [("moved > 0", 1), ("pending > 0", 0), ("nodes_in_use < before.nodes_in_use", 1)]
)
def test_command_fails_if_a_condition_holds(condition: str, code: int, files: dict[str, Path]) -> None:
    result = run("compare", "-f", files["cluster"], "--config", files["packed"], "--fail-if", condition)

    assert result.exit_code == code
    assert (f"warning: --fail-if '{condition}' holds: " in result.stderr) is bool(code)


def priced(folder: Path, *prices: str) -> Path:
    """A used node and an empty one, each with a price, and a pod that waits."""
    labels = [{"podium/price-per-hour": price} for price in prices]
    nodes = [node(name, labels=own) for name, own in zip(("used", "empty"), labels, strict=True)]
    return written(folder / "priced.json", *nodes, pod("old", nodeName="used", phase="Running"), pod("new"))


def test_command_compares_what_the_nodes_in_use_cost(files: dict[str, Path], tmp_path: Path) -> None:
    cluster = priced(tmp_path, "0.5", "0.25")

    result = run("compare", "-f", cluster, "--config", files["packed"], "--fail-if", "cost_per_hour > 0.6")
    assert result.exit_code == 0
    assert "cost per hour of those 0.75 0.50" in " ".join(result.stdout.split())

    dearer = "cost_per_hour < before.cost_per_hour"
    assert run("compare", "-f", cluster, "--config", files["packed"], "--fail-if", dearer).exit_code == 1


def test_the_cost_is_left_out_where_no_node_has_a_price(files: dict[str, Path]) -> None:
    assert "cost per hour" not in run("compare", "-f", files["cluster"], "--config", files["packed"]).stdout


@pytest.mark.parametrize("command", [["compare", "--config", "PACKED"], ["tune", "--objective", "lowest-cost"]])
@pytest.mark.parametrize("price", ["much", "nan", "inf"])
def test_a_price_that_is_no_number_is_one_line(
    price: str, command: list[str], files: dict[str, Path], tmp_path: Path
) -> None:
    named = [str(files["packed"]) if word == "PACKED" else word for word in command]
    result = run(*named, "-f", priced(tmp_path, price, "0.5"), *(["--jobs", "1"] if "tune" in named else []))

    assert result.exit_code == 2
    assert f"node used: label podium/price-per-hour is {price!r}; it needs a number from 0 on" in result.stderr
    assert result.stderr.count("\n") == 1


BAD: dict[str, tuple[list[str], str]] = {
    "nothing": (["-f", "CLUSTER"], "nothing to compare: give --config, --cluster or --release twice"),
    "one cluster": (["--cluster", "CLUSTER"], "--cluster is given once"),
    "three": (["-f", "CLUSTER", *["--config", "PACKED"] * 3], "--config is given 3 times; two are compared"),
    "the same": (["-f", "CLUSTER", *["--config", "PACKED"] * 2], "both ways are the same"),
    "unclear": (
        ["-f", "CLUSTER", "--config", "PACKED", "--config", "PLAIN", "--release", "v1.14", "--release", "v1.36"],
        "only one of --config, --cluster and --release may be given twice",
    ),
    "unknown release": (["-f", "CLUSTER", "--release", "v1.2"], "release 'v1.2' is unknown"),
    "bad condition": (["-f", "CLUSTER", "--config", "PACKED", "--fail-if", "x > 1"], "'x' is not measured"),
    "not a configuration": (["-f", "CLUSTER", "--config", "CLUSTER"], "kind"),
}


@pytest.mark.parametrize(("arguments", "problem"), BAD.values(), ids=BAD)
def test_command_says_what_is_wrong_in_one_line(arguments: list[str], problem: str, files: dict[str, Path]) -> None:
    named = {"CLUSTER": files["cluster"], "PACKED": files["packed"], "PLAIN": files["plain"]}

    result = run("compare", *(named.get(argument, argument) for argument in arguments))

    assert result.exit_code == 2
    assert result.stderr.startswith("podium: ")
    assert problem in result.stderr
    assert result.stderr.count("\n") == 1


def test_ways_that_differ_in_their_release_alone_are_compared() -> None:
    cluster = Cluster.from_objects([make_node("a")])
    check_ways(Way(cluster=cluster, release="v1.30"), Way(cluster=cluster, release="v1.35"))
    with pytest.raises(InputError, match="both ways are the same: the default configuration"):
        check_ways(Way(cluster=cluster), Way(cluster=cluster))
