"""A decision of an old release as plain data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from podium.framework import Status


class _Decision(Protocol):
    @property
    def rejected(self) -> Mapping[str, Status]: ...

    def to_dict(self) -> dict[str, Any]: ...


def legacy_dict(decision: _Decision) -> dict[str, Any]:
    """The decision in the words of the old releases: reasons as `failed`, and as `failed_predicates` who gave them."""
    shape = decision.to_dict()
    shape.pop("rejected", None)
    shape.pop("absent", None)
    if decision.rejected and "error" not in shape:
        shape["failed"] = {node: list(status.reasons) for node, status in decision.rejected.items()}
        shape["failed_predicates"] = {
            node: status.plugin.split(", ") for node, status in decision.rejected.items() if status.plugin
        }
    return shape
