from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from builders import make_config, make_node, make_pod
from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.engine import Scheduler
from podium.errors import InputError, PluginError
from podium.framework import CycleState, Plugin, Registry
from podium.framework.plugin import FilterPlugin, PreFilterPlugin, PreScorePlugin, ReservePlugin, ScorePlugin
from podium.framework.status import SUCCESS, PreFilterResult, Status
from podium.model import Pod
from podium.plugins import IN_TREE


def scheduler_with(*plugins: type[Plugin], nodes: int = 2) -> Scheduler:
    """A scheduler of the default profile and these plugins, on nodes n0, n1 ..."""
    enabled = [{"name": plugin.name} for plugin in plugins]
    config = make_config({"plugins": {"multiPoint": {"enabled": enabled}}})
    cluster = Cluster.from_objects(make_node(f"n{number}") for number in range(nodes))
    return Scheduler(cluster, config, registry=Registry((*IN_TREE.values(), *plugins)), tie_break="first")


def test_decide_changes_nothing_and_place_and_schedule_put_the_pod_there() -> None:
    scheduler = scheduler_with()
    pod = make_pod("p", requests={"cpu": "1"})
    decision = scheduler.decide(pod)
    assert scheduler.cluster.find_pod("default/p") is None
    assert scheduler.place(pod) == decision
    assert scheduler.cluster.find_pod("default/p") == (pod, decision.node)
    other = make_pod("q")
    assert scheduler.schedule(other) == "n1"
    assert scheduler.cluster.find_pod("default/q") == (other, "n1")


def test_a_pod_that_fits_nowhere_stays_where_it_is() -> None:
    scheduler = scheduler_with()
    pod = make_pod("p", requests={"cpu": "9"})
    scheduler.cluster.add(pod)
    assert scheduler.schedule(pod) is None
    assert scheduler.place(pod).node is None
    assert list(scheduler.cluster.pending) == ["default/p"]


def test_a_cluster_without_nodes() -> None:
    scheduler = scheduler_with(nodes=0)
    assert scheduler.decide(make_pod()).message == "no nodes available to schedule pods"
    assert scheduler.schedule(make_pod()) is None


def test_every_profile_takes_care_of_its_own_pods() -> None:
    packing = {"type": "MostAllocated", "resources": [{"name": "cpu", "weight": 1}]}
    config = make_config(
        {"schedulerName": "spread"},
        {"schedulerName": "pack", "pluginConfig": [{"name": "NodeResourcesFit", "args": {"scoringStrategy": packing}}]},
    )
    objects = [make_node("n0"), make_node("n1"), make_pod("there", node="n0", requests={"cpu": "1", "memory": "2Gi"})]
    scheduler = Scheduler(Cluster.from_objects(objects), config, tie_break="first")
    request = {"cpu": "1", "memory": "2Gi"}
    assert scheduler.decide(make_pod("p", scheduler_name="spread", requests=request)).node == "n1"
    assert scheduler.decide(make_pod("p", scheduler_name="pack", requests=request)).node == "n0"


def test_a_pod_of_an_unknown_scheduler_is_an_error() -> None:
    scheduler, pod = scheduler_with(), make_pod("p", scheduler_name="custom")
    message = "pod default/p: no profile for scheduler name 'custom'; the configuration has default-scheduler"
    assert scheduler.decide(pod).error == message
    with pytest.raises(InputError, match=message):
        scheduler.schedule(pod)


def test_a_gated_pod_is_not_scheduled() -> None:
    scheduler, pod = scheduler_with(), make_pod("p", scheduling_gates=[{"name": "quota"}])
    message = r"waiting for scheduling gates: \[quota\]"
    assert "waiting for scheduling gates: [quota]" in scheduler.place(pod).error
    with pytest.raises(PluginError, match=message):
        scheduler.schedule(pod)
    assert scheduler.cluster.find_pod("default/p") is None


def test_a_quantity_that_makes_no_sense_is_an_error_that_names_the_pod() -> None:
    pod = make_pod("p", requests={"cpu": "1"})
    (container,) = pod.spec.containers
    container = replace(container, resources=replace(container.resources, requests={"cpu": "x"}))
    broken = replace(pod, spec=replace(pod.spec, containers=[container]))
    assert "pod default/p: cpu" in scheduler_with().decide(broken).error


# -- plugins that say something unusual ----------------------------------------------------------------------------


class Scoring(ScorePlugin):
    """Gives every node the score its arguments say."""

    name = "Scoring"
    value = 0

    def score_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return self.value


class TooHigh(Scoring):
    name, value = "TooHigh", 101


class TooHighKept(TooHigh):
    name, reads = "TooHighKept", Aspect.RESOURCES


class TooLowKept(Scoring):
    name, reads, value = "TooLowKept", Aspect.LABELS, -1


class FailingFilter(FilterPlugin):
    name = "FailingFilter"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.error("the disk is gone") if node.name == "n1" else SUCCESS


class FailingFilterKept(FailingFilter):
    name, reads = "FailingFilterKept", Aspect.LABELS


class FailingPreFilter(PreFilterPlugin):
    name = "FailingPreFilter"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(Status.error("no answer"))


