"""The bounds of a rolling update: maxSurge and maxUnavailable in pods, and why pods of an old template stay."""

from __future__ import annotations

from podium.errors import InputError
from podium.manifests.apply import Applied
from podium.manifests.defaults import rolling_update
from podium.model.objects import DaemonSet, Deployment, StatefulSet, int_or_percent
from podium.wording import counted

ROLLED_OUT = (Deployment, StatefulSet, DaemonSet)
RolledOut = Deployment | StatefulSet | DaemonSet
RECREATE, ON_DELETE = "Recreate", "OnDelete"


def most_surging(workload: RolledOut, wanted: int) -> int:
    """maxSurge in pods: how many pods may exist beyond those wanted; percentages are rounded up."""
    return _bound(workload, rolling_update(workload).max_surge, wanted, "maxSurge", up=True)


def most_unavailable(workload: RolledOut, wanted: int) -> int:
    """maxUnavailable in pods: how many of those wanted may be missing; only a DaemonSet rounds up."""
    up = isinstance(workload, DaemonSet)
    return _bound(workload, rolling_update(workload).max_unavailable, wanted, "maxUnavailable", up=up)


def surge_and_unavailable(workload: RolledOut, wanted: int) -> tuple[int, int]:
    """The resolved maxSurge and maxUnavailable in pods; never both 0."""
    surge, missing = most_surging(workload, wanted), most_unavailable(workload, wanted)
    return surge, min(missing, wanted) if surge or missing else 1


def _bound(workload: RolledOut, value: int | str | None, of: int, field: str, *, up: bool) -> int:
    try:
        return int_or_percent(value or 0, of, up=up)
    except InputError as error:
        raise error.at(f"{type(workload).__name__} {workload.key}: rollingUpdate.{field}") from None


def kept_on_purpose(applied: Applied) -> str:
    """Why pods of an old template stay although the template was changed; empty if none do."""
    if not applied.changes_template:
        return ""
    match applied.after:
        case Deployment(spec=deployment) if deployment.paused:
            return "it is paused: pods of the old template stay"
        case StatefulSet(spec=spec) | DaemonSet(spec=spec) if spec.update_strategy.type == ON_DELETE:
            return "its update strategy is OnDelete: pods of the old template stay until somebody deletes them"
        case StatefulSet(spec=stateful) if below := min(
            stateful.update_strategy.rolling_update.partition, stateful.replicas
        ):
            return f"the partition keeps {counted(below, 'pod')} of the old template"
        case _:
            return ""
