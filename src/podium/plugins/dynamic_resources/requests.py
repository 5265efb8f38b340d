"""What a claim asks for: its requests and their alternatives, prepared for the search."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec

from podium.model.devices import (
    ALL,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from podium.plugins.dynamic_resources.kept_fields import kept_requests
from podium.plugins.dynamic_resources.pools import Amount
from podium.rules import Rules

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
