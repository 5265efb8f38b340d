"""CheckVolumeBinding: a pod's claims must be bound to volumes the node reaches, or be bindable there."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from msgspec.structs import replace

from podium.cluster import Aspect, Cluster, NodeInfo, Nodes
from podium.framework import SUCCESS, CycleState, PreFilterPlugin, PreFilterResult, ReservePlugin, Status
from podium.model import Node, Object, PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from podium.model.quantity import parse_quantity
from podium.model.selectors import label_selector, node_terms
from podium.model.storage import ObjectReference
from podium.plugins.storage.claims import BIND_COMPLETED
from podium.releases.reasons import UNBOUND_CLAIMS, VOLUME_BINDING, VOLUME_MISSING, VOLUME_NODE, Reason, rejection
from podium.releases.volume_predicates import ClaimError, VolumePredicate, claims, class_of, waits_for_consumer

SELECTED_NODE = "volume.kubernetes.io/selected-node"
NO_PROVISIONER = "kubernetes.io/no-provisioner"


@dataclass(slots=True)
class _Bindings:
    """What binding a pod's claims on one node comes to."""

    reasons: list[Reason] = field(default_factory=list)
    matched: list[tuple[PersistentVolumeClaim, PersistentVolume]] = field(default_factory=list)
    provisioned: list[PersistentVolumeClaim] = field(default_factory=list)


class CheckVolumeBinding(VolumePredicate, PreFilterPlugin, ReservePlugin):
    """Reject nodes that bound volumes cannot be reached from, or where unbound claims find no volume."""

    name = "CheckVolumeBinding"
    reads = Aspect.LABELS | Aspect.OBJECTS

    def pre_filter(self, state: CycleState, pod: Pod, nodes: Nodes) -> PreFilterResult:
        state[self.name] = nodes.cluster  # Reserve is not told on which cluster it reserves
        return PreFilterResult()

    def check(self, pod: Pod, node: NodeInfo) -> Status | None:
        try:
            reasons = self._bind(pod, node.node, node.cluster).reasons
        except ClaimError as error:
            return Status.error(str(error))
        return rejection(reasons, self.rules) if reasons else None

    def _bind(self, pod: Pod, node: Node, cluster: Cluster) -> _Bindings:
        found = _Bindings()
        bound, waiting, immediate = _sorted_claims(pod, cluster)
        if immediate:
            if self.rules.missing_volume_is_error:
                raise ClaimError(UNBOUND_CLAIMS.sentence)
            found.reasons = [UNBOUND_CLAIMS]
            return found
        found.reasons += self._check_bound(bound, node, cluster)
        if not self._can_bind(waiting, node, cluster, found):
            found.reasons.append(VOLUME_BINDING)
        return found

    def _check_bound(self, bound: list[PersistentVolumeClaim], node: Node, cluster: Cluster) -> list[Reason]:
        for claim in bound:
            volume = cluster.store.of(PersistentVolume).get(claim.spec.volume_name)
            if volume is None:
                if self.rules.missing_volume_is_error:
                    raise ClaimError(f'could not find v1.PersistentVolume "{claim.spec.volume_name}"')
                return [VOLUME_MISSING]
            if not _reaches(volume, node):
                return [VOLUME_NODE]
        return []

    def _can_bind(self, waiting: list[PersistentVolumeClaim], node: Node, cluster: Cluster, found: _Bindings) -> bool:
        """Whether each waiting claim matches a volume, or can be given a new one on this node."""
        chosen: set[str] = set()
        to_provision: list[PersistentVolumeClaim] = []
        to_match: list[PersistentVolumeClaim] = []
        for claim in waiting:
            selected = claim.metadata.annotations.get(SELECTED_NODE)
            if selected is not None and selected != node.name:
                return False
            (to_match if selected is None else to_provision).append(claim)
        for claim in sorted(to_match, key=_size):
            volume = _best_volume(claim, node, cluster, chosen, self._class_of(claim))
            if volume is None:
                to_provision.append(claim)
            else:
                chosen.add(volume.name)
                found.matched.append((claim, volume))
        for claim in to_provision:
            if not _can_provision(claim, node, cluster):
                return False
        found.provisioned = to_provision
        return True

    def _class_of(self, claim: PersistentVolumeClaim) -> str:
        """The class whose volumes are looked through; before v1.18 the old annotation does not count here."""
        return claim.spec.storage_class_name or "" if self.rules.missing_volume_is_error else class_of(claim)

    # -- reserving

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> Status:
        """Take the volumes for the claims, and note the node on claims that get a new one."""
        if not pod.spec.volumes:
            return SUCCESS
        cluster: Cluster = state[self.name]
        bindings = self._bind(pod, cluster.node(node_name), cluster)
        before: list[Object] = [volume for _, volume in bindings.matched]
        before += bindings.provisioned
        state[f"{self.name}/before"] = before
        for claim, volume in bindings.matched:
            reference = ObjectReference(namespace=claim.namespace, name=claim.name, uid=claim.metadata.uid)
            cluster.store.put(replace(volume, spec=replace(volume.spec, claim_ref=reference)))
        for claim in bindings.provisioned:
            annotations = {**claim.metadata.annotations, SELECTED_NODE: node_name}
            cluster.store.put(replace(claim, metadata=replace(claim.metadata, annotations=annotations)))
        return SUCCESS

    def unreserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        for item in state.pop(f"{self.name}/before", ()):
            state[self.name].store.put(item)


