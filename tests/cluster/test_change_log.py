from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import make_node, make_object, make_pod
from podium.cluster import Aspect, Cluster
from podium.cluster.columns import ROW_ASPECTS, ChangeLog


def rows_since(log: ChangeLog, cursor: int) -> list[int] | None:
    rows = log.since(cursor)
    return None if rows is None else rows.tolist()


def test_a_reader_gets_what_came_after_its_cursor() -> None:
    log = ChangeLog()
    log.append(3)
    cursor = log.head
    log.append(5)
    log.append(3)
    assert rows_since(log, cursor) == [5, 3]
    assert rows_since(log, log.head) == []


def test_a_reader_that_is_too_late_has_to_start_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ChangeLog, "LIMIT", 4)
    log = ChangeLog()
    for row in range(5):
        log.append(row)
    assert rows_since(log, 1) is None
    assert rows_since(log, 2) == [2, 3, 4]
    assert log.head == 5


ALL = {Aspect.RESOURCES, Aspect.PORTS, Aspect.LABELS, Aspect.TAINTS, Aspect.PODS}
PORT = {"containerPort": 80, "hostPort": 8080}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        pytest.param(lambda c: c.add(make_pod("p", node="n")), {Aspect.RESOURCES, Aspect.PODS}, id="a pod comes"),
        pytest.param(
            lambda c: c.add(make_pod("p", node="n", ports=[PORT])),
            {Aspect.RESOURCES, Aspect.PODS, Aspect.PORTS},
            id="a pod with a host port comes",
        ),
        pytest.param(lambda c: c.add(make_pod("p")), set(), id="a pod without a node comes"),
        pytest.param(lambda c: c.remove(make_pod("old", node="n")), {Aspect.RESOURCES, Aspect.PODS}, id="a pod goes"),
        pytest.param(lambda c: c.forget(make_pod("old")), {Aspect.RESOURCES, Aspect.PODS}, id="a pod is taken back"),
        pytest.param(lambda c: c.assume(make_pod("p"), "n"), {Aspect.RESOURCES, Aspect.PODS}, id="a pod is assumed"),
        pytest.param(lambda c: c.remove(make_node("n")), ALL, id="the node goes"),
        pytest.param(lambda c: c.add(make_object("Namespace", "x")), set(), id="another object comes"),
    ],
)
def test_every_event_is_logged_under_what_it_may_change(
    event: Callable[[Cluster], None], expected: set[Aspect]
) -> None:
    cluster = Cluster.from_objects([make_node("n"), make_pod("old", node="n")])
    before = {aspect: log.head for aspect, log in cluster.logs.items()}
    event(cluster)
    changed = {aspect for aspect, log in cluster.logs.items() if log.head != before[aspect]}
    assert changed == expected


def test_an_updated_node_is_logged_under_everything_that_changed() -> None:
    cluster = Cluster.from_objects([make_node("n")])
    before = {aspect: log.head for aspect, log in cluster.logs.items()}
    cluster.update(make_node("n", cpu="8", labels={"a": "b"}, taints=["t=:NoSchedule"]))
    changed = {aspect for aspect, log in cluster.logs.items() if log.head != before[aspect]}
    assert {Aspect.RESOURCES, Aspect.LABELS, Aspect.TAINTS} <= changed


def test_an_object_changes_the_version_of_the_store() -> None:
    cluster = Cluster()
    versions = [cluster.store.version]
    namespace = make_object("Namespace", "x")
    for change in (cluster.add, cluster.update, cluster.remove):
        change(namespace)
        versions.append(cluster.store.version)
    assert len(set(versions)) == 4


def test_row_aspects_are_logged_and_the_others_are_not() -> None:
    assert set(Cluster().logs) == set(ROW_ASPECTS)
