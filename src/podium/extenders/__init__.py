"""Calls to HTTP scheduler extenders, as kube-scheduler makes them.

The HTTP client is imported when the first `Extender` is made, not before.
"""

from podium.extenders.extender import Extender, FilterResult, Victims

__all__ = ["Extender", "FilterResult", "Victims"]
