"""Queueing hints: for each plugin, which events may help a pod that it rejected."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import pytest
from msgspec.structs import replace

from builders import affinity, expression, make_node, make_object, make_pod, node_affinity, pod_term, spread
from device_objects import make_class
from loop.driving import Driver, with_plugins
from podium.cluster import Cluster, NodeInfo
from podium.config.plugin_args import LIST_DEFAULTING, NodeAffinityArgs, PodTopologySpreadArgs
from podium.framework import ClusterEvent, CycleState, FilterPlugin, Status, WaitingPod
from podium.framework.events import Action, EventHint
from podium.loop.events import PluginHints, node_changes, object_change, pod_changes
from podium.model.devices import AllocationResult, ResourceClaim, ResourceClaimStatus
from podium.model.meta import NodeSelector, NodeSelectorTerm, Object, ObjectMeta, SelectorRequirement
from podium.model.objects import HOSTNAME, ZONE, Node
from podium.model.pod import NodeAffinity, Pod, PodResourceClaimStatus, TopologySpreadConstraint
from podium.plugins import IN_TREE
from podium.plugins.node_ports import NodePorts
from podium.rules import NEWEST_RULES, Rules, rules_of

WEB, DB = {"app": "web"}, {"app": "db"}
NODE = make_node("n", cpu="4", labels={ZONE: "a"})
CORDONED = make_node("n", cpu="4", labels={ZONE: "a"}, unschedulable=True)
TAINTED = make_node("n", cpu="4", labels={ZONE: "a"}, taints=["team=a:NoSchedule"])


class Case(NamedTuple):
    """A pod that a plugin rejected, something that happens, and whether the pod is worth another try."""

    name: str
    plugin: str
    pod: Pod
    old: Object | None
    new: Object | None
    wakes: bool
    args: object = None


def change(pod: Pod, **changes: Any) -> Pod:
    """The pod with another spec."""
    return replace(pod, spec=replace(pod.spec, **changes))


PLAIN = make_pod("waiting", requests={"cpu": "2"})
PORT = make_pod("waiting", ports=[{"containerPort": 80, "hostPort": 8080}])
NEAR_WEB = make_pod("waiting", affinity=affinity(required=[pod_term(ZONE, WEB)]))
FAR_FROM_WEB = make_pod("waiting", labels=DB, affinity=affinity(required=[pod_term(ZONE, WEB)], anti=True))
SPREAD = make_pod("waiting", labels=WEB, topology_spread_constraints=[spread(ZONE, WEB)])
SPREAD_HONORS = make_pod(
    "waiting", labels=WEB, topology_spread_constraints=[spread(ZONE, WEB, node_taints_policy="Honor")]
)
ON_SSD = make_pod("waiting", affinity=node_affinity(required=[{"matchExpressions": [expression("disk", "In", "ssd")]}]))
SSD, HDD = (make_node("n", labels={"disk": disk}) for disk in ("ssd", "hdd"))
TOLERANT = make_pod("waiting", tolerations=[{"key": "team", "operator": "Exists"}])
GATED = make_pod("waiting", scheduling_gates=[{"name": "g"}])
HOLDS_PORT = make_pod("other", node="n", ports=[{"containerPort": 1, "hostPort": 8080}])
WEB_ON_N, DB_ON_N = make_pod("other", labels=WEB, node="n"), make_pod("other", labels=DB, node="n")
HATES_DB = make_pod("other", labels=WEB, node="n", affinity=affinity(required=[pod_term(ZONE, DB)], anti=True))
ADDED = NodeAffinityArgs(
    added_affinity=NodeAffinity(
        required=NodeSelector(
            node_selector_terms=[
                NodeSelectorTerm(match_expressions=[SelectorRequirement(key="pool", operator="In", values=["x"])])
            ]
        )
    )
)
SPREAD_BY_DEFAULT = PodTopologySpreadArgs(
    defaulting_type=LIST_DEFAULTING,
    default_constraints=(TopologySpreadConstraint(max_skew=1, topology_key=ZONE, when_unsatisfiable="DoNotSchedule"),),
)

CLAIMING = make_pod("waiting", resource_claims=[{"name": "gpu", "resourceClaimTemplateName": "gpu"}])

CASES = [
    Case("a pod on a node is gone", "NodeResourcesFit", PLAIN, WEB_ON_N, None, True),
    Case("a waiting pod is gone", "NodeResourcesFit", PLAIN, make_pod("other"), None, False),
    Case("a pod came", "NodeResourcesFit", PLAIN, None, WEB_ON_N, False),
    Case(
        "another pod asks for less of what this one wants",
        "NodeResourcesFit",
        PLAIN,
        make_pod("other", node="n", requests={"cpu": "2", "memory": "1Gi"}),
        make_pod("other", node="n", requests={"cpu": "1", "memory": "1Gi"}),
        True,
    ),
    Case(
        "another pod asks for less of something else",
        "NodeResourcesFit",
        PLAIN,
        make_pod("other", node="n", requests={"memory": "2Gi"}),
        make_pod("other", node="n", requests={"memory": "1Gi"}),
        False,
    ),
    Case("it asks for less itself", "NodeResourcesFit", PLAIN, PLAIN, make_pod("waiting", requests={"cpu": "1"}), True),
    Case("a node came that is large enough", "NodeResourcesFit", PLAIN, None, make_node("n", cpu="2"), True),
    Case("a node came that is too small", "NodeResourcesFit", PLAIN, None, make_node("n", cpu="1"), False),
    Case("a node came that allows no pods", "NodeResourcesFit", PLAIN, None, make_node("n", pods=0), False),
    Case("a node grew", "NodeResourcesFit", PLAIN, make_node("n", cpu="1"), NODE, True),
    Case("a node grew in memory only", "NodeResourcesFit", PLAIN, NODE, make_node("n", memory="9Gi"), False),
    Case("a node's labels changed", "NodeResourcesFit", PLAIN, NODE, make_node("n"), False),
    Case("a node is gone", "NodeResourcesFit", PLAIN, NODE, None, False),
    Case("a node with the label came", "NodeAffinity", ON_SSD, None, SSD, True),
    Case("a node without the label came", "NodeAffinity", ON_SSD, None, HDD, False),
    Case("a node got the label", "NodeAffinity", ON_SSD, HDD, SSD, True),
    Case("a node lost the label", "NodeAffinity", ON_SSD, SSD, HDD, False),
    Case(
        "a node had the label before",
        "NodeAffinity",
        ON_SSD,
        SSD,
        make_node("n", labels={"disk": "ssd", "x": "y"}),
        False,
    ),
    Case("the profile wants more", "NodeAffinity", ON_SSD, None, SSD, False, ADDED),
    Case("and gets it", "NodeAffinity", ON_SSD, None, make_node("n", labels={"disk": "ssd", "pool": "x"}), True, ADDED),
    Case("a pod is gone", "NodeAffinity", ON_SSD, WEB_ON_N, None, False),
    Case("a node is uncordoned", "NodeUnschedulable", PLAIN, CORDONED, NODE, True),
    Case("a node came", "NodeUnschedulable", PLAIN, None, NODE, True),
    Case("a cordoned node came", "NodeUnschedulable", PLAIN, None, CORDONED, False),
    Case("taints changed", "NodeUnschedulable", PLAIN, NODE, TAINTED, False),
    Case(
        "it tolerates cordons now",
        "NodeUnschedulable",
        PLAIN,
        PLAIN,
        make_pod("waiting", requests={"cpu": "2"}, tolerations=[{"operator": "Exists"}]),
        True,
    ),
    Case("it tolerates something else", "NodeUnschedulable", PLAIN, make_pod("waiting"), TOLERANT, False),
    Case("a taint is gone", "TaintToleration", PLAIN, TAINTED, NODE, True),
    Case("a tainted node came", "TaintToleration", PLAIN, None, TAINTED, False),
    Case("a tolerated node came", "TaintToleration", TOLERANT, None, TAINTED, True),
    Case("a node was tolerated before", "TaintToleration", TOLERANT, NODE, TAINTED, False),
    Case("it tolerates more", "TaintToleration", PLAIN, make_pod("waiting"), TOLERANT, True),
    Case(
        "another pod tolerates more",
        "TaintToleration",
        PLAIN,
        make_pod("x"),
        make_pod("x", tolerations=[{"operator": "Exists"}]),
        False,
    ),
    Case("a node came", "NodeName", PLAIN, None, NODE, True),
    Case("taints changed", "NodeName", PLAIN, NODE, TAINTED, False),
    Case("labels changed", "NodeName", PLAIN, NODE, make_node("n"), False),
    Case(
        "a port is free",
        "NodePorts",
        PORT,
        HOLDS_PORT,
        None,
        True,
    ),
    Case(
        "another port is free",
        "NodePorts",
        PORT,
        make_pod("other", node="n", ports=[{"containerPort": 1, "hostPort": 81}]),
        None,
        False,
    ),
    Case(
        "the same port of UDP is free",
        "NodePorts",
        PORT,
        make_pod("other", node="n", ports=[{"containerPort": 1, "hostPort": 8080, "protocol": "UDP"}]),
        None,
        False,
    ),
    Case("a pod without ports is gone", "NodePorts", PORT, WEB_ON_N, None, False),
    Case("a pod that waits for the port is gone", "NodePorts", PORT, change(HOLDS_PORT, node_name=""), None, False),
    Case("a node came", "NodePorts", PORT, None, NODE, True),
    Case("a pod came that it wants to be with", "InterPodAffinity", NEAR_WEB, None, WEB_ON_N, True),
    Case("a pod came that it does not care for", "InterPodAffinity", NEAR_WEB, None, DB_ON_N, False),
    Case(
        "a pod in another namespace came",
        "InterPodAffinity",
        NEAR_WEB,
        None,
        make_pod("o", namespace="x", labels=WEB, node="n"),
        False,
    ),
    Case(
        "a pod it wants to be with waits itself",
        "InterPodAffinity",
        NEAR_WEB,
        None,
        make_pod("other", labels=WEB),
        False,
    ),
    Case("a pod became one it wants to be with", "InterPodAffinity", NEAR_WEB, DB_ON_N, WEB_ON_N, True),
    Case("a pod it avoids is gone", "InterPodAffinity", FAR_FROM_WEB, WEB_ON_N, None, True),
    Case("a pod that avoids it is gone", "InterPodAffinity", make_pod("waiting", labels=DB), HATES_DB, None, True),
    Case("a pod it does not mind is gone", "InterPodAffinity", FAR_FROM_WEB, DB_ON_N, None, False),
    Case("a pod became one it does not mind", "InterPodAffinity", FAR_FROM_WEB, WEB_ON_N, DB_ON_N, True),
    Case(
        "its own labels changed", "InterPodAffinity", PLAIN, make_pod("waiting"), make_pod("waiting", labels=DB), True
    ),
    Case("a node with its key came", "InterPodAffinity", NEAR_WEB, None, NODE, True),
    Case("a node without its key came", "InterPodAffinity", NEAR_WEB, None, make_node("n"), False),
    Case("any node came, and it avoids pods", "InterPodAffinity", FAR_FROM_WEB, None, make_node("n"), True),
    Case("a node moved", "InterPodAffinity", NEAR_WEB, NODE, make_node("n", cpu="4", labels={ZONE: "b"}), True),
    Case("a node left every domain", "InterPodAffinity", NEAR_WEB, NODE, make_node("n", cpu="4"), False),
    Case("a node left the domain it avoids", "InterPodAffinity", FAR_FROM_WEB, NODE, make_node("n", cpu="4"), True),
    Case("a pod it counts came", "PodTopologySpread", SPREAD, None, WEB_ON_N, True),
    Case("a pod it counts is gone", "PodTopologySpread", SPREAD, WEB_ON_N, None, True),
    Case("a pod it does not count came", "PodTopologySpread", SPREAD, None, DB_ON_N, False),
    Case(
        "a pod of another namespace came",
        "PodTopologySpread",
        SPREAD,
        None,
        make_pod("o", namespace="x", labels=WEB, node="n"),
        False,
    ),
    Case("a pod it counts came and waits", "PodTopologySpread", SPREAD, None, make_pod("other", labels=WEB), False),
    Case("a pod is counted now", "PodTopologySpread", SPREAD, DB_ON_N, WEB_ON_N, True),
    Case(
        "it tolerates more and honours taints",
        "PodTopologySpread",
        SPREAD_HONORS,
        SPREAD_HONORS,
        change(SPREAD_HONORS, tolerations=TOLERANT.spec.tolerations),
        True,
    ),
    Case(
        "it tolerates more and ignores taints",
        "PodTopologySpread",
        SPREAD,
        SPREAD,
        change(SPREAD, tolerations=TOLERANT.spec.tolerations),
        False,
    ),
    Case("a node of its domains came", "PodTopologySpread", SPREAD, None, NODE, True),
    Case("a node outside came", "PodTopologySpread", SPREAD, None, make_node("n"), False),
    Case("a node of its domains is gone", "PodTopologySpread", SPREAD, NODE, None, True),
    Case("a node moved", "PodTopologySpread", SPREAD, NODE, make_node("n", cpu="4", labels={ZONE: "b"}), True),
    Case("a node's taints changed", "PodTopologySpread", SPREAD, NODE, TAINTED, True),
    Case(
        "by the profile's default constraints",
        "PodTopologySpread",
        make_pod("waiting", labels=WEB),
        None,
        WEB_ON_N,
        True,
        SPREAD_BY_DEFAULT,
    ),
    Case("without any constraint", "PodTopologySpread", make_pod("waiting", labels=WEB), None, WEB_ON_N, False),
    Case("its gates are gone", "SchedulingGates", GATED, GATED, change(GATED, scheduling_gates=[]), True),
    Case(
        "another pod's gates are gone",
        "SchedulingGates",
        GATED,
        make_pod("x", scheduling_gates=[{"name": "g"}]),
        make_pod("x"),
        False,
    ),
    Case("a node came", "NodeDeclaredFeatures", PLAIN, None, NODE, True),
    Case(
        "a node declares more",
        "NodeDeclaredFeatures",
        PLAIN,
        NODE,
        replace(NODE, status=replace(NODE.status, declared_features=["F"])),
        True,
    ),
    Case("a node's labels changed", "NodeDeclaredFeatures", PLAIN, NODE, make_node("n"), False),
    Case(
        "it needs other features",
        "NodeDeclaredFeatures",
        PLAIN,
        PLAIN,
        change(PLAIN, host_network=True, host_users=False),
        True,
    ),
    Case("it changed otherwise", "NodeDeclaredFeatures", PLAIN, PLAIN, change(PLAIN, priority=3), False),
    Case("a pod is gone, which others look at", "DefaultPreemption", PLAIN, WEB_ON_N, None, False),
    Case("a node came", "DynamicResources", PLAIN, None, NODE, True),
    Case(
        "its claim turns out not to be needed",
        "DynamicResources",
        CLAIMING,
        CLAIMING,
        replace(
            CLAIMING, status=replace(CLAIMING.status, resource_claim_statuses=[PodResourceClaimStatus(name="gpu")])
        ),
        True,
    ),
    Case("it waits for its claim still", "DynamicResources", CLAIMING, CLAIMING, change(CLAIMING, priority=3), False),
]


def events_of(old: Object | None, new: Object | None, release: str = "v1.37") -> list[ClusterEvent]:
    if isinstance(old, Pod) and isinstance(new, Pod):
        return pod_changes(old, new, NEWEST_RULES)
    if isinstance(old, Node) and isinstance(new, Node):
        return node_changes(old, new, rules_of(release))
    return [object_change(old, new)]


def gates_set(release: str) -> Rules:
    """The rules of a release; `-on` and `-off` after its name switch SchedulerQueueingHints."""
    name, _, switch = release.partition("-")
    return rules_of(name, {"SchedulerQueueingHints": switch == "on"} if switch else {})


def wakes(
    plugin: str, pod: Pod, old: Object | None, new: Object | None, args: object = None, *, release: str = "v1.37"
) -> bool:
    """Whether a change may help a pod that a plugin rejected, in a cluster where it has happened."""
    service = make_object("Service", "web", namespace="default", spec={"selector": WEB})
    cluster = Cluster.from_objects([make_node("n", labels={HOSTNAME: "n"}), service])
    made = IN_TREE[plugin].of_release(gates_set(release), args)
    hints = PluginHints(made)
    # A pod that changes itself is looked at as it is now.
    pod = new if isinstance(new, Pod) and new.key == pod.key else pod
    waiting = WaitingPod(pod, cluster.infos.of(pod), cluster)
    events = events_of(old, new, release.partition("-")[0])
    return any(hints.is_interested(event) and hints.may_help(waiting, event) for event in events)


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case.plugin}: {case.name}")
def test_an_event_is_worth_another_try(case: Case) -> None:
    assert wakes(case.plugin, case.pod, case.old, case.new, case.args) == case.wakes


GPU_POD = make_pod("waiting", requests={"example.com/gpu": 1})
NOMINATED = make_pod("other", labels=WEB)
NOMINATED = replace(NOMINATED, status=replace(NOMINATED.status, nominated_node_name="n"))
ANNOTATED = replace(NODE, metadata=replace(NODE.metadata, annotations={"a": "b"}))
FAR_FROM_PLAIN = affinity(required=[pod_term(ZONE, {})], anti=True)
FAR_FROM_TWO = make_pod("waiting", affinity=affinity(required=[pod_term(ZONE, WEB), pod_term(ZONE, DB)], anti=True))
CSI_NODE, LARGER = (
    make_object("CSINode", "n", spec={"drivers": [{"name": "d", "nodeID": "n", "allocatable": {"count": count}}]})
    for count in (1, 2)
)
RELABELED = replace(make_pod("other", node="n"), metadata=replace(make_pod("other").metadata, annotations={"a": "b"}))
ALLOCATED = ResourceClaim(
    metadata=ObjectMeta(name="c", namespace="default"), status=ResourceClaimStatus(allocation=AllocationResult())
)


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "releases"),
    [
        pytest.param("NodeName", PLAIN, NODE, TAINTED, "v1.29 v1.31 v1.32 v1.36", id="taints for NodeName"),
        pytest.param("NodeName", PLAIN, NODE, make_node("n"), "v1.29 v1.31", id="labels for NodeName"),
        pytest.param("NodeUnschedulable", PLAIN, NODE, make_node("n"), "v1.31", id="labels for NodeUnschedulable"),
        pytest.param(
            "InterPodAffinity", FAR_FROM_WEB, NODE, make_node("n", labels={ZONE: "a", "x": "y"}), "v1.29 v1.31 v1.32",
            id="other labels for InterPodAffinity",
        ),
        pytest.param(
            "InterPodAffinity", PLAIN, make_pod("other", node="n", affinity=FAR_FROM_PLAIN), None,
            "v1.29 v1.31 v1.36 v1.37", id="a pod goes that kept others off",
        ),
        pytest.param(
            "InterPodAffinity", FAR_FROM_TWO, make_pod("other", node="n", labels=WEB), None,
            "v1.29 v1.31 v1.37", id="a pod goes that one of two terms keeps off",
        ),
        pytest.param(
            "InterPodAffinity", NEAR_WEB, NEAR_WEB, make_pod("waiting", labels=DB, affinity=NEAR_WEB.spec.affinity),
            "v1.29 v1.31 v1.36 v1.37", id="labels of the waiting pod",
        ),
        pytest.param(
            "PodTopologySpread", SPREAD, NOMINATED, None,
            "v1.29 v1.31 v1.36 v1.37", id="a nominated pod goes",
        ),
        pytest.param(
            "NodeVolumeLimits", PLAIN, make_object("VolumeAttachment", "a", spec={"attacher": "d", "nodeName": "n"}),
            None, "v1.32", id="a volume is detached",
        ),
        pytest.param("NodeResourcesFit", PLAIN, NODE, make_node("n"), "v1.29 v1.31", id="labels for NodeResourcesFit"),
        pytest.param("NodePorts", PORT, NODE, make_node("n"), "v1.29 v1.31", id="labels for NodePorts"),
        pytest.param("NodeAffinity", ON_SSD, HDD, SSD, "v1.29 v1.31 v1.32 v1.36 v1.37", id="labels for NodeAffinity"),
        pytest.param(
            "TaintToleration", make_pod("waiting"), make_pod("waiting"), TOLERANT, "v1.32 v1.36 v1.37", id="tolerations"
        ),
        pytest.param(
            "InterPodAffinity", NEAR_WEB, make_pod("other", node="n"), RELABELED, "v1.29", id="annotations of a pod"
        ),
        pytest.param("NodeVolumeLimits", PLAIN, CSI_NODE, LARGER, "v1.36 v1.37", id="limits of a CSINode"),
        pytest.param(
            "NodeResourcesFit", GPU_POD, None, make_class("x", extendedResourceName="example.com/gpu"), "v1.36 v1.37",
            id="a class for an extended resource",
        ),
        pytest.param("DynamicResources", PLAIN, ALLOCATED, None, "v1.37", id="a claim is deleted"),
    ],
)  # fmt: skip
def test_what_each_release_waits_for(
    plugin: str, pod: Pod, old: Object | None, new: Object | None, releases: str
) -> None:
    found = [
        each for each in ("v1.29", "v1.31", "v1.32", "v1.36", "v1.37") if wakes(plugin, pod, old, new, release=each)
    ]
    assert found == releases.split()


REGISTERED = """
    NodeUnschedulable  | v1.29           | Node: ADD NODE_TAINT
    NodeUnschedulable  | v1.30 v1.31     | Node: ADD UPDATE
    NodeUnschedulable  | v1.32 v1.37     | Node: ADD NODE_TAINT; Pod: POD_TOLERATION
    NodeUnschedulable  | v1.32-off       | Node: ADD NODE_LABEL NODE_TAINT
    NodeName           | v1.29 v1.31     | Node: ADD UPDATE
    NodeName           | v1.32 v1.37     | Node: ADD
    NodeName           | v1.32-off       | Node: ADD NODE_LABEL NODE_TAINT
    NodePorts          | v1.29 v1.31     | Node: ADD UPDATE; Pod: DELETE
    NodePorts          | v1.32 v1.37     | Node: ADD; Pod: DELETE
    NodePorts          | v1.33-off       | Node: ADD NODE_LABEL NODE_TAINT; Pod: DELETE
    NodeAffinity       | v1.29 v1.31     | Node: ADD UPDATE
    NodeAffinity       | v1.32 v1.37     | Node: ADD NODE_LABEL
    NodeAffinity       | v1.32-off       | Node: ADD NODE_LABEL NODE_TAINT
    TaintToleration    | v1.29 v1.31     | Node: ADD UPDATE
    TaintToleration    | v1.32 v1.37     | Node: ADD NODE_TAINT; Pod: POD_TOLERATION
    TaintToleration    | v1.32-off       | Node: ADD NODE_LABEL NODE_TAINT
    NodeResourcesFit   | v1.29 v1.31     | Node: ADD UPDATE; Pod: DELETE
    NodeResourcesFit   | v1.32           | Node: ADD NODE_ALLOCATABLE; Pod: DELETE
    NodeResourcesFit   | v1.32-off       | Node: ADD NODE_ALLOCATABLE NODE_LABEL NODE_TAINT; Pod: DELETE
    NodeResourcesFit   | v1.33 v1.35     | Node: ADD NODE_ALLOCATABLE; Pod: DELETE POD_SCALE_DOWN
    NodeResourcesFit   | v1.36 v1.37     | DeviceClass: ADD UPDATE; Node: ADD NODE_ALLOCATABLE; Pod: DELETE POD_SCALE_DOWN
    InterPodAffinity   | v1.29           | Node: ADD NODE_LABEL; Pod: ADD DELETE UPDATE
    InterPodAffinity   | v1.30           | Node: ADD NODE_LABEL NODE_TAINT; Pod: ADD DELETE UPDATE
    InterPodAffinity   | v1.31           | Node: ADD NODE_LABEL NODE_TAINT; Pod: ADD DELETE POD_LABEL
    InterPodAffinity   | v1.32 v1.37     | Node: ADD NODE_LABEL; Pod: ADD DELETE POD_LABEL
    PodTopologySpread  | v1.29           | Node: ADD DELETE NODE_LABEL; Pod: ADD DELETE UPDATE
    PodTopologySpread  | v1.30           | Node: ADD DELETE NODE_LABEL NODE_TAINT; Pod: ADD DELETE UPDATE
    PodTopologySpread  | v1.31 v1.32-off | Node: ADD DELETE NODE_LABEL NODE_TAINT; Pod: ADD DELETE POD_LABEL
    PodTopologySpread  | v1.32 v1.37     | Node: ADD DELETE NODE_LABEL NODE_TAINT; Pod: ADD DELETE POD_LABEL POD_TOLERATION
    VolumeRestrictions | v1.29 v1.30     | Node: ADD; PersistentVolumeClaim: ADD UPDATE; Pod: DELETE
    VolumeRestrictions | v1.31 v1.37     | Node: ADD; PersistentVolumeClaim: ADD; Pod: DELETE
    VolumeRestrictions | v1.32-off       | Node: ADD NODE_LABEL NODE_TAINT; PersistentVolumeClaim: ADD; Pod: DELETE
    VolumeZone         | v1.30           | Node: ADD NODE_LABEL; PersistentVolume: ADD UPDATE; PersistentVolumeClaim: ADD; StorageClass: ADD
    VolumeZone         | v1.31 v1.37     | Node: ADD NODE_LABEL; PersistentVolume: ADD UPDATE; PersistentVolumeClaim: ADD UPDATE; StorageClass: ADD
    NodeVolumeLimits   | v1.29           | CSINode: ADD; Pod: DELETE
    NodeVolumeLimits   | v1.30 v1.31     | CSINode: ADD; PersistentVolumeClaim: ADD; Pod: DELETE
    NodeVolumeLimits   | v1.32           | CSINode: ADD; PersistentVolumeClaim: ADD; Pod: DELETE; VolumeAttachment: DELETE
    NodeVolumeLimits   | v1.33 v1.37     | CSINode: ADD; CSINode: UPDATE; PersistentVolumeClaim: ADD; Pod: DELETE; VolumeAttachment: DELETE
    EBSLimits          | v1.29           | Node: ADD; Pod: DELETE
    EBSLimits          | v1.30           | Node: ADD; PersistentVolumeClaim: ADD; Pod: DELETE
    SchedulingGates    | v1.29 v1.31     |
    SchedulingGates    | v1.32 v1.37     | Pod: POD_SCHEDULING_GATES_ELIMINATED
