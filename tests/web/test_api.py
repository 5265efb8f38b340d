"""The API: the same documents and sentences as the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cli.running import run
from web.calling import Caller


@pytest.fixture(scope="session")
def fleet_file(fleet_documents: list[dict[str, Any]], tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("fleet") / "fleet.json"
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": fleet_documents}))
    return file


SAME: list[tuple[list[str], str, dict[str, Any]]] = [
    (["explain", "payments/audit"], "explain", {"pod": "payments/audit"}),
    (["explain", "batch/reindex", "--tie-break", "first"], "explain", {"pod": "batch/reindex", "tieBreak": "first"}),
    (["explain", "ml/train-xl", "--preempt"], "explain", {"pod": "ml/train-xl", "preempt": True}),
    (["simulate", "--seed", "3"], "simulate", {"seed": 3}),
    (["why-not", "payments/audit", "general-a3"], "why-not", {"pod": "payments/audit", "node": "general-a3"}),
    (["why-not", "ml/train-xl"], "why-not", {"pod": "ml/train-xl"}),
    (["capacity", "shop/web"], "capacity", {"pods": ["shop/web"]}),
    (["capacity", "shop/web", "payments/audit"], "capacity", {"pods": ["shop/web", "payments/audit"]}),
    (
        ["capacity", "shop/web", "batch/reindex", "--mix", "3:1"],
        "capacity",
        {"pods": ["shop/web", "batch/reindex"], "mix": [3, 1]},
    ),
    (["drain", "data-a1", "spot-c2"], "drain", {"nodes": ["data-a1", "spot-c2"]}),
    (["fail", "zone=eu-1a", "--no-preempt"], "fail", {"selectors": ["zone=eu-1a"], "preempt": False}),
    (["fail", "--any", "1"], "fail", {"any": "1"}),
    (["compare", "--release", "v1.14"], "compare", {"releases": ["v1.14"]}),
    (["audit"], "audit", {}),
]


@pytest.mark.parametrize(("arguments", "kind", "question"), SAME, ids=[" ".join(each[0]) for each in SAME])
def test_answers_are_those_of_the_command_line(
    arguments: list[str], kind: str, question: dict[str, Any], caller: Caller, fleet_file: Path
) -> None:
    printed = run(*arguments, "-f", fleet_file, "-o", "json")
    assert printed.exit_code in (0, 1), printed.stderr
    expected = json.loads(printed.stdout)
    assert caller.post(f"/api/v1/{kind}", question).json == expected


@pytest.mark.parametrize("place", [2, 3, 4, 10])
def test_a_question_can_be_an_address(place: int, caller: Caller) -> None:
    _, kind, question = SAME[place]
    assert caller.get(f"/api/v1/{kind}", _query(question)).json == caller.post(f"/api/v1/{kind}", question).json


def _query(question: dict[str, Any]) -> dict[str, Any]:
    return {name: str(value).lower() if isinstance(value, bool) else value for name, value in question.items()}


def test_a_posted_cluster_is_asked_about(
    caller: Caller, fleet_documents: list[dict[str, Any]], fleet_file: Path
) -> None:
    expected = json.loads(run("simulate", "-f", fleet_file, "-o", "json").stdout)
    assert caller.post("/api/v1/simulate", {"cluster": fleet_documents}).json == expected
    assert caller.post("/api/v1/simulate", {"cluster": {"kind": "List", "items": fleet_documents}}).json == expected
    as_yaml = caller.post("/api/v1/simulate?seed=0", fleet_file.read_bytes(), content_type="application/yaml")
    assert as_yaml.json == expected


@pytest.mark.parametrize("kind", ["explain", "simulate", "why-not", "capacity", "drain", "fail", "compare", "audit"])
def test_every_answer_can_be_had_as_a_report(kind: str, caller: Caller) -> None:
    question = next(question for _, name, question in SAME if name == kind)
    answer = caller.post(f"/api/v1/{kind}", {**question, "output": "html"})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src" not in answer.headers["content-security-policy"]
    assert answer.body.startswith(b"<!doctype html>")


def test_the_pods_of_a_search_can_be_had_as_a_report(caller: Caller) -> None:
    answer = caller.get("/api/v1/pods", {"search": "payments", "limit": 2, "output": "html"})
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    text = answer.body.decode()
    assert "pods of 416" in text
    assert "more are not listed" in text
    assert "audit-hlrhdd-8klzs" in text


def test_a_pod_is_explained_with_other_weights_as_with_their_configuration(caller: Caller) -> None:
    question = {"pod": "batch/reindex", "tieBreak": "first"}
    settings = {"weights": {"NodeResourcesBalancedAllocation": 20}, "strategy": "MostAllocated"}
    config = caller.post("/api/v1/configuration", {"settings": settings}).json
    turned = caller.post("/api/v1/explain", {**question, "settings": settings}).json
    assert turned == caller.post("/api/v1/explain", {**question, "config": config}).json
    assert turned != caller.post("/api/v1/explain", question).json


BAD: list[tuple[str, Any, str]] = [
    ("explain", {}, "pod is missing"),
    ("explain", {"pod": "nosuch"}, "pod 'nosuch' is not in the input"),
    ("explain", {"pod": "shop/web", "seed": "x"}, "seed must be a whole number, not a text"),
    ("explain", {"pod": "shop/web", "colour": 1}, "colour is not a field that is known here"),
    ("explain", {"pod": "shop/web", "release": "v0.1"}, "release 'v0.1' is unknown"),
    ("explain", {"pod": "shop/web", "profile": "other"}, "profile 'other' is not in the configuration"),
    ("why-not", {"pod": "shop/web", "node": "nowhere"}, "nowhere"),
    ("drain", {"nodes": ["nowhere"]}, "nowhere"),
    ("fail", {}, "say which nodes fail"),
    ("fail", {"any": "0"}, "at least one node has to fail"),
    ("compare", {}, "say what differs"),
    ("compare", {"releases": ["v1.37", "v1.37"]}, "both ways are the same"),
    ("capacity", {}, "no pod to find the capacity for"),
    ("simulate", {"cluster": []}, "the posted cluster is empty"),
    ("simulate", {"cluster": {"kind": "Pod", "metadata": {"name": "a"}}}, "no node in the posted cluster"),
    ("simulate", {"cluster": "a: [1"}, "the posted cluster document 1"),
    ("simulate", {"config": {"kind": "Pod"}}, "the posted configuration"),
    ("what-if", {"steps": [{"do": "cordon", "nodes": ["nowhere"]}]}, "nowhere"),
    ("what-if", {"steps": [{"do": "explode"}]}, "steps[0].do cannot be 'explode'"),
    ("what-if", {"steps": [{"do": "scale", "workload": "a/b/c", "replicas": 1}]}, "has no pods in the cluster"),
    ("timeline", {"events": "nonsense"}, "events line 1: is not a JSON object"),
    ("timeline", {"events": []}, "no events in it"),
    ("configuration", {"settings": {"weights": {"Nosuch": 1}}}, "plugin 'Nosuch' does not score"),
    ("node", {"node": "nowhere"}, "node 'nowhere' is not in the cluster"),
]


@pytest.mark.parametrize(("kind", "question", "said"), BAD, ids=[f"{each[0]}-{each[2][:30]}" for each in BAD])
def test_bad_input_is_one_sentence(kind: str, question: Any, said: str, caller: Caller) -> None:
    answer = caller.post(f"/api/v1/{kind}", question)
    assert answer.status == 400
    assert said in answer.error
    assert "\n" not in answer.error


def test_no_path_is_read_from_a_request(caller: Caller, fleet_file: Path) -> None:
    """The name of a file is text like any other."""
    for cluster in (str(fleet_file), [str(fleet_file)]):
        answer = caller.post("/api/v1/simulate", {"cluster": cluster})
        assert answer.status == 400
    assert caller.post("/api/v1/simulate", {"config": str(fleet_file)}).status == 400
    assert caller.post("/api/v1/timeline", {"events": str(fleet_file)}).status == 400
    assert caller.post("/api/v1/capacity", {"pods": [str(fleet_file)]}).status == 400


@pytest.mark.parametrize("key", ["extenders", "Extenders", "extenderConfigs"])
def test_a_posted_configuration_cannot_name_extenders(key: str, caller: Caller) -> None:
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        key: [{"urlPrefix": "http://127.0.0.1:1/"}],
    }
    for question in ({"config": config}, {"cluster": [config, {"kind": "Node", "metadata": {"name": "a"}}]}):
        answer = caller.post("/api/v1/simulate", question)
        assert (answer.status, "names extenders" in answer.error) == (400, True)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [("GET", "/nothing", 404), ("GET", "/api/v1/nothing", 404), ("PUT", "/api/v1/audit", 405), ("GET", "/../etc", 404)],
)
def test_other_addresses_are_refused_in_a_sentence(method: str, path: str, status: int, caller: Caller) -> None:
    answer = caller.call(method, path, "", b"", {})
    assert (answer.status, bool(answer.error)) == (status, True)


def test_only_json_and_yaml_are_read(caller: Caller) -> None:
    assert caller.post("/api/v1/audit", b"x=1", content_type="application/x-www-form-urlencoded").status == 415
    assert caller.post("/api/v1/audit", b"{").error.startswith("the request is not JSON")


def test_annotations_and_secrets_are_not_sent(fleet_documents: list[dict[str, Any]], caller: Caller) -> None:
    secret = "do-not-tell"
    cluster = [
        *fleet_documents,
        {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "data": {"a": secret}},
    ]
    questions: list[tuple[str, dict[str, Any]]] = [
        ("explain", {"pod": "shop/web"}),
        ("decision", {"pod": "shop/web"}),
        ("node", {"node": "general-a1", "pod": "shop/web"}),
        ("what-if", {}),
        ("simulate", {}),
    ]
    marked = [
        {**item, "metadata": {**item["metadata"], "annotations": {"note": secret}}} if "metadata" in item else item
        for item in cluster
    ]
    for kind, question in questions:
        answer = caller.post(f"/api/v1/{kind}", {**question, "cluster": marked})
        assert answer.status == 200
        assert secret.encode() not in answer.body


def test_the_openapi_document_says_what_each_field_means(caller: Caller) -> None:
    document = caller.get("/api/v1/openapi.json").json
    fields = [
        (name, field, schema)
        for name, kind in document["components"]["schemas"].items()
        for field, schema in kind.get("properties", {}).items()
    ]
    assert len(fields) > 50
    # What only points to another type is described there; `do` says which step it is.
    silent = [each for each in fields if not {"description", "$ref"} & each[2].keys() and each[1] != "do"]
    assert silent == []
    parameters = document["paths"]["/api/v1/explain"]["get"]["parameters"]
    assert {each["name"] for each in parameters if each["description"]} >= {"pod", "release", "tieBreak", "seed"}


def test_the_openapi_document_has_every_question(caller: Caller) -> None:
    document = caller.get("/api/v1/openapi.json").json
    assert document["openapi"] == "3.1.0"
    asked = ("explain", "simulate", "why-not", "capacity", "drain", "fail", "compare", "audit", "what-if", "overview")
    assert {f"/api/v1/{kind}" for kind in asked} <= set(document["paths"])
    explain = document["paths"]["/api/v1/explain"]
    assert "application/yaml" in explain["post"]["requestBody"]["content"]
    assert {each["name"] for each in explain["get"]["parameters"]} >= {"pod", "seed", "preempt"}
    assert explain["post"]["requestBody"]["content"]["application/json"]["schema"]["$ref"].endswith("/Explain")


def test_the_page_is_served_and_loads_nothing_from_elsewhere(caller: Caller) -> None:
    from podium.web.app import PAGE

    for address in PAGE:
        answer = caller.get(address)
        assert answer.status == 200
        text = answer.body.decode().replace("http://www.w3.org/2000/svg", "")
        assert "http://" not in text
        assert "https://" not in text
        assert "innerHTML" not in text
        assert "<script>" not in text


CONTAINER = {"name": "c", "image": "<script>x</script>"}
HOSTILE = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "x"}, "spec": {"containers": [CONTAINER]}}


@pytest.mark.parametrize(
    ("kind", "question", "said"),
    [
        ("what-if", {}, "The cluster as it is."),
        ("what-if", {"steps": [{"do": "fail", "selector": "zone=eu-1a"}]}, "more pods fit nowhere"),
        ("timeline", {"events": [{"time": 5, "event": "add", "object": HOSTILE}], "until": 60}, "Over time"),
    ],
)
def test_the_cluster_and_time_are_had_as_reports(
    kind: str, question: dict[str, Any], said: str, caller: Caller
) -> None:
    answer = caller.post(f"/api/v1/{kind}", {**question, "output": "html"})
    assert (answer.status, answer.headers["content-type"]) == (200, "text/html; charset=utf-8")
    assert said in answer.body.decode()
    assert "<script" not in answer.body.decode()
