"""What `explain` names as in the way, plugin by plugin."""

from __future__ import annotations

from typing import Any

import pytest

from builders import affinity, expression, make_node, make_pod, node_affinity, pod_term, spread, with_args
from podium.answers.explanation import Explained, explain_pod
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine.decision import Eviction
from podium.framework.obstacle import Obstacle
from podium.model import Object, Pod
from podium.present.explanation import summarized

ZONE, HOSTNAME = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def explained(pod: Pod, *objects: Object, config: Any = None, **options: Any) -> Explained:
    return explain_pod(Scheduler(Cluster.from_objects([*objects, pod]), config, tie_break="first", **options), pod)


def in_zone(zone: str, **fields: Any) -> Any:
    return make_node(f"n-{zone}", labels={ZONE: zone, HOSTNAME: f"n-{zone}"}, **fields)


WEB = {"app": "web"}
RUNNING = make_pod("web-0", node="n-a", labels=WEB, requests={"cpu": "3"}, ports=[{"containerPort": 1, "hostPort": 80}])

CASES: dict[str, tuple[Pod, list[Object], Obstacle]] = {
    "a taint": (
        make_pod(),
        [in_zone("a", taints=["team=shop:NoSchedule"])],
        Obstacle("taint", "untolerated taint team=shop:NoSchedule", {"taint": "team=shop:NoSchedule"}),
    ),
    "the first taint that it does not tolerate": (
        make_pod(tolerations=[{"key": "one", "operator": "Exists"}]),
        [in_zone("a", taints=["one:NoSchedule", "soft:PreferNoSchedule", "two:NoExecute"])],
        Obstacle("taint", "untolerated taint two:NoExecute", {"taint": "two:NoExecute"}),
    ),
    "a cordon": (
        make_pod(),
        [in_zone("a", unschedulable=True)],
        Obstacle("cordon", "the node is cordoned (spec.unschedulable)", {"field": "spec.unschedulable"}),
    ),
    "a label that is not there": (
        make_pod(node_selector={"disk": "ssd"}),
        [in_zone("a")],
        Obstacle(
            "label",
            "nodeSelector wants disk=ssd, node has no label disk",
            {"label": "disk", "wants": "In ssd", "has": None},
        ),
    ),
    "a label with another value": (
        make_pod(affinity=node_affinity(required=[{"matchExpressions": [expression(ZONE, "NotIn", "b", "a")]}])),
        [in_zone("a")],
        Obstacle(
            "label",
            f"required node affinity wants {ZONE} NotIn a,b, node has {ZONE}=a",
            {"label": ZONE, "wants": "NotIn a,b", "has": "a"},
        ),
    ),
    "the closest of several terms": (
        make_pod(
            affinity=node_affinity(
                required=[
                    {"matchExpressions": [expression("gpu", "Exists"), expression("disk", "Exists")]},
                    {"matchExpressions": [expression("gpu", "Exists"), expression(ZONE, "Exists")]},
                ]
            )
        ),
        [in_zone("a")],
        Obstacle(
            "label",
            "required node affinity wants gpu Exists, node has no label gpu (the closest of 2 terms)",
            {"label": "gpu", "wants": "Exists", "has": None},
        ),
    ),
    "a port": (
        make_pod(ports=[{"containerPort": 1, "hostPort": 80}]),
        [in_zone("a"), RUNNING],
        Obstacle(
            "port",
            "host port 80/TCP is taken by pod default/web-0",
            {"port": 80, "protocol": "TCP", "hostIP": "0.0.0.0", "pod": "default/web-0"},
        ),
    ),
    "a resource that is in use": (
        make_pod(requests={"cpu": "2500m"}),
        [in_zone("a"), RUNNING],
        Obstacle(
            "resource",
            "1500m cpu missing (2500m asked for, 1 of 4 free)",
            {"resource": "cpu", "missing": "1500m", "requests": "2500m", "free": "1", "allocatable": "4"},
            missing=1500,
        ),
    ),
    "a resource that the node is too small for": (
        make_pod(requests={"memory": "64Gi"}),
        [in_zone("a")],
        Obstacle(
            "resource",
            "64Gi memory asked for, and the whole node has 8Gi",
            {"resource": "memory", "missing": "56Gi", "requests": "64Gi", "free": "8Gi", "allocatable": "8Gi"},
            missing=56 << 30,
        ),
    ),
    "a resource that the node has no whole mebibytes of": (
        make_pod(requests={"memory": "6Gi"}),
        [in_zone("a", memory="7340001Ki"), make_pod("web-0", node="n-a", requests={"memory": "1500001Ki"})],
        Obstacle(
            "resource",
            "441Mi memory missing (6Gi asked for, 5703Mi of 7167Mi free)",
            {
                "resource": "memory",
                "missing": "451456Ki",
                "requests": "6Gi",
                "free": "5840000Ki",
                "allocatable": "7340001Ki",
            },
            missing=451456 << 10,
        ),
    ),
    "many of a resource that is no bytes": (
        make_pod(requests={"example.com/gpu": "3072"}),
        [in_zone("a", gpu=2048)],
        Obstacle(
            "resource",
            "3072 example.com/gpu asked for, and the whole node has 2048",
            {
                "resource": "example.com/gpu",
                "missing": "1024",
                "requests": "3072",
                "free": "2048",
                "allocatable": "2048",
            },
            missing=1024,
        ),
    ),
    "too many pods": (
        make_pod(),
        [in_zone("a", pods=1), RUNNING],
        Obstacle(
            "resource",
            "1 pod runs there, and 1 may",
            {"resource": "pods", "missing": "1", "requests": "1", "free": "0", "allocatable": "1"},
            missing=1,
        ),
    ),
    "a skew": (
        make_pod(labels=WEB, topology_spread_constraints=[spread(ZONE, WEB)]),
        [in_zone("a"), in_zone("b", unschedulable=True), RUNNING],
        Obstacle(
            "topology",
            f"{ZONE}=a has 1 such pod, the emptiest domain 0: the skew would be 2, and maxSkew is 1",
            {"topologyKey": ZONE, "domain": "a", "pods": 1, "fewest": 0, "skew": 2, "maxSkew": 1},
            missing=2,
        ),
    ),
    "a topology label that is not there": (
        make_pod(labels=WEB, topology_spread_constraints=[spread("rack", WEB)]),
        [in_zone("a")],
        Obstacle("topology", "the node has no label rack, by which the pod is spread", {"topologyKey": "rack"}),
    ),
    "a pod to be near": (
        make_pod(affinity=affinity(required=[pod_term(ZONE, {"app": "db"})])),
        [in_zone("a"), RUNNING],
        Obstacle(
            "affinity",
            f"no pod that the pod's affinity wants runs in {ZONE}=a",
            {"topologyKey": ZONE, "domain": "a"},
        ),
    ),
    "two terms that no pod meets together": (
        make_pod(affinity=affinity(required=[pod_term(ZONE, WEB), pod_term(HOSTNAME, {"app": "db"})])),
        [in_zone("a"), RUNNING, make_pod("db", node="n-a", labels={"app": "db"})],
        Obstacle(
            "affinity",
            f"no pod that the pod's affinity wants runs in {ZONE}=a",
            {"topologyKey": ZONE, "domain": "a"},
        ),
    ),
    "a pod to be away from": (
        make_pod(affinity=affinity(required=[pod_term(HOSTNAME, WEB)], anti=True)),
        [in_zone("a"), RUNNING],
        Obstacle(
            "anti-affinity",
            "the pod's anti-affinity keeps it away from pod default/web-0 on the node",
            {"topologyKey": HOSTNAME, "domain": "n-a", "pod": "default/web-0"},
        ),
    ),
    "a pod that keeps others away": (
        make_pod(labels=WEB),
        [in_zone("a"), make_pod("shy", node="n-a", affinity=affinity(required=[pod_term(ZONE, WEB)], anti=True))],
        Obstacle(
            "anti-affinity",
            f"the anti-affinity of pod default/shy in {ZONE}=a keeps the pod away",
            {"topologyKey": ZONE, "domain": "a", "pod": "default/shy"},
        ),
    ),
}


