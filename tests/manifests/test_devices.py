"""Claims, slices and classes on their way in: older versions are converted, defaults filled in, mistakes named."""

from __future__ import annotations

from typing import Any

import pytest

from podium.errors import InputError
from podium.manifests import load
from podium.model import DeviceTaintRule, ResourceClaim, ResourceClaimTemplate, ResourceSlice

GROUP = "resource.k8s.io"
Fields = dict[str, Any]


def document(kind: str, spec: Fields, version: str = "v1") -> Fields:
    return {"apiVersion": f"{GROUP}/{version}", "kind": kind, "metadata": {"name": "x"}, "spec": spec}


def claim(request: Fields, version: str = "v1") -> Fields:
    return document("ResourceClaim", {"devices": {"requests": [request]}}, version)


def device_slice(*devices: Fields, **spec: Any) -> Fields:
    pool = {"name": "p", "generation": 1, "resourceSliceCount": 1}
    return document("ResourceSlice", {"driver": "d", "pool": pool, "nodeName": "n", "devices": list(devices), **spec})


def test_a_request_asks_for_one_device_unless_it_says() -> None:
    (found,) = load(claim({"name": "r", "exactly": {"deviceClassName": "gpu"}})).of(ResourceClaim)

    exactly = found.spec.devices.requests[0].exactly
    assert exactly is not None
    assert (exactly.allocation_mode, exactly.count) == ("ExactCount", 1)


