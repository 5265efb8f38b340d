"""Recorded decisions: read, decided again, and every difference found."""

from __future__ import annotations

import copy
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.errors import InputError
from podium.recorded import Case, Record, compare, decide, prepare, read_case, read_records, verify

GOLDEN = Path(__file__).parent / "golden"
Expect = dict[str, Any]


def recorded(family: str, has: str) -> Record:
    """The first case of a family whose first decision has something."""
    for record in read_records(str(GOLDEN / f"{family}.jsonl.xz")):
        if record.expect is not None and record.expect["decisions"][0].get(has):
            return record
    raise LookupError(has)


def first(expect: Expect) -> Any:
    return expect["decisions"][0]


def first_of(mapping: dict[str, Any]) -> Any:
    return mapping[next(iter(mapping))]


TAMPERED: dict[str, tuple[str, Callable[[Expect], object], str]] = {
    "another node": ("totals", lambda e: first(e).update(node="elsewhere"), "node"),
    "another tie": ("totals", lambda e: first(e)["ties"].append("elsewhere"), "ties"),
    "a node less": ("totals", lambda e: first(e)["feasible"].pop(), "feasible"),
    "a score": ("scores", lambda e: first_of(first(e)["scores"]).update(NodeResourcesFit=-1), "score"),
    "a score less": ("scores", lambda e: first_of(first(e)["scores"]).pop("NodeResourcesFit"), "score"),
    "a total": ("totals", lambda e: first(e)["totals"].update({first(e)["node"]: 1}), "total"),
    "a rejecting plugin": ("rejected", lambda e: first_of(first(e)["rejected"]).update(plugin="Other"), "rejected"),
    "a code": ("rejected", lambda e: first_of(first(e)["rejected"]).update(code="Error"), "rejected"),
    "a reason": ("rejected", lambda e: first_of(first(e)["rejected"])["reasons"].append("x"), "rejected"),
    "a rejection less": ("rejected", lambda e: first(e)["rejected"].popitem(), "rejected"),
    "a message": ("message", lambda e: first(e).update(message="0/1 nodes are available."), "message"),
    "an absence": ("rejected", lambda e: first(e).update(absent={"plugin": "P", "code": "Error"}), "absent"),
    "a nomination": ("message", lambda e: first(e).update(nominated="node-000"), "nominated"),
    "another pod": ("feasible", lambda e: first(e).update(pod="dev/other"), "pod"),
    "an error": ("feasible", lambda e: first(e).update(error="gated"), "error"),
    "a decision less": ("feasible", lambda e: e["decisions"].pop(), "decisions"),
    "a refused configuration": ("feasible", lambda e: e.update(error="unknown plugin"), "error"),
}


@pytest.mark.parametrize(("has", "tamper", "field"), TAMPERED.values(), ids=TAMPERED)
def test_finds_what_was_tampered_with(has: str, tamper: Callable[[Expect], object], field: str) -> None:
    record = recorded("mixed", has)
    assert verify(record) == []
    tampered = copy.deepcopy(record.expect)
    assert tampered is not None

    tamper(tampered)

    assert {difference.field for difference in verify(Record(record.case, tampered))} == {field}


def test_a_difference_says_where_it_is_and_what_it_is() -> None:
    record = recorded("mixed", "scores")
    expect = copy.deepcopy(record.expect)
    assert expect is not None
    node = next(iter(first(expect)["scores"]))
    was = first(expect)["scores"][node]["NodeResourcesFit"]
    first(expect)["scores"][node]["NodeResourcesFit"] = 1234

    (difference,) = verify(Record(record.case, expect))

    where = f"case {record.case.name} pod {first(expect)['pod']} node {node} plugin NodeResourcesFit"
    assert str(difference) == f"{where}: score: expected 1234, got {was}"


def test_reasons_in_another_order_agree() -> None:
    record = recorded("resources", "rejected")
    assert record.expect is not None
    for status in first(record.expect)["rejected"].values():
        status["reasons"].reverse()

    assert verify(record) == []


def test_device_scores_may_be_missing() -> None:
    def answer(**scores: int) -> Expect:
        return {"decisions": [{"pod": "p", "scores": {"n": scores}, "totals": {"n": 5}}]}

    recorded = answer(NodeResourcesFit=5, DynamicResources=0)

    assert list(compare("c", recorded, answer(NodeResourcesFit=5))) == []
    assert [str(found) for found in compare("c", recorded, answer(NodeResourcesFit=5, DynamicResources=1))] == [
        "case c pod p node n plugin DynamicResources: score: expected 0, got 1"
    ]


def test_a_case_without_a_recording_cannot_be_verified() -> None:
    record = recorded("mixed", "feasible")

    with pytest.raises(InputError, match="no recorded decisions to compare with"):
        verify(Record(record.case, None))


NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}, "status": {"allocatable": {"pods": "9"}}}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": {"containers": [{"name": "c"}]}}


