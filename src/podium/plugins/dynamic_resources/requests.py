"""Compiles the claims of a pod: their requests, the CEL expressions that select devices, and the constraints on a
choice of devices (equal or distinct attributes, counters that partitions share).
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol

import msgspec

from podium.cluster.store import Store, is_owned_by
from podium.errors import CelError
from podium.model import Pod, ResourceClaim
from podium.model.devices import (
    ALL,
    AllocatedDeviceStatus,
    DeviceAttribute,
    DeviceConstraint,
    DeviceRequest,
    DeviceRequestAllocationResult,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from podium.model.pod import PodResourceClaim
from podium.plugins.dynamic_resources.inventory import DevicesInUse, kept_requests, refused_field
from podium.plugins.dynamic_resources.pools import Amount, Counters, Pool, PooledDevice, PoolID
from podium.rules import Rules

if TYPE_CHECKING:
    # Imported on demand: it takes time, and most clusters have no expression.
    from podium import cel

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ResourceClaimSpec).decode


class Option:
    """A request, or one of the alternatives of a request: a number of devices of a class."""

    __slots__ = (
        "capacity",
        "class_name",
        "count",
        "derives_attributes",
        "expressions",
        "is_admin",
        "is_all",
        "name",
        "request_name",
        "subrequest_name",
        "tolerations",
    )

    def __init__(self, request_name: str, asked: ExactDeviceRequest | DeviceSubRequest) -> None:
        self.request_name = request_name
        self.subrequest_name = asked.name if isinstance(asked, DeviceSubRequest) else ""
        self.name = f"{request_name}/{self.subrequest_name}" if self.subrequest_name else request_name
        """The name in an allocation."""
        self.class_name = asked.device_class_name
        self.expressions = expressions_of(asked.selectors)
        self.is_all, self.count = asked.allocation_mode == ALL, asked.count
        self.is_admin = isinstance(asked, ExactDeviceRequest) and bool(asked.admin_access)
        self.derives_attributes = bool(asked.derived_attributes)
        self.tolerations: list[DeviceToleration] = asked.tolerations
        requests = asked.capacity.requests if asked.capacity else {}
        self.capacity = {name: Amount.of(quantity) for name, quantity in requests.items()}

    @property
    def own_name(self) -> str:
        return self.subrequest_name or self.request_name


class Request(NamedTuple):
    """A request of a claim: one option, or several of which the first that works is used."""

    name: str
    options: tuple[Option, ...]
    is_list: bool


class ClaimShape:
    """The compiled spec of a claim; equal specs share one."""

    __slots__ = ("constraints", "requests")

    def __init__(self, spec: ResourceClaimSpec, rules: Rules) -> None:
        self.requests = [_request(request) for request in kept_requests(spec, rules)]
        self.constraints: list[DeviceConstraint] = spec.devices.constraints

    def classes(self) -> Iterable[tuple[str, str]]:
        """The names of the classes that it needs, each with the name of the request that needs it."""
        return ((option.name, option.class_name) for request in self.requests for option in request.options)

    def rank(self, taken: Iterable[str]) -> int:
        """The rank of an allocation with the named requests: 8 for a first alternative, 7 for a second, and so on."""
        return sum(points for _, points in self.ranked(taken))

    def ranked(self, taken: Iterable[str]) -> list[tuple[str, int]]:
        """The alternatives among the named requests, each with its points."""
        names = frozenset(taken)
        return [
            (option.name, FIRST_AVAILABLE_DEVICE_REQUEST_MAX_SIZE - place)
            for request in self.requests
            if request.is_list
            for place, option in enumerate(request.options)
            if option.name in names
        ]


FIRST_AVAILABLE_DEVICE_REQUEST_MAX_SIZE = 8
Shapes = tuple[ClaimShape, ...]


def shape_of(spec: ResourceClaimSpec, rules: Rules) -> ClaimShape:
    """The compiled spec of a claim, by the rules of a release."""
    return _shape(_encode(spec), rules)


@lru_cache(maxsize=4096)
def _shape(text: bytes, rules: Rules) -> ClaimShape:
    return ClaimShape(_decode(text), rules)


def expressions_of(selectors: Iterable[DeviceSelector]) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


def _request(request: DeviceRequest) -> Request:
    if request.exactly is not None:
        return Request(request.name, (Option(request.name, request.exactly),), is_list=False)
    return Request(request.name, tuple(Option(request.name, each) for each in request.first_available), is_list=True)


LONGEST_SEARCHED_LIST = 48
"""The maximum length of a list that v1.36 goes through."""


OPTIONAL_HINT = (
    ". consider using CEL optional chaining (.? followed by orValue())"
    " or guarding the check with has() for optional fields"
)
"""Added by newer releases to the error of an expression that reads something a device does not have."""


class SelectionError(Exception):
    """An expression that cannot be compiled, or that fails for a device."""


def selects(expressions: tuple[str, ...], device: PooledDevice, rules: Rules) -> bool:
    """Whether all expressions select a device; SelectionError with the number of the expression that fails."""
    known = device.matches
    for number, expression in enumerate(expressions):
        matches = known.get(expression)
        if matches is None:
            matches = known[expression] = _evaluate(expression, device, rules, number)
        if not matches:
            return False
    return True


def selects_as_exclusive(expressions: tuple[str, ...], device: PooledDevice, rules: Rules) -> bool:
    """The same as `selects`, but expressions see every device as not shareable."""
    for expression in expressions:
        if device.is_shared and "allowMultipleAllocations" in expression:
            selector = _compiled(expression, _environment(rules))
            if isinstance(selector, CelError):
                raise SelectionError(str(selector))
            try:
                matches = selector.matches_device(_prepared(device, rules, is_shared=False))
            except CelError as error:
                raise SelectionError(str(error)) from None
        else:
            matches = selects((expression,), device, rules)
        if not matches:
            return False
    return True


def _evaluate(expression: str, device: PooledDevice, rules: Rules, number: int) -> bool:
    selector = _compiled(expression, _environment(rules))
    if isinstance(selector, CelError):
        raise SelectionError(f"selector #{number}: CEL compile error: {selector}")
    try:
        if device.seen_by_cel is None:
            device.seen_by_cel = _prepared(device, rules, is_shared=device.is_shared)
        return selector.matches_device(device.seen_by_cel)
    except CelError as error:
        where = f" on device {device.id}" if rules.device_errors_say_more else ""
        hint = OPTIONAL_HINT if rules.device_errors_say_more and "no such key:" in str(error) else ""
        raise SelectionError(f"selector #{number}{where}: CEL runtime error: {error}{hint}") from None


@lru_cache(maxsize=1024)
def _compiled(expression: str, environment: cel.Environment) -> cel.DeviceSelector | CelError:
    from podium import cel

    try:
        return cel.DeviceSelector(expression, environment)
    except CelError as error:
        return error


def _environment(rules: Rules) -> cel.Environment:
    from podium import cel

    return cel.Environment(
        list_attributes=rules.device_expressions_read_lists,
        includes=rules.device_expressions_have_includes,
        includes_limit=0 if rules.device_expressions_read_lists else LONGEST_SEARCHED_LIST,
        newer_cel=rules.device_expressions_read_lists,
    )


def _prepared(device: PooledDevice, rules: Rules, *, is_shared: bool) -> cel.Device:
    from podium import cel

    spec = device.device
    lists = rules.device_expressions_read_lists
    attributes = {name: _value(name, attribute, lists=lists) for name, attribute in spec.attributes.items()}
    capacity = {name: each.value for name, each in spec.capacity.items()}
    return cel.Device(device.driver, attributes, capacity, is_shared)


def _value(name: str, attribute: DeviceAttribute, *, lists: bool) -> cel.AttributeValue:
    from podium.cel import parse_version

    if lists:
        for values in (attribute.int_values, attribute.bool_values, attribute.string_values):
            if values is not None:
                return values
        if attribute.version_values is not None:
            return [parse_version(version) for version in attribute.version_values]
    for value in (attribute.int_value, attribute.bool_value, attribute.string_value):
        if value is not None:
            return value
    if attribute.version_value is None:
        raise CelError(f"attribute {name}: unsupported attribute value")
    return parse_version(attribute.version_value)


TRUE = "True"


class ClaimError(Exception):
    """Why a pod cannot be decided at the moment: one of its claims is missing or invalid."""


def resource_claims_of(pod: Pod, store: Store, rules: Rules) -> list[ResourceClaim]:
    """The pod's claims in order, without those it does not need; ClaimError if a claim does not exist yet.

    A claim that the API server of the release refuses counts as missing.
    """
    claims = _named_claims(pod, store)
    for claim in claims:
        field = refused_field(claim.spec, rules)
        if field:
            why = f"{rules.release} drops {field} and refuses what is left, as the feature is off"
            raise ClaimError(f'could not find ResourceClaim "{claim.key}": {why}')
    return claims


def _named_claims(pod: Pod, store: Store) -> list[ResourceClaim]:
    claims = []
    for reference in pod.spec.resource_claims:
        name = resource_claim_name(pod, reference)
        if name is None:
            continue
        claim = store.of(ResourceClaim).get(name, pod.namespace)
        if claim is None:
            raise ClaimError(f'could not find ResourceClaim "{pod.namespace}/{name}"')
        if claim.metadata.deletion_timestamp is not None:
            raise ClaimError(f'resourceclaim "{name}" is being deleted')
        if reference.resource_claim_name is None and not is_owned_by(claim, pod):
            raise ClaimError(f"ResourceClaim {claim.key} was not created for Pod {pod.key} (Pod is not owner)")
        claims.append(claim)
    return claims


def claims_key(pod: Pod, store: Store) -> Hashable:
    """The key of the parts of a pod's claims that a decision depends on; None without claims. Pods with equal spec and
    key get the same decision.
    """
    if not pod.spec.resource_claims:
        return None
    try:
        claims = _named_claims(pod, store)
    except ClaimError as error:
        return str(error)
    return tuple(
        _encode(claim.spec) if claim.status.allocation is None else (claim.namespace, claim.name) for claim in claims
    )


def resource_claim_name(pod: Pod, reference: PodResourceClaim) -> str | None:
    """The name of the claim for an entry of spec.resourceClaims; None if no claim is needed for it."""
    if reference.resource_claim_name is not None:
        return reference.resource_claim_name
    if reference.resource_claim_template_name is None:
        raise ClaimError(
            f'pod "{pod.key}", spec.resourceClaim "{reference.name}": none of the supported fields are set'
        )
    for status in pod.status.resource_claim_statuses:
        if status.name == reference.name:
            return status.resource_claim_name
    raise ClaimError(f'pod "{pod.key}": ResourceClaim not created yet')


# -- binding conditions --------------------------------------------------------------------------------------------


def is_unusable(claim: ResourceClaim, now: float, binding_timeout: float) -> bool:
    """Whether the devices of an allocated claim failed to become ready, or did not in time (seconds)."""
    allocation = claim.status.allocation
    conditional = [each for each in allocation.devices.results if each.binding_conditions] if allocation else []
    for result in conditional:
        status = status_of(claim, result)
        if status is None:
            return _is_late(claim, now, binding_timeout)
        true = {each.type for each in status.conditions if each.status == TRUE}
        if not true.isdisjoint(result.binding_failure_conditions):
            return True
        if not true.issuperset(result.binding_conditions or ()):
            return _is_late(claim, now, binding_timeout)
    return False


def status_of(claim: ResourceClaim, result: DeviceRequestAllocationResult) -> AllocatedDeviceStatus | None:
    """The driver's status for one device of a claim."""
    device = result.driver, result.pool, result.device
    return next((each for each in claim.status.devices if (each.driver, each.pool, each.device) == device), None)


