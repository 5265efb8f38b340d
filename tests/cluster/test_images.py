from __future__ import annotations

from builders import make_node
from podium.cluster.store import Images


def known(images: Images) -> dict[str, tuple[int, set[int]]]:
    return {name: (state.size, state.rows) for name, state in images.states.items()}


def test_every_name_of_an_image_knows_the_rows_that_have_it() -> None:
    images = Images()
    images.add(0, make_node(images={"app:v1": 10, "tool:v1": 20}))
    images.add(2, make_node(images={"app:v1": 10}))
    assert known(images) == {"app:v1": (10, {0, 2}), "tool:v1": (20, {0})}


def test_the_first_node_to_have_an_image_says_its_size() -> None:
    images = Images()
    images.add(0, make_node(images={"app:v1": 10}))
    images.add(1, make_node(images={"app:v1": 99}))
    assert known(images) == {"app:v1": (10, {0, 1})}


def test_an_image_is_forgotten_with_its_last_node() -> None:
    images = Images()
    first, second = make_node(images={"app:v1": 10}), make_node(images={"app:v1": 99})
    images.add(0, first)
    images.add(1, second)
    images.remove(0, first)
    assert known(images) == {"app:v1": (10, {1})}
    images.remove(1, second)
    images.remove(1, second)
    assert known(images) == {}


def test_a_copy_goes_its_own_way() -> None:
    images = Images()
    node = make_node(images={"app:v1": 10})
    images.add(0, node)
    twin = images.copy()
    twin.add(1, node)
    images.remove(0, node)
    assert known(images) == {}
    assert known(twin) == {"app:v1": (10, {0, 1})}
