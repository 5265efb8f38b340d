"""The current releases and their feature gates."""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from typing import NamedTuple

from podium.errors import InputError

VERSIONS: dict[str, str] = {
    "v1.29": "v1.29.15",
    "v1.30": "v1.30.14",
    "v1.31": "v1.31.14",
    "v1.32": "v1.32.13",
    "v1.33": "v1.33.13",
    "v1.34": "v1.34.10",
    "v1.35": "v1.35.8",
    "v1.36": "v1.36.4",
    "v1.37": "v1.37.1",
}
"""The patch version of each release whose decisions were recorded to compare with."""

RELEASE_NAMES = tuple(VERSIONS)
NEWEST = RELEASE_NAMES[-1]

_VERSION = re.compile(r"v?(\d+)\.(\d+)(?:[.+-].*)?")


@cache
def release_order(name: str) -> tuple[int, ...]:
    """The sort key of names like v1.36, oldest first."""
    return tuple(int(part) for part in name.removeprefix("v").split("."))


def is_at_least(release: str, other: str) -> bool:
    """Whether a release is the same as another, or newer."""
    return release_order(release) >= release_order(other)


def short_name(version: str) -> str | None:
    """`v1.36` for v1.36, 1.36 or v1.36.4-gke.100; None for a text that is not a version."""
    found = _VERSION.fullmatch(version.strip())
    return None if found is None else f"v{int(found[1])}.{int(found[2])}"


class Stage(NamedTuple):
    """The state of a gate from one release on."""

    since: str
    default: bool
    maturity: str
    locked: bool = False
    """Whether it is locked: it cannot be switched."""
    remark: str = ""
    """How Podium differs from the release if the gate is switched on."""


class Gate(NamedTuple):
    """A feature gate and its stages, the oldest first."""

    name: str
    stages: tuple[Stage, ...]
    removed: str = ""
    """The first release without the gate; its last default stays in effect."""
    needs: tuple[str, ...] = ()
    """The gates that must be on for it; gates that are locked on wherever this is checked are left out."""

    def stage(self, release: str) -> Stage | None:
        """The gate's state in a release; None if the release does not know it."""
        if self.removed and is_at_least(release, self.removed):
            return None
        return next((stage for stage in reversed(self.stages) if is_at_least(release, stage.since)), None)

    def default(self, release: str) -> bool:
        """Whether the feature is on in a release by default."""
        reached = [stage for stage in self.stages if is_at_least(release, stage.since)]
        return bool(reached) and reached[-1].default


def _alpha(since: str) -> Stage:
    return Stage(since, False, "alpha")


def _beta(since: str, *, on: bool = True, remark: str = "") -> Stage:
    return Stage(since, on, "beta", remark=remark)


def _stable(since: str, *, locked: bool = True) -> Stage:
    return Stage(since, True, "GA", locked)


