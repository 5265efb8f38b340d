"""Reads resource claims, device classes and slices: converts older API versions, sets defaults, checks."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

from msgspec.structs import astuple, replace

from podium.errors import CelError, InputError
from podium.model import DeviceClass, Object, Pod, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from podium.model.devices import (
    ALL,
    EXACT_COUNT,
    CapacityRequestPolicyRange,
    DeviceAttribute,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
    ResourceSliceSpec,
)
from podium.model.quantity import value

FLAT_VERSIONS = ("resource.k8s.io/v1alpha3", "resource.k8s.io/v1beta1")
"""The versions in which a request, and the basic device of a slice, are written differently from v1."""
_EXACTLY = (
    "deviceClassName",
    "selectors",
    "allocationMode",
    "count",
    "adminAccess",
    "tolerations",
    "capacity",
)
"""The fields of an exact request, which the flat versions have in the request itself."""


# -- conversion ----------------------------------------------------------------------------------------------------


def from_flat_version(kind: str, value: object) -> object:
    """Convert an object of a flat version to v1; an invalid object is reported when it is decoded."""
    if not isinstance(value, Mapping) or not isinstance(value.get("spec"), Mapping):
        return value
    spec = value["spec"]
    match kind:
        case "ResourceClaim":
            spec = _claim_from_flat(spec)
        case "ResourceClaimTemplate" if isinstance(spec.get("spec"), Mapping):
            spec = {**spec, "spec": _claim_from_flat(spec["spec"])}
        case "ResourceSlice" if isinstance(spec.get("devices"), list):
            spec = {**spec, "devices": [_device_from_flat(device) for device in spec["devices"]]}
            if not spec.get("nodeName"):
                spec.pop("nodeName", None)
    return {**value, "spec": spec}


def _claim_from_flat(spec: Mapping[str, Any]) -> dict[str, Any]:
    devices = spec.get("devices")
    if not isinstance(devices, Mapping) or not isinstance(devices.get("requests"), list):
        return dict(spec)
    requests = [_request_from_flat(request) for request in devices["requests"]]
    return {**spec, "devices": {**devices, "requests": requests}}


def _request_from_flat(request: object) -> object:
    if not isinstance(request, Mapping):
        return request
    exactly = {name: request[name] for name in _EXACTLY if request.get(name) is not None}
    others = {name: value for name, value in request.items() if name not in _EXACTLY}
    return {**others, "exactly": exactly} if exactly else others


def _device_from_flat(device: object) -> object:
    if not isinstance(device, Mapping) or not isinstance(device.get("basic"), Mapping):
        return device
    found = {"name": device.get("name"), **device["basic"]}
    if isinstance(found.get("capacity"), Mapping):
        # In v1alpha3, a capacity is just an amount.
        amounts = found["capacity"].items()
        found["capacity"] = {name: each if isinstance(each, Mapping) else {"value": each} for name, each in amounts}
    return found


# -- defaults ------------------------------------------------------------------------------------------------------


def default_claim(claim: ResourceClaim) -> ResourceClaim:
    """The claim with the mode and the count of every request filled in."""
    return replace(claim, spec=_default_spec(claim.spec))


def default_claim_template(template: ResourceClaimTemplate) -> ResourceClaimTemplate:
    return replace(template, spec=replace(template.spec, spec=_default_spec(template.spec.spec)))


def _default_spec(spec: ResourceClaimSpec) -> ResourceClaimSpec:
    requests = [_default_request(request) for request in spec.devices.requests]
    return replace(spec, devices=replace(spec.devices, requests=requests))


def _default_request(request: DeviceRequest) -> DeviceRequest:
    if request.exactly is not None:
        request = replace(request, exactly=_default_count(request.exactly))
    return replace(request, first_available=[_default_count(each) for each in request.first_available])


def _default_count(request: Any) -> Any:
    mode = request.allocation_mode or EXACT_COUNT
    return replace(request, allocation_mode=mode, count=request.count or int(mode == EXACT_COUNT))


# -- checks --------------------------------------------------------------------------------------------------------


def check_request(request: DeviceRequest) -> None:
    """InputError for a request that has neither, or both, of `exactly` and `firstAvailable`."""
    if (request.exactly is None) == (not request.first_available):
        raise InputError(f"request {request.name!r} must have one of exactly and firstAvailable")


def check_count(request: ExactDeviceRequest | DeviceSubRequest) -> None:
    if request.allocation_mode not in ("", EXACT_COUNT, ALL):
        raise InputError(f"{request.allocation_mode!r} is unknown; use {EXACT_COUNT} or {ALL}", "allocationMode")
    if request.count < 0 or (request.allocation_mode == ALL and request.count):
        raise InputError(f"must be 1 or more, and absent with {ALL}; got {request.count}", "count")
    for position, selector in enumerate(request.selectors):
        if selector.cel is None:
            raise InputError("must have a cel.expression", f"selectors[{position}]")


def check_claim(claim: DeviceClaim) -> None:
    _refuse_repeated("request", [request.name for request in claim.requests])


def check_constraint(constraint: DeviceConstraint) -> None:
    if (constraint.match_attribute is None) == (constraint.distinct_attribute is None):
        raise InputError("must have one of matchAttribute and distinctAttribute")


def check_range(valid: CapacityRequestPolicyRange) -> None:
    """InputError for a step that is not positive, or that has no minimum to start from."""
    if valid.step is not None and (valid.min is None or value(valid.step) <= 0):
        raise InputError(f"must be 1 or more and go with a min; got {valid.step!r}", "step")


def check_slice(spec: ResourceSliceSpec) -> None:
    """InputError for a slice that names a device twice: the API server refuses it."""
    _refuse_repeated("device", [device.name for device in spec.devices])


def _refuse_repeated(what: str, names: Sequence[str]) -> None:
    name, number = Counter(names).most_common(1)[0] if names else ("", 1)
    if number > 1:
        times = "twice" if number == 2 else f"{number} times"
        raise InputError(f"{what} {name!r} is there {times}; give every {what} a name of its own", f"{what}s")


def check_class(device_class: DeviceClass) -> None:
    for position, selector in enumerate(device_class.spec.selectors):
        if selector.cel is None:
            raise InputError("must have a cel.expression", f"spec.selectors[{position}]")


def missing_claims(objects: Iterable[Object], pods: Iterable[Pod]) -> Iterator[str]:
    """A line for each claim or template that waiting pods name and that is missing, with the namespaces that
    have it.
    """
    namespaces: dict[tuple[str, str], list[str]] = {}
    for obj in objects:
        if isinstance(obj, ResourceClaim | ResourceClaimTemplate):
            namespaces.setdefault((type(obj).__name__, obj.name), []).append(obj.namespace)
    said = set[str]()
    for pod in pods:
        for kind, name in _claims_named(pod) if not pod.spec.node_name else ():
            key, others = f"{kind} {pod.namespace}/{name}", namespaces.get((kind, name), [])
            if key not in said and pod.namespace not in others:
                said.add(key)
                elsewhere = f"; namespace {others[0]} has one of that name, which does not help" if others else ""
                yield f"{key} is not in the input: pods such as {pod.key} wait for it{elsewhere}"


def _claims_named(pod: Pod) -> Iterator[tuple[str, str]]:
    """The claims of a pod, and the templates from which claims are still to be created for it."""
    made = {status.name for status in pod.status.resource_claim_statuses}
    for claim in pod.spec.resource_claims:
        if claim.resource_claim_name:
            yield "ResourceClaim", claim.resource_claim_name
        elif claim.resource_claim_template_name and claim.name not in made:
            yield "ResourceClaimTemplate", claim.resource_claim_template_name


def refused_fields(obj: Object) -> Iterator[str]:
    """Fields that the API server would refuse but the scheduler tolerates: the path of each, and what is wrong.

    This includes expressions that no release can compile.
    """
    match obj:
        case DeviceClass():
            yield from _broken(obj.spec.selectors, "spec")
        case ResourceClaim():
            yield from _refused_in_claim(obj.spec.devices, "spec.devices")
        case ResourceClaimTemplate():
            yield from _refused_in_claim(obj.spec.spec.devices, "spec.spec.devices")
        case ResourceSlice():
            yield from _refused_in_slice(obj.spec)
            for place, device in enumerate(obj.spec.devices):
                for name, attribute in device.attributes.items():
                    if problem := _attribute_error(attribute):
                        yield f"spec.devices[{place}].attributes[{name!r}]: {problem}"


def _refused_in_slice(spec: ResourceSliceSpec) -> Iterator[str]:
    """What is wrong with the slice's driver, pool, nodes or devices."""
    if not spec.driver:
        yield "spec.driver: is required"
    if not spec.pool.name:
        yield "spec.pool.name: is required"
    if spec.pool.resource_slice_count < 1:
        yield f"spec.pool.resourceSliceCount: must be 1 or more; got {spec.pool.resource_slice_count}"
    chosen = (spec.node_name, spec.node_selector is not None, spec.all_nodes, spec.per_device_node_selection)
    if sum(map(bool, chosen)) != 1:
        yield "spec: must have exactly one of nodeName, nodeSelector, allNodes and perDeviceNodeSelection"


