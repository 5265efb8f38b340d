from __future__ import annotations

from typing import Any

import pytest

from podium.errors import InputError
from podium.manifests import load
from podium.manifests.defaults import StoredPods
from podium.model import Pod

from .objects import Fields, doc, yaml_of

CONTAINER = {"name": "main", "resources": {"limits": {"cpu": "1"}}}
TERM = {"topologyKey": "zone", "labelSelector": {}, "matchLabelKeys": ["hash"]}


def pods(*specs: Fields, **fields: Any) -> list[Pod]:
    return load([doc("Pod", f"web-{number}", spec=spec, **fields) for number, spec in enumerate(specs)]).of(Pod)


def test_pods_of_one_template_share_what_is_filled_in() -> None:
    first, second = pods(
        {"nodeName": "a", "priority": 0, "containers": [CONTAINER], "volumes": [{"name": "token-1"}]},
        {"nodeName": "b", "priority": 0, "containers": [CONTAINER], "volumes": [{"name": "token-2"}]},
    )

    assert first.spec.containers is second.spec.containers
    assert first.spec.containers[0].resources.requests == {"cpu": "1"}
    assert (first.spec.node_name, second.spec.node_name) == ("a", "b")


def test_what_the_status_of_such_pods_says_is_shared_as_well() -> None:
    ready = {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}
    statuses = [
        ready | {"startTime": "2026-01-01T00:00:00Z"},
        ready | {"startTime": "2026-01-02T00:00:00Z"},
        ready | {"conditions": [{"type": "Ready", "status": "False"}]},
    ]
    first, second, third = load(
        [doc("Pod", f"web-{place}", spec={"containers": [CONTAINER]}, status=s) for place, s in enumerate(statuses)]
    ).of(Pod)

    assert first.status.conditions is second.status.conditions
    assert second.status.start_time == "2026-01-02T00:00:00Z"
    assert [condition.status for condition in third.status.conditions] == ["False"]
    assert third.status.start_time is None


@pytest.mark.parametrize(
    "other",
    [
        {"containers": [CONTAINER], "priority": 1},
        {"containers": [CONTAINER | {"resources": {"limits": {"cpu": 1}}}]},
        {"containers": [CONTAINER], "volumes": [{"name": "data", "persistentVolumeClaim": {"claimName": "c"}}]},
    ],
)
def test_pods_that_differ_keep_their_own(other: Fields) -> None:
    first, second, alone = *pods({"containers": [CONTAINER]}, other), *pods(other)

    assert first.spec != second.spec
    assert second.spec == alone.spec


def test_labels_count_where_they_are_named_by_key() -> None:
    spec = {"topologySpreadConstraints": [TERM | {"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]}
    made = load(*(doc("Pod", name, labels={"hash": name}, spec=spec) for name in ("a", "b"))).of(Pod)

    for pod in made:
        wanted = {"key": "hash", "operator": "In", "values": [pod.name]}
        assert str(yaml_of(pod.spec)).count(str([wanted])) == 1


@pytest.mark.parametrize(
    ("spec", "status", "where"),
    [
        ({"overhead": {"cpu": "x"}}, {}, "spec.overhead['cpu']"),
        ({}, {"containerStatuses": [{"allocatedResources": {"cpu": "x"}}]}, "status.containerStatuses[0].allocated"),
        ({}, {"initContainerStatuses": [{"resources": {"limits": {"cpu": "x"}}}]}, "status.initContainerStatuses[0]"),
        ({}, {"allocatedResources": {"cpu": "x"}}, "status.allocatedResources['cpu']"),
        ({}, {"resources": {"requests": {"cpu": "x"}}}, "status.resources.requests['cpu']"),
    ],
)
def test_a_mistake_is_found_in_a_pod_after_others_like_it(spec: Fields, status: Fields, where: str) -> None:
    good = doc("Pod", "good", spec={"containers": [CONTAINER]})
    bad = doc("Pod", "bad", spec={"containers": [CONTAINER], **spec}, status=status)
    with pytest.raises(InputError) as error:
        load(good, bad)
    assert str(error.value).startswith(f"input: Pod default/bad: {where}")


def test_pods_that_are_all_different_are_forgotten_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoredPods, "REMEMBERED", 2)
    specs = [{"priority": number} for number in (1, 2, 3, 1, 2, 3)]

    assert [pod.spec.priority for pod in pods(*specs)] == [1, 2, 3, 1, 2, 3]


@pytest.mark.parametrize("fields", [{"spec": {"nodeSelector": {"a": "\ud800"}}}, {"status": {"phase": "\ud800"}}])
def test_text_that_is_not_unicode(fields: Fields) -> None:
    with pytest.raises(InputError, match=r"Pod default/odd: holds '.*\\ud800.*', which is not Unicode text"):
        load(doc("Pod", "odd", **fields))