"""  # noqa: E501
"""What plugins register, release by release; `-off` is without SchedulerQueueingHints.

Changed taints that kube-scheduler adds where new nodes count are not here; see below.
"""


def _shown(actions: Action) -> str:
    names = [action.name or "" for action in actions] if Action.UPDATE not in actions else []
    rest = [name for name in ("ADD", "DELETE", "UPDATE") if Action[name] in actions]
    return " ".join([*rest, *sorted(name.removeprefix("UPDATE_") for name in names if name.startswith("UPDATE_"))])


@pytest.mark.parametrize(
    ("plugin", "release", "events"),
    [
        pytest.param(plugin, release, events, id=f"{plugin} {release}")
        for plugin, releases, events in (map(str.strip, line.split("|")) for line in REGISTERED.strip().splitlines())
        for release in releases.split()
    ],
)
def test_events_that_are_registered(plugin: str, release: str, events: str) -> None:
    made = IN_TREE[plugin].of_release(gates_set(release))

    registered = made.events_to_register() or ()

    assert "; ".join(sorted(f"{each.resource}: {_shown(each.actions)}" for each in registered)) == events


CLASS, TOPOLOGY = (
    make_object("StorageClass", "c", provisioner="p", allowedTopologies=topologies)
    for topologies in ([], [{"matchLabelExpressions": [{"key": ZONE, "values": ["a"]}]}])
)
DRIVER = make_object("CSIDriver", "d", spec={"storageCapacity": True})
OTHER_CLAIM = make_object("PersistentVolumeClaim", "other", namespace="default", spec={})
MARKED = make_node("n", cpu="4", labels={ZONE: "a", "x": "y"})


@pytest.mark.parametrize(
    ("plugin", "pod", "old", "new", "releases"),
    [
        pytest.param("NodePorts", PORT, WEB_ON_N, None, "", id="NodePorts: a pod goes"),
        pytest.param("NodePorts", PORT, NODE, MARKED, "v1.29 v1.30 v1.31", id="NodePorts: a node"),
        pytest.param("NodeName", PLAIN, NODE, MARKED, "v1.29 v1.30 v1.31", id="NodeName: a node"),
        pytest.param("NodeAffinity", ON_SSD, None, HDD, "v1.29", id="NodeAffinity: a node comes"),
        pytest.param(
            "NodeAffinity", ON_SSD, SSD, make_node("n", labels={"disk": "ssd", "x": "y"}), "v1.29 v1.30 v1.31",
            id="NodeAffinity: a node matches as before",
        ),
        pytest.param("NodeResourcesFit", PLAIN, NODE, MARKED, "v1.29 v1.30 v1.31", id="NodeResourcesFit: as large"),
        pytest.param("NodeResourcesFit", PLAIN, None, make_node("n", cpu="1"), "v1.29", id="NodeResourcesFit: small"),
        pytest.param("NodeResourcesFit", PLAIN, make_pod("x"), None, "v1.29", id="NodeResourcesFit: a waiting pod"),
        pytest.param("NodeUnschedulable", PLAIN, None, CORDONED, "v1.29", id="NodeUnschedulable: a node comes"),
        pytest.param("NodeUnschedulable", PLAIN, NODE, TAINTED, "v1.29 v1.30 v1.31", id="NodeUnschedulable: a taint"),
        pytest.param("PodTopologySpread", SPREAD, None, DB_ON_N, "v1.29", id="PodTopologySpread: a pod comes"),
        pytest.param(
            "PodTopologySpread", SPREAD, NODE, MARKED, "v1.29 v1.30 v1.31", id="PodTopologySpread: another label"
        ),
        pytest.param(
            "PodTopologySpread", SPREAD, NODE, make_node("n", cpu="4"), "v1.29 v1.32", id="PodTopologySpread: it leaves"
        ),
        pytest.param(
            "PodTopologySpread", SPREAD, change(make_pod("waiting"), topology_spread_constraints=[spread(ZONE, WEB)]),
            SPREAD, "v1.29 v1.32", id="PodTopologySpread: its own labels",
        ),
        pytest.param("InterPodAffinity", NEAR_WEB, None, DB_ON_N, "v1.29 v1.30", id="InterPodAffinity: a pod comes"),
        pytest.param(
            "InterPodAffinity", NEAR_WEB, make_node("n"), make_node("n", taints=["t:NoSchedule"]), "v1.30 v1.32",
            id="InterPodAffinity: a taint",
        ),
        pytest.param("TaintToleration", PLAIN, None, TAINTED, "v1.29 v1.30", id="TaintToleration: a node comes"),
        pytest.param("TaintToleration", PLAIN, NODE, MARKED, "v1.29 v1.30", id="TaintToleration: a node as before"),
        pytest.param("VolumeBinding", PLAIN, CLASS, TOPOLOGY, "v1.29 v1.30 v1.31 v1.32", id="VolumeBinding: topology"),
        pytest.param("VolumeBinding", PLAIN, CLASS, CLASS, "v1.29 v1.30", id="VolumeBinding: a class as before"),
        pytest.param("VolumeBinding", PLAIN, DRIVER, DRIVER, "v1.29 v1.30 v1.31", id="VolumeBinding: a driver"),
        pytest.param("VolumeRestrictions", PLAIN, WEB_ON_N, None, "v1.29 v1.30", id="VolumeRestrictions: a pod goes"),
        pytest.param("VolumeZone", PLAIN, None, OTHER_CLAIM, "v1.29 v1.30", id="VolumeZone: a claim"),
        pytest.param("NodeVolumeLimits", PLAIN, WEB_ON_N, None, "v1.29 v1.30", id="NodeVolumeLimits: a pod goes"),
        pytest.param("NodeVolumeLimits", PLAIN, None, OTHER_CLAIM, "v1.30 v1.31", id="NodeVolumeLimits: a claim"),
    ],
)  # fmt: skip
def test_hints_that_are_switched_on_before_they_were_by_default(
    plugin: str, pod: Pod, old: Object | None, new: Object | None, releases: str
) -> None:
    """Few plugins had hints in v1.29; up to v1.31 most of these did not look at what a node was before."""
    names = {"v1.29": "v1.29-on", "v1.30": "v1.30-on", "v1.31": "v1.31-on", "v1.32": "v1.32"}
    assert [each for each, name in names.items() if wakes(plugin, pod, old, new, release=name)] == releases.split()


def test_hints_of_other_plugins_count_in_every_release_that_has_hints() -> None:
    class Picky(NodePorts):
        name = "Picky"

        def events_to_register(self) -> tuple[EventHint]:
            return (EventHint("Node", Action.ADD, lambda waiting, old, new: False),)

    made = Picky.of_release(gates_set("v1.29-on"))
    cluster = Cluster.from_objects([NODE])

    assert not PluginHints(made).may_help(
        WaitingPod(PLAIN, cluster.infos.of(PLAIN), cluster), ClusterEvent("Node", Action.ADD, None, NODE)
    )


@pytest.mark.parametrize("release", ["v1.29", "v1.30", "v1.36", "v1.37"])
def test_changed_taints_stand_in_for_new_nodes(release: str) -> None:
    assert wakes("VolumeRestrictions", PLAIN, NODE, TAINTED, release=release) == (release in ("v1.30", "v1.36"))


@pytest.mark.parametrize(
    ("old", "new", "oldest"),
    [
        pytest.param(CORDONED, make_node("n", cpu="8"), ["UPDATE_NODE_TAINT"], id="uncordoned and larger"),
        pytest.param(NODE, make_node("n", cpu="8"), ["UPDATE_NODE_ALLOCATABLE"], id="larger and unlabelled"),
        pytest.param(NODE, ANNOTATED, [], id="annotated"),
    ],
)
def test_the_oldest_release_tells_of_one_change_of_a_node(old: Node, new: Node, oldest: list[str]) -> None:
    assert [event.action.name for event in node_changes(old, new, rules_of("v1.29"))] == oldest
    assert len(node_changes(old, new, rules_of("v1.30"))) > len(oldest)


def woken(release: str, waiting: Pod, *, event: Object, after: Object | None = None) -> bool:
    """Whether a waiting pod is tried again after an object comes, or comes and changes."""
    driver = Driver([make_node("full", cpu="0")], release=release)
    driver.add(waiting).work()
    before = len(driver.instructions)
    driver.add(event) if after is None else driver.update(after)
    driver.work(100.0)
    return len(driver.instructions) > before


@pytest.mark.parametrize("release", ["v1.31", "v1.32", "v1.37"])
@pytest.mark.parametrize(
    ("node", "hears"),
    [
        pytest.param(make_node("new", cpu="1"), False, id="too small"),
        pytest.param(make_node("new", cpu="4"), True, id="large enough"),
        pytest.param(make_node("new", cpu="4", taints=["team=a:NoSchedule"]), False, id="tainted"),
    ],
)
def test_who_hears_of_a_new_node(release: str, node: Node, hears: bool) -> None:
    """Without hints it is checked beforehand; NodeResourcesFit's hint does not look at taints."""
    hints_do = release != "v1.31" and bool(node.spec.taints)

    assert woken(release, make_pod("waiting", requests={"cpu": "2"}), event=node) is (hears or hints_do)


