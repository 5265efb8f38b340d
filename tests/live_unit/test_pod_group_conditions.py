"""The conditions of PodGroups, as they are written to the API server."""

from __future__ import annotations

from typing import Any, cast

import msgspec

from live_unit.virtual_time import run
from pod_group_objects import make_group
from podium.live.client import Requests
from podium.live.pod_group_conditions import write_condition
from podium.live.reading import RESOURCES, SCHEDULED_BY
from podium.model.pod_groups import Condition, with_condition

WAITS = Condition(type="PodGroupInitiallyScheduled", status="False", reason="Unschedulable", message="no room")


class Recorder:
    """Stands for the API server: keeps what it is asked."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, Any]] = []

    async def request(self, method: str, path: str, body: bytes, **_: object) -> bytes:
        self.asked.append((method, path, msgspec.json.decode(body)))
        return b"{}"


def test_a_condition_is_patched_into_the_status() -> None:
    recorder, group = Recorder(), make_group("g", 2)
    run(write_condition(cast(Requests, recorder), group, WAITS))
    ((method, path, patch),) = recorder.asked
    assert (method, path) == ("PATCH", "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups/g/status")
    (condition,) = patch["status"]["conditions"]
    assert (condition["status"], condition["reason"], condition["message"]) == ("False", "Unschedulable", "no room")
    assert "lastTransitionTime" in condition


def test_the_time_stays_if_the_status_does() -> None:
    recorder, group = Recorder(), with_condition(make_group("g", 2), WAITS)
    run(write_condition(cast(Requests, recorder), group, Condition(type=WAITS.type, status="False", message="taints")))
    ((_, _, patch),) = recorder.asked
    assert "lastTransitionTime" not in patch["status"]["conditions"][0]


def test_a_running_scheduler_follows_groups() -> None:
    assert RESOURCES["PodGroup"] in SCHEDULED_BY
