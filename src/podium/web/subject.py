"""What a question is about: a cluster and how its pods are decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.engine.release import CURRENT, AnyRelease, Release, release_of
from podium.errors import InputError
from podium.framework import Registry
from podium.manifests import Objects, expand_workloads, load
from podium.manifests.yaml_documents import yaml_documents
from podium.model import Node
from podium.web.questions import Manifest, Question

POSTED = "the posted cluster"
POSTED_CONFIG = "the posted configuration"
NAMES_EXTENDERS = frozenset({"extenders", "extenderconfigs"})


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A cluster, its objects, and what decides its pods.

    `document` is the configuration as it was written, None for the default one; `config` is what the release makes of
    it.
    """

    objects: Objects
    """Workloads without pods have theirs."""
    cluster: Cluster
    document: Mapping[str, Any] | None
    config: KubeSchedulerConfiguration | None
    release: Release
    registry: Registry

    @property
    def options(self) -> dict[str, Any]:
        """What every function that decides pods takes."""
        return {"config": self.config, "registry": self.registry, "release": self.release}


def subject_of(question: Question, served: Subject) -> Subject:
    """What a question is about: the served cluster and configuration, or those it brings."""
    release = served.release if question.release is None else release_of(question.release)
    if question.cluster is None:
        objects, cluster = served.objects, served.cluster
        document = served.document if release.is_old == served.release.is_old else None
    else:
        objects = expand_workloads(load(*manifests(question.cluster, POSTED)))
        if not objects.of(Node):
            raise InputError(f"no node in {POSTED}: get them with `kubectl get nodes -o json`")
        cluster = Cluster.from_objects(objects)
        document = _without_extenders(objects.scheduler_config, f"schedulerConfig of {POSTED}")
        if document is not None and not release.knows(document):
            document = None
    if question.config is not None:
        document = posted_configuration(question.config)
    config = configured(document, release, served.registry, POSTED_CONFIG)
    return Subject(
        objects=objects, cluster=cluster, document=document, config=config, release=release, registry=served.registry
    )


def served_subject(
    objects: Objects,
    document: Mapping[str, Any] | None,
    registry: Registry,
    *,
    release: AnyRelease = CURRENT,
    where: str = "",
) -> Subject:
    """What a server is started with."""
    objects = expand_workloads(objects)
    config = configured(document, release, registry, where)
    return Subject(
        objects=objects,
        cluster=Cluster.from_objects(objects),
        document=document,
        config=config,
        release=release_of(release),
        registry=registry,
    )


def configured(
    document: Mapping[str, Any] | None, release: AnyRelease, registry: Registry, where: str
) -> KubeSchedulerConfiguration | None:
    """What a release makes of a configuration; None for the default one."""
    made = release_of(release)
    if document is None:
        return None
    try:
        return made.set_up(document, registry=registry).config
    except InputError as error:
        raise error.at(where) from None


def posted_configuration(manifest: Manifest) -> Mapping[str, Any]:
    """A configuration out of a request: one document, which names no extender."""
    found = manifests(manifest, POSTED_CONFIG)
    if len(found) != 1:
        raise InputError(f"{POSTED_CONFIG} has {len(found)} documents; a configuration is one")
    document = _without_extenders(found[0], POSTED_CONFIG)
    assert document is not None
    return document


def _without_extenders(document: object, where: str) -> Mapping[str, Any] | None:
    """The configuration, unless it names extenders: whoever may ask a question may not have this server call others.

    Their TLS files would be read, too.
    """
    if document is None:
        return None
    if not isinstance(document, Mapping):
        raise InputError(f"{where} is not an object")
    for key, value in document.items():
        if str(key).lower() in NAMES_EXTENDERS and value:
            raise InputError(f"{where} names extenders, which this server does not call: leave them out")
    return document


def manifests(manifest: Manifest, where: str) -> list[Mapping[str, Any]]:
    """Objects out of a request: never the name of a file."""
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
