"""Which resources of the API hold the kinds that scheduling reads."""

from __future__ import annotations

from typing import NamedTuple

from podium.manifests.decode import CLUSTER_SCOPED, GROUPS
from podium.model import KINDS, Object

IRREGULAR = {"CSIStorageCapacity": "csistoragecapacities"}
"""The plurals that are more than an s or es at the end."""


class Resource(NamedTuple):
    """A kind of objects, and where the API server has them."""

    kind: str
    type: type[Object]
    group: str
    """Empty for the core group."""
    plural: str

    @property
    def path(self) -> str:
        """Of the objects of all namespaces."""
        return f"/apis/{self.group}/v1/{self.plural}" if self.group else f"/api/v1/{self.plural}"

    @property
    def api_version(self) -> str:
        return f"{self.group}/v1" if self.group else "v1"

    def path_of(self, namespace: str, name: str) -> str:
        """Of one object."""
        if self.kind in CLUSTER_SCOPED:
            return f"{self.path}/{name}"
        head = self.path.removesuffix(self.plural)
        return f"{head}namespaces/{namespace}/{self.plural}/{name}"


def _plural(kind: str) -> str:
    name = kind.lower()
    return IRREGULAR.get(kind) or f"{name}{'es' if name.endswith('s') else 's'}"


_GROUP_OF = {kind: group for group, kinds in GROUPS.items() if group != "extensions" for kind in kinds}

RESOURCES = {kind: Resource(kind, type_, _GROUP_OF.get(kind, ""), _plural(kind)) for kind, type_ in KINDS.items()}
"""Every kind that scheduling reads, by its name."""

WORKLOADS = frozenset(("CronJob", "DaemonSet", "Deployment", "Job"))
"""What makes pods, and is of no concern to a scheduler once they are made."""

SCHEDULED_BY = tuple(resource for kind, resource in RESOURCES.items() if kind not in WORKLOADS)
"""What a running scheduler looks at."""


def resource_of(item: Object) -> Resource:
    return RESOURCES[type(item).__name__]
