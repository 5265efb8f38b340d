"""Renders what a pod asks for: owner, priority, requests, claims, tolerations, affinity and spreading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from podium.framework.suggested_change import taint_text
from podium.model import Pod, Taint
from podium.model.meta import LabelSelector, NodeSelectorTerm
from podium.model.pod import PodAffinityTerm, Toleration
from podium.model.resources import pod_resources
from podium.model.selectors import requirement_text
from podium.present.text import amount
from podium.rules import Rules
from podium.workloads import workload_of

OF_EVERY_POD = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
"""The taints that every pod tolerates for some time, as the API server lets it."""


def pod_facts(pod: Pod, rules: Rules) -> list[dict[str, str]]:
    """What a pod asks for, each with a name and a text; what it does not ask for is left out."""
    return [{"name": name, "text": text} for name, text in _facts(pod, rules) if text]


def _facts(pod: Pod, rules: Rules) -> Iterator[tuple[str, str]]:
    spec, resources = pod.spec, pod_resources(pod, rules).used
    workload = workload_of(pod)
    yield "Owner", "" if workload.startswith("Pod/") else workload
    name = f" ({spec.priority_class_name})" if spec.priority_class_name else ""
    yield "Priority", f"{pod.priority:,}{name}"
    yield "Scheduler", spec.scheduler_name
    yield (
        "Requests",
        ", ".join(f"{resource} {amount(resource, number)}" for resource, number in resources.items() if number),
    )
    yield "Claims", ", ".join(_claims(pod))
    yield "Gates", ", ".join(gate.name for gate in spec.scheduling_gates)
    yield "Node labels", ", ".join(_node_labels(pod))
    yield "Tolerates", ", ".join(_toleration(each) for each in spec.tolerations if each.key not in OF_EVERY_POD)
    affinity = spec.affinity
    for title, side in (
        ("Near", affinity and affinity.pod_affinity),
        ("Apart from", affinity and affinity.pod_anti_affinity),
    ):
        if side:
            preferred = [f"{_pods(each.pod_affinity_term)} (preferred)" for each in side.preferred]
            yield title, "; ".join([*map(_pods, side.required), *preferred])
    yield (
        "Spread",
        "; ".join(
            f"at most {each.max_skew} apart by {each.topology_key}"
            f"{' (preferred)' if each.when_unsatisfiable == 'ScheduleAnyway' else ''}"
            for each in spec.topology_spread_constraints
        ),
    )


def _claims(pod: Pod) -> Iterator[str]:
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield f"volume {volume.persistent_volume_claim.claim_name}"
        elif volume.ephemeral is not None:
            yield f"ephemeral volume {volume.name}"
    for claim in pod.spec.resource_claims:
        yield f"devices {claim.resource_claim_name or claim.resource_claim_template_name or claim.name}"


def _node_labels(pod: Pod) -> Iterator[str]:
    yield from (f"{key}={value}" for key, value in (pod.spec.node_selector or {}).items())
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    if affinity and affinity.required:
        yield " or ".join(map(_term, affinity.required.node_selector_terms))
    for each in affinity.preferred if affinity else ():
        yield f"{_term(each.preference)} (preferred)"


def _term(term: NodeSelectorTerm) -> str:
    return " and ".join(map(requirement_text, (*term.match_expressions, *term.match_fields)))


def _toleration(each: Toleration) -> str:
    if not each.key:
        return f"every taint{f' with effect {each.effect}' if each.effect else ''}"
    if each.effect:
        return taint_text(Taint(key=each.key, value=each.value, effect=each.effect))
    return f"{each.key}={each.value}" if each.value else each.key


def _pods(term: PodAffinityTerm) -> str:
    return f"pods with {' and '.join(_labels(term.label_selector)) or 'any labels'} by {term.topology_key}"


def _labels(selector: LabelSelector | None) -> Sequence[str]:
    if selector is None:
        return []
    equal = [f"{key}={value}" for key, value in selector.match_labels.items()]
    return [*equal, *map(requirement_text, selector.match_expressions)]
