"""What the API server refuses about the parts of pods, the workloads that make them and the budgets that guard them."""

from __future__ import annotations

import re
from typing import Any

from podium.errors import InputError
from podium.model import (
    Container,
    ContainerPort,
    PodAffinityTerm,
    PodSpec,
    PodTemplateSpec,
    PreferredSchedulingTerm,
    ResourceRequirements,
    WeightedPodAffinityTerm,
)
from podium.model.names import extended_resource_errors
from podium.model.quantity import parse_quantity
from podium.model.selectors import label_selector
from podium.model.workloads import DaemonSetSpec, PodDisruptionBudgetSpec, WorkloadSpec

_PERCENTAGE = re.compile(r"[0-9]+%")
_LAST_PORT = 65535


def check_preference(term: PreferredSchedulingTerm | WeightedPodAffinityTerm) -> None:
    """The weight of something preferred is between 1 and 100."""
    if not 1 <= term.weight <= 100:
        raise InputError(f"must be between 1 and 100, got {term.weight}", "weight")


def check_pod_affinity_term(term: PodAffinityTerm) -> None:
    if not term.topology_key:
        raise InputError("is required", "topologyKey")


def check_port(port: ContainerPort) -> None:
    """Port numbers; a host port of 0 is none."""
    if not 1 <= port.container_port <= _LAST_PORT:
        raise InputError(f"must be between 1 and {_LAST_PORT}, got {port.container_port}", "containerPort")
    if not 0 <= port.host_port <= _LAST_PORT:
        raise InputError(f"must be between 1 and {_LAST_PORT}, got {port.host_port}", "hostPort")


def check_container(container: Container) -> None:
    _check_resources(container.resources)


def check_pod_spec(spec: PodSpec) -> None:
    if spec.resources is not None:
        _check_resources(spec.resources)


def _check_resources(resources: ResourceRequirements) -> None:
    """No request above its limit, and extended resources in whole numbers."""
    for field, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        for name, quantity in amounts.items():
            where = f"resources.{field}[{name!r}]"
            if not extended_resource_errors(name) and parse_quantity(quantity).denominator != 1:
                raise InputError(f"must be a whole number, got {quantity}", where)
            limit = resources.limits.get(name)
            if field == "requests" and limit is not None and parse_quantity(quantity) > parse_quantity(limit):
                raise InputError(f"{quantity} is more than the limit, {limit}", where)


def check_budget(spec: PodDisruptionBudgetSpec) -> None:
    """At most one of the two bounds, which is a number that is not negative, or a percentage of up to 100%."""
    if spec.min_available is not None and spec.max_unavailable is not None:
        raise InputError("minAvailable and maxUnavailable cannot both be set")
    for field, bound in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if isinstance(bound, int) and bound < 0:
            raise InputError(f"must be 0 or more, got {bound}", field)
        if isinstance(bound, str) and (not _PERCENTAGE.fullmatch(bound) or int(bound[:-1]) > 100):
            raise InputError(f"must be a number or a percentage up to 100%, got {bound!r}", field)


def check_workload(spec: WorkloadSpec | DaemonSetSpec) -> None:
    """A workload has a template, and a selector that matches the template's labels."""
    if spec.template == PodTemplateSpec():
        raise InputError("is required", "template")
    if spec.selector is not None and not label_selector(spec.selector).matches(spec.template.metadata.labels):
        raise InputError("must be labels that spec.selector matches", "template.metadata.labels")


def refuse_null_containers(value: Any) -> None:
    """InputError for a pod, as it is written, whose containers are null or none."""
    spec = value.get("spec") if isinstance(value, dict) else None
    if isinstance(spec, dict) and "containers" in spec and not spec["containers"]:
        raise InputError("is required, with at least one container", "spec.containers")
