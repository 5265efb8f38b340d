from __future__ import annotations

import pytest

from podium.errors import InputError
from podium.rules import rules_of
from podium.rules.gates import GATES, RELEASE_NAMES, enabled_gates, gate_remarks, gates_of, read_gates


@pytest.mark.parametrize(
    ("release", "gate", "expected"),
    [
        ("v1.32", "StorageCapacityScoring", None),
        ("v1.33", "StorageCapacityScoring", (False, "alpha", False)),
        ("v1.37", "StorageCapacityScoring", (True, "beta", False)),
        ("v1.36", "NodeDeclaredFeatures", (True, "beta", False)),
        ("v1.37", "NodeDeclaredFeatures", (True, "GA", True)),
        ("v1.34", "DynamicResourceAllocation", (True, "GA", False)),
        ("v1.35", "DynamicResourceAllocation", (True, "GA", True)),
        ("v1.36", "CSIMigrationPortworx", None),
    ],
)
def test_what_a_gate_is_in_a_release(release: str, gate: str, expected: tuple[bool, str, bool] | None) -> None:
    stage = gates_of(release).get(gate)
    assert (stage and (stage.default, stage.maturity, stage.locked)) == expected


def test_a_removed_gate_leaves_its_feature_as_it_was() -> None:
    assert enabled_gates("v1.36", {})["CSIMigrationPortworx"]
    assert not enabled_gates("v1.36", {})["VolumeCapacityPriority"]


@pytest.mark.parametrize(
    ("release", "gates", "problem"),
    [
        ("v1.37", {"Nope": True}, "feature gate Nope is not one that v1.37 has"),
        ("v1.32", {"StorageCapacityScoring": True}, "StorageCapacityScoring is not one that v1.32 has"),
        ("v1.37", {"NodeDeclaredFeatures": False}, "NodeDeclaredFeatures is locked to true in v1.37"),
        ("v1.37", {"SchedulerQueueingHints": True}, r"was removed in v1\.37, its feature is on: leave it out"),
        ("v1.36", {"VolumeCapacityPriority": True}, r"was removed in v1\.33, its feature is off: leave it out"),
    ],
)
def test_refused(release: str, gates: dict[str, bool], problem: str) -> None:
    with pytest.raises(InputError, match=problem):
        rules_of(release, gates)


QUIET = "ExtendWebSocketsToKubelet", "InPlacePodVerticalScalingInitContainers", "RestartAllContainersOnContainerExits"


@pytest.mark.parametrize(
    ("release", "gates", "said"),
    [
        ("v1.37", {"DRADeviceTaints": False}, ["DRADeviceTaintRules is on, but depends on DRADeviceTaints"]),
        (
            "v1.37",
            {"PodLevelResources": False},
            [
                "InPlacePodLevelResourcesVerticalScaling is on, but depends on PodLevelResources",
                "PodLevelResourcesFixDefaulting is on, but depends on PodLevelResources",
                "PodLevelResourcesFixKubeletQOSClass is on, but depends on PodLevelResources",
            ],
        ),
        ("v1.36", {"NodeDeclaredFeatures": False, "InPlacePodLevelResourcesVerticalScaling": False}, [*QUIET]),
        (
            "v1.35",
            {"InPlacePodLevelResourcesVerticalScaling": True, "PodLevelResources": False},
            ["depends on NodeDeclaredFeatures, PodLevelResources"],
        ),
        ("v1.36", {"DRADeviceTaintRules": True, "DRADeviceTaints": False}, ["DRADeviceTaintRules"]),
    ],
)
def test_a_gate_that_is_on_without_those_it_depends_on_is_refused(
    release: str, gates: dict[str, bool], said: list[str]
) -> None:
    with pytest.raises(InputError) as caught:
        rules_of(release, gates)

    problem = str(caught.value)
    assert problem.startswith(f"{release} refuses feature gates that depend on others that are off: ")
    assert "\n" not in problem
    assert problem.count(" is on, but depends on ") == len(said)
    assert all(each in problem for each in said)


@pytest.mark.parametrize(
    ("release", "gates"),
    [
        ("v1.37", {"DRADeviceTaints": False, "DRADeviceTaintRules": False}),
        ("v1.36", {"DRADeviceTaints": False}),
        ("v1.36", dict.fromkeys(("NodeDeclaredFeatures", "InPlacePodLevelResourcesVerticalScaling", *QUIET), False)),
        ("v1.35", {"InPlacePodLevelResourcesVerticalScaling": True, "NodeDeclaredFeatures": True}),
        ("v1.34", {"PodLevelResources": False}),
    ],
)
def test_gates_whose_needs_are_met_are_accepted(release: str, gates: dict[str, bool]) -> None:
    enabled = enabled_gates(release, gates)
    assert {name: enabled[name] for name in gates} == gates


def test_what_gates_need_is_known_and_on_where_they_are() -> None:
    for gate in GATES.values():
        assert GATES.keys() >= {*gate.needs}, gate.name
    for release in RELEASE_NAMES:
        enabled_gates(release, {})


def test_a_locked_gate_may_be_given_its_value() -> None:
    assert rules_of("v1.37", {"NodeDeclaredFeatures": True}).node_declared_features


def test_a_gate_switches_its_rule() -> None:
    assert not rules_of("v1.36").scores_storage_capacity
    assert rules_of("v1.36", {"StorageCapacityScoring": True}).scores_storage_capacity
    assert not rules_of("v1.37", {"StorageCapacityScoring": False}).scores_storage_capacity


@pytest.mark.parametrize("text", ["", "A", "A=", "=true", "A=yes", "A=true,,B=false"])
def test_gates_that_cannot_be_read(text: str) -> None:
    with pytest.raises(InputError, match="feature gates are written"):
        read_gates(text)


def test_gates_as_written_on_a_command_line() -> None:
    assert read_gates("A=true, B=False") == {"A": True, "B": False}


def test_stages_are_in_order_and_of_releases_that_there_are() -> None:
    for gate in GATES.values():
        places = [RELEASE_NAMES.index(stage.since) for stage in gate.stages]
        assert places == sorted(set(places)), gate.name
        assert not gate.removed or gate.removed in RELEASE_NAMES, gate.name


@pytest.mark.parametrize(
    ("release", "gates", "remarks"),
    [
        ("v1.33", {"DynamicResourceAllocation": True}, 1),
        ("v1.33", {"DynamicResourceAllocation": False}, 0),
        ("v1.34", {"DynamicResourceAllocation": True}, 0),
        ("v1.30", {"SchedulerQueueingHints": True}, 0),
        ("v1.32", {"SchedulerQueueingHints": True, "DynamicResourceAllocation": True}, 1),
    ],
)
def test_what_is_not_as_in_the_release_is_told(release: str, gates: dict[str, bool], remarks: int) -> None:
    found = gate_remarks(release, gates)

    assert len(found) == remarks
    assert all(remark.startswith(f"{release} with ") for remark in found)
