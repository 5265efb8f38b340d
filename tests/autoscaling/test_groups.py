"""What a file of node groups may say, and how it is refused: the file, the line and the field."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from autoscaling.scaling import group
from cli.running import run
from podium.autoscaling import read_node_groups
from podium.autoscaling.cluster_autoscaler import ClusterAutoscaler
from podium.autoscaling.karpenter import Karpenter
from podium.errors import InputError


def written(folder: Path, **fields: Any) -> str:
    path = folder / "groups.yaml"
    path.write_text(yaml.safe_dump({"groups": [group()], **fields}, sort_keys=False))
    return str(path)


def test_the_defaults_are_those_of_cluster_autoscaler(tmp_path: Path) -> None:
    settings = read_node_groups(written(tmp_path)).settings
    strategy = settings.strategy
    assert isinstance(strategy, ClusterAutoscaler)
    assert settings.expanders == ("least-waste",)
    assert (settings.scan_interval, strategy.scale_down_unneeded_time) == (10, 600)
    assert (strategy.scale_down_delay_after_add, strategy.scale_down_delay_after_delete) == (600, 10)
    assert strategy.scale_down_utilization_threshold == 0.5
    assert (strategy.max_scale_down_parallelism, strategy.max_drain_parallelism) == (10, 1)
    assert strategy.skip_nodes_with_local_storage
    assert strategy.skip_nodes_with_system_pods
    assert (settings.new_pod_scale_up_delay, strategy.scale_down_non_empty_candidates_count) == (0, 30)
    assert (settings.scale_down_enabled, strategy.ignore_daemonsets_utilization) == (True, False)
    assert strategy.expendable_pods_priority_cutoff == -10
    assert (strategy.scale_down_unready_time, strategy.scale_down_gpu_utilization_threshold) == (1200, 0.5)
    assert not strategy.ignore_mirror_pods_utilization


CONSOLIDATING = {"strategy": "karpenter"}
LOTS = {"driver": "gpu", "devices": [{"name": "d0", "capacity": {"memory": {"value": "lots"}}}]}


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"group": []}, "line 11: group: is not a field here; there are strategy, scanInterval"),
        ({"groups": []}, "line 1: groups: needs at least one group"),
        ({"groups": [group(), group()]}, "groups.1.name: 'pool' is the name of another group already"),
        ({"groups": [group(maxSize=-1)]}, "groups.0.maxSize: is -1; it needs 0 or more"),
        ({"groups": [group(minSize=3, maxSize=2)]}, "groups.0.maxSize: is 2, less than minSize"),
        ({"groups": [group(bootTime="soon")]}, "line 4: groups.0.bootTime: is 'soon'; it needs a duration"),
        ({"groups": [group(pricePerHour=-1)]}, "groups.0.pricePerHour: is -1; it needs 0 or more"),
        ({"groups": [group(size=3)]}, "groups.0.size: is not a field here; there are minSize, maxSize"),
        ({"groups": [{"name": "a", "maxSize": 1}]}, "groups.0.template: needs status.allocatable"),
        (
            {"groups": [group(template={"status": {"allocatable": {"cpu": "x"}}})]},
            "groups.0.template: status.allocatable['cpu']: 'x' is not a quantity",
        ),
        (
            {"groups": [group(template={"spec": {"taint": []}})]},
            "groups.0.template: spec.taint: unknown field; did you mean taints?",
        ),
        ({"groups": [group(pricePerHour=1e308)]}, "groups.0.pricePerHour: is 1e+308; 1,000,000,000 is the most"),
        ({"groups": "many"}, "groups: is 'many'; it needs a list"),
        ({"expander": "luck"}, "expander: is 'luck'; use least-waste, price, priority, most-pods, least-nodes, random"),
        ({"strategy": "hope"}, "strategy: is 'hope'; use cluster-autoscaler, karpenter"),
        ({"scanInterval": 0}, "scanInterval: is 0 s; it needs 0.1 or more"),
        ({"scanInterval": True}, "scanInterval: is True; it needs a duration"),
        ({"groups": [group(name="My Pool")]}, "groups.0.name: 'My Pool' cannot begin the names of nodes, which must"),
        ({"groups": [group(name="x" * 250)]}, "cannot begin the names of nodes, which must be no more than 253"),
        ({"groups": [group(minSize=10**7, maxSize=10**7)]}, "minSize: is 10,000,000; 100,000 nodes are the most"),
        ({"groups": [group(template={"metadata": "x"})]}, "groups.0.template.metadata: is 'x'; it needs fields"),
        ({"groups": [group(template={"kind": "Pod"})]}, "groups.0.template.kind: is 'Pod'; use Node"),
        ({"groups": [group(template={"stats": {}})]}, "groups.0.template.stats: is not a field here"),
        (
            {"groups": [group(template={"status": {"allocatable": {"cpu": "4"}}})]},
            "groups.0.template: needs status.allocatable.pods",
        ),
        (
            {"groups": [group(template={"status": {"allocatable": {"cpu": "4", "pods": None}}})]},
            "groups.0.template: needs status.allocatable.pods",
        ),
        (
            {"groups": [group(template={"metadata": {"labels": {"disk": "very fast"}}})]},
            "groups.0.template.metadata.labels.disk: 'very fast' cannot be used: it must",
        ),
        (
            {"groups": [group(template={"spec": {"taints": [{"key": "a", "effect": "Maybe"}]}})]},
            "groups.0.template.spec.taints.0.effect: is 'Maybe'; use NoSchedule, PreferNoSchedule, NoExecute",
        ),
        ({"groups": [group(resourceSlices=[{"devices": []}])]}, "groups.0.resourceSlices.0.driver: needs a text"),
        (
            {"groups": [group(resourceSlices="gpus")]},
            "groups.0.resourceSlices: needs a list of specs of ResourceSlices",
        ),
        ({"groups": [group(resourceSlices=[LOTS])]}, "value: 'lots' is not a quantity"),
        ({"groups": [group(bootTime=1e300)]}, "it needs a duration such as 10m or 90s, up to ten years"),
        ({"scaleDownUnneededTime": "-5m"}, "scaleDownUnneededTime: is '-5m'; it needs a duration"),
        ({"scaleDownUtilizationThreshold": "half"}, "scaleDownUtilizationThreshold: is 'half'; it needs a number"),
        (
            {"scaleDownUtilizationThreshold": 1.5},
            "line 11: scaleDownUtilizationThreshold: is 1.5; it needs a share from 0 to 1, such as 0.5 for half of a",
        ),
        ({"scaleDownGpuUtilizationThreshold": 50}, "scaleDownGpuUtilizationThreshold: is 50; it needs a share from 0"),
        ({"expander": "price,random,price"}, "line 11: expander: names price more than once; leave out all but the"),
        ({"expander": "price,,random"}, "expander: is ''; use least-waste"),
        ({"expander": ["price"]}, "expander: is a list; it needs a text"),
        (
            {"budgets": [{"nodes": "110%"}], "strategy": "karpenter"},
            "line 12: budgets.0.nodes: is '110%'; it needs a number of nodes, or a perc",
        ),
        ({**CONSOLIDATING, "budgets": [{"nodes": -1}]}, "budgets.0.nodes: is -1; it needs a number of nodes"),
        ({**CONSOLIDATING, "budgets": [{"reasons": ["Empty"]}]}, "line 13: budgets.0.nodes: needs a number of nodes"),
        ({**CONSOLIDATING, "budgets": [{}]}, "line 13: budgets.0.nodes: needs a number of nodes, or a percentage"),
        (
            {**CONSOLIDATING, "budgets": [{"nodes": 1, "reasons": ["Bored"]}]},
            "budgets.0.reasons: has 'Bored'; use Empty, Underutilized, Drifted",
        ),
        (
            {**CONSOLIDATING, "budgets": [{"nodes": 1, "schedule": "@daily"}]},
            "budgets.0.schedule: is not a field here",
        ),
        ({**CONSOLIDATING, "budgets": 3}, "budgets: is 3; it needs a list"),
        ({**CONSOLIDATING, "consolidateAfter": "never"}, "consolidateAfter: is 'never'; it needs a duration"),
        ({"groups": [group(template={"metadata": {"name": "n"}})]}, "groups.0.template.metadata.name: has no effect"),
        (
            {"groups": [group(template={"spec": {"taints": [{"effect": "NoSchedule"}]}})]},
            "groups.0.template.spec.taints.0.key: needs a text",
        ),
        (
            {"groups": [group(template={"spec": {"taints": [{"key": "a", "value": "b c", "effect": "NoSchedule"}]}})]},
            "groups.0.template.spec.taints.0.value: 'b c' cannot be used: it must",
        ),
        *(
            (
                {"groups": [group(resourceSlices=[{"driver": "gpu", field: value}])]},
                f"groups.0.resourceSlices.0.{field}: has no effect: each node gets its own slices",
            )
            for field, value in (("nodeName", "x"), ("allNodes", True), ("nodeSelector", {}), ("pool", {"name": "p"}))
        ),
        ({"scaleDownEnabled": "maybe"}, "scaleDownEnabled: is 'maybe'; it needs true or false"),
    ],
)
def test_what_cannot_be_used_is_refused(tmp_path: Path, fields: dict[str, Any], message: str) -> None:
    file = written(tmp_path, **fields)
    with pytest.raises(InputError) as caught:
        read_node_groups(file)
    assert str(caught.value).startswith(f"{file} line ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_directory_is_no_file_of_groups(tmp_path: Path) -> None:
    written(tmp_path)
    with pytest.raises(InputError, match="is a directory"):
        read_node_groups(str(tmp_path))


def test_karpenter_may_never_consolidate(tmp_path: Path) -> None:
    file = written(tmp_path, strategy="karpenter", consolidateAfter="Never")
    strategy = read_node_groups(file).settings.strategy
    assert isinstance(strategy, Karpenter)
    assert strategy.consolidate_after is None


@pytest.mark.parametrize(
    ("strategy", "field", "value"),
    [
        ("cluster-autoscaler", "consolidateAfter", "Never"),
        ("cluster-autoscaler", "consolidationPolicy", "WhenEmpty"),
        ("cluster-autoscaler", "budgets", []),
        ("karpenter", "scaleDownUnneededTime", "10m"),
        ("karpenter", "maxDrainParallelism", 2),
        ("karpenter", "skipNodesWithLocalStorage", False),
        ("karpenter", "ignoreDaemonsetsUtilization", True),
        ("karpenter", "expendablePodsPriorityCutoff", 0),
    ],
)
def test_settings_of_the_other_strategy_are_refused(tmp_path: Path, strategy: str, field: str, value: object) -> None:
    file = written(tmp_path, strategy=strategy, **{field: value})
    other = "karpenter" if strategy == "cluster-autoscaler" else "cluster-autoscaler"
    with pytest.raises(InputError) as caught:
        read_node_groups(file)
    problem = f"{field}: is for strategy {other} only, and has no effect with {strategy}; leave it out"
    assert str(caught.value) == f"{file} line 12: {problem}"


@pytest.mark.parametrize("strategy", ["cluster-autoscaler", "karpenter"])
def test_settings_of_both_strategies(tmp_path: Path, strategy: str) -> None:
    both: dict[str, Any] = {"scanInterval": "20s", "newPodScaleUpDelay": "5s", "scaleDownEnabled": False}
    settings = read_node_groups(written(tmp_path, strategy=strategy, **both)).settings
    assert (settings.scan_interval, settings.new_pod_scale_up_delay, settings.scale_down_enabled) == (20, 5, False)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--node-groups", "g.yaml"], "--node-groups needs --timeline EVENTS"),
        (["--timeline", "e", "--node-groups", "g", "--snapshot", "s"], "cannot be used with --snapshot or --resume"),
    ],
)
def test_options_that_do_not_go_together_are_refused(arguments: list[str], message: str) -> None:
    done = run("simulate", *arguments)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert message in done.stderr


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("  maxSiez: 3\n  template: {}\n", "line 3: groups.0.maxSiez: is not a field here; there are minSize, maxSize"),
        (
            "  maxSize: 3\n  template:\n    stats: {}\n",
            "line 5: groups.0.template.stats: is not a field here; there are apiVersion, kind, metadata, spec, status",
        ),
        (
            "  maxSize: 3\n  template:\n    status:\n      allocatable:\n        cpu: four\n",
            "line 7: groups.0.template: status.allocatable['cpu']: 'four' is not a quantity",
        ),
        ("  maxSize: .nan\n", "line 3: groups.0.maxSize: is .nan; it needs a number"),
    ],
)
def test_the_line_is_that_of_the_field_itself(tmp_path: Path, text: str, message: str) -> None:
    file = tmp_path / "groups.yaml"
    file.write_text(f"groups:\n- name: a\n{text}")
    with pytest.raises(InputError) as caught:
        read_node_groups(str(file))
    assert str(caught.value).startswith(f"{file} {message}")
