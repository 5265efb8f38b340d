from __future__ import annotations

from collections.abc import Mapping
from dataclasses import FrozenInstanceError
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from podium.errors import QuantityError
from podium.model import Container, Node, NodeStatus, ObjectMeta, Pod, PodSpec, PodStatus, ResourceRequirements
from podium.model.meta import ResourceList
from podium.model.pod import ContainerStatus, PodCondition
from podium.model.resources import (
    PodResources,
    counts_by_release,
    is_extended_resource,
    is_scalar_resource,
    node_allocatable,
    pod_requests,
    pod_resources,
    scheduler_units,
)
from podium.rules import NEWEST_RULES, rules_of
from podium.rules.gates import RELEASE_NAMES

MI = 2**20
GI = 2**30


def asks(name: str = "app", sidecar: bool = False, **requests: str | int | float) -> Container:
    named = {key.replace("_", "-"): quantity for key, quantity in requests.items()}
    return container(named, name, sidecar)


def container(requests: ResourceList, name: str = "app", sidecar: bool = False) -> Container:
    policy = "Always" if sidecar else ""
    return Container(name=name, restart_policy=policy, resources=ResourceRequirements(requests=requests))


def pod(
    *containers: Container,
    init: list[Container] | None = None,
    overhead: ResourceList | None = None,
    whole: ResourceList | None = None,
    status: PodStatus | None = None,
) -> Pod:
    spec = PodSpec(
        containers=list(containers),
        init_containers=init or [],
        overhead=overhead or {},
        resources=None if whole is None else ResourceRequirements(requests=whole),
    )
    return Pod(metadata=ObjectMeta(name="web", namespace="default"), spec=spec, status=status or PodStatus())


def holds(actuated: ResourceList, allocated: ResourceList | None = None, name: str = "app") -> ContainerStatus:
    return ContainerStatus(
        name=name, resources=ResourceRequirements(requests=actuated), allocated_resources=allocated or {}
    )


INFEASIBLE = PodCondition(type="PodResizePending", status="True", reason="Infeasible")
DEFERRED = PodCondition(type="PodResizePending", status="True", reason="Deferred")


@pytest.mark.parametrize(
    ("case", "asked", "requests"),
    [
        ("nothing", pod(asks()), {}),
        ("one container", pod(asks(cpu="100m", memory="1Gi")), {"cpu": 100, "memory": GI}),
        ("containers add up", pod(asks(cpu="0.5"), asks(cpu=1, memory="1k")), {"cpu": 1500, "memory": 1000}),
        ("sums are rounded, not their parts", pod(asks(cpu="0.4m"), asks(cpu="0.4m")), {"cpu": 1}),
        ("the larger of init and containers", pod(asks(cpu="1"), init=[asks(cpu="3"), asks(cpu="2")]), {"cpu": 3000}),
        (
            "each resource takes its own maximum",
            pod(asks(cpu="2", memory="1G"), asks(cpu="1", memory="1G"), init=[asks(cpu="2", memory="3G")]),
            {"cpu": 3000, "memory": 3 * 10**9},
        ),
        (
            "a sidecar runs next to the containers",
            pod(asks(cpu="1"), init=[asks(sidecar=True, cpu="2")]),
            {"cpu": 3000},
        ),
        (
            "an init container runs next to the sidecars before it",
            pod(asks(cpu="1"), init=[asks(sidecar=True, cpu="2"), asks(cpu="5")]),
            {"cpu": 7000},
        ),
        (
            "but not next to the sidecars after it",
            pod(asks(cpu="1"), init=[asks(cpu="5"), asks(sidecar=True, cpu="2")]),
            {"cpu": 5000},
        ),
        (
            "overhead comes on top",
            pod(asks(cpu="1"), init=[asks(cpu="3")], overhead={"cpu": "250m", "memory": "1Mi"}),
            {"cpu": 3250, "memory": MI},
        ),
        (
            "the pod's own requests replace its containers'",
            pod(asks(cpu="1", memory="1Gi"), whole={"cpu": "4"}, overhead={"cpu": "1"}),
            {"cpu": 5000, "memory": GI},
        ),
        (
            "only cpu, memory and huge pages can be the pod's own",
            pod(asks(ephemeral_storage="1Gi"), whole={"ephemeral-storage": "9Gi", "hugepages-2Mi": "4Mi"}),
            {"ephemeral-storage": GI, "hugepages-2Mi": 4 * MI},
        ),
        ("zero is kept", pod(container({"cpu": "0", "example.com/gpu": 0})), {"cpu": 0, "example.com/gpu": 0}),
        ("below zero asks for nothing", pod(asks(cpu="-1")), {"cpu": 0}),
        ("what the scheduler does not track is left out", pod(container({"pods": 1, "storage": "1Gi"})), {}),
        (
            "status does not count for an incoming pod",
            pod(asks(cpu="1"), status=PodStatus(container_statuses=[holds({"cpu": "9"})])),
            {"cpu": 1000},
        ),
    ],
)
def test_the_filter_compares(case: str, asked: Pod, requests: dict[str, int]) -> None:
    assert pod_resources(asked, NEWEST_RULES).requests == requests, case


