"""Pods as the API server would store them, with what pods of one template have in common worked out once."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests.checks import check
from podium.manifests.defaults import deciding_volumes, default_metadata, default_spec, has_label_keys, with_label_keys
from podium.model import Object, ObjectMeta, Pod, PodSpec, PodStatus, PriorityClass

PREEMPT_LOWER_PRIORITY = "PreemptLowerPriority"

BUILT_IN = {
    name: PriorityClass(metadata=ObjectMeta(name=name), value=value)
    for name, value in (("system-cluster-critical", 2_000_000_000), ("system-node-critical", 2_000_001_000))
}
"""The classes every cluster has."""

_NO_CLASS = PriorityClass()


class Priorities:
    """Gives pods the priority of their class; remembers the classes it did not find."""

    def __init__(self, objects: Iterable[Object]) -> None:
        classes = [obj for obj in objects if type(obj) is PriorityClass]
        self.classes = BUILT_IN | {each.name: each for each in classes}
        # Several defaults are a race in the cluster; the API server takes the lowest.
        self.default = min((c for c in classes if c.global_default), key=lambda c: c.value, default=_NO_CLASS)
        self.missing: dict[str, None] = {}

    def resolve(self, pod: Pod) -> Pod:
        """The pod with a priority; one that has a priority already, as in a dump of a cluster, stays as it is."""
        spec = pod.spec
        if spec.priority is not None:
            return pod
        chosen = self._class_of(pod)
        policy = spec.preemption_policy or chosen.preemption_policy or PREEMPT_LOWER_PRIORITY
        name = spec.priority_class_name or chosen.name
        return replace(
            pod,
            spec=replace(spec, priority=chosen.value, preemption_policy=policy, priority_class_name=name),
        )

    def _class_of(self, pod: Pod) -> PriorityClass:
        name = pod.spec.priority_class_name
        if not name:
            return self.default
        found = self.classes.get(name)
        if found is None:
            self.missing.setdefault(name)
            return _NO_CLASS
        return found

    @property
    def warnings(self) -> list[str]:
        """One line per class that pods name and the input does not have."""
        return [
            f"PriorityClass {name} is not in the input: priority 0 assumed for the pods that name it"
            for name in self.missing
        ]


_encode = msgspec.json.Encoder().encode


class StoredPods:
    """Checks pods and fills in what they leave out; specs that say the same become one object, and so do statuses.

    What is a pod's own, its node and when it started, does not count.
    """

    # Pods of one template mostly come close together; the bound is for input of pods that are all different.
    REMEMBERED = 1 << 14

    def __init__(self) -> None:
        self._specs: dict[bytes, tuple[PodSpec, bool]] = {}
        """Each with everything filled in, and with whether it means labels of the pod by their keys."""
        self._statuses: dict[bytes, PodStatus] = {}

    def stored(self, pod: Pod) -> Pod:
        """The pod, which must have a name, with everything filled in; InputError with the field path, as of `check`."""
        shared = replace(pod.spec, node_name="", volumes=deciding_volumes(pod.spec.volumes))
        spec_key, status_key = _text_of(shared), _text_of(replace(pod.status, start_time=None))
        known, status = self._specs.get(spec_key), self._statuses.get(status_key)
        if known is None or status is None:
            check(pod)
        if known is None:
            if len(self._specs) >= self.REMEMBERED:
                self._specs.clear()
            filled = default_spec(shared)
            known = self._specs[spec_key] = filled, has_label_keys(filled)
        if status is None:
            if len(self._statuses) >= self.REMEMBERED:
                self._statuses.clear()
            status = self._statuses[status_key] = pod.status
        spec, names_labels = known
        if names_labels:
            spec = with_label_keys(spec, pod.metadata.labels)
        if pod.spec.node_name:
            spec = replace(spec, node_name=pod.spec.node_name)
        if status.start_time != pod.status.start_time:
            status = replace(status, start_time=pod.status.start_time)
        return Pod(metadata=default_metadata("Pod", pod.metadata), spec=spec, status=status)


def _text_of(part: PodSpec | PodStatus) -> bytes:
    """Equal for parts that say the same."""
    try:
        return _encode(part)
    except UnicodeEncodeError as error:
        raise InputError(f"holds {error.object!r}, which is not Unicode text") from None