def _is_late(claim: ResourceClaim, now: float, binding_timeout: float) -> bool:
    allocation = claim.status.allocation
    if allocation is None or allocation.allocation_timestamp is None:
        return False
    try:
        since = datetime.fromisoformat(allocation.allocation_timestamp).timestamp()
    except ValueError:
        return False
    return since + binding_timeout < now


class Constraint(Protocol):
    """Checks every device before it is taken, and is told when devices are given back, last first."""

    def add(self, option: Option, device: PooledDevice) -> bool:
        """Whether the device may be taken; if so, it counts from now on."""

    def remove(self, option: Option) -> None:
        """Forget the last device that was taken."""


def constraints_of(constraints: Iterable[DeviceConstraint], rules: Rules) -> list[Constraint]:
    """The constraints of a claim, without any device taken."""
    distinct: type[_DistinctValues | _DistinctByRequest | _AnyValue] = _DistinctValues
    if not rules.distinct_attribute_compares_all:
        distinct = _DistinctByRequest if rules.distinct_attribute_is_dropped else _AnyValue
    made: list[Constraint] = []
    for each in constraints:
        requests = frozenset(each.requests)
        if each.match_attribute is not None:
            made.append(_SameValue(each.match_attribute, requests))
        elif each.distinct_attribute is not None:
            made.append(distinct(each.distinct_attribute, requests))
    return made