@pytest.mark.parametrize(
    ("old", "new", "releases"),
    [
        (PLAIN, make_pod("waiting", requests={"cpu": "2"}, labels=WEB), "v1.29 v1.31"),
        (PLAIN, PLAIN, ""),
        (PLAIN, make_pod("waiting", requests={"cpu": "1"}), "v1.29 v1.31 v1.36 v1.37"),
    ],
    ids=["labels", "nothing", "less asked for"],
)
def test_a_waiting_pod_that_changes(old: Pod, new: Pod, releases: str) -> None:
    """Where there are no hints, any change of it lets it try again."""
    found = [each for each in ("v1.29", "v1.31", "v1.36", "v1.37") if woken(each, old, event=old, after=new)]
    assert found == releases.split()


def test_every_plugin_that_can_reject_a_pod_has_hints() -> None:
    oldest = IN_TREE.points_in(rules_of("v1.29"))
    points = {name: IN_TREE.points_in(NEWEST_RULES).get(name, oldest.get(name, frozenset())) for name in IN_TREE}
    rejecting = {"preEnqueue", "preFilter", "filter", "reserve", "permit"}
    registering = {name for name in points if IN_TREE[name].of_release(NEWEST_RULES).events_to_register() is not None}
    assert {name for name in points if points[name] & rejecting} == registering