def test_a_request_for_all_has_no_count() -> None:
    (found,) = load(claim({"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "All"}}))

    assert isinstance(found, ResourceClaim)
    assert found.spec.devices.requests[0].exactly is not None
    assert found.spec.devices.requests[0].exactly.count == 0


@pytest.mark.parametrize(
    "old",
    [
        claim({"name": "r", "deviceClassName": "gpu", "count": 2, "adminAccess": True}, "v1alpha3"),
        claim({"name": "r", "deviceClassName": "gpu", "count": 2, "adminAccess": True}, "v1beta1"),
        claim({"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2, "adminAccess": True}}, "v1beta2"),
    ],
    ids=["v1alpha3", "v1beta1", "v1beta2"],
)
def test_older_claims_say_the_same(old: Fields) -> None:
    new = claim({"name": "r", "exactly": {"deviceClassName": "gpu", "count": 2, "adminAccess": True}})

    assert list(load(old)) == list(load(new))


def test_alternatives_of_v1beta1_stay_where_they_are() -> None:
    request = {"name": "r", "firstAvailable": [{"name": "s", "deviceClassName": "gpu"}]}

    assert list(load(claim(request, "v1beta1"))) == list(load(claim(request)))


def test_templates_of_v1beta1_are_converted() -> None:
    spec = {"spec": {"devices": {"requests": [{"name": "r", "deviceClassName": "gpu"}]}}}

    (found,) = load(document("ResourceClaimTemplate", spec, "v1beta1")).of(ResourceClaimTemplate)

    assert found.spec.spec.devices.requests[0].exactly is not None


@pytest.mark.parametrize(("version", "capacity"), [("v1alpha3", "80Gi"), ("v1beta1", {"value": "80Gi"})])
def test_devices_of_older_versions_are_converted(version: str, capacity: object) -> None:
    attributes = {"model": {"string": "h100"}}
    basic = {"attributes": attributes, "capacity": {"memory": capacity}}
    old = device_slice({"name": "gpu-0", "basic": basic}) | {"apiVersion": f"{GROUP}/{version}"}
    new = {"name": "gpu-0", "attributes": attributes, "capacity": {"memory": {"value": "80Gi"}}}

    assert list(load(old)) == list(load(device_slice(new)))


def test_a_taint_rule_of_an_alpha_version_is_read() -> None:
    taint = {"key": "k", "effect": "NoSchedule"}

    (rule,) = load(document("DeviceTaintRule", {"deviceSelector": {"driver": "d"}, "taint": taint}, "v1alpha3"))

    assert isinstance(rule, DeviceTaintRule)
    assert rule.spec.taint.key == "k"


WRONG = {
    "a quantity that is none": (
        device_slice({"name": "a", "capacity": {"memory": {"value": "much"}}}),
        "spec.devices[0].capacity['memory'].value: 'much' is not a quantity",
    ),
    "a valid value that is none": (
        device_slice(
            {
                "name": "a",
                "capacity": {"bw": {"value": "1", "requestPolicy": {"default": "1", "validValues": ["1", "x"]}}},
            }
        ),
        "spec.devices[0].capacity['bw'].requestPolicy.validValues[1]: 'x' is not a quantity",
    ),
    "a device twice": (
        device_slice({"name": "a"}, {"name": "a"}),
        "spec.devices: device 'a' is there twice; give every device a name of its own",
    ),
    "a request twice": (
        document("ResourceClaim", {"devices": {"requests": [{"name": "r", "exactly": {}}] * 2}}),
        "spec.devices.requests: request 'r' is there twice; give every request a name of its own",
    ),
    "a request that asks for nothing": (
        claim({"name": "r", "deviceClassName": "gpu"}),
        "spec.devices.requests[0]: request 'r' must have one of exactly and firstAvailable",
    ),
    "an unknown mode": (
        claim({"name": "r", "exactly": {"deviceClassName": "gpu", "allocationMode": "Most"}}),
        "spec.devices.requests[0].exactly.allocationMode: 'Most' is unknown; use ExactCount or All",
    ),
    "a negative count": (
        claim({"name": "r", "exactly": {"deviceClassName": "gpu", "count": -1}}),
        "spec.devices.requests[0].exactly.count: must be 1 or more, and absent with All; got -1",
    ),
    "a selector without expression": (
        document("DeviceClass", {"selectors": [{}]}),
        "spec.selectors[0]: must have a cel.expression",
    ),
    "a constraint without attribute": (
        document("ResourceClaim", {"devices": {"requests": [], "constraints": [{"requests": ["r"]}]}}),
        "spec.devices.constraints[0]: must have one of matchAttribute and distinctAttribute",
    ),
    "a step of nothing": (
        device_slice(
            {
                "name": "a",
                "capacity": {
                    "bw": {"value": "1", "requestPolicy": {"default": "1", "validRange": {"min": "1", "step": "0"}}}
                },
            }
        ),
        "validRange.step: must be 1 or more and go with a min; got '0'",
    ),
    "an attribute of another type": (
        device_slice({"name": "a", "attributes": {"n": {"int": "one"}}}),
        "expected int | null, got str",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_mistakes_are_named(name: str) -> None:
    wrong, problem = WRONG[name]

    with pytest.raises(InputError) as error:
        load(wrong)

    assert problem in str(error.value)
    assert f"{wrong['kind']}" in str(error.value)
    assert "\n" not in str(error.value)


def test_the_slice_is_as_it_was_written() -> None:
    (found,) = load(device_slice({"name": "a", "bindingConditions": []})).of(ResourceSlice)

    assert found.spec.devices[0].binding_conditions == []


POOL = {"name": "p", "resourceSliceCount": 1}


def slice_of(attribute: dict[str, Any]) -> dict[str, Any]:
    """A slice with one device that has one attribute."""
    device = {"name": "a", "attributes": {"a": attribute}}
    return {"driver": "gpu.example.com", "nodeName": "n", "pool": POOL, "devices": [device]}


BROKEN: dict[str, tuple[str, dict[str, Any], str]] = {
    "an expression of a class": (
        "DeviceClass",
        {"selectors": [{"cel": {"expression": "true"}}, {"cel": {"expression": "device.drivr == 'x'"}}]},
        "spec.selectors[1].cel.expression: compilation failed: ERROR: <input>:1:7: undefined field 'drivr'",
    ),
    "an expression of a claim": (
        "ResourceClaim",
        {"devices": {"requests": [{"name": "r", "exactly": {"selectors": [{"cel": {"expression": "1 + 1"}}]}}]}},
        "spec.devices.requests[0].exactly.selectors[0].cel.expression: must evaluate to bool",
    ),
    "an expression of a template": (
        "ResourceClaimTemplate",
        {"spec": {"devices": {"requests": [
            {"name": "r", "firstAvailable": [{"name": "a"}, {"name": "b", "selectors": [{"cel": {"expression": "("}}]}]}
        ]}}},
        "spec.spec.devices.requests[0].firstAvailable[1].selectors[0].cel.expression: compilation failed: ERROR",
    ),
    "a constraint on a request that is not there": (
        "ResourceClaim",
        {"devices": {
            "requests": [{"name": "r", "exactly": {"deviceClassName": "gpu"}}],
            "constraints": [{"requests": ["r", "s"], "matchAttribute": "gpu.example.com/model"}],
        }},
        "spec.devices.constraints[0].requests: the claim has no request 's'",
    ),
    "a version that is none": (
        "ResourceSlice",
        slice_of({"version": "one.two"}),
        "spec.devices[0].attributes['a']: 'one.two' is not a semantic version such as 1.2.3",
    ),
    "an attribute with two values": (
        "ResourceSlice",
        slice_of({"string": "x", "int": 1}),
        "spec.devices[0].attributes['a']: must have one value of one type",
    ),
    "an attribute without a value": (
        "ResourceSlice", slice_of({}), "spec.devices[0].attributes['a']: must have one value of one type",
    ),
    "a slice without a driver": ("ResourceSlice", {"allNodes": True, "pool": POOL}, "spec.driver: is required"),
    "a slice without a pool's name": (
        "ResourceSlice",
        {"driver": "d", "allNodes": True, "pool": {"resourceSliceCount": 1}},
        "spec.pool.name: is required",
    ),
    "a pool of no slices": (
        "ResourceSlice",
        {"driver": "d", "allNodes": True, "pool": {"name": "p"}},
        "spec.pool.resourceSliceCount: must be 1 or more; got 0",
    ),
    "a slice for no nodes": (
        "ResourceSlice", {"driver": "d", "pool": POOL}, "spec: must have exactly one of nodeName, nodeSelector",
    ),
    "a slice for nodes in two ways": (
        "ResourceSlice",
        {"driver": "d", "pool": POOL, "allNodes": True, "nodeName": "a"},
        "spec: must have exactly one of nodeName, nodeSelector",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", BROKEN)
def test_what_the_scheduler_can_live_with_is_a_warning_and_strictly_an_error(name: str) -> None:
    kind, spec, problem = BROKEN[name]

    (warning,) = load(document(kind, spec)).warnings
    with pytest.raises(InputError) as error:
        load(document(kind, spec), strict=True)

    assert problem in warning
    assert kind in warning
    assert "\n" not in warning
    assert str(error.value) == warning


@pytest.mark.parametrize("expression", ["device.attributes['d'].?a.orValue(1) == 1", "1.includes(1)"])
def test_an_expression_that_some_release_compiles_is_no_mistake(expression: str) -> None:
    selectors = [{"cel": {"expression": expression}}]
    assert load(document("DeviceClass", {"selectors": selectors}), strict=True).warnings == ()
