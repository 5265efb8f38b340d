"""Reads files, directories, stdin and dicts into typed objects, as the API server would store them."""

from podium.manifests.files import Source, load_documents
from podium.manifests.loading import Objects, load, missing_references, missing_storage

__all__ = ["Objects", "Source", "load", "load_documents", "missing_references", "missing_storage"]
