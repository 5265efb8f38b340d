"""Pods as the API server would store them, with what pods of one template have in common worked out once."""

from __future__ import annotations

from typing import NamedTuple

import msgspec
from msgspec.structs import replace

from podium.load.checks import check
from podium.load.defaults import default_metadata
from podium.load.label_keys import has_label_keys
from podium.load.pod_defaults import deciding_volumes, default_spec, with_label_keys
from podium.objects import Pod, PodSpec, PodStatus

_encode = msgspec.json.Encoder().encode


class _Known(NamedTuple):
    """What pods of one template have in common."""

    spec: PodSpec
    """With everything filled in, but for the node."""
    names_labels: bool
    """Whether the spec means labels of the pod by their keys."""
    status: PodStatus
    """That of the first of them."""


class StoredPods:
    """Checks pods and fills in what they leave out; what several pods say becomes one object, in spec and status."""

    # Pods of one template mostly come close together; the bound is for input of pods that are all different.
    REMEMBERED = 1 << 14

    def __init__(self) -> None:
        self._known: dict[bytes, _Known] = {}

    def stored(self, pod: Pod) -> Pod:
        """The pod, which must have a name, with everything filled in; InputError with the field path, as of `check`."""
        shared = replace(pod.spec, node_name="", volumes=deciding_volumes(pod.spec.volumes))
        key = _encode((shared, replace(pod.status, start_time=None)))
        known = self._known.get(key)
        if known is None:
            check(pod)
            if len(self._known) >= self.REMEMBERED:
                self._known.clear()
            filled = default_spec(shared)
            known = self._known[key] = _Known(filled, has_label_keys(filled), pod.status)
        spec = known.spec
        if known.names_labels:
            spec = with_label_keys(spec, pod.metadata.labels)
        if pod.spec.node_name:
            spec = replace(spec, node_name=pod.spec.node_name)
        status = known.status
        if status.start_time != pod.status.start_time:
            status = replace(status, start_time=pod.status.start_time)
        return Pod(metadata=default_metadata("Pod", pod.metadata), spec=spec, status=status)
