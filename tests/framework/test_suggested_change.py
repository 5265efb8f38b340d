"""Which evictions are suggested."""

from __future__ import annotations

import pytest

from builders import make_node, make_pod
from podium.cluster import Cluster
from podium.framework.suggested_change import evict_few, evictable, may_be_evicted
from podium.model import Pod

PODS: dict[str, tuple[Pod, bool]] = {
    "of nobody": (make_pod("p", node="n"), True),
    "of a ReplicaSet": (make_pod("p", node="n", owner={"kind": "ReplicaSet", "name": "web"}), True),
    "just not critical": (make_pod("p", node="n", priority=1_999_999_999), True),
    "critical": (make_pod("p", node="n", priority=2_000_000_000), False),
    "of a DaemonSet": (make_pod("p", node="n", owner={"kind": "DaemonSet", "name": "agent"}), False),
    "of the node": (make_pod("p", node="n", owner={"kind": "Node", "name": "n"}), False),
    "mirror": (make_pod("p", node="n", mirror=True), False),
    "terminating": (make_pod("p", node="n", deleted=True), False),
}


@pytest.mark.parametrize(("pod", "may"), PODS.values(), ids=PODS)
def test_which_pods_may_be_evicted(pod: Pod, may: bool) -> None:
    other = make_pod("other", node="n")
    cluster = Cluster.from_objects([make_node("n"), pod])

    assert may_be_evicted(pod) is may
    assert evictable(cluster, "n") == ([pod] if may else [])
    # All of them have to go, so that one that stays rules the others out.
    assert [change.on for change in evict_few([pod, other])] == (
        [tuple(f"pod/{each.key}" for each in sorted((pod, other), key=lambda each: (each.priority, each.key)))]
        if may
        else []
    )


@pytest.mark.parametrize(("number", "suggested"), [(0, 0), (1, 1), (3, 1), (4, 0)])
def test_only_a_few_are_evicted_together(number: int, suggested: int) -> None:
    assert len(list(evict_few([make_pod(f"p{each}", node="n") for each in range(number)]))) == suggested
