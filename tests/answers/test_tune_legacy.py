"""Tuning old releases: the weights of priorities are searched, and a Policy is what comes out."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from builders import make_node, make_pod
from cli.running import node, pod, run, written
from podium.answers import tune
from podium.answers.search_space import PolicySpace, TunedSettings, V1Alpha2Space
from podium.answers.simulation import simulate
from podium.cluster import Cluster
from podium.engine.release import PROVIDERS, Options, release_of
from podium.errors import ConfigError, InputError
from podium.plugins import IN_TREE
from podium.releases import provider_policy
from releases.releasing import argument, policy

OLD = ("v1.8", "v1.14", "v1.18")
SHAPE = ((0, 0), (50, 3), (100, 10))
V1ALPHA2 = {"apiVersion": "kubescheduler.config.k8s.io/v1alpha2", "kind": "KubeSchedulerConfiguration"}


def small() -> Cluster:
    pending = [make_pod(f"p{number}", requests={"cpu": "1", "memory": "1Gi"}) for number in range(6)]
    return Cluster.from_objects([*(make_node(f"n{number}") for number in range(4)), *pending])


# -- a Policy to start from --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", OLD)
@pytest.mark.parametrize("provider", PROVIDERS)
def test_the_policy_of_a_provider_comes_to_what_the_provider_runs(release: str, provider: str) -> None:
    options = Options(provider=provider)

    setups = (
        release_of(release).set_up(provider_policy(release, options)),
        release_of(release).set_up(options=options),
    )

    one, other = ({point: sorted(refs) for point, refs in s.config.profiles[0].points.items() if refs} for s in setups)
    assert one == other


# -- the search --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", OLD)
def test_a_policy_is_found_that_packs(release: str) -> None:
    found = tune(small(), "fewest-nodes", release=release, trials=4)

    assert (found.today.value, found.best.value) == (4, 2)
    assert found.document["kind"] == "Policy"
    simulation = simulate(small(), config=found.document, release=release, tie_break="first")
    assert len({placement.node for placement in simulation.placements}) == 2


def test_the_same_in_any_number_of_processes() -> None:
    one, other = (tune(small(), release="v1.14", trials=5, jobs=jobs) for jobs in (1, 2))

    assert one.trials == other.trials


@pytest.mark.parametrize("release", OLD)
def test_what_the_owner_of_a_node_wants_is_left_alone(release: str) -> None:
    found = tune(small(), release=release, trials=3)

    assert "NodePreferAvoidPodsPriority" not in found.today.settings.weights
    assert {"name": "NodePreferAvoidPodsPriority", "weight": 10000} in found.document["priorities"]


@pytest.mark.parametrize("release", OLD)
def test_weights_that_cannot_matter_are_left_out(release: str) -> None:
    found = tune(small(), release=release, trials=4)

    assert "LeastRequestedPriority" not in found.left_out
    assert {"InterPodAffinityPriority", "NodeAffinityPriority", "TaintTolerationPriority"} <= set(found.left_out)
    today = found.today.settings.weights
    assert all(trial.settings.weights[name] == today[name] for trial in found.trials for name in found.left_out)


def test_a_plugin_of_v1_18_stands_for_the_priorities_of_its_kind() -> None:
    liked = [
        {"name": name, "weight": 2, "argument": {"labelPreference": {"label": name, "presence": True}}}
        for name in ("ssd", "gpu")
    ]
    space = PolicySpace(policy([], [*liked, {"name": "MostRequestedPriority", "weight": 1}]), IN_TREE, None, "v1.18")

    names = ("NodeLabel", "NodeResourcesLeastAllocated", "RequestedToCapacityRatio", "ImageLocality")
    assert list(map(space.weight_of, names)) == [
        "ssd",
        "MostRequestedPriority",
        "MostRequestedPriority",
        "ImageLocality",
    ]


def test_v1_8_has_no_ratio_to_choose() -> None:
    tried = tune(small(), release="v1.8", trials=12).trials

    assert {trial.settings.strategy for trial in tried} == {"LeastRequestedPriority", "MostRequestedPriority"}


def test_a_v1alpha2_configuration_stays_one() -> None:
    found = tune(small(), config=V1ALPHA2, release="v1.18", trials=4)

    assert found.best.value == 2
    assert found.document["apiVersion"] == V1ALPHA2["apiVersion"]
    assert release_of("v1.18").set_up(found.document).warnings == ()


BAD: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "no priorities": ({"config": policy((), ())}, InputError, "the Policy has no priority whose weight matters"),
    "a profile there is not": ({"profile": "mine"}, InputError, "profile 'mine' is not in the configuration"),
    "a Policy that is refused": ({"config": policy(["NoSuch"])}, ConfigError, "Predicate type not found for NoSuch"),
    "another generation's": ({"config": V1ALPHA2}, ConfigError, "v1.14 reads an object of kind Policy"),
}


@pytest.mark.parametrize(("options", "kind", "said"), BAD.values(), ids=BAD)
def test_bad_input(options: dict[str, Any], kind: type[Exception], said: str) -> None:
    with pytest.raises(kind, match=said):
        tune(small(), release="v1.14", trials=1, **options)


# -- turning settings ----------------------------------------------------------------------------------------------

RATIO = argument("Mine", "requestedToCapacityRatioArguments", 4, shape=[{"utilization": 100, "score": 10}])
LIKES = [argument(f"Likes{label}", "labelPreference", 3, label=label, presence=True) for label in ("rack", "disk")]


def turned(space: PolicySpace | V1Alpha2Space, strategy: str | None) -> TunedSettings:
    weights = {name: place + 3 for place, name in enumerate(space.today.weights)}
    return TunedSettings(weights, strategy, SHAPE if strategy and strategy.startswith("Requested") else None)


@pytest.mark.parametrize("release", ["v1.14", "v1.18"])
@pytest.mark.parametrize("strategy", ["LeastRequestedPriority", "MostRequestedPriority"])
def test_a_priority_becomes_another_of_its_kind_and_the_rest_stays(release: str, strategy: str) -> None:
    document = policy(["GeneralPredicates"], [RATIO, {"name": "EqualPriority", "weight": 9}])
    before = json.dumps(document)
    space = PolicySpace(document, IN_TREE, None, release)

    after = space.document(turned(space, strategy))

    assert (space.today.strategy, space.today.shape) == ("RequestedToCapacityRatioPriority", ((100, 10),))
    assert after == {
        **document,
        "priorities": [{"name": strategy, "weight": 3}, {"name": "EqualPriority", "weight": 9}],
    }
    assert json.dumps(document) == before


@pytest.mark.parametrize("release", ["v1.14", "v1.18"])
def test_a_ratio_is_given_its_shape(release: str) -> None:
    space = PolicySpace(policy((), ["LeastRequestedPriority"]), IN_TREE, None, release)

    again = PolicySpace(space.document(turned(space, space.strategies[-1])), IN_TREE, None, release)

    assert again.today == TunedSettings(
        {"RequestedToCapacityRatioPriority": 3}, "RequestedToCapacityRatioPriority", SHAPE
    )


def test_two_priorities_for_resources_are_no_choice() -> None:
    both = policy((), ["LeastRequestedPriority", "MostRequestedPriority"])

    assert PolicySpace(both, IN_TREE, None, "v1.14").today.strategy is None


def test_preferences_of_one_kind_have_one_weight_in_v1_18() -> None:
    separate = PolicySpace(policy((), LIKES), IN_TREE, None, "v1.14")
    shared = PolicySpace(policy((), LIKES), IN_TREE, None, "v1.18")

    assert separate.today.weights == {"Likesrack": 3, "Likesdisk": 3}
    assert shared.today.weights == {"Likesrack": 3}
    after = shared.document(TunedSettings({"Likesrack": 7}, None))
    assert [entry["weight"] for entry in after["priorities"]] == [7, 7]


def test_priorities_that_are_left_out_are_the_defaults_and_none_in_v1_8() -> None:
    left_out = policy(["GeneralPredicates"], None)

    assert "LeastRequestedPriority" in PolicySpace(left_out, IN_TREE, None, "v1.14").today.weights
    with pytest.raises(InputError, match="nothing to tune"):
        PolicySpace(left_out, IN_TREE, None, "v1.8")


@pytest.mark.parametrize("strategy", V1Alpha2Space.strategies)
def test_score_plugins_of_v1alpha2(strategy: str) -> None:
    enabled = [{"name": "NodeLabel", "weight": 2}]
    profile = {"schedulerName": "two", "plugins": {"score": {"enabled": enabled}}, "pluginConfig": []}
    document = {**V1ALPHA2, "profiles": [{"schedulerName": "one"}, profile]}
    before = json.dumps(document)
    space = V1Alpha2Space(document, IN_TREE, "two", "v1.18")
    settings = turned(space, strategy)

    again = V1Alpha2Space(space.document(settings), IN_TREE, "two", "v1.18")

    expected = {
        (strategy if name == space.today.strategy else name): settings.weights[name] for name in settings.weights
    }
    assert (again.today.weights, again.today.strategy, again.today.shape) == (expected, strategy, settings.shape)
    assert space.document(space.today) == document
    assert json.dumps(document) == before


# -- the command -------------------------------------------------------------------------------------------------------


@pytest.fixture
def cluster(tmp_path: Path) -> Path:
    pods = [pod(f"p{number}", requests={"cpu": "1", "memory": "2Gi"}) for number in range(4)]
    return written(tmp_path / "cluster.json", *(node(f"n{number}") for number in range(4)), *pods)


@pytest.mark.parametrize("release", OLD)
def test_the_command_writes_a_policy_that_can_be_given_back(release: str, cluster: Path, tmp_path: Path) -> None:
    out = tmp_path / "policy.yaml"

    result = run("tune", "-f", cluster, "--release", release, "--trials", "4", "--jobs", "1", "--out", out)

    assert result.exit_code == 0, result.stderr
    assert yaml.safe_load(out.read_text())["kind"] == "Policy"
    again = run("compare", "-f", cluster, "--release", release, "--config", out, "-o", "json")
    assert (again.exit_code, again.stderr) == (0, "")
    before, after = (json.loads(again.stdout)[way]["measures"]["nodesInUse"] for way in ("before", "after"))
    assert f"The pods take {after} node" in result.stdout
    assert after < before == 4


def test_from_another_provider(cluster: Path) -> None:
    arguments = ("tune", "-f", cluster, "--release", "v1.14", "--trials", "1", "--jobs", "1")

    result = run(*arguments, "--config", "ClusterAutoscalerProvider", "-o", "json")

    assert json.loads(result.stdout)["today"]["strategy"] == "MostRequestedPriority"
