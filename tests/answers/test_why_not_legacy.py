"""What keeps a pod off a node of an old release, and what would turn it: in that release's words, and tried there."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from builders import HOSTNAME, affinity, expression, make_node, make_pod, node_affinity, pod_term
from cli.running import node as node_document
from cli.running import pod as pod_document
from cli.running import run, written
from podium.answers import WhyNot, why_not
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import Node, Object, Pod
from podium.recorded import prepare, read_records
from releases.releasing import argument, policy

GOLDEN = Path(__file__).parents[1] / "golden" / "legacy"
OLD = ("v1.8", "v1.14", "v1.18")


def node(name: str, labels: dict[str, str] | None = None, **fields: Any) -> Node:
    return make_node(name, labels={HOSTNAME: name, **(labels or {})}, **fields)


def asked(release: str, objects: list[Object], pod: Pod, config: Any = None) -> WhyNot:
    return why_not(Cluster.from_objects(objects), pod, "a1", config, release=release, most=20)


def texts(answer: WhyNot) -> set[str]:
    return {suggestion.text for suggestion in answer.suggestions}


HOST_PORT = [{"containerPort": 80, "hostPort": 80}]
CASES: dict[str, tuple[list[Object], Pod, set[str]]] = {
    "too little cpu": (
        [node("a1"), make_pod("batch-7", node="a1", requests={"cpu": "3700m"})],
        make_pod(requests={"cpu": "600m"}),
        {
            "free 300m cpu on a1",
            "evict default/batch-7 (priority 0)",
            "lower the pod's cpu request from 600m to 300m",
        },
    ),
    "a node selector": (
        [node("a1")],
        make_pod(node_selector={"disk": "ssd"}),
        {"label a1 disk=ssd", "drop disk=ssd from the pod's nodeSelector"},
    ),
    "a host port": (
        [node("a1"), make_pod("web", node="a1", ports=HOST_PORT)],
        make_pod(ports=HOST_PORT),
        {"evict default/web (priority 0)", "drop the pod's host port 80"},
    ),
    "a taint": (
        [node("a1", taints=["team=a:NoSchedule"])],
        make_pod(),
        {"remove the taint team=a:NoSchedule from a1", "let the pod tolerate the taint team=a:NoSchedule"},
    ),
    "a cordon": ([node("a1", unschedulable=True)], make_pod(), {"uncordon a1"}),
    "its own anti-affinity": (
        [node("a1"), make_pod("web", node="a1", labels={"app": "web"})],
        make_pod(affinity=affinity(required=[pod_term(HOSTNAME, {"app": "web"})], anti=True)),
        {
            "evict default/web (priority 0)",
            f"drop the pod's required anti-affinity against pods with app=web by {HOSTNAME}",
        },
    ),
    "anti-affinity of another": (
        [
            node("a1"),
            make_pod("shy", node="a1", affinity=affinity(required=[pod_term(HOSTNAME, {"a": "b"})], anti=True)),
        ],
        make_pod(labels={"a": "b"}),
        {"evict default/shy (priority 0)", "drop the required anti-affinity of default/shy"},
    ),
}


@pytest.mark.parametrize("release", OLD)
@pytest.mark.parametrize(("objects", "pod", "expected"), CASES.values(), ids=CASES)
def test_what_lets_a_node_pass(release: str, objects: list[Object], pod: Pod, expected: set[str]) -> None:
    answer = asked(release, objects, pod)

    assert answer.blockers
    assert expected <= texts(answer)


def test_blockers_are_one_predicate_each_even_where_the_release_collects_all_reasons() -> None:
    objects: list[Object] = [node("a1", cpu="1", taints=["team=a:NoSchedule"])]

    answer = asked("v1.8", objects, make_pod(requests={"cpu": "2"}))

    assert [(status.plugin, status.reasons) for status in answer.blockers] == [
        ("GeneralPredicates", ("Insufficient cpu",)),
        ("PodToleratesNodeTaints", ("PodToleratesNodeTaints",)),
    ]
    # What was decided says it as the release does.
    assert answer.decision.rejected["a1"].plugin == "GeneralPredicates, PodToleratesNodeTaints"


def test_v1_8_counts_a_port_of_another_protocol() -> None:
    udp = [{**HOST_PORT[0], "protocol": "UDP"}]
    objects: list[Object] = [node("a1"), make_pod("dns", node="a1", ports=udp)]

    assert "evict default/dns (priority 0)" in texts(asked("v1.8", objects, make_pod(ports=HOST_PORT)))
    assert asked("v1.14", objects, make_pod(ports=HOST_PORT)).goes_there


@pytest.mark.parametrize(
    ("presence", "labels", "said"),
    [(True, {}, "label a1 rack=true"), (False, {"rack": "1"}, "remove the label rack from a1")],
)
@pytest.mark.parametrize("release", ["v1.8", "v1.18"])
def test_labels_that_a_policy_asks_for(release: str, presence: bool, labels: dict[str, str], said: str) -> None:
    document = policy([argument("Racked", "labelsPresence", labels=["rack"], presence=presence)])

    assert texts(asked(release, [node("a1", labels)], make_pod(), document)) == {said}


@pytest.mark.parametrize(
    ("release", "name"),
    [("v1.8", "NodeAffinityPriority"), ("v1.14", "NodeAffinityPriority"), ("v1.18", "NodeAffinity")],
)
def test_a_weight_under_the_releases_name(release: str, name: str) -> None:
    """The pod prefers a1, which has less left: with more weight the preference wins."""
    preferring = node_affinity(preferred=[(1, {"matchExpressions": [expression("disk", "In", "ssd")]})])
    used = [make_pod(f"used{place}", node="a1", requests={"cpu": "2", "memory": "4Gi"}) for place in range(3)]
    objects: list[Object] = [node("a1", {"disk": "ssd"}, cpu="8", memory="16Gi"), node("b1", cpu="8", memory="16Gi")]
    document = policy(["GeneralPredicates"], ["NodeAffinityPriority", {"name": "LeastRequestedPriority", "weight": 9}])

    answer = asked(release, [*objects, *used], make_pod(affinity=preferring), document)

    (raised,) = [text for text in texts(answer) if text.startswith(f"raise {name}'s weight from 1 to ")]
    assert int(raised.rpartition(" ")[2]) > 1


# -- on recorded cases -------------------------------------------------------------------------------------------------

EACH = 14


@pytest.mark.parametrize("family", ["v1.8-default", "v1.8-policy", "v1.14-default", "v1.14-policy", "v1.18-config"])
def test_every_suggestion_turns_the_decision(family: str) -> None:
    release, chance = family.split("-")[0], random.Random(family)
    turned = 0
    for record in list(read_records(str(GOLDEN / f"{family}.jsonl.gz")))[:EACH]:
        if record.expect and record.expect.get("error"):
            continue
        scheduler, pods = prepare(record.case, release=release)
        pod, on = chance.choice(pods), chance.choice(sorted(scheduler.cluster.rows))
        answer = why_not(scheduler.cluster, pod, on, scheduler.config, release=release, most=2)
        for suggestion in answer.suggestions:
            cluster, changed, config = suggestion.apply(scheduler.cluster, pod, scheduler.config, release=release)
            decision = Scheduler(cluster, config, release=release, seed=chance.randrange(1000)).decide(changed)
            assert decision.node == on, f"{record.case.name}: {pod.key} on {on}: {suggestion.text}"
            turned += 1
    assert turned >= EACH // 2


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", OLD)
def test_the_command(release: str, tmp_path: Path) -> None:
    cluster = written(
        tmp_path / "c.json", node_document("n1", taints=[{"key": "a", "effect": "NoSchedule"}]), pod_document()
    )

    result = run("why-not", "web", "n1", "-f", cluster, "--release", release)

    assert (result.exit_code, result.stderr) == (1, "")
    assert "remove the taint a:NoSchedule from n1" in result.stdout