def status(*containers: ContainerStatus, conditions: list[PodCondition] | None = None) -> PodStatus:
    return PodStatus(container_statuses=list(containers), conditions=conditions or [])


@pytest.mark.parametrize(
    ("case", "running", "used"),
    [
        (
            "without resources in its status",
            pod(asks(cpu="1"), status=status(ContainerStatus(name="app"))),
            {"cpu": 1000},
        ),
        ("growing: the spec", pod(asks(cpu="2"), status=status(holds({"cpu": "1"}))), {"cpu": 2000}),
        ("shrinking: what it still has", pod(asks(cpu="1"), status=status(holds({"cpu": "2"}))), {"cpu": 2000}),
        (
            "allocated, not yet actuated",
            pod(asks(cpu="1"), status=status(holds({"cpu": "1"}, {"cpu": "3"}))),
            {"cpu": 3000},
        ),
        (
            "infeasible: the spec is ignored",
            pod(asks(cpu="8"), status=status(holds({"cpu": "1"}), conditions=[INFEASIBLE])),
            {"cpu": 1000},
        ),
        (
            "deferred: the spec counts",
            pod(asks(cpu="8"), status=status(holds({"cpu": "1"}), conditions=[DEFERRED])),
            {"cpu": 8000},
        ),
        (
            "the first pending condition decides",
            pod(asks(cpu="8"), status=status(holds({"cpu": "1"}), conditions=[DEFERRED, INFEASIBLE])),
            {"cpu": 8000},
        ),
        (
            "another container's status",
            pod(asks(cpu="1"), status=status(holds({"cpu": "2"}, name="other"))),
            {"cpu": 1000},
        ),
        (
            "sidecars and init containers count by their status",
            pod(
                asks(cpu="1"),
                init=[asks("proxy", sidecar=True, cpu="1"), asks("setup", cpu="1")],
                status=PodStatus(
                    init_container_statuses=[holds({"cpu": "2"}, name="proxy"), holds({"cpu": "9"}, name="setup")]
                ),
            ),
            {"cpu": 11_000},
        ),
        (
            "a resized pod",
            pod(
                asks(cpu="1"),
                whole={"cpu": "2"},
                status=PodStatus(resources=ResourceRequirements(requests={"cpu": "3"})),
            ),
            {"cpu": 3000},
        ),
        (
            "a pod allocated more than it has",
            pod(
                whole={"cpu": "2"},
                status=PodStatus(resources=ResourceRequirements(), allocated_resources={"cpu": "4"}),
            ),
            {"cpu": 4000},
        ),
        (
            "a pod allocated more, but not resized yet",
            pod(whole={"cpu": "2"}, status=PodStatus(allocated_resources={"cpu": "4"})),
            {"cpu": 2000},
        ),
        (
            "an infeasible pod that holds nothing",
            pod(
                asks(cpu="1"),
                whole={"cpu": "2"},
                status=PodStatus(resources=ResourceRequirements(), conditions=[INFEASIBLE]),
            ),
            {},
        ),
        ("infeasible, and it holds nothing", pod(asks(cpu="1"), status=status(conditions=[INFEASIBLE])), {}),
        ("below zero gives back", pod(asks(cpu="-1")), {"cpu": -1000}),
    ],
)
def test_a_running_pod_occupies(case: str, running: Pod, used: dict[str, int]) -> None:
    assert pod_resources(running, NEWEST_RULES).used == used, case
    assert pod_resources(running, NEWEST_RULES).balanced_requests == used, case
    others = [pod_resources(running, rules_of(release)) for release in RELEASE_NAMES]
    counted = [(each.requests, each.used, each.non_zero_cpu, each.non_zero_memory) for each in others]
    is_refused = any(amount < 0 for amount in used.values())
    assert counts_by_release(running) or is_refused or all(each == counted[0] for each in counted), case


