"""The pods of DaemonSets: which nodes get one, and the pod of a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podium.cluster.store import Store
from podium.model import (
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
    PriorityClass,
    SelectorRequirement,
    StorageClass,
    Toleration,
)
from podium.model.selectors import NOT_READY, UNREACHABLE, required_node_affinity, untolerated
from podium.workloads.expansion import Expansion
from podium.workloads.owners import template_hash

_NAME_FIELD = "metadata.name"
_GENERATION = "deprecated.daemonset.template.generation"
_TOLERATED = (
    (NOT_READY, "NoExecute"),
    (UNREACHABLE, "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK = ("node.kubernetes.io/network-unavailable", "NoSchedule")


def expand_daemon_set(daemon_set: DaemonSet, expansion: Expansion) -> Iterator[Object]:
    """A pod for each eligible node that has none, bound to it by node affinity."""
    template = with_daemon_tolerations(daemon_set.spec.template)
    served = {target_node(pod) for pod in expansion.owned(daemon_set, Pod) if not pod.finished}
    for node in expansion.nodes:
        if node.name not in served and should_run(template, node):
            yield from daemon_pod(daemon_set, node.name, expansion)


def created_for_nodes(nodes: Iterable[Node], store: Store) -> list[Object]:
    """What a cluster's DaemonSets create for new nodes: the pods, and the claims of their ephemeral volumes."""
    sets = [each for each in store.of(DaemonSet) if not each.metadata.deletion_timestamp]
    if not sets:
        return []
    expansion = Expansion([*store.of(PriorityClass), *store.of(StorageClass), *nodes, *sets])
    return [made for daemon_set in sets for made in expand_daemon_set(daemon_set, expansion)]


def bound_to(pod: Pod, node: str) -> Pod:
    """The pod, running on a node."""
    return replace(pod, spec=replace(pod.spec, node_name=node))


def daemon_pod(daemon_set: DaemonSet, node: str, expansion: Expansion) -> Iterator[Object]:
    """A DaemonSet's pod for a node: its affinity names the node, and it has the standard daemon tolerations."""
    labels = {"controller-revision-hash": template_hash(daemon_set.spec.template)}
    if _GENERATION in daemon_set.metadata.annotations:
        labels["pod-template-generation"] = daemon_set.metadata.annotations[_GENERATION]
    name = f"{daemon_set.name}-{node}"
    if expansion.is_taken(Pod, daemon_set.namespace, name):
        name = expansion.free_name(Pod, daemon_set.namespace, name)
    template = _bound_for(with_daemon_tolerations(daemon_set.spec.template), node)
    yield from expansion.pod(daemon_set, template, name, labels=labels)


def with_daemon_tolerations(template: PodTemplateSpec) -> PodTemplateSpec:
    """The template with the tolerations that a DaemonSet adds."""
    return replace(template, spec=replace(template.spec, tolerations=daemon_tolerations(template.spec)))


def should_run(template: PodTemplateSpec, node: Node) -> bool:
    """Whether a node gets a daemon pod: the template does not exclude it, and tolerates all its hard taints."""
    spec = template.spec
    if spec.node_name not in ("", node.name):
        return False
    if not required_node_affinity(Pod(spec=spec)).matches(node.metadata.labels, node.name):
        return False
    return untolerated(node.spec.taints, spec.tolerations) is None


def should_continue(template: PodTemplateSpec, node: Node) -> bool:
    """Whether a node keeps an existing daemon pod: as `should_run`, but only NoExecute taints count."""
    lasting = [taint for taint in node.spec.taints if taint.effect == "NoExecute"]
    return should_run(template, replace(node, spec=replace(node.spec, taints=lasting)))


def target_node(pod: Pod) -> str | None:
    """The node that a daemon pod runs on or is meant for; None if it names none."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    for term in affinity.required.node_selector_terms if affinity and affinity.required else ():
        for field in term.match_fields:
            if field.key == _NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return None


def daemon_tolerations(spec: PodSpec) -> list[Toleration]:
    """The template's tolerations, and those of every daemon pod."""
    wanted = [*_TOLERATED, *([_TOLERATED_ON_HOST_NETWORK] if spec.host_network else [])]
    standard = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in wanted]
    # A toleration that differs only in tolerationSeconds is replaced by the standard one, which has no limit.
    replaced = {_identity(toleration): toleration for toleration in standard}
    own = [replaced.pop(_identity(toleration), toleration) for toleration in spec.tolerations]
    return [*own, *replaced.values()]


def _identity(toleration: Toleration) -> tuple[str, str, str, str]:
    return toleration.key, toleration.operator, toleration.value, toleration.effect


def _bound_for(template: PodTemplateSpec, node: str) -> PodTemplateSpec:
    """The template with this node's name as its required node affinity, replacing what it required."""
    field = SelectorRequirement(key=_NAME_FIELD, operator="In", values=[node])
    required = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_fields=[field])])
    affinity = template.spec.affinity or Affinity()
    node_affinity = replace(affinity.node_affinity or NodeAffinity(), required=required)
    return replace(template, spec=replace(template.spec, affinity=replace(affinity, node_affinity=node_affinity)))
