"""The older generations of kube-scheduler: predicates and priorities (v1.8, v1.14) and the first framework (v1.18)."""

from podium.legacy.configuration import LegacyConfiguration
from podium.legacy.priorities_api import (
    FunctionPriority,
    HostPriority,
    MapPriority,
    MapReducePriority,
    normalize_reduce,
)
from podium.legacy.provider_policy import provider_policy
from podium.legacy.release import RELEASES, OldRelease
from podium.legacy.shape import legacy_dict

__all__ = [
    "RELEASES",
    "FunctionPriority",
    "HostPriority",
    "LegacyConfiguration",
    "MapPriority",
    "MapReducePriority",
    "OldRelease",
    "legacy_dict",
    "normalize_reduce",
    "provider_policy",
]
