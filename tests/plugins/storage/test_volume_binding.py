"""VolumeBinding: where a pod's claims let it go."""

from __future__ import annotations

import pytest

from builders import HOSTNAME, ZONE, Fields, decide, expression, make_node, rejections, scores, with_args
from csi_objects import make_capacity, make_csi_node, make_driver
from podium.cluster import Cluster
from podium.config.plugin_args import UtilizationShapePoint, VolumeBindingArgs
from podium.engine.release import Options
from podium.framework import SKIP, SUCCESS, CycleState
from podium.model import Object, Pod
from podium.model.objects import SELECTED_NODE
from podium.plugins.storage.volume_binding import VolumeBinding
from podium.rules import NEWEST_RULES
from storage_objects import bound, ephemeral, make_claim, make_class, make_volume, on_label, pod_with, uses

NODES = [make_node(name, labels={HOSTNAME: name, ZONE: zone}) for name, zone in (("a", "x"), ("b", "x"), ("c", "y"))]
NODE_CONFLICT = "node(s) didn't match PersistentVolume's node affinity"
BIND_CONFLICT = "node(s) didn't find available persistent volumes to bind"
NO_SPACE = "node(s) did not have enough free storage"
WAITS = make_class("waits")
STATIC = make_class("static", "kubernetes.io/no-provisioner")


def why(objects: list[Object], pod: Pod) -> dict[str, tuple[str, ...]]:
    """The reasons VolumeBinding has against each node; nobody else may have any."""
    found = rejections(decide([*NODES, *objects], pod))
    assert {(plugin, code) for plugin, code, _ in found.values()} <= {("VolumeBinding", "UnschedulableAndUnresolvable")}
    return {node: reasons for node, (_, _, reasons) in found.items()}


def everywhere_but(*feasible: str, reason: str = BIND_CONFLICT) -> dict[str, tuple[str, ...]]:
    return {node.name: (reason,) for node in NODES if node.name not in feasible}


# -- bound claims --------------------------------------------------------------------------------------------------


def test_a_bound_volume_keeps_the_pod_on_its_nodes() -> None:
    assert why(bound(nodes=on_label(ZONE, "x")), pod_with(uses("data"))) == {"c": (NODE_CONFLICT,)}


def test_a_bound_volume_without_affinity_can_be_used_everywhere() -> None:
    assert why(bound(), pod_with(uses("data"))) == {}


def test_affinity_without_terms_matches_no_node() -> None:
    affinity: Fields = {"nodeAffinity": {"required": {"nodeSelectorTerms": []}}, "local": {"path": "/disk"}}

    assert why(bound(**affinity), pod_with(uses("data"))) == everywhere_but(reason=NODE_CONFLICT)


def test_fields_of_a_node_are_not_compared() -> None:
    term = {"matchFields": [expression("metadata.name", "In", "a")]}
    affinity: Fields = {"nodeAffinity": {"required": {"nodeSelectorTerms": [term]}}, "local": {"path": "/disk"}}

    assert why(bound(**affinity), pod_with(uses("data"))) == {}


def test_bound_and_waiting_claims_both_have_their_say() -> None:
    objects = [*bound(nodes=on_label(HOSTNAME, "a", "b")), STATIC, make_claim("new", storage_class="static")]
    objects.append(make_volume("v", storage_class="static", nodes=on_label(HOSTNAME, "b", "c")))

    found = why(objects, pod_with(uses("data", "new")))

    assert found == {"a": (BIND_CONFLICT,), "c": (NODE_CONFLICT,)}


def test_both_reasons_on_one_node() -> None:
    objects = [*bound(nodes=on_label(HOSTNAME, "a")), STATIC, make_claim("new", storage_class="static")]

    found = why(objects, pod_with(uses("data", "new")))

    assert found == {"a": (BIND_CONFLICT,), "b": (NODE_CONFLICT, BIND_CONFLICT), "c": (NODE_CONFLICT, BIND_CONFLICT)}


