"""Checks for the authors of plugins: does a plugin keep its contract?"""

from podium.testing._check import check_plugin

__all__ = ["check_plugin"]
