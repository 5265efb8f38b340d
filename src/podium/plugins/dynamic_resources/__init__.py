"""DynamicResources: allocates the devices that pods claim, as kube-scheduler does."""

from podium.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
