"""Selectors, node selectors and tolerations: compiled forms say what the plain rules say."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from builders import make_node, make_taint
from podium.cluster import Cluster
from podium.errors import SelectorError
from podium.model.meta import LabelSelector, NodeSelector, NodeSelectorTerm, ObjectMeta, SelectorRequirement
from podium.model.objects import Node, Taint
from podium.model.pod import Affinity, NodeAffinity, Pod, PodSpec, Toleration
from podium.model.selectors import (
    CORDONED,
    Requirement,
    any_tolerates,
    condition_text,
    cordoned,
    label_selector,
    match_labels,
    node_term,
    node_terms,
    required_node_affinity,
    requirement_text,
    tolerates,
    uncordoned,
    untolerated,
)

keys, values = st.sampled_from("abc"), st.sampled_from(("", "x", "y", "1", "2", "-3", "007"))
labels = st.dictionaries(keys, values)


def requirements(*operators: str) -> st.SearchStrategy[SelectorRequirement]:
    def of(operator: str) -> st.SearchStrategy[SelectorRequirement]:
        chosen: st.SearchStrategy[list[str]] = st.just([])
        if operator in ("In", "NotIn"):
            chosen = st.lists(values, min_size=1, max_size=3)
        elif operator in ("Gt", "Lt"):
            chosen = st.lists(st.sampled_from(("0", "1", "-3", "+7")), min_size=1, max_size=1)
        return st.builds(SelectorRequirement, key=keys, operator=st.just(operator), values=chosen)

    return st.sampled_from(operators).flatmap(of)


label_requirements = requirements("In", "NotIn", "Exists", "DoesNotExist")
node_requirements = requirements("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")


def number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def holds(requirement: SelectorRequirement, on: dict[str, str]) -> bool:
    """The rule as the API documents it, word by word."""
    value = on.get(requirement.key)
    match requirement.operator:
        case "In":
            return value is not None and value in requirement.values
        case "NotIn":
            return value is None or value not in requirement.values
        case "Exists":
            return value is not None
        case "DoesNotExist":
            return value is None
    found, bound = number(value or ""), int(requirement.values[0])
    if found is None:
        return False
    return found > bound if requirement.operator == "Gt" else found < bound


@given(labels, st.lists(label_requirements, max_size=3), labels)
def test_a_label_selector_holds_if_all_of_it_does(
    wanted: dict[str, str], expressions: list[SelectorRequirement], on: dict[str, str]
) -> None:
    selector = label_selector(LabelSelector(match_labels=wanted, match_expressions=expressions))
    expected = all(on.get(key) == value for key, value in wanted.items()) and all(holds(e, on) for e in expressions)
    assert selector.matches(on) is expected
    assert selector.empty is (not wanted and not expressions)


def test_no_selector_matches_nothing_and_an_empty_one_everything() -> None:
    assert not label_selector(None).matches({})
    assert not label_selector(None).empty
    assert label_selector(LabelSelector()).matches({"any": "thing"})
    assert match_labels({}).matches({})


@given(labels, labels, labels)
def test_equal_selectors_are_equal_values(wanted: dict[str, str], other: dict[str, str], on: dict[str, str]) -> None:
    shuffled = dict(reversed(wanted.items()))
    assert match_labels(wanted) == match_labels(shuffled)
    assert hash(match_labels(wanted)) == hash(match_labels(shuffled))
    narrowed = match_labels(wanted).add(match_labels(other).requirements)
    assert narrowed.matches(on) is (match_labels(wanted).matches(on) and match_labels(other).matches(on))
    assert label_selector(None).add(match_labels(other).requirements) == label_selector(None)


names = st.sampled_from(("n0", "n1", "n2"))
fields = st.builds(
    SelectorRequirement,
    key=st.just("metadata.name"),
    operator=st.sampled_from(("In", "NotIn")),
    values=names.map(lambda name: [name]),
)
terms = st.builds(
    NodeSelectorTerm,
    match_expressions=st.lists(node_requirements, max_size=2),
    match_fields=st.lists(fields, max_size=2),
)
pods = st.builds(
    lambda selector, required: Pod(
        spec=PodSpec(
            node_selector=selector,
            affinity=None
            if required is None
            else Affinity(node_affinity=NodeAffinity(required=NodeSelector(node_selector_terms=required))),
        )
    ),
    st.none() | labels,
    st.none() | st.lists(terms, max_size=3),
)


def term_holds(term: NodeSelectorTerm, on: dict[str, str], name: str) -> bool:
    if not term.match_expressions and not term.match_fields:
        return False
    named = all((name in field.values) is (field.operator == "In") for field in term.match_fields)
    return named and all(holds(requirement, on) for requirement in term.match_expressions)


@given(pods, st.lists(labels, min_size=1, max_size=3))
def test_required_node_affinity_is_the_selector_and_any_of_the_terms(pod: Pod, nodes: list[dict[str, str]]) -> None:
    matcher = required_node_affinity(pod)
    affinity = pod.spec.affinity and pod.spec.affinity.node_affinity
    required = affinity.required if affinity else None
    expected = {}
    for place, on in enumerate(nodes):
        selected = all(on.get(key) == value for key, value in (pod.spec.node_selector or {}).items())
        wanted = required is None or any(term_holds(t, on, f"n{place}") for t in required.node_selector_terms)
        expected[f"n{place}"] = selected and wanted
    assert {name: matcher.matches(on, name) for name, on in zip(expected, nodes, strict=True)} == expected
    cluster = Cluster.from_objects(
        Node(metadata=ObjectMeta(name=name, labels=on)) for name, on in zip(expected, nodes, strict=True)
    )
    assert dict(zip(cluster.nodes.names, cluster.nodes.matching(matcher).tolist(), strict=True)) == expected


@pytest.mark.parametrize(
    ("requirement", "message"),
    [
        (SelectorRequirement(key="a", operator="Equals", values=["x"]), "operator 'Equals' of key 'a' is unknown"),
        (SelectorRequirement(key="a", operator="In"), "operator In of key 'a' needs at least one value"),
        (SelectorRequirement(key="a", operator="Exists", values=["x"]), "operator Exists of key 'a' takes no values"),
        (SelectorRequirement(key="a", operator="Gt", values=["1"]), "operator 'Gt' of key 'a' is unknown"),
    ],
)
def test_broken_label_selectors_are_errors(requirement: SelectorRequirement, message: str) -> None:
    with pytest.raises(SelectorError, match=message):
        label_selector(LabelSelector(match_expressions=[requirement]))


@pytest.mark.parametrize(
    "requirement",
    [
        SelectorRequirement(key="a", operator="Gt", values=["many"]),
        SelectorRequirement(key="a", operator="Gt", values=["1", "2"]),
        SelectorRequirement(key="a", operator="Lt"),
        SelectorRequirement(key="a", operator="Gt", values=[str(2**63)]),
    ],
)
def test_a_broken_term_is_an_error_or_matches_no_node(requirement: SelectorRequirement) -> None:
    selector = NodeSelector(node_selector_terms=[NodeSelectorTerm(match_expressions=[requirement]), NodeSelectorTerm()])
    with pytest.raises(SelectorError, match="needs exactly one integer"):
        node_terms(selector, strict=True)
    assert node_terms(selector) == ()


def test_a_field_other_than_the_name_is_empty_on_every_node() -> None:
    def of(operator: str, value: str) -> bool:
        field = SelectorRequirement(key="spec.unschedulable", operator=operator, values=[value])
        term = node_term(NodeSelectorTerm(match_fields=[field]))
        assert term is not None
        return term.matches({}, "n")

    assert [of("In", "true"), of("In", ""), of("NotIn", "true"), of("NotIn", "")] == [False, True, True, False]


# -- tolerations ---------------------------------------------------------------------------------------------------

effects = ("NoSchedule", "PreferNoSchedule", "NoExecute")
taints = st.builds(Taint, key=keys, value=st.sampled_from(("", "x", "y")), effect=st.sampled_from(effects))
tolerations = st.builds(
    Toleration,
    key=keys | st.just(""),
    operator=st.sampled_from(("", "Equal", "Exists")),
    value=st.sampled_from(("", "x", "y")),
    effect=st.sampled_from(("", *effects)),
)


@given(st.lists(tolerations, max_size=3), st.lists(taints, max_size=3))
def test_a_taint_is_tolerated_if_key_effect_and_value_agree_where_they_are_said(
    listed: list[Toleration], tainted: list[Taint]
) -> None:
    def agrees(toleration: Toleration, taint: Taint) -> bool:
        return (
            toleration.effect in ("", taint.effect)
            and toleration.key in ("", taint.key)
            and (toleration.operator == "Exists" or toleration.value == taint.value)
        )

    for taint in tainted:
        assert any_tolerates(listed, taint) is any(agrees(toleration, taint) for toleration in listed)
    repelling = [t for t in tainted if t.effect != "PreferNoSchedule" and not any(agrees(x, t) for x in listed)]
    assert untolerated(tainted, listed) == (repelling[0] if repelling else None)


def test_an_unknown_operator_tolerates_nothing() -> None:
    taint = Taint(**make_taint("a=x:NoSchedule"))
    assert not tolerates(Toleration(key="a", operator="Like", value="x"), taint)


UNSCHEDULABLE = "node.kubernetes.io/unschedulable=:NoSchedule"
NODES: dict[str, Node] = {
    "as written by hand": make_node(unschedulable=True),
    "of a cluster": make_node(unschedulable=True, taints=[UNSCHEDULABLE, "team=blue:NoSchedule"]),
    "not cordoned": make_node(taints=["team=blue:NoSchedule"]),
}


@pytest.mark.parametrize("node", NODES.values(), ids=NODES)
def test_a_node_is_cordoned_and_uncordoned_with_its_taint(node: Node) -> None:
    others = [taint for taint in node.spec.taints if taint != CORDONED]

    on, off = cordoned(node), uncordoned(node)

    assert (on.spec.unschedulable, on.spec.taints) == (True, [*others, CORDONED])
    assert (off.spec.unschedulable, off.spec.taints) == (False, others)
    assert uncordoned(on) == off
    assert cordoned(off) == on == cordoned(on)


@pytest.mark.parametrize(
    ("operator", "values", "text"),
    [
        ("In", ["b", "a"], "zone In a,b"),
        ("NotIn", ["a"], "zone NotIn a"),
        ("Exists", [], "zone Exists"),
        ("Gt", ["3"], "zone Gt 3"),
    ],
)
def test_a_requirement_in_words(operator: str, values: list[str], text: str) -> None:
    written = SelectorRequirement("zone", operator, values)

    assert requirement_text(written) == requirement_text(Requirement("zone", operator, frozenset(values))) == text
    assert f"zone {condition_text(written)}" == text
