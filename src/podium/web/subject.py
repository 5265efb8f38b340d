"""The cluster of a question, and what decides its pods: the served one or its own, in a scenario."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from msgspec.structs import replace as replace_fields

from podium.answers.applied_scenario import Effect, apply_scenario, configured
from podium.answers.scenario import BASE, Manifest, Scenario, documents_of, one_document
from podium.answers.score_settings import NO_SETTINGS
from podium.cluster import Cluster
from podium.config import KubeSchedulerConfiguration
from podium.config.extender_calls import names_extenders
from podium.engine.release import CURRENT, AnyRelease, Release, release_of
from podium.engine.scheduler import SchedulerOptions
from podium.errors import InputError
from podium.framework import Registry
from podium.manifests import Objects, load
from podium.model import Node
from podium.web._questions import Question
from podium.workloads import expand_workloads

POSTED = "the posted cluster"
POSTED_CONFIG = "the posted configuration"


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A cluster, its objects, and the configuration that decides its pods.

    `document` is the configuration as written, None for the default; `config` is the configuration as the release reads
    it.
    """

    objects: Objects
    """The objects, including the pods that workloads lack."""
    cluster: Cluster
    document: Mapping[str, Any] | None
    config: KubeSchedulerConfiguration | None
    release: Release
    registry: Registry
    scenario: Scenario = BASE
    """The scenario that the rest is in."""
    effects: tuple[Effect, ...] = ()
    """What the steps of the scenario did."""
    before: Subject | None = None
    """The cluster and configuration before the scenario; None for the base."""

    @property
    def options(self) -> dict[str, Any]:
        """The keyword arguments of every function that decides pods."""
        return {"config": self.config, "registry": self.registry, "release": self.release}


def subject_of(question: Question, served: Subject) -> Subject:
    """The cluster and configuration of a question: the served ones or its own, in the question's scenario."""
    return in_scenario(_asked_about(question, served), question.scenario_value)


def in_scenario(subject: Subject, scenario: Scenario) -> Subject:
    """The cluster after the steps of a scenario, decided as the scenario says.

    Its configuration is a request's, so it must not name extenders.
    """
    if not scenario:
        return subject
    if scenario.config is not None:
        scenario = replace_fields(scenario, config=dict(posted_configuration(scenario.config)))
    options = SchedulerOptions(**subject.options)
    found = apply_scenario(scenario, subject.objects, subject.document, options, cluster=subject.cluster)
    release = release_of(found.options.release)
    return Subject(
        objects=found.objects,
        cluster=subject.cluster if found.objects is subject.objects else Cluster.from_objects(found.objects),
        document=found.document,
        config=configured(found.document, release, subject.registry, "the configuration of the scenario"),
        release=release,
        registry=subject.registry,
        scenario=scenario,
        effects=found.effects,
        before=subject,
    )


def without_settings(subject: Subject) -> Subject:
    """The same cluster, decided without the weights of its scenario."""
    before = subject.before
    if before is None or not subject.scenario.settings:
        return subject
    plain = in_scenario(before, replace_fields(subject.scenario, settings=NO_SETTINGS, steps=[]))
    return replace(subject, document=plain.document, config=plain.config)


def _asked_about(question: Question, served: Subject) -> Subject:
    """The cluster and configuration of a question: the served ones, or its own."""
    release = served.release if question.release is None else release_of(question.release)
    if question.cluster is None:
        objects, cluster = served.objects, served.cluster
        document = served.document if release.is_old == served.release.is_old else None
    else:
        objects = expand_workloads(load(documents_of(question.cluster, POSTED)))
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
    """The cluster and configuration that a server is started with."""
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


def posted_configuration(manifest: Manifest) -> Mapping[str, Any]:
    """The configuration of a request: one document without extenders."""
    document = _without_extenders(one_document(manifest, POSTED_CONFIG), POSTED_CONFIG)
    assert document is not None
    return document


def _without_extenders(document: object, where: str) -> Mapping[str, Any] | None:
    """The configuration; refused if it names extenders: a request must not make this server call others.

    Their TLS files would be read, too.
    """
    if document is None:
        return None
    if not isinstance(document, Mapping):
        raise InputError(f"{where} is not an object")
    if names_extenders(document):
        raise InputError(f"{where} names extenders, which this server does not call: leave them out")
    return document
