"""Hashes of values that are looked up often."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

T = TypeVar("T", bound=type[Any])


def hashed_once(kind: T) -> T:
    """A frozen dataclass, made to work out its hash once per instance and process."""
    work_out: Callable[[object], int] = vars(kind)["__hash__"]

    def hash_of(self: Any) -> int:
        try:
            found: int = self._hash
        except AttributeError:
            found = vars(self)["_hash"] = work_out(self)
        return found

    def state_of(self: object) -> dict[str, Any]:
        # Strings have another hash in another process.
        return {name: value for name, value in vars(self).items() if name != "_hash"}

    type.__setattr__(kind, "__hash__", hash_of)
    type.__setattr__(kind, "__getstate__", state_of)
    return kind
