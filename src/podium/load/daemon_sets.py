"""DaemonSets: one pod for every node that should run it."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec.structs import replace

from podium.load.expansion import Expansion, template_hash
from podium.objects import (
    Affinity,
    DaemonSet,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    Object,
    Pod,
    PodSpec,
    PodTemplateSpec,
    SelectorRequirement,
    Toleration,
)
from podium.selectors import required_node_affinity, untolerated

_NAME_FIELD = "metadata.name"
_GENERATION = "deprecated.daemonset.template.generation"
_TOLERATED = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def expand_daemon_set(daemon_set: DaemonSet, expansion: Expansion) -> Iterator[Object]:
    """A pod bound for each eligible node that has none: it names the node in its affinity, and tolerates the usual."""
    template = daemon_set.spec.template
    labels = {"controller-revision-hash": template_hash(template)}
    if _GENERATION in daemon_set.metadata.annotations:
        labels["pod-template-generation"] = daemon_set.metadata.annotations[_GENERATION]
    template = replace(template, spec=replace(template.spec, tolerations=daemon_tolerations(template.spec)))
    served = {target_node(pod) for pod in expansion.owned(daemon_set, Pod) if not pod.finished}
    for node in expansion.nodes:
        if node.name not in served and should_run(template, node):
            name = f"{daemon_set.name}-{node.name}"
            if expansion.is_taken(Pod, daemon_set.namespace, name):
                name = expansion.free_name(Pod, daemon_set.namespace, name)
            yield from expansion.pod(daemon_set, _bound_for(template, node.name), name, labels=labels)


def should_run(template: PodTemplateSpec, node: Node) -> bool:
    """Whether a node gets a daemon pod: named or not excluded by the template, and every hard taint tolerated."""
    spec = template.spec
    if spec.node_name not in ("", node.name):
        return False
    if not required_node_affinity(Pod(spec=spec)).matches(node.metadata.labels, node.name):
        return False
    return untolerated(node.spec.taints, spec.tolerations) is None


def target_node(pod: Pod) -> str | None:
    """The node a daemon pod runs on, or is bound for; None if it does not say."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    for term in affinity.required.node_selector_terms if affinity and affinity.required else ():
        for field in term.match_fields:
            if field.key == _NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return None


def daemon_tolerations(spec: PodSpec) -> list[Toleration]:
    """The template's tolerations, and those every daemon pod has."""
    wanted = [*_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if spec.host_network else [])]
    standard = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in wanted]
    # One that differs only in how long it lasts gives way to the standard one, which lasts.
    replaced = {_identity(toleration): toleration for toleration in standard}
    own = [replaced.pop(_identity(toleration), toleration) for toleration in spec.tolerations]
    return [*own, *replaced.values()]


def _identity(toleration: Toleration) -> tuple[str, str, str, str]:
    return toleration.key, toleration.operator, toleration.value, toleration.effect


def _bound_for(template: PodTemplateSpec, node: str) -> PodTemplateSpec:
    """The template with this node's name as its required node affinity, in place of what it required."""
    field = SelectorRequirement(key=_NAME_FIELD, operator="In", values=[node])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    affinity = template.spec.affinity or Affinity()
    node_affinity = replace(affinity.node_affinity or NodeAffinity(), required=required)
    return replace(template, spec=replace(template.spec, affinity=replace(affinity, node_affinity=node_affinity)))
