from __future__ import annotations

import pytest

from builders import Fields, make_node, make_object, make_pod
from podium.cluster import Cluster
from podium.errors import InputError
from podium.model import Namespace, Pod

HELD = {"requests": {"cpu": "1"}}
SPEC = {"containers": [{"name": "main", "resources": {"requests": {"cpu": "2"}}}]}


def test_objects_may_come_in_any_order() -> None:
    cluster = Cluster.from_objects([make_pod("p", node="n"), make_object("Namespace", "team"), make_node("n")])
    assert cluster.find_pod("default/p") == (make_pod("p", node="n"), "n")
    assert cluster.store.of(Namespace).get("team") is not None
    assert cluster.node_count == 1


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_finished_pods_are_not_seen(phase: str) -> None:
    pods = [make_pod("p", node="n", phase=phase), make_pod("q", phase=phase)]
    cluster = Cluster.from_objects([make_node("n"), *pods])
    assert cluster.find_pod("default/p") is None
    assert not cluster.pending
    assert cluster.nodes.requested("pods").tolist() == [0]


def test_pods_without_a_node_are_pending_in_order_of_arrival() -> None:
    cluster = Cluster.from_objects([make_pod("b"), make_pod("a")])
    assert list(cluster.pending) == ["default/b", "default/a"]
    assert cluster.find_pod("default/b") == (make_pod("b"), None)


def test_the_same_node_twice_is_an_error() -> None:
    cluster = Cluster.from_objects([make_node("n")])
    with pytest.raises(InputError, match="node n occurs twice; keep one of the two"):
        cluster.add(make_node("n"))


def test_the_same_pod_twice_is_an_error() -> None:
    cluster = Cluster.from_objects([make_node("n"), make_pod("p", node="n")])
    with pytest.raises(InputError, match="pod default/p is on node n already; remove it first"):
        cluster.assume(make_pod("p"), "n")


def test_pods_of_a_node_that_is_not_there_wait_for_it() -> None:
    cluster = Cluster.from_objects([make_pod("p", node="later"), make_pod("q", node="never")])
    assert [pod.name for pod in cluster.stranded] == ["p", "q"]
    cluster.add(make_node("later"))
    assert [pod.name for pod in cluster.stranded] == ["q"]
    assert cluster.find_pod("default/p") == (make_pod("p", node="later"), "later")
    cluster.remove(make_pod("q", node="never"))
    assert cluster.stranded == []


@pytest.mark.parametrize("assumed", [False, True])
def test_a_node_that_comes_back_has_its_pods_again(assumed: bool) -> None:
    cluster = Cluster.from_objects([make_node("n")])
    if assumed:
        cluster.assume(make_pod("p", requests={"cpu": "1"}), "n")
    else:
        cluster.add(make_pod("p", node="n", requests={"cpu": "1"}))
    cluster.remove(make_node("n"))
    assert [pod.name for pod in cluster.stranded] == ["p"]
    assert not cluster.pending
    cluster.add(make_node("n"))
    assert cluster.stranded == []
    assert [pod.name for pod in cluster.pods_on(cluster.rows["n"])] == ["p"]
    assert cluster.nodes.requested("cpu").tolist() == [1000]


def test_a_removed_node_leaves_a_row_that_the_next_one_takes() -> None:
    cluster = Cluster.from_objects([make_node("a"), make_node("b", labels={"x": "y"}), make_node("c")])
    row = cluster.rows["b"]
    cluster.remove(make_node("b"))
    assert cluster.nodes.names == ["a", "c"]
    assert cluster.node_count == 2
    cluster.add(make_node("d", cpu="16"))
    assert cluster.rows["d"] == row
    assert cluster.nodes.names == ["a", "d", "c"]
    assert cluster.nodes.codes("x").tolist() == [-1, -1, -1]
    assert cluster.nodes.allocatable("cpu").tolist() == [4000, 16000, 4000]


def test_removing_what_is_not_there_is_no_error() -> None:
    cluster = Cluster()
    cluster.remove(make_node("n"))
    cluster.remove(make_pod("p"))
    cluster.remove(make_object("Namespace", "x"))
    cluster.forget(make_pod("p"))
    assert not cluster.pending


def test_an_updated_node_keeps_its_pods() -> None:
    cluster = Cluster.from_objects([make_node("n", cpu="4"), make_pod("p", node="n", requests={"cpu": "1"})])
    cluster.update(make_node("n", cpu="8"))
    assert cluster.nodes.allocatable("cpu").tolist() == [8000]
    assert cluster.nodes.requested("cpu").tolist() == [1000]


def test_updating_adds_what_is_not_there() -> None:
    cluster = Cluster()
    cluster.update(make_node("n"))
    cluster.update(make_pod("p", node="n"))
    cluster.update(make_object("Namespace", "team", labels={"a": "b"}))
    assert cluster.find_pod("default/p") is not None
    assert cluster.namespace_labels("team")["a"] == "b"
    assert cluster.namespace_labels("unheard-of") == {}