GATES: dict[str, Gate] = {
    gate.name: gate
    for gate in (
        Gate("CSIMigrationPortworx", (_beta("v1.29", on=False), _beta("v1.31"), _stable("v1.33")), removed="v1.36"),
        # The alpha versions of these gates worked differently (control plane controllers, other allocators, counters
        # beside the devices), and are not modelled.
        Gate("DRAAdminAccess", (_beta("v1.34"), _stable("v1.36"))),
        Gate("DRAConsumableCapacity", (_beta("v1.36"),)),
        Gate("DRADeviceBindingConditions", (_beta("v1.36"),)),
        Gate(
            "DRADeviceTaintRules",
            (_beta("v1.36", on=False), _stable("v1.37", locked=False)),
            needs=("DRADeviceTaints",),
        ),
        Gate("DRADeviceTaints", (_beta("v1.36"), _stable("v1.37", locked=False))),
        Gate("DRAExtendedResource", (_beta("v1.36"), _stable("v1.37"))),
        Gate("DRAPartitionableDevices", (_beta("v1.36"),)),
        Gate("DRAPrioritizedList", (_beta("v1.34"), _stable("v1.36", locked=False), _stable("v1.37"))),
        # Groups of pods are modelled as v1.37 schedules them; v1.35 and v1.36 have other objects and other cycles.
        Gate(
            "DRAWorkloadResourceClaims",
            (_beta("v1.37", on=False),),
            needs=("DynamicResourceAllocation", "GenericWorkload"),
        ),
        Gate("GenericWorkload", (_beta("v1.37", on=False),)),
        Gate("PodGroupPreemptionPolicy", (_alpha("v1.37"),), needs=("GenericWorkload",)),
        Gate("TopologyAwareWorkloadScheduling", (_alpha("v1.37"),), needs=("GenericWorkload",)),
        Gate(
            "DynamicResourceAllocation",
            (
                _beta("v1.32", on=False, remark="devices are searched for as v1.34 does, whose search is modelled"),
                _stable("v1.34", locked=False),
                _stable("v1.35"),
            ),
        ),
        Gate(
            "InPlacePodLevelResourcesVerticalScaling",
            (_alpha("v1.35"), _beta("v1.36")),
            needs=("NodeDeclaredFeatures", "PodLevelResources"),
        ),
        # The alpha version before v1.33 read other fields, and is not modelled.
        Gate("InPlacePodVerticalScaling", (_beta("v1.33"), _stable("v1.35"))),
        Gate("MatchLabelKeysInPodAffinity", (_alpha("v1.29"), _beta("v1.31"), _stable("v1.33"))),
        Gate("MinDomainsInPodTopologySpread", (_beta("v1.29"), _stable("v1.30")), removed="v1.32"),
        Gate("NodeDeclaredFeatures", (_alpha("v1.35"), _beta("v1.36"), _stable("v1.37"))),
        Gate("NodeInclusionPolicyInPodTopologySpread", (_beta("v1.29"), _stable("v1.33"))),
        Gate("PodDisruptionConditions", (_beta("v1.29"), _stable("v1.31")), removed="v1.34"),
        Gate("PodLevelResources", (_alpha("v1.32"), _beta("v1.34"))),
        Gate("PodLevelResourcesFixDefaulting", (_beta("v1.37"),), needs=("PodLevelResources",)),
        Gate("SchedulerPopFromBackoffQ", (_beta("v1.33"),)),
        Gate(
            "SchedulerQueueingHints",
            (
                _beta("v1.29", on=False),
                _beta("v1.32"),
                _stable("v1.34"),
            ),
            removed="v1.37",
        ),
        Gate("StorageCapacityScoring", (_alpha("v1.33"), _beta("v1.37"))),
        Gate(
            "VolumeAttributesClass",
            (_alpha("v1.29"), _beta("v1.31", on=False), _stable("v1.34", locked=False), _stable("v1.36")),
        ),
        Gate("VolumeCapacityPriority", (_alpha("v1.29"),), removed="v1.33"),
        Gate("VolumeLimitScaling", (_alpha("v1.35"), _beta("v1.37"))),
        # These gates change no decision, but must be off if a gate that changes decisions is off.
        Gate("ExtendWebSocketsToKubelet", (_beta("v1.36"),), needs=("NodeDeclaredFeatures",)),
        Gate(
            "InPlacePodVerticalScalingInitContainers",
            (_beta("v1.36"), _stable("v1.37")),
            needs=("NodeDeclaredFeatures",),
        ),
        Gate("PodLevelResourcesFixKubeletQOSClass", (_beta("v1.37"),), needs=("PodLevelResources",)),
        # These gates change when things happen, not what is decided.
        Gate("OpportunisticBatching", (_beta("v1.35"),)),
        Gate("SchedulerAsyncPreemption", (_alpha("v1.32"), _beta("v1.33"))),
        Gate(
            "RestartAllContainersOnContainerExits",
            (_alpha("v1.35"), _beta("v1.36")),
            needs=("NodeDeclaredFeatures",),
        ),
    )
}
"""Every gate the engine knows, by name. A gate that changes no decision is listed only if one that does must be
on for it.
"""

ABOUT_TIME = frozenset(("OpportunisticBatching", "SchedulerAsyncPreemption"))
"""Gates that change when something happens, but no decision."""

NEEDS_ARE_CHECKED = "v1.35"
"""The first release that refuses to start if a gate is on and one that it needs is off."""


def enabled_gates(release: str, asked: Mapping[str, bool]) -> dict[str, bool]:
    """Whether each gate is on in a release with the given switches; InputError if the release would not start: for a
    gate that it does not have or locks, or that is on without those it needs.
    """
    enabled = {name: gate.default(release) for name, gate in GATES.items()}
    for name, value in asked.items():
        gate = GATES.get(name)
        stage = None if gate is None else gate.stage(release)
        if gate is not None and gate.removed and is_at_least(release, gate.removed):
            always = "on" if gate.default(release) else "off"
            raise InputError(
                f"feature gate {name} was removed in {gate.removed}, its feature is {always}: leave it out"
            )
        if gate is not None and stage is None:
            first = gate.stages[0].since
            known = f"it is modelled from {first} on: use --release {first}, or leave it out"
            raise InputError(f"feature gate {name} is not one that {release} has and Podium models; {known}")
        if stage is None:
            known = ", ".join(sorted(other.name for other in GATES.values() if other.stage(release) is not None))
            raise InputError(f"feature gate {name} is not one that {release} has and Podium models; use {known}")
        if stage.locked and value != stage.default:
            raise InputError(f"feature gate {name} is locked to {_shown(stage.default)} in {release}; leave it out")
        enabled[name] = value
    if is_at_least(release, NEEDS_ARE_CHECKED):
        _check_needs(release, enabled)
    return enabled


def _check_needs(release: str, enabled: Mapping[str, bool]) -> None:
    lacking = {
        name: [need for need in GATES[name].needs if not enabled[need]] for name in gates_of(release) if enabled[name]
    }
    said = [f"{name} is on, but depends on {', '.join(needs)}" for name, needs in lacking.items() if needs]
    if said:
        raise InputError(f"{release} refuses feature gates that depend on others that are off: {'; '.join(said)}")


def gate_remarks(release: str, asked: Mapping[str, bool]) -> list[str]:
    """One sentence for each gate that is switched on and that Podium does not model completely."""
    stages = {name: GATES[name].stage(release) for name, is_on in asked.items() if is_on and name in GATES}
    return [
        f"{release} with {name}: {stage.remark}"
        for name, stage in sorted(stages.items())
        if stage is not None and stage.remark
    ]


def read_gates(text: str) -> dict[str, bool]:
    """Parse `A=true,B=false`; InputError for anything else."""
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
