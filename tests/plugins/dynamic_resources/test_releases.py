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
from podium.errors import ConfigError
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
PARTITIONED = make_slice(
    "p",
    *(
        {"name": name, "consumesCounters": [{"counterSet": "x", "counters": {"m": {"value": "1"}}}]}
        for name in ("gpu-0", "gpu-1")
    ),
    node="a",
    pool=TWO_SLICES,
)
ON_A = {"name": "gpu-0", "nodeName": "a"}
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
            exactly(count=2),
            {"v1.34": "gpu-0 gpu-1", "v1.35": "gpu-0 gpu-1", "v1.36": NONE, "v1.37": NONE},
            id="devices that take from counters",
        ),
        pytest.param(
            [make_slice("s1", ON_A, perDeviceNodeSelection=True)],
            exactly(),
            {"v1.34": NONE, "v1.35": NONE, "v1.36": "gpu-0", "v1.37": "gpu-0"},
            id="a slice whose devices say which node they are for",
        ),
        pytest.param(
            [
                make_slice("s1", ON_A, perDeviceNodeSelection=True, pool=TWO_SLICES),
                make_slice("s2", "gpu-1", node="a", pool=TWO_SLICES),
            ],
            exactly(allocationMode="All"),
            {"v1.35": "error", "v1.36": "gpu-0 gpu-1"},
            id="a pool that lacks a slice that is refused",
        ),
        pytest.param(
            [gpus("a", 1)],
            exactly(capacity={"requests": {"memory": "1Gi"}}),
            {"v1.34": "gpu-0", "v1.35": "gpu-0", "v1.36": NONE},
            id="capacity that no device has",
        ),
        pytest.param(
            [BINDING, make_slice("b", "gpu-9", node="a")],
            exactly(),
            {"v1.34": "gpu-0", "v1.35": "gpu-0", "v1.36": "gpu-9", "v1.37": "gpu-9"},
            id="devices with conditions come last",
        ),
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


# -- fields that the API server drops ------------------------------------------------------------------------------

DISTINCT = [{"distinctAttribute": f"{DRIVER}/numa"}]


@pytest.mark.parametrize(
    ("release", "expected"),
    [("v1.34", "gpu-0 gpu-2"), ("v1.35", "error"), ("v1.36", NONE), ("v1.37", NONE)],
)
def test_distinct_attributes(release: str, expected: str) -> None:
    """v1.34 forgets to drop the field, and then only looks whether devices have the attribute."""
    first, third = ({"name": name, "attributes": {"numa": {"int": 0}}} for name in ("gpu-0", "gpu-2"))
    slice_ = make_slice("a", first, "gpu-1", third, node="a")
    decision = decided(make_node("a"), slice_, make_claim("c", exactly(count=2), constraints=DISTINCT), release=release)

    assert outcome(decision) == expected
    assert ("v1.35 drops distinctAttribute of constraint 0" in decision.error) is (expected == "error")


def switched_off(gates: str, *objects: Object, release: str) -> Decision:
    """The decision about a pod that uses the claim c, with a few feature gates off."""
    switched = release_of(release).with_feature_gates(dict.fromkeys(gates.split(), False))
    cluster = Cluster.from_objects([make_node("a"), make_class(), *objects])
    return Scheduler(cluster, release=switched).decide(make_pod(resource_claims=using("c")))


STEPS = {"memory": {"value": "8", "requestPolicy": {"validRange": {"min": "4", "step": "4"}}}}
SHARED = gpus("a", 2, allowMultipleAllocations=True, capacity=STEPS)


@pytest.mark.parametrize(
    ("gates", "slice_", "request_", "on", "off"),
    [
        pytest.param("DRADeviceTaints DRADeviceTaintRules", TAINTED, exactly(), NONE, "gpu-0", id="taints"),
        pytest.param(
            "DRAConsumableCapacity",
            SHARED,
            exactly(capacity={"requests": {"memory": "9"}}),
            NONE,
            "gpu-0",
            id="capacity requests",
        ),
        pytest.param(
            "DRAConsumableCapacity",
            SHARED,
            either({"capacity": {"requests": {"memory": "9"}}, "count": 2}, {}),
            "gpu-0",
            "gpu-0 gpu-1",
            id="capacity requests of alternatives",
        ),
        pytest.param(
            "DRAConsumableCapacity",
            SHARED,
            exactly(where="!device.allowMultipleAllocations"),
            NONE,
            "gpu-0",
            id="devices that several claims may have",
        ),
    ],
)
@pytest.mark.parametrize("release", ["v1.36", "v1.37"])
def test_fields_are_dropped_where_their_gate_is_off(
    release: str, gates: str, slice_: Object, request_: Fields, on: str, off: str
) -> None:
    found = [outcome(switched_off(each, slice_, make_claim("c", request_), release=release)) for each in ("", gates)]

    assert found == [on, off]


