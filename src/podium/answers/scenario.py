"""A scenario: changes to a cluster, and another release, configuration or weights to decide its pods with.

A scenario is a value that can be written to a file and read again. Applied to a cluster's objects, it gives other
objects, and every question can be asked about these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from podium.answers.score_settings import NO_SETTINGS, ScoreSettings
from podium.errors import InputError
from podium.manifests.yaml_documents import yaml_documents
from podium.wording import counted, listed, value_problem

Manifest = dict[str, Any] | list[dict[str, Any]] | str
"""Kubernetes objects: one, a List, a list of them, or YAML or JSON text."""
Name = Annotated[str, Meta(min_length=1, max_length=600)]
NodeNames = Annotated[
    list[Name],
    Meta(min_length=1, max_length=10_000, description="The nodes by their names, or by label: zone=eu-1a."),
]
NAMED = 3
"""How many nodes, pods or kinds the name of a scenario has at most."""


class Cordon(msgspec.Struct, tag_field="do", tag="cordon", forbid_unknown_fields=True, frozen=True):
    """Allow no new pods on these nodes."""

    nodes: NodeNames

    @property
    def words(self) -> str:
        return f"cordon {listed(self.nodes, NAMED)}"


class Uncordon(msgspec.Struct, tag_field="do", tag="uncordon", forbid_unknown_fields=True, frozen=True):
    """Allow new pods on these nodes again."""

    nodes: NodeNames

    @property
    def words(self) -> str:
        return f"uncordon {listed(self.nodes, NAMED)}"


class DrainStep(msgspec.Struct, tag_field="do", tag="drain", forbid_unknown_fields=True, frozen=True):
    """Cordon these nodes and evict their pods one by one, as far as budgets allow it."""

    nodes: NodeNames

    @property
    def words(self) -> str:
        return f"drain {listed(self.nodes, NAMED)}"


class FailStep(msgspec.Struct, tag_field="do", tag="fail", forbid_unknown_fields=True, frozen=True):
    """Remove these nodes, and create their pods again elsewhere."""

    nodes: Annotated[list[Name], Meta(max_length=10_000, description="The nodes by their names, or by label.")] = []
    selector: Annotated[Name | None, Meta(description="Or the nodes by label: zone=eu-1a.")] = None

    @property
    def words(self) -> str:
        return f"lose {listed([*self.nodes, *([self.selector] if self.selector else [])], NAMED)}"


class AddNodes(msgspec.Struct, tag_field="do", tag="add-nodes", forbid_unknown_fields=True, frozen=True):
    """Add empty nodes that are copies of an existing node, each with its daemon pods."""

    like: Annotated[Name, Meta(description="The node that they are like.")]
    count: Annotated[int, Meta(ge=1, le=10_000, description="How many.")] = 1

    @property
    def words(self) -> str:
        return f"add {counted(self.count, 'node')} like {self.like}"


class Scale(msgspec.Struct, tag_field="do", tag="scale", forbid_unknown_fields=True, frozen=True):
    """Scale a workload to this number of pods."""

    workload: Annotated[Name, Meta(description="The workload as `namespace/Kind/name`.")]
    replicas: Annotated[int, Meta(ge=0, le=100_000, description="How many pods it has from then on.")]

    @property
    def words(self) -> str:
        namespace, _, name = self.workload.partition("/")
        return f"scale {namespace}/{name.rpartition('/')[2]} to {self.replicas:,}"


class Apply(msgspec.Struct, tag_field="do", tag="apply", forbid_unknown_fields=True, frozen=True):
    """Add objects, or apply them over those of the same name, as `kubectl apply` does."""

    objects: Annotated[Manifest, Meta(description="Kubernetes objects, or YAML or JSON text.")]
    note: Annotated[str, Meta(max_length=2_000, description="What the objects change, in words.")] = ""

    @property
    def words(self) -> str:
        if self.note:
            return self.note
        if isinstance(self.objects, str):
            return "apply YAML"
        found = self.objects if isinstance(self.objects, list) else [self.objects]
        names = [f"{each.get('kind')} {(each.get('metadata') or {}).get('name')}" for each in found]
        return f"apply {listed(names, NAMED)}"


class Evict(msgspec.Struct, tag_field="do", tag="evict", forbid_unknown_fields=True, frozen=True):
    """Take pods off their nodes; those that a controller creates again wait for a node."""

    pods: Annotated[list[Name], Meta(min_length=1, max_length=10_000, description="The pods, each as namespace/name.")]

    @property
    def words(self) -> str:
        return f"evict {listed(self.pods, NAMED)}"


class Place(msgspec.Struct, tag_field="do", tag="place", forbid_unknown_fields=True, frozen=True):
    """Put every pending pod on the node where `podium simulate` puts it."""

    @property
    def words(self) -> str:
        return "place the pending pods"


Step = Cordon | Uncordon | DrainStep | FailStep | AddNodes | Scale | Apply | Evict | Place


class Scenario(msgspec.Struct, kw_only=True, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Changes to a cluster, and another release, configuration or weights to decide its pods with."""

    name: Annotated[str, Meta(max_length=200, description="A name of its own; made of its parts unless given.")] = ""
    release: Annotated[Name | None, Meta(description="The release that decides, such as v1.36.")] = None
    config: Annotated[Manifest | None, Meta(description="The KubeSchedulerConfiguration that decides.")] = None
    settings: Annotated[ScoreSettings, Meta(description="Other weights.")] = NO_SETTINGS
    steps: Annotated[list[Step], Meta(max_length=100, description="The changes, in their order.")] = []

    @property
    def title(self) -> str:
        """Its name, or its parts: `base + drain general-a3 + NodeResourcesFit 2`."""
        release = [f"as {self.release}"] if self.release else []
        config = ["another configuration"] if self.config is not None else []
        return self.name or " + ".join(["base", *release, *config, *self.settings.words, *map(_words, self.steps)])

    def __bool__(self) -> bool:
        """Whether it differs from the cluster as it is."""
        return bool(self.release or self.config is not None or self.settings or self.steps)


