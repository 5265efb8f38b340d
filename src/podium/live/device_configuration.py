"""The configuration that an allocation hands to the drivers of its devices: the classes', then the claim's own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Fields = Mapping[str, Any]
"""A part of an object as the API server has it."""
Chosen = tuple[str, str]
"""A request, `name` or `name/subrequest` for the alternative that was taken, and its device class."""


def chosen_requests(requests: Iterable[Fields], allocated: Iterable[str]) -> list[Chosen]:
    """The requests of a claim as they were served; `allocated` are the requests that its devices are for."""
    names, chosen = set(allocated), list[Chosen]()
    for request in requests:
        alternatives = {f"{request['name']}/{each['name']}": each for each in request.get("firstAvailable", ())}
        if alternatives:
            name = next((name for name in alternatives if name in names), next(iter(alternatives)))
            chosen.append((name, alternatives[name]["deviceClassName"]))
        elif "exactly" in request:
            chosen.append((request["name"], request["exactly"]["deviceClassName"]))
    return chosen


def device_configuration(
    chosen: Sequence[Chosen], classes: Mapping[str, Sequence[Fields]], own: Sequence[Fields]
) -> list[dict[str, Any]]:
    """The entries of an allocation; `classes` has the configuration of each class, `own` that of the claim.

    An entry for all requests names none of them.
    """
    found: list[dict[str, Any]] = []
    for name in dict.fromkeys(name for _, name in chosen):
        requests = [request for request, its_class in chosen if its_class == name]
        found += [{"source": "FromClass", "requests": requests, **entry} for entry in classes[name]]
    for entry in own:
        named = entry.get("requests", [])
        if not named or any(_is_named(request, named) for request, _ in chosen):
            found.append({"source": "FromClaim", **entry})
    for made in found:
        if all(_is_named(request, made.get("requests", [])) for request, _ in chosen):
            made.pop("requests", None)
    return found


def _is_named(request: str, names: Sequence[str]) -> bool:
    """Whether a request is among the names, itself or as an alternative of one of them."""
    return request in names or request.partition("/")[0] in names
