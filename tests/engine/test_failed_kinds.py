"""A kind of pod that fits nowhere is known to fit nowhere until something changes that may make it fit."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from builders import make_node, make_pod
from podium.cluster import Cluster, NodeInfo
from podium.engine import Scheduler
from podium.engine._failed_kinds import FailedKinds
from podium.engine._nominations import Nominations
from podium.engine._row_changes import RowChangeLog
from podium.engine.plan import Plans
from podium.framework import SUCCESS, CycleState, FilterPlugin, Registry, Status
from podium.model import Pod
from podium.plugins import IN_TREE

LARGE = {"cpu": "3"}
RUNNING = make_pod("running", node="a", requests={"cpu": "2"}, priority=100)
NODES = [make_node("a", cpu="4"), make_node("b", cpu="2")]


def failed_on(
    cluster: Cluster, nominations: Nominations | None = None, registry: Registry = IN_TREE, own: bool = False
) -> FailedKinds:
    """What is known of the cluster: nothing yet."""
    config = None
    if own:
        plugins = {"multiPoint": {"enabled": [{"name": "Undeclared"}]}}
        kind = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
        config = {**kind, "profiles": [{"plugins": plugins}]}
    scheduler = Scheduler(cluster, config, registry=registry)
    waiting = Nominations() if nominations is None else nominations
    frameworks, behaviour = scheduler.frameworks, scheduler.setup.behaviour
    plans = {name: Plans(framework, cluster, behaviour) for name, framework in frameworks.items()}
    return FailedKinds(cluster, waiting, frameworks, (), plans, RowChangeLog(cluster, waiting))


def test_pods_of_one_kind_fail_alike() -> None:
    failed = failed_on(Cluster.from_objects([*NODES, RUNNING]))
    assert failed.find(make_pod("one", requests=LARGE)) is None

    known = failed.add(make_pod("one", requests=LARGE))

    assert failed.are_any
    assert failed.find(make_pod("two", requests=LARGE)) is known
    assert failed.find(make_pod("two", requests={"cpu": "1"})) is None


CHANGES: dict[str, tuple[Callable[[Cluster], object], bool]] = {
    "nothing": (lambda cluster: None, True),
    "a pod came": (lambda cluster: cluster.add(make_pod("new", node="b", requests={"cpu": "1"})), True),
    "a pod is gone": (lambda cluster: cluster.remove(RUNNING), False),
    "a node came": (lambda cluster: cluster.add(make_node("c", cpu="4")), False),
    "a node grew": (lambda cluster: cluster.update(make_node("b", cpu="8")), False),
}


@pytest.mark.parametrize(("change", "still"), CHANGES.values(), ids=CHANGES)
def test_it_is_known_until_it_may_fit(change: Callable[[Cluster], object], still: bool) -> None:
    cluster = Cluster.from_objects([*NODES, RUNNING])
    failed = failed_on(cluster)
    failed.add(make_pod("one", requests=LARGE))

    change(cluster)

    assert (failed.find(make_pod("two", requests=LARGE), look_again=True) is not None) is still


def test_without_looking_again_any_change_is_enough_to_forget() -> None:
    cluster = Cluster.from_objects([*NODES, RUNNING])
    failed = failed_on(cluster)
    failed.add(make_pod("one", requests=LARGE))

    cluster.add(make_pod("new", node="b", requests={"cpu": "1"}))

    assert failed.find(make_pod("two", requests=LARGE)) is None


class Undeclared(FilterPlugin):
    """Does not say what it reads."""

    name = "Undeclared"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return SUCCESS


OWN_VOLUME = [{"name": "v", "ephemeral": {"volumeClaimTemplate": {"spec": {"accessModes": ["ReadWriteOnce"]}}}}]
ALONE: dict[str, tuple[Pod, bool]] = {
    "with a claim that goes by its name": (make_pod("one", requests=LARGE, volumes=OWN_VOLUME), False),
    "under a plugin that does not say what it reads": (make_pod("one", requests=LARGE), True),
}


@pytest.mark.parametrize(("pod", "own"), ALONE.values(), ids=ALONE)
def test_a_pod_that_others_do_not_stand_for(pod: Pod, own: bool) -> None:
    cluster = Cluster.from_objects([*NODES, RUNNING])
    failed = failed_on(cluster, registry=Registry((*IN_TREE.values(), Undeclared)), own=own)

    failed.add(pod)

    assert not failed.are_any
    assert failed.find(pod) is None


def test_a_nominated_pod_is_looked_at_by_itself() -> None:
    cluster, nominations = Cluster.from_objects([*NODES, RUNNING]), Nominations()
    failed = failed_on(cluster, nominations)
    failed.add(make_pod("one", requests=LARGE))
    nominated = make_pod("two", requests=LARGE)

    nominations.nominate(nominated, "a")

    assert failed.find(nominated, look_again=True) is None
    assert failed.find(make_pod("three", requests=LARGE), look_again=True) is not None
