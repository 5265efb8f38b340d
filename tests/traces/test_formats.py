"""The other formats: small traces that the tests write themselves, read, and run as timelines."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cli.running import node, pod
from podium import Timeline, load
from podium.errors import InputError
from podium.model import Pod
from podium.timeline import TimelineResult
from podium.traces import Trace, read_trace, write_trace
from podium.workloads import expand_workloads


def lived(trace: Trace, folder: Path, *more: dict[str, Any]) -> TimelineResult:
    """The trace run as a timeline, from the files it is written to."""
    write_trace(trace, str(folder / "out"))
    beginning = json.loads((folder / "out" / "cluster.json").read_bytes())["items"]
    return Timeline(load([*beginning, *more]), str(folder / "out" / "events.jsonl")).run()


MACHINES = "m_1,0,3,7,96,100,USING\nm_1,50,3,7,96,100,USING\nm_2,0,4,7,64,50,USING\n"
TASKS = "M1,2,j_1,1,Terminated,100,160,100.0,0.5\nR2_1,1,j_1,1,Terminated,160,170,50.0,\nM1,1,j_2,1,Waiting,,,,\n"


def alibaba(folder: Path, machines: str = MACHINES, tasks: str = TASKS) -> Trace:
    for name, text in (("machines", machines), ("tasks", tasks)):
        (folder / name).write_text(text)
    return read_trace("alibaba-2018", [str(folder / "machines"), str(folder / "tasks")])


def test_a_task_that_an_alibaba_trace_repeats_is_imported_once(tmp_path: Path) -> None:
    again = "M1,3,j_1,1,Terminated,300,900,100.0,0.5\nM1,1,j_3,1,Terminated,5,9,100.0,0.5\n"
    trace = alibaba(tmp_path, tasks=TASKS + again)
    pods = [(event.time, event.object["metadata"]["name"]) for event in trace.events]
    assert pods == [(100, "j-1-m1-0"), (100, "j-1-m1-1"), (160, "j-1-r2-1-0"), (5, "j-3-m1-0")]
    assert "left out: 1 task with the job_name and task_name of an earlier one" in trace.assumed


def test_alibaba_tasks_are_pods_for_each_instance(tmp_path: Path) -> None:
    trace = alibaba(tmp_path)
    result = lived(trace, tmp_path)
    assert {life.pod: (life.arrived, life.ended) for life in result.lives} == {
        "default/j-1-m1-0": (100, 160),
        "default/j-1-m1-1": (100, 160),
        "default/j-1-r2-1-0": (160, 170),
    }
    assert "left out: 1 task without plan_cpu or start_time" in trace.assumed
    assert [(item["metadata"]["name"], item["status"]["allocatable"]["memory"]) for item in trace.beginning] == [
        ("m-1", "102400Mi"),
        ("m-2", "51200Mi"),
    ]


def google(folder: Path, machines: list[dict[str, Any]], instances: list[dict[str, Any]]) -> Trace:
    paths = []
    for name, lines in (("machines", machines), ("instances", instances)):
        paths.append(str(folder / name))
        (folder / name).write_bytes(gzip.compress("\n".join(map(json.dumps, lines)).encode()))
    return read_trace("google-2019", paths)


MACHINE = {"time": "0", "machine_id": "7", "type": "ADD", "capacity": {"cpus": 0.5, "memory": 0.25}}
REQUEST = {
    "collection_id": "9",
    "instance_index": 0,
    "priority": 103,
    "resource_request": {"cpus": 0.1, "memory": 0.01},
}


def test_google_instances_run_from_schedule_to_end(tmp_path: Path) -> None:
    events = [
        REQUEST | {"time": "700000000", "type": 0},
        REQUEST | {"time": "705000000", "type": "SCHEDULE"},
        REQUEST | {"time": "765000000", "type": 6},
        REQUEST | {"time": "800000000", "type": 0, "instance_index": 1},
        REQUEST | {"time": "0", "type": 0, "collection_type": 1},
        REQUEST | {"time": "0", "type": 0, "alloc_collection_id": "5"},
    ]
    trace = google(tmp_path, [MACHINE, MACHINE | {"time": "900000000", "type": "REMOVE"}], events)
    result = lived(trace, tmp_path)
    assert {life.pod: (life.arrived, life.ended) for life in result.lives} == {
        "default/c-9-0": (700, 760),
        "default/c-9-1": (800, 900),
    }
    assert trace.assumed[-1] == "1 instance without an end: taken to run on"


def test_google_instances_that_end_after_the_trace_run_on(tmp_path: Path) -> None:
    later = str(2**63 - 1)
    events = [
        REQUEST | {"time": "700000000", "type": 0},
        REQUEST | {"time": "705000000", "type": "SCHEDULE"},
        REQUEST | {"time": later, "type": 6},
        REQUEST | {"time": later, "type": 0, "instance_index": 1},
    ]
    trace = google(tmp_path, [MACHINE, MACHINE | {"time": later, "type": "REMOVE"}], events)
    (life,) = lived(trace, tmp_path).lives
    assert (life.arrived, life.node, life.ended) == (700, "m-7", None)


def at(second: int, kind: Any, **fields: Any) -> dict[str, Any]:
    return REQUEST | {"time": second * 10**6, "type": kind} | fields


def test_google_machines_that_were_left_out_are_not_removed(tmp_path: Path) -> None:
    machines: list[dict[str, Any]] = [
        MACHINE,
        {"time": 6 * 10**6, "machine_id": 9, "type": "REMOVE"},
        {"time": 5 * 10**6, "machine_id": 9, "type": "ADD"},
        {"time": 7 * 10**6, "machine_id": 9, "type": 44},
    ]
    trace = google(tmp_path, machines, [at(700, "SUBMIT")])
    (life,) = lived(trace, tmp_path).lives
    assert life.node == "m-7"
    assert trace.assumed[4:-1] == [
        "left out: 1 machine event of an unknown type",
        "left out: 1 machine event without capacity",
        "left out: 1 machine event for the removal of a machine that is not there",
    ]


def test_google_machines_are_read_in_the_order_of_their_times(tmp_path: Path) -> None:
    machines: list[dict[str, Any]] = [
        MACHINE,
        MACHINE | {"time": "9000000", "type": "REMOVE", "machine_id": 8},
        MACHINE | {"time": "5000000", "machine_id": 8},
    ]
    trace = google(tmp_path, machines, [at(700, "SUBMIT")])
    assert [(event.event, event.time) for event in trace.events][:2] == [("add", 5), ("delete", 9)]


def test_google_enumerations_may_be_names(tmp_path: Path) -> None:
    events = [at(700, "SUBMIT", collection_type="JOB"), at(700, 0, collection_type="ALLOC_SET", instance_index=1)]
    assert [life.pod for life in lived(google(tmp_path, [MACHINE], events), tmp_path).lives] == ["default/c-9-0"]


def test_a_google_instance_that_is_submitted_again_ends_the_first(tmp_path: Path) -> None:
    events = [at(700, 0), at(710, 3), at(750, 0), at(760, 0), at(770, 3), at(790, "FINISH"), at(795, 77)]
    trace = google(tmp_path, [MACHINE], events)
    lives = {life.pod: (life.arrived, life.ended) for life in lived(trace, tmp_path).lives}
    assert lives == {"default/c-9-0": (700, 740), "default/c-9-0-2": (750, 760), "default/c-9-0-3": (760, 780)}
    assert trace.assumed[-2:] == [
        "2 instances submitted again without an end: taken to end then",
        "left out: 1 instance event of an unknown type",
    ]


def simkube(folder: Path, *events: dict[str, Any], index: Any = None) -> Trace:
    path = folder / "trace"
    path.write_bytes(msgspec.msgpack.encode({"version": 3, "events": events, "index": index or {}}))
    return read_trace("simkube", [str(path)])


def test_a_simkube_object_that_was_never_applied_is_not_deleted(tmp_path: Path) -> None:
    trace = simkube(tmp_path, {"ts": 1, "applied_objs": [node("n1")]}, {"ts": 5, "deleted_objs": [deployment(1)]})
    assert not lived(trace, tmp_path).lives
    assert "left out: 1 deletion of objects that are not there" in trace.assumed


def test_a_simkube_trace_that_is_all_there_at_the_beginning_is_a_timeline_too(tmp_path: Path) -> None:
    trace = simkube(tmp_path, {"ts": 1, "applied_objs": [node("n1"), deployment(2)]})
    assert [life.node for life in lived(trace, tmp_path).lives] == ["n1", "n1"]


def test_a_long_simkube_lifetime_is_a_duration(tmp_path: Path) -> None:
    index = {"apps/v1.Deployment": {"default/web": {"1": [{"Finished": [0, 1234567.5]}]}}}
    trace = simkube(tmp_path, {"ts": 1, "applied_objs": [node("n1"), deployment(1)]}, index=index)
    assert [life.lifetime for life in lived(trace, tmp_path).lives] == [1234567.5]


def deployment(replicas: int) -> dict[str, Any]:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]}
    spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    }


@pytest.mark.parametrize("packed", [False, True])
def test_simkube_objects_are_applied_and_their_pods_live_as_long_as_they_did(tmp_path: Path, packed: bool) -> None:
    finished = {"lifecycle": {"Finished": [100, 130]}}
    trace = {
        "version": 3,
        "config": {},
        "events": [
            {"ts": 100, "applied_objs": [deployment(1)], "deleted_objs": []},
            {"ts": 110, "applied_objs": [deployment(3)], "deleted_objs": []},
            {"ts": 115, "applied_objs": [], "deleted_objs": [deployment(3)]},
        ],
        "index": {"apps/v1.Deployment": {"default/web": {100: [finished]}}},
    }
    path = tmp_path / "trace"
    data = msgspec.msgpack.encode(trace)
    path.write_bytes(gzip.compress(data) if packed else data)
    read = read_trace("simkube", [str(path)])
    assert "the trace has no nodes: give some with -f" in read.assumed
    result = lived(read, tmp_path, node("n1"))
    assert [(life.arrived, life.lifetime, life.ended) for life in result.lives] == [
        (0, 30, 15),
        (10, 30, 15),
        (10, 30, 15),
    ]


def test_all_that_makes_pods_in_a_simkube_trace_is_pending_once(tmp_path: Path) -> None:
    events: list[dict[str, Any]] = [
        {"ts": 100, "applied_objs": [node("n1")]},
        {"ts": 110, "applied_objs": [deployment(2)]},
        {"ts": 115, "deleted_objs": [deployment(2)]},
        {"ts": 120, "applied_objs": [deployment(2)]},
    ]
    path = tmp_path / "trace"
    path.write_bytes(msgspec.msgpack.encode({"version": 3, "events": events, "index": {}}))
    write_trace(read_trace("simkube", [str(path)]), str(tmp_path))
    assert [each["kind"] for each in msgspec.json.decode((tmp_path / "pods.json").read_bytes())["items"]] == [
        "Deployment"
    ]
    assert len(expand_workloads(read_trace("simkube", [str(path)]).objects()).of(Pod)) == 2


def test_a_recorded_pod_that_comes_back_is_pending_once_and_workloads_are_not(tmp_path: Path) -> None:
    documents = [
        node("n1"),
        patch(5, "create", "web-0", pod("web-0")),
        patch(9, "delete", "web-0"),
        patch(10, "create", "web-0", pod("web-0")),
        {**patch(11, "create", "web", deployment(1)), "resource": {"version": "v1", "resource": "deployments"}},
    ]
    path = tmp_path / "record.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    trace = read_trace("kwok-record", [str(path)])
    assert len([*trace.events]) == 4
    assert [item.metadata.name for item in trace.objects()] == ["n1", "web-0"]


def patch(time: int, method: str, name: str, template: dict[str, Any] | None = None) -> dict[str, Any]:
    return {
        "apiVersion": "action.kwok.x-k8s.io/v1alpha1",
        "kind": "ResourcePatch",
        "resource": {"version": "v1", "resource": "pods"},
        "target": {"name": name, "namespace": "default"},
        "durationNanosecond": time * 10**9,
        "method": method,
        **({} if template is None else {"template": template}),
    }


def test_a_recording_of_kwok_is_scheduled_anew(tmp_path: Path) -> None:
    documents = [
        node("n1"),
        pod("old", nodeName="n1"),
        patch(5, "create", "new", pod("new")),
        patch(6, "patch", "new", {"spec": {"nodeName": "elsewhere"}, "metadata": {"labels": {"a": "b"}}}),
        patch(9, "delete", "new"),
        patch(9, "delete", "unheard-of"),
    ]
    path = tmp_path / "record.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    result = lived(read_trace("kwok-record", [str(path)]), tmp_path)
    lives = {life.pod: (life.node, life.arrived, life.ended) for life in result.lives}
    assert lives == {"default/old": ("n1", 0, None), "default/new": ("n1", 5, 9)}


def test_patches_are_merged_as_kubernetes_does(tmp_path: Path) -> None:
    container = {"name": "c", "resources": {"requests": {"cpu": "2"}}}
    documents = [
        node("n1"),
        patch(1, "create", "p", pod("p")),
        patch(2, "patch", "p", {"spec": {"containers": [container]}, "metadata": {"labels": None}}),
    ]
    path = tmp_path / "record.yaml"
    path.write_text(yaml.safe_dump_all(documents))
    *_, last = read_trace("kwok-record", [str(path)]).events
    assert last.object["spec"]["containers"] == [
        {"name": "c", "image": "i", "resources": {"requests": {"cpu": "2"}}},
    ]
    assert "labels" not in last.object["metadata"]


def simkube_text(**fields: Any) -> str:
    """A trace of SimKube that is wrong somewhere; all of it happens to be text."""
    return msgspec.msgpack.encode({"version": 2, "index": {}, **fields}).decode("latin-1")


@pytest.mark.parametrize(
    ("kind", "texts", "message"),
    [
        ("alibaba-2018", ["", ""], "0: has no machines"),
        ("alibaba-2018", ["m_1,0,3,7,many,100,U", ""], "0 line 1: cpu_num 'many' is not a number"),
        ("alibaba-2018", ["a,b,c,d,e,f,g,h", ""], "0 line 1: has 8 fields"),
        ("alibaba-2018", [MACHINES, "M1,2,j,1,T,x,1,1,1"], "1 line 1: start_time 'x' is not a number"),
        (
            "alibaba-2018",
            [MACHINES, "M1,99999999999,j,1,T,1,2,1,1"],
            "1 line 1: instance_num '99999999999' is more than",
        ),
        ("alibaba-2018", [MACHINES, ""], "1: has no task with instance_num, plan_cpu and start_time"),
        ("alibaba-2018", [MACHINES, "M1,0,j,1,T,1,2,1,1"], "1: has no task with instance_num"),
        ("alibaba-2018", [f"{MACHINES}M-1,0,3,7,9,9,U", TASKS], "0 line 4: machine_id 'M-1' becomes m-1, as 'm_1' of"),
        ("alibaba-2018", [f"{'m' * 400},0,3,7,9,9,U", TASKS], "0 line 1: machine_id 'mmm"),
        ("alibaba-2018", ["m_1,0,a b!,7,9,9,U", TASKS], "0 line 1: failure_domain_1 'a b!' cannot be the value of"),
        ("alibaba-2018", [MACHINES, f"M1,2,{'j' * 400},1,T,1,2,1,1"], "1 line 1: job_name and task_name 'jjj"),
        ("alibaba-2018", [MACHINES, f"M1,2,{'j' * 100},1,T,1,2,1,1"], "1 line 1: job_name 'jjj"),
        ("alibaba-2018", [MACHINES, "M1,2,j,1,T,999999999,,1,1"], "1 line 1: start_time '999999999' is more than"),
        ("google-2019", [json.dumps(MACHINE), ""], "1: has no instance that was submitted with a resource_request"),
        ("google-2019", [json.dumps(MACHINE), '{"type": "BOGUS"}'], "1 line 1: type 'BOGUS' is unknown; use SUBMIT"),
        ("google-2019", [json.dumps(MACHINE | {"time": 10**16}), ""], "0 line 1: time 10000000000000000 is later"),
        (
            "google-2019",
            [json.dumps(MACHINE), json.dumps(REQUEST | {"time": 1, "alloc_collection_id": "x"})],
            "1 line 1: alloc_collection_id 'x' is not a number",
        ),
        ("google-2019", ["{}", ""], "0 line 1: has no time"),
        ("google-2019", [json.dumps(MACHINE | {"capacity": {"cpus": -1}}), ""], "capacity.cpus -1 is not a share"),
        ("google-2019", [json.dumps(MACHINE | {"type": [1]}), ""], "0 line 1: type [1] is not a number"),
        ("google-2019", ["[1]", ""], "0 line 1: is not a JSON object"),
        ("google-2019", ["", ""], "0: has no machine that is there at the beginning"),
        ("google-2019", [json.dumps(MACHINE), '{"time": "x"}'], "1 line 1: time 'x' is not a number"),
        ("google-2019", [json.dumps(MACHINE), '{"time": "%s"}' % ("9" * 400)], "1 line 1: time '9999"),
        (
            "google-2019",
            [json.dumps(MACHINE), '{"time": 1, "collection_id": 1.5, "instance_index": 0}'],
            "1 line 1: collection_id '1.5' is not a whole number of 64 bits",
        ),
        (
            "google-2019",
            [json.dumps(MACHINE), json.dumps(REQUEST | {"time": 1, "type": 0} | {"priority": 10**12})],
            "1 line 1: priority 1000000000000 is not one from 0 to 1,000,000,000",
        ),
        ("simkube", ["\x01"], "0: has no version"),
        ("simkube", [simkube_text(events=[])], "0: events: has no objects"),
        *(
            (
                "simkube",
                [simkube_text(events=[], index={"P": {"a/b": [{"Finished": ends}]}})],
                "0: index P a/b: Finished ",
            )
            for ends in ([2, 1], [0, 10**10], [0.5, float("inf")])
        ),
        ("simkube", [simkube_text(events=[{"ts": float("nan")}])], "0 event 1: ts is missing or is not a time"),
        ("simkube", [simkube_text(events=[{"ts": 0}, {"ts": 1e300}])], "0 event 2: ts is before that of the first"),
        (
            "simkube",
            [simkube_text(events=[{"ts": 1, "applied_objs": [{**pod("a"), "spec": {"containers": "x"}}]}])],
            "0 event 1 Pod a: spec.containers: expected array, got str",
        ),
        (
            "simkube",
            [
                simkube_text(
                    events=[{"ts": 1, "applied_objs": [{"kind": "Pod", "metadata": {"name": "a", "namespace": [1]}}]}]
                )
            ],
            "0 event 1: has an object whose metadata.namespace is [1]",
        ),
        ("kwok-record", [yaml.safe_dump(patch(1, "create", "", pod("p")))], "it needs target.name"),
        (
            "kwok-record",
            [yaml.safe_dump(patch(1, "create", "p", pod("p")) | {"resource": {}})],
            "it needs resource.resource",
        ),
        (
            "kwok-record",
            [yaml.safe_dump(patch(1, "create", "p", {**pod("p"), "spec": 3}))],
            "Pod p: spec: expected object",
        ),
        (
            "kwok-record",
            [yaml.safe_dump(patch(1, "create", "p", {"metadata": {"name": "p"}}))],
            "has an object without kind",
        ),
        ("simkube", ["no msgpack"], "0: "),
        ("simkube", ["\x1f\x8bno gzip"], "0: cannot be unpacked as gzip: "),
        ("simkube", [simkube_text(events="x")], "0: events is missing or is not what SimKube writes"),
        ("simkube", [simkube_text(events=[{"ts": "x"}])], "0 event 1: ts is missing or is not a time"),
        ("simkube", [simkube_text(events=[{"ts": 1, "applied_objs": 5}])], "event 1: applied_objs is not a list"),
        (
            "simkube",
            [simkube_text(events=[{"ts": 1, "deleted_objs": [{"kind": [1]}]}])],
            "event 1: has an object without",
        ),
        ("kwok-record", ["kind: 5"], "is not an object with a kind"),
        (
            "kwok-record",
            ["kind: Node\nmetadata: {name: no}"],
            "document 1 line 2: metadata.name is false, not a text; write it in quotes, as YAML reads n, no, off, on",
        ),
        (
            "kwok-record",
            [yaml.safe_dump(patch(1, "create", "p", pod("p"))).replace("name: p", "name: 7")],
            "target.name is 7, not a text; write it in quotes",
        ),
        ("kwok-record", ["kind: NodeList\nitems: 5"], "has an object without kind or metadata.name"),
        ("kwok-record", [yaml.safe_dump(patch(-1, "create", "p", pod("p")))], "durationNanosecond is -"),
        ("kwok-record", ["a: 1"], "is not an object with a kind"),
        ("kwok-record", [yaml.safe_dump(patch(1, "spin", "p"))], "method 'spin' is unknown"),
        ("kwok-record", [yaml.safe_dump(patch(1, "create", "p"))], "template is missing"),
    ],
)
def test_what_cannot_be_used_is_one_line(tmp_path: Path, kind: str, texts: list[str], message: str) -> None:
    for number, text in enumerate(texts):
        (tmp_path / str(number)).write_bytes(text.encode("latin-1"))
    with pytest.raises(InputError) as caught:
        write_trace(
            read_trace(kind, [str(tmp_path / str(number)) for number in range(len(texts))]), str(tmp_path / "o")
        )
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "o" / "events.jsonl").exists()


RECORDED = """kind: Node
apiVersion: v1
metadata: {name: n1}
---
kind: ResourcePatch
method: create
durationNanosecond: 5
resource: {version: v1, resource: pods}
target: {name: p, namespace: default}
template:
  apiVersion: v1
  kind: Pod
  metadata: {name: p}
  spec:
    containers: [{name: c, image: i}]
