"""Node groups, and the settings for adding nodes to them and removing nodes from them."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from msgspec.structs import replace

from podium.autoscaling.strategy import Strategy
from podium.model import Node, ResourceSlice
from podium.model.devices import ResourcePool
from podium.model.objects import HOSTNAME, NODE_GROUP, PRICE_PER_HOUR


@dataclass(frozen=True, kw_only=True)
class NodeGroup:
    """A group of equal nodes, made from one template."""

    name: str
    template: Node
    min_size: int
    max_size: int
    boot_time: float
    """Seconds from when a node is asked for until pods can be placed on it."""
    price_per_hour: float
    priority: int
    slices: tuple[ResourceSlice, ...] = ()
    """The ResourceSlices of each node, without a node name."""

    def node(self, number: int | str) -> Node:
        """Make the node with this number, which is part of its name."""
        name = f"{self.name}-{number}"
        own = {NODE_GROUP: self.name, PRICE_PER_HOUR: f"{self.price_per_hour:g}", HOSTNAME: name}
        labels = {**self.template.metadata.labels, **own}
        return replace(self.template, metadata=replace(self.template.metadata, name=name, labels=labels))

    def slices_of(self, node: Node) -> list[ResourceSlice]:
        """Make the ResourceSlices of a node; all slices of a driver form one pool named after the node."""
        counts = Counter(each.spec.driver for each in self.slices)
        return [
            replace(
                each,
                metadata=replace(each.metadata, name=f"{node.name}-{number}"),
                spec=replace(
                    each.spec,
                    node_name=node.name,
                    pool=ResourcePool(name=node.name, generation=1, resource_slice_count=counts[each.spec.driver]),
                ),
            )
            for number, each in enumerate(self.slices)
        ]


@dataclass(frozen=True, kw_only=True)
class AutoscalingSettings:
    """The settings that every strategy has, and the strategy with its own. Times are in seconds."""

    strategy: Strategy
    expanders: tuple[str, ...]
    """Asked one after the other until one option is left."""
    seed: int
    scan_interval: float
    new_pod_scale_up_delay: float
    scale_down_enabled: bool


@dataclass(frozen=True)
class NodeGroups:
    """The groups and settings of one file."""

    groups: tuple[NodeGroup, ...]
    settings: AutoscalingSettings

    def of(self, node: Node) -> NodeGroup | None:
        """The group named in a node's label; None if it belongs to no group."""
        name = node.metadata.labels.get(NODE_GROUP)
        return next((group for group in self.groups if group.name == name), None)

    def may_name(self, node: str) -> bool:
        """Whether a group may give a node this name: its own name and a number from 1."""
        name, _, number = node.rpartition("-")
        is_number = number.isascii() and number.isdecimal() and not number.startswith("0")
        return is_number and any(group.name == name and group.max_size for group in self.groups)
