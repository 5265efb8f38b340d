"""PostFilter plugins, in-tree and of one's own."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from builders import make_config, make_node, node_affinity
from engine.preempting import on_a, preempt, preemptor, running, small
from podium.cluster import NodeInfo, Nodes
from podium.framework import (
    SUCCESS,
    CycleState,
    FilterPlugin,
    PostFilterPlugin,
    PostFilterResult,
    PreFilterPlugin,
    PreFilterResult,
    Registry,
    Status,
)
from podium.model import Pod
from podium.plugins import IN_TREE
from podium.plugins.default_preemption import DefaultPreemption


def test_a_pod_that_prefilter_rejects_for_good_is_not_helped() -> None:
    conflict = [{"key": "metadata.name", "operator": "In", "values": [name]} for name in ("a", "b")]
    pod = preemptor(affinity=node_affinity(required=[{"matchFields": conflict}]))

    decision = preempt([small("a"), running("low", "a", cpu="2")], pod)

    # DynamicResources' PreFilter was never reached, and kube-scheduler says so in these words.
    assert decision.message == "0/1 nodes are available: pod affinity terms conflict. not found"


class OneAtATime(PreFilterPlugin, FilterPlugin):
    """Rejects the pod as a whole, at PreFilter, while a pod called `lock` is anywhere."""

    name = "OneAtATime"

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        state[self.name] = sum(other.name == "lock" for node in nodes for other in node.pods)
        return PreFilterResult(Status.unschedulable("locked") if state[self.name] else SUCCESS)

    def add_pod(self, state: CycleState, pod: Pod, added: Pod, node: NodeInfo) -> Status:
        state[self.name] += added.name == "lock"
        return SUCCESS

    def remove_pod(self, state: CycleState, pod: Pod, removed: Pod, node: NodeInfo) -> Status:
        state[self.name] -= removed.name == "lock"
        return SUCCESS

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.unschedulable("locked") if state[self.name] else SUCCESS


def test_a_pod_that_prefilter_rejects_may_be_helped_and_plugins_hear_about_pods_that_go() -> None:
    registry = Registry([*IN_TREE.values(), OneAtATime])
    config = make_config({"plugins": {"multiPoint": {"enabled": [{"name": "OneAtATime"}]}}})
    objects = [small("a"), small("b"), running("other", "a"), running("lock", "b")]

    decision = preempt(objects, preemptor(), config, registry=registry)

    assert (decision.nominated, decision.victims) == ("b", ("default/lock",))
    assert decision.message.startswith("0/2 nodes are available: locked. preemption: found")


class Helper(PostFilterPlugin):
    """Answers what it is told to."""

    name = "Helper"
    answer = PostFilterResult(SUCCESS, "a")

    def post_filter(self, state: CycleState, pod: Pod, statuses: Mapping[str, Status]) -> PostFilterResult:
        return self.answer


class Deaf(Helper):
    answer = PostFilterResult(Status.unresolvable("nothing helps"))


class Broken(Helper):
    answer = PostFilterResult(Status.error("broken"))


@pytest.mark.parametrize(
    ("plugin", "nominated_node", "message"),
    [(Helper, "a", ""), (Deaf, None, "nothing helps"), (Broken, None, "broken")],
)
def test_the_first_plugin_that_helps_or_gives_up_has_the_last_word(
    plugin: type[Helper], nominated_node: str | None, message: str
) -> None:
    registry = Registry([*IN_TREE.values(), plugin])
    names = [{"name": "Helper"}, {"name": "DefaultPreemption"}]
    config = make_config({"plugins": {"postFilter": {"enabled": names, "disabled": [{"name": "*"}]}}})

    decision = preempt([small("a"), running("low", "a", cpu="2")], preemptor(), config, registry=registry)

    assert (decision.nominated, decision.victims, decision.post_filter_message) == (nominated_node, (), message)


class Gentle(DefaultPreemption):
    """Evicts only pods that say they do not mind."""

    name = "Gentle"

    def may_evict(self, victim: Pod, preemptor: Pod) -> bool:
        return super().may_evict(victim, preemptor) and victim.metadata.labels.get("mind") == "no"


def test_a_derived_plugin_chooses_its_victims() -> None:
    registry = Registry([*IN_TREE.values(), Gentle])
    post_filter = {"enabled": [{"name": "Gentle"}], "disabled": [{"name": "*"}]}
    config = make_config({"plugins": {"postFilter": post_filter}})
    pods = [on_a("minds", cpu="2"), on_a("does-not", cpu="2", priority=9, labels={"mind": "no"})]

    decision = preempt([make_node("a"), *pods], preemptor(cpu="2"), config, registry=registry)

    assert decision.victims == ("default/does-not",)
