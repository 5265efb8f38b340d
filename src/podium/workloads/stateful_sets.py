"""The pods of StatefulSets: one for each ordinal, with its claims."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from msgspec.structs import replace

from podium.model import Object, PersistentVolumeClaim, Pod, StatefulSet
from podium.workloads.claims import stateful_claims, with_claims_as_volumes
from podium.workloads.expansion import Expansion, refuse_too_many
from podium.workloads.owners import ordinal_labels, ordinal_of, template_hash


def expand_stateful_set(stateful_set: StatefulSet, expansion: Expansion) -> Iterator[Object]:
    """The pods with missing ordinals, each after its missing claims."""
    start = stateful_set.spec.ordinals.start
    refuse_too_many(stateful_set, stateful_set.spec.replicas)
    for ordinal in range(start, start + stateful_set.spec.replicas):
        # A terminating pod still holds the name, and the controller waits for it.
        if not expansion.is_taken(Pod, stateful_set.namespace, f"{stateful_set.name}-{ordinal}"):
            yield from stateful_pod(stateful_set, ordinal, expansion)


def stateful_pod(stateful_set: StatefulSet, ordinal: int, expansion: Expansion) -> Iterator[Object]:
    """One pod of a StatefulSet, after its missing claims; existing claims are reused."""
    name = f"{stateful_set.name}-{ordinal}"
    template = stateful_set.spec.template
    for claim in stateful_claims(stateful_set, name, expansion.default_class):
        if not expansion.is_taken(PersistentVolumeClaim, claim.namespace, claim.name):
            yield expansion.add(claim)
    claims = {each.name: f"{each.name}-{name}" for each in stateful_set.spec.volume_claim_templates}
    spec = replace(template.spec, volumes=with_claims_as_volumes(template.spec.volumes, claims))
    labels = {
        **ordinal_labels(name, ordinal),
        "controller-revision-hash": f"{stateful_set.name}-{template_hash(template)}",
    }
    yield from expansion.pod(stateful_set, replace(template, spec=spec), name, labels=labels)


def condemned_pods(stateful_set: StatefulSet, pods: Iterable[Pod]) -> list[Pod]:
    """The pods beyond a StatefulSet's replicas, the highest ordinal first; it ignores pods without an ordinal."""
    start = stateful_set.spec.ordinals.start
    wanted = range(start, start + stateful_set.spec.replicas)
    numbered = sorted(((ordinal_of(pod), pod) for pod in pods), key=lambda each: each[0], reverse=True)
    return [pod for ordinal, pod in numbered if ordinal >= 0 and ordinal not in wanted]
