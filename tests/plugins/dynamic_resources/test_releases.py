"""Devices release by release: what the search, the pools and the scores of each make of the same objects."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_config, make_node, make_pod, scores, with_args
from device_objects import DRIVER, chosen, decided, exactly, gpus, make_claim, make_class, make_slice, using
from podium.cluster import Cluster
from podium.engine import Decision, Scheduler
from podium.engine.release import crashing_resources, release_of
from podium.model import Node, Object, ResourceClaim
from podium.model.devices import (
    AllocationResult,
    DeviceAllocationResult,
    DeviceRequestAllocationResult,
    ResourceClaimStatus,
)
from podium.rules import rules_of

TWO_SLICES = {"name": "p", "generation": 1, "resourceSliceCount": 2}
NONE = "cannot allocate all claims"
BALANCED = "NodeResourcesBalancedAllocation"
Fields = dict[str, Any]


def either(*alternatives: Fields) -> Fields:
    """A request with alternatives."""
    named = [{"name": f"s{number}", "deviceClassName": "gpu", **each} for number, each in enumerate(alternatives)]
    return {"name": "r0", "firstAvailable": named}


def outcome(decision: Decision) -> str:
    """Error, the devices of the claim c, or why there are none."""
    if decision.error:
        return "error"
    return " ".join(chosen(decision).get("c", ())) or next(iter(decision.rejected.values())).reasons[0]


INCOMPLETE = [make_slice("s1", "gpu-0", node="a", pool=TWO_SLICES)]
ELSEWHERE = [*INCOMPLETE, make_slice("s2", "gpu-9", node="b", pool=TWO_SLICES)]
INVALID = [make_slice(name, "gpu-0", node="a", pool=TWO_SLICES) for name in ("s1", "s2")]
TAINTED = gpus("a", 1, taints=[{"key": "broken", "effect": "NoSchedule"}])
PARTITIONED = gpus("a", 1, consumesCounters=[{"counterSet": "x", "counters": {"m": {"value": "1"}}}])
COUNTERS = make_slice("x", node="a", sharedCounters=[{"name": "x", "counters": {"m": {"value": "1"}}}], pool=TWO_SLICES)
WITH_GROUPS = make_slice(
    "g",
    {
        "name": "gpu-0",
        "consumesCounters": [{"counterSet": "x", "counters": {"m": {"value": "1"}}, "compatibilityGroups": ["one"]}],
    },
    node="a",
    pool=TWO_SLICES,
)
LISTS = gpus("a", 2, attributes={"nets": {"strings": ["red", "blue"]}})
NETS = f'device.attributes["{DRIVER}"].nets'
BINDING = gpus("a", 1, bindingConditions=["Ready"], bindingFailureConditions=["Failed"])


@pytest.mark.parametrize(
    ("objects", "request_", "expected"),
    [
        pytest.param(
            [gpus("a", 3)],
            either({"count": 4}, {"allocationMode": "All"}),
            {"v1.34": NONE, "v1.35": NONE, "v1.36": "gpu-0 gpu-1 gpu-2"},
            id="an alternative for all devices, while the first wants more than there are",
        ),
        pytest.param(
            [gpus("a", 3)],
            either(
                {"selectors": [{"cel": {"expression": "false"}}]},
                {"allocationMode": "All"},
            ),
            {"v1.34": "gpu-0", "v1.35": "gpu-0", "v1.36": "gpu-0 gpu-1 gpu-2", "v1.37": "gpu-0 gpu-1 gpu-2"},
            id="an alternative for all devices, while the first wants one",
        ),
        pytest.param(
            [gpus("a", 1, allowMultipleAllocations=True)],
            exactly(selectors=[{"cel": {"expression": "device.allowMultipleAllocations"}}]),
            {"v1.34": NONE, "v1.35": NONE, "v1.36": "gpu-0", "v1.37": "gpu-0"},
            id="an expression about devices that several claims may have",
        ),
        pytest.param(
            INCOMPLETE,
            exactly(),
            {"v1.34": "gpu-0", "v1.35": NONE, "v1.37": NONE},
            id="a pool that is not complete",
        ),
        pytest.param(
            INCOMPLETE,
            exactly(allocationMode="All"),
            {"v1.34": "error", "v1.35": "error", "v1.37": "error"},
            id="all devices of a pool that is not complete",
        ),
        pytest.param(
            ELSEWHERE,
            exactly(allocationMode="All"),
            {"v1.34": "error", "v1.35": "gpu-0", "v1.37": "gpu-0"},
            id="all devices of a pool that has a slice for another node",
        ),
        pytest.param(
            INVALID,
            exactly(),
            {
                "v1.34": "error",
                "v1.35": "invalid resource pools were encountered",
                "v1.37": "invalid resource pools were encountered",
            },
            id="a pool with a name twice",
        ),
        pytest.param(
            [make_slice("a0", "gpu-1", node="a"), *INVALID],
            exactly(),
            {"v1.34": "gpu-1", "v1.35": "gpu-1", "v1.37": "gpu-1"},
            id="another pool comes before the invalid one",
        ),
        pytest.param(
            [TAINTED],
            exactly(),
            {"v1.34": "gpu-0", "v1.35": "gpu-0", "v1.36": NONE},
            id="taints",
        ),
        pytest.param(
            [PARTITIONED, COUNTERS],
            exactly(),
            {"v1.35": NONE},
            id="a device that takes from counters",
        ),
        pytest.param(
            [gpus("a", 1)],
            exactly(capacity={"requests": {"memory": "1Gi"}}),
            {"v1.34": "gpu-0", "v1.35": "gpu-0", "v1.36": NONE},
            id="capacity that no device has",
        ),
        pytest.param([BINDING], exactly(), {"v1.35": NONE, "v1.36": "gpu-0"}, id="conditions"),
        pytest.param(
            [WITH_GROUPS, COUNTERS],
            exactly(),
            {"v1.37": NONE},
            id="compatibility groups hide their slice",
        ),
        pytest.param(
            [gpus("a", 1)],
            exactly(derivedAttributes=[{"name": "x"}]),
            {"v1.36": "gpu-0", "v1.37": "error"},
            id="derived attributes",
        ),
        pytest.param(
            [LISTS], exactly(where=f'{NETS}.exists(n, n == "red")'), {"v1.36": "error", "v1.37": "gpu-0"}, id="lists"
        ),
        pytest.param([LISTS], exactly(where="`device`.driver != ''"), {"v1.36": "error"}, id="names in backquotes"),
        pytest.param([gpus("a", 2)], exactly(adminAccess=True), {"v1.34": "gpu-0", "v1.37": "gpu-0"}, id="admin"),
    ],
)
def test_what_each_release_finds(objects: list[Object], request_: Fields, expected: dict[str, str]) -> None:
    found = {
        release: outcome(decided(make_node("a"), *objects, make_claim("c", request_), release=release))
        for release in expected
    }

    assert found == expected


@pytest.mark.parametrize("constraint", ["matchAttribute", "distinctAttribute"])
@pytest.mark.parametrize("release", ["v1.36", "v1.37"])
def test_lists_are_not_compared(constraint: str, release: str) -> None:
    """The first device may have any value; no second one goes with a list."""
    for count, fits in ((1, True), (2, False)):
        claim = make_claim("c", exactly(count=count), constraints=[{constraint: f"{DRIVER}/nets"}])
        assert bool(decided(make_node("a"), LISTS, claim, release=release).node) is fits


@pytest.mark.parametrize(("release", "error"), [("v1.34", True), ("v1.35", True), ("v1.36", False)])
def test_distinct_attributes_are_unknown_before_v1_36(release: str, error: bool) -> None:
    claim = make_claim("c", exactly(count=2), constraints=[{"distinctAttribute": f"{DRIVER}/numa"}])

    assert ("constraint #0: empty" in decided(make_node("a"), gpus("a", 2), claim, release=release).error) is error


@pytest.mark.parametrize(
    ("gate", "request_", "said"),
    [
        ("DRAAdminAccess", exactly(adminAccess=False), "request r0: admin access is requested, but the feature is"),
        ("DRAPrioritizedList", either({}), "resource claim default/c, request r0: has subrequests, but"),
    ],
)
def test_gates_that_v1_35_can_switch_off(gate: str, request_: Fields, said: str) -> None:
    release = release_of("v1.35").with_feature_gates({gate: False})
    cluster = Cluster.from_objects([make_node("a"), make_class(), gpus("a", 1), make_claim("c", request_)])

    decision = Scheduler(cluster, release=release).decide(make_pod(resource_claims=using("c")))

    assert said in decision.error + decision.message


@pytest.mark.parametrize(
    ("kind", "request_"),
    [
        ("request r0", exactly(capacity={})),
        ("subrequest s0", either({"capacity": {"requests": {"memory": "1"}}})),
    ],
)
def test_capacity_requests_where_capacity_is_switched_off(kind: str, request_: Fields) -> None:
    release = release_of("v1.37").with_feature_gates({"DRAConsumableCapacity": False})
    cluster = Cluster.from_objects([make_node("a"), make_class(), gpus("a", 1), make_claim("c", request_)])

    decision = Scheduler(cluster, release=release).decide(make_pod(resource_claims=using("c")))

    assert f"claim default/c, {kind}: has capacity requests" in decision.error


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("v1.36", "claim default/c: number of requested devices 40 exceeds the claim limit of 32"),
        ("v1.37", "claim default/c, request r1: adding 20 devices exceeds the claim limit of 32, with 20 already"),
    ],
)
def test_too_many_devices(release: str, said: str) -> None:
    claim = make_claim("c", exactly("r0", count=20), exactly("r1", count=20))

    assert said in decided(make_node("a"), gpus("a", 1), claim, release=release).error


@pytest.mark.parametrize(("release", "where"), [("v1.36", ""), ("v1.37", f" on device {DRIVER}/a/gpu-0")])
def test_errors_name_the_device(release: str, where: str) -> None:
    claim = make_claim("c", exactly(where=f'device.attributes["{DRIVER}"].absent == 1'))

    said = decided(make_node("a"), gpus("a", 1), claim, release=release).error

    assert f"claim default/c: selector #0{where}: CEL runtime error: no such key: absent" in said
    assert ("consider using CEL optional chaining" in said) is bool(where)


@pytest.mark.parametrize(("release", "is_error"), [("v1.35", False), ("v1.36", True)])
def test_a_search_that_takes_too_long(release: str, is_error: bool) -> None:
    config = make_config({"pluginConfig": [{"name": "DynamicResources", "args": {"filterTimeout": "1ns"}}]})

    decision = decided(make_node("a"), gpus("a", 1), make_claim("c"), config=config, release=release)

    assert ("node a: timed out trying to allocate devices" in decision.error) is is_error
    assert is_error or decision.rejected["a"].reasons == ("timed out trying to allocate devices",)


@pytest.mark.parametrize(("features", "feasible"), [([], ("b",)), (["DRAOptionalNodeOperations"], ("a", "b"))])
def test_skipped_operations_need_a_node_that_declares_it(features: list[str], feasible: tuple[str, ...]) -> None:
    nodes = [make_node(name) for name in ("a", "b")]
    declared = [features, ["DRAOptionalNodeOperations"]]
    nodes = [
        replace(node, status=replace(node.status, declared_features=each))
        for node, each in zip(nodes, declared, strict=True)
    ]
    claim = make_claim("c")
    assert isinstance(claim, ResourceClaim)
    result = DeviceRequestAllocationResult(
        request="r0", driver=DRIVER, pool="a", device="gpu-0", skip_node_operations=["NodePrepareResources"]
    )
    status = ResourceClaimStatus(allocation=AllocationResult(devices=DeviceAllocationResult(results=[result])))

    assert decided(*nodes, replace(claim, status=status)).feasible == feasible
    assert decided(*nodes, replace(claim, status=status), release="v1.36").feasible == ("a", "b")


def test_a_claim_left_behind_without_requests_is_not_in_the_way() -> None:
    annotations = {"resource.kubernetes.io/extended-resource-claim": "true"}
    for requests, node in (([], "a"), ([exactly()], None)):
        owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
        left = make_claim("left", *requests, annotations=annotations, ownerReferences=[owner])
        assert isinstance(left, ResourceClaim)
        if not requests:
            left = replace(left, spec=type(left.spec)())
        cls = make_class("ext", extendedResourceName="example.com/gpu")
        asking = make_pod("p", requests={"example.com/gpu": 1})
        asking = replace(asking, metadata=replace(asking.metadata, uid="u"))
        scheduler = Scheduler(Cluster.from_objects([make_node("a"), cls, gpus("a", 1), left]), tie_break="first")
        assert scheduler.decide(asking).node == node


# -- scores of resources that devices serve ------------------------------------------------------------------------


def extended(config: Fields, *, selectors: tuple[str, ...] = ()) -> Decision:
    """A pod that asks for 1 of 4 cpus and 1 device: a has 4 devices, 1 of them in use; b a device plugin with 4."""
    cls = make_class("ext", *selectors, extendedResourceName="example.com/gpu")
    nodes: list[Node] = [make_node("a", cpu="4", memory="8Gi"), make_node("b", cpu="4", memory="8Gi", gpu=4)]
    cluster = Cluster.from_objects([*nodes, cls, make_class(), gpus("a", 4), make_claim("held")])
    scheduler = Scheduler(cluster, config, tie_break="first")
    assert scheduler.place(make_pod("holder", resource_claims=using("held"))).node == "a"
    return scheduler.decide(make_pod("p", requests={"cpu": "1", "example.com/gpu": 1}))


COUNTED = [{"name": "cpu", "weight": 1}, {"name": "example.com/gpu", "weight": 1}]


@pytest.mark.parametrize("selectors", [(), ("true",)], ids=["", "with selectors, where the real one crashes"])
def test_balance_counts_devices(selectors: tuple[str, ...]) -> None:
    decision = extended(with_args(BALANCED, resources=COUNTED), selectors=selectors)

    # a: 0, 1/4 -> 1/4, 2/4: 87 -> 87. b: 0, 0 -> 1/4, 1/4: 100 -> 100.
    assert scores(decision, BALANCED) == {"a": 75, "b": 75}


def test_balance_counts_devices_that_unbalance() -> None:
    decision = extended(with_args(BALANCED, resources=[*COUNTED, {"name": "memory", "weight": 1}]))

    # a: 0, 1/4, 0 -> 1/4, 2/4, 0: 88 -> 79. b: 0, 0, 0 -> 1/4, 1/4, 0: 100 -> 88.
    assert scores(decision, BALANCED) == {"a": 70, "b": 69}


@pytest.mark.parametrize(
    ("disabled", "expected"), [([], {"a": 50, "b": 75}), (["NodeResourcesFit"], {"a": 50, "b": 75})]
)
def test_fit_counts_devices_also_where_it_does_not_filter(disabled: list[str], expected: dict[str, int]) -> None:
    strategy = {"type": "LeastAllocated", "resources": [{"name": "example.com/gpu", "weight": 1}]}
    profile = {
        "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": strategy}}],
        "plugins": {point: {"disabled": [{"name": name} for name in disabled]} for point in ("preFilter", "filter")},
    }

    assert scores(extended(make_config(profile)), "NodeResourcesFit") == expected


def test_selectors_of_a_class_that_balance_counts_are_warned_of() -> None:
    config = with_args(BALANCED, resources=COUNTED)
    for selectors, warned in (((), 0), (("true",), 1)):
        cls = make_class("ext", *selectors, extendedResourceName="example.com/gpu")
        for release, known in (("v1.35", 0), ("v1.37", warned)):
            rules = rules_of(release)
            setup = release_of(release).set_up(config).config
            assert len(crashing_resources([cls], setup, rules)) == known
