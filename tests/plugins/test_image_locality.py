from __future__ import annotations

import pytest

from builders import MEBI, decide, make_node, make_pod, scores
from podium.model import Pod
from podium.plugins.image_locality import normalized_image_name


def locality(pod: Pod, **images: dict[str, int]) -> dict[str, int] | None:
    """The scores of nodes that have these images, by their size in MiB."""
    nodes = [
        make_node(name, images={image: size * MEBI for image, size in there.items()}) for name, there in images.items()
    ]
    return scores(decide(nodes, pod), "ImageLocality")


APP = {"app:latest": 500}


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        # 500 MiB on one of two nodes count half: (250 - 23) / (1000 - 23).
        pytest.param({"a": APP, "b": {}}, {"a": 23, "b": 0}, id="one of two nodes"),
        # On both nodes it counts in full: (500 - 23) / 977.
        pytest.param({"a": APP, "b": APP}, {"a": 48, "b": 48}, id="both nodes"),
        pytest.param({"a": APP, "b": {}, "c": {}, "d": {}}, {"a": 10, "b": 0, "c": 0, "d": 0}, id="one of four"),
        pytest.param({"a": {"app:latest": 40}, "b": {}}, {"a": 0, "b": 0}, id="too small to matter"),
        pytest.param({"a": {"app:latest": 3000}, "b": {}}, {"a": 100, "b": 0}, id="as large as it gets"),
        pytest.param({"a": {"app:v2": 500}, "b": {}}, {"a": 0, "b": 0}, id="another tag"),
    ],
)
def test_nodes_that_have_the_image_score_higher(images: dict[str, dict[str, int]], expected: dict[str, int]) -> None:
    assert locality(make_pod(image="app"), **images) == expected


def test_the_ceiling_grows_with_the_containers() -> None:
    pod = make_pod(image="app", init_containers=[{"name": "init", "image": "tool:v1"}])
    # (500 + 400 - 23) / (2000 - 23)
    both = {"app:latest": 500, "tool:v1": 400}
    assert locality(pod, a=both, b=both) == {"a": 44, "b": 44}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("app", "app:latest"),
        ("app:v1", "app:v1"),
        ("registry.io:5000/app", "registry.io:5000/app:latest"),
        ("registry.io:5000/app:v1", "registry.io:5000/app:v1"),
        ("app@sha256:abc", "app@sha256:abc"),
    ],
)
def test_a_name_without_a_tag_means_the_latest(name: str, expected: str) -> None:
    assert normalized_image_name(name) == expected
