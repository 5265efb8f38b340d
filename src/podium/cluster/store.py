"""Stores the objects that are neither nodes nor pods: namespaces, services, owners, volumes, budgets, images, and the
resource claims of pods.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import count
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from podium.model import Node, Object, PersistentVolumeClaim, Pod, ResourceClaim
from podium.model.devices import AllocatedDeviceStatus, DeviceCondition, ResourceClaimStatus

T = TypeVar("T", bound=Object)

_versions = count(1)


class Store:
    """Objects by kind, namespace and name; each kind is ordered by namespace and name."""

    MOST_RECENT = 4096

    def __init__(self) -> None:
        self.version = 0
        """Changes with every change of an object; two stores with different objects never have the same number."""
        self._recent: deque[tuple[int, Object]] = deque(maxlen=self.MOST_RECENT)
        self._kinds: dict[type[Object], Shelf[Object]] = {}

    def of(self, kind: type[T]) -> Shelf[T]:
        """All objects of a kind."""
        shelf = self._kinds.get(kind)
        if shelf is None:
            shelf = self._kinds[kind] = Shelf()
        return shelf  # type: ignore[return-value]  # the shelf of a kind only ever holds that kind

    def has_any(self, kind: type[Object]) -> bool:
        """Whether there is an object of this kind."""
        shelf = self._kinds.get(kind)
        return shelf is not None and len(shelf) > 0

    def __iter__(self) -> Iterator[Object]:
        """All objects, kind by kind."""
        for shelf in self._kinds.values():
            yield from shelf

    def put(self, item: Object) -> None:
        self.of(type(item)).put(item)
        self._changed(item)

    def remove(self, item: Object) -> None:
        self.of(type(item)).remove(item)
        self._changed(item)

    def since(self, version: int) -> list[Object] | None:
        """The objects put or removed after a version, newest first; None if that is too long ago."""
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
        """The objects of a namespace, ordered by name."""
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


class ImageState:
    """One image name: its size in bytes on the first node that reported it, and the rows that have it."""

    __slots__ = ("rows", "size")

    def __init__(self, size: int) -> None:
        self.size = size
        self.rows: set[int] = set()


class Images:
    """The images of all nodes, by name."""

    def __init__(self) -> None:
        self.states: dict[str, ImageState] = {}

    def add(self, row: int, node: Node) -> None:
        states = self.states
        for image in node.status.images:
            for name in image.names:
                state = states.get(name)
                if state is None:
                    state = states[name] = ImageState(image.size_bytes)
                state.rows.add(row)

    def remove(self, row: int, node: Node) -> None:
        for image in node.status.images:
            for name in image.names:
                state = self.states.get(name)
                if state is not None:
                    state.rows.discard(row)
                    if not state.rows:
                        del self.states[name]

    def copy(self) -> Images:
        twin = Images()
        for name, state in self.states.items():
            copied = twin.states[name] = ImageState(state.size)
            copied.rows = state.rows.copy()
        return twin


EXTENDED_RESOURCE_CLAIM = "resource.kubernetes.io/extended-resource-claim"
"""The annotation of a claim that the scheduler creates for a pod's extended resources."""


def extended_claim_name(pod: Pod) -> str:
    """The name of the claim created for a pod's extended resources."""
    status = pod.status.extended_resource_claim_status
    return f"{pod.name}-extended-resources" if status is None else status.resource_claim_name


def claim_names(pod: Pod) -> Iterator[str]:
    """The names of the claims that a pod uses or may use: those in its spec, and those generated for it."""
    for reference in pod.spec.resource_claims:
        if reference.resource_claim_name is not None:
            yield reference.resource_claim_name
    for status in pod.status.resource_claim_statuses:
        if status.resource_claim_name is not None:
            yield status.resource_claim_name
    yield extended_claim_name(pod)


def is_owned_by(claim: PersistentVolumeClaim | ResourceClaim, pod: Pod) -> bool:
    """Whether a claim was created for a pod, and is deleted with it."""
    owner = claim.metadata.controller
    return owner is not None and owner.uid == pod.metadata.uid


def made_ready(claim: ResourceClaim) -> ResourceClaim:
    """The claim with the binding conditions of its devices met; the same claim if it has none."""
    allocation, status = claim.status.allocation, claim.status
    reported = {(each.driver, each.pool, each.device) for each in status.devices}
    added = [
        AllocatedDeviceStatus(
            driver=each.driver,
            pool=each.pool,
            device=each.device,
            share_id=each.share_id,
            conditions=[DeviceCondition(type=name, status="True") for name in each.binding_conditions],
        )
        for each in (allocation.devices.results if allocation else ())
        if each.binding_conditions and (each.driver, each.pool, each.device) not in reported
    ]
    return replace(claim, status=replace(status, devices=[*status.devices, *added])) if added else claim


class ClaimRelease(NamedTuple):
    """How a claim changes when a pod that used it ends."""

    before: ResourceClaim
    after: ResourceClaim
    """The claim without the pod; also without devices, if no other pod uses it."""


def releases(pod: Pod, store: Store) -> list[ClaimRelease]:
    """How the claims that a pod used change when it ends."""
    found = []
    for name in claim_names(pod):
        claim = store.of(ResourceClaim).get(name, pod.namespace)
        if claim is None:
            continue
        others = [each for each in claim.status.reserved_for if each.uid != pod.metadata.uid]
        was_reserved = len(others) < len(claim.status.reserved_for)
        is_alone = not others and (was_reserved or is_owned_by(claim, pod))
        if is_alone and claim.status != ResourceClaimStatus():
            found.append(ClaimRelease(claim, replace(claim, status=ResourceClaimStatus())))
        elif was_reserved:
            found.append(ClaimRelease(claim, replace(claim, status=replace(claim.status, reserved_for=others))))
    return found
