from __future__ import annotations

import gc
import json
import lzma
from pathlib import Path

import pytest

from podium.errors import InputError
from podium.manifests import load
from podium.model import Namespace, Node, Pod

from .objects import Fields, doc, names

GOLDEN = Path(__file__).parents[1] / "golden"
CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration", "profiles": []}


def write(path: Path, *documents: Fields) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(json.dumps(document) for document in documents))
    return str(path)


def test_objects_keep_the_order_of_the_input(tmp_path: Path) -> None:
    first = write(tmp_path / "b.json", doc("Pod", "b"), doc("Node", "n"))
    second = write(tmp_path / "a.json", {"kind": "List", "items": [doc("Pod", "c"), doc("Pod", "a")]})

    objects = load(first, Path(second), doc("Pod", "e"), [doc("Pod", "d")])

    assert [obj.name for obj in objects] == ["b", "n", "c", "a", "e", "d"]
    assert objects[1] == objects.of(Node)[0]
    assert objects[-1].name == "d"
    assert [obj.name for obj in objects[2:4]] == ["c", "a"]
    assert len(objects) == 6
    assert repr(objects) == "<Objects: 6, 0 warnings>"


def test_kinds_that_scheduling_does_not_read_are_counted() -> None:
    objects = load(
        [
            doc("Pod", "a"),
            doc("ConfigMap", "c"),
            doc("ConfigMap", "d"),
            {**doc("Ingress", "i"), "apiVersion": "networking.k8s.io/v1"},
            {**doc("Job", "j"), "apiVersion": "batch.volcano.sh/v1alpha1"},
            {**doc("Service", "s"), "apiVersion": "serving.knative.dev/v1"},
            {**doc("StatefulSet", "t"), "apiVersion": "apps/v1"},
        ]
    )

    assert [obj.name for obj in objects] == ["a", "t"]
    assert objects.ignored == {
        "ConfigMap": 2,
        "Ingress": 1,
        "Job.batch.volcano.sh": 1,
        "Service.serving.knative.dev": 1,
    }


@pytest.mark.parametrize(
    ("documents", "config"),
    [
        ([doc("Pod", "a")], None),
        ([doc("Pod", "a"), CONFIG], CONFIG),
        ([{"pods": [doc("Pod", "a")], "schedulerConfig": {"profiles": [1]}}], {"profiles": [1]}),
    ],
)
def test_the_scheduler_configuration_is_kept(tmp_path: Path, documents: list[Fields], config: object) -> None:
    assert load(documents).scheduler_config == config
    assert load(write(tmp_path / "a.json", *documents)).scheduler_config == config


def test_two_scheduler_configurations_are_refused() -> None:
    with pytest.raises(InputError) as error:
        load(doc("Pod", "a"), CONFIG, CONFIG)

    assert str(error.value) == "input: a second KubeSchedulerConfiguration, the first is in input; keep one"


def test_generated_names_are_stable_and_do_not_collide() -> None:
    document = {"kind": "Pod", "metadata": {"generateName": "web-"}}

    first, again = load([document] * 3), load([document] * 3)

    assert names(first) == names(again)
    assert len(set(names(first))) == 3
    assert all(name.startswith("web-") and len(name) == 9 for name in names(first))


@pytest.mark.parametrize("kind", ["Node", "Pod", "Deployment"])
def test_an_object_without_a_name_is_refused(kind: str) -> None:
    with pytest.raises(InputError) as error:
        load({"kind": "List", "items": [doc("Pod", "a"), {"kind": kind}]})

    assert str(error.value) == f"input item 2: {kind} has no metadata.name; give it one"


def test_duplicates_are_refused_naming_both_files(tmp_path: Path) -> None:
    first, second = (
        write(tmp_path / "a.json", doc("Pod", "web")),
        write(tmp_path / "b.json", doc("Pod", "web", "default")),
    )

    with pytest.raises(InputError) as error:
        load(tmp_path)
    assert str(error.value) == f"Pod default/web is in {first} and in {second}; keep one of them"

    with pytest.raises(InputError) as error:
        load([doc("Node", "n"), doc("Node", "n")])
    assert str(error.value) == "Node n is twice in input; keep one of them"


