"""One scenario has the same numbers in every answer of the server, and those of the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.running import run
from podium.errors import InputError
from podium.web.kept import Kept
from web.calling import Caller

PASTED = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "guests", "namespace": "shop"},
    "spec": {
        "replicas": 3,
        "selector": {"matchLabels": {"app": "guests"}},
        "template": {
            "metadata": {"labels": {"app": "guests"}},
            "spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]},
        },
    },
}
TWO_PROFILES = {
    "apiVersion": "kubescheduler.config.k8s.io/v1",
    "kind": "KubeSchedulerConfiguration",
    "profiles": [{"schedulerName": "other"}, {"schedulerName": "default-scheduler"}],
}
SCENARIOS: dict[str, dict[str, Any]] = {
    "weights": {"settings": {"weights": {"NodeResourcesBalancedAllocation": 20}}},
    "switches": {"settings": {"strategy": "MostAllocated", "disabled": ["ImageLocality"]}},
    "drain": {"steps": [{"do": "drain", "nodes": ["spot-c2", "general-a3"]}]},
    "zone lost": {"steps": [{"do": "fail", "selector": "zone=eu-1a"}], "settings": {"weights": {"ImageLocality": 9}}},
    "more nodes": {"steps": [{"do": "add-nodes", "like": "gpu-a1", "count": 3}, {"do": "apply", "objects": PASTED}]},
    "release": {"release": "v1.30", "steps": [{"do": "cordon", "nodes": ["spot-c2"]}]},
    "profiles": {
        "config": TWO_PROFILES,
        "settings": {"profile": "default-scheduler", "weights": {"NodeResourcesBalancedAllocation": 20}},
    },
}


@pytest.fixture(scope="module")
def fleet_file(fleet_documents: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fleet") / "fleet.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": fleet_documents}))
    return file


ASKED: list[tuple[list[str], str, dict[str, Any]]] = [
    (["explain", "batch/reindex-hdp6r", "--preempt"], "explain", {"pod": "batch/reindex-hdp6r", "preempt": True}),
    (["simulate", "--tie-break", "first"], "simulate", {"tieBreak": "first"}),
    (["why-not", "payments/audit", "general-b3"], "why-not", {"pod": "payments/audit", "node": "general-b3"}),
    (["capacity", "shop/web"], "capacity", {"pods": ["shop/web"]}),
    (["drain", "spot-c1"], "drain", {"nodes": ["spot-c1"]}),
    (["fail", "node=spot-c1"], "fail", {"selectors": ["node=spot-c1"]}),
    (["audit"], "audit", {}),
]


@pytest.mark.parametrize(("arguments", "kind", "question"), ASKED, ids=[each[1] for each in ASKED])
@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_has_the_numbers_of_the_command_line(
    name: str,
    arguments: list[str],
    kind: str,
    question: dict[str, Any],
    caller: Caller,
    fleet_file: Path,
    tmp_path: Path,
) -> None:
    (tmp_path / "scenario.yaml").write_text(json.dumps(SCENARIOS[name]))
    printed = run(*arguments, "-f", fleet_file, "--scenario", tmp_path / "scenario.yaml", "-o", "json")
    assert printed.exit_code in (0, 1), printed.stderr
    answer = caller.post(f"/api/v1/{kind}", {**question, "scenario": SCENARIOS[name]})
    assert answer.json == json.loads(printed.stdout)


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_view_of_a_scenario_says_the_same(name: str, caller: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podium.web.app.PATIENCE", 60.0)
    scenario = {"scenario": SCENARIOS[name]}
    simulated = caller.post("/api/v1/simulate", {**scenario, "tieBreak": "first"}).json
    overview = caller.post("/api/v1/overview", scenario).json
    pods = caller.post("/api/v1/pods", {**scenario, "limit": 10_000}).json
    shown = caller.post("/api/v1/what-if", scenario).json

    goes_to = {each["pod"]: each["node"] for each in simulated["placements"]}
    listed = {f"{each['namespace']}/{each['name']}": each for each in pods["items"]}
    assert {key: listed[key]["wouldGoTo"] for key in goes_to} == goes_to
    assert {key for key, each in listed.items() if each["node"] is None} == set(goes_to)
    assert overview["pending"] == pods["pending"] == simulated["pods"]["total"] == shown["placed"] + shown["pending"]
    assert overview["nodes"] == len(shown["tiles"]["nodes"]) == len(simulated["nodes"])
    assert overview["scenario"]["title"] == shown["title"]

    counts = dict(zip(shown["tiles"]["nodes"], shown["tiles"]["pods"], strict=True))
    for node in (shown["tiles"]["nodes"][0], *shown["differences"]["newNodes"][:1]):
        detail = caller.post("/api/v1/node", {**scenario, "node": node}).json
        assert len(detail["pods"]) == counts[node]
        assert [each["pod"] for each in detail["pods"]] == [key for key, one in listed.items() if one["node"] == node]

    for pod in (next(iter(goes_to)), "batch/reindex-hdp6r"):
        table = caller.post("/api/v1/decision", {**scenario, "pod": pod}).json
        whole = caller.post("/api/v1/explain", {**scenario, "pod": pod, "tieBreak": "first", "preempt": True}).json
        assert (table["node"], table["words"]) == (whole["node"], whole["words"])
        assert dict(zip(table["nodes"], table["totals"], strict=True)) == {
            each["node"]: each["total"] or 0 for each in whole["feasible"]
        }


def test_a_pod_of_a_pasted_workload_and_a_new_node_can_be_opened(caller: Caller) -> None:
    scenario = {"scenario": SCENARIOS["more nodes"]}
    found = caller.post("/api/v1/pods", {**scenario, "search": "guests"}).json
    assert found["found"] == 3
    pod = f"shop/{found['items'][0]['name']}"
    assert caller.post("/api/v1/decision", {**scenario, "pod": pod}).json["node"]
    assert caller.post("/api/v1/node", {**scenario, "node": "gpu-a1-3"}).json["pods"]


def test_a_scenario_is_kept_under_an_id_and_obeyed(caller: Caller) -> None:
    text = json.dumps(SCENARIOS["drain"]).encode()
    name = caller.post("/api/v1/kept", text).json["id"]
    assert caller.get(f"/api/v1/kept/{name}").body == text
    for kind, question in (("simulate", {"tieBreak": "first"}), ("node", {"node": "spot-c2"}), ("what-if", {})):
        assert (
            caller.post(f"/api/v1/{kind}", {**question, "scenario": name}).body
            == caller.post(f"/api/v1/{kind}", {**question, "scenario": SCENARIOS["drain"]}).body
        )
    gone = caller.post("/api/v1/simulate", {"scenario": "0123456789abcdef"})
    assert (gone.status, "is not kept here" in gone.error) == (400, True)


def test_two_scenarios_are_compared(caller: Caller) -> None:
    drain, lost = SCENARIOS["drain"], SCENARIOS["zone lost"]
    both = caller.post("/api/v1/compare", {"scenarios": [drain, lost]}).json
    assert [both["before"]["name"], both["after"]["name"]] == [
        "base + drain spot-c2, general-a3",
        "base + ImageLocality 9 + lose zone=eu-1a",
    ]
    one = caller.post("/api/v1/compare", {"scenarios": [lost]}).json
    assert one["before"]["name"] == "base"


def test_a_scenario_cannot_name_extenders_or_files(caller: Caller, fleet_file: Path) -> None:
    config = {**TWO_PROFILES, "extenders": [{"urlPrefix": "http://127.0.0.1:1/"}]}
    answer = caller.post("/api/v1/decision", {"pod": "shop/web", "scenario": {"config": config}})
    assert (answer.status, "names extenders" in answer.error) == (400, True)
    steps = [{"do": "apply", "objects": str(fleet_file)}]
    assert caller.post("/api/v1/overview", {"scenario": {"steps": steps}}).status == 400


def test_what_is_kept_has_a_limit_and_an_age() -> None:
    time = [0.0]
    kept = Kept(most=2, most_bytes=10, seconds=60, now=lambda: time[0])
    first, second = kept.keep(b"one"), kept.keep(b"two")
    assert kept.keep(b"one") == first
    third = kept.keep(b"three")
    assert [kept.find(name) for name in (first, second, third)] == [b"one", None, b"three"]
    time[0] = 50
    assert kept.find(third) == b"three"
    time[0] = 100
    assert [kept.find(name) for name in (first, third)] == [None, b"three"]
    with pytest.raises(InputError, match="too many to be kept"):
        kept.keep(b"x" * 11)


def test_a_drain_says_where_its_pods_go_and_what_changed_against_before(caller: Caller) -> None:
    found = caller.post("/api/v1/what-if", {"steps": [{"do": "drain", "nodes": ["spot-c2"]}]}).json
    assert "all 5 pods find another node" in found["steps"][0]["words"][0]
    moved = {each["pod"]: each["to"] for each in found["steps"][0]["disruption"]["pods"] if each["fate"] == "moves"}
    assert {each["pod"]: each["after"] for each in found["differences"]["pods"]} == moved
    assert found["harmless"]
    # Pods that were pending before are not blamed on the drain.
    assert found["pendingChanges"]["counts"]["newWaiting"] == 0
    assert found["pendingChanges"]["waitingAsBefore"] == 4
