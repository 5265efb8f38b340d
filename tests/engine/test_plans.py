"""Which pods share a plan."""

from __future__ import annotations

from collections.abc import Hashable

import pytest

from builders import make_config, make_node, make_pod
from podium import of_spec
from podium.cluster import Cluster, Nodes, PodInfo
from podium.engine import Scheduler
from podium.engine.plans import RecentlyUsed
from podium.framework import CycleState, Registry, Verdict
from podium.objects import Pod
from podium.plugins import IN_TREE
from podium.plugins.taint_toleration import TaintToleration

ASKED: list[str] = []


class Counted(TaintToleration):
    """Notes for which pods its key is worked out."""

    name = "Counted"

    @of_spec
    def key(self, info: PodInfo) -> Hashable:
        ASKED.append(info.labels["app"])
        return super().key(info)


class Trusting(TaintToleration):
    """Goes by a label, too, and says so in a key that is not marked any more."""

    name = "Trusting"

    def key(self, info: PodInfo) -> Hashable:
        return info.labels["app"], super().key(info)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        if pod.metadata.labels["app"] == "trusted":
            return Verdict.reject(nodes.among([]), "")
        return super().filter(state, pod, nodes)


REGISTRY = Registry((*IN_TREE.values(), Counted, Trusting))


def scheduler_with(plugin: str) -> Scheduler:
    plugins = {"multiPoint": {"enabled": [{"name": plugin}], "disabled": [{"name": "TaintToleration"}]}}
    cluster = Cluster.from_objects([make_node("n", taints=["only=some:NoSchedule"])])
    return Scheduler(cluster, make_config({"plugins": plugins}), registry=REGISTRY, tie_break="first")


def test_a_key_of_the_spec_is_worked_out_once_for_all_pods_with_that_spec() -> None:
    ASKED.clear()
    scheduler = scheduler_with("Counted")
    for number in range(3):
        assert scheduler.schedule(make_pod(f"p{number}", labels={"app": f"a{number}"})) is None
    tolerant = make_pod("t", labels={"app": "tolerant"}, tolerations=[{"operator": "Exists"}])
    assert scheduler.schedule(tolerant) == "n"
    assert ASKED == ["a0", "tolerant"]


@pytest.mark.parametrize("first", ["trusted", "other"])
def test_a_key_that_was_overridden_is_asked_for_every_pod(first: str) -> None:
    scheduler = scheduler_with("Trusting")
    apps = [first, "other", "trusted", "other"]
    placed = [scheduler.schedule(make_pod(f"p{place}", labels={"app": app})) for place, app in enumerate(apps)]
    assert placed == ["n" if app == "trusted" else None for app in apps]


def test_what_was_asked_for_of_late_is_kept_and_the_rest_forgotten() -> None:
    kept: RecentlyUsed[list[int]] = RecentlyUsed(6)
    made = []

    def get(key: int) -> list[int]:
        def make() -> list[int]:
            made.append(key)
            return [key]

        return kept.get_or_make(key, make)

    first = get(0)
    for key in range(1, 30):
        get(key)
        assert get(0) is first
    assert made == list(range(30))
    assert get(29) == [29]
    assert get(28) == [28]
    assert len(made) == 30
    for key in range(1, 24):
        get(key)
    assert len(made) == 53
