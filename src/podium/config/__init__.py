"""KubeSchedulerConfiguration: types, strict reading, defaults, validation."""

from podium.config.parse import STORAGE_PLUGINS, default_config, ignoring, parse_config, without_post_filter
from podium.config.plugin_args import (
    DefaultPreemptionArgs,
    DynamicResourcesArgs,
    InterPodAffinityArgs,
    NodeAffinityArgs,
    NodeResourcesBalancedAllocationArgs,
    NodeResourcesFitArgs,
    PodTopologySpreadArgs,
    ResourceSpec,
    ScoringStrategy,
    UtilizationShapePoint,
    VolumeBindingArgs,
)
from podium.config.types import (
    EXTENSION_POINTS,
    ExtenderConfig,
    KnownPlugins,
    KubeSchedulerConfiguration,
    ManagedResource,
    PluginRef,
    Profile,
    TLSConfig,
)

__all__ = [
    "EXTENSION_POINTS",
    "STORAGE_PLUGINS",
    "DefaultPreemptionArgs",
    "DynamicResourcesArgs",
    "ExtenderConfig",
    "InterPodAffinityArgs",
    "KnownPlugins",
    "KubeSchedulerConfiguration",
    "ManagedResource",
    "NodeAffinityArgs",
    "NodeResourcesBalancedAllocationArgs",
    "NodeResourcesFitArgs",
    "PluginRef",
    "PodTopologySpreadArgs",
    "Profile",
    "ResourceSpec",
    "ScoringStrategy",
    "TLSConfig",
    "UtilizationShapePoint",
    "VolumeBindingArgs",
    "default_config",
    "ignoring",
    "parse_config",
    "without_post_filter",
]
