"""Who binds a pod: the first extender that binds and is interested in it, and only then the Bind plugins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from builders import make_node, make_pod
from extenders.loopback import Loopback
from loop.driving import Driver
from podium.timeline import Surroundings, Timeline
from timeline.test_timeline import at, pod

GPU = {"example.com/gpu": "1"}


@pytest.fixture
def loopback() -> Iterator[Loopback]:
    server = Loopback()
    yield server
    server.close()


def config(loopback: Loopback, **settings: Any) -> dict[str, Any]:
    return {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "extenders": [{"urlPrefix": loopback.url, "bindVerb": "bind", **settings}],
    }


def work(loopback: Loopback, requests: dict[str, str] | None = None, **settings: Any) -> list[str]:
    node = make_node("a", cpu="1", gpu=4)
    driver = Driver([node], config=config(loopback, **settings))
    driver.add(make_pod("p", requests=requests or {"cpu": "1"}))
    try:
        return driver.work()
    finally:
        driver.loop.close()


def test_the_extender_binds(loopback: Loopback) -> None:
    loopback.answer("bind", {})
    assert work(loopback) == ["bind p to a"]
    (request,) = loopback.requests
    assert request.path == "/scheduler/bind"
    assert {key: request.document[key] for key in ("PodName", "PodNamespace", "Node")} == {
        "PodName": "p",
        "PodNamespace": "default",
        "Node": "a",
    }


@pytest.mark.parametrize(
    ("requests", "calls"), [({"cpu": "1"}, 0), (GPU, 1)], ids=["a pod it has no interest in", "a pod of its own"]
)
def test_pods_that_ask_for_none_of_its_resources_are_not_its_business(
    loopback: Loopback, requests: dict[str, str], calls: int
) -> None:
    loopback.answer("bind", {})
    managed = [{"name": "example.com/gpu"}]
    assert work(loopback, requests, managedResources=managed) == ["bind p to a"]
    assert len(loopback.requests) == calls


def test_a_failure_is_one_of_binding(loopback: Loopback) -> None:
    loopback.answer("bind", {"Error": "no luck"})
    (said,) = work(loopback)
    assert said == f"p failed: extender {loopback.url}: bind: no luck"


def test_what_was_taken_is_free_again_after_a_failure(loopback: Loopback) -> None:
    loopback.answer("bind", {"Error": "no luck"})
    driver = Driver([make_node("a", cpu="1")], config=config(loopback))
    driver.add(make_pod("p", requests={"cpu": "1"}))
    driver.work()
    assert not driver.loop.cluster.columns.requested.any()
    loopback.answer("bind", {})
    assert driver.work(at=10.0) == ["bind p to a"]
    driver.loop.close()


def test_an_ignorable_extender_that_fails_leaves_it_to_the_plugins(loopback: Loopback) -> None:
    assert work(loopback, ignorable=True) == ["bind p to a"]
    assert len(loopback.requests) == 1


@pytest.mark.parametrize(("surroundings", "calls"), [(None, 0), (Surroundings(extenders_bind=True), 1)])
def test_a_simulation_binds_nothing_for_good_unless_told_to(
    loopback: Loopback, surroundings: Surroundings | None, calls: int
) -> None:
    loopback.answer("bind", {})
    nodes = [make_node("a", cpu="1")]
    timeline = Timeline(nodes, [at(0, "add", pod("p"))], config(loopback), surroundings=surroundings)
    assert timeline.run().unplaced == ()
    timeline.close()
    assert len(loopback.requests) == calls
