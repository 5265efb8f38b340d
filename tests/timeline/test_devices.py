"""Devices over time: claims are made from templates, keep their devices, and give them back."""

from __future__ import annotations

from typing import Any

from builders import make_node
from device_objects import exactly, made, make_class, make_slice
from podium.model import Object, ResourceClaim
from podium.timeline import Timeline

Fields = dict[str, Any]


def world(devices: int) -> list[Object]:
    template = made("ResourceClaimTemplate", "gpu", {"spec": {"devices": {"requests": [exactly()]}}})
    return [make_node("n"), make_class(), make_slice("n", *(f"gpu-{k}" for k in range(devices)), node="n"), template]


def pod(name: str) -> Fields:
    spec = {
        "containers": [{"name": "main", "image": "app", "resources": {"requests": {"cpu": "1"}}}],
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": "gpu"}],
    }
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


def test_a_pod_waits_for_devices_and_gets_them_when_another_ends() -> None:
    events = [
        {"time": 0, "event": "add", "object": pod("first"), "lifetime": 60},
        {"time": 1, "event": "add", "object": pod("second")},
    ]
    timeline = Timeline(world(1), events, tie_break="first")

    result = timeline.run(300)

    bound = {record["pod"]: record["time"] for record in result.log if record["event"] == "bind"}
    assert bound["default/first"] == 0
    assert 60 <= bound["default/second"] < 90


def test_claims_made_for_a_pod_go_with_it() -> None:
    events = [{"time": 0, "event": "add", "object": pod("first"), "lifetime": 60}]
    timeline = Timeline(world(1), events, tie_break="first")

    timeline.run(30)
    (claim,) = timeline.world.loop.cluster.store.of(ResourceClaim)
    assert claim.status.allocation is not None
    assert [each.name for each in claim.status.reserved_for] == ["first"]

    timeline.run(120)
    assert not list(timeline.world.loop.cluster.store.of(ResourceClaim))


def test_pods_that_are_recreated_get_claims_of_their_own() -> None:
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod("x")["spec"]}
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    deployment = {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}
    events = [
        {"time": 0, "event": "add", "object": deployment},
        {"time": 10, "event": "drain", "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}},
        {"time": 60, "event": "uncordon", "object": {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n"}}},
    ]
    timeline = Timeline(world(2), events, tie_break="first")

    timeline.run(600)

    claims = list(timeline.world.loop.cluster.store.of(ResourceClaim))
    running = {pod.name for pod, _ in timeline.world.loop.cluster.placed()}
    assert len(running) == 2
    assert {each.name for claim in claims for each in claim.status.reserved_for} == running
