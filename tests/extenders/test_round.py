"""What extenders do to a decision: the nodes they send back, leave out and fail on."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from builders import affinity, make_config, make_node, make_pod, pod_term, scores, spread
from cli.running import config, node, pod, run, written
from podium.answers.explanation import explain_pod
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.errors import ExtenderWarning
from podium.model import Node
from podium.present.explanation import about_running

from .loopback import Answer, Loopback

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"
MEBI = 1 << 20
NODES = [
    make_node("n1", labels={ZONE: "a", HOSTNAME: "n1"}, images={"app": 900 * MEBI}),
    make_node("n2", labels={ZONE: "b", HOSTNAME: "n2"}),
    make_node("n3", labels={ZONE: "b", HOSTNAME: "n3"}),
]
BUSY = [make_pod(f"busy-{number}", node="n1", requests={"cpu": "1"}, labels={"app": "web"}) for number in range(3)]


def sent_back(*nodes: Node, **labels: str) -> dict[str, Any]:
    """The nodes as an extender echoes them, with labels of its own."""
    items = [
        {
            "metadata": {"name": node.name, "labels": {**node.metadata.labels, **labels}},
            "status": {"allocatable": {name: str(amount) for name, amount in node.allocatable.items()}},
        }
        for node in nodes
    ]
    return {"Nodes": {"items": items}}


def decided(loopback: Loopback, pod: Mapping[str, Any] | None = None, release: str = "", **settings: Any) -> Decision:
    extender = {"urlPrefix": loopback.url, "filterVerb": "filter", **settings}
    options: dict[str, Any] = {"release": release} if release else {}
    wanted = make_pod("new", requests={"cpu": "1"}, labels={"app": "web"}, **(pod or {}))
    cluster = Cluster.from_objects([*NODES, *BUSY])
    with closing(Scheduler(cluster, make_config(extenders=[extender]), tie_break="first", **options)) as scheduler:
        return scheduler.decide(wanted)


def test_nodes_sent_back_are_scored_as_nodes_without_pods(loopback: Loopback) -> None:
    loopback.answer("filter", sent_back(*NODES))
    decision = decided(loopback)
    assert scores(decision, "NodeResourcesFit") == {"n1": 86, "n2": 86, "n3": 86}
    # What images are on a node is not known of a node that an extender made.
    assert scores(decision, "ImageLocality") == {"n1": 0, "n2": 0, "n3": 0}
    assert decision.scored_as_returned_by == (loopback.url,)
    assert f"Extender {loopback.url} sent Node objects back" in decision.explain(width=500)


@pytest.mark.parametrize("release", ["v1.29", "v1.32"])
def test_older_releases_score_their_own_nodes(loopback: Loopback, release: str) -> None:
    loopback.answer("filter", sent_back(*NODES))
    decision = decided(loopback, release=release)
    found = scores(decision, "NodeResourcesFit")
    assert found is not None
    assert found["n1"] < found["n2"]
    assert "sent Node objects back" not in decision.explain()


def test_names_sent_back_are_the_clusters_own_nodes(loopback: Loopback) -> None:
    loopback.answer("filter", {"NodeNames": ["n1", "n2", "n3"]})
    found = scores(decided(loopback, nodeCacheCapable=True), "NodeResourcesFit")
    assert found is not None
    assert found["n1"] < found["n2"]


def test_pods_still_count_in_their_zone_but_not_on_their_node(loopback: Loopback) -> None:
    loopback.answer("filter", sent_back(*NODES))
    by_zone = decided(loopback, {"topology_spread_constraints": [spread(ZONE, {"app": "web"}, hard=False)]})
    assert scores(by_zone, "PodTopologySpread") == {"n1": 0, "n2": 100, "n3": 100}
    by_node = decided(loopback, {"topology_spread_constraints": [spread(HOSTNAME, {"app": "web"}, hard=False)]})
    assert scores(by_node, "PodTopologySpread") == {"n1": 100, "n2": 100, "n3": 100}
    near = {"affinity": affinity(preferred=[(10, pod_term(ZONE, {"app": "web"}))])}
    assert scores(decided(loopback, near), "InterPodAffinity") == {"n1": 100, "n2": 0, "n3": 0}


def test_labels_that_the_extender_changed_count_for_the_nodes_and_not_for_the_pods(loopback: Loopback) -> None:
    answer = sent_back(NODES[0], **{ZONE: "new"})
    answer["Nodes"]["items"] += sent_back(*NODES[1:], **{ZONE: "a"})["Nodes"]["items"]
    loopback.answer("filter", answer)
    # The pods run in zone a, in which the extender says n2 and n3 are.
    moved = decided(loopback, {"topology_spread_constraints": [spread(ZONE, {"app": "web"}, hard=False)]})
    assert scores(moved, "PodTopologySpread") == {"n1": 100, "n2": 0, "n3": 0}
    near = {"affinity": affinity(preferred=[(10, pod_term(ZONE, {"app": "web"}))])}
    assert scores(decided(loopback, near), "InterPodAffinity") == {"n1": 0, "n2": 100, "n3": 100}


def test_later_calls_get_the_nodes_as_sent_back(loopback: Loopback) -> None:
    loopback.answer("filter", sent_back(*NODES, checked="yes"))
    loopback.answer("prioritize", [])
    decided(loopback, prioritizeVerb="prioritize", weight=1)
    items = loopback.requests[-1].document["Nodes"]["items"]
    assert [item["metadata"]["labels"]["checked"] for item in items] == ["yes", "yes", "yes"]


def test_an_extender_that_does_not_prioritize_scores_0(loopback: Loopback) -> None:
    loopback.answer("filter", {"NodeNames": ["n1", "n2"]})
    decision = decided(loopback, nodeCacheCapable=True)
    assert decision.extender_scores == {loopback.url: {"n1": 0, "n2": 0}}


def test_an_extender_that_answers_null_passed_no_node(loopback: Loopback) -> None:
    loopback.answer("filter", None)
    decision = decided(loopback)
    assert decision.node is None
    assert decision.message == "0/3 nodes are available:"
    told = decision.explain(width=500)
    assert f"Extender {loopback.url} passed no node, and gave no reason." in told
    assert "not checked" not in told


def test_an_extender_passes_no_node_of_those_that_filters_let_through(loopback: Loopback) -> None:
    loopback.answer("filter", None)
    told = decided(loopback, {"node_selector": {ZONE: "a"}}).explain(width=500)
    assert "NodeAffinity" in told
    assert f"Extender {loopback.url} passed no node, and gave no reason." in told


def test_the_node_that_a_pod_runs_on_may_be_left_out(loopback: Loopback) -> None:
    loopback.answer("filter", None)
    config = make_config(extenders=[{"urlPrefix": loopback.url, "filterVerb": "filter"}])
    with closing(Scheduler(Cluster.from_objects([*NODES, *BUSY]), config)) as scheduler:
        words = about_running(explain_pod(scheduler, BUSY[0]))
    assert words == [f"It runs on n1 now, which extender {loopback.url} left out."]


def test_nodes_left_out_without_a_reason_are_named(loopback: Loopback) -> None:
    loopback.answer("filter", {"NodeNames": ["n1"], "FailedNodes": {"n2": "full"}})
    told = decided(loopback, nodeCacheCapable=True).explain(width=500)
    assert f"Extender {loopback.url} left out 1 node without a reason: n3." in told


def test_failures_that_scheduling_goes_on_without_are_warned_of(loopback: Loopback) -> None:
    loopback.answers["filter"] = Answer((b"oops",), 500)
    with pytest.warns(ExtenderWarning, match=r"filter: answered 500: oops: the pod is decided without it"):
        assert decided(loopback, ignorable=True).node is not None
    assert decided(loopback).error == f"extender {loopback.url}: filter: answered 500: oops"
    loopback.answer("filter", {"NodeNames": ["n1", "n2"]})
    loopback.answers["prioritize"] = Answer((b"oops",), 500)
    with pytest.warns(ExtenderWarning, match=r"prioritize: answered 500: oops: the nodes are scored without it"):
        decision = decided(loopback, nodeCacheCapable=True, prioritizeVerb="prioritize", weight=1)
    assert decision.node is not None
    assert decision.extender_scores == {}


def test_the_command_line_warns_once_and_in_one_line(loopback: Loopback, tmp_path: Path) -> None:
    loopback.answers["filter"] = Answer((b"oops",), 500)
    extender = {"urlPrefix": loopback.url, "filterVerb": "filter", "ignorable": True}
    configuration = tmp_path / "config.json"
    configuration.write_text(json.dumps(config(extenders=[extender])))
    cluster = written(tmp_path / "cluster.json", node("n1"), pod("a"), pod("b"))
    result = run("simulate", "-f", cluster, "--config", configuration)
    assert result.exit_code == 0
    told = f"warning: extender {loopback.url}: filter: answered 500: oops: the pod is decided without it"
    sent = f"{configuration}: pods and nodes are sent to 1 extender: {loopback.url}"
    assert result.stderr.splitlines() == [sent, f"{told}, as it is ignorable"]


@pytest.mark.parametrize(("release", "scored"), [("v1.37", {"n1": 86, "n2": 86}), ("v1.32", {"n1": 45, "n2": 86})])
def test_a_node_that_it_was_not_asked_about_is_taken_to_fit(
    loopback: Loopback, release: str, scored: dict[str, int]
) -> None:
    loopback.answer("filter", sent_back(*NODES[:2]))
    decision = decided(loopback, {"node_selector": {ZONE: "b"}}, release)
    assert decision.feasible == ("n1", "n2")
    assert scores(decision, "NodeResourcesFit") == scored
    assert decision.rejected == {}
    assert decision.unasked == {loopback.url: ("n1",)}
    assert (
        f"Extender {loopback.url} passed 1 node that had been rejected before it was asked: n1. kube-scheduler does "
        "not notice and takes such nodes to fit."
    ) in decision.explain(width=500)


def test_the_fast_path_takes_such_a_node_too(loopback: Loopback) -> None:
    loopback.answer("filter", sent_back(NODES[0]))
    extender = {"urlPrefix": loopback.url, "filterVerb": "filter"}
    cluster = Cluster.from_objects(NODES)
    with closing(Scheduler(cluster, make_config(extenders=[extender]), tie_break="first")) as scheduler:
        assert scheduler.schedule(make_pod("new", node_selector={ZONE: "b"})) == "n1"


def test_a_node_that_is_not_in_the_cluster_is_an_error(loopback: Loopback) -> None:
    loopback.answer("filter", sent_back(make_node("ghost")))
    assert decided(loopback).error == f"extender {loopback.url}: passed node 'ghost', which is not in the cluster"
    loopback.answer("filter", {**sent_back(*NODES), "FailedNodes": {"ghost": "no"}})
    assert decided(loopback).feasible == ("n1", "n2", "n3")


def test_room_that_preemption_made_counts_only_if_the_extender_agrees(loopback: Loopback) -> None:
    loopback.answer("filter", {"Nodes": {"items": []}})
    config = make_config(extenders=[{"urlPrefix": loopback.url, "filterVerb": "filter"}])
    cluster = Cluster.from_objects([NODES[0], make_pod("low", node=NODES[0].name, requests={"cpu": "3"})])
    wanted = make_pod("new", requests={"cpu": "3"}, priority=100)

    with closing(Scheduler(cluster, config, tie_break="first")) as scheduler:
        assert scheduler.schedule(wanted, preempt=True) is None
        assert scheduler.nominations.node_of(wanted) == NODES[0].name
