"""Finds fields that the API server would refuse and the scheduler cannot work with, and names their paths."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any, Literal

import msgspec
import msgspec.inspect as inspect

from podium.errors import InputError, SelectorError
from podium.manifests._devices import (
    check_claim,
    check_class,
    check_constraint,
    check_count,
    check_range,
    check_request,
    check_slice,
)
from podium.manifests._pod_groups import (
    check_constraints,
    check_disruption_mode,
    check_gang,
    check_pod_group,
    check_policy,
    check_scheduling_group,
)
from podium.model import (
    Container,
    ContainerPort,
    DeviceClass,
    LabelSelector,
    NodeSelectorTerm,
    PodAffinityTerm,
    PodSpec,
    PodTemplateSpec,
    PreferredSchedulingTerm,
    Quantity,
    ResourceRequirements,
    SelectorRequirement,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from podium.model.devices import (
    CapacityRequestPolicyRange,
    DeviceClaim,
    DeviceConstraint,
    DeviceRequest,
    DeviceSubRequest,
    DeviceTaint,
    DeviceToleration,
    ExactDeviceRequest,
    ResourceSliceSpec,
)
from podium.model.meta import (
    NATIVE_DOMAIN,
    Object,
    ObjectMeta,
    dns_label_errors,
    dns_subdomain_errors,
    extended_resource_errors,
    integer,
    label_value_errors,
    qualified_name_errors,
)
from podium.model.objects import (
    CronJobSpec,
    DaemonSetSpec,
    DeploymentSpec,
    HorizontalPodAutoscalerSpec,
    JobSpec,
    JobTemplateSpec,
    NodeSpec,
    PodDisruptionBudgetSpec,
    ReplicationControllerSpec,
    StatefulSetSpec,
    Taint,
    UpdateStrategy,
    WorkloadSpec,
    int_or_percent,
)
from podium.model.pod import PodSchedulingGroup
from podium.model.pod_groups import (
    DisruptionMode,
    GangSchedulingPolicy,
    PodGroupSchedulingConstraints,
    PodGroupSchedulingPolicy,
    PodGroupSpec,
)
from podium.model.quantity import check_quantity, parse_quantity
from podium.model.resources import HUGE_PAGES
from podium.model.selectors import label_selector
from podium.wording import one_line

_PERCENTAGE = re.compile(r"[0-9]+%")
_LAST_PORT = 65535
_PROTOCOLS = ("TCP", "UDP", "SCTP")
_SHOWN = 70
"""The maximum number of characters shown of an invalid name."""
_STANDARD = ("cpu", "memory", "ephemeral-storage")
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
_DEVICE_EFFECTS = ("NoSchedule", "NoExecute", "None")


def _segment_errors(name: str) -> list[str]:
    """Why a name cannot be a path segment, which is all that some kinds require of it."""
    return ["must not be '.' or '..', nor contain '/' or '%'"] if name in (".", "..") or set(name) & {*"/%"} else []


_NAME_ERRORS = {
    "Namespace": dns_label_errors,
    "PodDisruptionBudget": _segment_errors,
    "Service": dns_label_errors,
}


def invalid_name(obj: Object) -> InputError | None:
    """What is wrong with the object's name or namespace, in the syntax of its kind."""
    kind, metadata = type(obj).__name__, obj.metadata
    try:
        _refuse(metadata.name, _NAME_ERRORS.get(kind, dns_subdomain_errors), "metadata.name")
        _refuse(metadata.namespace, dns_label_errors, "metadata.namespace")
    except InputError as error:
        return error
    return None


def validate_metadata(metadata: ObjectMeta) -> None:
    _check_labels(metadata.labels, "labels")


def _check_labels(labels: dict[str, str], field: str) -> None:
    for key, value in labels.items():
        _require(key, field)
        _refuse(key, qualified_name_errors, field)
        _refuse(value, label_value_errors, f"{field}[{key!r}]")


def _refuse(name: str, errors: Callable[[str], list[str]], where: str) -> None:
    """InputError for a name, if there is one, with errors of this kind."""
    for error in errors(name) if name else ():
        raise InputError(f"{name if len(name) <= _SHOWN else f'{name[:_SHOWN]}...'!r} {error}", where)


def _require(name: str, where: str) -> None:
    if not name:
        raise InputError("is required", where)


