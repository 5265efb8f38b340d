"""Devices over time: claims are made from templates, keep their devices, and give them back."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec import convert
from msgspec.structs import replace

from builders import make_node, make_pod
from device_objects import DRIVER, exactly, made, make_claim, make_class, make_slice
from podium.model import Object, OwnerReference, ResourceClaim
from podium.model.devices import ResourceClaimStatus
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


# -- claims that are in the way ------------------------------------------------------------------------------------

BEGIN = "2026-01-01T00:00:00Z"
ON_GONE_NODE = {
    "nodeSelectorTerms": [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["gone"]}]}]
}


def allocated(name: str, device: str, *, selector: Fields | None = None, **result: Any) -> Object:
    """A claim that has a device since the beginning, and that nobody has reserved."""
    claim = make_claim(name)
    found = {"request": "r0", "driver": DRIVER, "pool": "n", "device": device, **result}
    allocation = {"devices": {"results": [found]}, "nodeSelector": selector, "allocationTimestamp": BEGIN}
    assert isinstance(claim, ResourceClaim)
    return replace(claim, status=convert({"allocation": allocation}, ResourceClaimStatus))


def user(name: str, claim: str) -> Fields:
    document = pod(name)
    document["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": claim}]
    return document


def outcome(objects: list[Object], *arrivals: tuple[float, Fields]) -> tuple[dict[str, float], list[str]]:
    """When pods were bound, by name, and what the scheduler did to claims."""
    events = [{"time": time, "event": "add", "object": document} for time, document in arrivals]
    log = Timeline(objects, events, tie_break="first").run(3600).log
    bound = {record["pod"].removeprefix("default/"): record["time"] for record in log if record["event"] == "bind"}
    return bound, [f"{each['event']} {each['name']} by {each['by']}" for each in log if "by" in each]


def test_a_claim_that_nobody_has_gives_back_devices_that_keep_its_pod_from_the_nodes() -> None:
    objects = [*world(1), allocated("c", "gpu-0", selector=ON_GONE_NODE)]

    bound, changes = outcome(objects, (5, user("p", "c")))

    assert changes == ["update default/c by default/p"]
    assert 5 <= bound["p"] < 20


def test_a_claim_left_over_from_an_earlier_attempt_is_deleted() -> None:
    cls = make_class("ext", extendedResourceName="example.com/gpu")
    asking = make_pod("p", requests={"example.com/gpu": 1})
    owner = OwnerReference(api_version="v1", kind="Pod", name="p", uid=asking.metadata.uid, controller=True)
    left = make_claim("left", annotations={"resource.kubernetes.io/extended-resource-claim": "true"})
    left = replace(left, metadata=replace(left.metadata, owner_references=[owner]))
    timeline = Timeline([*world(1), cls, asking, left], tie_break="first")

    log = timeline.run(3600).log

    assert [each["name"] for each in log if each["event"] == "delete"] == ["default/left"]
    assert [each["pod"] for each in log if each["event"] == "bind"] == ["default/p"]


@pytest.mark.parametrize(("arrives", "changes"), [(100, []), (700, ["update default/c by default/p"])])
def test_devices_that_did_not_get_ready_in_time_are_given_back(arrives: float, changes: list[str]) -> None:
    """In simulated time: the binding timeout is 600 s."""
    objects = [*world(1), allocated("c", "gpu-0", bindingConditions=["Ready"])]

    bound, changed = outcome(objects, (arrives, user("p", "c")))

    assert changed == changes
    assert arrives <= bound["p"] < arrives + 20


def test_devices_get_ready_when_a_pod_is_bound() -> None:
    """So that a pod that shares the claim later does not find it late."""
    slices = make_slice("n", {"name": "gpu-0", "bindingConditions": ["Ready"]}, node="n")
    objects = [make_node("n"), make_class(), slices, make_claim("c")]

    bound, changes = outcome(objects, (0, user("first", "c")), (2000, user("second", "c")))

    assert (bound, changes) == ({"first": 0, "second": 2000}, [])


# -- preemption and autoscaling ------------------------------------------------------------------------------------


def test_preemption_does_not_evict_for_devices() -> None:
    """Nodes without devices left are unresolvable to kube-scheduler: a pod of higher priority waits as well."""
    high = pod("high")
    high["spec"]["priority"] = 1000
    bound, _ = outcome(world(1), (0, pod("low")), (1, high))

    assert bound == {"low": 0}


def test_preemption_for_cpu_gives_back_the_devices_of_its_victim() -> None:
    low, high = pod("low"), pod("high")
    for document, cpu in ((low, "3"), (high, "3")):
        document["spec"]["containers"][0]["resources"]["requests"]["cpu"] = cpu
    high["spec"]["priority"] = 1000
    timeline = Timeline(
        world(2),
        [
            {"time": 0, "event": "add", "object": low},
            {"time": 1, "event": "add", "object": high},
        ],
        tie_break="first",
    )

    timeline.run(600)

    claims = timeline.world.loop.cluster.store.of(ResourceClaim)
    assert [each.name for claim in claims for each in claim.status.reserved_for] == ["high"]
