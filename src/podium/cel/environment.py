"""What each release of Kubernetes declares for device selectors: the types of a device, and the functions."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from podium.cel import types as t
from podium.cel.functions import (
    collections,
    conversions,
    formats,
    kubernetes,
    network,
    optionals,
    release_differences,
    standard,
    strings,
)  # fmt: skip
from podium.cel.overloads import Library
from podium.cel.types import Type, map_of


class Environment(NamedTuple):
    """How the expressions of a release differ from another's.

    `list_attributes`: attributes have the type dyn and not any, so that loops over them compile.
    `includes`: the function `value.includes(element)` is there.
    `includes_limit`: how many elements of a list it looks at before it fails; 0 for all.
    `newer_cel`: cel-go 0.29 and not 0.26, which reads names in backquotes and checks more arguments.
    """

    list_attributes: bool = True
    includes: bool = True
    includes_limit: int = 0
    newer_cel: bool = True

    @property
    def attribute_type(self) -> Type:
        """The type of an attribute of a device."""
        return t.DYN if self.list_attributes else t.ANY


V1_37 = Environment()
V1_36 = Environment(list_attributes=False, includes_limit=48, newer_cel=False)
# And v1.35.
V1_34 = Environment(list_attributes=False, includes=False, newer_cel=False)

_LIBRARY = standard.library.merged(
    conversions.library, optionals.library, strings.library, collections.library, kubernetes.library, network.library,
    formats.library,
)  # fmt: skip


@lru_cache(maxsize=8)
def functions_of(environment: Environment) -> Library:
    """All functions of a release."""
    library = _LIBRARY.merged(release_differences.cel_library(environment.newer_cel))
    if not environment.includes:
        return library
    return library.merged(release_differences.includes_library(environment.includes_limit))


def device_fields(environment: Environment) -> dict[str, Type]:
    """The fields of `device` and their types."""
    return {
        "driver": t.STRING,
        "allowMultipleAllocations": t.BOOL,
        "attributes": map_of(t.STRING, map_of(t.STRING, environment.attribute_type)),
        "capacity": map_of(t.STRING, map_of(t.STRING, t.QUANTITY)),
    }
