from __future__ import annotations

from dataclasses import dataclass

from builders import decide, make_node, make_pod
from podium.framework import SUCCESS, Code
from podium.model import Pod
from podium.plugins.priority_sort import PrioritySort
from podium.plugins.scheduling_gates import SchedulingGates


@dataclass
class Queued:
    pod: Pod
    timestamp: float


def test_higher_priority_comes_first_and_then_who_waited_longer() -> None:
    queue = [
        Queued(make_pod("late", priority=5), 2.0),
        Queued(make_pod("early", priority=5), 1.0),
        Queued(make_pod("urgent", priority=10), 3.0),
        Queued(make_pod("plain"), 0.0),
        Queued(make_pod("humble", priority=-1), 0.0),
    ]
    order = sorted(queue, key=PrioritySort().sort_key)
    assert [queued.pod.name for queued in order] == ["urgent", "early", "late", "plain", "humble"]


def test_a_pod_without_gates_may_enter() -> None:
    assert SchedulingGates().pre_enqueue(make_pod()) == SUCCESS


def test_a_gated_pod_waits_for_its_gates() -> None:
    pod = make_pod(scheduling_gates=[{"name": "quota"}, {"name": "volume"}])
    status = SchedulingGates().pre_enqueue(pod)
    assert status.code is Code.UNSCHEDULABLE_AND_UNRESOLVABLE
    assert status.reasons == ("waiting for scheduling gates: [quota volume]",)
    assert "waiting for scheduling gates: [quota volume]" in decide([make_node()], pod).error