def _sorted_claims(
    pod: Pod, cluster: Cluster
) -> tuple[list[PersistentVolumeClaim], list[PersistentVolumeClaim], list[PersistentVolumeClaim]]:
    """The pod's claims: bound; waiting for the pod to be placed; and those somebody should have bound."""
    bound, waiting, immediate = [], [], []
    for name in claims(pod):
        claim = cluster.store.of(PersistentVolumeClaim).get(name, pod.namespace)
        if claim is None:
            raise ClaimError(f'error getting PVC "{pod.namespace}/{name}": could not find it')
        if claim.spec.volume_name and BIND_COMPLETED in claim.metadata.annotations:
            bound.append(claim)
        elif waits_for_consumer(cluster, claim) and not claim.spec.volume_name:
            waiting.append(claim)
        else:
            immediate.append(claim)
    return bound, waiting, immediate


def _reaches(volume: PersistentVolume, node: Node) -> bool:
    """Whether the node's labels meet the volume's node affinity."""
    affinity = volume.spec.node_affinity
    if affinity is None or affinity.required is None:
        return True
    # The scheduler compares labels only: to a term about a node's name, every node is nameless.
    return any(term.matches(node.metadata.labels, "") for term in node_terms(affinity.required))


def _size(claim: PersistentVolumeClaim) -> Fraction:
    return parse_quantity(claim.spec.resources.requests.get("storage", 0))


def _capacity(volume: PersistentVolume) -> Fraction:
    return parse_quantity(volume.spec.capacity.get("storage", 0))


def _best_volume(
    claim: PersistentVolumeClaim, node: Node, cluster: Cluster, taken: set[str], class_name: str
) -> PersistentVolume | None:
    """The volume that is bound to the claim already, or else the smallest that will do."""
    best: PersistentVolume | None = None
    for volume in cluster.store.of(PersistentVolume):
        if class_of(volume) != class_name or volume.name in taken or volume.metadata.deletion_timestamp is not None:
            continue
        if volume.spec.volume_mode != claim.spec.volume_mode or _capacity(volume) < _size(claim):
            continue
        if _is_bound_to(volume, claim):
            return volume if _reaches(volume, node) else None
        if _is_available(volume, claim) and _reaches(volume, node):
            best = volume if best is None or _capacity(volume) < _capacity(best) else best
    return best


def _is_bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != (claim.namespace, claim.name):
        return False
    return reference.uid in ("", claim.metadata.uid)


def _is_available(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is free and as the claim wants it, apart from its size."""
    selector = claim.spec.selector
    return (
        volume.status.phase == "Available"
        and volume.spec.claim_ref is None
        and (selector is None or label_selector(selector).matches(volume.metadata.labels))
        and class_of(volume) == class_of(claim)
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
    )


def _can_provision(claim: PersistentVolumeClaim, node: Node, cluster: Cluster) -> bool:
    """Whether the claim's class makes volumes, and makes them where the node is."""
    class_name = class_of(claim)
    if not class_name:
        raise ClaimError(f'no class for claim "{claim.key}"')
    found = cluster.store.of(StorageClass).get(class_name)
    if found is None:
        raise ClaimError(f'failed to find storage class "{class_name}"')
    if found.provisioner in ("", NO_PROVISIONER):
        return False
    topologies = [term.match_label_expressions for term in found.allowed_topologies]
    labels = node.metadata.labels
    return not topologies or any(
        term and all(labels.get(each.key) in each.values for each in term) for term in topologies
    )