@pytest.mark.parametrize(
    ("case", "asked", "cpu", "memory"),
    [
        ("nothing asked", pod(asks()), 100, 200 * MI),
        ("each container counts", pod(asks(), asks(cpu="1"), asks(memory="1Mi")), 1200, 401 * MI),
        ("zero is an answer", pod(asks(cpu="0", memory=0)), 0, 0),
        ("init containers count too", pod(asks(cpu="10m", memory="1Mi"), init=[asks()]), 100, 200 * MI),
        ("and sidecars", pod(asks(), init=[asks(sidecar=True)]), 200, 400 * MI),
        ("no container, no default", pod(), 0, 0),
        ("the pod's own requests need no default", pod(asks(), whole={"cpu": "1", "memory": "1Mi"}), 1000, MI),
        ("one of them missing", pod(asks(), asks(), whole={"cpu": "1"}), 1000, 400 * MI),
        ("one given by a container", pod(asks(memory="1Mi"), asks(), whole={"cpu": "1"}), 1000, MI),
        ("a pod request of another kind", pod(asks(), whole={"storage": "1"}), 100, 200 * MI),
        ("what it still has", pod(asks(cpu="1"), status=status(holds({"cpu": "2"}))), 2000, 200 * MI),
    ],
)
def test_non_zero_defaults(case: str, asked: Pod, cpu: int, memory: int) -> None:
    resources = pod_resources(asked, NEWEST_RULES)
    assert (resources.non_zero_cpu, resources.non_zero_memory) == (cpu, memory), case


@pytest.mark.parametrize(
    ("case", "asked", "requests"),
    [
        ("defaults", pod(asks()), {"cpu": 100, "memory": 200 * MI}),
        (
            "the pod's own requests do not count",
            pod(asks(cpu="1"), whole={"cpu": "9"}),
            {"cpu": 1000, "memory": 200 * MI},
        ),
        (
            "nor does status",
            pod(asks(cpu="1", memory=1), status=status(holds({"cpu": "2"}))),
            {"cpu": 1000, "memory": 1},
        ),
        (
            "any resource counts",
            pod(asks(cpu="1", memory=1, widgets="1500m")),
            {"cpu": 1000, "memory": 1, "widgets": 2},
        ),
    ],
)
def test_the_fit_scorer_adds(case: str, asked: Pod, requests: dict[str, int]) -> None:
    assert pod_resources(asked, NEWEST_RULES).score_requests == requests, case


def test_balanced_allocation_adds_what_is_asked_and_no_defaults() -> None:
    assert pod_resources(pod(asks()), NEWEST_RULES).balanced_requests == {}
    assert pod_resources(pod(asks(widgets="2"), whole={"cpu": "1"}), NEWEST_RULES).balanced_requests == {
        "cpu": 1000,
        "widgets": 2,
    }