class _OnAttribute:
    """A constraint on an attribute, and the requests that it applies to."""

    __slots__ = ("_attribute", "_requests")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        self._attribute, self._requests = attribute, requests

    def _concerns(self, option: Option) -> bool:
        requests = self._requests
        return not requests or option.request_name in requests or option.name in requests


def _is_among(value: DeviceAttribute, others: Collection[DeviceAttribute]) -> bool:
    """Whether one of the other devices has the value; a list counts as equal to anything."""
    return bool(others) and (not value.is_single or value in others)


class _SameValue(_OnAttribute):
    """All devices have the same value of the attribute."""

    __slots__ = ("_count", "_value")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        super().__init__(attribute, requests)
        self._value: DeviceAttribute | None = None
        self._count = 0

    def add(self, option: Option, device: PooledDevice) -> bool:
        if not self._concerns(option):
            return True
        value = device.attribute(self._attribute)
        if value is None or (self._count and (value != self._value or not value.is_single)):
            return False
        self._value = value
        self._count += 1
        return True

    def remove(self, option: Option) -> None:
        if self._concerns(option):
            self._count -= 1


class _DistinctValues(_OnAttribute):
    """No two devices have the same value of the attribute."""

    __slots__ = ("_values",)

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        super().__init__(attribute, requests)
        self._values: list[DeviceAttribute] = []

    def add(self, option: Option, device: PooledDevice) -> bool:
        if not self._concerns(option):
            return True
        value = device.attribute(self._attribute)
        if value is None or _is_among(value, self._values):
            return False
        self._values.append(value)
        return True

    def remove(self, option: Option) -> None:
        if self._concerns(option):
            self._values.pop()


