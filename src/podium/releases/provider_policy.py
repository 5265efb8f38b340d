"""The Policy that says what a provider runs: a file to start from for whoever has none."""

from __future__ import annotations

from typing import Any

from podium.engine.release import Options
from podium.releases.policy import API_VERSION, KIND
from podium.releases.policy_v118 import provider_priorities
from podium.releases.release import old_release
from podium.releases.rules import V1_18


def provider_policy(release: str, options: Options | None = None) -> dict[str, Any]:
    """A Policy of v1.8, v1.14 or v1.18 with which the release decides as with a provider, the default one unless named.

    v1.18 fills in the predicates itself: its providers list plugins, which a Policy cannot name.
    """
    options = options or Options()
    policy: dict[str, Any] = {"kind": KIND, "apiVersion": API_VERSION}
    if release == V1_18.release:
        weights = provider_priorities(options)
    else:
        effective = old_release(release).set_up(options=options).effective
        policy["predicates"] = [{"name": name} for name in effective["predicates"]]
        weights = effective["priorities"]
    policy["priorities"] = [{"name": name, "weight": weight} for name, weight in weights.items()]
    return policy