def check_preference(term: PreferredSchedulingTerm | WeightedPodAffinityTerm) -> None:
    """Check that the weight of a preference is between 1 and 100."""
    if not 1 <= term.weight <= 100:
        raise InputError(f"must be between 1 and 100, got {term.weight}", "weight")


def check_pod_affinity_term(term: PodAffinityTerm) -> None:
    _require(term.topology_key, "topologyKey")


def validate_topology_key(term: PodAffinityTerm | TopologySpreadConstraint) -> None:
    _refuse(term.topology_key, qualified_name_errors, "topologyKey")


def validate_node_spec(spec: NodeSpec) -> None:
    """Check that no two taints have the same key and effect."""
    seen: set[tuple[str, str]] = set()
    for position, each in enumerate(spec.taints):
        taint = (each.key, each.effect)
        if taint in seen:
            raise InputError(f"{':'.join(taint)} occurs twice", f"taints[{position}]")
        seen.add(taint)


def check_taint(taint: Taint) -> None:
    """Check that a taint has a key and a known effect."""
    _require(taint.key, "key")
    _require(taint.effect, "effect")
    _check_effect(taint.effect, _DEVICE_EFFECTS if isinstance(taint, DeviceTaint) else _EFFECTS)


def validate_taint(taint: Taint) -> None:
    """Check that the taint's key and value are valid for a label."""
    _refuse(taint.key, qualified_name_errors, "key")
    _refuse(taint.value, label_value_errors, "value")


def _check_effect(effect: str, known: tuple[str, ...]) -> None:
    if effect and effect not in known:
        raise InputError(f"{effect!r} is unknown; use {', '.join(known)}", "effect")


def check_port(port: ContainerPort) -> None:
    """Check port numbers and protocol; a host port of 0 means none."""
    if not 1 <= port.container_port <= _LAST_PORT:
        raise InputError(f"must be between 1 and {_LAST_PORT}, got {port.container_port}", "containerPort")
    if not 0 <= port.host_port <= _LAST_PORT:
        raise InputError(f"must be between 1 and {_LAST_PORT}, got {port.host_port}", "hostPort")
    if port.protocol not in ("", *_PROTOCOLS):
        raise InputError(f"{port.protocol!r} is unknown; use {', '.join(_PROTOCOLS)}", "protocol")


def check_container(container: Container) -> None:
    _check_resources(container.resources)


def validate_container(container: Container) -> None:
    """Check the container's name, resource names, and the limits of resources that cannot be overcommitted."""
    _refuse(container.name, dns_label_errors, "name")
    limits, requests = container.resources.limits, container.resources.requests
    for field, amounts in (("limits", limits), ("requests", requests)):
        for name in amounts:
            _check_resource_name(name, f"resources.{field}")
    for name, request in requests.items():
        if name.startswith(HUGE_PAGES) or not extended_resource_errors(name):
            _check_exact_limit(name, request, limits.get(name))


def _check_resource_name(name: str, where: str) -> None:
    """InputError for a name that is neither a standard container resource nor qualified with a domain."""
    _require(name, where)
    _refuse(name, qualified_name_errors, where)
    if "/" not in name and name not in _STANDARD and not name.startswith(HUGE_PAGES):
        known = f"{', '.join(_STANDARD)}, {HUGE_PAGES}<size>"
        raise InputError(f"{name!r} is unknown; use {known}, or a name with a domain such as example.com/{name}", where)
    if "/" in name and NATIVE_DOMAIN not in name:
        _refuse(name, extended_resource_errors, where)


def check_pod_spec(spec: PodSpec) -> None:
    """Check that containers have distinct names, and that host ports match where the pod uses the host network."""
    if spec.resources is not None:
        _check_resources(spec.resources)
    seen: set[str] = set()
    for field, containers in (("initContainers", spec.init_containers), ("containers", spec.containers)):
        for position, container in enumerate(containers):
            if container.name and container.name in seen:
                raise InputError(f"{container.name!r} is the name of another container", f"{field}[{position}].name")
            seen.add(container.name)
            for number, port in enumerate(container.ports if spec.host_network else ()):
                if port.host_port not in (0, port.container_port):
                    problem = f"must be the containerPort, {port.container_port}, when hostNetwork is true"
                    raise InputError(
                        f"{problem}, got {port.host_port}", f"{field}[{position}].ports[{number}].hostPort"
                    )
    gates = [gate.name for gate in spec.scheduling_gates]
    for position, name in enumerate(gates):
        if not name or name in gates[:position]:
            raise InputError("occurs twice" if name else "is required", f"schedulingGates[{position}].name")


