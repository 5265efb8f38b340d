"""The older generations of kube-scheduler: predicates and priorities (v1.8, v1.14) and the first framework (v1.18)."""

from podium.releases._algorithms import FunctionPriority, HostPriority, MapPriority, MapReducePriority, normalize_reduce
from podium.releases.policy import legacy_dict
from podium.releases.release import RELEASES, LegacyConfiguration, OldRelease, provider_policy

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
