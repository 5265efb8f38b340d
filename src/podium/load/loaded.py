"""What loading gives: the objects in input order, and what was noticed on the way."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar, overload

from podium.objects import Object

T = TypeVar("T", bound=Object)


class Objects(Sequence[Object]):
    """Typed objects in input order, immutable.

    `warnings` are one line each; `ignored` counts the kinds that scheduling does not read; `scheduler_config` is the
    KubeSchedulerConfiguration the input carried, undecoded, or None; `namespace` is the one that names without a
    namespace are in, None for any.
    """

    __slots__ = ("_objects", "ignored", "namespace", "scheduler_config", "warnings")

    def __init__(
        self,
        objects: Iterable[Object] = (),
        *,
        warnings: Iterable[str] = (),
        ignored: Mapping[str, int] | None = None,
        scheduler_config: object | None = None,
        namespace: str | None = None,
    ) -> None:
        self._objects = tuple(objects)
        self.warnings = tuple(warnings)
        self.ignored = dict(ignored or {})
        self.scheduler_config = scheduler_config
        self.namespace = namespace

    def __len__(self) -> int:
        return len(self._objects)

    def __iter__(self) -> Iterator[Object]:
        return iter(self._objects)

    @overload
    def __getitem__(self, index: int) -> Object: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Object, ...]: ...
    def __getitem__(self, index: int | slice) -> Object | tuple[Object, ...]:
        return self._objects[index]

    def __repr__(self) -> str:
        return f"<Objects: {len(self)}, {len(self.warnings)} warnings>"

    def of(self, kind: type[T]) -> list[T]:
        """The objects of one kind, in input order."""
        return [obj for obj in self._objects if type(obj) is kind]

    def replaced(self, objects: Iterable[Object], warnings: Iterable[str]) -> Objects:
        """The same load with other objects, and warnings it did not have yet."""
        new = [warning for warning in warnings if warning not in self.warnings]
        return Objects(
            objects,
            warnings=(*self.warnings, *new),
            ignored=self.ignored,
            scheduler_config=self.scheduler_config,
            namespace=self.namespace,
        )
