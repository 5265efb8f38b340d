"""The first of the highest values of a long array is found without looking at all of it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.shapes import case
from podium.cluster import Cluster
from podium.engine import Scheduler
from podium.engine.plan import BlockBounds
from podium.manifests import load
from podium.model import Pod

LENGTH = 23
rows = st.integers(0, LENGTH - 1)
numbers = st.integers(0, 9)


class SmallBlocks(BlockBounds):
    BLOCK = 4


@given(
    first=st.lists(numbers, min_size=LENGTH, max_size=LENGTH),
    changes=st.lists(st.dictionaries(rows, numbers, min_size=1, max_size=4), max_size=12),
    allowed=st.sets(rows, min_size=1),
)
def test_what_is_found_is_what_looking_at_all_would_find(
    first: list[int], changes: list[dict[int, int]], allowed: set[int]
) -> None:
    values = np.array(first)
    bounds = SmallBlocks(values)
    mask = np.isin(np.arange(LENGTH), list(allowed))
    for change in [{}, *changes]:
        changed = np.array(list(change), dtype=np.int64)
        values[changed] = list(change.values())
        if len(change) == 1:
            bounds.raise_one(*next(iter(change.items())))
        else:
            bounds.raise_for(changed, values[changed])

        assert bounds.first_best(values, lambda part: mask[part]) == np.where(mask, values, -1).argmax()
        assert bounds.first_best(values, None) == values.argmax()


@pytest.mark.parametrize("shape", ["basic", "mixed", "spread", "nodeaffinity", "unschedulable"])
def test_pods_go_where_they_went(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = case(shape, 30, 120)
    objects, pods = list(load(made["objects"])), load(made["pods"]).of(Pod)

    def placed() -> list[str | None]:
        scheduler = Scheduler(Cluster.from_objects([*objects, *pods]), tie_break="first")
        return [scheduler.schedule(pod) for pod in pods]

    usual = placed()
    monkeypatch.setattr(BlockBounds, "LONG", 0)
    monkeypatch.setattr(BlockBounds, "BLOCK", 4)
    assert placed() == usual
