"""How property tests run: the same examples every time, more with HYPOTHESIS_PROFILE=deep, others with `search`."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings

settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("deep", settings.get_profile("ci"), max_examples=250)
settings.register_profile("search", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))