def test_pod_requests_are_exact_amounts() -> None:
    asked = pod(asks(cpu="0.1m", memory="1.5Gi"))
    assert pod_requests(asked, NEWEST_RULES) == {"cpu": Fraction(1, 10_000), "memory": 3 * GI // 2}


def test_pod_requests_leave_the_objects_alone() -> None:
    asked = pod(asks(cpu="1"), init=[asks(sidecar=True, cpu="1"), asks(cpu="2")], overhead={"cpu": "1"})
    assert pod_requests(asked, NEWEST_RULES) == pod_requests(asked, NEWEST_RULES) == {"cpu": 4}


def test_equal_asks_share_one_instance() -> None:
    one = pod_resources(pod(asks("a", cpu="1", memory="1Gi")), NEWEST_RULES)
    other = pod_resources(pod(asks("b", cpu="1", memory="1Gi")), NEWEST_RULES)
    assert one is other
    with pytest.raises(FrozenInstanceError):
        one.non_zero_cpu = 1  # type: ignore[misc]


@pytest.mark.parametrize("read", [pod_resources, pod_requests])
def test_a_bad_quantity_names_the_pod_and_the_resource(read: object) -> None:
    assert callable(read)
    with pytest.raises(QuantityError, match=r"^pod default/web: memory: '1 Gi' is not a quantity"):
        read(pod(asks(memory="1 Gi")), NEWEST_RULES)


def test_a_bad_quantity_names_the_node_and_the_resource() -> None:
    node = Node(metadata=ObjectMeta(name="n1"), status=NodeStatus(allocatable={"cpu": "four"}))
    with pytest.raises(QuantityError, match=r"^node n1: cpu: 'four' is not a quantity"):
        node_allocatable(node)


@pytest.mark.parametrize(
    ("name", "scalar", "extended"),
    [
        ("example.com/gpu", True, True),
        ("example.com/GPU_1.x-y", True, True),
        ("localhost/x", True, True),
        ("hugepages-2Mi", True, False),
        ("attachable-volumes-aws-ebs", True, False),
        ("kubernetes.io/batch-cpu", True, False),
        ("node.kubernetes.io/x", True, False),
        ("mykubernetes.io/x", True, False),
        ("cpu", False, False),
        ("memory", False, False),
        ("pods", False, False),
        ("ephemeral-storage", False, False),
        ("widgets", False, False),
        ("requests.example.com/gpu", False, False),
        ("/gpu", False, False),
        ("example.com/", False, False),
        ("example.com/a/b", False, False),
        ("Example.com/gpu", False, False),
        ("example..com/gpu", False, False),
        ("example.com/-gpu", False, False),
        ("example.com/gpu\n", False, False),
        ("example.com/" + "g" * 63, True, True),
        ("example.com/" + "g" * 64, False, False),
        ("e" * 244 + "/gpu", True, True),
        ("e" * 245 + "/gpu", False, False),
    ],
)
def test_resource_names(name: str, scalar: bool, extended: bool) -> None:
    assert is_scalar_resource(name) is scalar
    assert is_extended_resource(name) is extended


def test_scheduler_units() -> None:
    amounts = {
        "cpu": Fraction(1, 3),
        "memory": Fraction(3, 2),
        "ephemeral-storage": Fraction(2),
        "example.com/gpu": Fraction(1),
        "pods": Fraction(110),
        "storage": Fraction(1),
    }
    assert scheduler_units(amounts) == {"cpu": 334, "memory": 2, "ephemeral-storage": 2, "example.com/gpu": 1}


@pytest.mark.parametrize(
    ("case", "node_status", "allocatable"),
    [
        (
            "everything",
            NodeStatus(allocatable={"cpu": "3920m", "memory": "1Gi", "pods": "110", "hugepages-2Mi": 0, "widgets": 1}),
            {"cpu": 3920, "memory": GI, "pods": 110, "hugepages-2Mi": 0},
        ),
        ("capacity stands in", NodeStatus(capacity={"cpu": 4, "pods": 10}), {"cpu": 4000, "pods": 10}),
        ("no pods allowed", NodeStatus(allocatable={"cpu": 4}, capacity={"pods": 10}), {"cpu": 4000, "pods": 0}),
    ],
)
def test_node_allocatable(case: str, node_status: NodeStatus, allocatable: dict[str, int]) -> None:
    assert node_allocatable(Node(status=node_status)) == allocatable, case


NAMES = ["cpu", "memory", "example.com/gpu"]
DEFAULTS = {"cpu": 100, "memory": 200 * MI * 1000}

lists_of_millis = st.dictionaries(st.sampled_from(NAMES), st.integers(min_value=0, max_value=5000))
init_lists = st.lists(st.tuples(lists_of_millis, st.booleans()), max_size=4)


def in_millis(millis: Mapping[str, int]) -> ResourceList:
    return {name: f"{amount}m" for name, amount in millis.items()}


def peak(name: str, containers: list[dict[str, int]], init: list[tuple[dict[str, int], bool]], default: int) -> int:
    """The millis needed at the worst moment of the pod's life, moment by moment."""
    moments = []
    started = 0
    for asked, sidecar in init:
        own = asked.get(name, default)
        moments.append(started + own)
        started += own if sidecar else 0
    moments.append(started + sum(each.get(name, default) for each in containers))
    return max(moments)


def in_units(name: str, millis: int) -> int:
    return millis if name == "cpu" else -(-millis // 1000)


@settings(deadline=None)
@given(st.lists(lists_of_millis, min_size=1, max_size=3), init_lists, lists_of_millis)
def test_requests_are_the_peak_of_the_pods_life(
    containers: list[dict[str, int]], init: list[tuple[dict[str, int], bool]], overhead: dict[str, int]
) -> None:
    resources: PodResources = pod_resources(
        pod(
            *[container(in_millis(each)) for each in containers],
            init=[container(in_millis(each), sidecar=sidecar) for each, sidecar in init],
            overhead=in_millis(overhead),
        ),
        NEWEST_RULES,
    )
    for name in NAMES:
        extra = overhead.get(name, 0)
        plain = in_units(name, peak(name, containers, init, 0) + extra)
        filled = in_units(name, peak(name, containers, init, DEFAULTS.get(name, 0)) + extra)
        assert resources.requests.get(name, 0) == plain
        assert resources.used.get(name, 0) == plain
        assert resources.balanced_requests.get(name, 0) == plain
        assert resources.score_requests.get(name, 0) == filled
        if name == "cpu":
            assert resources.non_zero_cpu == filled
        if name == "memory":
            assert resources.non_zero_memory == filled


@settings(deadline=None)
@given(lists_of_millis, lists_of_millis, lists_of_millis, st.booleans())
def test_a_resize_counts_at_its_larger_end(
    spec: dict[str, int], actuated: dict[str, int], allocated: dict[str, int], infeasible: bool
) -> None:
    held = holds(in_millis(actuated), in_millis(allocated))
    running = pod(container(in_millis(spec)), status=status(held, conditions=[INFEASIBLE] if infeasible else []))
    ends = [actuated, allocated] if infeasible else [spec, actuated, allocated]
    assert pod_resources(running, NEWEST_RULES).used == {
        name: in_units(name, max(end[name] for end in ends if name in end))
        for name in NAMES
        if any(name in end for end in ends)
    }
