from __future__ import annotations

import pickle

from podium.memory import RecentlyUsed


def test_it_travels_to_another_process() -> None:
    kept: RecentlyUsed[int] = RecentlyUsed(4)
    for number in range(3):
        kept[number] = number
    twin = pickle.loads(pickle.dumps(kept))
    assert [twin[number] for number in range(4)] == [0, 1, 2, None]
