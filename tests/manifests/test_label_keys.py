from __future__ import annotations

import pytest

from podium.manifests.defaults import default_pod
from podium.model import LabelSelector
from podium.model.selectors import with_label_keys_merged

from .objects import Fields, pod_of, yaml_of

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
LABELS = {"app": "web", "version": "v2"}


def is_in(key: str, *values: str) -> Fields:
    return {"key": key, "operator": "In", "values": list(values)}


def is_not_in(key: str, *values: str) -> Fields:
    return {"key": key, "operator": "NotIn", "values": list(values)}


TABLE = [
    ("no keys", {"labelSelector": {"matchLabels": {"app": "web"}}}, {"matchLabels": {"app": "web"}}),
    (
        "match",
        {"labelSelector": {"matchLabels": {"app": "web"}}, "matchLabelKeys": ["version"]},
        {"matchLabels": {"app": "web"}, "matchExpressions": [is_in("version", "v2")]},
    ),
    ("an absent selector stays absent", {"matchLabelKeys": ["version"]}, None),
    (
        "an empty selector",
        {"labelSelector": {}, "matchLabelKeys": ["version", "app"]},
        {"matchExpressions": [is_in("version", "v2"), is_in("app", "web")]},
    ),
    ("a label the pod lacks", {"labelSelector": {}, "matchLabelKeys": ["tier"]}, {}),
    (
        "merged already",
        {"labelSelector": {"matchExpressions": [is_in("version", "v2")]}, "matchLabelKeys": ["version", "app"]},
        {"matchExpressions": [is_in("version", "v2"), is_in("app", "web")]},
    ),
]
MISMATCH = [
    (
        "mismatch",
        {"labelSelector": {}, "matchLabelKeys": ["app"], "mismatchLabelKeys": ["version", "tier"]},
        {"matchExpressions": [is_in("app", "web"), is_not_in("version", "v2")]},
    ),
]


def shown(selector: LabelSelector | None) -> Fields | None:
    return None if selector is None else yaml_of(selector)


@pytest.mark.parametrize(("case", "term", "expected"), [*TABLE, *MISMATCH])
def test_selectors_with_the_labels_of_a_pod(case: str, term: Fields, expected: Fields | None) -> None:
    affinity = pod_of({"affinity": {"podAffinity": {REQUIRED: [term]}}}, labels=LABELS).spec.affinity
    assert affinity is not None
    assert affinity.pod_affinity is not None
    (raw,) = affinity.pod_affinity.required
    made = with_label_keys_merged(raw.label_selector, raw.match_label_keys, raw.mismatch_label_keys, LABELS)
    assert shown(made) == expected


@pytest.mark.parametrize(("case", "fields", "expected"), TABLE)
def test_spread_constraints(case: str, fields: Fields, expected: Fields | None) -> None:
    constraint = {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "DoNotSchedule", **fields}

    (made,) = pod_of({"topologySpreadConstraints": [constraint]}, labels=LABELS).spec.topology_spread_constraints

    assert shown(made.label_selector) == expected
    assert made.match_label_keys == fields.get("matchLabelKeys", [])


def test_merging_again_changes_nothing() -> None:
    constraint = {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": {}, "matchLabelKeys": ["app"]}
    term = {"labelSelector": {}, "mismatchLabelKeys": ["app"]}
    spec = {"topologySpreadConstraints": [constraint], "affinity": {"podAntiAffinity": {REQUIRED: [term]}}}
    pod = pod_of(spec, labels=LABELS)

    assert default_pod(pod) is pod
