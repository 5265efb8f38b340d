"""What `explain` says about a pod of a group: how far the group gets, and what keeps it from getting further."""

from __future__ import annotations

from builders import make_node, make_pod
from pod_group_objects import RELEASE, WITH_PLACEMENTS, make_group, make_member
from podium.answers.explanation import Explained, explain_pod
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine.release import AnyRelease
from podium.model import Object
from podium.present.explanation import to_document


def explained(*objects: Object, release: AnyRelease = RELEASE) -> Explained:
    scheduler = Scheduler(Cluster.from_objects(objects), release=release, tie_break="first")
    return explain_pod(scheduler, scheduler.cluster.pending["default/g-0"])


def members(count: int) -> list[Object]:
    return [make_member(f"g-{n}") for n in range(count)]


def test_a_group_that_fits() -> None:
    found = explained(make_node("a"), make_group("g", 2), *members(3))
    assert found.is_placed
    assert found.group is not None
    assert found.group.sentence == "PodGroup default/g fits: 3 pods placed, 2 needed"


def test_a_group_that_does_not_fit_says_what_the_first_pod_lacks() -> None:
    found = explained(make_node("a", cpu="1"), make_group("g", 2), *members(2))
    assert found.decision.node == "a"
    assert not found.is_placed
    assert to_document(found)["podGroup"] == {
        "name": "default/g",
        "fits": False,
        "placed": 1,
        "needed": 2,
        "message": "PodGroup default/g does not fit, so none of its pods is placed: 1 of 2 needed pods find a node; "
        "g-1: 0/1 nodes are available: 1 Insufficient cpu.",
    }


def test_a_group_that_is_held_back() -> None:
    found = explained(make_node("a"), make_group("g", 2), *members(1))
    assert "waiting for minCount pods from a gang" in found.decision.error


def test_the_best_of_several_placements() -> None:
    nodes = [make_node(rack, cpu="2", labels={"rack": rack}) for rack in ("r1", "r2")]
    group = make_group("g", 2, schedulingConstraints={"topology": [{"key": "rack"}]})
    taken = make_pod("taken", node="r2", requests={"memory": "1Gi"})
    found = explained(*nodes, taken, group, *members(2), release=WITH_PLACEMENTS)
    assert found.group is not None
    assert found.group.sentence == "PodGroup default/g fits on rack=r2, the best of 2: 2 pods placed, 2 needed"
