"""Explanations for programs, and of pods that run already."""

from __future__ import annotations

import csv
import io
import json

import pytest
import yaml

from builders import ZONE, make_node, make_pod
from podium.answers.explanation import Explained, explain_pod
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.errors import InputError
from podium.model import Object, Pod
from podium.present import to_json, to_yaml
from podium.present.explanation import obstacle_texts, to_document, to_lines, to_rows
from storage_objects import bound, make_claim, make_volume, on_label, pod_with, uses


def scheduler(*objects: Object) -> Scheduler:
    return Scheduler(Cluster.from_objects(objects), tie_break="first")


def explained(pod: Pod, *objects: Object) -> Explained:
    return explain_pod(scheduler(*objects, pod), pod)


def last_words(explanation: Explained) -> str:
    return str(to_document(explanation)["words"][-1])


BIG, SMALL = make_node("big", cpu="8"), make_node("small", cpu="2")
TAINTED = make_node("tainted", taints=["team=shop:NoSchedule"])
REQUESTS = {"cpu": "1", "memory": "1Gi"}

RUNNING: dict[str, tuple[str, str]] = {
    "it would stay": ("big", "It runs there now, and would go there again."),
    "it would move": ("small", "It runs on small now, which comes 2nd with 433 points."),
    "it would no longer be let in": (
        "tainted",
        "It runs on tainted now, which would reject it today: TaintToleration: node(s) had untolerated taint(s).",
    ),
    "its node is gone": ("gone", "It is bound to gone, which is not in the input."),
    "it is pending": ("", "It fits on 2 of 3 nodes."),
}


@pytest.mark.parametrize(("node", "sentence"), RUNNING.values(), ids=RUNNING)
def test_says_how_it_compares_with_where_the_pod_runs(node: str, sentence: str) -> None:
    pod = make_pod("web", node=node, requests=REQUESTS)

    assert last_words(explained(pod, BIG, SMALL, TAINTED)) == sentence


def test_a_running_pod_does_not_count_against_itself() -> None:
    pod = make_pod("web", node="n", requests={"cpu": "3"})

    explanation = explained(pod, make_node("n", cpu="4"))

    assert explanation.decision.node == "n"
    assert explanation.runs_on == "n"


def test_the_cluster_is_as_it_was_afterwards() -> None:
    pod = make_pod("web", node="n", requests={"cpu": "3"})
    ready = scheduler(make_node("n", cpu="4"), pod)

    explain_pod(ready, pod)

    assert ready.cluster.find_pod("default/web") == (pod, "n")


def test_a_finished_pod_is_said_to_be_finished() -> None:
    explanation = explained(make_pod("job", node="big", phase="Succeeded"), BIG)

    assert to_document(explanation)["words"] == [
        "Pod default/job cannot be decided: it has finished (Succeeded) and needs no node."
    ]


def test_another_profile_can_decide() -> None:
    with pytest.raises(InputError, match="profile 'packing' is not in the configuration, which has default-scheduler"):
        explain_pod(scheduler(BIG), make_pod("web"), "packing")
    elsewhere = make_pod("web", scheduler_name="elsewhere")
    assert explain_pod(scheduler(BIG), elsewhere).decision.error
    assert explain_pod(scheduler(BIG), elsewhere, "default-scheduler").decision.node == "big"


def test_the_document() -> None:
    document = to_document(explained(make_pod("web", requests=REQUESTS), BIG, SMALL, TAINTED))

    assert (document["apiVersion"], document["kind"]) == ("podium/v1", "Explanation")
    assert (document["pod"], document["runsOn"], document["node"]) == ("default/web", None, "big")
    assert (document["message"], document["error"]) == (None, None)
    assert document["nodes"] == {"total": 3, "feasible": 2, "rejected": 1, "notLookedAt": 0}
    assert document["ties"] == ["big"]
    second = document["runnerUp"]
    assert (second["node"], second["lead"]) == ("small", sum(second["leadByPlugin"].values()))
    best = document["feasible"][0]
    assert best["node"] == "big"
    assert best["total"] == sum(scores["weighted"] for scores in best["scores"].values())
    assert best["scores"]["TaintToleration"] == {"raw": 0, "normalised": 100, "weight": 3, "weighted": 300}
    assert document["rejected"] == [
        {
            "node": "tainted",
            "plugin": "TaintToleration",
            "code": "UnschedulableAndUnresolvable",
            "reasons": ["node(s) had untolerated taint(s)"],
            "detail": "untolerated taint team=shop:NoSchedule",
            "inTheWay": [
                {
                    "kind": "taint",
                    "text": "untolerated taint team=shop:NoSchedule",
                    "taint": "team=shop:NoSchedule",
                }
            ],
        }
    ]
    assert document["notLookedAtBecause"] == []


def test_the_document_of_a_pod_that_fits_nowhere() -> None:
    document = to_document(explained(make_pod("web", requests={"cpu": "64"}), SMALL))

    assert document["node"] is None
    assert document["message"] == "0/1 nodes are available: 1 Insufficient cpu."
    assert document["runnerUp"] is None
    assert document["feasible"] == []


