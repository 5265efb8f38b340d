"""Later files over earlier ones, from the command line: what changes, at once and step by step."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest

from answers.test_replicas import workload
from cli.running import node, pod, run, written

Fields = dict[str, Any]
NODES = (node("n1"), node("n2"))
NOT_READY = [{"type": "Ready", "status": "False"}]


def owner(kind: str, name: str) -> Fields:
    return {"apiVersion": "apps/v1", "kind": kind, "name": name, "uid": name, "controller": True}


def owned(kind: str, name: str, pod_name: str, on: str | None, cpu: str = "1", **fields: Any) -> Fields:
    labels = {"app": name.removesuffix("-old"), **({"pod-template-hash": "old"} if kind == "ReplicaSet" else {})}
    conditions = fields.pop("conditions", [])
    annotations = fields.pop("annotations", {})
    placed = {"nodeName": on, "phase": "Running"} if on else {}
    made = pod(pod_name, labels=labels, requests={"cpu": cpu}, **placed, **fields)
    made["metadata"]["ownerReferences"] = [owner(kind, name)]
    made["metadata"]["annotations"] = annotations
    made["status"]["conditions"] = conditions
    return made


def deployment(replicas: int | None = 4, *, image: str = "i", cpu: str = "1", **spec: Any) -> Fields:
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    return workload("Deployment", "web", replicas, pod={"containers": [container]}, **spec)


def deployed(*nodes: str | None, cpu: str = "1", **spec: Any) -> list[Fields]:
    """A Deployment as a dump has it, with a ReplicaSet and a pod on each of these nodes."""
    made = deployment(len(nodes), cpu=cpu, **spec)
    replica_set = copy.deepcopy(made)
    replica_set["kind"] = "ReplicaSet"
    replica_set["metadata"] = {"name": "web-old", "namespace": "default", "uid": "web-old"}
    replica_set["metadata"]["ownerReferences"] = [owner("Deployment", "web")]
    replica_set["spec"].pop("strategy", None)
    replica_set["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = "old"
    pods = [owned("ReplicaSet", "web-old", f"web-old-{number}", on, cpu) for number, on in enumerate(nodes)]
    return [made, replica_set, *pods]


def daemon_set(image: str = "i", cpu: str = "1", **strategy: Any) -> Fields:
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    return workload("DaemonSet", "agent", pod={"containers": [container]}, updateStrategy={"rollingUpdate": strategy})


def stateful_set(
    replicas: int = 3, image: str = "i", cpu: str = "1", policy: str = "OrderedReady", **spec: Any
) -> Fields:
    container = {"name": "c", "image": image, "resources": {"requests": {"cpu": cpu}}}
    return workload("StatefulSet", "db", replicas, pod={"containers": [container]}, podManagementPolicy=policy, **spec)


def numbered(*nodes: str) -> list[Fields]:
    return [owned("StatefulSet", "db", f"db-{number}", on) for number, on in enumerate(nodes)]


def applied(folder: Path, cluster: list[Fields], release: list[Fields], *options: str) -> Fields:
    """What `simulate` makes of a release over a cluster, as JSON."""
    first, second = written(folder / "cluster.json", *NODES, *cluster), written(folder / "new.json", *release)
    result = run("simulate", "-f", first, "-f", second, *options, "-o", "json")
    assert result.exit_code in (0, 1), result.output
    document: Fields = json.loads(result.stdout)
    document["code"] = result.exit_code
    return document


def steps_of(document: Fields) -> list[tuple[int, ...]]:
    """Of each step: pods deleted, made, placed and waiting; then how many old and new ones are ready."""
    return [
        (*(len(step[what]) for what in ("deleted", "created", "placed", "waiting")), step["oldReady"], step["newReady"])
        for step in document["rollout"]["steps"]
    ]


# -- the later file wins -------------------------------------------------------------------------------------------


def test_pods_of_the_old_template_make_way_for_new_ones(tmp_path: Path) -> None:
    found = applied(tmp_path, deployed("n1", "n1", "n2"), [deployment(3, image="j", cpu="2")])

    (change,) = found["changes"]
    assert (change["kind"], change["name"]) == ("Deployment", "web")
    assert change["fields"] == [
        "spec.template.spec.containers[c].image",
        "spec.template.spec.containers[c].resources.requests.cpu",
    ]
    assert change["pods"] == {"replaced": 3, "added": 0, "removed": 0}
    assert change["gone"] == [
        {"pod": "default/web-old-0", "node": "n1"},
        {"pod": "default/web-old-1", "node": "n1"},
        {"pod": "default/web-old-2", "node": "n2"},
    ]
    assert sorted(each["node"] for each in change["new"]) == ["n1", "n1", "n2"]
    assert found["pods"] == {"total": 3, "placed": 3, "pending": 0, "preempted": 0}
    assert found["utilisation"]["cpu"] == {"allocatable": 8000, "before": 3000, "after": 6000}
    assert (found["code"], found["rollout"]) == (0, None)


def test_what_changes_comes_first_in_the_text(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", *NODES, *deployed("n1", "n1"))
    release = written(tmp_path / "new.json", deployment(3, cpu="3"))

    result = run("simulate", "-f", cluster, "-f", release)

    lines = result.stdout.splitlines()
    assert result.exit_code == 1
    assert lines[:4] == [
        "WHAT CHANGES",
        "default Deployment/web: 2 pods replaced and 1 pod added, 1 of them pending",
        "    spec.replicas, spec.template.spec.containers[c].resources.requests.cpu",
        "    to n1, n2",
    ]
    assert lines[4].endswith(": 0/2 nodes are available: 2 Insufficient cpu.")
    assert lines[5:7] == ["", "3 pending pods: 2 fit, 1 does not."]


def test_twice_in_one_source_is_an_error(tmp_path: Path) -> None:
    folder = tmp_path / "release"
    folder.mkdir()
    written(folder / "a.json", deployment(1))
    written(folder / "b.json", deployment(2))

    result = run("simulate", "-f", written(tmp_path / "cluster.json", *NODES), "-f", folder)

    assert result.exit_code == 2
    assert "Deployment default/web is in" in result.stderr
    assert "keep one of them" in result.stderr


ENV = [{"name": "MODE", "value": "fast"}]
SAME: dict[str, tuple[Fields, Fields]] = {
    "as it is": (deployment(1), deployment(1)),
    "with the number of replicas left out": (deployment(1), deployment(None)),
    "with another spelling of a quantity": (deployment(1), deployment(1, cpu="1000m")),
    "with what the API server fills in": (
        deployment(1, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}, minReadySeconds=0),
        deployment(1),
    ),
    "with what the API server fills in said later": (
        deployment(None),
        deployment(1, strategy={"type": "RollingUpdate", "rollingUpdate": {"maxSurge": "25%"}}, paused=False),
    ),
}


@pytest.mark.parametrize(("before", "after"), SAME.values(), ids=SAME)
def test_the_same_again_changes_nothing(tmp_path: Path, before: Fields, after: Fields) -> None:
    cluster = [before, *deployed("n1")[1:]]
    template = before["spec"]["template"]["spec"]
    template |= {"terminationGracePeriodSeconds": 30, "schedulerName": "default-scheduler", "dnsPolicy": "ClusterFirst"}

    found = applied(tmp_path, cluster, [after])

    assert found["changes"] == []
    assert found["pods"]["total"] == 0


def test_a_rollout_warns_of_what_it_assumes(tmp_path: Path) -> None:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    job = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "nightly"}}
    job["spec"] = {"schedule": "0 3 * * *", "jobTemplate": {"spec": {"template": template}}}
    files = written(tmp_path / "a.json", *NODES, *deployed("n1"), job), written(tmp_path / "b.json", deployment(2))

    at_once, stepwise = (run("simulate", "-f", files[0], "-f", files[1], *more) for more in ((), ("--rollout",)))

    assert at_once.stderr == stepwise.stderr
    assert at_once.stderr.startswith(
        "warning: CronJob default/nightly treated as if due now: the pods of one job added"
    )


def test_that_nothing_changes_is_said(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", *NODES, *deployed("n1"))
    other = workload("Deployment", "other", 1, pod={"containers": [{"name": "c", "image": "i"}]})

    again = run("simulate", "-f", cluster, "-f", written(tmp_path / "new.json", deployment(1)))
    more = run("simulate", "-f", cluster, "-f", written(tmp_path / "new.json", deployment(1), NODES[0], other))
    new = run("simulate", "-f", cluster, "-f", written(tmp_path / "new.json", other))

    assert again.stdout.startswith("No object changes: the later files repeat 1 object as it is.\n\n")
    assert more.stdout.startswith("No object changes: the later files repeat 2 objects as they are.\n\n1 pending pod: ")
    assert new.stdout.startswith("1 pending pod: it fits.\n")


def test_a_change_that_scheduling_does_not_read_replaces_pods_too(tmp_path: Path) -> None:
    release = deployment(1)
    release["spec"]["template"]["spec"]["containers"][0]["env"] = ENV

    (change,) = applied(tmp_path, deployed("n1"), [release])["changes"]

    assert change["fields"] == ["spec.template.spec.containers[c].env"]
    assert change["pods"] == {"replaced": 1, "added": 0, "removed": 0}


@pytest.mark.parametrize(("more", "changed"), [({}, 0), ({"restartPolicy": "Always"}, 1)], ids=["podium", "kubectl"])
def test_what_a_dump_leaves_out_is_no_change(tmp_path: Path, more: Fields, changed: int) -> None:
    """A dump of Podium has no environment variables, one of kubectl has all there is."""
    cluster = deployed("n1")
    cluster[0]["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    cluster[0]["spec"]["template"]["spec"] |= more
    release = deployment(1)
    release["spec"]["template"]["spec"]["containers"][0]["env"] = ENV

    assert len(applied(tmp_path, cluster, [release])["changes"]) == changed


def test_a_field_that_the_last_apply_set_is_gone(tmp_path: Path) -> None:
    cluster = deployed("n1")
    last = deployment(1)
    last["spec"]["template"]["spec"]["containers"][0]["env"] = ENV
    cluster[0]["spec"]["template"]["spec"]["containers"][0]["env"] = ENV
    note = {"kubectl.kubernetes.io/last-applied-configuration": json.dumps(last)}
    cluster[0]["metadata"]["annotations"] = note

    (change,) = applied(tmp_path, cluster, [deployment(1)])["changes"]

    assert change["fields"] == ["spec.template.spec.containers[c].env"]


def test_a_selector_cannot_be_changed(tmp_path: Path) -> None:
    release = deployment(1)
    release["spec"]["selector"] = {"matchLabels": {"tier": "front"}}
    release["spec"]["template"]["metadata"]["labels"] = {"tier": "front"}
    files = written(tmp_path / "a.json", *NODES, *deployed("n1")), written(tmp_path / "b.json", release)

    result = run("simulate", "-f", files[0], "-f", files[1])

    assert result.exit_code == 2
    assert "b.json: Deployment default/web: spec.selector" in result.stderr
    assert "cannot be changed, as the API server refuses it: delete the Deployment first" in result.stderr


def test_what_is_nested_too_deeply_is_one_line(tmp_path: Path) -> None:
    def nested(leaf: int) -> Fields:
        value: Any = leaf
        for _ in range(900):
            value = {"a": value}
        made = deployment(1)
        made["spec"]["template"]["spec"]["containers"][0]["env"] = value
        return made

    cluster, release = written(tmp_path / "a.json", *NODES, nested(1)), written(tmp_path / "b.json", nested(2))

    result = run("simulate", "--no-warn", "-f", cluster, "-f", release)

    assert result.exit_code == 2
    assert "b.json: Deployment default/web: is nested too deeply" in result.stderr


def test_what_belongs_to_the_cluster_stays(tmp_path: Path) -> None:
    """The node of a pod, and the volume of a claim."""
    claim = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "data", "namespace": "default", "uid": "claim"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    bound: Fields = copy.deepcopy(claim)
    bound["metadata"]["annotations"] = {"pv.kubernetes.io/bind-completed": "yes"}
    bound["spec"] |= {"volumeName": "v", "storageClassName": ""}
    volume = {
        "apiVersion": "v1",
        "kind": "PersistentVolume",
        "metadata": {"name": "v"},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "claimRef": {"namespace": "default", "name": "data", "uid": "claim"},
            "nodeAffinity": {
                "required": {
                    "nodeSelectorTerms": [
                        {"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]}
                    ]
                }
            },
        },
    }
    user = pod("user", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    running = pod("running", nodeName="n1", phase="Running")

    found = applied(tmp_path, [bound, volume, running], [claim, user, pod("running")])

    assert [(each["pod"], each["node"]) for each in found["placements"]] == [("default/user", "n2")]
    assert found["changes"] == []


def test_other_commands_see_the_pods_of_the_new_template(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", *NODES, *deployed("n1", "n1"))
    release = written(tmp_path / "new.json", deployment(2, cpu="3"))

    document = json.loads(run("capacity", "deploy/web", "-f", cluster, "-f", release, "-o", "json").stdout)

    # One of 3 cpu on each node; those of the old template are gone.
    assert document["pods"][0]["nodes"] == {"n1": 1, "n2": 1}


# -- which pods go first -------------------------------------------------------------------------------------------


VICTIMS: dict[str, tuple[list[Fields], str]] = {
    "one without a node": (
        [owned("ReplicaSet", "web-old", "a", "n1"), owned("ReplicaSet", "web-old", "b", None, "9")],
        "b",
    ),
    "one that is not ready": (
        [owned("ReplicaSet", "web-old", "a", "n1"), owned("ReplicaSet", "web-old", "b", "n2", conditions=NOT_READY)],
        "b",
    ),
    "one of a low deletion cost": (
        [
            owned("ReplicaSet", "web-old", "a", "n1", annotations={"controller.kubernetes.io/pod-deletion-cost": "-5"}),
            owned("ReplicaSet", "web-old", "b", "n2"),
        ],
        "a",
    ),
    "one of two on a node": (
        [
            owned("ReplicaSet", "web-old", "a", "n1"),
            owned("ReplicaSet", "web-old", "b", "n2"),
            owned("ReplicaSet", "web-old", "c", "n2"),
        ],
        "b",
    ),
}


@pytest.mark.parametrize("options", [(), ("--rollout",)], ids=["at once", "rolled out"])
@pytest.mark.parametrize(("pods", "victim"), VICTIMS.values(), ids=VICTIMS)
def test_a_deployment_that_shrinks_loses(tmp_path: Path, pods: list[Fields], victim: str, options: tuple[str]) -> None:
    cluster = [*deployed(*["n1"] * len(pods))[:2], *pods]

    (change,) = applied(tmp_path, cluster, [deployment(len(pods) - 1)], *options)["changes"]

    assert [each["pod"] for each in change["gone"]] == [f"default/{victim}"]
    assert change["pods"] == {"replaced": 0, "added": 0, "removed": 1}


# -- Deployments, step by step -------------------------------------------------------------------------------------


def rolling(surge: int | str, unavailable: int | str) -> Fields:
    return {"strategy": {"rollingUpdate": {"maxSurge": surge, "maxUnavailable": unavailable}}}


ROLLOUTS: dict[str, tuple[int, str, Fields, list[tuple[int, ...]]]] = {
    "a quarter at a time unless told otherwise": (
        4,
        "1",
        {},
        [(1, 2, 2, 0, 3, 2), (2, 2, 2, 0, 1, 4), (1, 0, 0, 0, 0, 4)],
    ),
    "what may be missing is rounded down, what may be more is rounded up": (
        3,
        "1",
        {},
        [(0, 1, 1, 0, 3, 1), (1, 1, 1, 0, 2, 2), (1, 1, 1, 0, 1, 3), (1, 0, 0, 0, 0, 3)],
    ),
    "one at a time in a full cluster": (
        8,
        "1",
        rolling(0, 1),
        [(1, 1, 1, 0, 8 - number, number) for number in range(1, 9)],
    ),
    "one at a time where percentages come to nothing": (
        2,
        "1",
        rolling(0, "1%"),
        [(1, 1, 1, 0, 1, 1), (1, 1, 1, 0, 0, 2)],
    ),
    "all at once": (4, "1", rolling("100%", 0), [(0, 4, 4, 0, 4, 4), (4, 0, 0, 0, 0, 4)]),
    "old ones first": (4, "2", {"strategy": {"type": "Recreate"}}, [(4, 4, 4, 0, 0, 4)]),
    "no room for one more": (4, "2", rolling(1, 0), [(0, 1, 0, 1, 4, 0)]),
}


@pytest.mark.parametrize(("replicas", "cpu", "strategy", "expected"), ROLLOUTS.values(), ids=ROLLOUTS)
def test_a_deployment_rolls_out(
    tmp_path: Path, replicas: int, cpu: str, strategy: Fields, expected: list[tuple[int, ...]]
) -> None:
    nodes = ["n1", "n2"] * replicas
    cluster = deployed(*nodes[:replicas], cpu=cpu, **strategy)
    release = [deployment(replicas, image="j", cpu=cpu, **strategy)]

    found = applied(tmp_path, cluster, release, "--rollout")

    assert steps_of(found) == expected
    done = expected[-1][-1] == replicas
    (change,) = found["changes"]
    assert (found["rollout"]["complete"], found["code"]) == (done, 0 if done else 1)
    assert (change["stuck"], change["steps"]) == (not done, len(expected))


def test_where_a_rollout_gets_stuck_and_why(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", *NODES, *deployed("n1", "n1", "n2", "n2"))
    release = written(tmp_path / "new.json", deployment(4, cpu="5", **rolling(1, 1)))

    result = run("simulate", "-f", cluster, "-f", release, "--rollout")

    assert result.exit_code == 1
    assert "default Deployment/web: 1 pod replaced and 1 pod added, 2 of them pending; stuck" in result.stdout
    assert "2 Insufficient cpu." in " ".join(result.stdout.split())
    assert "STEP  WORKLOAD" in result.stdout


def test_more_replicas_of_a_new_template_scale_the_old_one_first(tmp_path: Path) -> None:
    """The controller does so; pods of the old template that did not start yet are the first to go."""
    found = applied(tmp_path, deployed("n1", "n2"), [deployment(4, image="j")], "--rollout")

    assert found["rollout"]["steps"][0]["deleted"][0].startswith("default/web-old-")
    assert found["changes"][0]["pods"] == {"replaced": 2, "added": 2, "removed": 0}
    assert found["code"] == 0


MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
REVISION = "deployment.kubernetes.io/revision"


def in_the_middle(old: int, new: int, *, most: int | None = 13) -> list[Fields]:
    """A Deployment of 10 pods with 3 to spare, in the middle of a rollout to image j."""
    made, replica_set, *pods = deployed(*["n1"] * old, cpu="10m", **rolling(3, 2))
    _, newer, *_ = deployed(*["n2"] * new, cpu="10m")
    made["spec"]["replicas"] = 10
    for number, each in enumerate((replica_set, newer), 1):
        annotations = {REVISION: str(number)} | ({MAX_REPLICAS: str(most)} if most else {})
        each["metadata"] |= {"annotations": annotations, "creationTimestamp": f"2026-01-0{number}T00:00:00Z"}
    newer["metadata"] |= {"name": "web-new", "uid": "web-new"}
    newer["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = "new"
    for each in (made, newer):
        each["spec"]["template"]["spec"]["containers"][0]["image"] = "j"
    younger = [owned("ReplicaSet", "web-new", f"web-new-{number}", "n2", "10m") for number in range(new)]
    for each in younger:
        each["metadata"]["labels"] = {"app": "web", "pod-template-hash": "new"}
    return [made, replica_set, newer, *pods, *younger]


# What the Deployment controller makes of 10 replicas with a surge of 3: the sizes of the old and of the new ReplicaSet.
PROPORTIONS = [
    ("more", (8, 5), 13, 30, (20, 13)),
    ("more, with what is left for the largest", (7, 6), 13, 11, (8, 6)),
    ("fewer", (8, 5), 13, 5, (5, 3)),
    ("none", (8, 5), 13, 0, (0, 0)),
    ("of the same size, the newest grows first", (5, 5), 13, 11, (5, 9)),
    ("without the annotation", (8, 5), None, 30, (20, 13)),
    ("the same", (8, 5), 13, 10, (8, 5)),
]


@pytest.mark.parametrize(("case", "sizes", "most", "replicas", "expected"), PROPORTIONS)
def test_in_the_middle_of_a_rollout_it_scales_in_proportion(
    tmp_path: Path, case: str, sizes: tuple[int, int], most: int | None, replicas: int, expected: tuple[int, int]
) -> None:
    cluster = in_the_middle(*sizes, most=most)
    release = copy.deepcopy(cluster[0])
    release["spec"]["replicas"] = replicas

    found = applied(tmp_path, cluster, [release])

    gone = [each["pod"] for change in found["changes"] for each in change["gone"]]
    new = [each["pod"] for change in found["changes"] for each in change["new"]]
    for name, before, after in zip(("web-old", "web-new"), sizes, expected, strict=True):
        difference = sum(name in pod for pod in new) - sum(name in pod for pod in gone)
        assert before + difference == after, (name, gone, new)


def test_a_rollout_that_is_scaled_ends_with_the_new_template(tmp_path: Path) -> None:
    cluster = in_the_middle(8, 5)
    release = copy.deepcopy(cluster[0])
    release["spec"]["replicas"] = 20

    found = applied(tmp_path, cluster, [release], "--rollout")

    first, last = steps_of(found)[0], steps_of(found)[-1]
    assert first[1] == 20 + 3 - 13
    assert last[-2:] == (0, 20)


def test_a_paused_deployment_keeps_its_template(tmp_path: Path) -> None:
    for options in ((), ("--rollout",)):
        found = applied(tmp_path, deployed("n1"), [deployment(1, image="j", paused=True)], *options)

        assert found["changes"][0]["pods"] == {"replaced": 0, "added": 0, "removed": 0}
        assert found["code"] == 0


def test_going_back_to_a_template_uses_its_replica_set(tmp_path: Path) -> None:
    cluster = deployed("n1")
    former = copy.deepcopy(cluster[1])
    former["metadata"] |= {"name": "web-former", "uid": "web-former"}
    former["spec"]["replicas"] = 0
    former["spec"]["template"]["spec"]["containers"][0]["image"] = "j"

    (change,) = applied(tmp_path, [*cluster, former], [deployment(1, image="j")], "--rollout")["changes"]

    assert [each["pod"] for each in change["new"]] == ["default/web-former-0"]


# -- StatefulSets --------------------------------------------------------------------------------------------------


def deleted(document: Fields) -> list[list[str]]:
    return [[key.removeprefix("default/") for key in step["deleted"]] for step in document["rollout"]["steps"]]


PARTITION: Fields = {"updateStrategy": {"rollingUpdate": {"partition": 2}}}
TWO: Fields = {"updateStrategy": {"rollingUpdate": {"maxUnavailable": 2}}}
ORDERS: dict[str, tuple[Fields, tuple[str, ...], list[list[str]]]] = {
    "the highest first": (stateful_set(image="j"), (), [["db-2"], ["db-1"], ["db-0"]]),
    "down to the partition": (stateful_set(image="j", **PARTITION), (), [["db-2"]]),
    "two at a time": (stateful_set(image="j", policy="Parallel", **TWO), (), [["db-2", "db-1"], ["db-0"]]),
    "one at a time before v1.37": (
        stateful_set(image="j", policy="Parallel", **TWO),
        ("--release", "v1.36"),
        [["db-2"], ["db-1"], ["db-0"]],
    ),
    "none unless somebody deletes them": (stateful_set(image="j", updateStrategy={"type": "OnDelete"}), (), []),
    "those beyond the number, the highest first": (stateful_set(1), (), [["db-2", "db-1"]]),
}


@pytest.mark.parametrize(("release", "options", "expected"), ORDERS.values(), ids=ORDERS)
def test_a_stateful_set_replaces_pods(
    tmp_path: Path, release: Fields, options: tuple[str, ...], expected: list[list[str]]
) -> None:
    before = stateful_set(policy=release["spec"]["podManagementPolicy"])

    found = applied(tmp_path, [before, *numbered("n1", "n1", "n2")], [release], "--rollout", *options)
    at_once = applied(tmp_path, [before, *numbered("n1", "n1", "n2")], [release], *options)

    assert deleted(found) == expected
    assert (found["code"], at_once["code"]) == (0, 0)
    assert at_once["changes"][0]["note"] == found["changes"][0]["note"]
    gone = {each["pod"] for each in at_once["changes"][0]["gone"]}
    assert gone == {f"default/{name}" for names in expected for name in names}


def test_why_pods_of_the_old_template_stay_is_said(tmp_path: Path) -> None:
    cluster = [stateful_set(), *numbered("n1", "n1", "n2")]

    (change,) = applied(tmp_path, cluster, [stateful_set(image="j", **PARTITION)])["changes"]

    assert change["note"] == "the partition keeps 2 pods of the old template"


@pytest.mark.parametrize(("policy", "made"), [("OrderedReady", [1, 1]), ("Parallel", [2])])
def test_a_stateful_set_grows_one_by_one_or_in_parallel(tmp_path: Path, policy: str, made: list[int]) -> None:
    cluster = [stateful_set(1, policy=policy), *numbered("n1")]

    found = applied(tmp_path, cluster, [stateful_set(3, policy=policy)], "--rollout")

    assert [len(step["created"]) for step in found["rollout"]["steps"]] == made


def test_a_stateful_set_waits_for_a_pod_that_fits_nowhere(tmp_path: Path) -> None:
    cluster = [stateful_set(), *numbered("n1", "n1", "n2")]

    found = applied(tmp_path, cluster, [stateful_set(cpu="5")], "--rollout")

    assert deleted(found) == [["db-2"]]
    (change,) = found["changes"]
    assert (change["stuck"], change["steps"], found["code"]) == (True, 1, 1)
    assert [each["pod"] for each in change["new"] if each["node"] is None] == ["default/db-2"]


# -- DaemonSets ----------------------------------------------------------------------------------------------------


DAEMONS = [owned("DaemonSet", "agent", f"agent-{on}x", on) for on in ("n1", "n2")]
DAEMON_ROLLOUTS: dict[str, tuple[Fields, list[tuple[int, ...]]]] = {
    "one node at a time": (daemon_set("j"), [(1, 1, 1, 0, 1, 1), (1, 1, 1, 0, 0, 2)]),
    "half of the nodes, rounded up": (daemon_set("j", maxUnavailable="51%"), [(2, 2, 2, 0, 0, 2)]),
    "new beside old": (
        daemon_set("j", maxSurge=1, maxUnavailable=0),
        [(0, 1, 1, 0, 2, 1), (1, 1, 1, 0, 1, 2), (1, 0, 0, 0, 0, 2)],
    ),
    "stuck where there is no room": (daemon_set("j", cpu="5"), [(1, 1, 0, 1, 1, 0)]),
}


@pytest.mark.parametrize(("release", "expected"), DAEMON_ROLLOUTS.values(), ids=DAEMON_ROLLOUTS)
def test_a_daemon_set_rolls_out(tmp_path: Path, release: Fields, expected: list[tuple[int, ...]]) -> None:
    found = applied(tmp_path, [daemon_set(), *DAEMONS], [release], "--rollout")

    assert steps_of(found) == expected
    assert found["rollout"]["complete"] == (expected[-1][-1] == 2)


def test_a_daemon_set_leaves_the_nodes_it_is_no_longer_meant_for(tmp_path: Path) -> None:
    release = daemon_set()
    fields = [{"key": "metadata.name", "operator": "In", "values": ["n2"]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [{"matchFields": fields}]}}
    release["spec"]["template"]["spec"]["affinity"] = {"nodeAffinity": required}
    for options in ((), ("--rollout",)):
        (change,) = applied(tmp_path, [daemon_set(), *DAEMONS], [release], *options)["changes"]

        assert change["pods"] == {"replaced": 1, "added": 0, "removed": 1}


# -- autoscalers ---------------------------------------------------------------------------------------------------


AUTOSCALER = {
    "apiVersion": "autoscaling/v2",
    "kind": "HorizontalPodAutoscaler",
    "metadata": {"name": "web", "namespace": "default"},
    "spec": {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
        "minReplicas": 1,
        "maxReplicas": 10,
        "metrics": [],
    },
}


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ((), None),
        (("--hpa", "max"), {"replaced": 0, "added": 7, "removed": 0}),
        (("--hpa", "min"), {"replaced": 0, "added": 0, "removed": 2}),
    ],
    ids=["as it is", "at most", "at least"],
)
@pytest.mark.parametrize("rollout", [(), ("--rollout",)], ids=["at once", "rolled out"])
def test_autoscalers_scale(
    tmp_path: Path, bound: tuple[str, ...], expected: Fields | None, rollout: tuple[str, ...]
) -> None:
    cluster = written(tmp_path / "cluster.json", *NODES, *deployed("n1", "n1", "n2"), AUTOSCALER)

    result = run("simulate", "-f", cluster, *bound, *rollout, "-o", "json")

    document = json.loads(result.stdout)
    assert [change["pods"] for change in document["changes"]] == ([expected] if expected else [])
    # 8 cpu, 3 of them in use.
    assert document["pods"]["pending"] == (2 if bound == ("--hpa", "max") else 0)


def test_an_autoscaler_whose_target_is_not_there_is_said(tmp_path: Path) -> None:
    target = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "wbe"}
    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"maxReplicas": 9, "scaleTargetRef": target},
    }
    cluster = written(tmp_path / "cluster.json", *NODES, pod("web"), autoscaler)

    result = run("simulate", "-f", cluster, "--hpa", "max")

    assert result.exit_code == 0
    assert "--hpa max: HorizontalPodAutoscaler shop/web: its target Deployment/wbe is not in the input" in result.stderr


def test_nothing_to_scale_or_roll_out_is_said(tmp_path: Path) -> None:
    cluster = written(tmp_path / "cluster.json", *NODES, pod("web"))

    result = run("simulate", "-f", cluster, "--hpa", "max", "--rollout")

    assert result.exit_code == 0
    assert "no HorizontalPodAutoscaler in the input" in result.stderr
    assert "nothing to roll out" in result.stderr
