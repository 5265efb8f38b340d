"""Label selectors, node selectors, taints and tolerations: matching as pure functions on values.

Selectors are compiled once into hashable values, so that two pods with the same selector ask the same question.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from typing import Generic, NamedTuple, TypeVar

from msgspec.structs import replace

from podium.errors import SelectorError
from podium.model import (
    LabelSelector,
    Node,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    SelectorRequirement,
    Taint,
    Toleration,
)
from podium.model.meta import integer
from podium.model.quantity import INT64

Labels = Mapping[str, str]

NO_SCHEDULE, NO_EXECUTE, PREFER_NO_SCHEDULE = "NoSchedule", "NoExecute", "PreferNoSchedule"
CORDONED = Taint(key="node.kubernetes.io/unschedulable", effect=NO_SCHEDULE)
"""The taint of a cordoned node."""
UNREACHABLE = "node.kubernetes.io/unreachable"
"""The key of the taints of a node that cannot be reached."""
NOT_READY = "node.kubernetes.io/not-ready"
"""The key of the taints of a node that says that it is not ready."""


def is_unreachable(node: Node) -> bool:
    """Whether a node cannot be reached: no kubelet reports what its pods do."""
    return any(taint.key == UNREACHABLE and taint.effect == NO_EXECUTE for taint in node.spec.taints)


def cordoned(node: Node) -> Node:
    """The node, cordoned: unschedulable, with the taint that the node lifecycle controller adds."""
    before = uncordoned(node)
    return replace(before, spec=replace(before.spec, unschedulable=True, taints=[*before.spec.taints, CORDONED]))


def uncordoned(node: Node) -> Node:
    """The node, schedulable again and without the taint of a cordoned node."""
    # The node lifecycle controller finds the taint by its key.
    taints = [taint for taint in node.spec.taints if taint.key != CORDONED.key]
    return replace(node, spec=replace(node.spec, unschedulable=False, taints=taints))


def _integer(text: str) -> int | None:
    """The 64-bit decimal integer Go would read from `text`, or None."""
    digits = text[1:] if text[:1] in ("+", "-") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    number = integer(text)
    return number if number in INT64 else None


def condition_text(requirement: Requirement | SelectorRequirement) -> str:
    """The operator and values of a requirement: `In a,b`, `Exists`."""
    return f"{requirement.operator} {','.join(sorted(requirement.values))}".rstrip()


def requirement_text(requirement: Requirement | SelectorRequirement) -> str:
    """A requirement as one writes it for kubectl: `zone In a,b`, `disk Exists`."""
    return f"{requirement.key} {condition_text(requirement)}"


class Requirement(NamedTuple):
    """One `key operator values` test of a label."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()

    @property
    def matches_absent(self) -> bool:
        """Whether an object without the label passes."""
        return self.operator in ("NotIn", "DoesNotExist")

    def matches_value(self, value: str) -> bool:
        """Whether an object whose label has this value passes."""
        match self.operator:
            case "In":
                return value in self.values
            case "NotIn":
                return value not in self.values
            case "Exists":
                return True
            case "DoesNotExist":
                return False
        number, (bound,) = _integer(value), (integer(v) for v in self.values)
        return number is not None and (number > bound if self.operator == "Gt" else number < bound)

    def matches(self, labels: Labels) -> bool:
        value = labels.get(self.key)
        return self.matches_absent if value is None else self.matches_value(value)