@pytest.mark.parametrize(("gates", "is_bound"), [("", True), ("DRADeviceBindingConditions", False)])
def test_devices_do_not_bind_to_the_node_where_conditions_are_off(gates: str, is_bound: bool) -> None:
    slice_ = make_slice("x", {"name": "gpu-0", "bindsToNode": True}, allNodes=True)
    decision = switched_off(gates, slice_, make_claim("c"), release="v1.37")

    assert ("c" in decision.details.get("nodeSelectors", {})) is is_bound


@pytest.mark.parametrize("release", ["v1.34", "v1.35"])
def test_administration_is_dropped_where_it_is_off(release: str) -> None:
    """So the request may not have the device that is in use, and the one for administration counts as in use."""
    held = DeviceRequestAllocationResult(request="r0", driver=DRIVER, pool="a", device="gpu-0", admin_access=True)
    status = ResourceClaimStatus(allocation=AllocationResult(devices=DeviceAllocationResult(results=[held])))
    holder = make_claim("held", exactly(adminAccess=True))
    assert isinstance(holder, ResourceClaim)
    objects = gpus("a", 2), replace(holder, status=status), make_claim("c", exactly(adminAccess=True, count=2))

    assert outcome(switched_off("", *objects, release=release)) == "gpu-0 gpu-1"
    assert outcome(switched_off("DRAAdminAccess", *objects, release=release)) == NONE


def test_claims_that_are_refused_without_what_is_dropped_are_not_there() -> None:
    """Neither does a pod find them, nor do they hold devices."""
    said = switched_off("DRAPrioritizedList", gpus("a", 1), make_claim("c", either({})), release="v1.36").error
    assert 'could not find ResourceClaim "default/c": v1.36 drops firstAvailable of request r0' in said

    held = DeviceRequestAllocationResult(request="r0/s0", driver=DRIVER, pool="a", device="gpu-0")
    status = ResourceClaimStatus(allocation=AllocationResult(devices=DeviceAllocationResult(results=[held])))
    holder = make_claim("held", either({}))
    assert isinstance(holder, ResourceClaim)
    objects = gpus("a", 1), replace(holder, status=status), make_claim("c")
    assert outcome(switched_off("", *objects, release="v1.36")) == NONE
    assert outcome(switched_off("DRAPrioritizedList", *objects, release="v1.36")) == "gpu-0"


def test_the_binding_timeout_is_refused_where_conditions_are_off() -> None:
    config = with_args("DynamicResources", bindingTimeout="10s")
    release = release_of("v1.36")
    release.set_up(config)

    with pytest.raises(ConfigError, match="bindingTimeout"):
        release.with_feature_gates({"DRADeviceBindingConditions": False}).set_up(config)


@pytest.mark.parametrize(("release", "first", "second"), [("v1.35", "gpu-1", "gpu-0"), ("v1.36", "gpu-0", "gpu-1")])
def test_a_claim_that_a_pod_lists_twice_gets_devices_twice(release: str, first: str, second: str) -> None:
    objects = [make_node("a"), make_class(), gpus("a", 3), make_claim("c"), make_claim("other")]
    scheduler = Scheduler(Cluster.from_objects(objects), release=release, tie_break="first")

    twice = scheduler.place(make_pod("p", resource_claims=using("c", "c")), bind=False)
    once = scheduler.place(make_pod("q", resource_claims=using("other")), bind=False)

    assert (chosen(twice), chosen(once)) == ({"c": [first]}, {"other": [second]})


# -- errors --------------------------------------------------------------------------------------------------------


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