@pytest.mark.parametrize(("pod", "objects", "expected"), CASES.values(), ids=CASES)
def test_names_what_is_in_the_way(pod: Pod, objects: list[Object], expected: Obstacle) -> None:
    assert explained(pod, *objects).obstacles["n-a"][0] == expected


OLD = ["a taint", "a cordon", "a label that is not there", "a port", "a resource that is in use"]


@pytest.mark.parametrize("release", ["v1.8", "v1.14", "v1.18"])
@pytest.mark.parametrize("case", OLD)
def test_old_releases_name_it_too(case: str, release: str) -> None:
    pod, objects, expected = CASES[case]
    found = explained(pod, *objects, release=release).obstacles["n-a"]
    assert expected in found


def test_an_ignored_resource_is_not_in_the_way() -> None:
    pod = make_pod(requests={"example.com/tpu": 1, "cpu": "9"})
    config = with_args("NodeResourcesFit", ignoredResources=["example.com/tpu"])
    (found,) = explained(pod, in_zone("a"), config=config).obstacles["n-a"]
    assert found.facts["resource"] == "cpu"


def lacking(amount: int) -> tuple[Obstacle, ...]:
    return (Obstacle("resource", f"{amount} cpu missing", missing=amount),)


SUMMARIES: dict[str, tuple[dict[str, tuple[Obstacle, ...]], list[str]]] = {
    "nothing": ({}, []),
    "the same on all": (dict.fromkeys("abcde", lacking(1)), ["1 cpu missing"]),
    "a few": (
        {"a": lacking(2), "b": lacking(1), "c": lacking(1), "d": lacking(1), "e": lacking(3)},
        ["3 nodes: 1 cpu missing", "a: 2 cpu missing", "e: 3 cpu missing"],
    ),
    "many amounts": (
        {node: lacking(amount) for node, amount in zip("abcde", (5, 4, 2, 8, 9), strict=True)},
        ["closest is c: 2 cpu missing"],
    ),
    "many things": (
        {node: (Obstacle("taint", f"untolerated taint {node}"),) for node in "abcde"},
        [
            "a: untolerated taint a",
            "b: untolerated taint b",
            "c: untolerated taint c",
            "and other things on 2 nodes",
        ],
    ),
}


@pytest.mark.parametrize(("obstacles", "sentences"), SUMMARIES.values(), ids=SUMMARIES)
def test_several_nodes_in_few_words(obstacles: dict[str, tuple[Obstacle, ...]], sentences: list[str]) -> None:
    assert summarized("abcde", obstacles) == sentences


LOW, EQUAL = make_pod("low", node="n-a", requests={"cpu": "3"}, priority=-1), RUNNING
NEVER = {"preemption_policy": "Never"}


@pytest.mark.parametrize(
    ("running", "spec", "release", "expected"),
    [
        (LOW, {}, "v1.37", Eviction(("n-a",), 0)),
        (EQUAL, {}, "v1.37", Eviction((), 1)),
        (LOW, NEVER, "v1.37", Eviction((), 1, "its preemptionPolicy is Never")),
        (LOW, {}, "v1.14", None),
    ],
    ids=["a lower priority", "the same priority", "never", "an old release"],
)
def test_evicting_is_said_to_help_where_it_could(
    running: Pod, spec: dict[str, Any], release: str, expected: Eviction | None
) -> None:
    wanted = make_pod(requests={"cpu": "2"}, priority=0, **spec)
    assert explained(wanted, in_zone("a"), running, release=release).decision.eviction == expected