class _DistinctByRequest(_OnAttribute):
    """Distinct values as v1.36 checks them: one value is remembered per request, that of the device it took last.

    Giving a device back forgets the value of its request altogether. The first device is never compared.
    """

    __slots__ = ("_count", "_values")

    def __init__(self, attribute: str, requests: frozenset[str]) -> None:
        super().__init__(attribute, requests)
        self._values: dict[str, DeviceAttribute] = {}
        self._count = 0

    def add(self, option: Option, device: PooledDevice) -> bool:
        if not self._concerns(option):
            return True
        value = device.attribute(self._attribute)
        if value is None or (self._count and _is_among(value, self._values.values())):
            return False
        self._values[option.request_name] = value
        self._count += 1
        return True

    def remove(self, option: Option) -> None:
        if self._concerns(option):
            self._values.pop(option.request_name, None)
            self._count -= 1


class _AnyValue(_OnAttribute):
    """Distinct values as v1.34 checks them: every device must have the attribute, but values are not compared."""

    def add(self, option: Option, device: PooledDevice) -> bool:
        return not self._concerns(option) or device.attribute(self._attribute) is not None

    def remove(self, option: Option) -> None:
        """There is nothing to forget."""


class CounterUse:
    """The pools' counters during one search."""

    def __init__(self, in_use: DevicesInUse) -> None:
        self._in_use = in_use
        self._left: dict[PoolID, Counters] = {}

    def has_enough(self, pool: Pool, device: PooledDevice) -> bool:
        """Whether there is enough for one more device.

        All counters of the pool count: one that is overdrawn blocks every device that takes from any.
        """
        needed = device.counters
        return all(amount >= needed.get(counter, 0) for counter, amount in self._of(pool).items())

    def take(self, pool: Pool, device: PooledDevice) -> None:
        left = self._of(pool)
        for counter, amount in device.counters.items():
            left[counter] -= amount

    def give_back(self, pool: Pool, device: PooledDevice) -> None:
        left = self._of(pool)
        for counter, amount in device.counters.items():
            left[counter] += amount

    def _of(self, pool: Pool) -> Counters:
        left = self._left.get(pool.id)
        if left is None:
            left = self._left[pool.id] = available_counters(pool, self._in_use).copy()
        return left


def available_counters(pool: Pool, in_use: DevicesInUse) -> Counters:
    """The counters that claims leave over in a pool, cached until one of its devices is taken or released."""
    version = in_use.versions[pool.id]
    if pool.available is None or pool.available[0] != version:
        left = pool.counters.copy()
        for device in (*pool.devices, *pool.elsewhere):
            if device.counters and in_use.is_allocated(device.id):
                for counter, amount in device.counters.items():
                    left[counter] -= amount
        pool.available = version, left
    return pool.available[1]
