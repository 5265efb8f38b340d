from __future__ import annotations

from typing import Any

import pytest

from podium.manifests import load
from podium.manifests.defaults import default_pod
from podium.model import Pod

from .objects import Fields, doc, pod_of, yaml_of


def requests(resources: Fields) -> Fields:
    return pod_of({"containers": [{"resources": resources}]}).spec.containers[0].resources.requests


@pytest.mark.parametrize(
    ("resources", "expected"),
    [
        ({}, {}),
        ({"requests": {"cpu": "1"}}, {"cpu": "1"}),
        ({"limits": {"cpu": "2", "memory": "1Gi"}}, {"cpu": "2", "memory": "1Gi"}),
        ({"requests": {"cpu": "1"}, "limits": {"cpu": "2", "memory": "1Gi"}}, {"cpu": "1", "memory": "1Gi"}),
        ({"requests": {"cpu": "0"}, "limits": {"cpu": "2"}}, {"cpu": "0"}),
        ({"requests": {"memory": "1Gi"}, "limits": {}}, {"memory": "1Gi"}),
        # Finer than a thousandth is rounded up to it.
        ({"requests": {"cpu": "100u", "memory": "1.5"}}, {"cpu": "1m", "memory": "1.5"}),
        ({"limits": {"cpu": "1.0001"}}, {"cpu": "1001m"}),
        ({"requests": {"cpu": 0.00025}}, {"cpu": "1m"}),
    ],
)
def test_container_requests(resources: Fields, expected: Fields) -> None:
    assert requests(resources) == expected


def test_init_containers_request_their_limits() -> None:
    pod = pod_of({"initContainers": [{"resources": {"limits": {"cpu": "1"}}}]})

    assert pod.spec.init_containers[0].resources.requests == {"cpu": "1"}


@pytest.mark.parametrize(
    ("spec", "requests", "limits"),
    [
        # Without limits there is nothing to fill in.
        ({"resources": {}}, {}, {}),
        ({"resources": {"requests": {"cpu": "1"}}}, {"cpu": "1"}, {}),
        # No container asks: the limits are requested.
        ({"resources": {"limits": {"cpu": "2", "memory": "1Gi"}}}, {"cpu": "2", "memory": "1Gi"}, None),
        # Containers ask: what they need together, sidecars and init containers as scheduling counts them.
        (
            {
                "resources": {"limits": {"cpu": "4", "memory": "1Gi"}},
                "containers": [{"resources": {"requests": {"cpu": "1"}}}, {"resources": {"limits": {"cpu": "500m"}}}],
                "initContainers": [
                    {"resources": {"requests": {"cpu": "100m"}}, "restartPolicy": "Always"},
                    {"resources": {"requests": {"cpu": "200m"}}},
                ],
                "overhead": {"cpu": "1"},
            },
            {"cpu": "1600m", "memory": "1Gi"},
            None,
        ),
        # What the pod says itself stays; so does a resource that pods cannot have as a whole.
        (
            {
                "resources": {"requests": {"cpu": "3"}, "limits": {"cpu": "4", "example.com/gpu": "1"}},
                "containers": [{"resources": {"requests": {"cpu": "1", "memory": "1Gi"}}}],
            },
            {"cpu": "3", "memory": "1073741824"},
            None,
        ),
        # Huge pages: limits are summed up from the containers, and requested.
        (
            {
                "resources": {"requests": {"cpu": "1"}},
                "containers": [{"resources": {"limits": {"hugepages-2Mi": "4Mi", "cpu": "500m"}}}] * 2,
            },
            {"cpu": "1", "hugepages-2Mi": "8388608"},
            {"hugepages-2Mi": "8388608"},
        ),
        (
            {
                "resources": {"requests": {"hugepages-2Mi": "4Mi"}},
                "containers": [{"resources": {"limits": {"hugepages-2Mi": "4Mi"}}}],
            },
            {"hugepages-2Mi": "4Mi"},
            {},
        ),
        # Sums are of the amounts as written: 2 x 100u is one milli, not two.
        (
            {"resources": {"limits": {"cpu": "1"}}, "containers": [{"resources": {"requests": {"cpu": "100u"}}}] * 2},
            {"cpu": "1m"},
            None,
        ),
    ],
)
def test_pod_level_resources(spec: Fields, requests: Fields, limits: Fields | None) -> None:
    resources = pod_of(spec).spec.resources

    assert resources is not None
    assert resources.requests == requests
    assert resources.limits == (spec["resources"]["limits"] if limits is None else limits)


@pytest.mark.parametrize(
    ("host_network", "port", "expected"),
    [
        (False, {"containerPort": 80}, (80, 0, "TCP")),
        (True, {"containerPort": 80}, (80, 80, "TCP")),
        (True, {"containerPort": 80, "hostPort": 81, "protocol": "UDP"}, (80, 81, "UDP")),
        (False, {"containerPort": 80, "protocol": ""}, (80, 0, "TCP")),
        (True, {}, (0, 0, "TCP")),
    ],
)
@pytest.mark.parametrize("containers", ["containers", "initContainers"])
def test_ports(containers: str, host_network: bool, port: Fields, expected: tuple[Any, ...]) -> None:
    spec = pod_of({"hostNetwork": host_network, containers: [{"ports": [port]}]}).spec

    (made,) = [port for container in spec.containers + spec.init_containers for port in container.ports]
    assert (made.container_port, made.host_port, made.protocol) == expected


@pytest.mark.parametrize(
    ("volume", "expected"),
    [
        ({"rbd": {"image": "i"}}, {"rbd": {"image": "i"}}),
        ({"rbd": {"image": "i", "pool": ""}}, {"rbd": {"image": "i"}}),
        ({"rbd": {"image": "i", "pool": "p"}}, {"rbd": {"image": "i", "pool": "p"}}),
        ({"azureDisk": {"diskName": "d"}}, {"azureDisk": {"diskName": "d", "readOnly": False}}),
        ({"azureDisk": {"diskName": "d", "readOnly": True}}, {"azureDisk": {"diskName": "d", "readOnly": True}}),
    ],
)
def test_volumes(volume: Fields, expected: Fields) -> None:
    (made,) = pod_of({"volumes": [volume]}).spec.volumes

    assert yaml_of(made) == expected


def test_volumes_that_decide_nothing_are_left_out() -> None:
    claim = {"name": "data", "persistentVolumeClaim": {"claimName": "c"}}
    local = {"name": "tmp", "emptyDir": {}}  # autoscalers do not evict pods with local data
    pod = pod_of({"volumes": [local, claim, {"name": "token", "projected": {"sources": []}}]})

    assert yaml_of(pod.spec.volumes) == [local, claim]


def test_the_rest_of_the_spec() -> None:
    spec = pod_of({"schedulerName": "", "overhead": {"cpu": "10u"}}).spec

    assert spec.scheduler_name == "default-scheduler"
    assert spec.termination_grace_period_seconds == 30
    assert spec.overhead == {"cpu": "1m"}


def test_a_pod_that_says_everything_stays_the_same_object() -> None:
    spec = {
        "terminationGracePeriodSeconds": 0,
        "containers": [{"resources": {"limits": {"cpu": "2"}, "requests": {"cpu": "1"}}, "ports": [{"hostPort": 80}]}],
        "volumes": [{"name": "v", "csi": {"driver": "d"}}],
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{"topologyKey": "z"}]}},
        "topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}],
    }
    pod = load(doc("Pod", "web", spec=spec)).of(Pod)[0]

    assert default_pod(pod) is pod
