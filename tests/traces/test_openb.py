from __future__ import annotations

from pathlib import Path

import pytest

from podium.errors import InputError
from podium.model import Node, Pod
from podium.traces import read_trace
from traces.openb_tables import NODES, PODS, write_tables


@pytest.mark.parametrize("packed", [False, True])
def test_nodes_and_pods_ask_for_gpu_milli(tmp_path: Path, packed: bool) -> None:
    objects = read_trace("openb", write_tables(tmp_path, packed=packed)).objects()

    assert {node.name: node.status.allocatable for node in objects.of(Node)} == {
        "node-a": {"cpu": "96000m", "memory": "393216Mi", "pods": "1001", "alibabacloud.com/gpu-milli": "8000"},
        "node-b": {"cpu": "104000m", "memory": "524288Mi", "pods": "1001", "alibabacloud.com/gpu-milli": "2000"},
        "node-c": {"cpu": "32000m", "memory": "262144Mi", "pods": "1001"},
    }
    asked = {
        pod.name: pod.spec.containers[0].resources.requests.get("alibabacloud.com/gpu-milli") for pod in objects.of(Pod)
    }
    assert asked == {"share": "460", "whole": "2000", "plain": None}


def test_the_models_a_task_names_are_a_node_affinity(tmp_path: Path) -> None:
    _, whole, _ = read_trace("openb", write_tables(tmp_path)).events
    affinity = whole.object["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    assert affinity["nodeSelectorTerms"][0]["matchExpressions"][0]["values"] == ["T4", "G2"]


def test_a_lifetime_counts_from_when_the_task_was_scheduled(tmp_path: Path) -> None:
    events = read_trace("openb", write_tables(tmp_path)).events
    assert [(each.time, each.lifetime) for each in events] == [(10, 90), (30, 60), (40, None)]


def test_tables_without_times_say_so(tmp_path: Path) -> None:
    trace = read_trace("openb", write_tables(tmp_path, pods="name,cpu_milli,memory_mib,num_gpu,gpu_milli\na,1,1,0,0\n"))
    assert [(each.time, each.lifetime) for each in trace.events] == [(0, None)]
    assert trace.assumed[-2:] == [
        "1 task without creation_time: taken to come at second 0",
        "1 task without deletion_time: taken to run on",
    ]


def test_tasks_that_were_never_scheduled_are_told(tmp_path: Path) -> None:
    header = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,creation_time,deletion_time,scheduled_time\n"
    trace = read_trace("openb", write_tables(tmp_path, pods=f"{header}a,1,1,0,0,10,70,\nb,1,1,0,0,10,70,20\n"))
    assert [each.lifetime for each in trace.events] == [60, 50]
    assert trace.assumed[-1] == "1 task without scheduled_time: taken to run from creation_time on"


@pytest.mark.parametrize(
    ("nodes", "pods", "message"),
    [
        pytest.param("sn,cpu_milli\n", PODS, "nodes.csv: has no column 'memory_mib'", id="a column is missing"),
        pytest.param("", PODS, "nodes.csv: has no column 'sn'; its columns are none", id="an empty file"),
        pytest.param("x" * 90 + ",b", PODS, f"its columns are {'x' * 60}, b", id="no table"),
        pytest.param(NODES.splitlines()[0], PODS, "nodes.csv: has no nodes", id="no nodes"),
        pytest.param(
            NODES.replace("96000", "many"), PODS, "nodes.csv line 2: cpu_milli 'many' is not a number", id="a word"
        ),
        pytest.param(NODES.replace("96000", "-1"), PODS, "nodes.csv line 2: cpu_milli '-1' is not a", id="negative"),
        pytest.param(NODES.replace("96000", "1.5"), PODS, "line 2: cpu_milli '1.5' is not a whole", id="half"),
        pytest.param(NODES.replace("G2", ""), PODS, "nodes.csv line 2: model is empty", id="GPUs of no model"),
        pytest.param(NODES, PODS.replace("460", "1460"), "pods.csv line 2: gpu_milli 1460 with num_gpu 1", id="share"),
        pytest.param(NODES, PODS.replace("whole", ""), "pods.csv line 3: name is empty", id="no name"),
        pytest.param(NODES, PODS + "a,1,1,0,0,,,,,,,,,\n", "pods.csv line 5: has 14 fields", id="too many fields"),
        pytest.param(
            NODES + "node-z,1,1\n",
            PODS,
            "nodes.csv line 5: has 3 fields, but there are 5 columns; write one for each, empty if not known",
            id="too few fields",
        ),
        pytest.param(NODES + "node-a,1,1,0,\n", PODS, "line 5: sn 'node-a' is the name of ", id="a node twice"),
        pytest.param(
            NODES, PODS + "share,1,1,0,0,,,,,,\n", "pods.csv line 5: name 'share' is the name of ", id="a task twice"
        ),
        pytest.param(
            NODES.replace("node-a", "Node A"), PODS, "line 2: sn 'Node A' is not a name: it must", id="capitals"
        ),
        pytest.param(NODES, PODS.replace("share", "x" * 300), "line 2: name 'xxx", id="a long name"),
        pytest.param(
            NODES.replace("G2", "G 2"), PODS, "line 2: model 'G 2' cannot be the value of a label", id="model"
        ),
        pytest.param(NODES, PODS.replace("T4|", "T 4|"), "line 3: gpu_spec 'T 4' cannot be the value", id="models"),
        pytest.param(NODES.replace("96000", "1e30"), PODS, "line 2: cpu_milli '1e30' is more than", id="too much"),
        pytest.param(NODES.replace("96000", "96_000"), PODS, "line 2: cpu_milli '96_000' is not a", id="an underscore"),
        pytest.param(NODES, "name\n\x00", "pods.csv line 2: is not text: it has a zero byte", id="binary"),
    ],
)
def test_what_cannot_be_used_is_named(tmp_path: Path, nodes: str, pods: str, message: str) -> None:
    with pytest.raises(InputError) as caught:
        read_trace("openb", write_tables(tmp_path, nodes, pods))
    assert message in str(caught.value)


def test_a_format_needs_its_files() -> None:
    with pytest.raises(InputError, match=r"openb needs NODES.csv PODS.csv: 2 files, not 1"):
        read_trace("openb", ["x"])
    with pytest.raises(InputError, match="format 'opemb' is unknown; use openb, alibaba-2018, google"):
        read_trace("opemb", [])
