"""What keeps a pod off a node, and what would turn it: every suggestion, made real, does."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from builders import affinity, expression, make_config, make_node, make_pod, node_affinity, pod_term, spread, with_args
from podium.answers import WhyNot, why_not
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import InputError
from podium.model import Node, Object, Pod
from podium.model.objects import HOSTNAME, ZONE
from podium.recorded import prepare, read_records
from storage_objects import make_claim, make_volume, on_label, pod_with, uses

GOLDEN = Path(__file__).parents[1] / "golden"
WEB = {"app": "web"}


def node(name: str, labels: dict[str, str] | None = None, **fields: Any) -> Node:
    """A node in the zone that its first letter names."""
    return make_node(name, labels={ZONE: name[0], HOSTNAME: name, **(labels or {})}, **fields)


def asked(objects: list[Object], pod: Pod, on: str = "a1", config: Any = None, most: int = 20) -> WhyNot:
    return why_not(Cluster.from_objects(objects), pod, on, config, most=most)


def texts(answer: WhyNot) -> list[str]:
    return [suggestion.text for suggestion in answer.suggestions]


FULL = make_pod("batch-7", node="a1", requests={"cpu": "3700m"})
PREFERRING: dict[str, Any] = {
    "affinity": node_affinity(preferred=[(1, {"matchExpressions": [expression("disk", "In", "ssd")]})])
}

CASES: dict[str, tuple[list[Object], Pod, set[str]]] = {
    "too little cpu": (
        [node("a1"), FULL],
        make_pod(requests={"cpu": "600m"}),
        {
            "free 300m cpu on a1",
            "evict default/batch-7 (priority 0)",
            "lower the pod's cpu request from 600m to 300m",
        },
    ),
    "too little of two resources": (
        [node("a1"), make_pod("batch-7", node="a1", requests={"cpu": "3", "memory": "7Gi"})],
        make_pod(requests={"cpu": "2", "memory": "2Gi"}),
        {
            "free 1 cpu and 1Gi memory on a1",
            "evict default/batch-7 (priority 0)",
            "lower the pod's cpu request from 2 to 1 and lower the pod's memory request from 2Gi to 1Gi",
        },
    ),
    "more than the node has": (
        [node("a1")],
        make_pod(requests={"cpu": "5", "example.com/gpu": "1"}),
        {"lower the pod's cpu request from 5 to 4 and drop the pod's example.com/gpu request"},
    ),
    "room for no more pods": (
        [node("a1", pods=1), make_pod("batch-7", node="a1", priority=5)],
        make_pod(),
        {"evict default/batch-7 (priority 5)"},
    ),
    "as few evictions as are enough, the least important first": (
        [
            node("a1"),
            make_pod("important", node="a1", requests={"cpu": "2"}, priority=100),
            make_pod("low", node="a1", requests={"cpu": "1"}),
            make_pod("tiny", node="a1", requests={"cpu": "1"}, priority=-1),
        ],
        make_pod(requests={"cpu": "2"}),
        {
            "evict default/important (priority 100)",
            "free 2 cpu on a1",
        },
    ),
    "a taint": (
        [node("a1", taints=["team=blue:NoSchedule"])],
        make_pod(),
        {"remove the taint team=blue:NoSchedule from a1", "let the pod tolerate the taint team=blue:NoSchedule"},
    ),
    "a cordoned node": (
        [node("a1", unschedulable=True, taints=["node.kubernetes.io/unschedulable=:NoSchedule"])],
        make_pod(),
        {"uncordon a1", "let the pod tolerate the taint node.kubernetes.io/unschedulable:NoSchedule"},
    ),
    "a node selector": (
        [node("a1", {"disktype": "hdd"})],
        make_pod(node_selector={"disktype": "ssd"}),
        {"label a1 disktype=ssd", "drop disktype=ssd from the pod's nodeSelector"},
    ),
    "required node affinity": (
        [node("a1", {"cores": "4", "old": "yes"})],
        make_pod(
            affinity=node_affinity(
                required=[{"matchExpressions": [expression("cores", "Gt", "8"), expression("old", "DoesNotExist")]}]
            )
        ),
        {
            "label a1 cores=9 and remove the label old from a1",
            "drop the pod's required node affinity",
            "drop cores Gt 8 from the pod's required node affinity, and remove the label old from a1",
            "drop old DoesNotExist from the pod's required node affinity, and label a1 cores=9",
        },
    ),
    "another node by name": (
        [node("a1"), node("b1")],
        make_pod(affinity=node_affinity(required=[{"matchFields": [expression("metadata.name", "In", "b1")]}])),
        {"drop the pod's required node affinity, and pin the pod: nodeSelector kubernetes.io/hostname=a1"},
    ),
    "a host port": (
        [node("a1"), make_pod("proxy", node="a1", ports=[{"containerPort": 80, "hostPort": 80}])],
        make_pod(ports=[{"containerPort": 80, "hostPort": 80}]),
        {"evict default/proxy (priority 0)", "drop the pod's host port 80"},
    ),
    "its own anti-affinity": (
        [node("a1"), make_pod("web-1", node="a1", labels=WEB)],
        make_pod(affinity=affinity(required=[pod_term(HOSTNAME, WEB)], anti=True)),
        {
            "evict default/web-1 (priority 0)",
            f"drop the pod's required anti-affinity against pods with app=web by {HOSTNAME}",
        },
    ),
    "the anti-affinity of another": (
        [
            node("a1"),
            make_pod("loner", node="a1", affinity=affinity(required=[pod_term(HOSTNAME, WEB)], anti=True)),
        ],
        make_pod(labels=WEB),
        {"evict default/loner (priority 0)", "drop the required anti-affinity of default/loner"},
    ),
    "affinity to pods elsewhere": (
        [node("a1"), node("b1", cpu="1"), make_pod("web-1", node="b1", labels=WEB, requests={"cpu": "1"})],
        make_pod(requests={"cpu": "1"}, affinity=affinity(required=[pod_term(ZONE, WEB)])),
        {f"drop the pod's required affinity to pods with app=web by {ZONE}"},
    ),
    "a crowded zone": (
        [
            node("a1"),
            node("b1", cpu="1"),
            make_pod("filler", node="b1", requests={"cpu": "1"}),
            make_pod("web-1", node="a1", labels=WEB),
            make_pod("web-2", node="a1", labels=WEB, priority=7),
        ],
        make_pod(labels=WEB, requests={"cpu": "1"}, topology_spread_constraints=[spread(ZONE, WEB)]),
        {
            f"relax maxSkew by {ZONE} from 1 to 3",
            f"make the spread constraint by {ZONE} ScheduleAnyway",
            "evict default/web-1 (priority 0) and default/web-2 (priority 7)",
        },
    ),
    "a label that spreading needs": (
        [node("a1"), node("b1", {"rack": "r1"}, unschedulable=True)],
        make_pod(labels=WEB, topology_spread_constraints=[spread("rack", WEB)]),
        {"label a1 rack=r1", "make the spread constraint by rack ScheduleAnyway"},
    ),
    "a scheduling gate": (
        [node("a1")],
        make_pod(scheduling_gates=[{"name": "quota"}]),
        {"remove the scheduling gate quota from the pod"},
    ),
    "a taint and a lack of room": (
        [node("a1", taints=["team=blue:NoSchedule"]), FULL],
        make_pod(requests={"cpu": "600m"}),
        {
            "remove the taint team=blue:NoSchedule from a1, and free 300m cpu on a1",
            "let the pod tolerate the taint team=blue:NoSchedule, and free 300m cpu on a1",
            "remove the taint team=blue:NoSchedule from a1, and evict default/batch-7 (priority 0)",
        },
    ),
    "a fuller node": (
        [node("a1"), node("b1"), make_pod("batch-7", node="a1", requests={"cpu": "2"})],
        make_pod(requests={"cpu": "1"}),
        {"cordon b1", "pin the pod: nodeSelector kubernetes.io/hostname=a1"},
    ),
    "a taint that only makes it less liked": (
        [node("a1", taints=["spot=:PreferNoSchedule"], cpu="5"), node("b1")],
        make_pod(requests={"cpu": "1"}),
        {"remove the taint spot:PreferNoSchedule from a1", "let the pod tolerate the taint spot:PreferNoSchedule"},
    ),
    "a preference for other nodes": (
        [node("a1", cpu="5"), node("b1", {"disk": "ssd"})],
        make_pod(requests={"cpu": "1"}, **PREFERRING),
        {"label a1 disk=ssd", "disable NodeAffinity at score"},
    ),
    "an image elsewhere": (
        [node("a1", cpu="5"), node("b1", images={"big:v1": 900_000_000})],
        make_pod(image="big:v1", requests={"cpu": "1"}),
        {"pull big:v1 on a1"},
    ),
}


@pytest.mark.parametrize(("objects", "pod", "expected"), CASES.values(), ids=CASES)
def test_suggests(objects: list[Object], pod: Pod, expected: set[str]) -> None:
    answer = asked(objects, pod)

    assert not answer.goes_there
    assert expected <= set(texts(answer)), texts(answer)


def test_smaller_changes_come_first() -> None:
    objects, pod, _ = CASES["a taint and a lack of room"]

    sizes = [len(suggestion.changes) for suggestion in asked(objects, pod).suggestions]

    assert sizes == sorted(sizes)
    assert sizes[0] == 2


def test_weights_are_raised_as_little_as_turns_it() -> None:
    # a1 is liked by NodeAffinity and fuller: NodeResourcesFit puts b1 ahead.
    objects: list[Object] = [
        node("a1", {"disk": "ssd"}),
        node("b1"),
        make_pod("batch-7", node="a1", requests={"cpu": "2", "memory": "4Gi"}),
    ]
    pod = make_pod(requests={"cpu": "1", "memory": "2Gi"}, **PREFERRING)
    weights = [{"name": "NodeAffinity", "weight": 1}, {"name": "NodeResourcesFit", "weight": 3}]
    config = make_config({"plugins": {"score": {"disabled": [{"name": "*"}], "enabled": weights}}})

    answer = asked(objects, pod, config=config)

    # NodeResourcesFit gives a1 25 and b1 75: 150 points with weight 3 against the 100 of NodeAffinity.
    assert answer.behind == 50
    assert answer.behind_by_plugin == {"NodeResourcesFit": 150, "NodeAffinity": -100}
    assert "raise NodeAffinity's weight from 1 to 2" in texts(answer)
    assert "lower NodeResourcesFit's weight from 3 to 1" in texts(answer)


def test_the_affinity_of_the_profile_counts_too() -> None:
    terms = {"nodeSelectorTerms": [{"matchExpressions": [expression("team", "In", "blue")]}]}
    config = with_args("NodeAffinity", addedAffinity={"requiredDuringSchedulingIgnoredDuringExecution": terms})

    assert set(texts(asked([node("a1")], make_pod(), config=config))) == {
        "label a1 team=blue",
        "drop the required addedAffinity of NodeAffinity in profile default-scheduler",
    }


def test_all_blockers_are_named_not_only_the_first() -> None:
    objects, pod, _ = CASES["a taint and a lack of room"]

    assert [status.plugin for status in asked(objects, pod).blockers] == ["TaintToleration", "NodeResourcesFit"]


def test_volumes_in_another_zone_cannot_be_helped() -> None:
    claim = make_claim("data", volume="disk")
    volume = make_volume("disk", claim=claim, nodes=on_label(ZONE, "b"))

    answer = asked([node("a1"), claim, volume], pod_with(uses("data")))

    assert [status.plugin for status in answer.blockers] == ["VolumeBinding"]
    assert [one.text for one in answer.obstacles["VolumeBinding"]] == [
        f"claim data is bound to disk, whose node affinity needs {ZONE} In b"
    ]
    assert answer.suggestions == ()


def test_without_scores_the_pod_is_pinned() -> None:
    config = make_config({"plugins": {"score": {"disabled": [{"name": "*"}]}}})

    answer = asked([node("a1"), node("b1")], make_pod(), on="b1", config=config)

    assert answer.blockers == ()
    assert texts(answer) == ["pin the pod: nodeSelector kubernetes.io/hostname=b1"]


def test_a_pod_that_goes_there_needs_nothing() -> None:
    answer = asked([node("a1"), node("b1", taints=["team=blue:NoSchedule"])], make_pod())

    assert (answer.goes_there, answer.blockers, answer.suggestions) == (True, (), ())


def test_a_running_pod_is_decided_as_if_it_did_not_run() -> None:
    running = make_pod("web", node="a1", requests={"cpu": "4"})

    assert asked([node("a1"), running], running).goes_there


def test_pods_of_the_node_and_critical_pods_are_not_evicted() -> None:
    daemon = make_pod("agent", node="a1", requests={"cpu": "1"}, owner={"kind": "DaemonSet", "name": "agent"})
    mirror = make_pod("proxy", node="a1", requests={"cpu": "1"}, owner={"kind": "Node", "name": "a1"})
    critical = make_pod("dns", node="a1", requests={"cpu": "2"}, priority=2_000_000_000)

    assert texts(asked([node("a1"), daemon, mirror, critical], make_pod(requests={"cpu": "1"}))) == [
        "drop the pod's cpu request"
    ]


BELONGING: dict[str, dict[str, Any]] = {
    "of a DaemonSet": {"owner": {"kind": "DaemonSet", "name": "agent"}},
    "of the node": {"owner": {"kind": "Node", "name": "a1"}},
    "a mirror": {"mirror": True},
    "critical": {"priority": 2_000_000_000},
    "on its way out": {"deleted": True},
}
PORT = [{"containerPort": 80, "hostPort": 80}]
IN_THE_WAY: dict[str, tuple[dict[str, Any], Pod]] = {
    "a host port": ({"ports": PORT}, make_pod(ports=PORT)),
    "its own anti-affinity": (
        {"labels": WEB},
        make_pod(affinity=affinity(required=[pod_term(HOSTNAME, WEB)], anti=True)),
    ),
    "the anti-affinity of another": (
        {"affinity": affinity(required=[pod_term(HOSTNAME, WEB)], anti=True)},
        make_pod(labels=WEB),
    ),
    "a crowded zone": (
        {"labels": WEB},
        make_pod(labels=WEB, requests={"cpu": "1"}, topology_spread_constraints=[spread(ZONE, WEB)]),
    ),
    "too little cpu": ({"requests": {"cpu": "4"}}, make_pod(requests={"cpu": "1"})),
}


@pytest.mark.parametrize("kind", BELONGING)
@pytest.mark.parametrize("way", IN_THE_WAY)
def test_no_plugin_suggests_to_evict_what_stays(kind: str, way: str) -> None:
    fields, pod = IN_THE_WAY[way]
    there = make_pod("there", node="a1", **fields, **BELONGING[kind])
    full = [node("b1", cpu="1"), make_pod("full", node="b1", requests={"cpu": "1"})]

    answer = asked([node("a1"), *full, there], pod)

    assert answer.suggestions or answer.goes_there
    assert not [text for text in texts(answer) if "evict default/there" in text]


def test_spreading_evicts_those_that_may_be_evicted() -> None:
    pod = make_pod(labels=WEB, requests={"cpu": "1"}, topology_spread_constraints=[spread(ZONE, WEB)])
    there = [
        make_pod("agent", node="a1", labels=WEB, owner={"kind": "DaemonSet", "name": "agent"}),
        make_pod("web", node="a1", labels=WEB, priority=7),
    ]
    full = [node("b1", cpu="1"), make_pod("full", node="b1", requests={"cpu": "1"}, labels=WEB)]

    assert "evict default/web (priority 7)" in texts(asked([node("a1"), *full, *there], pod))


def test_nothing_is_changed_by_asking() -> None:
    cluster = Cluster.from_objects([node("a1", unschedulable=True), FULL])

    assert why_not(cluster, make_pod(requests={"cpu": "1"}), "a1").suggestions
    assert cluster.node("a1").spec.unschedulable
    assert [pod.key for pod, _ in cluster.placed()] == ["default/batch-7"]


def test_an_unknown_node_is_bad_input() -> None:
    with pytest.raises(InputError, match="node 'z9' is not in the cluster"):
        asked([node("a1")], make_pod(), on="z9")


def test_a_finished_pod_is_bad_input() -> None:
    with pytest.raises(InputError, match="pod default/pod has finished"):
        asked([node("a1")], make_pod(phase="Succeeded"))


# -- on random cases -----------------------------------------------------------------------------------------------

FAMILIES = (
    "mixed",
    "resources",
    "taints",
    "nodeaffinity",
    "ports",
    "interpod",
    "spread",
    "config",
    "owners",
    "rollout",
)
EACH = 22


@pytest.mark.parametrize("family", FAMILIES)
def test_every_suggestion_turns_the_decision(family: str) -> None:
    chance = random.Random(family)
    asked_for = turned = helped = 0
    for record in list(read_records(str(GOLDEN / f"{family}.jsonl.xz")))[:EACH]:
        scheduler, pods = prepare(record.case)
        pod, on = chance.choice(pods), chance.choice(sorted(scheduler.cluster.rows))
        before = scheduler.decide(pod).node
        answer = why_not(scheduler.cluster, pod, on, scheduler.config, most=3)
        asked_for += 1
        assert answer.goes_there == (before == on)
        helped += answer.goes_there or bool(answer.suggestions)
        for suggestion in answer.suggestions:
            cluster, changed, config = suggestion.apply(scheduler.cluster, pod, scheduler.config)
            decision = Scheduler(cluster, config, seed=chance.randrange(1000)).decide(changed)
            assert decision.node == on, f"{record.case.name}: {pod.key} on {on}: {suggestion.text}"
            turned += 1
    assert asked_for == min(EACH, 10 if family == "rollout" else EACH)
    # What has nothing to do with the node, such as a scheduler name nobody answers to, cannot be helped.
    assert helped >= 0.9 * asked_for
    assert turned >= asked_for


HOST_PORT = {"containerPort": 80, "hostPort": 80}
OF_A_RELEASE: dict[str, tuple[str, list[Object], Pod, set[str]]] = {
    "ports of sidecars count from v1.33 on": (
        "v1.32",
        [
            node("a1"),
            make_pod("main", node="a1", ports=[HOST_PORT]),
            make_pod(
                "side",
                node="a1",
                init_containers=[{"name": "i", "image": "i", "restartPolicy": "Always", "ports": [HOST_PORT]}],
            ),
        ],
        make_pod(ports=[HOST_PORT]),
        {"evict default/main (priority 0)", "drop the pod's host port 80"},
    ),
    "requests of the whole pod count from v1.34 on": (
        "v1.29",
        [node("a1", cpu="4")],
        make_pod(requests={"cpu": "5"}, resources={"requests": {"cpu": "3"}}),
        {"lower the pod's cpu request from 5 to 4"},
    ),
}


@pytest.mark.parametrize("case", OF_A_RELEASE)
def test_suggestions_count_as_the_release_does(case: str) -> None:
    release, objects, pod, suggested = OF_A_RELEASE[case]
    answer = why_not(Cluster.from_objects(objects), pod, "a1", release=release)
    assert set(texts(answer)) == suggested


FACTS = (
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
    "kubernetes.io/hostname",
    "kubernetes.io/arch",
    "kubernetes.io/os",
)


@pytest.mark.parametrize("key", FACTS)
def test_it_never_suggests_to_change_what_or_where_a_node_is(key: str) -> None:
    nodes = [make_node("a", labels={key: "one"}), make_node("b", labels={key: "two"}), make_node("c")]
    pod = make_pod("web", node_selector={key: "one"})
    cluster = Cluster.from_objects([*nodes, pod])

    for name in ("b", "c"):
        found = [change.kind for each in why_not(cluster, pod, name).suggestions for change in each.changes]
        assert found
        assert "label-node" not in found
