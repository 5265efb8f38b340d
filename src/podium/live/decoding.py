"""Objects of the API server's answers, decoded and completed as those of files are."""

from __future__ import annotations

import msgspec

from podium.live.resources import Resource
from podium.manifests.checks import check
from podium.manifests.decode import Entry, decode
from podium.manifests.defaults import default_object
from podium.manifests.files import Document
from podium.manifests.stored_pods import StoredPods
from podium.model import Object, Pod

SOURCE = Document("the API server", "the API server", None)


class ObjectDecoder:
    """Decodes objects of one kind; pods of one template share their spec."""

    def __init__(self, resource: Resource) -> None:
        self._resource = resource
        self._pods = StoredPods()

    def decode(self, raw: msgspec.Raw) -> Object:
        """The object of a JSON text; InputError that names it, where scheduling cannot use it."""
        resource = self._resource
        found = decode(Entry(SOURCE, None, resource.kind, resource.api_version, raw), resource.type)
        if isinstance(found, Pod):
            return self._pods.stored(found)
        check(found)
        return default_object(found)