def test_the_same_name_in_another_namespace_or_kind_is_no_duplicate() -> None:
    assert len(load([doc("Pod", "a"), doc("Pod", "a", "prod"), doc("Node", "a"), doc("Service", "a")])) == 4


def test_other_kinds_may_come_twice_if_they_say_the_same() -> None:
    objects = load([doc("Namespace", "prod"), doc("Namespace", "prod")])

    assert names(objects, Namespace) == ["prod"]
    assert objects.warnings == ("Namespace prod is twice in input, the same: used once",)
    with pytest.raises(InputError, match=r"^Namespace prod is twice in input; keep one of them$"):
        load([doc("Namespace", "prod"), doc("Namespace", "prod", labels={"a": "b"})])


def test_a_directory_may_hold_other_things(tmp_path: Path) -> None:
    write(tmp_path / "k8s" / "pod.json", doc("Pod", "web"))
    other = write(tmp_path / "k8s" / "values.json", {"replicas": 3})

    objects = load(tmp_path)

    assert names(objects) == ["web"]
    assert objects.warnings == (f"{other} document 1: has no kind; is it a Kubernetes object?; skipped",)
    with pytest.raises(InputError, match=r"values\.json document 1: has no kind; is it a Kubernetes object\?$"):
        load(other)


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "input: no objects that scheduling reads, such as nodes and pods"),
        (
            [doc("Secret", "s"), doc("Secret", "t")],
            "input: no objects that scheduling reads, such as nodes and pods; only 2 Secret",
        ),
    ],
)
def test_empty_input_is_refused(documents: list[Fields], message: str) -> None:
    with pytest.raises(InputError) as error:
        load(documents)

    assert str(error.value) == message


def test_an_empty_file_is_refused_by_its_name(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text("# nothing\n")

    with pytest.raises(InputError) as error:
        load(tmp_path / "a.yaml")

    assert str(error.value) == f"{tmp_path / 'a.yaml'}: no objects that scheduling reads, such as nodes and pods"


def test_the_collector_runs_again_afterwards() -> None:
    load(doc("Pod", "a"))
    assert gc.isenabled()
    with pytest.raises(InputError):
        load(doc("Pod", ""))
    assert gc.isenabled()


def test_yaml_and_json_load_alike(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_text(
        "apiVersion: v1\nkind: Pod\nmetadata: {name: web}\nspec:\n  containers:\n"
        "  - resources: {limits: {cpu: 0.5, memory: 1e9}}\n    ports: [{containerPort: 80, hostPort: 0x50}]\n"
    )
    container = {
        "resources": {"limits": {"cpu": 0.5, "memory": 1_000_000_000}},
        "ports": [{"containerPort": 80, "hostPort": 80}],
    }
    document = write(tmp_path / "a.json", doc("Pod", "web", spec={"containers": [container]}))

    assert list(load(tmp_path / "a.yaml")) == list(load(document))


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*.jsonl.xz")), ids=lambda path: path.name)
def test_every_recorded_object_loads(path: Path) -> None:
    with lzma.open(path) as lines:
        for line in lines:
            case = json.loads(line)["case"]
            pending = case.get("pods", [])

            objects = load(case["objects"], pending)

            assert len(objects) == len(case["objects"]) + len(pending)
            assert objects.ignored == {}
            assert all(pod.spec.priority is not None and pod.metadata.uid for pod in objects.of(Pod))


@pytest.mark.parametrize(
    ("text", "only"),
    [
        ("", ""),
        ("# nothing\n", ""),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", "; only 1 ConfigMap"),
    ],
)
def test_one_of_several_files_that_holds_nothing_is_told(text: str, only: str, tmp_path: Path) -> None:
    cluster, empty = tmp_path / "cluster.yaml", tmp_path / "empty.yaml"
    cluster.write_text("apiVersion: v1\nkind: Node\nmetadata: {name: a}\n")
    empty.write_text(text)

    assert load(cluster, empty).warnings == (
        f"{empty}: no objects that scheduling reads, such as nodes and pods{only}",
    )
