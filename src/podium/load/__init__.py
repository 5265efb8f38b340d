"""Files, directories, stdin and dicts -> typed objects as the API server would store them."""

from podium.load.loaded import Objects
from podium.load.loading import load
from podium.load.read import Source, load_documents
from podium.load.references import missing_references
from podium.load.storage_references import missing_storage
from podium.load.workloads import expand_workloads, workload_of

__all__ = [
    "Objects",
    "Source",
    "expand_workloads",
    "load",
    "load_documents",
    "missing_references",
    "missing_storage",
    "workload_of",
]