def validate_pod_spec(spec: PodSpec) -> None:
    _check_labels(spec.node_selector or {}, "nodeSelector")


def _check_resources(resources: ResourceRequirements) -> None:
    """Check that no request exceeds its limit, and that extended resources are whole numbers."""
    for field, amounts in (("limits", resources.limits), ("requests", resources.requests)):
        for name, quantity in amounts.items():
            where, limit = f"resources.{field}[{name!r}]", resources.limits.get(name)
            if not extended_resource_errors(name) and parse_quantity(quantity).denominator != 1:
                raise InputError(f"must be a whole number, got {quantity}", where)
            if field == "requests" and limit is not None and parse_quantity(quantity) > parse_quantity(limit):
                raise InputError(f"{quantity} is more than the limit, {limit}", where)


def _check_exact_limit(name: str, request: Quantity, limit: Quantity | None) -> None:
    """Check that the request equals the limit for extended resources and huge pages, which cannot be overcommitted."""
    if limit is None:
        problem = f"is required, as {name} cannot be overcommitted; set it to the request, {request}"
        raise InputError(problem, f"resources.limits[{name!r}]")
    if parse_quantity(request) != parse_quantity(limit):
        problem = f"{request} must be the limit, {limit}, as {name} cannot be overcommitted"
        raise InputError(problem, f"resources.requests[{name!r}]")


def check_budget(spec: PodDisruptionBudgetSpec) -> None:
    """Check that at most one bound is set, a number of at least 0 or a percentage of at most 100%, and the policy."""
    if spec.min_available is not None and spec.max_unavailable is not None:
        raise InputError("minAvailable and maxUnavailable cannot both be set")
    for field, bound in (("minAvailable", spec.min_available), ("maxUnavailable", spec.max_unavailable)):
        if isinstance(bound, int) and bound < 0:
            raise InputError(f"must be 0 or more, got {bound}", field)
        if isinstance(bound, str) and (not _PERCENTAGE.fullmatch(bound) or integer(bound[:-1]) > 100):
            raise InputError(f"must be a number or a percentage up to 100%, got {one_line(bound, 60)!r}", field)
    policy = spec.unhealthy_pod_eviction_policy
    if policy not in (None, "IfHealthyBudget", "AlwaysAllow"):
        raise InputError(f"must be IfHealthyBudget or AlwaysAllow, got {policy!r}", "unhealthyPodEvictionPolicy")


def check_strategy(strategy: UpdateStrategy) -> None:
    """Check the type, and that bounds are a number of at least 0 or a percentage."""
    if strategy.type not in ("", "RollingUpdate", "Recreate", "OnDelete"):
        raise InputError(f"{strategy.type!r} is unknown; use RollingUpdate, Recreate or OnDelete", "type")
    rolling = strategy.rolling_update
    for field, bound in (("maxSurge", rolling.max_surge), ("maxUnavailable", rolling.max_unavailable)):
        if bound is not None:
            try:
                number = int_or_percent(bound, 0, up=True)
            except InputError as error:
                raise error.at(f"rollingUpdate.{field}") from None
            if number < 0:
                raise InputError(f"must be 0 or more, got {bound}", f"rollingUpdate.{field}")
            if field == "maxUnavailable" and isinstance(bound, str) and int(bound.strip()[:-1]) > 100:
                raise InputError(f"must be at most 100%, got {bound}", f"rollingUpdate.{field}")
    if {rolling.max_surge, rolling.max_unavailable} <= {0, "0%"}:
        raise InputError("must not be 0 where maxSurge is 0", "rollingUpdate.maxUnavailable")


def check_workload(spec: WorkloadSpec | DaemonSetSpec) -> None:
    """Check that a workload has a template, and a selector that matches the template's labels."""
    if spec.template == PodTemplateSpec():
        raise InputError("is required", "template")
    if spec.selector is None and isinstance(spec, DeploymentSpec | StatefulSetSpec | DaemonSetSpec):
        raise InputError("is required", "selector")
    if spec.selector is not None and not label_selector(spec.selector).matches(spec.template.metadata.labels):
        raise InputError("must be labels that spec.selector matches", "template.metadata.labels")