# -- what an update amounts to -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("old", "new", "actions"),
    [
        (PLAIN, make_pod("waiting", requests={"cpu": "1"}), ["UPDATE_POD_SCALE_DOWN"]),
        (PLAIN, make_pod("waiting"), ["UPDATE_POD_SCALE_DOWN"]),
        (PLAIN, make_pod("waiting", requests={"cpu": "3"}), ["UPDATE"]),
        (PLAIN, make_pod("waiting", requests={"cpu": "2"}, labels=WEB), ["UPDATE_POD_LABEL"]),
        (GATED, make_pod("waiting", labels=WEB), ["UPDATE_POD_LABEL", "UPDATE_POD_SCHEDULING_GATES_ELIMINATED"]),
        (make_pod("waiting"), TOLERANT, ["UPDATE_POD_TOLERATION"]),
        (PLAIN, change(PLAIN, priority=1), ["UPDATE"]),
        (NODE, NODE, []),
        (NODE, make_node("n", cpu="5", labels={ZONE: "b"}), ["UPDATE_NODE_ALLOCATABLE", "UPDATE_NODE_LABEL"]),
        (NODE, TAINTED, ["UPDATE_NODE_TAINT"]),
        (CORDONED, NODE, ["UPDATE_NODE_TAINT"]),
        (NODE, CORDONED, []),
    ],
)
def test_updates_say_what_they_change(old: Object, new: Object, actions: list[str]) -> None:
    assert [event.action.name for event in events_of(old, new)] == actions