def test_json_and_yaml_say_the_same() -> None:
    document = to_document(explained(make_pod("web"), BIG, SMALL, TAINTED))

    assert json.loads(to_json(document)) == document
    assert yaml.safe_load(to_yaml(document)) == document


def test_csv_has_a_row_per_node() -> None:
    text = to_rows(explained(make_pod("web", requests=REQUESTS), BIG, SMALL, make_node("big2", cpu="8"), TAINTED))

    rows = list(csv.DictReader(io.StringIO(text)))

    assert [(row["node"], row["result"]) for row in rows] == [
        ("big", "chosen"),
        ("big2", "tied"),
        ("small", "feasible"),
        ("tainted", "rejected"),
    ]
    assert rows[0]["TaintToleration raw"] == "0"
    assert rows[0]["TaintToleration normalised"] == "100"
    assert rows[0]["TaintToleration weighted"] == "300"
    assert rows[3]["rejected by"] == "TaintToleration"
    assert rows[3]["reasons"] == "node(s) had untolerated taint(s)"
    assert rows[3]["total"] == ""


def test_an_extender_has_weighted_scores_alone() -> None:
    decision = Decision(
        "default/web",
        "a",
        feasible=("a", "b"),
        totals={"a": 2, "b": 1},
        ties=("a",),
        extender_scores={"http://x": {"a": 2, "b": 1}},
        node_count=2,
    )

    assert to_document(Explained(decision))["feasible"][0]["scores"] == {"http://x": {"weighted": 2}}
    assert list(csv.reader(io.StringIO(to_rows(Explained(decision)))))[1] == [
        "a",
        "chosen",
        "2",
        "",
        "",
        "2",
        "",
        "",
        "",
    ]


def test_the_lines_say_where_the_pod_runs_behind_the_other_words() -> None:
    lines = [line.text for line in to_lines(explained(make_pod("web", node="big"), BIG))]

    assert lines[:2] == [
        "Pod default/web goes to big, the only node, so nothing is scored.",
        "It runs there now, and would go there again.",
    ]


STORED = pod_with(uses("data"))
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
ZONES = [make_node(f"node-{zone}", labels={ZONE: zone}) for zone in "abc"]


def tail(explanation: Explained, count: int, *, per_node: bool = False) -> list[str]:
    return [line.text for line in to_lines(explanation, per_node=per_node)][-count:]


def test_a_detail_stands_under_the_reason() -> None:
    apart = explained(STORED, *ZONES, *bound("data", labels={ZONE: "a"}))
    alike = explained(STORED, *ZONES, *bound("data", nodes=on_label("disk", "ssd")))

    assert tail(apart, 4) == [
        "       2  VolumeZone: node(s) had no available volume zone",
        "          node-b, node-c",
        "          node-b: claim data (volume data-volume) is in zone a, the node is in b",
        "          node-c: claim data (volume data-volume) is in zone a, the node is in c",
    ]
    assert tail(alike, 3) == [
        "          node-a, node-b, node-c",
        "          claim data is bound to data-volume, whose node affinity needs disk In",
        "            ssd",
    ]


def test_details_stand_at_their_nodes() -> None:
    explanation = explained(STORED, *ZONES, *bound("data", labels={ZONE: "a"}))

    assert tail(explanation, 4, per_node=True) == [
        "node-b  VolumeZone: node(s) had no available volume zone",
        "          claim data (volume data-volume) is in zone a, the node is in b",
        "node-c  VolumeZone: node(s) had no available volume zone",
        "          claim data (volume data-volume) is in zone a, the node is in c",
    ]
    assert [one["detail"] for one in to_document(explanation)["rejected"]] == [
        "claim data (volume data-volume) is in zone a, the node is in b",
        "claim data (volume data-volume) is in zone a, the node is in c",
    ]


def test_a_claim_that_keeps_the_pod_from_every_node_is_in_the_words() -> None:
    assert last_words(explained(STORED, *ZONES)) == "Volume v0 uses claim data, which is not in the input."


def test_a_pod_that_runs_does_not_stand_in_its_own_way() -> None:
    modes = ("ReadWriteOncePod",)
    running = pod_with(uses("data"), node="node-a")
    storage = make_claim("data", volume="v", modes=modes), make_volume("v", modes=modes)

    assert obstacle_texts(explained(running, *ZONES, *storage)) == {}


def test_older_releases_have_no_details() -> None:
    nodes = [make_node(f"node-{zone}", labels={OLD_ZONE: zone}) for zone in "ab"]
    objects = [*nodes, *bound("data", labels={OLD_ZONE: "a"}), STORED]
    older = Scheduler(Cluster.from_objects(objects), release="v1.18")

    explanation = explain_pod(older, STORED)

    assert explanation.decision.rejected["node-b"].plugin == "VolumeZone"
    assert obstacle_texts(explanation) == {}
