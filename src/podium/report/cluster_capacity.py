"""The answer in the shape that sigs.k8s.io/cluster-capacity writes with `-o json`: a ClusterCapacityReview."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import msgspec

from podium.answers import Capacity, Fits
from podium.objects import Pod
from podium.quantity import format_quantity, parse_quantity, value
from podium.resources import CPU, MEMORY, is_scalar_resource

GPU = "nvdia.com/gpu"
"""As cluster-capacity spells it; it writes 0 whatever a pod asks for."""


def to_review(answer: Capacity) -> dict[str, Any]:
    """The review as plain data; it says no time of creation, so that the same input gives the same output."""
    return {
        "spec": {
            "templates": [_template(fits.template) for fits in answer.fits],
            "replicas": answer.limit,
            "podRequirements": [_requirements(fits.template) for fits in answer.fits],
        },
        "status": {
            "creationTimestamp": None,
            "replicas": answer.count,
            "failReason": _fail_reason(answer),
            "pods": [_result(fits) for fits in answer.fits],
        },
    }


def _template(pod: Pod) -> dict[str, Any]:
    return {"kind": "Pod", "apiVersion": "v1", **msgspec.to_builtins(pod)}


def _requirements(pod: Pod) -> dict[str, Any]:
    amounts: dict[str, Fraction] = {}
    for container in pod.spec.containers:
        for name, quantity in container.resources.requests.items():
            amounts[name] = amounts.get(name, Fraction(0)) + parse_quantity(quantity)
    scalars = {name: value(amount) for name, amount in amounts.items() if is_scalar_resource(name)}
    primary = {
        CPU: format_quantity(amounts.get(CPU, Fraction(0))),
        MEMORY: format_quantity(amounts.get(MEMORY, Fraction(0)), binary=True),
        GPU: "0",
    }
    return {
        "podName": pod.name,
        "resources": {"primaryResources": primary, "scalarResources": scalars or None},
        "nodeSelectors": pod.spec.node_selector or None,
    }


def _fail_reason(answer: Capacity) -> dict[str, str]:
    if answer.stopped_by is None:
        return {"failType": "LimitReached", "failMessage": f"Maximum number of pods simulated: {answer.limit}"}
    return {"failType": "Unschedulable", "failMessage": answer.message}


def _result(fits: Fits) -> dict[str, Any]:
    nodes = [{"nodeName": node, "replicas": count} for node, count in fits.nodes.items()]
    return {"podName": fits.template.name, "replicasOnNodes": nodes, "failSummary": None}
