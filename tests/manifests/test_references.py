from __future__ import annotations

from typing import Any

import pytest

from podium.manifests import load, missing_references

from .objects import Fields, doc

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def bound(name: str, node: str, **fields: Any) -> Fields:
    return doc("Pod", name, spec={"nodeName": node}, **fields)


def selecting(selector: Fields | None) -> Fields:
    term = {"topologyKey": "zone", "namespaceSelector": selector}
    return doc("Pod", "web", spec={"affinity": {"podAffinity": {REQUIRED: [term]}}})


def preferring(selector: Fields) -> Fields:
    term = {"weight": 1, "podAffinityTerm": {"topologyKey": "zone", "namespaceSelector": selector}}
    return doc("Pod", "web", spec={"affinity": {"podAntiAffinity": {PREFERRED: [term]}}})


CLAIMING = {"resourceClaims": [{"name": "gpu", "resourceClaimName": "c"}]}
FROM_TEMPLATE = {"resourceClaims": [{"name": "g", "resourceClaimTemplateName": "t"}]}
TEAM_A = {"matchLabels": {"team": "a"}}
SPREAD = {"topologySpreadConstraints": [{"maxSkew": 1, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]}


@pytest.mark.parametrize(
    ("case", "documents", "warnings"),
    [
        ("nothing missing", [doc("Node", "n"), bound("a", "n")], []),
        (
            "a node",
            [doc("Node", "n"), bound("a", "m"), bound("b", "m"), bound("c", "n")],
            ["Node m is not in the input: 2 pods bound there, such as default/a, left out of the cluster"],
        ),
        (
            "many nodes",
            [bound(f"p{i}", f"n{i}") for i in range(5)],
            [
                "Node n0, n1, n2 and 2 more are not in the input: 5 pods bound there, such as default/p0, "
                "left out of the cluster"
            ],
        ),
        (
            "a claim of another namespace",
            [doc("Pod", "a", spec=CLAIMING), doc("ResourceClaim", "c", "prod", spec={})],
            [
                "ResourceClaim default/c is not in the input: pods such as default/a wait for it; namespace prod has "
                "one of that name, which does not help"
            ],
        ),
        (
            "a template that is not there",
            [doc("Pod", "a", spec=FROM_TEMPLATE)],
            ["ResourceClaimTemplate default/t is not in the input: pods such as default/a wait for it"],
        ),
        (
            "a template that is there",
            [doc("Pod", "a", spec=FROM_TEMPLATE), doc("ResourceClaimTemplate", "t", spec={})],
            [],
        ),
        (
            "a template that a claim was made from",
            [doc("Pod", "a", spec=FROM_TEMPLATE, status={"resourceClaimStatuses": [{"name": "g"}]})],
            [],
        ),
        ("a claim that is there", [doc("Pod", "a", spec=CLAIMING), doc("ResourceClaim", "c", spec={})], []),
        ("the node of a finished pod", [bound("a", "m", status={"phase": "Succeeded"})], []),
        (
            "namespaces that a selector asks for",
            [selecting(TEAM_A), doc("Pod", "b", "prod"), doc("Namespace", "default")],
            [
                "Namespace prod is not in the input: assumed to have no labels for the namespaceSelector of pods "
                "such as default/web"
            ],
        ),
        (
            "preferred terms count",
            [preferring(TEAM_A)],
            [
                "Namespace default is not in the input: assumed to have no labels for the namespaceSelector of pods "
                "such as default/web"
            ],
        ),
        ("namespaces that no selector asks for", [selecting(None), doc("Pod", "b", "prod")], []),
        ("a selector of all namespaces", [selecting({}), doc("Pod", "b", "prod")], []),
        (
            "owners that spread their pods",
            [
                doc("Pod", "a", owner="ReplicaSet/web"),
                doc("Pod", "b", owner="ReplicaSet/web"),
                doc("Pod", "c", owner="StatefulSet/db"),
                doc("ReplicaSet", "web", "other"),
            ],
            [
                "ReplicaSet default/web, StatefulSet default/db are not in the input: default spreading of the pods "
                "owned, such as default/a, goes by services alone"
            ],
        ),
        ("owners that are there", [doc("Pod", "a", owner="ReplicaSet/web"), doc("ReplicaSet", "web")], []),
        ("owners that do not spread", [doc("Pod", "a", owner="Job/batch")], []),
        ("pods that say how to spread", [doc("Pod", "a", owner="ReplicaSet/web", spec=SPREAD)], []),
        ("owners of running pods", [bound("a", "n", owner="ReplicaSet/web"), doc("Node", "n")], []),
    ],
)
def test_says_what_is_missing_and_what_is_assumed(case: str, documents: list[Fields], warnings: list[str]) -> None:
    objects = load(documents)

    assert missing_references(objects) == warnings
    assert list(objects.warnings) == warnings
