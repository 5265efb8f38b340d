"""A configuration without some of its plugins."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from podium.config.types import KubeSchedulerConfiguration, Profile

STORAGE_PLUGINS = frozenset(
    {
        *("VolumeRestrictions", "NodeVolumeLimits", "VolumeBinding", "VolumeZone"),
        # What older releases call them.
        *("AzureDiskLimits", "CinderLimits", "EBSLimits", "GCEPDLimits"),
        *("CheckVolumeBinding", "NoDiskConflict", "NoVolumeNodeConflict", "NoVolumeZoneConflict"),
        *("MaxAzureDiskVolumeCount", "MaxCSIVolumeCountPred", "MaxCinderVolumeCount"),
        *("MaxEBSVolumeCount", "MaxGCEPDVolumeCount"),
    }
)
"""The plugins that look at volumes and claims, of all releases."""


def ignoring(config: KubeSchedulerConfiguration, plugins: Collection[str]) -> KubeSchedulerConfiguration:
    """The configuration with these plugins at no extension point of any profile."""
    return replace(config, profiles=tuple(_without(profile, plugins) for profile in config.profiles))


def _without(profile: Profile, plugins: Collection[str]) -> Profile:
    points = {point: tuple(ref for ref in refs if ref.name not in plugins) for point, refs in profile.points.items()}
    return replace(profile, points=points)