def check_replication_controller(spec: ReplicationControllerSpec) -> None:
    """Check that the selector, if there is one, matches the template's labels."""
    if spec.template is not None and not spec.selector.items() <= spec.template.metadata.labels.items():
        raise InputError("must be labels that spec.selector matches", "template.metadata.labels")


def check_autoscaler(spec: HorizontalPodAutoscalerSpec) -> None:
    """Check that the maximum is not below the minimum."""
    least = 1 if spec.min_replicas is None else max(spec.min_replicas, 1)
    if spec.max_replicas < least:
        raise InputError(f"must be {least} or more, got {spec.max_replicas}", "maxReplicas")


def check_job(spec: JobSpec) -> None:
    if spec.template == PodTemplateSpec():
        raise InputError("is required", "template")


def check_cron_job(spec: CronJobSpec) -> None:
    if spec.job_template == JobTemplateSpec():
        raise InputError("is required", "jobTemplate.spec.template")


_ANY = 1_000_000
_LABEL_OPERATORS = {"In": (1, _ANY), "NotIn": (1, _ANY), "Exists": (0, 0), "DoesNotExist": (0, 0)}
_NODE_OPERATORS = {**_LABEL_OPERATORS, "Gt": (1, 1), "Lt": (1, 1)}
_FIELD_OPERATORS = {"In": (1, 1), "NotIn": (1, 1)}
# Gt and Lt are an alpha feature of v1.36: the API server accepts them, and by default they tolerate nothing.
_TOLERATION_OPERATORS = frozenset(("", "Equal", "Exists", "Gt", "Lt"))
_WHEN_UNSATISFIABLE = ("DoNotSchedule", "ScheduleAnyway")


Check = Callable[[Any], None]
Depth = Literal["any", "manifest", "api-server"]


def check(struct: msgspec.Struct, *, manifest: bool = False) -> None:
    """InputError for the first quantity, selector, toleration or spread constraint that Kubernetes would refuse.

    Its `where` is the field path: `spec.containers[0].resources.requests['cpu']`. A `manifest` is also checked for
    fields that only the API server requires: the scheduler, and values that leave fields out, do not need them.
    """
    check_struct = _struct_check(type(struct), "manifest" if manifest else "any")
    if check_struct is not None:
        check_struct(struct)


def refused_by_api_server(struct: msgspec.Struct) -> InputError | None:
    """The first name, label or limit that the API server would refuse although it does not affect the scheduler."""
    try:
        if (validate_struct := _struct_check(type(struct), "api-server")) is not None:
            validate_struct(struct)
    except InputError as error:
        return error
    return None


@lru_cache(maxsize=256)
def _struct_check(kind: type[msgspec.Struct], depth: Depth) -> Check | None:
    """The checks for a struct of this kind, compiled once; None if nothing in it, at any depth, needs a check."""
    return _compiled(_struct_type(kind), depth)


@lru_cache(maxsize=256)
def _struct_type(kind: type[msgspec.Struct]) -> inspect.StructType:
    """The fields of a struct and of all structs below it; cached, as msgspec takes a while to inspect them."""
    found = inspect.type_info(kind)
    assert isinstance(found, inspect.StructType)
    return found


def _compiled(struct_type: inspect.StructType, depth: Depth) -> Check | None:
    own = _BY_DEPTH[depth].get(struct_type.cls)
    fields = [(field, _field_check(field.type, depth)) for field in struct_type.fields]
    plan = tuple((field.name, field.encode_name, visit) for field, visit in fields if visit is not None)
    if not plan:
        return own

    def check_struct(struct: msgspec.Struct) -> None:
        for attribute, name, visit in plan:
            value = getattr(struct, attribute)
            if value:
                try:
                    visit(value)
                except InputError as error:
                    raise _below(name, error) from None
        if own is not None:
            own(struct)

    return check_struct


def _field_check(type_: inspect.Type, depth: Depth) -> Check | None:
    members = type_.types if isinstance(type_, inspect.UnionType) else (type_,)
    if depth != "api-server" and any(isinstance(member, inspect.FloatType) for member in members):
        return check_quantity
    for member in members:
        match member:
            case inspect.StructType():
                return _compiled(member, depth)
            case inspect.ListType(item_type=inspect.StructType() as items):
                check_item = _compiled(items, depth)
                return None if check_item is None else partial(_check_items, check_item)
            case inspect.ListType(item_type=items) if _field_check(items, depth) is check_quantity:
                return partial(_check_items, check_quantity)
            case inspect.DictType(value_type=inspect.StructType() as values):
                check_item = _compiled(values, depth)
                return None if check_item is None else partial(_check_entries, check_item)
            case inspect.DictType(value_type=values) if _field_check(values, depth) is check_quantity:
                return partial(_check_entries, check_quantity)
    return None