class Selector(NamedTuple):
    """All requirements must hold; `nothing` matches no object at all."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Whether the selector matches everything."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Labels) -> bool:
        return not self.nothing and all(requirement.matches(labels) for requirement in self.requirements)

    def add(self, requirements: Iterable[Requirement]) -> Selector:
        """This selector with further requirements; `nothing` stays nothing."""
        return self if self.nothing else Selector((*self.requirements, *requirements))


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def _requirement(raw: SelectorRequirement, operators: tuple[str, ...]) -> Requirement:
    """Compile a requirement; SelectorError if Kubernetes would refuse it."""
    if raw.operator not in operators:
        known = ", ".join(operators)
        raise SelectorError(f"operator {raw.operator!r} of key {raw.key!r} is unknown; use one of {known}")
    count = len(raw.values)
    if raw.operator in ("In", "NotIn") and not count:
        raise SelectorError(f"operator {raw.operator} of key {raw.key!r} needs at least one value")
    if raw.operator in ("Exists", "DoesNotExist") and count:
        raise SelectorError(f"operator {raw.operator} of key {raw.key!r} takes no values")
    if raw.operator in ("Gt", "Lt") and (count != 1 or _integer(raw.values[0]) is None):
        raise SelectorError(f"operator {raw.operator} of key {raw.key!r} needs exactly one integer")
    return Requirement(raw.key, raw.operator, frozenset(raw.values))


def match_labels(labels: Labels) -> Selector:
    """The selector of a plain `key: value` map; an empty map matches everything."""
    return Selector(tuple(Requirement(key, "In", frozenset((value,))) for key, value in sorted(labels.items())))


def label_selector(selector: LabelSelector | None) -> Selector:
    """Compile a LabelSelector: absent matches nothing, empty matches everything."""
    if selector is None:
        return NOTHING
    expressions = (_requirement(raw, ("In", "NotIn", "Exists", "DoesNotExist")) for raw in selector.match_expressions)
    return match_labels(selector.match_labels).add(expressions)


def accepted_selector(selector: LabelSelector | None) -> Selector:
    """The same, but a selector that Kubernetes would refuse matches nothing."""
    try:
        return label_selector(selector)
    except SelectorError:
        return NOTHING


class NodeTerm(NamedTuple):
    """One term of a node selector: its labels and its name must match."""

    labels: tuple[Requirement, ...]
    names: tuple[Requirement, ...]

    def matches(self, labels: Labels, name: str) -> bool:
        return all(r.matches(labels) for r in self.labels) and all(r.matches_value(name) for r in self.names)


def node_term(term: NodeSelectorTerm) -> NodeTerm | None:
    """Compile a term; None for an empty term, which matches no node."""
    if not term.match_expressions and not term.match_fields:
        return None
    labels = tuple(
        _requirement(raw, ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")) for raw in term.match_expressions
    )
    for raw in term.match_fields:
        if raw.operator not in ("In", "NotIn") or len(raw.values) != 1:
            raise SelectorError(f"matchFields key {raw.key!r} must use In or NotIn with exactly one value")
    # A field other than metadata.name is empty on every node.
    names = tuple(
        Requirement(raw.key, raw.operator, frozenset(raw.values))
        if raw.key == "metadata.name"
        else Requirement(raw.key, "Exists" if (raw.operator == "In") == ("" in raw.values) else "DoesNotExist")
        for raw in term.match_fields
    )
    return NodeTerm(labels, names)


def node_terms(selector: NodeSelector, *, strict: bool = False) -> tuple[NodeTerm, ...]:
    """The terms of a node selector, one of which must match; unless `strict`, an invalid term matches no node."""
    compiled = []
    for raw in selector.node_selector_terms:
        try:
            term = node_term(raw)
        except SelectorError:
            if strict:
                raise
            continue
        if term is not None:
            compiled.append(term)
    return tuple(compiled)


class NodeMatcher(NamedTuple):
    """A pod's nodeSelector and required node affinity: all of `labels` and, unless None, any of `terms`."""

    labels: tuple[Requirement, ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    def matches(self, labels: Labels, name: str) -> bool:
        return all(r.matches(labels) for r in self.labels) and (
            self.terms is None or any(term.matches(labels, name) for term in self.terms)
        )


def required_node_affinity(pod: Pod) -> NodeMatcher:
    """The pod's requirements for a node's labels and name."""
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    return NodeMatcher(
        match_labels(pod.spec.node_selector or {}).requirements,
        None if required is None else node_terms(required),
    )


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in ("", "Equal"):
        return toleration.value == taint.value
    return toleration.operator == "Exists"


def any_tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    return any(tolerates(toleration, taint) for toleration in tolerations)


def repels(taint: Taint) -> bool:
    """Whether the taint keeps pods away, as opposed to making the node less preferred."""
    return taint.effect in (NO_SCHEDULE, NO_EXECUTE)


def untolerated(
    taints: Iterable[Taint], tolerations: Iterable[Toleration], counts: Callable[[Taint], bool] = repels
) -> Taint | None:
    """The first counting taint that is not tolerated; None if all are."""
    tolerations = tuple(tolerations)
    return next((taint for taint in taints if counts(taint) and not any_tolerates(tolerations, taint)), None)


H = TypeVar("H", bound=Hashable)


class SelectorIndex(Generic[H]):
    """Finds the selectors that may match some labels without trying them all."""

    def __init__(self) -> None:
        self._by_pair: dict[tuple[str, str], dict[H, None]] = {}
        self._rest: dict[H, None] = {}

    def _bucket(self, selector: Selector) -> dict[H, None]:
        pair = selecting_pair(selector)
        return self._rest if pair is None else self._by_pair.setdefault(pair, {})

    def add(self, selector: Selector, item: H) -> None:
        self._bucket(selector)[item] = None

    def discard(self, selector: Selector, item: H) -> None:
        self._bucket(selector).pop(item, None)

    def candidates(self, labels: Labels) -> Iterator[H]:
        """Every item whose selector may match; a superset of those that do."""
        yield from self._rest
        for pair in labels.items():
            yield from self._by_pair.get(pair, ())


def selecting_pair(selector: Selector) -> tuple[str, str] | None:
    """A label that every matching object must have, to look up candidates; None if there is none."""
    for requirement in selector.requirements:
        if requirement.operator == "In" and len(requirement.values) == 1:
            return requirement.key, next(iter(requirement.values))
    return None


def with_label_keys_merged(
    selector: LabelSelector | None, match: list[str], mismatch: list[str], labels: Labels
) -> LabelSelector | None:
    """The selector with an additional requirement for each key that the pod has; a missing selector stays missing."""
    if selector is None or not (match or mismatch):
        return selector
    wanted = [
        SelectorRequirement(key=key, operator=operator, values=[labels[key]])
        for operator, keys in (("In", match), ("NotIn", mismatch))
        for key in keys
        if key in labels
    ]
    # A dump of a running cluster already has them.
    missing = [requirement for requirement in wanted if requirement not in selector.match_expressions]
    if not missing:
        return selector
    return replace(selector, match_expressions=[*selector.match_expressions, *missing])
