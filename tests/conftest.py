"""How property tests run: the same examples every time, or, with HYPOTHESIS_PROFILE=search, many others; and how often
the garbage collector looks at what stays.
"""

from __future__ import annotations

import gc
import os

from hypothesis import HealthCheck, settings

settings.register_profile("ci", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("search", settings.get_profile("ci"), derandomize=False, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci"))


def pytest_collection_finish() -> None:
    """Keep the collected tests out of garbage collection: thousands of them stay to the end."""
    gc.collect()
    gc.freeze()
