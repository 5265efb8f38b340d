"""The feature gates that change a decision: in which release each came, was switched on, and was locked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from podium.errors import InputError
from podium.rules.release_names import is_at_least


class Stage(NamedTuple):
    """What a gate is from one release on."""

    since: str
    default: bool
    maturity: str
    locked: bool = False
    """Whether nobody may switch it."""


class Gate(NamedTuple):
    """A feature gate and its stages, the oldest first."""

    name: str
    stages: tuple[Stage, ...]
    removed: str = ""
    """The first release that no longer has it; its last default stays in force."""

    def stage(self, release: str) -> Stage | None:
        """What the gate is in a release; None where the release does not know it."""
        if self.removed and is_at_least(release, self.removed):
            return None
        return next((stage for stage in reversed(self.stages) if is_at_least(release, stage.since)), None)

    def default(self, release: str) -> bool:
        """Whether the feature is on in a release that is told nothing."""
        reached = [stage for stage in self.stages if is_at_least(release, stage.since)]
        return bool(reached) and reached[-1].default


def _alpha(since: str) -> Stage:
    return Stage(since, False, "alpha")


def _beta(since: str, *, on: bool = True) -> Stage:
    return Stage(since, on, "beta")


def _stable(since: str, *, locked: bool = True) -> Stage:
    return Stage(since, True, "GA", locked)


GATES: dict[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("CSIMigrationPortworx", (_beta("v1.29", on=False), _beta("v1.31"), _stable("v1.33")), removed="v1.36"),
        Gate("DRAAdminAccess", (_alpha("v1.32"), _beta("v1.34"), _stable("v1.36"))),
        Gate("DRAConsumableCapacity", (_alpha("v1.34"), _beta("v1.36"))),
        Gate("DRADeviceBindingConditions", (_alpha("v1.34"), _beta("v1.36"))),
        Gate("DRADeviceTaintRules", (_beta("v1.36", on=False), _stable("v1.37"))),
        Gate("DRADeviceTaints", (_alpha("v1.33"), _beta("v1.36"), _stable("v1.37"))),
        Gate("DRAExtendedResource", (_alpha("v1.34"), _beta("v1.36"), _stable("v1.37"))),
        Gate("DRAPartitionableDevices", (_alpha("v1.33"), _beta("v1.36"))),
        Gate("DRAPrioritizedList", (_alpha("v1.33"), _beta("v1.34"), _stable("v1.36"))),
        Gate(
            "DynamicResourceAllocation",
            (
                _alpha("v1.29"),
                _beta("v1.32", on=False),
                _stable("v1.34", locked=False),
                _stable("v1.35"),
            ),
        ),
        Gate("InPlacePodLevelResourcesVerticalScaling", (_alpha("v1.35"), _beta("v1.36"))),
        # The alpha before v1.33 read other fields, and is not modelled.
        Gate("InPlacePodVerticalScaling", (_beta("v1.33"), _stable("v1.35"))),
        Gate("MatchLabelKeysInPodAffinity", (_alpha("v1.29"), _beta("v1.31"), _stable("v1.33"))),
        Gate("MinDomainsInPodTopologySpread", (_beta("v1.29"), _stable("v1.30")), removed="v1.32"),
        Gate("NodeDeclaredFeatures", (_alpha("v1.35"), _beta("v1.36"), _stable("v1.37"))),
        Gate("NodeInclusionPolicyInPodTopologySpread", (_beta("v1.29"), _stable("v1.33"))),
        Gate("PodDisruptionConditions", (_beta("v1.29"), _stable("v1.31")), removed="v1.34"),
        Gate("PodLevelResources", (_alpha("v1.32"), _beta("v1.34"))),
        Gate("PodLevelResourcesFixDefaulting", (_beta("v1.37"),)),
        Gate("SchedulerPopFromBackoffQ", (_beta("v1.33"),)),
        Gate(
            "SchedulerQueueingHints",
            (_beta("v1.29", on=False), _beta("v1.32"), _stable("v1.34")),
            removed="v1.37",
        ),
        Gate("StorageCapacityScoring", (_alpha("v1.33"), _beta("v1.37"))),
        Gate(
            "VolumeAttributesClass",
            (_alpha("v1.29"), _beta("v1.31", on=False), _stable("v1.34", locked=False), _stable("v1.36")),
        ),
        Gate("VolumeCapacityPriority", (_alpha("v1.29"),), removed="v1.33"),
        Gate("VolumeLimitScaling", (_alpha("v1.35"), _beta("v1.37"))),
    )
}
"""Every gate the engine knows, by name. A gate that changes no decision is not among them."""


def enabled_gates(release: str, asked: Mapping[str, bool]) -> dict[str, bool]:
    """Whether each gate is on in a release, given what is asked for; InputError for one it does not have or locks."""
    enabled = {name: gate.default(release) for name, gate in GATES.items()}
    for name, value in asked.items():
        gate = GATES.get(name)
        stage = None if gate is None else gate.stage(release)
        if stage is None:
            known = ", ".join(sorted(other.name for other in GATES.values() if other.stage(release) is not None))
            raise InputError(f"feature gate {name} is not one that {release} has and Podium models; there are {known}")
        if stage.locked and value != stage.default:
            raise InputError(f"feature gate {name} is locked to {_shown(stage.default)} in {release}; leave it out")
        enabled[name] = value
    return enabled


def read_gates(text: str) -> dict[str, bool]:
    """`A=true,B=false` as a dictionary; InputError where it is not that."""
    gates: dict[str, bool] = {}
    for part in text.split(","):
        name, equals, value = (piece.strip() for piece in part.partition("="))
        if not name or not equals or value.lower() not in ("true", "false"):
            raise InputError(f"feature gates are written A=true,B=false, not {part.strip()!r}")
        gates[name] = value.lower() == "true"
    return gates


def _shown(value: bool) -> str:
    return "true" if value else "false"


def gates_of(release: str) -> dict[str, Stage]:
    """The gates that a release has, by name."""
    stages = {name: gate.stage(release) for name, gate in sorted(GATES.items())}
    return {name: stage for name, stage in stages.items() if stage is not None}
