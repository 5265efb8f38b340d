"""What every Kubernetes object has: names, labels, owners, selectors."""

from __future__ import annotations

from typing import Annotated

import msgspec


class Struct(msgspec.Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True, gc=False):
    """An immutable API object with only the fields scheduling reads; unknown fields are skipped on decoding."""


Quantity = str | int | float
"""A resource quantity as it stands in YAML or JSON; `podium.model.quantity` gives it meaning."""

ResourceList = dict[str, Quantity]

Int32 = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
"""The integers of the API, but for a few that are wider: what is larger is refused, as the API server does."""
Int64 = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**31 - 1)]
"""How many there are of something."""


class OwnerReference(Struct, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool = False


class ObjectMeta(Struct, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    generation: int = 0
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    creation_timestamp: str | None = None
    deletion_timestamp: str | None = None

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        owners = self.owner_references
        return next((owner for owner in owners if owner.controller), None) if owners else None


class SelectorRequirement(Struct, frozen=True):
    """One `key operator values` line of a label or node selector."""

    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(Struct, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[SelectorRequirement] = []


class NodeSelectorTerm(Struct, frozen=True):
    match_expressions: list[SelectorRequirement] = []
    match_fields: list[SelectorRequirement] = []


class NodeSelector(Struct, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class Object(Struct, frozen=True):
    """A top-level object: it has metadata."""

    metadata: ObjectMeta = ObjectMeta()

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def key(self) -> str:
        """`namespace/name`, or `name` for a cluster-scoped object."""
        return f"{self.metadata.namespace}/{self.metadata.name}" if self.metadata.namespace else self.metadata.name
