"""What is wrong in a cluster, and fixes as steps of a scenario."""

from __future__ import annotations

import pytest

from podium.answers import why_nowhere
from podium.answers.applied_scenario import apply_scenario
from podium.answers.audit import Finding
from podium.answers.filter_funnel import filter_funnel
from podium.answers.fix_steps import fix_of
from podium.answers.scenario import Scenario
from podium.answers.score_settings import NO_SETTINGS
from podium.answers.troubles import troubles
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine.scheduler import SchedulerOptions
from podium.example import fleet
from podium.manifests import Objects, load
from podium.present.troubles import to_document
from podium.workloads import expand_workloads

OPTIONS = SchedulerOptions(tie_break="first")


@pytest.fixture(scope="module")
def fleet_objects() -> Objects:
    return expand_workloads(load(fleet()))


@pytest.fixture(scope="module")
def cluster(fleet_objects: Objects) -> Cluster:
    return Cluster.from_objects(fleet_objects)


def test_pending_pods_are_grouped_by_cause_with_the_closest_node(cluster: Cluster) -> None:
    found = troubles(cluster, OPTIONS)
    assert [len(cause.pods) for cause in found.pending] == [2, 1, 1]
    assert found.pending[0].pods == ("ml/train-xl-6np85", "ml/train-xl-cvkvh")
    assert found.pending[0].closest[0].node == "gpu-b2"
    assert {each.workload for each in found.workloads} == {"Job/train-xl", "Deployment/audit", "StatefulSet/index"}
    assert all(each.share > 0.9 for each in found.full_nodes)
    assert found.drift is not None
    assert found.drift[Finding.DRIFTED] > 0
    document = to_document(found)
    assert document["counts"]["pending"] == 4
    assert "2 nvidia.com/gpu missing" in document["pending"][0]["closest"][0]["words"]


def test_the_funnel_ends_with_no_node_and_loses_each_rejected_one_once(cluster: Cluster) -> None:
    scheduler = Scheduler(cluster, OPTIONS)
    pod = cluster.pending["ml/train-xl-6np85"]
    decision = scheduler.decide(pod)
    stages = filter_funnel(decision, scheduler.framework_of(pod))
    assert stages[-1].left == 0
    assert sum(stage.rejected for stage in stages) == cluster.node_count
    assert "NodeResourcesFit" in [stage.plugin for stage in stages]


@pytest.mark.parametrize("name", ["ml/train-xl-6np85", "payments/audit-hlrhdd-8klzs", "search/index-9"])
def test_a_fix_lets_the_pod_run_in_the_scenario_that_has_it(
    name: str, cluster: Cluster, fleet_objects: Objects
) -> None:
    pod = cluster.pending[name]
    suggestions = why_nowhere(cluster, pod, OPTIONS).suggestions
    fixes = [fix_of(each, cluster, pod, OPTIONS.set_up().config) for each in suggestions]
    assert any(fix.can_be_tried for fix in fixes)
    for fix in fixes:
        if fix.can_be_tried:
            scenario = Scenario(steps=list(fix.steps), settings=fix.settings or NO_SETTINGS)
            applied = apply_scenario(scenario, fleet_objects, None, OPTIONS)
            after = Cluster.from_objects(applied.objects)
            decision = Scheduler(after, applied.options).decide(after.pending[name])
            assert decision.node == fix.suggestion.decision.node, fix.suggestion.text
