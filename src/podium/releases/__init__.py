"""The older generations of kube-scheduler: predicates and priorities (v1.8, v1.14) and the first framework (v1.18)."""

from podium.releases.conduct import PROVIDERS, Conduct, FitError, LegacyConfiguration, Options, Setup
from podium.releases.policy import legacy_dict
from podium.releases.priorities_api import (
    FunctionPriority,
    HostPriority,
    MapPriority,
    MapReducePriority,
    normalize_reduce,
)
from podium.releases.provider_policy import provider_policy
from podium.releases.release import CURRENT, RELEASES, Release, release_of

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