def _attribute_error(attribute: DeviceAttribute) -> str:
    if sum(value is not None for value in astuple(attribute)) != 1:
        return "must have one value of one type"
    versions = [attribute.version_value] if attribute.version_value is not None else attribute.version_values or ()
    return next(filter(None, map(_version_error, versions)), "")


@lru_cache(maxsize=4096)
def _version_error(text: str) -> str:
    from podium import cel  # takes time to import, and most clusters have no devices

    try:
        cel.parse_version(text)
    except CelError:
        return f"{text!r} is not a semantic version such as 1.2.3"
    return ""


def _refused_in_claim(claim: DeviceClaim, where: str) -> Iterator[str]:
    names = {request.name for request in claim.requests}
    for place, request in enumerate(claim.requests):
        at = f"{where}.requests[{place}]"
        if request.exactly is not None:
            yield from _broken(request.exactly.selectors, f"{at}.exactly")
        for number, alternative in enumerate(request.first_available):
            names.add(f"{request.name}/{alternative.name}")
            yield from _broken(alternative.selectors, f"{at}.firstAvailable[{number}]")
    for place, constraint in enumerate(claim.constraints):
        for name in constraint.requests:
            if name not in names:
                yield f"{where}.constraints[{place}].requests: the claim has no request {name!r}"


def _broken(selectors: Iterable[DeviceSelector], where: str) -> Iterator[str]:
    for place, selector in enumerate(selectors):
        problem = None if selector.cel is None else _compile_error(selector.cel.expression)
        if problem is not None:
            yield f"{where}.selectors[{place}].cel.expression: {problem}"


@lru_cache(maxsize=4096)
def _compile_error(expression: str) -> str | None:
    """The newest release's error for an expression that no release can compile, in one line; None if one can."""
    from podium import cel  # takes time to import, and most clusters have no expression

    problem = None
    for environment in (cel.V1_37, cel.V1_36, cel.V1_34):
        try:
            cel.DeviceSelector(expression, environment)
        except CelError as error:
            problem = problem or " ".join(str(error).split("\n", 1)[0].split())
        else:
            return None
    return problem
