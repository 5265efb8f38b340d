from __future__ import annotations

import gc
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing
from pathlib import Path

import pytest

from builders import make_node, make_pod
from podium import Timeline, simulate
from podium.autoscaling import read_node_groups, scaled
from podium.cluster import Cluster
from podium.memory import MANY, collector_paused, collector_relaxed


@pytest.fixture(autouse=True)
def collector_as_it_was() -> Iterator[None]:
    yield
    gc.unfreeze()
    gc.enable()


def test_the_collector_is_off_meanwhile_and_on_again_afterwards() -> None:
    with collector_paused():
        assert not gc.isenabled()
    assert gc.isenabled()


def test_the_collector_is_on_again_after_an_error() -> None:
    with pytest.raises(ValueError, match="wrong"), collector_paused():
        raise ValueError("wrong")
    assert gc.isenabled()


def test_a_collector_that_was_off_stays_off() -> None:
    gc.disable()
    with collector_paused():
        pass
    assert not gc.isenabled()


def test_what_was_made_is_old_at_once() -> None:
    with collector_paused():
        made = [[number] for number in range(MANY + 1)]
    oldest = {id(each) for each in gc.get_objects(generation=2)}
    assert {id(each) for each in made} <= oldest


@pytest.mark.parametrize("context", [collector_paused, collector_relaxed])
def test_what_others_froze_stays_frozen(context: Callable[[], AbstractContextManager[None]]) -> None:
    gc.freeze()
    frozen = gc.get_freeze_count()
    with context():
        pass
    assert gc.get_freeze_count() == frozen


def test_what_was_there_before_is_not_scanned_while_the_collector_is_relaxed() -> None:
    before: list[list[int]] = [[]]
    with collector_relaxed():
        made: list[list[int]] = [[]]
        scanned = {id(each) for each in gc.get_objects()}
        assert id(before) not in scanned
        assert id(made) in scanned
    assert id(before) in {id(each) for each in gc.get_objects()}


def test_the_collector_is_relaxed_meanwhile_and_as_before_afterwards() -> None:
    before = gc.get_threshold()
    with collector_relaxed():
        assert gc.get_threshold()[0] > before[0]
    assert gc.get_threshold() == before


def test_the_collector_is_as_before_after_an_error() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="wrong"), collector_relaxed():
        raise ValueError("wrong")
    assert gc.get_threshold() == before


OBJECTS = (make_node("n", cpu="4"), make_pod("fits"), make_pod("large", requests={"cpu": "6"}))


def simulated(folder: Path) -> Cluster:
    return simulate(Cluster.from_objects(OBJECTS)).cluster


def lived_through(folder: Path) -> Cluster:
    with closing(Timeline(OBJECTS)) as timeline:
        timeline.run(60)
        return timeline.loop.cluster


def autoscaled(folder: Path) -> Cluster:
    file = folder / "groups.yaml"
    file.write_text("groups: [{name: g, maxSize: 2, template: {status: {allocatable: {cpu: 8, pods: 9}}}}]")
    with closing(scaled(Timeline(OBJECTS), read_node_groups(str(file)))) as timeline:
        timeline.run(60)
        return timeline.loop.cluster


@pytest.mark.parametrize("decided", [simulated, lived_through, autoscaled])
def test_a_cluster_is_freed_as_soon_as_it_is_dropped(decided: Callable[[Path], Cluster], tmp_path: Path) -> None:
    """A sweep makes a cluster for each run: a cycle of references would keep all of them until the collector runs."""
    decided(tmp_path)
    gc.collect()
    gc.disable()
    dropped = weakref.ref(decided(tmp_path))
    assert dropped() is None
