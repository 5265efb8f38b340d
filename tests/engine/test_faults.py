"""A plugin that breaks is named, in the decision and in the exception."""

from __future__ import annotations

import numpy as np
import pytest

from builders import make_config, make_node, make_pod, scores
from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.cluster.columns import Ints
from podium.engine import Decision, Scheduler
from podium.errors import PluginError
from podium.framework import SUCCESS, CycleState, FilterPlugin, Registry, ScorePlugin, Status
from podium.model import Pod
from podium.plugins import IN_TREE
from testing.broken_plugins import Crashes, FloatScore, TooFewCodes


class BrokenFilter(FilterPlugin):
    name = "BrokenFilter"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        raise ZeroDivisionError("no share left")


class SaysNothing(FilterPlugin):
    name = "SaysNothing"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:  # type: ignore[empty-body]
        pass


class SmallNumbers(ScorePlugin):
    name = "SmallNumbers"

    def score(self, state: CycleState, pod: Pod, nodes: Nodes) -> Ints:
        return np.arange(len(nodes), dtype=np.int32)


class Every(FilterPlugin):
    name = "Every"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.error(f"broke on {node.name}")


class Flaky(FilterPlugin):
    """Fails from time to time; what it said before is kept."""

    name = "Flaky"
    reads = Aspect.LABELS
    is_away = False

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        if Flaky.is_away:
            raise OSError("away")
        return Status.unschedulable("node(s) were bad") if "bad" in node.labels else SUCCESS


def enabled(name: str) -> dict[str, list[dict[str, str]]]:
    return {"enabled": [{"name": name}]}


def cluster_of_two() -> Cluster:
    return Cluster.from_objects([make_node("n1"), make_node("n2")])


NUMBERS = "int64 array, one number for each node"


