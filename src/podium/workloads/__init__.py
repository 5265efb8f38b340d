"""What controllers do: the pods that workloads create, rollouts, scaling down, and what replaces a lost pod."""

from podium.workloads.changes import with_changes_carried_out
from podium.workloads.created_pods import expand_workloads
from podium.workloads.owners import workload_of
from podium.workloads.scaling import scaled_by_autoscalers

__all__ = ["expand_workloads", "scaled_by_autoscalers", "with_changes_carried_out", "workload_of"]
