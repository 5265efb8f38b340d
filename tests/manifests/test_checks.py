from __future__ import annotations

from typing import Any

import pytest

from podium.errors import InputError, QuantityError, SelectorError
from podium.manifests import load

from .objects import doc

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def refused(document: dict[str, Any], kind: type[InputError]) -> str:
    """What is said of a document that is refused for an error of this kind."""
    with pytest.raises(kind) as error:
        load(document)
    return str(error.value)


def pod(**spec: Any) -> dict[str, Any]:
    return doc("Pod", "web", spec=spec)


def with_resources(**resources: Any) -> dict[str, Any]:
    return pod(containers=[{}, {"resources": resources}])


def with_node_terms(*terms: Any) -> dict[str, Any]:
    return pod(affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": list(terms)}}})


def with_label_expression(**expression: Any) -> dict[str, Any]:
    selector = {"matchExpressions": [expression]}
    return pod(affinity={"podAntiAffinity": {REQUIRED: [{"labelSelector": selector, "topologyKey": "zone"}]}})


def constraint(**fields: Any) -> dict[str, Any]:
    return pod(
        topologySpreadConstraints=[{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"} | fields]
    )


@pytest.mark.parametrize(
    ("document", "where", "problem"),
    [
        (
            with_resources(requests={"cpu": "abc"}),
            "Pod default/web: spec.containers[1].resources.requests['cpu']",
            "'abc' is not a quantity",
        ),
        (
            with_resources(limits={"memory": "-1Gi"}),
            "Pod default/web: spec.containers[1].resources.limits['memory']",
            "'-1Gi' is negative; a quantity must be zero or more",
        ),
        (pod(overhead={"cpu": "1 m"}), "Pod default/web: spec.overhead['cpu']", "'1 m' is not a quantity"),
        (
            doc("Pod", "web", status={"containerStatuses": [{"allocatedResources": {"cpu": "x"}}]}),
            "Pod default/web: status.containerStatuses[0].allocatedResources['cpu']",
            "'x' is not a quantity",
        ),
        (doc("Node", "n", status={"capacity": {"pods": -5}}), "Node n: status.capacity['pods']", "-5 is negative"),
        (
            doc("PersistentVolume", "pv", spec={"capacity": {"storage": "ten"}}),
            "PersistentVolume pv: spec.capacity['storage']",
            "'ten' is not a quantity",
        ),
        (
            doc("CSIStorageCapacity", "c", "ns", capacity="much"),
            "CSIStorageCapacity ns/c: capacity",
            "'much' is not a quantity",
        ),
        (
            doc(
                "Deployment",
                "d",
                spec={"template": {"spec": {"initContainers": [{"resources": {"limits": {"cpu": "x"}}}]}}},
            ),
            "Deployment default/d: spec.template.spec.initContainers[0].resources.limits['cpu']",
            "'x' is not a quantity",
        ),
    ],
)
def test_refuses_quantities(document: dict[str, Any], where: str, problem: str) -> None:
    assert refused(document, QuantityError).startswith(f"input: {where}: {problem}")


@pytest.mark.parametrize(
    ("document", "field", "problem"),
    [
        (
            with_node_terms({"matchExpressions": [{"key": "a", "operator": "Is"}]}),
            f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchExpressions[0]",
            "operator 'Is' is unknown; use one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
        ),
        (
            with_node_terms({}, {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1", "2"]}]}),
            f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[1].matchExpressions[0]",
            "operator Gt takes exactly one value, got 2",
        ),
        (
            with_node_terms({"matchFields": [{"key": "metadata.name", "operator": "Exists"}]}),
            f"affinity.nodeAffinity.{REQUIRED}.nodeSelectorTerms[0].matchFields[0]",
            "operator 'Exists' is unknown; use one of In, NotIn",
        ),
        (
            pod(affinity={"nodeAffinity": {PREFERRED: [{"preference": {"matchExpressions": [{"operator": ""}]}}]}}),
            f"affinity.nodeAffinity.{PREFERRED}[0].preference.matchExpressions[0]",
            "operator '' is unknown",
        ),
        (
            with_label_expression(key="a", operator="Gt", values=["1"]),
            f"affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0]",
            "operator 'Gt' is unknown; use one of In, NotIn, Exists, DoesNotExist",
        ),
        (
            with_label_expression(key="a", operator="In"),
            f"affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0]",
            "operator In takes at least one value, got 0",
        ),
        (
            with_label_expression(key="a", operator="Exists", values=["b"]),
            f"affinity.podAntiAffinity.{REQUIRED}[0].labelSelector.matchExpressions[0]",
            "operator Exists takes no values, got 1",
        ),
    ],
)
def test_refuses_selectors(document: dict[str, Any], field: str, problem: str) -> None:
    assert refused(document, SelectorError).startswith(f"input: Pod default/web: spec.{field}: {problem}")


@pytest.mark.parametrize(
    ("document", "problem"),
    [
        (
            pod(tolerations=[{}, {"operator": "Is"}]),
            "tolerations[1].operator: 'Is' is unknown; use Equal or Exists",
        ),
        (constraint(maxSkew=0), "topologySpreadConstraints[0].maxSkew: must be 1 or more, got 0"),
        (
            constraint(whenUnsatisfiable="Never"),
            "topologySpreadConstraints[0].whenUnsatisfiable: 'Never' is unknown; use DoNotSchedule or ScheduleAnyway",
        ),
    ],
)
def test_refuses_what_would_mislead_scheduling(document: dict[str, Any], problem: str) -> None:
    assert refused(document, InputError) == f"input: Pod default/web: spec.{problem}"


@pytest.mark.parametrize(
    "document",
    [
        pod(),
        pod(containers=[]),
        with_resources(requests={"cpu": 1, "memory": 1.5e9, "example.com/gpu": "0"}),
        with_node_terms({}, {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["not a number"]}]}),
        with_label_expression(key="a", operator="NotIn", values=["b", "c"]),
        pod(tolerations=[{"key": "a"}, {"operator": "Exists"}, {"key": "a", "operator": "Lt", "value": "5"}]),
        constraint(whenUnsatisfiable="ScheduleAnyway"),
    ],
)
def test_accepts(document: dict[str, Any]) -> None:
    assert len(load(document)) == 1