"""


@pytest.mark.parametrize(
    ("right", "wrong", "place"),
    [
        ("create", "explode", "document 2 line 6: method 'explode' is unknown"),
        (": 5", ": -5", "document 2 line 7: durationNanosecond is -5"),
        ("resource: pods", "resorce: pods", "document 2 line 8: resource: a ResourcePatch is not complete"),
        ("[{name: c, image: i}]", "3", "document 2 line 15 Pod p: spec.containers: expected array"),
        ("method: create\n", "", "document 2 line 5: method None is unknown"),
        ("name: n1", "nam: n1", "document 1 line 1: has an object without kind or metadata.name"),
    ],
)
def test_an_error_in_a_recording_names_the_line(tmp_path: Path, right: str, wrong: str, place: str) -> None:
    file = tmp_path / "record.yaml"
    file.write_text(RECORDED.replace(right, wrong))
    with pytest.raises(InputError) as caught:
        read_trace("kwok-record", [str(file)])
    assert str(caught.value).startswith(f"{file} {place}")


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_is_not_utf_8_is_named(tmp_path: Path, packed: bool) -> None:
    data = f"{MACHINES}m_3,".encode() + b"\xe9,0\n"
    (tmp_path / "m").write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(InputError, match="m line 4: is not UTF-8 text"):
        read_trace("alibaba-2018", [str(tmp_path / "m"), str(tmp_path / "m")])