def _check_items(check_item: Check, items: list[Any]) -> None:
    position = 0
    try:
        for item in items:
            check_item(item)
            position += 1
    except InputError as error:
        raise _below(f"[{position}]", error) from None


def _check_entries(check_item: Check, entries: dict[str, Any]) -> None:
    for name, item in entries.items():
        try:
            check_item(item)
        except InputError as error:
            raise _below(f"[{name!r}]", error) from None


def _below(name: str, error: InputError) -> InputError:
    """The same error with its path extended by one step: `requests` and `['cpu']` are joined as they are, fields with a
    dot.
    """
    dot = "." if error.where and not error.where.startswith("[") else ""
    return type(error)(error.message, f"{name}{dot}{error.where}")


def _check_label_selector(selector: LabelSelector) -> None:
    _check_requirements(selector.match_expressions, "matchExpressions", _LABEL_OPERATORS)


def _check_node_selector_term(term: NodeSelectorTerm) -> None:
    _check_requirements(term.match_expressions, "matchExpressions", _NODE_OPERATORS)
    _check_requirements(term.match_fields, "matchFields", _FIELD_OPERATORS)


def validate_label_selector(selector: LabelSelector) -> None:
    """Check the label keys of a selector."""
    for key in selector.match_labels:
        _refuse(key, qualified_name_errors, "matchLabels")
    _check_keys(selector.match_expressions)


def validate_node_selector_term(term: NodeSelectorTerm) -> None:
    _check_keys(term.match_expressions)


def check_node_selector_term(term: NodeSelectorTerm) -> None:
    """Check a term as for labels; the only field that can be matched is metadata.name."""
    _check_node_selector_term(term)
    for position, requirement in enumerate(term.match_fields):
        if requirement.key != "metadata.name":
            raise InputError(f"{requirement.key!r} is unknown; use metadata.name", f"matchFields[{position}].key")


def _check_keys(requirements: list[SelectorRequirement]) -> None:
    for position, requirement in enumerate(requirements):
        where = f"matchExpressions[{position}].key"
        _require(requirement.key, where)
        _refuse(requirement.key, qualified_name_errors, where)


def _check_requirements(
    requirements: list[SelectorRequirement], name: str, operators: dict[str, tuple[int, int]]
) -> None:
    for position, requirement in enumerate(requirements):
        least, most = operators.get(requirement.operator, (_ANY, 0))
        if not least <= len(requirement.values) <= most:
            raise SelectorError(_problem(requirement, operators), f"{name}[{position}]")


def _problem(requirement: SelectorRequirement, operators: dict[str, tuple[int, int]]) -> str:
    operator = requirement.operator
    if operator not in operators:
        return f"operator {operator!r} is unknown; use one of {', '.join(operators)}"
    wanted = {(1, _ANY): "at least one value", (1, 1): "exactly one value", (0, 0): "no values"}[operators[operator]]
    return f"operator {operator} takes {wanted}, got {len(requirement.values)}"


def _check_toleration(toleration: Toleration) -> None:
    if toleration.operator not in _TOLERATION_OPERATORS:
        raise InputError(f"{toleration.operator!r} is unknown; use Equal or Exists", "operator")


def check_toleration(toleration: Toleration) -> None:
    """Check operator and effect; Exists takes no value, only Exists may lack a key; seconds need NoExecute."""
    _check_toleration(toleration)
    _check_effect(toleration.effect, _EFFECTS)
    _check_exists(toleration)
    if not toleration.key and toleration.operator != "Exists":
        raise InputError("must be Exists when key is empty", "operator")
    if toleration.toleration_seconds is not None and toleration.effect != "NoExecute":
        raise InputError("must be NoExecute when tolerationSeconds is set", "effect")


def check_device_toleration(toleration: DeviceToleration) -> None:
    """Check operator and effect; Exists takes no value."""
    _check_toleration(toleration)
    _check_effect(toleration.effect, _DEVICE_EFFECTS)
    _check_exists(toleration)


