"""Reads files, directories, stdin and dicts into typed objects, as the API server would store them."""

from podium.manifests.files import Source, load_documents
from podium.manifests.loading import Objects, load, missing_references, missing_storage
from podium.manifests.replacement import scaled_by_autoscalers, with_changes_carried_out
from podium.manifests.workloads import expand_workloads, workload_of

__all__ = [
    "Objects",
    "Source",
    "expand_workloads",
    "load",
    "load_documents",
    "missing_references",
    "missing_storage",
    "scaled_by_autoscalers",
    "with_changes_carried_out",
    "workload_of",
]