@pytest.mark.parametrize(
    ("broken", "reads", "problem"),
    [
        (BrokenFilter, None, "failed: ZeroDivisionError: no share left"),
        (Crashes, None, "failed: KeyError: 'price'"),
        (SaysNothing, None, "returns None from filter_node: return a Status"),
        (SaysNothing, Aspect.RESOURCES, "returns None from filter_node: return a Status"),
        (FloatScore, None, "returns 0.5 from score_node: return an int"),
        (SmallNumbers, None, f"returns int32[2] from score: return an {NUMBERS}"),
        (SmallNumbers, Aspect.LABELS, f"returns int32[2] from score: return an {NUMBERS}"),
        (SmallNumbers, Aspect.RESOURCES, f"returns int32[2] from score: return an {NUMBERS}"),
        (TooFewCodes, None, f"returns bool[1] from filter: return an {NUMBERS}"),
        (TooFewCodes, Aspect.TAINTS, f"returns bool[1] from filter: return an {NUMBERS}"),
    ],
)
def test_a_broken_plugin_is_named(
    broken: type[FilterPlugin | ScorePlugin], reads: Aspect | None, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether its results are kept by what it `reads`, or not."""
    monkeypatch.setattr(broken, "reads", reads)
    point = "filter" if issubclass(broken, FilterPlugin) else "score"
    config = make_config({"plugins": {point: enabled(broken.name)}})
    message = f"plugin {broken.name!r} {problem}"
    scheduler = Scheduler(cluster_of_two(), config, registry=Registry([*IN_TREE.values(), broken]))
    for _ in range(2):
        assert scheduler.decide(make_pod("p")).error == message
    with pytest.raises(PluginError) as raised:
        scheduler.schedule(make_pod("p"))
    assert str(raised.value) == message


def scheduler_with(plugin: type[FilterPlugin], nodes: int) -> Scheduler:
    config = make_config({"plugins": {"multiPoint": enabled(plugin.name)}})
    cluster = Cluster.from_objects([make_node(f"n{number:02}") for number in range(nodes)])
    return Scheduler(cluster, config, registry=Registry([*IN_TREE.values(), plugin]), tie_break="first")


@pytest.mark.parametrize("nodes", [3, 40])
def test_the_first_error_is_told_however_many_nodes_there_are(nodes: int) -> None:
    assert scheduler_with(Every, nodes).decide(make_pod("p")).error == "plugin 'Every' failed: broke on n00"


def test_a_plugin_that_failed_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    scheduler = scheduler_with(Flaky, 3)
    assert scheduler.decide(make_pod("a")).feasible == ("n00", "n01", "n02")
    scheduler.cluster.update(make_node("n00", labels={"bad": "yes"}))
    with monkeypatch.context() as patch:
        patch.setattr(Flaky, "is_away", True)
        assert scheduler.decide(make_pod("b")).error == "plugin 'Flaky' failed: OSError: away"
    assert scheduler.decide(make_pod("c")).feasible == ("n01", "n02")


LACKS_PRE_FILTER = "it needs preFilter, where the profile does not run it"


def unprepared(name: str, point: str, release: str = "v1.37") -> Decision:
    """A pod decided on two nodes by a profile that leaves out one extension point of a plugin."""
    config = make_config({"plugins": {point: {"disabled": [{"name": name}]}}})
    return Scheduler(cluster_of_two(), config, release=release).decide(make_pod("p"))


@pytest.mark.parametrize("release", ["v1.29", "v1.37"])
@pytest.mark.parametrize(
    "name",
    ["InterPodAffinity", "NodePorts", "NodeResourcesFit", "PodTopologySpread", "VolumeBinding", "VolumeRestrictions"],
)
def test_a_filter_without_its_pre_filter_fails_even_where_it_has_nothing_to_do(name: str, release: str) -> None:
    assert unprepared(name, "preFilter", release).error == (f"plugin '{name}' failed: {LACKS_PRE_FILTER}")


@pytest.mark.parametrize(
    ("name", "release", "fails"),
    [
        ("DynamicResources", "v1.33", False),
        ("DynamicResources", "v1.34", True),
        ("NodeDeclaredFeatures", "v1.36", True),
    ],
)
def test_filters_without_their_pre_filter_fail_where_their_feature_is_on(name: str, release: str, fails: bool) -> None:
    config = make_config({"plugins": {"multiPoint": {"disabled": [{"name": name}]}, "filter": enabled(name)}})

    decision = Scheduler(cluster_of_two(), config, release=release).decide(make_pod("p"))

    assert (decision.error == f"plugin '{name}' failed: {LACKS_PRE_FILTER}") is fails
    assert fails or decision.feasible == ("n1", "n2")


def test_an_error_while_victims_are_looked_for_is_part_of_the_message() -> None:
    """The filter is not reached before, because there is no room anywhere."""
    config = make_config({"plugins": {"preFilter": {"disabled": [{"name": "PodTopologySpread"}]}}})
    small = make_pod("small", node_name="n1", requests={"cpu": "1"}, priority=0)
    cluster = Cluster.from_objects([make_node("n1", cpu="1"), small])

    decision = Scheduler(cluster, config).decide(make_pod("p", requests={"cpu": "1"}, priority=10), preempt=True)

    assert not decision.error
    assert decision.message == (
        "0/1 nodes are available: 1 Insufficient cpu. "
        f"preemption: plugin 'PodTopologySpread' failed: {LACKS_PRE_FILTER}"
    )


@pytest.mark.parametrize(
    ("release", "point", "fails"),
    [
        ("v1.36", "score", False),
        ("v1.37", "score", True),
        ("v1.37", "preScore", True),
        ("v1.29", "score", False),
    ],
)
def test_volumes_are_scored_by_what_pre_filter_finds(release: str, point: str, fails: bool) -> None:
    name = "VolumeBinding"
    config = make_config({"plugins": {"multiPoint": {"disabled": [{"name": name}]}, point: enabled(name)}})

    decision = Scheduler(cluster_of_two(), config, release=release).decide(make_pod("p"))

    assert (LACKS_PRE_FILTER in decision.error) is fails


@pytest.mark.parametrize("name", ["VolumeBinding", "DynamicResources"])
def test_a_reservation_without_pre_filter_fails(name: str) -> None:
    config = make_config({"plugins": {"multiPoint": {"disabled": [{"name": name}]}, "reserve": enabled(name)}})
    cluster = cluster_of_two()

    decision = Scheduler(cluster, config).place(make_pod("p"))

    assert LACKS_PRE_FILTER in decision.error
    assert not list(cluster.placed())


def test_disks_in_use_are_found_without_pre_filter() -> None:
    """Other nodes are an error; where there are none, the pod is rejected like any other."""
    name = "VolumeRestrictions"
    config = make_config({"plugins": {"preFilter": {"disabled": [{"name": name}]}}})
    disk = [{"name": "d", "awsElasticBlockStore": {"volumeID": "v"}}]
    users = [make_pod(f"user-{node}", node_name=node, volumes=disk) for node in ("n1", "n2")]
    for there in (users[:1], users):
        cluster = Cluster.from_objects([make_node("n1"), make_node("n2"), *there])
        decision = Scheduler(cluster, config).decide(make_pod("p", volumes=disk))
        assert bool(decision.error) is (len(there) < 2)
    assert {status.plugin for status in decision.rejected.values()} == {name}


@pytest.mark.parametrize("name", ["InterPodAffinity", "PodTopologySpread", "TaintToleration"])
def test_a_score_without_its_pre_score_fails(name: str) -> None:
    assert unprepared(name, "preScore").error == (
        f"plugin '{name}' failed: it needs preScore, where the profile does not run it"
    )


@pytest.mark.parametrize("name", ["NodeAffinity", "NodeResourcesFit", "NodeResourcesBalancedAllocation"])
def test_a_score_that_gets_ready_by_itself_does_without_pre_score(name: str) -> None:
    assert unprepared(name, "preScore").feasible == ("n1", "n2")


@pytest.mark.parametrize(("release", "score"), [("v1.32", 100), ("v1.33", 0), ("v1.37", 0)])
def test_pods_without_requests_get_no_balance_where_pre_score_does_not_skip_them(release: str, score: int) -> None:
    decision = unprepared("NodeResourcesBalancedAllocation", "preScore", release)

    assert (scores(decision, "NodeResourcesBalancedAllocation") or {})["n1"] == score
