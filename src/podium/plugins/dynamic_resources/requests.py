"""What claims ask for, compiled: claims that ask for the same share it, and the results of the search with it."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import NamedTuple

import msgspec

from podium.model import Toleration
from podium.model.devices import (
    ALL,
    DeviceConstraint,
    DeviceRequest,
    DeviceSelector,
    DeviceSubRequest,
    ExactDeviceRequest,
    ResourceClaimSpec,
)
from podium.plugins.dynamic_resources.capacity import Amount

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(ResourceClaimSpec).decode


class Option:
    """A request, or one of the alternatives of a request: so many devices of a class."""

    __slots__ = (
        "capacity",
        "class_name",
        "count",
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
        """As it stands in an allocation."""
        self.class_name = asked.device_class_name
        self.expressions = expressions_of(asked.selectors)
        self.is_all, self.count = asked.allocation_mode == ALL, asked.count
        self.is_admin = isinstance(asked, ExactDeviceRequest) and bool(asked.admin_access)
        self.tolerations: list[Toleration] = asked.tolerations
        requests = asked.capacity.requests if asked.capacity else {}
        self.capacity = {name: Amount.of(quantity) for name, quantity in requests.items()}

    @property
    def own_name(self) -> str:
        return self.subrequest_name or self.request_name


class Request(NamedTuple):
    """A request of a claim: one option, or several of which the first that works is taken."""

    name: str
    options: tuple[Option, ...]
    is_list: bool


class ClaimShape:
    """What a claim asks for; there is one for all claims that ask for the same."""

    __slots__ = ("constraints", "requests")

    def __init__(self, spec: ResourceClaimSpec) -> None:
        self.requests = [_request(request) for request in spec.devices.requests]
        self.constraints: list[DeviceConstraint] = spec.devices.constraints

    def classes(self) -> Iterable[tuple[str, str]]:
        """The names of the classes that it needs, each with the name of what needs it."""
        return ((option.name, option.class_name) for request in self.requests for option in request.options)

    def rank(self, taken: Iterable[str]) -> int:
        """How good an allocation is that satisfied the named requests: 8 for a first alternative, 7 for a second."""
        names = frozenset(taken)
        return sum(
            MOST_ALTERNATIVES - place
            for request in self.requests
            if request.is_list
            for place, option in enumerate(request.options)
            if option.name in names
        )


MOST_ALTERNATIVES = 8
Shapes = tuple[ClaimShape, ...]


def shape_of(spec: ResourceClaimSpec) -> ClaimShape:
    """The compiled form of a claim's spec."""
    return _shape(_encode(spec))


@lru_cache(maxsize=4096)
def _shape(text: bytes) -> ClaimShape:
    return ClaimShape(_decode(text))


def expressions_of(selectors: Iterable[DeviceSelector]) -> tuple[str, ...]:
    return tuple(selector.cel.expression for selector in selectors if selector.cel is not None)


def _request(request: DeviceRequest) -> Request:
    if request.exactly is not None:
        return Request(request.name, (Option(request.name, request.exactly),), is_list=False)
    return Request(request.name, tuple(Option(request.name, each) for each in request.first_available), is_list=True)
