"""Names that Kubernetes does not know, and what the API server refuses, each with its path."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from podium.errors import InputError
from podium.manifests import load
from podium.model import Node

NODE = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1"}}
CONTAINER = {"name": "c", "image": "i"}
SELECTOR = {"matchLabels": {"app": "web"}}
TEMPLATE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [CONTAINER]}}


def pod(**spec: Any) -> dict[str, Any]:
    metadata = {"name": "web"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": [CONTAINER], **spec}}


def deployment(**spec: Any) -> dict[str, Any]:
    spec = {"selector": SELECTOR, "template": TEMPLATE, **spec}
    return {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"}, "spec": spec}


def budget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "web"}, "spec": spec}


def container(**fields: Any) -> dict[str, Any]:
    return pod(containers=[{**CONTAINER, **fields}])


def tainted(*taints: dict[str, str]) -> dict[str, Any]:
    return {**NODE, "metadata": {"name": "n2"}, "spec": {"taints": list(taints)}}


def sliced(taint: dict[str, str]) -> dict[str, Any]:
    pool = {"name": "n1", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.example.com", "nodeName": "n1", "pool": pool, "devices": [{"name": "d", "taints": [taint]}]}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceSlice", "metadata": {"name": "s"}, "spec": spec}


def claiming(toleration: dict[str, Any]) -> dict[str, Any]:
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "tolerations": [toleration]}}
    spec = {"devices": {"requests": [request]}}
    return {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "c"}, "spec": spec}


def written(folder: Path, *objects: dict[str, Any]) -> str:
    path = folder / "input.json"
    path.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
    return str(path)


UNKNOWN = {
    "a field of a container": (
        container(resorces={}),
        "Pod default/web: spec.containers[0].resorces: unknown field; did you mean resources?",
    ),
    "a field of an affinity": (
        pod(affinity={"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecutoin": {}}}),
        "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecutoin: unknown field; did you mean "
        "requiredDuringSchedulingIgnoredDuringExecution?",
    ),
    "a field of another letter case": (pod(nodename="n1"), "spec.nodename: unknown field; did you mean nodeName?"),
    "a field that is like no other": (pod(zzz=1), "Pod default/web: spec.zzz: unknown field"),
    "a field of a template": (
        deployment(template={**TEMPLATE, "spce": {}}),
        "Deployment default/web: spec.template.spce: unknown field; did you mean spec?",
    ),
    "a kind": (
        {**deployment(), "kind": "Deploymnet"},
        "Deploymnet default/web: kind 'Deploymnet' is unknown in apps/v1; did you mean Deployment?",
    ),
    "a kind of another group": (
        {**deployment(), "apiVersion": "batch/v1"},
        "Deployment default/web: kind 'Deployment' is not in batch/v1; use apps/v1",
    ),
    "a group": (
        {**deployment(), "apiVersion": "app/v1"},
        "Deployment default/web: API group 'app' is unknown; did you mean apps?",
    ),
}


@pytest.mark.parametrize(("obj", "warning"), UNKNOWN.values(), ids=UNKNOWN)
def test_an_unknown_name_is_a_warning(obj: dict[str, Any], warning: str, tmp_path: Path) -> None:
    file = written(tmp_path, NODE, obj)

    unknown = load(file).unknown

    assert len(unknown) == 1
    assert unknown[0].startswith(f"{file}: ")
    assert unknown[0].endswith(warning)
    with pytest.raises(InputError) as refused:
        load(file, strict=True)
    assert str(refused.value) == unknown[0]


KNOWN = {
    "fields of old releases": {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "s", "selfLink": "/", "clusterName": "c"},
        "spec": {"topologyKeys": ["*"], "ipFamily": "IPv4"},
    },
    "managed fields": {
        **NODE,
        "metadata": {"name": "n2", "managedFields": [{"manager": "k", "fieldsV1": {"f:x": {}}}]},
    },
    "what a device's driver is told": {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"config": [{"opaque": {"driver": "gpu.example.com", "parameters": {"kind": "Gpu", "sharing": {}}}}]},
    },
    "labels and annotations": {**NODE, "metadata": {"name": "n2", "labels": {"a": "b"}, "annotations": {"c": "d"}}},
    "times with fractions, places and none": {
        **pod(),
        "metadata": {"name": "p", "creationTimestamp": None, "deletionTimestamp": "2026-01-31T12:00:00.123456789Z"},
        "status": {"startTime": "2026-01-31T12:00:00+02:00"},
    },
    "a kind of somebody else's": {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": "j"}},
    "a budget of any name": {**budget(maxUnavailable=1), "metadata": {"name": "Web_Budget"}},
    "a device, by its limit": container(resources={"limits": {"nvidia.com/gpu": 1, "hugepages-2Mi": "4Mi"}}),
    "devices of old releases": container(resources={"requests": {"alpha.kubernetes.io/nvidia-gpu": 1}}),
    "a name of a managed node": {**NODE, "metadata": {"name": "ip-10-0-0-35.eu-central-1.compute.internal"}},
    "a kind that scheduling does not read": {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}},
}


@pytest.mark.parametrize("obj", KNOWN.values(), ids=KNOWN)
def test_a_known_name_is_no_warning(obj: dict[str, Any], tmp_path: Path) -> None:
    assert load(written(tmp_path, NODE, obj), strict=True).unknown == ()


AFFINITY = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
WEIGHTLESS = {"weight": 0, "preference": {"matchExpressions": [{"key": "a", "operator": "Exists"}]}}

SPREAD = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", "minDomains": 2}

REFUSED = {
    "no such version": ({**deployment(), "apiVersion": "apps/v9"}, "apiVersion: there is no Deployment in 'apps/v9'"),
    "the version of another group": (
        {**deployment(), "apiVersion": "v1"},
        "apiVersion: there is no Deployment in 'v1'; use apps/v1",
    ),
    "no time": (
        {**pod(), "metadata": {"name": "p", "creationTimestamp": "yesterday"}},
        "metadata.creationTimestamp: 'yesterday' is not a time such as 2026-01-31T12:00:00Z",
    ),
    "a date without a time": (
        {**deployment(), "metadata": {"name": "d", "deletionTimestamp": "2026-01-31"}},
        "metadata.deletionTimestamp: '2026-01-31' is not a time",
    ),
    "no such month": (
        {**pod(), "status": {"startTime": "2026-13-01T00:00:00Z"}},
        "status.startTime: '2026-13-01T00:00:00Z' is not a time",
    ),
    "no containers": (pod(containers=None), "spec.containers: is required"),
    "no containers in a template": (
        deployment(template={"metadata": {"labels": {"app": "web"}}, "spec": {"containers": []}}),
        "Deployment default/web: spec.template.spec.containers: is required, with at least one container",
    ),
    "a container of a template that is null": (
        deployment(template={"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [None]}}),
        "spec.template.spec.containers[0]: is null, not a container",
    ),
    "a ReplicationController of other pods": (
        {
            "apiVersion": "v1",
            "kind": "ReplicationController",
            "metadata": {"name": "r"},
            "spec": {"selector": {"a": "b"}, "template": {"metadata": {"labels": {"a": "c"}}}},
        },
        "spec.template.metadata.labels: must be labels that spec.selector matches",
    ),
    "an update that cannot go on": (
        deployment(strategy={"rollingUpdate": {"maxSurge": 0, "maxUnavailable": "0%"}}),
        "spec.strategy.rollingUpdate.maxUnavailable: must not be 0 where maxSurge is 0",
    ),
    "an update of more than all": (
        deployment(strategy={"rollingUpdate": {"maxUnavailable": "150%"}}),
        "spec.strategy.rollingUpdate.maxUnavailable: must be at most 100%, got 150%",
    ),
    "an autoscaler whose maximum is below the minimum": (
        {
            "apiVersion": "autoscaling/v2",
            "kind": "HorizontalPodAutoscaler",
            "metadata": {"name": "h"},
            "spec": {"minReplicas": 5, "maxReplicas": 2},
        },
        "spec.maxReplicas: must be 5 or more, got 2",
    ),
    "no such protocol": (
        container(ports=[{"containerPort": 80, "protocol": "HTTP"}]),
        "spec.containers[0].ports[0].protocol: 'HTTP' is unknown; use TCP, UDP, SCTP",
    ),
    "a template, misspelt": (
        {**deployment(template=None), "spec": {**deployment(template=None)["spec"], "templete": {}}},
        "spec.template: is required; spec.templete: unknown field; did you mean template?",
    ),
    "no template": (deployment(template=None), "spec.template: is required"),
    "no template of a Job": (
        {"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "j"}, "spec": {"parallelism": 2}},
        "Job default/j: spec.template: is required",
    ),
    "no template of a CronJob": (
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "j"}, "spec": {"jobTemplate": None}},
        "CronJob default/j: spec.jobTemplate.spec.template: is required",
    ),
    "no selector": (deployment(selector=None), "spec.selector: is required"),
    "a selector of other pods": (
        deployment(selector={"matchLabels": {"app": "db"}}),
        "spec.template.metadata.labels: must be labels that spec.selector matches",
    ),
    "a budget with both bounds": (
        budget(minAvailable=1, maxUnavailable=1),
        "spec: minAvailable and maxUnavailable cannot both be set",
    ),
    "a negative budget": (budget(minAvailable=-1), "spec.minAvailable: must be 0 or more, got -1"),
    "a budget of more than all": (budget(maxUnavailable="101%"), "spec.maxUnavailable: must be a number or a perc"),
    "an unknown policy of a budget": (
        budget(unhealthyPodEvictionPolicy="Never"),
        "spec.unhealthyPodEvictionPolicy: must be IfHealthyBudget or AlwaysAllow, got 'Never'",
    ),
    "a preference without a weight": (
        pod(affinity={"nodeAffinity": {PREFERRED: [WEIGHTLESS]}}),
        f"spec.affinity.nodeAffinity.{PREFERRED}[0].weight: must be between 1 and 100, got 0",
    ),
    "pod affinity without a topology key": (
        pod(affinity={"podAffinity": {AFFINITY: [{"labelSelector": SELECTOR}]}}),
        f"spec.affinity.podAffinity.{AFFINITY}[0].topologyKey: is required",
    ),
    "a port out of range": (
        container(ports=[{"containerPort": 65536}]),
        "spec.containers[0].ports[0].containerPort: must be between 1 and 65535, got 65536",
    ),
    "a host port out of range": (
        container(ports=[{"containerPort": 1, "hostPort": -1}]),
        "spec.containers[0].ports[0].hostPort: must be between 1 and 65535, got -1",
    ),
    "a request above its limit": (
        container(resources={"requests": {"cpu": "2"}, "limits": {"cpu": "1"}}),
        "spec.containers[0].resources.requests['cpu']: 2 is more than the limit, 1",
    ),
    "half a device": (
        container(resources={"limits": {"nvidia.com/gpu": "500m"}}),
        "spec.containers[0].resources.limits['nvidia.com/gpu']: must be a whole number, got 500m",
    ),
    "a field that cannot be matched": (
        pod(
            affinity={
                "nodeAffinity": {
                    AFFINITY: {
                        "nodeSelectorTerms": [{"matchFields": [{"key": "name", "operator": "In", "values": ["n1"]}]}]
                    }
                }
            }
        ),
        "nodeSelectorTerms[0].matchFields[0].key: 'name' is unknown; use metadata.name",
    ),
    "the key of a taint": (tainted({"effect": "NoSchedule"}), "spec.taints[0].key: is required"),
    "the effect of a taint": (
        tainted({"key": "a", "effect": "NoSchedul"}),
        "spec.taints[0].effect: 'NoSchedul' is unknown; use NoSchedule, PreferNoSchedule, NoExecute",
    ),
    "the effect of a toleration": (
        pod(tolerations=[{"key": "a", "operator": "Exists", "effect": "noSchedule"}]),
        "spec.tolerations[0].effect: 'noSchedule' is unknown; use NoSchedule,",
    ),
    "two containers of one name": (
        pod(initContainers=[{"name": "a"}], containers=[{"name": "a"}]),
        "spec.containers[0].name: 'a' is the name of another container",
    ),
    "a host port that the node does not have": (
        pod(hostNetwork=True, containers=[{"name": "a", "ports": [{"containerPort": 80, "hostPort": 81}]}]),
        "spec.containers[0].ports[0].hostPort: must be the containerPort, 80, when hostNetwork is true, got 81",
    ),
    "a gate without a name": (pod(schedulingGates=[{"name": ""}]), "spec.schedulingGates[0].name: is required"),
    "a gate twice": (pod(schedulingGates=[{"name": "a"}] * 2), "spec.schedulingGates[1].name: occurs twice"),
    "Exists with a value": (
        pod(tolerations=[{"key": "a", "operator": "Exists", "value": "b"}]),
        "spec.tolerations[0].value: must be empty when operator is Exists, got 'b'",
    ),
    "a device's taint for pods": (
        sliced({"key": "a", "effect": "PreferNoSchedule"}),
        "spec.devices[0].taints[0].effect: 'PreferNoSchedule' is unknown; use NoSchedule, NoExecute, None",
    ),
    "a toleration of devices with a value": (
        claiming({"key": "a", "operator": "Exists", "value": "b"}),
        "tolerations[0].value: must be empty when operator is Exists, got 'b'",
    ),
    "any key with a value": (
        pod(tolerations=[{"operator": "Equal", "value": "b"}]),
        "spec.tolerations[0].operator: must be Exists when key is empty",
    ),
    "seconds without NoExecute": (
        pod(tolerations=[{"key": "a", "operator": "Exists", "tolerationSeconds": 5}]),
        "spec.tolerations[0].effect: must be NoExecute when tolerationSeconds is set",
    ),
    "minDomains that can have no effect": (
        pod(topologySpreadConstraints=[SPREAD | {"whenUnsatisfiable": "ScheduleAnyway"}]),
        "spec.topologySpreadConstraints[0].minDomains: can only be used with whenUnsatisfiable: DoNotSchedule",
    ),
    "no domain": (
        pod(topologySpreadConstraints=[SPREAD | {"minDomains": 0}]),
        "spec.topologySpreadConstraints[0].minDomains: must be 1 or more, got 0",
    ),
    "spread over nothing": (
        pod(topologySpreadConstraints=[SPREAD | {"topologyKey": ""}]),
        "spec.topologySpreadConstraints[0].topologyKey: is required",
    ),
    "an image beyond 64 bits": (
        {**NODE, "metadata": {"name": "n2"}, "status": {"images": [{"names": ["i"], "sizeBytes": 2**63}]}},
        "Node n2: status.images[0].sizeBytes: expected int <= 9223372036854775807",
    ),
}
DOUBTED = {
    "a name that is no part of an address": (
        {**budget(maxUnavailable=1), "metadata": {"name": "a/b"}},
        "metadata.name: 'a/b' must not be '.' or '..', nor contain '/' or '%'",
    ),
    "a device without a limit": (
        container(resources={"requests": {"nvidia.com/gpu": 1}}),
        "spec.containers[0].resources.limits['nvidia.com/gpu']: is required, as nvidia.com/gpu cannot be "
        "overcommitted; set it to the request, 1",
    ),
    "more devices than requested": (
        container(resources={"requests": {"nvidia.com/gpu": 1}, "limits": {"nvidia.com/gpu": 2}}),
        "spec.containers[0].resources.requests['nvidia.com/gpu']: 1 must be the limit, 2, as nvidia.com/gpu",
    ),
    "more huge pages than requested": (
        container(resources={"requests": {"hugepages-2Mi": "2Mi", "cpu": 1}, "limits": {"hugepages-2Mi": "4Mi"}}),
        "spec.containers[0].resources.requests['hugepages-2Mi']: 2Mi must be the limit, 4Mi",
    ),
    "a resource without a domain": (
        container(resources={"limits": {"gpu": 1}}),
        "spec.containers[0].resources.limits: 'gpu' is unknown; use cpu, memory, ephemeral-storage, hugepages-<size>, "
        "or a name with a domain such as example.com/gpu",
    ),
    "a resource of a wrong domain": (
        container(resources={"limits": {"Nvidia.com/gpu": 1}}),
        "spec.containers[0].resources.limits: 'Nvidia.com/gpu' prefix part must consist of dot-separated",
    ),
    "a resource of a quota": (
        container(resources={"limits": {"requests.nvidia.com/gpu": 1}}),
        "'requests.nvidia.com/gpu' is an invalid extended resource name",
    ),
    "a name in upper case": (
        {**NODE, "metadata": {"name": "Node_1"}},
        "Node Node_1: metadata.name: 'Node_1' must consist of dot-separated lower case",
    ),
    "a name that is too long": (
        {**NODE, "metadata": {"name": "n" * 254}},
        "metadata.name: 'nnn",
    ),
    "a namespace with a dot": (
        {**pod(), "metadata": {"name": "web", "namespace": "a.b"}},
        "metadata.namespace: 'a.b' must consist of lower case alphanumeric characters or '-'",
    ),
    "a Namespace with a dot": (
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a.b"}},
        "Namespace a.b: metadata.name: 'a.b' must consist of lower case alphanumeric",
    ),
    "the key of a label": (
        {**NODE, "metadata": {"name": "n2", "labels": {"a/b/c": ""}}},
        "Node n2: metadata.labels: 'a/b/c' must have at most one '/'",
    ),
    "the value of a label": (
        deployment(template={**TEMPLATE, "metadata": {"labels": {"app": "web", "of": "the shop"}}}),
        "spec.template.metadata.labels['of']: 'the shop' must consist of alphanumeric characters",
    ),
    "a node selector": (
        pod(nodeSelector={"zone": "a b"}),
        "spec.nodeSelector['zone']: 'a b' must consist of alphanumeric characters",
    ),
    "the key of a selector": (
        budget(selector={"matchLabels": {"app": "web", "/x": ""}}),
        "spec.selector.matchLabels: '/x' prefix part must not be empty",
    ),
    "the key of an expression": (
        pod(
            affinity={
                "nodeAffinity": {AFFINITY: {"nodeSelectorTerms": [{"matchExpressions": [{"operator": "Exists"}]}]}}
            }
        ),
        "nodeSelectorTerms[0].matchExpressions[0].key: is required",
    ),
    "the name of a container": (
        container(name="My App"),
        "spec.containers[0].name: 'My App' must consist of lower case alphanumeric characters or '-'",
    ),
    "the value of a taint": (
        tainted({"key": "a", "value": "b c", "effect": "NoSchedule"}),
        "spec.taints[0].value: 'b c' must consist of alphanumeric characters",
    ),
    "a taint twice": (
        tainted(*[{"key": "a", "value": value, "effect": "NoExecute"} for value in "bc"]),
        "spec.taints[1]: a:NoExecute occurs twice",
    ),
    "the key of a toleration": (
        pod(tolerations=[{"key": "a b", "operator": "Exists"}]),
        "spec.tolerations[0].key: 'a b' name part must consist of",
    ),
    "the value of a toleration": (
        pod(tolerations=[{"key": "a", "value": "-"}]),
        "spec.tolerations[0].value: '-' must consist of",
    ),
}


@pytest.mark.parametrize(("obj", "problem"), REFUSED.values(), ids=REFUSED)
def test_what_the_api_server_refuses_is_refused(obj: dict[str, Any], problem: str, tmp_path: Path) -> None:
    file = written(tmp_path, NODE, obj)

    with pytest.raises(InputError) as refused:
        load(file)

    assert str(refused.value).startswith(f"{file}: ")
    assert problem in str(refused.value)


@pytest.mark.parametrize(("obj", "problem"), DOUBTED.values(), ids=DOUBTED)
def test_what_changes_nothing_for_the_scheduler_is_warned_of(obj: dict[str, Any], problem: str, tmp_path: Path) -> None:
    file = written(tmp_path, NODE, obj)

    (warning,) = load(file).unknown
    with pytest.raises(InputError) as refused:
        load(file, strict=True)

    assert warning == str(refused.value)
    assert warning.startswith(f"{file}: ")
    assert problem in warning
    assert warning.endswith("; the API server would refuse it")


def test_other_objects_of_the_same_input_come_with_the_same_unknown_names(tmp_path: Path) -> None:
    objects = load(written(tmp_path, NODE, next(iter(DOUBTED.values()))[0]))

    changed = objects.replaced(objects.of(Node))

    assert changed.unknown == objects.unknown != ()


def test_taints_and_tolerations_of_devices_have_rules_of_their_own(tmp_path: Path) -> None:
    tolerated = {"operator": "Equal", "effect": "NoSchedule", "tolerationSeconds": 5}
    file = written(tmp_path, NODE, sliced({"key": "a", "effect": "None"}), claiming(tolerated))

    assert not load(file).unknown


def test_what_only_the_api_server_minds_is_taken_from_a_program() -> None:
    gpu = container(resources={"requests": {"nvidia.com/gpu": 1}})

    assert len(load({**NODE, "metadata": {"name": "Node_1", "labels": {"a b": "c d"}}}, gpu)) == 2


def test_a_key_that_is_there_twice_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "input.json"
    file.write_text('{"apiVersion": "v1", "kind": "Node", "metadata": {"name": "n1", "name": "n2"}}')

    with pytest.raises(InputError, match="document 1: Node n2: key 'name' is set twice"):
        load(str(file))