def test_an_updated_pod_moves_and_changes_size() -> None:
    cluster = Cluster.from_objects([make_node("a"), make_node("b"), make_pod("p", node="a", requests={"cpu": "1"})])
    cluster.update(make_pod("p", node="b", requests={"cpu": "2"}))
    assert cluster.nodes.requested("cpu").tolist() == [0, 2000]
    cluster.update(make_pod("p", node="b", phase="Succeeded"))
    assert cluster.nodes.requested("pods").tolist() == [0, 0]


def test_an_assumed_pod_counts_until_it_is_forgotten() -> None:
    pod = make_pod("p", requests={"cpu": "1", "example.com/gpu": 2})
    cluster = Cluster.from_objects([make_node("n"), pod])
    cluster.assume(pod, "n")
    assert not cluster.pending
    assert cluster.nodes.requested("example.com/gpu").tolist() == [2]
    cluster.forget(pod)
    assert list(cluster.pending) == ["default/p"]
    assert cluster.nodes.requested("example.com/gpu").tolist() == [0]
    assert cluster.nodes.requested("pods").tolist() == [0]


def test_pods_with_the_same_spec_share_what_is_compiled_from_it() -> None:
    cluster = Cluster.from_objects([make_node("a"), make_node("b"), make_pod("p", node="a"), make_pod("q", node="b")])
    (first,), (second,) = cluster.placed_on(0), cluster.placed_on(1)
    assert first.info is second.info
    assert cluster.infos.of(make_pod("r")) is first.info
    assert cluster.infos.of(make_pod("r", labels={"a": "b"})) is not first.info


@pytest.mark.parametrize(
    ("what", "status", "shared"),
    [
        ("conditions", {"conditions": [{"type": "Ready", "status": "True"}]}, True),
        ("a container that holds what it asks for", {"containerStatuses": [{"name": "main"}]}, True),
        ("a container that holds more", {"containerStatuses": [{"name": "main", "resources": HELD}]}, False),
        ("an init container that holds more", {"initContainerStatuses": [{"name": "main", "resources": HELD}]}, False),
        ("a pod that holds more", {"resources": HELD}, False),
    ],
)
def test_a_status_counts_where_it_speaks_of_resources(what: str, status: Fields, shared: bool) -> None:
    infos = Cluster().infos
    running = make_object("Pod", "p", namespace="default", spec=SPEC, status=status)
    other = make_object("Pod", "q", namespace="default", spec=SPEC)
    assert isinstance(running, Pod)
    assert isinstance(other, Pod)
    assert (infos.of(running) is infos.of(other)) is shared, what


def test_a_resize_that_cannot_be_done_counts() -> None:
    infos = Cluster().infos
    held = {"containerStatuses": [{"name": "main", "resources": HELD}]}
    pods = [
        make_object("Pod", "p", spec=SPEC, status=held | {"conditions": [{"type": "PodResizePending", "reason": why}]})
        for why in ("Deferred", "Infeasible")
    ]
    deferred, infeasible = (infos.of(pod) for pod in pods if isinstance(pod, Pod))
    assert deferred.used.tolist() != infeasible.used.tolist()


@pytest.mark.parametrize(
    ("names", "order", "in_order"), [(["a", "b", "c"], [0, 1, 2], True), (["c", "a", "b"], [2, 0, 1], False)]
)
def test_rows_know_their_place_by_name(names: list[str], order: list[int], in_order: bool) -> None:
    cluster = Cluster.from_objects(map(make_node, names))
    assert cluster.name_order().tolist() == order
    assert cluster.rows_in_name_order is in_order


def test_rows_that_are_left_may_be_in_the_order_of_names() -> None:
    cluster = Cluster.from_objects(map(make_node, "acb"))
    assert not cluster.rows_in_name_order
    cluster.remove(make_node("b"))
    assert cluster.rows_in_name_order


def test_a_fork_and_its_original_go_their_own_ways() -> None:
    cluster = Cluster.from_objects([make_node("n"), make_pod("p")])
    twin = cluster.fork()
    twin.assume(make_pod("p", requests={"vendor.io/thing": 3}), "n")
    twin.add(make_node("m", labels={"only": "here"}))
    cluster.add(make_object("Namespace", "team", labels={"a": "b"}))
    assert cluster.nodes.names == ["n"]
    assert cluster.nodes.requested("vendor.io/thing").tolist() == [0]
    assert list(cluster.pending) == ["default/p"]
    assert twin.nodes.requested("vendor.io/thing").tolist() == [3, 0]
    assert twin.nodes.codes("only").tolist() == [-1, 0]
    assert not twin.pending
    assert twin.namespace_labels("team") == {}
