"""How many nodes to add: the fewest of one template, the cheapest mix of several."""

from __future__ import annotations

from typing import Any

import pytest

from builders import HOSTNAME, ZONE, affinity, make_node, make_object, make_pod, pod_term, spread
from device_objects import gpus, make_claim, make_class, using
from podium.answers import NodesNeeded, NodeTemplate, nodes_needed
from podium.answers.disruption import IGNORE_DAEMON_SETS, Fate, drain
from podium.answers.node_mixes import add_nodes
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import InputError
from podium.model import Node, Object, Pod


def pods(number: int, **fields: Any) -> list[Pod]:
    return [make_pod(f"web-{each}", labels={"app": "web"}, **fields) for each in range(number)]


def needed(wanted: list[Pod], *templates: NodeTemplate, objects: tuple[Object, ...] = ()) -> NodesNeeded:
    return nodes_needed(Cluster.from_objects(objects), wanted, templates)


def of(node: Node, price: float = 1.0) -> NodeTemplate:
    return NodeTemplate(node, price)


SMALL, LARGE = make_node("small", cpu="4"), make_node("large", cpu="16")


def test_nothing_is_needed_for_what_fits() -> None:
    answer = needed(pods(2, requests={"cpu": "1"}), of(SMALL), objects=(make_node("there"),))

    assert (answer.pods, answer.best.counts, answer.best.price) == (0, {}, 0)


def test_the_fewest_of_one_template() -> None:
    answer = needed(pods(9, requests={"cpu": "1"}), of(SMALL), objects=(make_node("there"),))

    # 4 of the 9 fit on the node that is there, 4 on a new one, the last one needs another.
    assert (answer.pods, answer.best.counts) == (5, {"small": 2})


CASES = {
    "large ones are cheaper": (20, 5.0, 17.0, {"large": 1, "small": 1}, 22.0),
    "small ones are cheaper": (20, 4.0, 17.0, {"small": 5}, 20.0),
    "one large one beats many small ones": (16, 5.0, 17.0, {"large": 1}, 17.0),
    "for the same money fewer": (16, 4.0, 16.0, {"large": 1}, 16.0),
}


@pytest.mark.parametrize(("number", "small", "large", "counts", "price"), CASES.values(), ids=CASES)
def test_the_cheapest_mix(number: int, small: float, large: float, counts: dict[str, int], price: float) -> None:
    answer = needed(pods(number, requests={"cpu": "1"}), of(SMALL, small), of(LARGE, large))

    assert (dict(answer.best.counts), answer.best.price) == (counts, price)
    assert answer.best.fits


def test_each_template_alone_is_told_too() -> None:
    answer = needed(pods(20, requests={"cpu": "1"}), of(SMALL, 5.0), of(LARGE, 17.0))

    assert {name: (mix.nodes, mix.price) for name, mix in answer.alone.items()} == {
        "small": (5, 25.0),
        "large": (2, 34.0),
    }


def test_pods_that_no_template_helps_are_named() -> None:
    huge = make_pod("huge", requests={"cpu": "32"})

    answer = needed([*pods(2, requests={"cpu": "3"}), huge], of(SMALL))

    assert (dict(answer.best.counts), answer.best.left) == ({"small": 2}, ("default/huge",))


def test_templates_that_help_together_only() -> None:
    zones = [of(make_node(f"in-{zone}", cpu="4", labels={ZONE: zone, HOSTNAME: ""})) for zone in "ab"]
    fields = {"requests": {"cpu": "1"}, "topology_spread_constraints": [spread(ZONE, {"app": "web"}, min_domains=2)]}

    answer = needed(pods(4, **fields), *zones)

    assert answer.best.counts == {"in-a": 1, "in-b": 1}
    assert not any(mix.fits for mix in answer.alone.values())


def test_pods_that_keep_apart_need_a_node_each() -> None:
    apart = affinity(required=[pod_term(HOSTNAME, {"app": "web"})], anti=True)
    template = of(make_node("small", labels={HOSTNAME: "small"}))

    assert needed(pods(3, requests={"cpu": "1"}, affinity=apart), template).best.counts == {"small": 3}


def test_new_nodes_run_daemons() -> None:
    spec = {"template": {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "1"}}}]}}}
    daemon_set = make_object("DaemonSet", "agent", spec=spec)

    assert needed(pods(4, requests={"cpu": "1"}), of(SMALL), objects=(daemon_set,)).best.counts == {"small": 2}