def config(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", **fields}


def test_decides_in_order_on_what_earlier_pods_left() -> None:
    node = {**NODE, "status": {"allocatable": {"pods": "1"}}}
    pods = [{**POD, "metadata": {"name": name}} for name in ("one", "two")]

    answer = decide(Case(name="full", objects=[node], pods=pods))

    assert answer["name"] == "full"
    assert answer["decisions"][0] == {"pod": "default/one", "feasible": ["n"], "ties": ["n"], "node": "n"}
    assert answer["decisions"][1]["message"] == "0/1 nodes are available: 1 Too many pods."


def test_a_pod_gets_the_priority_of_its_class() -> None:
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 7}
    pod = {**POD, "spec": {**POD["spec"], "priorityClassName": "high"}}  # type: ignore[dict-item]

    _, pods = prepare(Case(objects=[NODE, high], pods=[pod]))

    assert [(pod.name, pod.priority) for pod in pods] == [("p", 7)]


ANSWERS: dict[str, tuple[Case, Expect]] = {
    "accepts a configuration": (
        Case(name="c", config=config()),
        {"name": "c", "accepted": True, "decisions": []},
    ),
    "refuses a configuration": (
        Case(name="c", config=config(parallelism=-1)),
        {
            "name": "c",
            "accepted": False,
            "error": "parallelism: Invalid value: -1: should be an integer value greater than zero",
        },
    ),
    "a refused configuration decides nothing": (
        Case(name="c", objects=[NODE], pods=[POD], config=config(parallelism=-1)),
        {"name": "c", "error": "parallelism: Invalid value: -1: should be an integer value greater than zero"},
    ),
    "objects that cannot be used": (
        Case(name="c", objects=[{"kind": "Node"}], pods=[POD]),
        {"name": "c", "error": "input item 1: Node has no metadata.name; give it one"},
    ),
    "no nodes": (
        Case(name="c", pods=[POD]),
        {
            "name": "c",
            "decisions": [{"pod": "default/p", "feasible": [], "message": "no nodes available to schedule pods"}],
        },
    ),
}


@pytest.mark.parametrize(("case", "answer"), ANSWERS.values(), ids=ANSWERS)
def test_answers(case: Case, answer: Expect) -> None:
    assert decide(case) == answer


LINES = {
    "a case": '{"name": "a", "pods": [{}]}',
    "a recorded case": '{"case": {"name": "a", "pods": [{}]}, "expect": {"name": "a"}}',
    "a case with more than we read": '{"name": "a", "pods": [{}], "env": {"X": "1"}}',
}


@pytest.mark.parametrize("packed", [False, True], ids=["plain", "gzip"])
@pytest.mark.parametrize("line", LINES.values(), ids=LINES)
def test_reads(line: str, packed: bool, tmp_path: Path) -> None:
    text = f"\n{line}\n\n{line}\n".encode()
    file = tmp_path / "cases.jsonl"
    file.write_bytes(gzip.compress(text) if packed else text)

    assert [(record.case.name, record.case.pods) for record in read_records(str(file))] == [("a", [{}])] * 2


def test_reads_one_case_over_several_lines(tmp_path: Path) -> None:
    file = tmp_path / "case.json"
    file.write_text(json.dumps({"name": "a", "objects": [NODE], "pods": [POD]}, indent=2))

    case = read_case(str(file))

    assert (case.name, case.objects, case.pods) == ("a", [NODE], [POD])


BROKEN = {
    "not JSON": (b"nonsense\n", "line 1: is not a case in JSON"),
    "no case": (b"{}\n", "line 1: is not a case: it has no objects, no pods and no config"),
    "a list": (b"[]\n", "line 1: is not a case in JSON: Expected `object`, got `array`"),
    "a wrong type": (b'{"pods": [1]}\n', "line 1: is not a case in JSON: Expected `object`, got `int`"),
    "broken later": (b'{"pods": [{}]}\n{"pods"\n', "line 2: is not a case in JSON"),
    "not UTF-8": (b'{"name": "\xff"}\n', "line 1: is not a case in JSON"),
    "truncated gzip": (gzip.compress(b'{"pods": [{}]}\n' * 100)[:-9], "cannot be unpacked"),
}


@pytest.mark.parametrize(("text", "problem"), BROKEN.values(), ids=BROKEN)
def test_names_the_line_that_cannot_be_read(text: bytes, problem: str, tmp_path: Path) -> None:
    file = tmp_path / "cases.jsonl"
    file.write_bytes(text)

    with pytest.raises(InputError) as raised:
        list(read_records(str(file)))

    assert problem in str(raised.value)
    assert str(raised.value).startswith(str(file))


def test_what_is_no_pod_is_not_dropped() -> None:
    case = Case(name="odd", pods=[{"kind": "Node", "metadata": {"name": "n"}}])
    assert decide(case)["error"] == "pod 1 of case 'odd' is a Node; move it to its objects"