def test_an_ephemeral_claim_bound_to_a_missing_volume() -> None:
    pod = pod_with(ephemeral("scratch"))
    claim = make_claim("pod-scratch", volume="gone", owner=pod)

    reason = "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
    assert why([claim], pod) == everywhere_but(reason=reason)


def test_an_in_tree_volume_is_translated_where_its_plugin_is_migrated() -> None:
    nodes = [
        make_node("in-tree", labels={ZONE: "x"}),
        make_node("migrated", labels={"topology.ebs.csi.aws.com/zone": "x"}),
        make_node("elsewhere", labels={ZONE: "x", "topology.ebs.csi.aws.com/zone": "y"}),
    ]
    migrated = [make_csi_node(name, {}, ["kubernetes.io/aws-ebs"]) for name in ("migrated", "elsewhere")]
    disk = bound(nodes=on_label(ZONE, "x"), awsElasticBlockStore={"volumeID": "vol-1"})

    decision = decide([*nodes, *migrated, *disk], pod_with(uses("data")))

    assert decision.feasible == ("in-tree", "migrated")


def test_an_in_tree_volume_that_cannot_be_translated_is_an_error_where_it_must_be() -> None:
    disk = bound(awsElasticBlockStore={"volumeID": "aws://zone/disk"})
    migrated = make_csi_node("a", {}, ["kubernetes.io/aws-ebs"])

    assert decide([*NODES, *disk], pod_with(uses("data"))).feasible == ("a", "b", "c")
    assert "could not translate pv" in decide([*NODES, migrated, *disk], pod_with(uses("data"))).error


# -- claims that cannot be used ------------------------------------------------------------------------------------

UNBOUND = "pod has unbound immediate PersistentVolumeClaims"
DELETED = {"deletionTimestamp": "2026-01-01T00:00:00Z"}

REFUSED: dict[str, tuple[list[Object], list[Fields], str]] = {
    "an unbound claim of a class that binds at once": (
        [make_class("c", waits=False), make_claim("data", storage_class="c")],
        uses("data"),
        UNBOUND,
    ),
    "an unbound claim of a class that is not there": ([make_claim("data", storage_class="c")], uses("data"), UNBOUND),
    "an unbound claim without class": ([make_claim("data", storage_class=None)], uses("data"), UNBOUND),
    "a claim that names a volume but is not bound to it": (
        [WAITS, make_claim("data", storage_class="waits", volume="v", annotations={}), make_volume("v")],
        uses("data"),
        UNBOUND,
    ),
    "a lost claim": (
        [make_claim("data", volume="v", phase="Lost")],
        uses("data"),
        'persistentvolumeclaim "data" bound to non-existent persistentvolume "v"',
    ),
    "a claim being deleted": (
        [make_claim("data", volume="v", metadata=DELETED)],
        uses("data"),
        'persistentvolumeclaim "data" is being deleted',
    ),
    "an ephemeral volume without claim yet": (
        [],
        ephemeral("scratch"),
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-scratch"',
    ),
    "an ephemeral volume whose claim is another's": (
        [make_claim("pod-scratch", storage_class="waits"), WAITS],
        ephemeral("scratch"),
        "PVC default/pod-scratch was not created for pod default/pod (pod is not owner)",
    ),
}


@pytest.mark.parametrize(("objects", "volumes", "reason"), REFUSED.values(), ids=REFUSED.keys())
def test_pods_that_cannot_go_anywhere(objects: list[Object], volumes: list[Fields], reason: str) -> None:
    decision = decide([*NODES, *objects], pod_with(volumes))

    assert decision.absent is not None
    assert (decision.absent.plugin, decision.absent.code.value) == ("VolumeBinding", "UnschedulableAndUnresolvable")
    assert decision.message == f"0/3 nodes are available: {reason}."


# -- existing volumes ----------------------------------------------------------------------------------------------

CLAIM = make_claim("data", "2Gi", storage_class="static")
FITS: Fields = {"size": "2Gi", "storage_class": "static"}
GOLD = {"matchLabels": {"tier": "gold"}}

