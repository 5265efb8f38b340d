"""The objects that are neither nodes nor pods: namespaces, services, owners, volumes, budgets."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Generic, TypeVar

from podium.model import Object

T = TypeVar("T", bound=Object)

_versions = count(1)


class Store:
    """Objects by kind, namespace and name, in the order of namespace and name within a kind."""

    MOST_RECENT = 4096

    def __init__(self) -> None:
        self.version = 0
        """Another number after every change, and never the same for two stores with different objects."""
        self._recent: deque[tuple[int, Object]] = deque(maxlen=self.MOST_RECENT)
        self._kinds: dict[type[Object], Shelf[Object]] = {}

    def of(self, kind: type[T]) -> Shelf[T]:
        """All objects of a kind."""
        shelf = self._kinds.get(kind)
        if shelf is None:
            shelf = self._kinds[kind] = Shelf()
        return shelf  # type: ignore[return-value]  # the shelf of a kind only ever holds that kind

    def put(self, item: Object) -> None:
        self.of(type(item)).put(item)
        self._changed(item)

    def remove(self, item: Object) -> None:
        self.of(type(item)).remove(item)
        self._changed(item)

    def since(self, version: int) -> list[Object] | None:
        """What was put or removed after a version, newest first; None when that is too long ago to tell."""
        changed: list[Object] = []
        if version == self.version:
            return changed
        for at, item in reversed(self._recent):
            if at == version:
                return changed
            changed.append(item)
        return None

    def _changed(self, item: Object) -> None:
        self.version = next(_versions)
        self._recent.append((self.version, item))

    def copy(self) -> Store:
        twin = Store()
        twin.version, twin._recent = self.version, self._recent.copy()
        twin._kinds = {kind: shelf.copy() for kind, shelf in self._kinds.items()}
        return twin


class Shelf(Generic[T]):
    """The objects of one kind."""

    __slots__ = ("_namespaces",)

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, T]] = {}

    def put(self, item: T) -> None:
        self._namespaces.setdefault(item.namespace, {})[item.name] = item

    def remove(self, item: T) -> None:
        self._namespaces.get(item.namespace, {}).pop(item.name, None)

    def get(self, name: str, namespace: str = "") -> T | None:
        return self._namespaces.get(namespace, {}).get(name)

    def within(self, namespace: str) -> list[T]:
        """The objects of a namespace, by name."""
        items = self._namespaces.get(namespace)
        return [item for _, item in sorted(items.items())] if items else []

    def __iter__(self) -> Iterator[T]:
        for namespace in sorted(self._namespaces):
            yield from self.within(namespace)

    def __len__(self) -> int:
        return sum(map(len, self._namespaces.values()))

    def copy(self) -> Shelf[T]:
        twin: Shelf[T] = Shelf()
        twin._namespaces = {namespace: items.copy() for namespace, items in self._namespaces.items()}
        return twin
