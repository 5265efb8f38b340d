"""Pods as the API server would store them, with what pods of one template have in common worked out once."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from podium.errors import InputError
from podium.load.checks import check
from podium.load.defaults import default_metadata
from podium.load.label_keys import has_label_keys
from podium.load.pod_defaults import deciding_volumes, default_spec, with_label_keys
from podium.objects import Pod, PodSpec, PodStatus

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