class FailingPreScore(PreScorePlugin, Scoring):
    name = "FailingPreScore"

    def pre_score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Status:
        return Status.error("no answer")


class FailingPreScoreKept(FailingPreScore):
    name, reads = "FailingPreScoreKept", Aspect.LABELS


RANGE = r"it should in the range of \[0, 100\] after normalizing"


@pytest.mark.parametrize(
    ("plugin", "message"),
    [
        (TooHigh, f"plugin 'TooHigh' returns an invalid score 101, {RANGE}"),
        (TooHighKept, f"plugin 'TooHighKept' returns an invalid score 101, {RANGE}"),
        (TooLowKept, f"plugin 'TooLowKept' returns an invalid score -1, {RANGE}"),
        (FailingFilter, "plugin 'FailingFilter' failed: the disk is gone"),
        (FailingFilterKept, "plugin 'FailingFilterKept' failed: the disk is gone"),
        (FailingPreFilter, "plugin 'FailingPreFilter' failed in PreFilter: no answer"),
        (FailingPreScore, "plugin 'FailingPreScore' failed in PreScore: no answer"),
        (FailingPreScoreKept, "plugin 'FailingPreScoreKept' failed in PreScore: no answer"),
    ],
    ids=lambda value: value.__name__ if isinstance(value, type) else "",
)
def test_a_plugin_that_fails_is_named(plugin: type[Plugin], message: str) -> None:
    scheduler = scheduler_with(plugin)
    with pytest.raises(PluginError, match=message):
        scheduler.schedule(make_pod("p"))
    assert scheduler.decide(make_pod("p")).error.startswith(message.split(" returns")[0].split(" failed")[0])
    assert scheduler.cluster.find_pod("default/p") is None


@pytest.mark.parametrize("plugin", [TooHigh, TooHighKept], ids=lambda plugin: plugin.name)
def test_a_single_node_is_not_scored_so_its_score_does_not_matter(plugin: type[Plugin]) -> None:
    assert scheduler_with(plugin, nodes=1).schedule(make_pod()) == "n0"


class Hopeless(PreFilterPlugin, FilterPlugin):
    """Rejects pods for good before it has anything to filter with."""

    name = "Hopeless"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(Status.unresolvable("not on this cluster"))

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return state[self.name]  # type: ignore[no-any-return]


class HopelessKept(Hopeless):
    name, reads = "HopelessKept", Aspect.LABELS


@pytest.mark.parametrize("plugin", [Hopeless, HopelessKept], ids=lambda plugin: plugin.name)
def test_a_pod_rejected_before_filtering(plugin: type[Plugin]) -> None:
    decision = scheduler_with(plugin).decide(make_pod())
    assert decision.message == "0/2 nodes are available: not on this cluster."
    assert decision.rejected == {}


class Narrow(PreFilterPlugin):
    name = "Narrow"
    names: frozenset[str] = frozenset(("n1", "n2"))

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        return PreFilterResult(node_names=self.names)


class NarrowOtherwise(Narrow):
    name, names = "NarrowOtherwise", frozenset(("n2", "unheard-of"))


class NarrowAway(Narrow):
    name, names = "NarrowAway", frozenset(("n0",))


def test_nodes_are_narrowed_to_those_all_plugins_name() -> None:
    assert scheduler_with(Narrow, nodes=4).decide(make_pod()).feasible == ("n1", "n2")
    assert scheduler_with(Narrow, NarrowOtherwise, nodes=4).decide(make_pod()).feasible == ("n2",)


def test_nodes_that_no_two_plugins_agree_on() -> None:
    decision = scheduler_with(Narrow, NarrowAway, nodes=4).decide(make_pod())
    assert decision.message == (
        "0/4 nodes are available: node(s) didn't satisfy plugin(s) [Narrow NarrowAway] simultaneously."
    )


CALLS: list[Any] = []


class Reserving(ReservePlugin):
    name = "Reserving"

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        CALLS.append((self.name, "reserve", node_name))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        CALLS.append((self.name, "unreserve", node_name))


class Refusing(Reserving):
    name = "Refusing"

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        super().reserve(state, pod, node_name)
        return Status.unschedulable("taken meanwhile")


def test_plugins_reserve_in_order() -> None:
    CALLS.clear()
    scheduler = scheduler_with(Reserving)
    scheduler.decide(make_pod())
    assert CALLS == []
    scheduler.schedule(make_pod())
    assert CALLS == [("Reserving", "reserve", "n0")]


def test_a_pod_that_cannot_be_reserved_is_taken_back() -> None:
    CALLS.clear()
    scheduler = scheduler_with(Reserving, Refusing)
    assert scheduler.place(make_pod("p")).error == "failed in Reserve: taken meanwhile"
    assert CALLS == [
        ("Reserving", "reserve", "n0"),
        ("Refusing", "reserve", "n0"),
        ("Refusing", "unreserve", "n0"),
        ("Reserving", "unreserve", "n0"),
    ]
    assert scheduler.cluster.nodes.requested("pods").tolist() == [0, 0]
    with pytest.raises(PluginError, match="plugin 'Refusing' failed in Reserve: taken meanwhile"):
        scheduler.schedule(make_pod("p"))
