"""Results of searches on every node, kept until something changes that they depend on."""

from __future__ import annotations

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints, Mask
from podium.model import DeviceClass
from podium.plugins.dynamic_resources._allocation import node_selector_of
from podium.plugins.dynamic_resources._device_search import (
    FAILED,
    FOUND,
    INVALID_POOLS,
    NOT_FOUND,
    TIMED_OUT,
    TIMEOUT,
    AllocationError,
    DeviceSearch,
    SearchTimeoutError,
    Solution,
)
from podium.plugins.dynamic_resources.inventory import Inventory
from podium.plugins.dynamic_resources.requests import Shapes

STEPS_OF_EVERY_NODE = 2_000
"""How many steps a node may take whatever the others took: enough for 16 requests on 100 devices."""


class SearchResults:
    """The results on each row for one list of claim shapes."""

    def __init__(self, shapes: Shapes) -> None:
        self.shapes = shapes
        self.codes: Ints = np.zeros(0, dtype=np.int64)
        """FOUND, NOT_FOUND, INVALID_POOLS, TIMEOUT or FAILED."""
        self.ranks: Ints = np.zeros(0, dtype=np.int64)
        """The rank of the alternatives that were found, as computed by `ClaimShape.rank`."""
        self.solutions: dict[int, Solution] = {}
        self.errors: dict[int, AllocationError] = {}
        self._stale: Mask = np.zeros(0, dtype=np.bool_)
        self._cursor = -1
        self._epoch = -1

    def look_at(self, rows: Ints, cluster: Cluster, inventory: Inventory, most_steps: float) -> None:
        """Bring the results of these rows up to date; stops at the first row that fails, which fails the pod as
        a whole.
        """
        self._catch_up(cluster, inventory)
        stale = rows[self._stale[rows]]
        if len(stale):
            names = {option for shape in self.shapes for _, option in shape.classes()}
            known = cluster.store.of(DeviceClass)
            classes = {name: found for name in names if (found := known.get(name)) is not None}
            spare = most_steps
            for row in stale.tolist():
                # kube-scheduler searches 16 nodes at a time, so that the timeout of one is that of many. Here it is the
                # timeout of all nodes together, apart from the few steps that most searches take.
                search = DeviceSearch(
                    self.shapes,
                    inventory.pools_of(row),
                    inventory.in_use,
                    classes,
                    inventory.rules,
                    min(most_steps, STEPS_OF_EVERY_NODE + spare),
                )
                self._search(search, row, cluster.names[row], inventory)
                spare = max(spare - max(search.steps - STEPS_OF_EVERY_NODE, 0), 0)
                self._stale[row] = False
                if self.codes[row] == FAILED:
                    return

    def _catch_up(self, cluster: Cluster, inventory: Inventory) -> None:
        missing = cluster.columns.size - len(self.codes)
        if missing:
            more = np.zeros(missing, dtype=np.int64)
            self.codes, self.ranks = np.concatenate([self.codes, more]), np.concatenate([self.ranks, more])
            self._stale = np.concatenate([self._stale, np.ones(missing, dtype=np.bool_)])
        changed = inventory.log.since(self._cursor) if self._epoch == inventory.epoch and self._cursor >= 0 else None
        self._stale[slice(None) if changed is None else changed] = True
        self._cursor, self._epoch = inventory.log.head, inventory.epoch

    def _search(self, search: DeviceSearch, row: int, node_name: str, inventory: Inventory) -> None:
        pools = inventory.pools_of(row)
        self.solutions.pop(row, None)
        self.errors.pop(row, None)
        try:
            found = search.run()
            for taken in found or ():
                node_selector_of(taken, node_name)
        except SearchTimeoutError:
            if inventory.rules.device_timeout_is_an_error:
                self.codes[row], self.errors[row] = FAILED, AllocationError(f"node {node_name}: {TIMED_OUT}")
            else:
                self.codes[row] = TIMEOUT
            return
        except AllocationError as error:
            self.codes[row], self.errors[row] = FAILED, error
            return
        if found is None:
            self.codes[row] = INVALID_POOLS if pools.has_invalid else NOT_FOUND
            return
        self.codes[row], self.solutions[row] = FOUND, found
        self.ranks[row] = sum(
            shape.rank(each.option.name for each in taken) for shape, taken in zip(self.shapes, found, strict=True)
        )


class KnownSearches:
    """The results for recently searched claims."""

    MOST_REMEMBERED_SEARCHES = 256

    def __init__(self) -> None:
        self._by_shapes: dict[tuple[Shapes, float], SearchResults] = {}

    def of(self, shapes: Shapes, most_steps: float) -> SearchResults:
        key = shapes, most_steps
        found = self._by_shapes.pop(key, None) or SearchResults(shapes)
        self._by_shapes[key] = found
        if len(self._by_shapes) > self.MOST_REMEMBERED_SEARCHES:
            del self._by_shapes[next(iter(self._by_shapes))]
        return found