class RejectsAll(FilterPlugin):
    """Rejects every pod, and says nothing about events: any that pods are told of may help."""

    name = "RejectsAll"

    def filter_node(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status:
        return Status.unschedulable("no")


@pytest.mark.parametrize(
    ("happens", "releases"),
    [
        pytest.param(lambda driver: driver.delete(make_node("n")), "v1.32 v1.33 v1.35", id="a node is removed"),
        pytest.param(
            lambda driver: driver.add(make_object("StorageClass", "s", provisioner="p", volumeBindingMode="Immediate")),
            "v1.32 v1.33 v1.35", id="a storage class that binds at once",
        ),
        pytest.param(
            lambda driver: driver.add(
                make_object("StorageClass", "s", provisioner="p", volumeBindingMode="WaitForFirstConsumer")
            ),
            "v1.29 v1.31 v1.32 v1.33 v1.35", id="a storage class that waits",
        ),
        pytest.param(
            lambda driver: (driver.add(NOMINATED).work(), driver.delete(NOMINATED)),
            "v1.33 v1.35", id="a nominated pod goes",
        ),
        pytest.param(
            lambda driver: driver.add(make_pod("other", node="n")), "v1.32 v1.33 v1.35", id="an unrelated pod comes"
        ),
    ],
)  # fmt: skip
def test_what_each_release_tells_waiting_pods(happens: Callable[[Driver], object], releases: str) -> None:
    found = []
    for release in ("v1.29", "v1.31", "v1.32", "v1.33", "v1.35"):
        driver = Driver([make_node("n")], release=release, **with_plugins(RejectsAll))
        driver.add(make_pod("waiting")).work()
        before = sum(instruction.pod.name == "waiting" for instruction in driver.instructions)
        happens(driver)
        driver.work(100.0)
        after = sum(instruction.pod.name == "waiting" for instruction in driver.instructions)
        found += [release] if after > before else []
    assert found == releases.split()