MATCHING = {
    "one that fits": (CLAIM, FITS, True),
    "a larger one": (CLAIM, FITS | {"size": "3Gi"}, True),
    "one too small": (CLAIM, FITS | {"size": "2047Mi"}, False),
    "one of another class": (CLAIM, FITS | {"storage_class": "other"}, False),
    "the class of the old annotation": (
        CLAIM,
        FITS
        | {"storage_class": "", "metadata": {"annotations": {"volume.beta.kubernetes.io/storage-class": "static"}}},
        True,
    ),
    "one that is not available": (CLAIM, FITS | {"phase": "Released"}, False),
    "one being deleted": (CLAIM, FITS | {"metadata": DELETED}, False),
    "one of another access mode": (CLAIM, FITS | {"modes": ["ReadOnlyMany"]}, False),
    "one of more access modes": (CLAIM, FITS | {"modes": ["ReadOnlyMany", "ReadWriteOnce"]}, True),
    "a raw block device": (CLAIM, FITS | {"volumeMode": "Block", "local": {"path": "/disk"}}, False),
    "one of an attributes class": (CLAIM, FITS | {"volumeAttributesClassName": "fast", "local": {"path": "/d"}}, False),
    "the labels asked for": (
        make_claim("data", storage_class="static", selector=GOLD),
        FITS | {"labels": {"tier": "gold"}},
        True,
    ),
    "other labels": (
        make_claim("data", storage_class="static", selector=GOLD),
        FITS | {"labels": {"tier": "tin"}},
        False,
    ),
    "one reserved for another claim": (CLAIM, FITS | {"claim": {"namespace": "default", "name": "other"}}, False),
    "one reserved for the claim": (CLAIM, FITS | {"claim": CLAIM, "phase": "Bound"}, True),
    "one reserved for the claim's name": (CLAIM, FITS | {"claim": {"namespace": "default", "name": "data"}}, True),
    "one reserved for an earlier claim of the name": (
        CLAIM,
        FITS | {"claim": {"namespace": "default", "name": "data", "uid": "earlier"}},
        False,
    ),
    "one reserved for the claim, too small": (CLAIM, FITS | {"claim": CLAIM, "size": "1Gi"}, False),
}


@pytest.mark.parametrize(("claim", "volume", "matches"), MATCHING.values(), ids=MATCHING.keys())
def test_which_volume_a_waiting_claim_can_have(claim: Object, volume: Fields, matches: bool) -> None:
    found = why([STATIC, claim, make_volume("v", **volume)], pod_with(uses("data")))

    assert found == ({} if matches else everywhere_but())


def test_a_waiting_claim_can_be_bound_where_a_volume_is() -> None:
    volumes = [make_volume(f"on-{n}", storage_class="static", nodes=on_label(HOSTNAME, n)) for n in ("a", "c")]

    assert why([STATIC, make_claim("data", storage_class="static"), *volumes], pod_with(uses("data"))) == (
        everywhere_but("a", "c")
    )


def test_a_reserved_volume_is_the_only_one_for_its_claim() -> None:
    claim = make_claim("data", storage_class="static")
    volumes = [
        make_volume("reserved", storage_class="static", claim=claim, nodes=on_label(HOSTNAME, "a")),
        make_volume("free", storage_class="static"),
    ]

    assert why([STATIC, claim, *volumes], pod_with(uses("data"))) == everywhere_but("a")


def test_two_claims_need_two_volumes() -> None:
    claims = [make_claim(name, storage_class="static") for name in ("data", "more")]
    volumes = [
        make_volume("of-x", storage_class="static", nodes=on_label(ZONE, "x")),
        make_volume("of-a", storage_class="static", nodes=on_label(HOSTNAME, "a")),
    ]

    assert why([STATIC, *claims, *volumes], pod_with(uses("data", "more"))) == everywhere_but("a")


def test_small_claims_do_not_take_what_large_ones_need() -> None:
    claims = [make_claim("large", "2Gi", storage_class="static"), make_claim("small", storage_class="static")]
    volumes = [make_volume(size.lower(), size, storage_class="static") for size in ("3Gi", "1Gi")]

    assert why([STATIC, *claims, *volumes], pod_with(uses("large", "small"))) == {}


