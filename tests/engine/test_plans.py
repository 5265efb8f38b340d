"""Which pods share a plan."""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np
import pytest

from builders import make_config, make_node, make_pod
from podium import PodView
from podium.cluster import Aspect, Cluster, Nodes, PodInfo
from podium.engine import Scheduler
from podium.engine.plan import Plan, Plans, SharedParts
from podium.framework import CycleState, FilterPlugin, Registry, Status, Verdict
from podium.memory import RecentlyUsed
from podium.model import Pod
from podium.plugins import IN_TREE
from podium.plugins.taint_toleration import TaintToleration

ASKED: list[int] = []


class Counted(TaintToleration):
    """Notes which specs it is asked to sign."""

    name = "Counted"

    def sign(self, pod: PodView) -> Hashable:
        ASKED.append(len(pod.spec.tolerations))
        return super().sign(pod)


class Trusting(TaintToleration):
    """Goes by a label, too, and signs it."""

    name = "Trusting"

    def sign(self, pod: PodView) -> Hashable:
        return pod.labels["app"], super().sign(pod)

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        if pod.metadata.labels["app"] == "trusted":
            return Verdict.reject(nodes.among([]), "")
        return super().filter(state, pod, nodes)


REGISTRY = Registry((*IN_TREE.values(), Counted, Trusting))


def scheduler_with(plugin: str) -> Scheduler:
    plugins = {"multiPoint": {"enabled": [{"name": plugin}], "disabled": [{"name": "TaintToleration"}]}}
    cluster = Cluster.from_objects([make_node("n", taints=["only=some:NoSchedule"])])
    return Scheduler(cluster, make_config({"plugins": plugins}), registry=REGISTRY, tie_break="first")


def test_a_signature_of_the_spec_alone_is_made_once_for_all_pods_with_that_spec() -> None:
    ASKED.clear()
    scheduler = scheduler_with("Counted")
    for number in range(3):
        assert scheduler.schedule(make_pod(f"p{number}", labels={"app": f"a{number}"})) is None
    tolerant = make_pod("t", labels={"app": "tolerant"}, tolerations=[{"operator": "Exists"}])
    assert scheduler.schedule(tolerant) == "n"
    assert ASKED == [0, 1]


@pytest.mark.parametrize("first", ["trusted", "other"])
def test_a_signature_that_reads_labels_is_made_for_every_combination_of_labels(first: str) -> None:
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


def test_a_plan_that_is_in_use_is_not_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Plans, "MOST_CELLS", 1)
    made: list[PodInfo] = []
    make = Plans._make_plan

    def counted(self: Plans, frame: SharedParts, keys: tuple[Hashable, ...], info: PodInfo) -> Plan:
        made.append(info)
        return make(self, frame, keys, info)

    monkeypatch.setattr(Plans, "_make_plan", counted)
    scheduler = Scheduler(Cluster.from_objects([make_node("a", cpu="1000"), make_node("b")]))
    usual = make_pod("usual", requests={"cpu": "5m"})
    for number in range(300):
        scheduler.decide(usual)
        scheduler.decide(make_pod("other", requests={"memory": f"{number}Mi"}))
    assert len(made) == 301


class Narrow(FilterPlugin):
    """Says with numbers of another width, or with a mask, that a node is not wanted."""

    name = "Narrow"
    reads = Aspect.RESOURCES

    def __init__(self, args: object = None) -> None:
        super().__init__(args)
        self.wide: str = args["dtype"] if isinstance(args, dict) else "int64"

    def filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> Verdict:
        codes = np.array([name == "a" for name in nodes.names]).astype(self.wide)
        return Verdict(codes, lambda code: Status.unschedulable("not this one"))


@pytest.mark.parametrize("dtype", ["int64", "int32", "int8", "bool"])
def test_codes_may_be_of_any_width(dtype: str) -> None:
    plugins = {"filter": {"enabled": [{"name": "Narrow"}]}}
    config = make_config({"plugins": plugins, "pluginConfig": [{"name": "Narrow", "args": {"dtype": dtype}}]})
    nodes = [make_node(name) for name in "abcd"]
    scheduler = Scheduler(Cluster.from_objects(nodes), config, registry=Registry([*IN_TREE.values(), Narrow]))
    assert scheduler.decide(make_pod("p")).feasible == ("b", "c", "d")
    assert scheduler.schedule(make_pod("p")) in ("b", "c", "d")
