"""Selectors by a label that they ask for, so that few of many have to be tried."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Generic, TypeVar

from podium.selectors import Labels, Selector

H = TypeVar("H", bound=Hashable)


class SelectorIndex(Generic[H]):
    """Finds the selectors that may match some labels without trying them all."""

    def __init__(self) -> None:
        self._by_pair: dict[tuple[str, str], dict[H, None]] = {}
        self._rest: dict[H, None] = {}

    def _bucket(self, selector: Selector) -> dict[H, None]:
        pair = selecting_pair(selector)
        return self._rest if pair is None else self._by_pair.setdefault(pair, {})

    def add(self, selector: Selector, item: H) -> None:
        self._bucket(selector)[item] = None

    def discard(self, selector: Selector, item: H) -> None:
        self._bucket(selector).pop(item, None)

    def candidates(self, labels: Labels) -> Iterator[H]:
        """Every item whose selector may match; a superset of those that do."""
        yield from self._rest
        for pair in labels.items():
            yield from self._by_pair.get(pair, ())


def selecting_pair(selector: Selector) -> tuple[str, str] | None:
    """A label that every matching object must have, to look candidates up by; None when there is none."""
    for requirement in selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None
