"""What a configuration says about the scheduler's process: leader election, its API client, profiling.

None of it changes a decision, so it is read and checked, and not kept.
"""

from __future__ import annotations

from podium.config.default_plugins import V1, V1BETA2
from podium.config.durations import SECOND
from podium.config.fields import Fields, Problems


def read_component(fields: Fields, api_version: str, problems: Problems) -> None:
    """Take the fields of the process from `fields`, and report in `problems` the values that are refused."""
    _read_leader_election(fields.child("leaderElection"), problems)
    _read_client_connection(fields.child("clientConnection"), problems)
    fields.optional_boolean("enableProfiling")
    fields.optional_boolean("enableContentionProfiling")
    if api_version == V1:
        fields.boolean("delayCacheUntilActive")
    if api_version == V1BETA2:
        fields.optional_string("healthzBindAddress")
        fields.optional_string("metricsBindAddress")


def _read_client_connection(fields: Fields, problems: Problems) -> None:
    with fields:
        for name in ("kubeconfig", "acceptContentTypes", "contentType"):
            fields.string(name)
        fields.number("qps")
        burst = fields.integer("burst")
        if burst < 0:
            problems.invalid(f"{fields.path}.burst", burst, "must be non-negative")


def _read_leader_election(fields: Fields, problems: Problems) -> None:
    with fields:
        elect = fields.optional_boolean("leaderElect")
        durations = {
            "leaseDuration": fields.duration("leaseDuration") or 15 * SECOND,
            "renewDeadline": fields.duration("renewDeadline") or 10 * SECOND,
            "retryPeriod": fields.duration("retryPeriod") or 2 * SECOND,
        }
        lock = fields.string("resourceLock") or "leases"
        fields.string("resourceName")
        fields.string("resourceNamespace")
    if elect is False:
        return
    for name, duration in durations.items():
        if duration <= 0:
            problems.add(f"{fields.path}.{name}", "must be greater than zero")
    if durations["leaseDuration"] <= durations["renewDeadline"]:
        problems.add(f"{fields.path}.leaseDuration", "must be greater than renewDeadline")
    if lock != "leases":
        problems.invalid(f"{fields.path}.resourceLock", lock, 'must be "leases"')
