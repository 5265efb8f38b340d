"""The older generations of kube-scheduler: predicates and priorities (v1.8, v1.14) and the first framework (v1.18)."""

from podium.releases.configuration import LegacyConfiguration
from podium.releases.policy import legacy_dict
from podium.releases.priorities_api import (
    FunctionPriority,
    HostPriority,
    MapPriority,
    MapReducePriority,
    normalize_reduce,
)
from podium.releases.provider_policy import provider_policy
from podium.releases.release import RELEASES, OldRelease

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