def test_daemons_of_new_nodes_belong_to_them() -> None:
    template = {"spec": {"priorityClassName": "critical", "containers": [{"name": "c"}]}}
    daemon_set = make_object("DaemonSet", "agent", namespace="default", spec={"template": template})
    cluster = Cluster.from_objects([daemon_set, make_object("PriorityClass", "critical", value=1000), make_node("old")])

    add_nodes(cluster, SMALL, 2)

    drained = drain(cluster, ["small-2"])
    (daemon,) = drained.pods
    assert (daemon.pod, daemon.workload, daemon.fate) == ("default/agent-small-2", "DaemonSet/agent", Fate.STAYS)
    assert [pod.spec.priority for pod, _ in cluster.placed()] == [1000, 1000]
    assert [(flag.flag, flag.pods) for flag in drained.flags] == [(IGNORE_DAEMON_SETS, ("default/agent-small-2",))]


def test_pods_that_wait_for_something_else_need_no_node() -> None:
    waiting = [
        make_pod("gated", requests={"cpu": "64"}, scheduling_gates=[{"name": "wait"}]),
        make_pod("other", requests={"cpu": "64"}, scheduler_name="other"),
    ]

    assert needed(waiting, of(SMALL)).pods == 0


def test_the_mix_is_enough_when_the_nodes_really_come() -> None:
    wanted = pods(23, requests={"cpu": "1300m", "memory": "1Gi"})
    answer = needed(wanted, of(SMALL, 1.0), of(LARGE, 3.6))

    cluster = Cluster()
    for node in (SMALL, LARGE):
        add_nodes(cluster, node, answer.best.counts.get(node.name, 0))
    scheduler = Scheduler(cluster, tie_break="first")
    assert all(scheduler.schedule(pod) is not None for pod in wanted)


def test_two_templates_of_one_name_are_bad_input() -> None:
    with pytest.raises(InputError, match="node templates small, small: each must have a name of its own"):
        needed(pods(1), of(SMALL), of(SMALL, 2.0))


def zone(letter: str, **fields: Any) -> Node:
    return make_node(f"new-{letter}", labels={ZONE: letter, HOSTNAME: f"new-{letter}"}, **fields)


def test_a_mix_is_found_though_no_template_helps_alone() -> None:
    there = [
        make_node(f"there-{letter}", labels={ZONE: letter, HOSTNAME: f"there-{letter}"}, pods=pods_there)
        for letter, pods_there in (("a", 3), ("b", 3), ("c", 3))
    ]
    wanted = pods(15, topology_spread_constraints=[spread(ZONE, {"app": "web"})])

    answer = needed(wanted, *(of(zone(letter, pods=2)) for letter in "abc"), objects=tuple(there))

    assert (dict(answer.best.counts), answer.best.left) == ({"new-a": 1, "new-b": 1, "new-c": 1}, ())
    assert answer.search.complete
    assert answer.search.at_least == 3.0


def test_what_was_not_covered_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    templates = [of(make_node(f"n{number}", cpu=str(3 + number)), 1.0 + number / 7) for number in range(6)]
    wanted = [make_pod(f"p{number}", requests={"cpu": f"{700 + number}m"}) for number in range(60)]
    proved = needed(wanted, *templates)
    monkeypatch.setattr("podium.answers.node_mixes.MOST_TRIALS", 30)

    answer = needed(wanted, *templates)

    assert answer.best.fits
    assert proved.search.complete
    assert not answer.search.complete
    assert 0 < answer.search.at_least <= proved.best.price <= answer.best.price


def test_the_objects_of_a_template_come_with_each_node() -> None:
    device_class, template = make_class(), make_node("gpu", cpu="8")
    asked = [make_pod(f"p{number}", resource_claims=using(f"c{number}")) for number in range(3)]
    claims = [make_claim(f"c{number}", namespace="default") for number in range(3)]

    with_devices = NodeTemplate(template, 1.0, (gpus("gpu", 1),))

    assert needed(asked, of(template), objects=(device_class, *claims)).best.counts == {}
    assert needed(asked, with_devices, objects=(device_class, *claims)).best.counts == {"gpu": 3}
