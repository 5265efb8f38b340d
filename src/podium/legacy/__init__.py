"""The older generations of kube-scheduler: predicates and priorities (v1.8, v1.14) and the first framework (v1.18)."""

from podium.legacy.conduct import PROVIDERS, Conduct, FitError, LegacyConfiguration, Options, Setup
from podium.legacy.priorities_api import (
    FunctionPriority,
    HostPriority,
    MapPriority,
    MapReducePriority,
    normalize_reduce,
)
from podium.legacy.provider_policy import provider_policy
from podium.legacy.release import CURRENT, RELEASES, Release, release_of
from podium.legacy.shape import legacy_dict

__all__ = [
    "CURRENT",
    "PROVIDERS",
    "RELEASES",
    "Conduct",
    "FitError",
    "FunctionPriority",
    "HostPriority",
    "LegacyConfiguration",
    "MapPriority",
    "MapReducePriority",
    "Options",
    "Release",
    "Setup",
    "legacy_dict",
    "normalize_reduce",
    "provider_policy",
    "release_of",
]
