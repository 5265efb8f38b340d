"""Pods as the API server would store them, with what pods of one template have in common worked out once."""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from podium.load.checks import check
from podium.load.defaults import default_metadata
from podium.load.label_keys import has_label_keys
from podium.load.pod_defaults import deciding_volumes, default_spec, with_label_keys
from podium.objects import Pod, PodSpec

_encode = msgspec.json.Encoder().encode


class StoredPods:
    """Checks pods and fills in what they leave out; specs that say the same become one object, but for the node."""

    # Pods of one template mostly come close together; the bound is for input of pods that are all different.
    REMEMBERED = 1 << 14

    def __init__(self) -> None:
        self._specs: dict[bytes, tuple[PodSpec, bool]] = {}

    def stored(self, pod: Pod) -> Pod:
        """The pod, which must have a name, with everything filled in; InputError with the field path, as of `check`."""
        spec, status = pod.spec, pod.status
        shared = replace(spec, node_name="", volumes=deciding_volumes(spec.volumes))
        # All that is checked: most of a status is not.
        statuses = status.container_statuses, status.init_container_statuses
        key = _encode((shared, statuses, status.allocated_resources, status.resources))
        known = self._specs.get(key)
        if known is None:
            check(pod)
            if len(self._specs) >= self.REMEMBERED:
                self._specs.clear()
            filled = default_spec(shared)
            known = self._specs[key] = filled, has_label_keys(filled)
        filled, names_labels = known
        if names_labels:
            filled = with_label_keys(filled, pod.metadata.labels)
        if spec.node_name:
            filled = replace(filled, node_name=spec.node_name)
        return Pod(metadata=default_metadata("Pod", pod.metadata), spec=filled, status=status)
