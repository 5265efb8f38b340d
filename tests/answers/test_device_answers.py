"""The answers about pods with devices: why not there, how many fit, what a drain and a failure do, what is bought."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml
from msgspec import convert
from msgspec.structs import replace

from builders import make_node, make_pod
from device_objects import DRIVER, exactly, gpus, made, make_claim, make_class, make_slice, using
from podium import answers
from podium.answers import WhyNot, why_not
from podium.answers.simulation import simulate
from podium.autoscaling import Autoscaler, read_node_groups
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.errors import InputError
from podium.manifests import Objects
from podium.model import Object, Pod, ResourceClaim, ResourceSlice
from podium.model.devices import ResourceClaimStatus
from podium.timeline import Timeline
from podium.workloads import expand_workloads

Fields = dict[str, Any]
TAINT = {"key": "broken", "value": "fan", "effect": "NoSchedule"}
NIC = {"name": "nic", "allowMultipleAllocations": True, "capacity": {"bw": {"value": "40G"}}}


def asked(*objects: Object, node: str = "a", **options: Any) -> WhyNot:
    """Why a pod that uses claim c does not go to a node; every suggestion, made real, sends it there."""
    cluster = Cluster.from_objects([make_class(), *objects])
    pod = make_pod("asked", resource_claims=using("c"))
    found = why_not(cluster, pod, node, **options)
    for suggestion in found.suggestions:
        changed, edited, config = suggestion.apply(cluster, pod)
        assert Scheduler(changed, config, tie_break="first").decide(edited).node == node, suggestion.text
    return found


def holding(name: str, node: str, device: str, claim: str = "") -> list[Object]:
    """A pod on a node, and its claim that has a device there."""
    claim = claim or f"of-{name}"
    pod, made_for_it = make_pod(name, node=node, resource_claims=using(claim)), make_claim(claim)
    assert isinstance(made_for_it, ResourceClaim)
    result = {"request": "r0", "driver": DRIVER, "pool": node, "device": device}
    field = {"key": "metadata.name", "operator": "In", "values": [node]}
    status = {
        "allocation": {
            "devices": {"results": [result]},
            "nodeSelector": {"nodeSelectorTerms": [{"matchFields": [field]}]},
        },
        "reservedFor": [{"resource": "pods", "name": name, "uid": pod.metadata.uid}],
    }
    return [pod, replace(made_for_it, status=convert(status, ResourceClaimStatus))]


@pytest.mark.parametrize(
    ("objects", "request_", "constraints", "expected"),
    [
        pytest.param(
            [gpus("a", 2)], exactly(count=3), [],
            "ask for 2 devices instead of 3 in request r0 of claim default/c", id="fewer",
        ),
        pytest.param(
            [gpus("a", 2), *holding("other", "a", "gpu-0")], exactly(count=2), [],
            "evict default/other (priority 0)", id="evict who has them",
        ),
        pytest.param(
            [gpus("a", 2), *holding("other", "a", "gpu-0")], exactly(allocationMode="All"), [],
            "ask for 1 device instead of all in request r0 of claim default/c", id="not all",
        ),
        pytest.param(
            [gpus("a", 1)], exactly(where=f'device.attributes["{DRIVER}"].numa == 7'), [],
            f"""drop the selector 'device.attributes["{DRIVER}"].numa == 7' in request r0 of claim default/c""",
            id="drop a selector",
        ),
        pytest.param(
            [gpus("a", 1, taints=[TAINT])], exactly(), [],
            "tolerate the device taint broken=fan:NoSchedule in request r0 of claim default/c", id="tolerate",
        ),
        pytest.param(
            [gpus("a", 1), make_class("other", "true"), make_class("small", "false")], exactly(cls="small"), [],
            "ask for class gpu in request r0 of claim default/c", id="another class",
        ),
        pytest.param(
            [gpus("a", 1), make_class("other", "true")], exactly(cls="absent"), [],
            "ask for class other in request r0 of claim default/c", id="a class that there is",
        ),
        pytest.param(
            [gpus("a", 2)], exactly(count=2), [{"matchAttribute": f"{DRIVER}/numa"}],
            f"drop the constraint matchAttribute {DRIVER}/numa of claim default/c", id="drop a constraint",
        ),
        pytest.param(
            [make_slice("a", NIC, node="a")], exactly(capacity={"requests": {"bw": "50G"}}), [],
            "ask for 40G of bw instead of 50G in request r0 of claim default/c", id="less capacity",
        ),
        pytest.param(
            [gpus("a", 1)],
            {"name": "r0", "firstAvailable": [{"name": "s", "deviceClassName": "gpu", "count": 2}]}, [],
            "ask for 1 device instead of 2 in request r0/s of claim default/c", id="an alternative",
        ),
    ],
)  # fmt: skip
def test_the_smallest_change(objects: list[Object], request_: Fields, constraints: list[Fields], expected: str) -> None:
    claim = make_claim("c", request_, constraints=constraints)

    found = asked(make_node("a"), *objects, claim, most=10)

    assert expected in [suggestion.text for suggestion in found.suggestions]


def test_two_changes_where_one_is_not_enough() -> None:
    claim = make_claim("c", exactly("r0", count=2, cls="gpu"), exactly("r1", count=2, cls="nic"))
    objects = [make_class("nic", "false"), gpus("a", 3), claim]

    found = asked(make_node("a"), *objects, most=20)

    texts = [suggestion.text for suggestion in found.suggestions]
    one = "ask for 1 device instead of 2 in request r0 of claim default/c"
    assert any(one in text and "ask for class gpu in request r1" in text for text in texts)


def test_the_devices_of_the_node_are_counted() -> None:
    claim = make_claim("c", exactly("r0", count=2, where=f'device.attributes["{DRIVER}"].numa == 0'))

    found = asked(make_node("a"), gpus("a", 4), claim, *holding("other", "a", "gpu-0"))

    (obstacle,) = found.obstacles["DynamicResources"]
    there = "4 devices on a, 1 in use, 2 other numa, 1 left"
    assert (obstacle.kind, obstacle.text) == ("device", f"r0 wants 2 of class gpu with numa 0: {there}")


def test_a_claim_that_is_in_use_elsewhere() -> None:
    nodes = [make_node("a"), make_node("b", unschedulable=True), gpus("a", 1), gpus("b", 1)]

    found = asked(*nodes, *holding("other", "b", "gpu-0", claim="c"))

    assert [suggestion.text for suggestion in found.suggestions] == ["evict default/other (priority 0)"]


def test_a_template_is_named_where_the_claim_was_made_from_one() -> None:
    pod = claiming("asked")
    cluster = Cluster.from_objects(
        expand_workloads(Objects([make_class(), make_node("a"), TEMPLATE_OF_TWO, gpus("a", 1), pod]))
    )
    (pending,) = cluster.pending.values()

    found = why_not(cluster, pending, "a")

    texts = [suggestion.text for suggestion in found.suggestions]
    assert "ask for 1 device instead of 2 in request r0 of claim template default/two" in texts


# -- how many fit, drains and failures -----------------------------------------------------------------------------

TEMPLATE_OF_TWO = made("ResourceClaimTemplate", "two", {"spec": {"devices": {"requests": [exactly(count=2)]}}})


def claiming(name: str, **fields: Any) -> Pod:
    """A pod with a claim for two devices of its own."""
    return make_pod(name, resource_claims=[{"name": "gpu", "resourceClaimTemplateName": "two"}], **fields)


def running(*nodes: str, pods: int, devices: int = 4) -> Cluster:
    """Nodes with devices, and as many pods placed that take two each."""
    objects = [make_class(), TEMPLATE_OF_TWO, *(claiming(f"p{number}", owner=OWNER) for number in range(pods))]
    for node in nodes:
        objects += [make_node(node), gpus(node, devices)]
    return simulate(Cluster.from_objects(expand_workloads(Objects(objects))), tie_break="first").cluster


OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "web"}


@pytest.mark.parametrize(("devices", "count"), [(1, 0), (4, 4), (5, 4), (6, 6)])
def test_capacity_is_what_the_devices_allow(devices: int, count: int) -> None:
    cluster = running("a", "b", pods=0, devices=devices)

    assert answers.capacity(cluster, claiming("one")).count == count


@pytest.mark.parametrize("ask", [answers.drain, answers.fail])
@pytest.mark.parametrize(("pods", "stranded"), [(1, 0), (2, 0), (3, 1), (4, 2)])
def test_pods_of_a_node_that_goes_need_devices_elsewhere(ask: Any, pods: int, stranded: int) -> None:
    cluster = running("a", "b", pods=pods)
    lost = next(node for _, node in cluster.placed())
    before = sorted(claim.name for claim in cluster.store.of(ResourceClaim) if claim.status.allocation)

    found = ask(cluster, [lost])

    on_others = [node for _, node in found.cluster.placed()]
    assert lost not in on_others
    assert len(on_others) == pods - stranded
    assert sorted(claim.name for claim in cluster.store.of(ResourceClaim) if claim.status.allocation) == before


# -- node groups with devices --------------------------------------------------------------------------------------


def test_a_pod_that_cannot_be_decided_is_named() -> None:
    claim = make_claim("c", exactly(where="device.driver"))
    cluster = Cluster.from_objects([make_class(), make_node("a"), gpus("a", 1), claim])

    with pytest.raises(InputError, match=r"pod default/web-0 cannot be decided: .* selector #0: CEL compile error"):
        answers.capacity(cluster, make_pod("web", resource_claims=using("c")))


def grown(folder: Path, number: int, devices: int, **group: Any) -> list[int]:
    """How many of so many pods with two devices each there are on each node in the end, in a cluster that can grow."""
    slices = [{"driver": DRIVER, "devices": [{"name": f"gpu-{n}"} for n in range(devices)]}] if devices else []
    template = {"status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}}}
    file = folder / "groups.yaml"
    described = {"name": "gpu", "maxSize": 10, "template": template, "resourceSlices": slices, **group}
    file.write_text(yaml.safe_dump({"groups": [described]}))
    pods = [claiming(f"p{each}") for each in range(number)]
    timeline = Timeline([make_node("closed", unschedulable=True), make_class(), TEMPLATE_OF_TWO, *pods])
    Autoscaler(timeline, read_node_groups(str(file)))
    timeline.run(3600)
    return sorted(Counter(node for _, node in timeline.world.loop.cluster.placed()).values())


@pytest.mark.parametrize(
    ("pods", "devices", "expected"),
    [
        (3, 4, [1, 2]),
        (2, 3, [1, 1]),
        (1, 1, []),
        (1, 0, []),
    ],
    ids=["two pods to a node", "one pod to a node", "too few devices on any node", "no devices"],
)
def test_a_group_grows_for_devices(tmp_path: Path, pods: int, devices: int, expected: list[int]) -> None:
    assert grown(tmp_path, pods, devices) == expected


@pytest.mark.parametrize("slices", ["text", [3], [{"driver": "d", "devices": [{"name": "x"}, {"name": "x"}]}]])
def test_slices_of_a_group_that_cannot_be(tmp_path: Path, slices: Any) -> None:
    with pytest.raises(InputError, match="resourceSlices"):
        grown(tmp_path, 1, 1, resourceSlices=slices)


def test_nodes_whose_devices_are_not_needed_any_more_go_with_their_slices(tmp_path: Path) -> None:
    slices = [{"driver": DRIVER, "devices": [{"name": "gpu-0"}, {"name": "gpu-1"}]}]
    template = {"status": {"allocatable": {"cpu": "64", "memory": "256Gi", "pods": "110"}}}
    file = tmp_path / "groups.yaml"
    groups = [{"name": "gpu", "maxSize": 3, "template": template, "resourceSlices": slices}]
    file.write_text(yaml.safe_dump({"groups": groups, "scaleDownUnneededTime": "1m", "scaleDownDelayAfterAdd": "1m"}))
    claims = [{"name": "gpu", "resourceClaimTemplateName": "two"}]
    spec = {"containers": [{"name": "main", "image": "app"}], "resourceClaims": claims}
    document = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p"}, "spec": spec}
    events = [{"time": 0, "event": "add", "object": document, "lifetime": 300}]
    timeline = Timeline([make_node("closed", unschedulable=True), make_class(), TEMPLATE_OF_TWO], events)
    Autoscaler(timeline, read_node_groups(str(file)))

    timeline.run(200)
    assert len(list(timeline.world.loop.cluster.store.of(ResourceSlice))) == 1
    timeline.run(7200)
    assert list(timeline.world.loop.cluster.store.of(ResourceSlice)) == []