# -- provisioning --------------------------------------------------------------------------------------------------


def test_a_class_provisions_where_no_volume_is() -> None:
    objects = [WAITS, make_claim("data", storage_class="waits")]

    assert why(objects, pod_with(uses("data"))) == {}


def topologies(*terms: dict[str, list[str]]) -> list[Fields]:
    return [
        {"matchLabelExpressions": [{"key": key, "values": values} for key, values in term.items()]} for term in terms
    ]


ALLOWED = {
    "one topology": (topologies({ZONE: ["y"]}), ["c"]),
    "several values": (topologies({HOSTNAME: ["a", "c"]}), ["a", "c"]),
    "several labels, all of which count": (topologies({ZONE: ["x"], HOSTNAME: ["b", "c"]}), ["b"]),
    "several terms, any of which suffices": (topologies({ZONE: ["y"]}, {HOSTNAME: ["a"]}), ["a", "c"]),
    "an empty term, which allows nothing": (topologies({}), []),
}


@pytest.mark.parametrize(("terms", "feasible"), ALLOWED.values(), ids=ALLOWED.keys())
def test_a_class_provisions_where_it_is_allowed(terms: list[Fields], feasible: list[str]) -> None:
    objects = [make_class("c", allowedTopologies=terms), make_claim("data", storage_class="c")]

    assert why(objects, pod_with(uses("data"))) == everywhere_but(*feasible)


def test_a_volume_can_be_used_where_none_may_be_provisioned() -> None:
    storage_class = make_class("c", allowedTopologies=topologies({ZONE: ["y"]}))
    volume = make_volume("v", storage_class="c", nodes=on_label(HOSTNAME, "a"))

    assert why([storage_class, make_claim("data", storage_class="c"), volume], pod_with(uses("data"))) == (
        everywhere_but("a", "c")
    )


X_NODES = {"matchLabels": {ZONE: "x"}}
CAPACITIES: dict[str, tuple[list[Object], list[str]]] = {
    "enough for some nodes": ([make_capacity("p", "waits", X_NODES, capacity="2Gi")], ["a", "b"]),
    "too little": ([make_capacity("p", "waits", X_NODES, capacity="2047Mi")], []),
    "none reported": ([], []),
    "for all nodes": ([make_capacity("p", "waits", {}, capacity="2Gi")], ["a", "b", "c"]),
    "for no node": ([make_capacity("p", "waits", None, capacity="2Gi")], []),
    "of another class": ([make_capacity("p", "other", {}, capacity="2Gi")], []),
    "without amount": ([make_capacity("p", "waits", {})], []),
    "much, but not in one volume": (
        [make_capacity("p", "waits", {}, capacity="9Gi", maximumVolumeSize="1Gi")],
        [],
    ),
    "the larger of two": (
        [make_capacity("p", "waits", {}, capacity="1Gi"), make_capacity("q", "waits", X_NODES, capacity="3Gi")],
        ["a", "b"],
    ),
}


@pytest.mark.parametrize(("capacities", "feasible"), CAPACITIES.values(), ids=CAPACITIES.keys())
def test_a_driver_that_reports_capacity_needs_enough(capacities: list[Object], feasible: list[str]) -> None:
    objects = [WAITS, make_claim("data", "2Gi", storage_class="waits"), *capacities]

    assert why([*objects, make_driver(reports_capacity=True)], pod_with(uses("data"))) == (
        everywhere_but(*feasible, reason=NO_SPACE)
    )
    assert why([*objects, make_driver(reports_capacity=False)], pod_with(uses("data"))) == {}
    assert why(objects, pod_with(uses("data"))) == {}


def test_a_claim_for_which_a_node_was_chosen_goes_there() -> None:
    for chosen, feasible in (("b", ["b"]), ("gone", [])):
        claim = make_claim("data", storage_class="waits", annotations={SELECTED_NODE: chosen})
        assert why([WAITS, claim], pod_with(uses("data"))) == everywhere_but(*feasible)


