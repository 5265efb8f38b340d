"""Writes the conditions of PodGroups."""

from __future__ import annotations

import msgspec

from podium.live.client import STRATEGIC_PATCH, Requests
from podium.live.pod_statuses import time_now
from podium.live.reading import resource_of
from podium.model import PodGroup
from podium.model.pod_groups import Condition


async def write_condition(client: Requests, group: PodGroup, condition: Condition) -> None:
    """Write a condition to a PodGroup's status, if it is still the same group; ApiError if that fails."""
    fields = {
        "type": condition.type,
        "status": condition.status,
        "reason": condition.reason,
        "message": condition.message,
        "observedGeneration": condition.observed_generation,
    }
    before = next((each for each in group.status.conditions if each.type == condition.type), None)
    if before is None or before.status != condition.status:
        fields["lastTransitionTime"] = time_now()
    patch = msgspec.json.encode({"metadata": {"uid": group.metadata.uid}, "status": {"conditions": [fields]}})
    path = resource_of(group).path_of(group.namespace, group.name)
    await client.request("PATCH", f"{path}/status", patch, content_type=STRATEGIC_PATCH)
