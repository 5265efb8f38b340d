"""DynamicResources: devices that pods claim, as kube-scheduler allocates them."""

from podium.plugins.dynamic_resources.plugin import DynamicResources

__all__ = ["DynamicResources"]
