"""Storage plugins keep what they know of a cluster: after any events they say what they would say from scratch."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from builders import HOSTNAME, ZONE, Fields, make_node
from csi_objects import DRIVER, make_attachment, make_capacity, make_csi_node, make_driver
from podium.cluster import Cluster
from podium.cluster.columns import ChangeLog
from podium.cluster.store import Store
from podium.engine import Scheduler
from podium.model import KINDS, Node, Object, Pod
from storage_objects import ephemeral, inline, make_claim, make_class, make_volume, on_label, pod_with, uses

NODES = [
    make_node(name, labels={HOSTNAME: name, ZONE: zone})
    for name, zone in (("a", "x"), ("b", "x"), ("c", "y"), ("d", "y"))
]
EBS_DISK: Fields = {"awsElasticBlockStore": {"volumeID": "vol-1"}}
GCE_DISK = {"gcePersistentDisk": {"pdName": "disk", "readOnly": True}}

POOL: list[Object] = [
    *NODES,
    make_node("b", labels={HOSTNAME: "b", ZONE: "y"}),
    *(make_csi_node(node.name, {DRIVER: count}) for node in NODES for count in (0, 1, 2)),
    make_csi_node("a", {"ebs.csi.aws.com": 1, DRIVER: None}, ["kubernetes.io/aws-ebs"]),
    make_class("waits"),
    make_class("waits", allowedTopologies=[{"matchLabelExpressions": [{"key": ZONE, "values": ["y"]}]}]),
    make_class("static", "kubernetes.io/no-provisioner"),
    *(make_claim(name, storage_class=of) for name in ("one", "two") for of in ("waits", "static")),
    *(make_claim(name, volume=f"v{name}", phase="Bound") for name in ("one", "two")),
    make_claim("one", modes=["ReadWriteOncePod"], volume="vone", phase="Bound"),
    make_claim("asked-4-scratch", storage_class="waits", owner=pod_with(ephemeral("scratch"), "asked-4")),
    *(make_volume(f"v{name}") for name in ("one", "two")),
    make_volume("vone", nodes=on_label(ZONE, "x"), **EBS_DISK),
    make_volume("vtwo", labels={ZONE: "x__y"}),
    *(make_volume(f"s{n}", f"{n}Gi", storage_class="static", nodes=on_label(HOSTNAME, "abcd"[n])) for n in range(1, 4)),
    make_volume("s9", "9Gi", storage_class="static"),
    make_driver(reports_capacity=True),
    make_capacity("pool", "waits", {"matchLabels": {ZONE: "x"}}, capacity="5Gi"),
    make_capacity("pool", "waits", {}, capacity="1Mi"),
    make_attachment("va", "a", "vone"),
    make_attachment("va", "b", "vtwo"),
    make_attachment("vb", "c", "vtwo"),
]
START = list({(type(item), item.key): item for item in reversed(POOL)}.values())
"""One version of every object."""
QUESTIONS = [
    pod_with(volumes, f"asked-{place}")
    for place, volumes in enumerate(
        (uses("one"), uses("two"), uses("one", "two"), inline(EBS_DISK, GCE_DISK), ephemeral("scratch"), [])
    )
]

positions, names = st.integers(0, len(POOL) - 1), st.sampled_from([f"p{n}" for n in range(5)])
events = st.one_of(
    st.tuples(st.just("put"), positions),
    st.tuples(st.just("put"), positions),
    st.tuples(st.just("remove"), positions),
    st.tuples(st.just("place"), st.tuples(names, st.integers(0, 3))),
    st.tuples(st.just("take"), names),
)


def rebuilt(cluster: Cluster) -> Cluster:
    """A cluster of the same objects that has seen no event."""
    nodes = [cluster.node(name) for name in cluster.rows]
    objects = [item for kind in KINDS.values() for item in cluster.store.of(kind)]
    pods = [replace(pod, spec=replace(pod.spec, node_name=node)) for pod, node in cluster.placed()]
    return Cluster.from_objects([*nodes, *objects, *pods, *cluster.stranded])


def apply(event: tuple[str, object], scheduler: Scheduler) -> None:
    cluster = scheduler.cluster
    match event:
        case ("put", int(position)):
            cluster.update(POOL[position])
        case ("remove", int(position)):
            if not isinstance(POOL[position], Node) or cluster.node_count > 1:
                cluster.remove(POOL[position])
        case ("place", (str(name), int(question))):
            pod: Pod = pod_with([], name)
            cluster.remove(pod)
            scheduler.place(replace(pod, spec=QUESTIONS[question].spec))
        case ("take", str(name)):
            cluster.remove(pod_with([], name))


def check(history: list[tuple[str, object]]) -> None:
    scheduler = Scheduler(Cluster.from_objects(START), tie_break="first")
    for event in history:
        apply(event, scheduler)
        fresh = Scheduler(rebuilt(scheduler.cluster), tie_break="first")
        for pod in QUESTIONS:
            assert scheduler.decide(pod) == fresh.decide(pod)


@settings(max_examples=40)
@given(st.lists(events, min_size=1, max_size=12))
def test_decisions_after_events_equal_decisions_from_scratch(history: list[tuple[str, object]]) -> None:
    check(history)


@settings(max_examples=8)
@given(st.lists(events, min_size=1, max_size=12))
def test_the_same_when_changes_are_soon_forgotten(history: list[tuple[str, object]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ChangeLog, "LIMIT", 2)
        patch.setattr(Store, "MOST_RECENT", 2)
        check(history)
