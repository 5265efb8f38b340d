"""How many devices of a class a node has, and how many of them are in use: what scoring by resources looks at.

It looks at slices only: neither at generations nor at whether pools are complete or devices tainted.
"""

from __future__ import annotations

import numpy as np

from podium.cluster import Cluster
from podium.cluster.columns import Ints
from podium.model import DeviceClass
from podium.model.selectors import Labels
from podium.plugins.dynamic_resources.devices import PooledDevice
from podium.plugins.dynamic_resources.inventory import Inventory, inventory_of
from podium.plugins.dynamic_resources.requests import expressions_of
from podium.plugins.dynamic_resources.selection import SelectionError, selects_as_exclusive
from podium.rules import Rules


def device_totals(cluster: Cluster, rules: Rules, device_class: DeviceClass, rows: Ints) -> tuple[Ints, Ints]:
    """Per row, the devices of the class and those in use; none where an expression of the class fails."""
    inventory = inventory_of(cluster, rules)
    there, taken = np.zeros(len(rows), dtype=np.int64), np.zeros(len(rows), dtype=np.int64)
    for place, row in enumerate(rows.tolist()):
        name = cluster.names[row]
        try:
            devices = _of_class(inventory, device_class, name, cluster.node(name).metadata.labels)
        except SelectionError:
            continue
        there[place] = len(devices)
        taken[place] = sum(inventory.in_use.is_allocated(device.id) for device in devices)
    return there, taken


def _of_class(inventory: Inventory, device_class: DeviceClass, node_name: str, labels: Labels) -> list[PooledDevice]:
    expressions = expressions_of(device_class.spec.selectors)
    return [
        device
        for each in inventory.slices_near(node_name)
        for device in each.devices
        if device.reach.includes(node_name, labels) and selects_as_exclusive(expressions, device, inventory.rules)
    ]