def _words(step: Step) -> str:
    return step.words


BASE = Scenario()
"""The cluster as it is."""


def read_scenario(document: object, where: str) -> Scenario:
    """The scenario of a document, of kind Scenario; InputError in one line."""
    if not isinstance(document, Mapping):
        raise InputError("is not a scenario: it has to be an object with steps, settings, release or config", where)
    known = {"apiVersion": ("podium/v1",), "kind": ("Scenario",)}
    for field, values in known.items():
        if document.get(field, values[0]) not in values:
            raise InputError(f"{field} is {document[field]!r}; of a scenario it is {values[0]}", where)
    given = {key: value for key, value in document.items() if key not in known}
    try:
        return msgspec.convert(given, Scenario)
    except msgspec.ValidationError as error:
        raise InputError(value_problem(str(error)), where) from None


def scenario_document(scenario: Scenario) -> dict[str, Any]:
    """The scenario as `read_scenario` reads it; parts that are not set are left out."""
    plain = msgspec.to_builtins(scenario)
    plain["settings"] = {key: value for key, value in plain["settings"].items() if value}
    return {"apiVersion": "podium/v1", "kind": "Scenario", **{key: value for key, value in plain.items() if value}}


def one_document(manifest: Manifest, where: str) -> Mapping[str, Any]:
    """The only document of a manifest."""
    documents = documents_of(manifest, where)
    if len(documents) != 1:
        raise InputError(f"{where} has {len(documents)} documents; a configuration is one")
    return documents[0]


def documents_of(manifest: Manifest, where: str) -> list[Mapping[str, Any]]:
    """The documents of a manifest; text is YAML or JSON, never the name of a file."""
    if isinstance(manifest, str):
        found: list[object] = [document for document in yaml_documents(manifest, where) if document is not None]
    else:
        found = list(manifest) if isinstance(manifest, list) else [manifest]
    documents: list[Mapping[str, Any]] = []
    for each in found:
        if not isinstance(each, Mapping):
            raise InputError(f"{where} has something that is not an object")
        documents.append(each)
    if not documents:
        raise InputError(f"{where} is empty")
    return documents