# -- the rest ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("volumes", [[], [{"name": "scratch", "emptyDir": {}}]])
def test_other_volumes_are_not_its_business(volumes: list[Fields]) -> None:
    cluster, pod = Cluster.from_objects(NODES), pod_with(volumes)
    plugin, state = VolumeBinding.of_release(NEWEST_RULES), CycleState(cluster.infos.of(pod))

    assert plugin.pre_filter(state, pod, cluster.nodes).status == SKIP
    assert plugin.reserve(state, pod, "a") == SUCCESS


@pytest.mark.parametrize(
    ("release", "gates", "expected"),
    [
        ("v1.29", {}, {"a": 0, "b": 0, "c": 0}),
        ("v1.30", {}, None),
        ("v1.36", {}, None),
        ("v1.36", {"StorageCapacityScoring": True}, {"a": 0, "b": 0, "c": 0}),
        ("v1.37", {}, {"a": 0, "b": 0, "c": 0}),
        ("v1.37", {"StorageCapacityScoring": False}, None),
    ],
)
def test_whether_it_scores(release: str, gates: dict[str, bool], expected: dict[str, int] | None) -> None:
    for pod in (pod_with([]), pod_with(uses("data"))):
        objects = [*NODES, STATIC, CLAIM, make_volume("v", **FITS)]
        found = decide(objects, pod, release=release, options=Options(feature_gates=gates))
        assert scores(found, "VolumeBinding") == (expected and dict.fromkeys(found.feasible, 0))


def test_bind_timeout_is_accepted() -> None:
    assert decide(NODES, pod_with([]), with_args("VolumeBinding", bindTimeoutSeconds=30)).node == "a"


def scored(objects: list[Object], pod: Pod) -> list[int]:
    """The scores with the feature StorageCapacityScoring on: small volumes and full pools are preferred."""
    shape = (UtilizationShapePoint(0, 0), UtilizationShapePoint(100, 10))
    plugin, cluster = (
        VolumeBinding.of_release(NEWEST_RULES, VolumeBindingArgs(shape=shape)),
        Cluster.from_objects([*NODES, *objects]),
    )
    state = CycleState(cluster.infos.of(pod))
    assert plugin.pre_filter(state, pod, cluster.nodes).status in (SUCCESS, SKIP)
    if plugin.name in state:
        plugin.filter(state, pod, cluster.nodes)
    assert plugin.pre_score(state, pod, cluster.nodes) == SUCCESS
    return list(plugin.score(state, pod, cluster.nodes))


def test_score_of_existing_volumes_is_the_mean_over_classes() -> None:
    other = make_class("other", "kubernetes.io/no-provisioner")
    objects = [
        *(STATIC, other),
        make_claim("data", "1Gi", storage_class="static"),
        make_claim("more", "1Gi", storage_class="other"),
        make_volume("of-a", "2Gi", storage_class="static", nodes=on_label(HOSTNAME, "a")),
        make_volume("of-all", "4Gi", storage_class="static"),
        make_volume("of-other", "1Gi", storage_class="other"),
    ]

    assert scored(objects, pod_with(uses("data"))) == [50, 25, 25]
    assert scored(objects, pod_with(uses("data", "more"))) == [75, 63, 63]


def test_score_of_volumes_to_be_provisioned_goes_by_capacity() -> None:
    objects = [
        *(WAITS, make_driver(reports_capacity=True)),
        make_claim("data", "1Gi", storage_class="waits"),
        make_claim("more", "2Gi", storage_class="waits"),
        make_capacity("x", "waits", X_NODES, capacity="4Gi"),
        make_capacity("y", "waits", {"matchLabels": {ZONE: "y"}}, capacity="2Gi"),
    ]

    assert scored(objects, pod_with(uses("data"))) == [25, 25, 50]
    assert scored(objects, pod_with(uses("data", "more"))) == [75, 75, 100]


def test_score_of_a_pod_without_claims_is_zero() -> None:
    assert scored([], pod_with([])) == [0, 0, 0]
