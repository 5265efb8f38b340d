"""Reads the file of node groups: their templates, sizes and prices, and the settings for adding and removing nodes.

The settings have the names of cluster-autoscaler's flags, in camel case, and its defaults; those of consolidation are
Karpenter's.
"""

from __future__ import annotations

from typing import Any

from podium.autoscaling._node_groups import AutoscalingSettings, NodeGroup, NodeGroups
from podium.autoscaling.cluster_autoscaler import ClusterAutoscaler
from podium.autoscaling.karpenter import Karpenter
from podium.autoscaling.strategy import Strategy
from podium.errors import InputError
from podium.manifests import load
from podium.manifests.decode import unknown_fields
from podium.manifests.located import LocatedDocument, Section
from podium.model import Node, Object, ResourceSlice
from podium.model.meta import dns_subdomain_errors, label_value_errors, qualified_name_errors
from podium.model.selectors import NO_EXECUTE, NO_SCHEDULE, PREFER_NO_SCHEDULE

STRATEGIES: dict[str, type[Strategy]] = {each.name: each for each in (ClusterAutoscaler, Karpenter)}
"""The strategies a file may name; the first is the default."""
EXPANDERS = ("least-waste", "price", "priority", "most-pods", "least-nodes", "random")
EFFECTS = (NO_SCHEDULE, PREFER_NO_SCHEDULE, NO_EXECUTE)
PLACE_OF_SLICE = ("nodeName", "nodeSelector", "allNodes", "perDeviceNodeSelection", "pool")
"""The fields of a ResourceSlice that follow from the node it is made for."""
SHORTEST_SCAN = 0.1
"""Seconds."""
HIGHEST_PRICE = 1_000_000_000
MOST_NODES = 100_000
"""The largest minimum size of a group."""


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
    chosen = STRATEGIES[top.one_of("strategy", tuple(STRATEGIES), next(iter(STRATEGIES)))]
    interval = top.duration("scanInterval", 10.0)
    if interval < SHORTEST_SCAN:
        top.refuse("scanInterval", f"is {interval:g} s; it needs {SHORTEST_SCAN:g} or more")
    for other in STRATEGIES.values():
        for field in other.fields:
            if other is not chosen and top.raw(field) is not None:
                top.refuse(
                    field, f"is for strategy {other.name} only, and has no effect with {chosen.name}; leave it out"
                )
    return AutoscalingSettings(
        strategy=chosen.read(top, interval),
        expanders=_expanders(top, chosen.default_expander),
        seed=top.whole("seed", 0),
        scan_interval=interval,
        new_pod_scale_up_delay=top.duration("newPodScaleUpDelay", 0.0),
        scale_down_enabled=top.truth("scaleDownEnabled", default=True),
    )


def _expanders(top: Section, default: str) -> tuple[str, ...]:
    """Read one expander or several, separated by commas."""
    names = tuple(name.strip() for name in top.text("expander", default).split(","))
    for place, name in enumerate(names):
        if name not in EXPANDERS:
            top.refuse("expander", f"is {name!r}; use {', '.join(EXPANDERS)}, or several with commas between them")
        if name in names[:place]:
            top.refuse("expander", f"names {name} more than once; leave out all but the first")
    return names


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
