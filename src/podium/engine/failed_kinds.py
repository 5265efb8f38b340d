"""The kinds of pods that do not fit the cluster as it is now: pods of one kind fail alike until something changes."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from podium.cluster import Cluster
from podium.engine.attempt import Diagnosis
from podium.engine.decision import Decision
from podium.engine.nominations import Nominations
from podium.extenders import Extender
from podium.framework import Framework, Plugin
from podium.model import Pod
from podium.model.pod_kinds import has_objects_of_its_own
from podium.plugins.dynamic_resources.pod_claims import claims_key


@dataclass(slots=True)
class FailedKind:
    """A kind of pod that fits nowhere, with the explanations that somebody has asked for so far."""

    decision: Decision | None = None
    """Why it fits nowhere."""
    diagnosis: Diagnosis | None = None
    """The same, with what PostFilter can do about it: nothing."""


class FailedKinds:
    """Remembers which kinds of pods do not fit, until the cluster or a nomination changes.

    A kind is a compiled spec under one profile, with what the pod's claims for devices ask for. Nothing is remembered
    of a pod that others of its kind do not stand for: one with objects that go by its name, one that is nominated to a
    node, one that an extender is asked about, and one whose profile has a plugin that does not say what it reads.
    """

    def __init__(
        self,
        cluster: Cluster,
        nominations: Nominations,
        frameworks: Mapping[str, Framework],
        extenders: Sequence[Extender],
    ) -> None:
        self._cluster, self._nominations, self._extenders = cluster, nominations, extenders
        self._profiles = {name for name, framework in frameworks.items() if _goes_by_kind(framework)}
        self._known: dict[Hashable, FailedKind] = {}
        self._as_of: Hashable = None

    def find(self, pod: Pod) -> FailedKind | None:
        """What is known of the pod's kind: that it fits nowhere now. None if that is not known."""
        if not self._known:
            return None
        if self._as_of != self._state():
            self._known.clear()
            return None
        known = self._known.get(self._kind(pod))
        return known if known is not None and self._stands_for_its_kind(pod) else None

    def add(self, pod: Pod) -> FailedKind:
        """Note that the pod fits nowhere now; the record is kept only if it holds for all pods of its kind."""
        failed = FailedKind()
        if self._stands_for_its_kind(pod):
            state = self._state()
            if self._as_of != state:
                self._known.clear()
                self._as_of = state
            self._known[self._kind(pod)] = failed
        return failed

    def _state(self) -> Hashable:
        return self._cluster.version, self._nominations.version

    def _kind(self, pod: Pod) -> Hashable:
        cluster = self._cluster
        return cluster.info_of(pod), pod.spec.scheduler_name, claims_key(pod, cluster.store)

    def _stands_for_its_kind(self, pod: Pod) -> bool:
        return (
            pod.spec.scheduler_name in self._profiles
            and not has_objects_of_its_own(pod)
            and not self._nominations.node_of(pod)
            and not any(extender.is_interested(pod) for extender in self._extenders)
        )


def _goes_by_kind(framework: Framework) -> bool:
    """Whether all plugins that may reject a pod look at nothing of it but its kind."""
    return all(map(_is_known, (*framework.pre_filter, *framework.filter, *framework.post_filter)))


def _is_known(plugin: Plugin) -> bool:
    # Podium's own plugins look at the compiled spec only; others say so by saying what they read.
    return plugin.reads is not None or type(plugin).__module__.startswith("podium.")
