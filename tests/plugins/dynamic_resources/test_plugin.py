"""DynamicResources: the checks before filtering, what is said of nodes, and what Reserve leaves behind."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import decide, make_config, make_node, make_pod, scores
from device_objects import DRIVER, chosen, decided, exactly, gpus, made, make_claim, make_class, make_slice, using
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.model import NodeSelector, NodeSelectorTerm, ResourceClaim, SelectorRequirement
from podium.model.devices import AllocationResult, DeviceClass, ResourceClaimConsumerReference, ResourceClaimStatus
from podium.plugins import IN_TREE
from podium.plugins.dynamic_resources import DynamicResources
from podium.rules import NEWEST_RULES

NUMA = f"{DRIVER}/numa"
EXT = "deviceclass.resource.kubernetes.io/ext"


def test_a_pod_without_claims_is_let_through_and_scores_nothing() -> None:
    decision = decide([make_node("a"), make_node("b")], make_pod())

    assert decision.feasible == ("a", "b")
    assert scores(decision, "DynamicResources") == {"a": 0, "b": 0}


def test_a_pod_goes_where_its_devices_are() -> None:
    decision = decided(make_node("a"), make_node("b"), gpus("b", 2), make_claim("c", exactly(count=2)))

    assert decision.node == "b"
    assert chosen(decision) == {"c": ["gpu-0", "gpu-1"]}
    assert decision.rejected["a"].reasons == ("cannot allocate all claims",)


TEMPLATE = [{"name": "gpu", "resourceClaimTemplateName": "t"}]


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        (TEMPLATE, "ResourceClaim not created yet"),
        (using("absent"), 'could not find ResourceClaim "default/absent"'),
        (using("elsewhere"), 'could not find ResourceClaim "default/elsewhere"'),
        (using("going"), 'resourceclaim "going" is being deleted'),
    ],
    ids=["not made yet", "absent", "of another namespace", "on its way out"],
)
def test_claims_that_keep_a_pod_out_of_the_queue(claims: list[dict[str, Any]], expected: str) -> None:
    going = make_claim("going", deletionTimestamp="2026-01-01T00:00:00Z")
    elsewhere = make_claim("elsewhere", namespace="other")
    cluster = Cluster.from_objects([make_node("a"), make_class(), going, elsewhere])

    decision = Scheduler(cluster).decide(make_pod(resource_claims=claims))

    assert expected in decision.error


def test_a_class_that_does_not_exist_rejects_the_pod_as_a_whole() -> None:
    decision = decided(make_node("a"), make_claim("c", exactly(cls="none")))

    assert decision.message == "0/1 nodes are available: request r0: device class none does not exist."


@pytest.mark.parametrize(
    "expression",
    ["device.", f'device.attributes["{DRIVER}"].absent == 1', '"text"'],
    ids=["does not compile", "fails on a device", "is no bool"],
)
def test_a_broken_expression_is_an_error_of_the_pod(expression: str) -> None:
    decision = decided(make_node("a"), gpus("a", 1), make_claim("c", exactly(where=expression)))

    assert "claim default/c: selector #0" in decision.error


def test_a_broken_expression_goes_unnoticed_where_there_is_no_device() -> None:
    assert "cannot allocate" in decided(make_node("a"), make_claim("c", exactly(where="device."))).message


@pytest.mark.parametrize(
    ("constraint", "devices"), [("matchAttribute", "gpu-0 gpu-2"), ("distinctAttribute", "gpu-0 gpu-1")]
)
def test_constraints(constraint: str, devices: str) -> None:
    claim = make_claim("c", exactly(count=2), constraints=[{constraint: NUMA}])

    assert chosen(decided(make_node("a"), gpus("a", 4), claim)) == {"c": devices.split()}


@pytest.mark.parametrize(("release", "fits"), [("v1.36", True), ("v1.37", False)])
def test_distinct_values_among_three_devices_with_two_values(release: str, fits: bool) -> None:
    claim = make_claim("c", exactly(count=3), constraints=[{"distinctAttribute": NUMA}])

    assert bool(decided(make_node("a"), gpus("a", 4), claim, release=release).node) is fits


def test_the_first_alternative_that_works_is_taken_and_scores_most() -> None:
    first = {"name": "two", "deviceClassName": "gpu", "count": 2}
    claim = make_claim("c", {"name": "r0", "firstAvailable": [first, {"name": "one", "deviceClassName": "gpu"}]})

    decision = decided(make_node("a"), make_node("b"), gpus("a", 1), gpus("b", 2), claim)

    assert scores(decision, "DynamicResources") == {"a": 87, "b": 100}
    assert decision.details["allocations"]["c"][0]["request"] == "r0/two"


def test_partitions_share_counters() -> None:
    counters = make_slice(
        "counters",
        node="a",
        sharedCounters=[{"name": "gpu-0", "counters": {"memory": {"value": "80Gi"}}}],
        pool={"name": "a", "generation": 1, "resourceSliceCount": 2},
    )
    parts = make_slice(
        "parts",
        *(
            {"name": name, "consumesCounters": [{"counterSet": "gpu-0", "counters": {"memory": {"value": size}}}]}
            for name, size in (("whole", "80Gi"), ("half-0", "40Gi"), ("half-1", "40Gi"))
        ),
        node="a",
        pool={"name": "a", "generation": 1, "resourceSliceCount": 2},
    )

    decision = decided(make_node("a"), counters, parts, make_claim("c", exactly(count=2)))

    assert chosen(decision) == {"c": ["half-0", "half-1"]}


def test_claims_share_the_capacity_of_a_device() -> None:
    policy = {"default": "10G", "validRange": {"min": "10G", "step": "10G"}}
    nic = {
        "name": "nic",
        "allowMultipleAllocations": True,
        "capacity": {"bw": {"value": "40G", "requestPolicy": policy}},
    }
    asked = exactly(capacity={"requests": {"bw": "15G"}})
    objects = [make_node("a"), make_slice("a", nic, node="a"), *(make_claim(f"c{n}", asked) for n in range(3))]
    cluster = Cluster.from_objects([make_class(), *objects])
    scheduler = Scheduler(cluster, tie_break="first")

    decisions = [scheduler.place(make_pod(f"p{n}", resource_claims=using(f"c{n}"))) for n in range(3)]

    assert [decision.node for decision in decisions] == ["a", "a", None]
    (result,) = decisions[0].details["allocations"]["c0"]
    assert result["shared"]
    assert result["consumedCapacity"] == {"bw": "20G"}


@pytest.mark.parametrize(("tolerated", "node"), [(False, None), (True, "a")])
def test_taints_of_devices(tolerated: bool, node: str | None) -> None:
    taints = [{"key": "broken", "effect": "NoSchedule"}]
    tolerations: dict[str, Any] = {"tolerations": [{"key": "broken", "operator": "Exists"}]} if tolerated else {}

    decision = decided(make_node("a"), gpus("a", 1, taints=taints), make_claim("c", exactly(**tolerations)))

    assert decision.node == node


@pytest.mark.parametrize(("release", "node"), [("v1.36", "a"), ("v1.37", None)])
def test_taint_rules_count_since_v1_37(release: str, node: str | None) -> None:
    taint = {"key": "broken", "effect": "NoExecute"}
    rule = made("DeviceTaintRule", "rule", {"deviceSelector": {"driver": DRIVER}, "taint": taint})

    assert decided(make_node("a"), gpus("a", 1), rule, make_claim("c"), release=release).node == node


def test_a_release_without_devices_ignores_claims() -> None:
    assert decided(make_node("a"), make_claim("c"), release="v1.31").node == "a"


def test_a_search_that_takes_too_long_is_an_error() -> None:
    config = make_config({"pluginConfig": [{"name": "DynamicResources", "args": {"filterTimeout": "1ns"}}]})

    decision = decided(make_node("a"), gpus("a", 1), make_claim("c"), config=config)

    assert "timed out trying to allocate devices" in decision.error


def test_more_claims_than_calls_can_be_nested() -> None:
    names = tuple(f"c{number}" for number in range(400))
    claims = [make_claim(name, exactly(count=2, adminAccess=True)) for name in names]

    assert decided(make_node("a"), gpus("a", 2), *claims, claims=names).node == "a"


def test_an_older_generation_is_dropped_only_where_the_pool_is_not_whole() -> None:
    old = make_slice("old", "gpu-0", node="a", pool={"name": "p", "generation": 1, "resourceSliceCount": 1})
    new = make_slice("new", "gpu-1", node="b", pool={"name": "p", "generation": 2, "resourceSliceCount": 1})

    assert decided(make_node("a"), make_node("b"), old, new, make_claim("c")).feasible == ("a", "b")


@pytest.mark.parametrize(
    ("mode", "said"),
    [("ExactCount", "invalid resource pools were encountered"), ("All", "is currently invalid")],
)
def test_a_pool_with_one_name_twice_is_invalid(mode: str, said: str) -> None:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 2}
    slices = [make_slice(name, "gpu-0", node="a", pool=pool) for name in ("one", "two")]

    decision = decided(make_node("a"), *slices, make_claim("c", exactly(allocationMode=mode)))

    assert said in decision.error + decision.message


def test_extended_resources_are_left_to_device_classes() -> None:
    cls = make_class("ext", extendedResourceName="example.com/gpu")
    cluster = Cluster.from_objects([make_node("a"), make_node("b"), cls, gpus("b", 1)])
    scheduler = Scheduler(cluster, tie_break="first")

    decision = scheduler.place(make_pod("p", requests={"example.com/gpu": "1"}))

    assert decision.node == "b"
    assert decision.details["requestMappings"] == [
        {"container": "main", "resource": "example.com/gpu", "request": "container-0-request-0"}
    ]
    assert decision.rejected["a"].plugin == "DynamicResources"


@pytest.mark.parametrize(
    ("rival", "created", "goes"),
    [
        ("a", "", False),
        ("z", "", True),
        ("a", "2025", True),
        ("a", "2026", False),
        ("a", "2027", False),
        ("z", "2027", True),
    ],
)
def test_a_class_that_comes_too_late_for_its_resource_stands_for_nothing(rival: str, created: str, goes: bool) -> None:
    """Recorded from v1.36 and v1.37: classes are read by name, and one that is newer than those before takes over."""
    classes = [
        replace(
            each, metadata=replace(each.metadata, creation_timestamp=f"{year}-01-01T00:00:00Z" if created else None)
        )
        for name, year in (("ext", "2026"), (rival, created))
        if isinstance(each := make_class(name, extendedResourceName="example.com/gpu"), DeviceClass)
    ]
    cluster = Cluster.from_objects([make_node("n"), *classes, gpus("n", 1)])

    decision = Scheduler(cluster).decide(make_pod("p", requests={EXT: "1"}))

    assert decision.feasible == (("n",) if goes else ())
    assert goes or decision.rejected["n"].reasons == (f"Insufficient {EXT}",)


def test_postfilter_speaks_up_before_v1_37() -> None:
    objects = [make_node("a"), make_claim("c")]

    said = {release: decided(*objects, release=release, preempt=True).message for release in ("v1.36", "v1.37")}

    assert "still not schedulable" in said["v1.36"]
    assert "still not schedulable" not in said["v1.37"]


@pytest.mark.parametrize(
    ("reserved_for", "said"),
    [([], "deallocation of ResourceClaim completed"), (["someone"], "still not schedulable")],
)
def test_postfilter_takes_devices_from_a_claim_that_nobody_has(reserved_for: list[str], said: str) -> None:
    selector = NodeSelector(
        node_selector_terms=[
            NodeSelectorTerm(match_fields=[SelectorRequirement(key="metadata.name", operator="In", values=["gone"])])
        ]
    )
    consumers = [ResourceClaimConsumerReference(resource="pods", name=name, uid=name) for name in reserved_for]
    claim = make_claim("c")
    assert isinstance(claim, ResourceClaim)
    status = ResourceClaimStatus(allocation=AllocationResult(node_selector=selector), reserved_for=consumers)

    decision = decided(make_node("a"), replace(claim, status=status), release="v1.36", preempt=True)

    assert decision.rejected["a"].reasons == ("resourceclaim not available on the node",)
    assert said in decision.message


def test_it_can_be_disabled() -> None:
    config = make_config({"plugins": {"multiPoint": {"disabled": [{"name": "DynamicResources"}]}}})

    assert decided(make_node("a"), make_claim("c"), config=config).node == "a"


def test_without_its_prefilter_its_filter_refuses() -> None:
    config = make_config({"plugins": {"preFilter": {"disabled": [{"name": "DynamicResources"}]}}})

    assert "it needs preFilter" in decided(make_node("a"), make_claim("c"), config=config).error


@pytest.mark.parametrize("off", [("filter",), ("filter", "reserve")])
def test_without_its_filter_nothing_is_scored_or_reserved(off: tuple[str, ...]) -> None:
    config = make_config({"plugins": {point: {"disabled": [{"name": "DynamicResources"}]} for point in off}})
    pod = make_pod("p", resource_claims=using("c"))
    cluster = Cluster.from_objects([make_node("a"), make_node("b"), make_class(), gpus("a", 1), make_claim("c")])

    decision = Scheduler(cluster, config).place(pod)

    assert ("claim allocation not found for node" in decision.error) is ("reserve" not in off)
    assert "reserve" not in off or scores(decision, "DynamicResources") == {"a": 0, "b": 0}


def test_its_postfilter_fails_without_its_prefilter() -> None:
    config = make_config({"plugins": {"preFilter": {"disabled": [{"name": "DynamicResources"}]}}})
    cluster = Cluster.from_objects([make_node("a", cpu="1")])

    decision = Scheduler(cluster, config).decide(make_pod("p", requests={"cpu": "2"}), preempt=True)

    assert decision.message == "0/1 nodes are available: 1 Insufficient cpu. not found"


def test_it_serves_the_points_that_configurations_may_name() -> None:
    served = "preEnqueue preFilter filter postFilter podGroupPostFilter score reserve preBind"

    assert IN_TREE.points_in(NEWEST_RULES)[DynamicResources.name] == set(served.split())


@pytest.mark.parametrize(
    ("name", "args"),
    [("NodeResourcesFit", {}), ("NodeResourcesBalancedAllocation", {"resources": [{"name": EXT}, {"name": "cpu"}]})],
)
def test_pods_with_devices_are_scored_without_pre_score(name: str, args: dict[str, Any]) -> None:
    objects = [make_node("a"), make_node("b", cpu="32"), make_class("ext"), gpus("a", 1), gpus("b", 1)]
    pod = make_pod("p", requests={"cpu": "1", EXT: "1"})
    profile = {"pluginConfig": [{"name": name, "args": args}]}
    without = {**profile, "plugins": {"preScore": {"disabled": [{"name": name}]}}}

    decisions = [Scheduler(Cluster.from_objects(objects), make_config(each)).decide(pod) for each in (profile, without)]

    assert not decisions[1].error
    assert scores(decisions[1], name) == scores(decisions[0], name)
