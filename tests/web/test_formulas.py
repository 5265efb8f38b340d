"""The formulas behind a node's scores come to the scores, in every release."""

from __future__ import annotations

import re

import pytest

from builders import make_node, make_pod
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.framework import Registry, ScorePlugin
from podium.plugins import IN_TREE
from podium.web._formulas import formulas

NODES = [
    make_node("a", cpu="4", memory="8Gi", images={"app:latest": 500 << 20, "tool:latest": 900 << 20}),
    make_node("b", cpu="8", memory="9Gi"),
]
RUNNING = make_pod("running", node="a", requests={"cpu": "1", "memory": "5Gi"})
POD = make_pod("pod", requests={"cpu": "1", "memory": "1Gi"}, init_containers=[{"name": "first", "image": "tool"}])


def lines_of(plugin: str, node: str, release: str = "v1.37", registry: Registry = IN_TREE) -> tuple[int, list[str]]:
    """The raw score of a plugin, and how it came about."""
    cluster = Cluster.from_objects([*NODES, RUNNING, POD])
    scheduler = Scheduler(cluster, release=release, registry=registry)
    found = formulas(scheduler, POD, None, scheduler.decide(POD), node)
    (one,) = [each for each in found if each["plugin"] == plugin]
    return one["raw"], one["lines"]


@pytest.mark.parametrize("release", ["v1.29", "v1.33", "v1.35", "v1.36", "v1.37"])
@pytest.mark.parametrize("node", ["a", "b"])
def test_balance_comes_to_the_score_of_the_release(release: str, node: str) -> None:
    raw, lines = lines_of("NodeResourcesBalancedAllocation", node, release)
    formula = lines[3]

    if release < "v1.36":
        assert formula == f"100 * (1 - the deviation with the pod), rounded down: {raw}"
    else:
        found = re.fullmatch(r"50 \+ \(50 \+ (\d+) - (\d+)\) / 2", formula)
        assert found is not None, formula
        after, now = map(int, found.groups())
        assert 50 + int((50 + after - now) / 2) == raw


@pytest.mark.parametrize(
    ("release", "images", "most"),
    [("v1.29", ["app:latest"], "1,000 MiB"), ("v1.30", ["tool:latest", "app:latest"], "2,000 MiB")],
)
def test_images_are_those_that_the_release_counts(release: str, images: list[str], most: str) -> None:
    raw, lines = lines_of("ImageLocality", "a", release)
    sizes = {"app:latest": 500 << 20, "tool:latest": 900 << 20}
    total = sum(sizes[name] // 2 for name in images)

    assert [line.partition(": ")[0] for line in lines[: len(images)]] == images
    assert lines[len(images)] == f"{total:,} bytes, from 23 MiB (0) to {most} (100)"
    assert raw == 100 * (total - (23 << 20)) // ((int(most.split(",")[0]) * 1000 - 23) << 20)


@pytest.mark.parametrize("release", ["v1.8", "v1.14", "v1.18"])
def test_the_plugins_of_old_releases_only_have_their_score(release: str) -> None:
    cluster = Cluster.from_objects([*NODES, RUNNING, POD])
    scheduler = Scheduler(cluster, release=release)
    found = formulas(scheduler, POD, None, scheduler.decide(POD), "a")

    assert len(found) > 3
    assert {each["lines"][0] for each in found} == {"the plugin's own score"}
    assert all(each["lines"][-1].endswith(f"= {each['weighted']:,} points") for each in found)


def test_a_plugin_of_the_same_name_is_not_taken_for_podiums_own() -> None:
    class ImageLocality(ScorePlugin):
        name = "ImageLocality"

        def score_node(self, state: object, pod: object, node: object) -> int:
            return 7

    own = Registry(plugin for name, plugin in IN_TREE.items() if name != "ImageLocality")
    registry = Registry((*own.values(), ImageLocality))

    assert lines_of("ImageLocality", "a", registry=registry)[1][:2] == ["the plugin's own score", "raw score 7"]


def test_a_node_that_does_not_fit_has_no_formulas() -> None:
    cluster = Cluster.from_objects([*NODES, make_node("full", cpu="0"), POD])
    scheduler = Scheduler(cluster)

    assert formulas(scheduler, POD, None, scheduler.decide(POD), "full") == []