def _check_exists(toleration: Toleration) -> None:
    if toleration.operator == "Exists" and toleration.value:
        raise InputError(f"must be empty when operator is Exists, got {toleration.value!r}", "value")


def validate_toleration(toleration: Toleration) -> None:
    """Check that the key and the value are valid for a label."""
    _refuse(toleration.key, qualified_name_errors, "key")
    if toleration.operator in ("", "Equal"):
        _refuse(toleration.value, label_value_errors, "value")


def _check_spread_constraint(constraint: TopologySpreadConstraint) -> None:
    if constraint.max_skew < 1:
        raise InputError(f"must be 1 or more, got {constraint.max_skew}", "maxSkew")
    if constraint.when_unsatisfiable not in _WHEN_UNSATISFIABLE:
        known = " or ".join(_WHEN_UNSATISFIABLE)
        raise InputError(f"{constraint.when_unsatisfiable!r} is unknown; use {known}", "whenUnsatisfiable")


def check_spread_constraint(constraint: TopologySpreadConstraint) -> None:
    """Check topology key, maxSkew and whenUnsatisfiable; minDomains must be able to have an effect."""
    _check_spread_constraint(constraint)
    _require(constraint.topology_key, "topologyKey")
    if constraint.min_domains is not None and constraint.min_domains < 1:
        raise InputError(f"must be 1 or more, got {constraint.min_domains}", "minDomains")
    if constraint.min_domains is not None and constraint.when_unsatisfiable != "DoNotSchedule":
        raise InputError("can only be used with whenUnsatisfiable: DoNotSchedule", "minDomains")


_CHECKS: dict[type[msgspec.Struct], Check] = {
    CapacityRequestPolicyRange: check_range,
    DeviceClaim: check_claim,
    DeviceClass: check_class,
    DeviceConstraint: check_constraint,
    DeviceRequest: check_request,
    DeviceSubRequest: check_count,
    ExactDeviceRequest: check_count,
    ResourceSliceSpec: check_slice,
    LabelSelector: _check_label_selector,
    NodeSelectorTerm: _check_node_selector_term,
    DeviceToleration: _check_toleration,
    Toleration: _check_toleration,
    TopologySpreadConstraint: _check_spread_constraint,
}

_MANIFEST_CHECKS: dict[type[msgspec.Struct], Check] = {
    DisruptionMode: check_disruption_mode,
    GangSchedulingPolicy: check_gang,
    PodGroupSchedulingConstraints: check_constraints,
    PodGroupSchedulingPolicy: check_policy,
    PodGroupSpec: check_pod_group,
    PodSchedulingGroup: check_scheduling_group,
    Container: check_container,
    ContainerPort: check_port,
    CronJobSpec: check_cron_job,
    JobSpec: check_job,
    NodeSelectorTerm: check_node_selector_term,
    PodAffinityTerm: check_pod_affinity_term,
    PodDisruptionBudgetSpec: check_budget,
    DaemonSetSpec: check_workload,
    DeploymentSpec: check_workload,
    HorizontalPodAutoscalerSpec: check_autoscaler,
    PodSpec: check_pod_spec,
    PreferredSchedulingTerm: check_preference,
    ReplicationControllerSpec: check_replication_controller,
    StatefulSetSpec: check_workload,
    DeviceTaint: check_taint,
    DeviceToleration: check_device_toleration,
    Taint: check_taint,
    Toleration: check_toleration,
    TopologySpreadConstraint: check_spread_constraint,
    UpdateStrategy: check_strategy,
    WeightedPodAffinityTerm: check_preference,
    WorkloadSpec: check_workload,
}
_API_SERVER_CHECKS: dict[type[msgspec.Struct], Check] = {
    Container: validate_container,
    LabelSelector: validate_label_selector,
    NodeSelectorTerm: validate_node_selector_term,
    NodeSpec: validate_node_spec,
    ObjectMeta: validate_metadata,
    PodAffinityTerm: validate_topology_key,
    PodSpec: validate_pod_spec,
    DeviceTaint: validate_taint,
    DeviceToleration: validate_toleration,
    Taint: validate_taint,
    Toleration: validate_toleration,
    TopologySpreadConstraint: validate_topology_key,
}
"""What the API server refuses although it does not affect the scheduler."""
_BY_DEPTH = {"any": _CHECKS, "manifest": _CHECKS | _MANIFEST_CHECKS, "api-server": _API_SERVER_CHECKS}
