"""Reads the file of node groups: their templates, sizes and prices, and the settings for adding and removing nodes.

The settings have the names of cluster-autoscaler's flags, in camel case, and its defaults; those of consolidation are
Karpenter's.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from podium.errors import InputError
from podium.manifests import load
from podium.manifests.decode import unknown_fields
from podium.manifests.located import LocatedDocument, Section
from podium.model import Node, Object, ResourceSlice
from podium.model.devices import ResourcePool
from podium.model.meta import dns_subdomain_errors, label_value_errors, qualified_name_errors
from podium.model.objects import HOSTNAME, NODE_GROUP, PRICE_PER_HOUR
from podium.model.selectors import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE

KARPENTER = "karpenter"
STRATEGIES = ("cluster-autoscaler", KARPENTER)
EXPANDERS = ("least-waste", "price", "priority", "most-pods", "least-nodes", "random")
POLICIES = ("WhenEmptyOrUnderutilized", "WhenEmpty")
EMPTY, UNDERUTILIZED = "Empty", "Underutilized"
REASONS = (EMPTY, UNDERUTILIZED, "Drifted")
NEVER = "Never"
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
SETTINGS_OF = {
    STRATEGIES[0]: (
        "scaleDownDelayAfterAdd",
        "scaleDownDelayAfterDelete",
        "scaleDownUnneededTime",
        "scaleDownUnreadyTime",
        "scaleDownUtilizationThreshold",
        "scaleDownGpuUtilizationThreshold",
        "scaleDownNonEmptyCandidatesCount",
        "maxScaleDownParallelism",
        "maxDrainParallelism",
        "skipNodesWithLocalStorage",
        "skipNodesWithSystemPods",
        "ignoreDaemonsetsUtilization",
        "ignoreMirrorPodsUtilization",
        "expendablePodsPriorityCutoff",
    ),
    KARPENTER: ("consolidationPolicy", "consolidateAfter", "budgets"),
}
"""The settings that only one strategy reads."""
PLACE_OF_SLICE = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection", "pool")
"""The fields of a ResourceSlice that follow from the node it is made for."""
SHORTEST_SCAN = 0.1
"""Seconds."""
HIGHEST_PRICE = 1_000_000_000
MOST_NODES = 100_000
"""The largest minimum size of a group."""


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


@dataclass(frozen=True)
class DisruptionBudget:
    """How many nodes Karpenter may remove at a time."""

    nodes: int
    is_percentage: bool
    reasons: tuple[str, ...]
    """The reasons for removing nodes to which the budget applies."""

    def allowed(self, nodes: int) -> int:
        """How many nodes may be removed if there are `nodes`; a percentage is rounded up."""
        return -(-self.nodes * nodes // 100) if self.is_percentage else self.nodes


TENTH = DisruptionBudget(10, is_percentage=True, reasons=REASONS)


@dataclass(frozen=True, kw_only=True)
class AutoscalingSettings:
    """The settings for adding and removing nodes. Times are in seconds."""

    strategy: str
    expanders: tuple[str, ...]
    """Asked one after the other until one option is left."""
    seed: int
    scan_interval: float
    new_pod_scale_up_delay: float
    scale_down_enabled: bool
    scale_down_delay_after_add: float
    scale_down_delay_after_delete: float
    scale_down_unneeded_time: float
    scale_down_unready_time: float
    scale_down_utilization_threshold: float
    scale_down_gpu_utilization_threshold: float
    scale_down_non_empty_candidates_count: int
    max_scale_down_parallelism: int
    max_drain_parallelism: int
    skip_nodes_with_local_storage: bool
    skip_nodes_with_system_pods: bool
    ignore_daemonsets_utilization: bool
    ignore_mirror_pods_utilization: bool
    expendable_pods_priority_cutoff: int
    consolidation_policy: str
    consolidate_after: float
    budgets: tuple[DisruptionBudget, ...]

    @property
    def is_karpenter(self) -> bool:
        return self.strategy == KARPENTER


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


def read_node_groups(file: str) -> NodeGroups:
    """Read the groups of a file; raises an InputError that names the file, the line and the field that is wrong."""
    top = LocatedDocument(file).section()
    settings = _settings(top)
    groups = tuple(_group(section) for section in top.items("groups"))
    top.done()
    if not groups:
        top.refuse("groups", "needs at least one group")
    names = [group.name for group in groups]
    for place, name in enumerate(names):
        if name in names[:place]:
            top.document.refuse(("groups", place, "name"), f"{name!r} is the name of another group already")
    return NodeGroups(groups, settings)


def _settings(top: Section) -> AutoscalingSettings:
    strategy = top.one_of("strategy", STRATEGIES, STRATEGIES[0])
    for other, fields in SETTINGS_OF.items():
        for field in fields:
            if other != strategy and field in top:
                top.refuse(field, f"is for strategy {other} only, and has no effect with {strategy}; leave it out")
    interval = top.duration("scanInterval", 10.0)
    if interval < SHORTEST_SCAN:
        top.refuse("scanInterval", f"is {interval:g} s; it needs {SHORTEST_SCAN:g} or more")
    is_never = top.raw("consolidateAfter") == NEVER
    consolidates = strategy == KARPENTER
    return AutoscalingSettings(
        strategy=strategy,
        expanders=_expanders(top, "price" if consolidates else "least-waste"),
        seed=top.whole("seed", 0),
        scan_interval=interval,
        new_pod_scale_up_delay=top.duration("newPodScaleUpDelay", 0.0),
        scale_down_enabled=top.truth("scaleDownEnabled", default=True) and not (consolidates and is_never),
        scale_down_delay_after_add=top.duration("scaleDownDelayAfterAdd", 600.0),
        scale_down_delay_after_delete=top.duration("scaleDownDelayAfterDelete", interval),
        scale_down_unneeded_time=top.duration("scaleDownUnneededTime", 600.0),
        scale_down_unready_time=top.duration("scaleDownUnreadyTime", 1200.0),
        scale_down_utilization_threshold=_share(top, "scaleDownUtilizationThreshold"),
        scale_down_gpu_utilization_threshold=_share(top, "scaleDownGpuUtilizationThreshold"),
        scale_down_non_empty_candidates_count=top.whole("scaleDownNonEmptyCandidatesCount", 30, least=1),
        max_scale_down_parallelism=top.whole("maxScaleDownParallelism", 10, least=1),
        max_drain_parallelism=top.whole("maxDrainParallelism", 1, least=1),
        skip_nodes_with_local_storage=top.truth("skipNodesWithLocalStorage", default=True),
        skip_nodes_with_system_pods=top.truth("skipNodesWithSystemPods", default=True),
        ignore_daemonsets_utilization=top.truth("ignoreDaemonsetsUtilization", default=False),
        ignore_mirror_pods_utilization=top.truth("ignoreMirrorPodsUtilization", default=False),
        expendable_pods_priority_cutoff=top.whole("expendablePodsPriorityCutoff", -10, least=-(2**31)),
        consolidation_policy=top.one_of("consolidationPolicy", POLICIES, POLICIES[0]),
        consolidate_after=0.0 if is_never else top.duration("consolidateAfter", 0.0),
        budgets=tuple(map(_budget, top.items("budgets"))) if "budgets" in top else (TENTH,),
    )


def _share(top: Section, field: str) -> float:
    share = top.number(field, 0.5, least=0)
    if share > 1:
        top.refuse(field, f"is {share:g}; it needs a share from 0 to 1, such as 0.5 for half of a node")
    return share


def _expanders(top: Section, default: str) -> tuple[str, ...]:
    """Read one expander or several, separated by commas."""
    names = tuple(name.strip() for name in top.text("expander", default).split(","))
    for place, name in enumerate(names):
        if name not in EXPANDERS:
            top.refuse("expander", f"is {name!r}; use {', '.join(EXPANDERS)}, or several with commas between them")
        if name in names[:place]:
            top.refuse("expander", f"names {name} more than once; leave out all but the first")
    return names


def _budget(given: Section) -> DisruptionBudget:
    given.allow("nodes", "reasons")
    nodes, reasons = given.raw("nodes"), given.texts("reasons")
    text = str(nodes).removesuffix("%")
    is_percentage = text != str(nodes)
    if nodes is None:
        given.refuse("nodes", "needs a number of nodes, or a percentage such as 10%")
    if isinstance(nodes, bool) or not text.isdecimal() or (is_percentage and int(text) > 100):
        given.refuse("nodes", f"is {nodes!r}; it needs a number of nodes, or a percentage such as 10%")
    for reason in reasons:
        if reason not in REASONS:
            given.refuse("reasons", f"has {reason!r}; use {', '.join(REASONS)}")
    given.done()
    return DisruptionBudget(int(text), is_percentage, reasons or REASONS)


def _group(given: Section) -> NodeGroup:
    given.allow("minSize", "maxSize", "name", "template", "bootTime", "pricePerHour", "priority", "resourceSlices")
    least, most = given.whole("minSize", 0), given.whole("maxSize")
    if most < least:
        given.refuse("maxSize", f"is {most}, less than minSize")
    if least > MOST_NODES:
        given.refuse("minSize", f"is {least:,}; {MOST_NODES:,} nodes are the most")
    group = NodeGroup(
        name=_name(given),
        template=_template(given),
        min_size=least,
        max_size=most,
        boot_time=given.duration("bootTime", 60.0),
        price_per_hour=_price(given),
        priority=given.whole("priority", 0),
        slices=_slices(given),
    )
    given.done()
    return group


def _price(given: Section) -> float:
    price = given.number("pricePerHour", 0.0, least=0)
    if price > HIGHEST_PRICE:
        given.refuse("pricePerHour", f"is {price:g}; {HIGHEST_PRICE:,} is the most")
    return price


def _name(given: Section) -> str:
    name = given.text("name")
    problem = next(iter(dns_subdomain_errors(f"{name}-{MOST_NODES}")), "")
    if problem:
        given.refuse("name", f"{name!r} cannot begin the names of nodes, which {problem}")
    return name


def _template(given: Section) -> Node:
    """Read the template as a Node, with the checks that nodes of a cluster get."""
    section = given.inner("template")
    section.allow("apiVersion", "kind", "metadata", "spec", "status")
    section.one_of("apiVersion", ("v1",), "v1")
    section.one_of("kind", ("Node",), "Node")
    described = section.inner("metadata")
    if "name" in described:
        described.refuse("name", "has no effect: nodes are named after their group; leave it out")
    metadata = {**described.fields, "name": given.text("name")}
    parts = {name: section.raw(name) for name in ("spec", "status") if name in section}
    section.done()
    manifest = {"apiVersion": "v1", "kind": "Node", "metadata": metadata, **parts}
    for problem in unknown_fields("Node", manifest):
        given.refuse("template", problem)
    node = _loaded(given, "template", manifest)
    if not isinstance(node, Node) or not node.status.allocatable:
        given.refuse("template", "needs status.allocatable: what a node of the group offers")
    if not node.allocatable.get("pods"):
        given.refuse("template", "needs status.allocatable.pods: a node without it takes no pods")
    for name, value in node.metadata.labels.items():
        for text, errors in ((name, qualified_name_errors(name)), (value, label_value_errors(value))):
            for problem in errors:
                given.document.refuse(
                    (*given.path, "template", "metadata", "labels", name), f"{text!r} cannot be used: it {problem}"
                )
    for place, taint in enumerate(node.spec.taints):
        where = (*given.path, "template", "spec", "taints", place)
        if not taint.key:
            given.document.refuse((*where, "key"), "needs a text")
        for problem in qualified_name_errors(taint.key):
            given.document.refuse((*where, "key"), f"{taint.key!r} cannot be used: it {problem}")
        for problem in label_value_errors(taint.value):
            given.document.refuse((*where, "value"), f"{taint.value!r} cannot be used: it {problem}")
        if taint.effect not in EFFECTS:
            given.document.refuse((*where, "effect"), f"is {taint.effect!r}; use {', '.join(EFFECTS)}")
    return node


def _slices(given: Section) -> tuple[ResourceSlice, ...]:
    """Read the specs of ResourceSlices, with the checks that slices of a cluster get."""
    specs = given.raw("resourceSlices") or []
    if not isinstance(specs, list) or not all(isinstance(each, dict) for each in specs):
        given.refuse("resourceSlices", "needs a list of specs of ResourceSlices: driver and devices")
    slices = []
    for number, spec in enumerate(specs):
        where = (*given.path, "resourceSlices", number)
        if not spec.get("driver"):
            given.document.refuse((*where, "driver"), "needs a text")
        for field in PLACE_OF_SLICE:
            if field in spec:
                given.document.refuse((*where, field), "has no effect: each node gets its own slices; leave it out")
        pool = {"name": "pool", "generation": 1, "resourceSliceCount": 1}
        document = {
            "apiVersion": "resource.k8s.io/v1",
            "kind": "ResourceSlice",
            "metadata": {"name": f"{given.text('name')}-{number}"},
            "spec": {**spec, "nodeName": "node", "pool": pool},
        }
        found = _loaded(given, "resourceSlices", document)
        assert isinstance(found, ResourceSlice)
        slices.append(found)
    return tuple(slices)


def _loaded(given: Section, field: str, manifest: dict[str, Any]) -> Object:
    """Load the manifest made from a field; an error names the field and leaves out the made-up name of the object."""
    try:
        (found,) = load([manifest])
    except InputError as error:
        given.refuse(field, str(error).removeprefix(f"input: {manifest['kind']} {manifest['metadata']['name']}: "))
    return found
